"""Graphs written in another way are found equal, layers that differ are not; rounding is told apart."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from pindown import diff
from pindown.equivalence.comparison.layer_pairs import pair_layers
from pindown.model.builder import Builder
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, BatchNorm, Dense, Scale
from pindown.model.operations.moves import Reshape, Transpose
from pindown.model.operations.pooling import AveragePool
from pindown.model.operations.products import Multiply
from pindown.model.operations.relu import Relu
from pindown.model.operations.windows import Window
from tests.relaxation.test_random_graphs import random_graph


def rewritten(model, rng, change=""):
    """Return a graph that says the same in another way; or with one number or one sum changed."""
    graph = Builder(model.literal_shape)
    made = [graph.input]
    of_kind = {"number": Dense, "sum": Add, "bend": Relu}.get(change, ())
    places = [i for i, node in enumerate(model.nodes) if isinstance(node.operation, of_kind)]
    hurt = int(rng.choice(places)) if places else -1
    for i, node in enumerate(model.nodes):
        operation, inputs = node.operation, [made[j] for j in node.inputs]
        if i == hurt and change == "number":
            weight = operation.weight.copy()
            weight[tuple(rng.integers(n) for n in weight.shape)] += 0.5
            operation = replace(operation, weight=weight)
        if i == hurt and change == "sum":
            operation = Add(tuple(-sign for sign in operation.signs))
        if i == hurt and change == "bend":
            made.append(inputs[0])
            continue
        if isinstance(operation, Dense) and rng.random() < 0.7:
            tensor = graph.add(replace(operation, bias=None), *inputs)
            tensor = graph.add(Scale(shift=operation.bias), tensor)
        elif isinstance(operation, (Add, Multiply)) and rng.random() < 0.7:
            signs = getattr(operation, "signs", (1, 1))
            operation = Add(signs[::-1]) if isinstance(operation, Add) else operation
            tensor = graph.add(operation, *inputs[::-1])
        else:
            tensor = graph.add(operation, *inputs)
        if rng.random() < 0.4:
            shape = tensor.shape
            tensor = graph.add(Transpose((1, 0)), tensor)
            tensor = graph.add(Reshape(shape), tensor)
        made.append(tensor)
    return graph.model(made[-1], input_shape=model.input_shape)


@pytest.mark.parametrize("seed", range(40))
def test_graphs_written_in_another_way_are_equal_and_others_are_not(seed):
    rng = np.random.default_rng(seed)
    model = random_graph(rng)
    assert pair_layers(model, rewritten(model, rng)).equal
    X = 3.0 * rng.normal(size=(64, model.in_features))
    for change in ("number", "sum", "bend"):
        other = rewritten(model, rng, change)
        if pair_layers(model, other).complete:  # what was changed is not read, or does nothing
            assert model(X) == pytest.approx(other(X), rel=1e-9, abs=1e-9)
    same = diff(model, rewritten(model, rng), budget=5)
    assert (same.verdict, same.gap_upper) == ("same", 0.0)


def network(rng, style, size=1.0):
    """Convolutions with batch norms: apart, folded in float32, or folded with a number that moved."""
    graph = Builder((1, 2, 6, 6))
    tensor = graph.input
    window = Window(kernel=(3, 3), strides=(1, 1), before=(1, 1), after=(1, 1), dilations=(1, 1))
    for layer in range(3):
        kernel = rng.normal(size=(2, 2, 3, 3)).astype(np.float32)
        scale, variance = rng.uniform(0.5, 2.0, (2, 2)).astype(np.float32)
        shift, mean = size * rng.normal(size=(2, 2)).astype(np.float32)
        if style == "apart":
            tensor = graph.add(Convolution(kernel, window=window), tensor)
            tensor = graph.add(BatchNorm(scale, shift, mean, variance), tensor)
        else:
            factor = scale / np.sqrt(variance + np.float32(1e-5))
            kernel, bias = kernel * factor[:, None, None, None], shift - mean * factor
            assert kernel.dtype == bias.dtype == np.float32
            if style == "moved" and layer == 1:
                kernel[1, 0, 2, 2] += np.float32(2e-5) * np.abs(kernel[1]).max()
            tensor = graph.add(Convolution(kernel, bias, window=window), tensor)
        tensor = graph.add(Relu(), tensor)
    tensor = graph.add(AveragePool(Window((6, 6), (6, 6), (0, 0), (0, 0), (1, 1))), tensor)
    return graph.model(graph.add(Reshape((1, 2)), tensor), input_shape=(2, 6, 6))


@pytest.mark.parametrize("size", [1.0, 1e4])
def test_folded_batch_norms_agree_to_rounding_layer_by_layer(size):
    apart, folded, moved = (
        network(np.random.default_rng(0), style, size) for style in ("apart", "folded", "moved")
    )
    found = pair_layers(apart, folded)
    assert found.complete and not found.equal and len(found.pairs) == 3 and not found.open
    assert 0.0 < found.change <= found.allowed == 2.0**-20
    assert "all 3 pairs of layers agree to rounding" in str(found)
    other = pair_layers(apart, moved)
    assert not other.complete and len(other.pairs) == 1
    assert other.open == ("operation 3 (Conv2d)", "operation 5 (Conv2d)")
    answer = diff(apart, folded, budget=1)
    assert answer.pairs.complete and '"complete": true' in answer.to_json()
    assert "agree to rounding" in answer.to_html()


def test_the_change_of_a_pair_is_at_least_what_rationals_say():
    rng = np.random.default_rng(3)
    apart, folded = (network(np.random.default_rng(5), style) for style in ("apart", "folded"))
    first = apart.nodes[0].operation.kernel, apart.nodes[1].operation.as_scale(4)
    found = pair_layers(apart, folded).pairs[0].change
    other = folded.nodes[0].operation
    for channel in range(2):
        factor = Fraction(float(first[1].factor.ravel()[channel]))
        exact = [factor * Fraction(v) for v in first[0][channel].ravel().tolist()]
        theirs = [Fraction(v) for v in other.kernel[channel].ravel().tolist()]
        size = max(map(abs, exact))
        apart_by = max(abs(x - y) for x, y in zip(exact, theirs, strict=True))
        assert apart_by / size <= Fraction(found)
    for scale in rng.normal(
        size=4
    ):  # one factor for all channels, and one for each place, is not folded alike
        graph = Builder((1, 2))
        tensor = graph.add(Dense(np.eye(2)), graph.input)
        model = graph.model(graph.add(Scale(np.array([scale, 1.0])), tensor), input_shape=(2,))
        graph = Builder((1, 2))
        tensor = graph.add(Dense(np.diag([scale, 1.0])), graph.input)
        assert pair_layers(model, graph.model(tensor, input_shape=(2,))).complete


def test_a_shift_of_single_places_is_not_taken_into_a_convolution():
    window = Window(kernel=(1,), strides=(1,), before=(0,), after=(0,), dilations=(1,))
    models = []
    for shift in (np.array([[[1.0, 2.0]]]), np.array([[[1.0, 1.0]]])):
        graph = Builder((1, 1, 2))
        tensor = graph.add(Convolution([[[2.0]]], window=window), graph.input)
        models.append(graph.model(graph.add(Scale(shift=shift), tensor), input_shape=(1, 2)))
    graph = Builder((1, 1, 2))
    joined = graph.add(Convolution([[[2.0]]], [1.0], window=window), graph.input)
    joined = graph.model(joined, input_shape=(1, 2))
    assert not pair_layers(models[0], joined).complete and not pair_layers(*models).complete
    assert pair_layers(models[1], joined).equal


def test_what_else_reads_a_layer_keeps_it_from_being_folded():
    def model(twice):
        graph = Builder((1, 2))
        tensor = graph.add(Dense(np.eye(2)), graph.input)
        scaled = graph.add(Scale(np.array([2.0, 2.0])), tensor)
        return graph.model(graph.add(Add(), scaled, scaled if twice else tensor), input_shape=(2,))

    assert pair_layers(model(False), model(False)).equal
    assert not pair_layers(model(True), model(False)).complete
    assert not pair_layers(model(False), model(True)).complete
