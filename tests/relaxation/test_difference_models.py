"""The difference of two models as a model: its values, its planes, its bounds."""

from fractions import Fraction

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.model.builder import Builder
from pindown.model.from_network import model_of_network
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, BatchNorm, Dense, Scale
from pindown.model.operations.moves import Concat, Reshape
from pindown.model.operations.operation import Interval
from pindown.model.operations.pooling import MaxPool
from pindown.model.operations.relu import Relu
from pindown.model.operations.smooth import Tanh
from pindown.model.operations.windows import Window
from pindown.relaxation import bounds
from pindown.relaxation.difference_models import difference_model
from pindown.relaxation.relu_difference import ReluDifference


def drawn_boxes(rng, n):
    """Boxes of values and differences of all kinds: signs known and open, thin and wide, points."""
    ends = rng.normal(size=(4, n)) * 10.0 ** rng.uniform(-6, 3, (4, n))
    ends[:, rng.random(n) < 0.2] = np.abs(ends[:, rng.random(n) < 0.2][:, :1])
    same = rng.random(n) < 0.1
    ends[1, same] = ends[0, same]
    z, delta = np.sort(ends[:2], axis=0), np.sort(ends[2:], axis=0)
    return Interval(z[0][None], z[1][None]), Interval(delta[0][None], delta[1][None])


def test_planes_lie_above_and_below_in_rationals():
    rng = np.random.default_rng(0)
    operation = ReluDifference()
    for _ in range(60):
        z, delta = drawn_boxes(rng, 40)
        made, box = operation.relaxation(z, delta), operation.interval(z, delta)
        for i in range(40):
            corners = [(z[p][0, i], delta[q][0, i]) for p in (0, 1) for q in (0, 1)]
            low, high = ([float(end[0, i]) for end in pair] for pair in (z, delta))
            inner = [(rng.uniform(*low), rng.uniform(*high)) for _ in range(4)]
            kinks = [(t, d) for d in high for t in (0.0, d) if low[0] <= t <= low[1]]
            for point in [*corners, *inner, *kinks]:
                t, d = map(Fraction, map(float, point))
                if not (low[0] <= t <= low[1] and high[0] <= d <= high[1]):
                    continue
                value = max(t, 0) - max(t - d, 0)
                lines = [
                    sum(Fraction(float(s[0, i])) * x for s, x in zip(slopes, (t, d), strict=True))
                    + Fraction(float(offset[0, i]))
                    for slopes, offset in ((made.lower, made.below), (made.upper_slopes, made.above))
                ]
                assert lines[0] <= value <= lines[1]
                assert Fraction(float(box.lower[0, i])) <= value <= Fraction(float(box.upper[0, i]))


def test_mixtures_of_planes_lie_above_and_below_in_rationals():
    rng = np.random.default_rng(6)
    n = 40
    for _ in range(20):
        z, delta = drawn_boxes(rng, n)
        mix = np.where(
            rng.random((1, 1, 4, n)) < 0.3, rng.integers(0, 2, (1, 1, 4, n)), rng.random((1, 1, 4, n))
        )
        made = ReluDifference().relaxation(z, delta).with_slopes(mix)
        for i in range(n):
            form = np.zeros((1, 2, n))
            form[0, 0, i], form[0, 1, i] = 1.0, -1.0
            (own, apart), offset = made.upper(form)
            low, high = ([float(end[0, i]) for end in pair] for pair in (z, delta))
            for point in [(low[p], high[q]) for p in (0, 1) for q in (0, 1)] + [
                (rng.uniform(*low), rng.uniform(*high)) for _ in range(4)
            ]:
                t, d = map(Fraction, map(float, point))
                value = max(t, 0) - max(t - d, 0)
                for row, sign in ((0, 1), (1, -1)):
                    slopes = (Fraction(float(part[0, row, i])) for part in (own, apart))
                    line = sum(s * x for s, x in zip(slopes, (t, d), strict=True))
                    assert sign * value <= line + Fraction(float(offset[0, row]))


def test_mixtures_are_chosen_by_their_gradient():
    rng = np.random.default_rng(7)
    z, delta = drawn_boxes(rng, 30)
    made = ReluDifference().relaxation(z, delta)
    mix = rng.uniform(0.2, 0.8, (1, 1, 4, 30))
    form = rng.normal(size=(1, 1, 30))
    points = [rng.uniform(*box)[:, None] for box in (z, delta)]
    step = 1e-6

    def total(mix):
        return form * made.with_slopes(mix).forward(form, *points)

    gradient = made.with_slopes(mix).slope_gradient(form, *points)
    for k in range(4):
        moved = mix.copy()
        moved[:, :, k] += step
        change = (total(moved) - total(mix)) / step
        size = np.abs(total(mix)).max()
        np.testing.assert_allclose(gradient[:, :, k], change, rtol=1e-3, atol=1e-7 * size)


def test_optimised_bounds_are_tighter():
    rng = np.random.default_rng(8)
    net = ReluNetwork.from_layers(
        [(rng.normal(size=(m, n)), rng.normal(size=m)) for n, m in ((4, 20), (20, 20), (20, 2))]
    )
    moved = ReluNetwork.from_layers(
        [(W * (1 + 1e-3 * rng.normal(size=W.shape)), b) for W, b in net.layers]
    )
    tied = difference_model(model_of_network(net), model_of_network(moved))
    widths = {}
    for method in ("linear", "optimised"):
        low, high = bounds(tied, -0.3 * np.ones(4), 0.3 * np.ones(4), method=method)
        widths[method] = float(np.maximum(high, -low).max())
    points = rng.uniform(-0.3, 0.3, (2000, 4))
    assert np.abs(net(points) - moved(points)).max() <= widths["optimised"] < 0.95 * widths["linear"]


def test_planes_are_exact_where_signs_are_known():
    one = np.ones((1, 1))
    for z, delta, slopes in (
        ((2.0, 3.0), (-1.0, 1.0), (0.0, 1.0)),  # both on
        ((-3.0, -2.0), (-1.0, 1.0), (0.0, 0.0)),  # both off
        ((1.0, 2.0), (3.0, 4.0), (1.0, 0.0)),  # only the first
    ):
        boxes = [Interval(low * one, high * one) for low, high in (z, delta)]
        made = ReluDifference().relaxation(*boxes)
        for own, apart in (made.lower, made.upper_slopes):
            np.testing.assert_allclose([own.item(), apart.item()], slopes, atol=1e-12)


def graph(rng, change=0.0):
    """A graph that branches, pools, normalises and bends otherwise; ``change`` moves its numbers."""
    own = np.random.default_rng(5)

    def numbers(*shape):
        return own.normal(size=shape) * (1.0 + change * rng.normal(size=shape))

    window = Window(kernel=(2, 2), strides=(1, 1), before=(0, 0), after=(0, 0), dilations=(1, 1))
    made = Builder((1, 1, 4, 4))
    x = made.add(Convolution(numbers(3, 1, 2, 2), numbers(3), window=window), made.input)
    x = made.add(BatchNorm(np.array([1.0, 2, 3]), np.ones(3), np.ones(3), np.ones(3)), x)
    left = made.add(Relu(), x)
    right = made.add(Scale(numbers(3, 1, 1), None), x)
    total = made.add(Add((1, -1)), left, right)
    both = made.add(Concat(axis=1), total, left)
    pooled = made.add(MaxPool(window), both)
    flat = made.add(Reshape((1, 24)), pooled)
    hidden = made.add(Tanh(), made.add(Dense(0.3 * numbers(5, 24), numbers(5)), flat))
    return made.model(made.add(Dense(numbers(2, 5), numbers(2)), hidden), input_shape=(1, 4, 4))


@pytest.mark.parametrize("change", [1e-6, 1e-2, 0.5])
def test_it_is_the_difference_and_bounds_hold(change):
    rng = np.random.default_rng(1)
    first, second = graph(rng), graph(rng, change)
    tied = difference_model(first, second)
    X = rng.normal(size=(20, 16))
    np.testing.assert_allclose(tied(X), first(X) - second(X), atol=1e-12)
    for x in X[:6]:
        for radius in (1e-3, 0.1):
            low, high = bounds(tied, x - radius, x + radius)
            points = rng.uniform(x - radius, x + radius, (500, 16))
            apart = first(points) - second(points)
            assert (low - 1e-12 <= apart).all() and (apart <= high + 1e-12).all()


def test_bounds_on_small_changes_shrink_with_the_change():
    rng = np.random.default_rng(2)
    net = ReluNetwork.from_layers(
        [(rng.normal(size=(m, n)), rng.normal(size=m)) for n, m in ((4, 20), (20, 20), (20, 2))]
    )
    first, widths = model_of_network(net), []
    for change in (1e-2, 1e-4, 1e-6):
        moved = ReluNetwork.from_layers([(W * (1 + change), b) for W, b in net.layers])
        low, high = bounds(difference_model(first, model_of_network(moved)), -np.ones(4), np.ones(4))
        widths.append(float(np.maximum(high, -low).max()))
        points = rng.uniform(-1, 1, (2000, 4))
        assert np.abs(net(points) - moved(points)).max() <= widths[-1]
    np.testing.assert_allclose(np.diff(np.log10(widths)), [-2, -2], atol=0.2)


def test_graphs_that_are_not_alike_are_not_tied():
    rng = np.random.default_rng(3)
    first = graph(rng)
    assert difference_model(first, first) is None  # nothing differs
    net = ReluNetwork.from_layers([(rng.normal(size=(3, 16)), np.zeros(3))])
    assert difference_model(first, model_of_network(net)) is None
