"""Bounds carried forwards: every tensor, in rationals, on graphs of all kinds of operations."""

from fractions import Fraction

import numpy as np
import pytest

from pindown.model.builder import Builder
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, BatchNorm, Dense, Scale
from pindown.model.operations.moves import Concat, Fill, Reshape
from pindown.model.operations.operation import Interval, as_fractions
from pindown.model.operations.piecewise_linear import Abs, LeakyRelu, Relu
from pindown.model.operations.smooth import Sigmoid
from pindown.model.operations.windows import Window
from pindown.relaxation.forward_bounds import _of_box, tighten_forwards
from pindown.relaxation.relaxed_model import RelaxedModel


def residual(rng, d, scale=1.0):
    """Dense layers around which the input goes, with several kinds of kinks."""
    graph = Builder((1, d))
    h = graph.add(Dense(scale * rng.normal(size=(4, d)), scale * rng.normal(size=4)), graph.input)
    for activation in (Relu(), LeakyRelu(-0.3), Abs()):
        a = graph.add(activation, h)
        b = graph.add(Dense(rng.normal(size=(4, 4)), rng.normal(size=4)), a)
        h = graph.add(Add((1, int(rng.choice([1, -1])))), b, h)
    h = graph.add(Concat(1), h, graph.add(Scale(np.float64(-2.0), np.float64(0.5)), h))
    return graph.model(h, input_shape=(d,))


def images(rng):
    """A convolution, a frame of ones and batch norm."""
    graph = Builder((1, 4))
    x = graph.add(Reshape((1, 1, 2, 2)), graph.input)
    x = graph.add(Fill((0, 0, 1, 1), (0, 0, 0, 0), 1.0), x)
    window = Window((2, 2), (1, 1), (0, 0), (0, 0), (1, 1))
    x = graph.add(Convolution(rng.normal(size=(3, 1, 2, 2)), rng.normal(size=3), window=window), x)
    x = graph.add(Relu(), x)
    norm = BatchNorm(rng.normal(size=3), rng.normal(size=3), rng.normal(size=3), np.ones(3), 1e-5)
    return graph.model(graph.add(norm, x), input_shape=(4,))


def checked(model, lower, upper, rng, known=True):
    """Bound a model on boxes, and look at every tensor at rational points of them; return the widths."""
    plain = RelaxedModel.by_intervals(model, Interval(lower, upper))
    wide = plain.values[-1]
    if not known:
        plain = RelaxedModel.unbounded(model, Interval(lower, upper))
    tighten_forwards(plain)
    for box in range(len(lower)):
        shares = rng.integers(0, 9, (6, lower.shape[1])) / 8.0
        shares[0], shares[1] = 0.0, 1.0
        low, high = as_fractions(lower[box]), as_fractions(upper[box])
        points = np.array([low + (high - low) * as_fractions(share) for share in shares])
        for bound, values in zip(plain.values, model.walk(points), strict=True):
            ends = (as_fractions(end[box]) for end in bound)
            below, above = (end.reshape(1, -1) for end in ends)
            exact = np.vectorize(Fraction, otypes=[object])(values.reshape(len(points), -1))
            assert (below <= exact).all() and (exact <= above).all()
    if known:
        assert (plain.values[-1].lower >= wide.lower).all()
        assert (plain.values[-1].upper <= wide.upper).all()
    return float(
        (plain.values[-1].upper - plain.values[-1].lower).mean() / (wide.upper - wide.lower).mean()
    )


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e25])
def test_every_tensor_stays_in_its_bounds(scale):
    rng = np.random.default_rng(3)
    shares = []
    for _ in range(8):
        d = int(rng.integers(1, 4))
        lower = rng.normal(size=(2, d))
        upper = lower + rng.exponential(size=(2, d)) * 10.0 ** rng.integers(-9, 1)
        shares.append(checked(residual(rng, d, scale), lower, upper, rng))
    assert scale != 1.0 or np.mean(shares) < 0.8  # what units have in common is kept


def test_images_and_frames():
    rng = np.random.default_rng(4)
    lower = rng.normal(size=(3, 4))
    checked(images(rng), lower, lower + 0.1, rng)


def test_smooth_functions_by_samples():
    rng = np.random.default_rng(5)
    graph = Builder((1, 2))
    h = graph.add(Dense(rng.normal(size=(3, 2)), rng.normal(size=3)), graph.input)
    h = graph.add(Dense(rng.normal(size=(2, 3)), rng.normal(size=2)), graph.add(Sigmoid(), h))
    model = graph.model(h, input_shape=(2,))
    relaxed = RelaxedModel.by_intervals(model, Interval(-0.5 * np.ones((1, 2)), 0.5 * np.ones((1, 2))))
    wide = relaxed.values[-1]
    tighten_forwards(relaxed)
    low, high = relaxed.values[-1]
    values = model(rng.uniform(-0.5, 0.5, (4000, 2)))
    assert (low < values.min(axis=0)).all() and (values.max(axis=0) < high).all()
    narrower = (wide.upper - wide.lower) - (high - low)
    assert (narrower >= 0).all() and (narrower > 0.01).any()


def test_affine_models_are_bounded_exactly():
    """x - x is zero, which intervals do not see."""
    graph = Builder((1, 1))
    twice = graph.add(Dense([[1.0], [1.0]], [0.0, 0.0]), graph.input)
    model = graph.model(graph.add(Dense([[1.0, -1.0]], [0.0]), twice), input_shape=(1,))
    relaxed = RelaxedModel.by_intervals(model, Interval(np.array([[-5.0]]), np.array([[9.0]])))
    tighten_forwards(relaxed)
    np.testing.assert_allclose([end.item() for end in relaxed.values[-1]], 0.0, atol=1e-12)


def test_differences_swap_the_sides():
    """x / 2 - relu(x) is at most 0, which it is in the middle of the box."""
    graph = Builder((1, 1))
    bent = graph.add(Relu(), graph.add(Dense([[1.0]], [0.0]), graph.input))
    less = graph.add(Add((1, -1)), graph.input, bent)
    half = graph.add(Dense([[-0.5]], [0.0]), graph.input)
    model = graph.model(graph.add(Add((1, 1)), less, half), input_shape=(1,))
    checked(model, np.array([[-1.0]]), np.array([[1.0]]), np.random.default_rng(0))


def test_rounding_is_charged():
    """a (1/a) - b (1/b) is zero in float64; of the rounded 1/a and 1/b it is not."""
    rng = np.random.default_rng(6)
    for a, b in ((3.0, 7.0), (49.0, 11.0), (1e9 + 7, 13.0)):
        graph = Builder((1, 1))
        h = graph.add(Dense([[1.0 / a], [1.0 / b]]), graph.input)
        model = graph.model(graph.add(Dense([[a, -b]]), h), input_shape=(1,))
        checked(model, np.ones((1, 1)), np.full((1, 1), 1.5), rng)


def test_the_box_of_the_input_is_covered():
    """Half the width, rounded to nearest, does not reach from the middle to both ends."""
    rng = np.random.default_rng(7)
    graph = Builder((1, 3))
    model = graph.model(graph.add(Dense(np.eye(3), np.zeros(3)), graph.input), input_shape=(3,))
    lower = rng.normal(size=(200, 3))
    upper = lower + rng.exponential(size=(200, 3)) * 10.0 ** rng.integers(-17, 2, (200, 3))
    box = Interval(lower, upper)
    first = _of_box(Interval(lower[:, None], upper[:, None]))
    radius = as_fractions(np.abs(first.generators).sum(axis=1))
    centre = as_fractions(first.centre)
    assert (centre - radius <= as_fractions(lower[:, None])).all()
    assert (centre + radius >= as_fractions(upper[:, None])).all()
    relaxed = RelaxedModel.unbounded(model, box)
    tighten_forwards(relaxed)
    assert (relaxed.values[-1].lower[:, 0] <= lower).all()
    assert (relaxed.values[-1].upper[:, 0] >= upper).all()


def test_unknowns_without_room_go_to_the_slack(monkeypatch):
    """Bounds are wider with fewer unknowns, and hold all the same."""
    rng = np.random.default_rng(8)
    graph = Builder((1, 2))
    h = graph.add(Dense(rng.normal(size=(12, 2)), rng.normal(size=12)), graph.input)
    for _ in range(2):
        h = graph.add(Dense(rng.normal(size=(12, 12)), rng.normal(size=12)), graph.add(Relu(), h))
    model = graph.model(h, input_shape=(2,))
    lower = rng.normal(size=(3, 2))
    shares = []
    for room in (0, 6, 64):
        monkeypatch.setattr("pindown.relaxation.forward_bounds._unknowns", lambda _, room=room: room)
        shares.append(checked(model, lower, lower + 0.7, rng))
    assert shares[0] > shares[1] > shares[2]


def test_nothing_need_be_known_before():
    rng = np.random.default_rng(9)
    model = residual(rng, 2)
    lower = rng.normal(size=(4, 2))
    assert checked(model, lower, lower + 0.3, rng, known=False) < 1.0


def test_what_operations_side_by_side_leave_open_is_not_the_same():
    """Three ReLUs on branches of their own, and a row in which slopes and like unknowns cancel."""
    graph = Builder((1, 1))
    kinks, width = np.array([0.0, 0.5, -0.5]), 1.0
    branches = [graph.add(Relu(), graph.add(Dense([[1.0]], [b]), graph.input)) for b in kinks]
    slopes = (width + kinks) / (2 * width)
    halves = slopes * (width - kinks) / 2
    rows = np.cross(slopes, halves)[None]  # no part of x is left, nor of an unknown that all share
    model = graph.model(graph.add(Dense(rows), graph.add(Concat(1), *branches)), input_shape=(1,))
    checked(model, np.full((1, 1), -width), np.full((1, 1), width), np.random.default_rng(10))
    relaxed = RelaxedModel.unbounded(model, Interval(np.full((1, 1), -width), np.full((1, 1), width)))
    tighten_forwards(relaxed)
    values = model(np.linspace(-width, width, 201)[:, None])
    assert values.max() - values.min() > 0.01
    assert relaxed.values[-1].lower.item() <= values.min()
    assert values.max() <= relaxed.values[-1].upper.item()
