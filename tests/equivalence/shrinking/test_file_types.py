"""What rounding to the type of a file does: bounds that hold, and are met where signs allow it."""

import numpy as np
import pytest

from pindown import Box
from pindown.equivalence.shrinking._channel_changes import Error, change_bound, spread, steepest
from pindown.equivalence.shrinking.file_types import fits, rounding_gap
from pindown.model.operations.dense import Add, BatchNorm, Dense, Reduce
from pindown.model.operations.elementary import Exp
from pindown.model.operations.moves import Concat, Fill
from pindown.model.operations.piecewise_linear import Abs, Clip, HardSigmoid, LeakyRelu, Relu
from pindown.model.operations.pooling import AveragePool, MaxPool
from pindown.model.operations.smooth import (
    Celu,
    Elu,
    Erf,
    Gelu,
    HardSwish,
    Mish,
    Selu,
    Sigmoid,
    Silu,
    Softplus,
    Tanh,
)
from pindown.model.operations.softmax import LogSoftmax, Softmax
from tests.equivalence.shrinking.graphs import Chain, conv, random_graph, window


def mixed(rng, activation, last=None):
    chain = Chain((2, 5, 5)).add(
        conv(rng.normal(size=(4, 2, 3, 3)), rng.normal(size=4), pad=1), activation
    )
    start = chain.x
    chain.add(conv(rng.normal(size=(4, 4, 3, 3)), rng.normal(size=4), pad=1))
    chain.x = chain.graph.add(Add((1, -1)), chain.x, start)
    chain.x = chain.graph.add(Concat(1), chain.x, start)
    chain.add(
        MaxPool(window(2)), Fill((0, 0, 1, 1), (0, 0, 1, 1), 2.0), AveragePool(window(2)), activation
    )
    chain.add(Reduce((2, 3))).flat()
    chain.add(Dense(rng.normal(size=(3, 8)), rng.normal(size=3)))
    return (chain.add(last) if last is not None else chain).model()


def rounded(model, dtype):
    """The model as a file of that type holds it."""
    from dataclasses import fields, replace

    def narrow(operation):
        parts = {
            field.name: value.astype(dtype).astype(float)
            for field in fields(operation)
            if isinstance(value := getattr(operation, field.name), np.ndarray)
        }
        return replace(operation, **parts) if parts else operation

    nodes = tuple(node._replace(operation=narrow(node.operation)) for node in model.nodes)
    return replace(model, nodes=nodes)


@pytest.mark.parametrize("last", [None, Softmax(1), LogSoftmax(1)])
@pytest.mark.parametrize("activation", [Relu(), LeakyRelu(0.5), Gelu(), Sigmoid(), HardSwish(), Tanh()])
def test_the_bound_holds(activation, last):
    for dtype in ("float32", "float16"):
        model = mixed(np.random.default_rng(0), activation, last)
        assert not fits(model, dtype) and fits(model, "float64") and fits(rounded(model, dtype), dtype)
        box = Box.cube(model.in_features, -1.0, 1.0)
        X = np.random.default_rng(1).normal(size=(50, model.in_features))
        gaps = np.abs(rounded(model, dtype)(X) - model(X)).max(axis=1)
        assert (gaps <= rounding_gap(model, dtype, None) * (1.0 + np.linalg.norm(X, axis=1))).all()
        X = box.sample(50, np.random.default_rng(1))
        gaps = np.abs(rounded(model, dtype)(X) - model(X)).max()
        assert 0.0 < gaps <= rounding_gap(model, dtype, box) < np.inf
        assert rounding_gap(model, "float64", box) == 0.0


def test_the_bound_is_met_where_all_is_positive():
    """With weights, biases and inputs above zero, errors that all point up add up in full."""
    rng = np.random.default_rng(0)
    W, b = [np.abs(rng.normal(size=shape)) for shape in ((4, 3), (2, 4))], [np.ones(4), np.ones(2)]
    model = Chain((3,)).add(Dense(W[0], b[0]), Relu(), Dense(W[1], b[1])).model()
    E = [1e-6 * np.abs(rng.normal(size=w.shape)) for w in W]
    errors = {1: Error(E[0][:, :, None], 1e-6 * b[0]), 3: Error(E[1][:, :, None], 1e-6 * b[1])}
    other = Chain((3,))
    other.add(Dense(W[0] + E[0], b[0] * (1 + 1e-6)), Relu(), Dense(W[1] + E[1], b[1] * (1 + 1e-6)))
    moved = other.model()
    changed = {i: moved.nodes[i - 1].operation for i in errors}
    gap = np.abs(moved([[1.0, 1.0, 1.0]]) - model([[1.0, 1.0, 1.0]])).max()
    bound = change_bound(model, errors, Box.cube(3, 0.0, 1.0), changed)
    assert gap <= bound * (1 + 1e-9) and bound <= gap * (1 + 1e-6)
    x = 1e9 * np.eye(3)
    relative = np.abs(moved(x) - model(x)).max() / 1e9
    assert relative <= change_bound(model, errors, None, changed) <= 10 * relative


@pytest.mark.parametrize(
    "function",
    [
        *(
            Relu(),
            LeakyRelu(-3.0),
            Abs(),
            Clip(-1.0, 2.0),
            HardSigmoid(0.25, 0.5),
            Elu(2.0),
            Selu(),
            Celu(0.5),
        ),
        *(Gelu(), Gelu(True), Silu(), Mish(), HardSwish(), Sigmoid(), Tanh(), Erf(), Softplus()),
    ],
    ids=repr,
)
def test_no_function_is_steeper_than_said_and_all_nearly_are(function):
    x = np.linspace(-8.0, 8.0, 400_001)[None]
    slope = np.abs(np.diff(function(x)) / np.diff(x)).max()
    assert slope - 1e-6 <= steepest(function) <= 1.03 * slope


def test_what_may_grow_at_any_rate_is_not_bounded():
    assert steepest(Exp()) == np.inf
    model = Chain((2,)).add(Dense(np.full((2, 2), 0.1)), Exp(), Dense(np.ones((1, 2)))).model()
    assert rounding_gap(model, "float32", None) == np.inf
    norm = BatchNorm(np.full(2, 0.1), np.zeros(2), np.zeros(2), np.ones(2), 0.0)
    assert rounding_gap(Chain((2,)).add(norm).model(), "float32", None) == np.inf


@pytest.mark.parametrize("seed", range(8))
def test_operations_move_no_two_inputs_farther_apart(seed):
    """Operation by operation, on random graphs: what is at most so far apart stays within the bound."""
    rng = np.random.default_rng(seed)
    model = random_graph(rng)
    x, y = (rng.normal(size=(1, model.in_features)) for _ in range(2))
    first, second = list(model.walk(x)), list(model.walk(y))
    for node, a, b in zip(model.nodes, first[1:], second[1:], strict=True):
        apart = [np.abs(first[j] - second[j]) for j in node.inputs]
        bound = spread(node.operation, node.shape, *apart)
        assert (np.abs(a - b) <= bound * (1 + 1e-12) + 1e-12).all(), node.operation.name


@pytest.mark.parametrize(("function", "factor"), [(Softmax(0), 0.5), (LogSoftmax(0), 2.0)])
def test_softmax_moves_numbers_apart_as_said(function, factor):
    """One output goes up and one down: softmax is steepest between equals, log-softmax far off."""
    x = np.array([[0.0, 0.0]]) if factor == 0.5 else np.array([[-40.0, 0.0]])
    step = np.array([[1e-3, -1e-3]])
    moved = np.abs(function(x + step) - function(x - step)).max()
    bound = spread(function, (2,), 2.0 * np.abs(step)).max()
    assert moved <= bound <= 1.001 * moved


def test_what_an_operation_makes_of_zero_counts():
    """Without a box: the biases of the first layer are all that the second one's errors meet."""
    model = Chain((1,)).add(Dense(np.zeros((1, 1)), [3.0]), Relu(), Dense([[1.0]])).model()
    errors = {3: Error(np.full((1, 1, 1), 0.5), np.zeros(1))}
    assert 1.5 <= change_bound(model, errors, None) <= 1.5 * (1 + 1e-9)
