"""Models: graphs of operations."""

import numpy as np
import pytest

from pindown.errors import UnsupportedModelError
from pindown.model import Builder, Interval, Model
from pindown.model.graph import interval_walk
from pindown.model.operations.dense import Add, Dense, Scale
from pindown.model.operations.moves import Reshape
from pindown.model.operations.piecewise_linear import Relu
from pindown.model.operations.smooth import Gelu

rng = np.random.default_rng(0)


def residual(width=6, seed=0):
    rng = np.random.default_rng(seed)
    graph = Builder((1, 2, 2))
    x = graph.add(Reshape((1, 4)), graph.input)
    hidden = graph.add(Relu(), graph.add(Dense(rng.normal(size=(width, 4)), rng.normal(size=width)), x))
    total = graph.add(Add(), hidden, graph.add(Scale(np.array(0.5)), hidden))
    graph.add(Dense(rng.normal(size=(2, width))), hidden)  # nobody reads this
    return graph.model(graph.add(Dense(rng.normal(size=(3, width))), total), input_shape=(2, 2))


def test_what_nobody_reads_is_left_out():
    model = residual()
    assert [operation.name for operation in model.operations].count("Dense") == 2
    assert model.in_features == 4 and model.out_features == 3 and model.input_shape == (2, 2)


def test_rows_go_through_alone_in_any_shape():
    model = residual()
    X = rng.normal(size=(5, 4))
    together = model(X)
    assert together.shape == (5, 3)
    assert np.allclose(model(X.reshape(5, 2, 2)), together)
    assert np.allclose(model(X[0]), together[0]) and np.allclose(model(X[0].reshape(2, 2)), together[0])
    assert np.allclose(np.stack([model(x) for x in X]), together)


def test_the_relu_form_is_the_same_function():
    model = residual()
    X = rng.normal(size=(50, 4))
    net = model.relu_network()
    assert np.allclose(net(X), model(X), rtol=0, atol=1e-12)
    assert model.relu_network() is net


def test_equal_models_have_one_fingerprint():
    first = residual(seed=3)
    assert residual(seed=3) == first and hash(residual(seed=3)) == hash(first)
    assert residual(seed=4) != first


def test_a_shared_operation_counts_once():
    graph = Builder((1, 3))
    layer = Dense(np.eye(3), np.zeros(3))
    twice = graph.add(layer, graph.add(layer, graph.input))
    model = graph.model(twice, input_shape=(3,))
    assert model.n_parameters == 12 and model.multiply_adds == 18


def test_smooth_operations_have_no_exact_form_and_are_named():
    graph = Builder((1, 3))
    graph.place = "module 'act' (GELU)"
    model = graph.model(graph.add(Gelu(), graph.input), input_shape=(3,))
    with pytest.raises(
        UnsupportedModelError, match=r"module 'act' \(GELU\): GELU is not piecewise linear"
    ):
        model.relu_network()


def test_too_large_an_exact_form_is_refused_before_memory_is_taken():
    graph = Builder((1, 3000, 300))
    model = graph.model(graph.add(Dense(np.ones((300, 300))), graph.input), input_shape=(3000, 300))
    with pytest.raises(UnsupportedModelError, match="the limit is"):
        model.relu_network()
    assert model.in_features == 900_000


def test_intervals_walk_along():
    model = residual()
    X = rng.normal(size=(4, 4))
    last = list(interval_walk(model, Interval(X - 0.1, X + 0.1)))[-1]
    for _ in range(20):
        y = model(X + rng.uniform(-0.1, 0.1, X.shape)).reshape(last.lower.shape)
        assert (last.lower <= y).all() and (y <= last.upper).all()


def test_bad_inputs_are_refused_in_a_line():
    model = residual()
    with pytest.raises(ValueError, match="takes inputs of shape"):
        model(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="must be finite"):
        model(np.full((1, 4), np.nan))
    with pytest.raises(ValueError, match="not finite"):
        model(np.full((1, 4), 1e308))


def test_weights_cannot_be_changed():
    model = residual()
    dense = next(op for op in model.operations if isinstance(op, Dense))
    with pytest.raises(ValueError, match="read-only"):
        dense.weight[0, 0] = 1.0


def test_a_model_of_nothing_is_the_identity():
    graph = Builder((1, 3))
    model = graph.model(graph.input, input_shape=(3,))
    assert isinstance(model, Model) and (model([1.0, 2.0, 3.0]) == [1, 2, 3]).all()


def test_what_nobody_holds_or_reads_is_let_go():
    """A replaced node goes with all that only it read; what another reads or holds stays."""
    graph = Builder((1, 2))
    first, other = (graph.add(Dense(np.full((2, 2), value)), graph.input) for value in (1.0, 2.0))
    second = graph.add(Relu(), first)
    for tensor in (first, other, second):
        graph.hold(tensor)
    graph.release(first)
    assert isinstance(graph.node(first).operation, Dense)  # the ReLU reads it
    graph.release(second)
    assert not any(isinstance(graph.node(t).operation, (Dense, Relu)) for t in (first, second))
    model = graph.model(other, input_shape=(2,))
    np.testing.assert_array_equal(model([1.0, 1.0]), [4.0, 4.0])
