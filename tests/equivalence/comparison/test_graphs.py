"""The layer that is to blame is the one that was damaged; changes of graphs are said as they are."""

from dataclasses import replace

import numpy as np
import pytest

from pindown import ReluNetwork, diff
from pindown.equivalence.comparison.graphs import blame_of, graph_changes
from pindown.model.builder import Builder
from pindown.model.from_network import model_of_network
from pindown.model.operations.dense import BatchNorm, Dense
from pindown.model.operations.integer_weights import IntegerWeights
from pindown.model.operations.piecewise_linear import Relu
from pindown.model.operations.quantised import Dequantize
from tests.equivalence.comparison.nets import random_net


@pytest.mark.parametrize("seed", range(20))
def test_the_damaged_layer_is_blamed_as_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    net = random_net((3, 8, 8, 8, 4), rng)
    layers = [(W + 1e-4 * rng.normal(size=W.shape), b) for W, b in net.layers]
    hurt = seed % 4
    layers[hurt] = (layers[hurt][0] + 0.3 * rng.normal(size=layers[hurt][0].shape), layers[hurt][1])
    other = ReluNetwork.from_layers(layers)
    X = rng.normal(size=(50, 3))
    answer = diff(net, other, data=X, budget=1)
    back = [
        np.abs(net(X) - ReluNetwork.from_layers([*layers[:i], net.layers[i], *layers[i + 1 :]])(X)).max()
        for i in range(4)
    ]
    assert int(np.argmin(back)) == hurt and len(answer.blame) == 4
    first = answer.blame[0]
    assert first.without == pytest.approx(min(back), rel=1e-9)
    alone = ReluNetwork.from_layers([*net.layers[:hurt], layers[hurt], *net.layers[hurt + 1 :]])
    assert first.alone == pytest.approx(np.abs(net(X) - alone(X)).max(), rel=1e-9)
    ordered = [layer.alone for layer in answer.blame]
    assert ordered == sorted(ordered, reverse=True)


def graph(*, folded=False, scale=1.0, dtype="float32"):
    """A dense layer, batch norm that may be folded into it, and a ReLU."""
    W, factor = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([2.0, 0.5])
    builder = Builder((1, 2))
    if folded:
        made = builder.add(Dense(scale * factor[:, None] * W, np.zeros(2)), builder.input)
    else:
        made = builder.add(Dense(scale * W, np.zeros(2)), builder.input)
        norm = BatchNorm(factor, np.zeros(2), np.zeros(2), np.ones(2), 0.0)
        made = builder.add(norm, made)
    return replace(builder.model(builder.add(Relu(), made)), dtype=dtype)


def test_fused_retyped_and_changed_are_told_apart():
    assert graph_changes(graph(), graph()) == ()
    assert graph_changes(graph(), graph(dtype="float16")) == ("retyped from float32 to float16",)
    (fused, changed) = graph_changes(graph(), graph(folded=True))
    assert fused.startswith("fused into the operation before: ") and "1 of 1 Dense" in changed
    (added, _) = graph_changes(graph(folded=True), graph())
    assert added.startswith("added: ")
    assert graph_changes(graph(), graph(scale=1.5)) == ("changed numbers in 1 of 1 Dense, by at most 2",)
    net = ReluNetwork.from_layers([([[1.0, 0.0]], [0]), ([[1.0], [1.0]], [0, 0])])
    words = " ".join(graph_changes(graph(), model_of_network(net)))
    assert "removed" in words and "added" in words


def test_numbers_stored_as_integers_are_retyped():
    builder = Builder((1, 2))
    integers = IntegerWeights.of(Dense, [[4, 8], [3, 4]], Dequantize(0.5, 0, kind="int8"), np.zeros(2))
    other = builder.model(builder.add(Relu(), builder.add(integers, builder.input)))
    assert graph_changes(graph(folded=True), replace(other, dtype="float32")) == (
        "retyped: the numbers of 1 of 1 Dense are stored in another form",
    )


def test_quantised_layers_are_blamed_with_their_scale():
    rng = np.random.default_rng(2)
    net = random_net((6, 8, 8, 3), rng)
    exact = model_of_network(net)
    scales = [2.0**-20, 0.25, 2.0**-20]  # the second layer's grid is far too coarse
    nodes, left = list(exact.nodes), iter(scales)
    for i, node in enumerate(nodes):
        if isinstance(node.operation, Dense):
            grid = Dequantize(next(left), 0, kind="int32")
            integers = np.rint(node.operation.weight / grid.scale)
            made = IntegerWeights.of(Dense, integers, grid, node.operation.bias)
            nodes[i] = node._replace(operation=made)
    coarse = replace(exact, nodes=tuple(nodes))
    X = rng.normal(size=(40, 6))
    gap = np.abs(exact(X) - coarse(X)).max(axis=1)
    first = blame_of(exact, coarse, X, gap)[0]
    assert first.stored == "int32 weight, scale 0.25" and first.without < 1e-3 < first.alone
    assert first == diff(exact, coarse, data=X, budget=2).blame[0]


def test_a_reshape_more_or_less_does_not_matter():
    rng = np.random.default_rng(0)
    net = random_net((4, 5, 3), rng)
    shaped = replace(net, input_shape=(2, 2))  # its graph begins with a reshape
    W, b = net.layers[1]
    other = ReluNetwork.from_layers([net.layers[0], (W + 0.1, b)])
    (layer,) = diff(shaped, other, data=rng.normal(size=(5, 4)), budget=1).blame
    assert layer.change == pytest.approx(0.1) and layer.without == 0.0


def test_blame_needs_one_structure():
    X = np.ones((2, 2))
    assert blame_of(graph(), graph(folded=True), X, np.ones(2)) == ()
    assert blame_of(graph(), graph(), X, np.zeros(2)) == ()
    (layer,) = blame_of(graph(), graph(scale=1.5), X, np.ones(2))
    assert layer.without == 0.0 and layer.change == 2.0 and layer.alone == 3.0  # 0.5 * 2 * 3
