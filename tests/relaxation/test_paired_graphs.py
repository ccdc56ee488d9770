"""Graphs brought to one structure: quantised copies, biases apart, and whom blame names then."""

import numpy as np
import pytest

from pindown.equivalence.comparison.graphs import blame_of
from pindown.model.builder import Builder
from pindown.model.operations.dense import Add, Dense, Scale
from pindown.model.operations.integers import Dequantize, Quantize
from pindown.model.operations.relu import Relu
from pindown.relaxation import bounds
from pindown.relaxation.difference_models import difference_model
from pindown.relaxation.paired_graphs import paired_graphs


def grid(scale, zero, kind="uint8", axis=None):
    return Quantize(scale, zero, kind, axis), Dequantize(scale, zero, axis, kind)


def branching(rng, rounding=False, apart=False, negative=False):
    """A graph with a sum, in float or quantised; ``apart`` adds a bias by itself."""
    own = np.random.default_rng(3)
    weights = [own.normal(size=shape) / 2 for shape in ((6, 4), (6, 6), (3, 6))]
    bias = own.normal(size=6)
    graph = Builder((1, 4))

    def rounded(x, scale, zero=0, kind="uint8"):
        return (
            graph.add(grid(scale, zero, kind)[1], graph.add(grid(scale, zero, kind)[0], x))
            if rounding
            else x
        )

    def changed(W):
        return W + 1e-3 * rng.normal(size=W.shape) if rounding else W

    x = rounded(graph.input, 0.02, 0, "int8")
    if apart:
        x = graph.add(
            Scale(shift=bias), rounded(graph.add(Dense(changed(weights[0])), x), 0.05, 0, "int8")
        )
    else:
        x = graph.add(Dense(changed(weights[0]), bias), x)
    # Rounding to unsigned integers is a ReLU; with a zero point it is none.
    x = rounded(x, 0.03, 100 if negative else 0) if rounding and not negative else graph.add(Relu(), x)
    y = graph.add(Add(), graph.add(Dense(changed(weights[1]), bias), x), x)
    y = rounded(y, 0.05, 100) if negative else rounded(graph.add(Relu(), y), 0.05)
    y = graph.add(Relu(), y) if negative else y
    return graph.model(rounded(graph.add(Dense(changed(weights[2])), y), 0.05, 128), input_shape=(4,))


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_quantised_copy_stands_beside_its_model(negative, apart, swapped):
    rng = np.random.default_rng(1)
    models = [branching(rng, negative=negative), branching(rng, True, apart, negative)]
    first, second = models[::-1] if swapped else models
    a, b = paired_graphs(first, second)
    X = rng.uniform(-1, 1, (200, 4))
    np.testing.assert_allclose(a(X), first(X), atol=1e-12)
    np.testing.assert_allclose(b(X), second(X), atol=1e-12)
    assert difference_model(first, second) is None  # rounding is better bounded apart


def test_a_bias_apart_is_tied_to_one_that_is_not():
    rng = np.random.default_rng(4)
    models = [branching(rng), branching(rng, apart=True)]
    for first, second in (models, models[::-1]):
        a, b = paired_graphs(first, second)
        X = rng.uniform(-1, 1, (200, 4))
        np.testing.assert_allclose(a(X), first(X), atol=1e-12)
        np.testing.assert_allclose(b(X), second(X), atol=1e-12)
        low, high = bounds(difference_model(first, second), -np.ones(4), np.ones(4))
        assert np.maximum(high, -low).max() < 1e-12


def test_graphs_with_other_operations_are_not_paired():
    rng = np.random.default_rng(2)
    other = Builder((1, 4))
    other = other.model(other.add(Dense(rng.normal(size=(3, 4))), other.input), input_shape=(4,))
    assert paired_graphs(branching(rng), other) is None
    assert paired_graphs(other, branching(rng, True)) is None


def test_a_rounded_tensor_is_blamed_with_its_scale():
    rng = np.random.default_rng(1)
    first, second = branching(rng), branching(rng, True)
    X = rng.uniform(-1, 1, (50, 4))
    found = blame_of(first, second, X, np.abs(first(X) - second(X)).max(axis=1))
    stored = {layer.stored for layer in found}
    assert {
        "uint8 tensor, scale 0.05",
        "uint8 tensor, scale 0.03",
        "int8 tensor, scale 0.02",
        "",
    } == stored
    steps = {layer.stored: layer.change for layer in found}
    assert steps["uint8 tensor, scale 0.03"] == pytest.approx(0.015)
