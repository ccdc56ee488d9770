"""Gradients of models by their operations, against differences; slopes on boxes, against samples."""

import numpy as np
import pytest

from pindown.model import gradients as module
from pindown.model.builder import Builder
from pindown.model.gradients import gradients, outputs, relaxed_gradients
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, Dense
from pindown.model.operations.moves import Reshape
from pindown.model.operations.operation import Interval
from pindown.model.operations.piecewise_linear import Relu
from pindown.model.operations.products import Multiply
from pindown.model.operations.smooth import Sigmoid
from pindown.model.operations.windows import Window


def branching_model(rng):
    """Images 1 x 4 x 4: a convolution, a residual branch, a product of two ways, four outputs."""
    window = Window(kernel=(3, 3), strides=(1, 1), before=(1, 1), after=(1, 1), dilations=(1, 1))
    graph = Builder((1, 1, 4, 4))
    first = graph.add(
        Convolution(rng.standard_normal((1, 1, 3, 3)), rng.standard_normal(1), window=window),
        graph.input,
    )
    hidden = graph.add(Relu(), first)
    summed = graph.add(Add((1, -1)), hidden, graph.input)
    bent = graph.add(Sigmoid(), summed)
    product = graph.add(Multiply(), bent, hidden)
    flat = graph.add(Reshape((1, 16)), product)
    last = graph.add(Dense(rng.standard_normal((4, 16)), rng.standard_normal(4)), flat)
    return graph.model(last, input_shape=(1, 4, 4), dtype="float64")


def test_gradients_are_those_of_finite_differences():
    rng = np.random.default_rng(0)
    model = branching_model(rng)
    X, forms = rng.standard_normal((5, 16)), rng.standard_normal((5, 4))
    made, slopes = gradients(model, X, lambda y, part: forms[part])
    np.testing.assert_allclose(made, model(X))
    for i in range(16):
        step = np.zeros(16)
        step[i] = 1e-6
        change = ((model(X + step) - model(X - step)) * forms).sum(axis=1) / 2e-6
        np.testing.assert_allclose(slopes[:, i], change, atol=1e-6)


def test_forms_may_depend_on_outputs_and_rows_come_in_chunks(monkeypatch):
    rng = np.random.default_rng(1)
    model = branching_model(rng)
    X = rng.standard_normal((7, 16))
    whole = gradients(model, X, lambda y, part: np.sign(y))
    parts = []

    def by_two(n, row_bytes):
        yield from (slice(i, min(n, i + 2)) for i in range(0, n, 2))

    def forms(y, part):
        parts.append(part)
        np.testing.assert_allclose(y, whole[0][part])
        return np.sign(y)

    monkeypatch.setattr(module, "row_chunks", by_two)
    again = gradients(model, X, forms)
    assert len(parts) == 4
    np.testing.assert_allclose(again[1], whole[1])


def test_on_a_small_box_the_slope_is_nearly_the_gradient():
    rng = np.random.default_rng(2)
    model = branching_model(rng)
    X, forms = rng.standard_normal((6, 16)), rng.standard_normal((6, 4))
    expected = gradients(model, X, lambda y, part: forms[part])[1]
    slopes = relaxed_gradients(model, Interval(X - 1e-5, X + 1e-5), forms)
    np.testing.assert_allclose(slopes, expected, atol=1e-3)


@pytest.mark.parametrize("half", [0.05, 0.5])
def test_slopes_on_boxes_show_the_way_up(half):
    """The corner that they point to is better than the opposite one."""
    rng = np.random.default_rng(3)
    model = branching_model(rng)
    middle, forms = rng.standard_normal((3, 16)), rng.standard_normal((3, 4))
    box = Interval(middle - half, middle + half)
    slopes = relaxed_gradients(model, box, forms)
    up = np.where(slopes > 0, box.upper, box.lower)
    down = np.where(slopes > 0, box.lower, box.upper)
    gain = ((model(up) - model(down)) * forms).sum(axis=1)
    assert (gain > 0).all()


def test_slopes_see_beyond_a_flat_side():
    """max(0, x1 + x2 - 1.5) is flat around 0, but on [0, 1]^2 it can only grow upwards."""
    graph = Builder((1, 2))
    hidden = graph.add(Relu(), graph.add(Dense(np.array([[1.0, 1.0]]), np.array([-1.5])), graph.input))
    model = graph.model(hidden, input_shape=(2,))
    one = np.ones((1, 1))
    assert not gradients(model, np.zeros((1, 2)), lambda y, part: np.ones_like(y))[1].any()
    # The chord from -1.5 to 0.5 has the slope 1/4.
    np.testing.assert_allclose(
        relaxed_gradients(model, Interval(np.zeros((1, 2)), np.ones((1, 2))), one), [[0.25, 0.25]]
    )


def test_what_leaves_float64_is_cut_off_without_a_warning():
    graph = Builder((1, 1))
    large = graph.add(Dense(np.array([[1e200]])), graph.input)
    square = graph.add(Multiply(), large, large)
    model = graph.model(square, input_shape=(1,))
    X = np.array([[1.0], [1e150], [0.0]])
    with np.errstate(all="raise"):
        made, slopes = gradients(model, X, lambda y, part: np.ones_like(y))
        assert np.isinf(outputs(model, X)[:2]).all() and np.isinf(made[:2]).all()
        assert relaxed_gradients(model, Interval(X, X + 1.0), np.ones((3, 1))).shape == (3, 1)
    assert np.isfinite(slopes).all() and slopes[0, 0] >= 1e299
