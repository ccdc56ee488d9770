"""ReLU and its relatives, clip, hard sigmoid, steps, maxima: values, bounds, lines, ReLU forms."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from pindown.errors import UnsupportedModelError
from pindown.model.builder import Builder
from pindown.model.operations.moves import Constant
from pindown.model.operations.operation import Interval, as_fractions
from pindown.model.operations.piecewise_linear import (
    Abs,
    Clip,
    HardSigmoid,
    LeakyRelu,
    Maximum,
    Minimum,
    ReduceMax,
    ReduceMin,
    Relu,
    Round,
    Sign,
)
from tests.model.properties import check_operation

FUNCTIONS = [
    Relu(),
    LeakyRelu(0.125),
    LeakyRelu(-0.5),
    LeakyRelu(2.5),
    LeakyRelu(np.array([[0.3], [-1.7], [1.3]]), trained=3),
    Clip(0.0, 1.5),
    Clip(-1.0),
    Clip(high=0.7),
    Clip(),
    Clip(1.0, -1.0),
    HardSigmoid(0.25, 0.5),
    HardSigmoid(-0.75, 0.3125),
    HardSigmoid(0.0, 0.25),
    Abs(),
]
STEPS = [Sign(), Round("floor"), Round("ceil"), Round("round"), Round("trunc")]


def names(operations):
    return [repr(operation).replace("\n", "") for operation in operations]


@pytest.mark.parametrize("operation", FUNCTIONS, ids=names(FUNCTIONS))
def test_functions_keep_the_contract(operation):
    check_operation(operation, (1, 3, 4), lowers=True)


@pytest.mark.parametrize("operation", STEPS, ids=names(STEPS))
def test_steps_keep_the_contract(operation):
    check_operation(operation, (1, 3, 4), lowers=False, exact=True)


@pytest.mark.parametrize("operation", [Maximum(), Minimum()])
@pytest.mark.parametrize("shapes", [[(1, 3), (1, 3)], [(1, 2, 3), (3,), (2, 1)], [(2, 2)]])
def test_maxima_of_tensors_keep_the_contract(operation, shapes):
    check_operation(operation, *shapes, lowers=True)


@pytest.mark.parametrize("kind", [ReduceMax, ReduceMin])
@pytest.mark.parametrize("axes", [(1,), (3, 1), (0, 1, 2, 3), (0,), ()])
def test_maxima_along_axes_keep_the_contract(kind, axes):
    check_operation(kind(axes), (1, 3, 2, 2), lowers=True)


# ---------------------------------------------------------------------- lines


def hostile_boxes():
    """Ends of all sizes and signs, of points, of neighbours in float64, and at kinks."""
    rng = np.random.default_rng(0)
    ends = rng.choice([-1, 1], (2, 150)) * 10.0 ** rng.uniform(-18, 18, (2, 150))
    near = rng.uniform(-8, 8, (2, 150))
    kinks = rng.choice(
        [0.0, 1.5, -1.0, 0.7, -2.0, 2.0, 0.4166666666666667, -0.9166666666666666], (2, 100)
    )
    tight = np.stack([kinks[0], np.nextafter(kinks[0], kinks[1])])
    made = np.sort(
        np.concatenate([ends, near, kinks, tight, [[5e-324, -1e-310, 1e-310]] * 2], axis=1), axis=0
    )
    return Interval(made[:1], made[1:])


def lines_of(operation, box):
    if isinstance(operation, Relu):
        return [line.ravel() for line in operation.lines(box)]
    made = operation.relaxation(box)
    return [line.ravel() for line in (made.lower[0], made.below, made.upper_slopes[0], made.above)]


def kinks_of(operation):
    """The kinks as rationals."""
    if isinstance(operation, HardSigmoid):
        alpha, beta = Fraction(operation.alpha), Fraction(operation.beta)
        return [(end - beta) / alpha for end in (0, 1)] if alpha else []
    return [Fraction(kink) for kink in getattr(operation, "kinks", (0.0,))]


@pytest.mark.parametrize(
    "operation",
    [
        *(f for f in FUNCTIONS if np.size(getattr(f, "slope", 0)) == 1),
        HardSigmoid(1 / 6),
        HardSigmoid(0.3, 1 - 1e-10),
    ],
    ids=repr,
)
def test_lines_and_intervals_hold_in_rationals(operation):
    box = hostile_boxes()
    values = operation.interval(box)
    exact = [
        as_fractions(line)
        for line in (*lines_of(operation, box), values.lower.ravel(), values.upper.ravel())
    ]
    ends = map(as_fractions, map(np.ravel, box))
    for left, right, a, b, s, t, low, high in zip(*ends, *exact, strict=True):
        points = [left, right, *(kink for kink in kinks_of(operation) if left < kink < right)]
        for x, y in zip(points, operation(np.array(points, dtype=object)), strict=True):
            assert a * x + b <= y <= s * x + t
            assert low <= y <= high


@pytest.mark.parametrize(
    "operation", [f for f in FUNCTIONS if np.size(getattr(f, "slope", 0)) == 1], ids=repr
)
def test_lines_enclose_the_least_area(operation):
    """In the middle they meet the hulls of the values at ends and kinks, from all pairs of points."""
    rng = np.random.default_rng(1)
    low, high = np.sort(rng.uniform(-4, 4, (2, 1, 60)), axis=0)
    a, b, s, t = lines_of(operation, Interval(low, high))
    for i, (left, right) in enumerate(zip(low[0], high[0], strict=True)):
        kinks = [kink for kink in map(float, kinks_of(operation)) if left < kink < right]
        x = np.array(sorted([left, right, *kinks]))
        y, c = operation(x), (left + right) / 2
        through = [
            y[j] + (y[k] - y[j]) * (c - x[j]) / (x[k] - x[j])
            for j, k in product(range(len(x)), repeat=2)
            if x[j] < x[k] and x[j] <= c <= x[k]
        ]
        np.testing.assert_allclose(
            [a[i] * c + b[i], s[i] * c + t[i]], [min(through), max(through)], atol=1e-12
        )


def test_a_single_piece_is_its_own_line():
    box = Interval(np.array([[-9.0, 0.5, 6.0]]), np.array([[-7.0, 5.5, 8.0]]))
    for line, expected in zip(lines_of(Clip(0.5, 6.0), box), [(0, 1, 0), (0.5, 0, 6)] * 2, strict=True):
        assert line.tolist() == list(expected)
    assert lines_of(HardSigmoid(0.125, 0.5), Interval(np.array([[-3.0]]), np.array([[3.0]]))) == [
        0.125,
        0.5,
        0.125,
        0.5,
    ]


def test_lines_of_steps_hold_beside_their_jumps():
    rng = np.random.default_rng(2)
    low, high = np.sort(rng.uniform(-3, 3, (2, 1, 200)), axis=0)
    for operation in STEPS:
        a, b, s, t = lines_of(operation, Interval(low, high))
        for jump in (*range(-3, 4), *(k + 0.5 for k in range(-3, 3))):
            for x in (np.nextafter(jump, -9), float(jump), np.nextafter(jump, 9)):
                y = operation(np.array([[x]])).item()
                inside = (low[0] <= x) & (x <= high[0])
                assert ((a * x + b <= y + 1e-12) & (y <= s * x + t + 1e-12))[inside].all()


@pytest.mark.parametrize("operation", STEPS, ids=names(STEPS))
def test_lines_of_steps_hold_in_rationals(operation):
    """At the ends, where a line through a jump touches."""
    rng = np.random.default_rng(5)
    low, high = np.sort(rng.uniform(-9, 9, (2, 1, 300)), axis=0)
    exact = [as_fractions(line) for line in lines_of(operation, Interval(low, high))]
    for end in (low, high):
        x = as_fractions(end.ravel())
        a, b, s, t = exact
        y = operation(x[None])[0]
        assert (a * x + b <= y).all() and (y <= s * x + t).all()


def test_lines_of_a_step_lean_to_where_it_stays_longer():
    a, b, s, t = lines_of(Sign(), Interval(np.array([[-1.0]]), np.array([[4.0]])))
    np.testing.assert_allclose([a[0], b[0], s[0], t[0]], [0.5, -1.0, 0.0, 1.0])
    a, b, s, t = lines_of(Round("floor"), Interval(np.array([[0.2, 0.2]]), np.array([[1.9, 7.0]])))
    np.testing.assert_allclose([a, b, s, t], [[0, 1], [0, -1], [0, 1], [1, 0]])


# ---------------------------------------------------------------------- maxima


def test_lines_of_a_maximum_hold_at_corners_and_beat_its_interval():
    rng = np.random.default_rng(3)
    boxes = [Interval(*np.sort(rng.normal(size=(2, 1, 50)), axis=0)) for _ in range(3)]
    made = Maximum().relaxation(*boxes)
    top = np.max([box.upper for box in boxes], axis=0)[0]
    for corner in product((0, 1), repeat=3):
        x = [box[end][0] for box, end in zip(boxes, corner, strict=True)]
        above = made.above[0] + sum(s[0] * v for s, v in zip(made.upper_slopes, x, strict=True))
        below = made.below[0] + sum(a[0] * v for a, v in zip(made.lower, x, strict=True))
        assert (np.max(x, axis=0) <= above + 1e-13).all() and (above <= top + 1e-12).all()
        assert (below <= np.max(x, axis=0)).all()


def test_a_tensor_that_is_always_largest_is_the_maximum():
    small, large = (Interval(np.full((1, 2), a), np.full((1, 2), a + 1)) for a in (0.0, 1.0))
    made = Maximum().relaxation(small, large)
    assert [float(s[0, 0]) for s in (*made.lower, *made.upper_slopes)] == [0, 1, 0, 1]
    assert not made.above.any()
    made = Minimum().relaxation(small, large)
    assert [float(s[0, 0]) for s in (*made.lower, *made.upper_slopes)] == [1, 0, 1, 0]
    assert not made.below.any()


def test_a_maximum_between_two_is_the_chord_of_the_one_that_reaches_higher():
    x, y = (Interval(np.array([[a]]), np.array([[b]])) for a, b in ((0.0, 4.0), (-1.0, 2.0)))
    made = Maximum().relaxation(x, y)
    np.testing.assert_allclose(
        [made.upper_slopes[0][0, 0], made.upper_slopes[1][0, 0], made.above[0, 0]], [0.5, 0, 2]
    )


def test_maxima_along_axes_and_of_tensors_have_the_same_lines():
    rng = np.random.default_rng(4)
    low = rng.normal(size=(2, 3, 4))
    box = Interval(low, low + rng.uniform(0, 2, low.shape))
    parts = [Interval(box.lower[:, i : i + 1], box.upper[:, i : i + 1]) for i in range(3)]
    form = rng.normal(size=(2, 5, 1, 4))
    for along, among in ((ReduceMax((0,)), Maximum()), (ReduceMin((0,)), Minimum())):
        one, several = along.relaxation(box).upper(form), among.relaxation(*parts).upper(form)
        np.testing.assert_allclose(one.forms[0], np.concatenate(several.forms, axis=2))
        np.testing.assert_allclose(one.offset, several.offset, atol=1e-12)


def test_a_maximum_with_a_constant_is_one_relu_for_each_entry():
    for operation, values in ((Maximum(), [3.0, 7.0]), (Minimum(), [-2.0, 5.0])):
        graph = Builder((1, 2))
        level = graph.add(Constant(np.array([[3.0, 5.0]])), graph.input)
        model = graph.model(graph.add(operation, graph.input, level), input_shape=(2,))
        net = model.relu_network()
        assert net.widths == (2, 2, 2)
        np.testing.assert_allclose(net([-2.0, 7.0]), values)


# ---------------------------------------------------------------------- edges


@pytest.mark.parametrize("operation", [*FUNCTIONS, *STEPS], ids=names([*FUNCTIONS, *STEPS]))
def test_infinite_boxes_give_bounds_that_are_numbers(operation):
    inf = np.inf
    low = np.broadcast_to(np.array([-inf, -inf, 2.0, -1e308]), (1, 1, 3, 4))
    high = np.broadcast_to(np.array([inf, -2.0, inf, 1e308]), (1, 1, 3, 4))
    box = Interval(low, high)
    values = operation.interval(box)
    for x in (-1e300, -1e9, -2.0, 0.0, 2.0, 1e9, 1e300):
        y = operation(np.full(low.shape, x))
        inside = (low <= x) & (x <= high)
        assert (values.lower <= y)[inside].all() and (y <= values.upper)[inside].all()
    for form in (np.ones((1, 1, 1, 3, 4)), -np.ones((1, 1, 1, 3, 4)), np.zeros((1, 1, 1, 3, 4))):
        pulled = operation.relaxation(box).upper(form)
        assert not np.isnan(pulled.offset).any() and np.isfinite(pulled.forms[0]).all()


def test_infinite_boxes_of_maxima():
    inf = np.inf
    x = Interval(np.array([[-inf, -inf, 0.0]]), np.array([[inf, 1.0, inf]]))
    y = Interval(np.array([[0.0, 0.0, 0.0]]), np.array([[1.0, 3.0, 1.0]]))
    for form, expected in ((np.eye(3)[None], [inf, 3.0, inf]), (-np.eye(3)[None], [0.0, 0.0, 0.0])):
        pulled = Maximum().relaxation(x, y).upper(form)
        worst = pulled.offset[0] + np.maximum(
            pulled.forms[1][0] * y.lower, pulled.forms[1][0] * y.upper
        ).sum(axis=1)
        np.testing.assert_allclose(worst, expected, atol=1e-12)
        stacked = Interval(*(np.stack(ends, axis=1) for ends in zip(x, y, strict=True)))
        along = ReduceMax((0,)).relaxation(stacked).upper(form[:, :, None])
        np.testing.assert_allclose(along.offset, pulled.offset, atol=1e-12)


def test_bounds_that_mean_none_and_bounds_that_cross():
    assert Clip(-3.5e38, 3.5e38).kinks == ()
    assert Clip(float(np.finfo(np.float32).min), 1.0).kinks == (1.0,)
    crossed = Clip(2.0, 1.0)  # ONNX: all values become max
    assert crossed(np.array([[-5.0, 1.5, 5.0]])).tolist() == [[1.0, 1.0, 1.0]]
    for low, high in ((np.nan, 1.0), (np.inf, np.inf), (-np.inf, -np.inf)):
        with pytest.raises(UnsupportedModelError, match="min <= max"):
            Clip(low, high)


def test_prelu_counts_what_was_trained_and_says_what_does_not_fit():
    slopes = LeakyRelu(np.full((3, 1), 0.25), trained=3)
    assert (slopes.n_parameters, slopes.name, LeakyRelu(0.1).name) == (3, "PReLU", "LeakyReLU")
    with pytest.raises(ValueError, match="slopes of shape"):
        slopes.shape((1, 2, 5))
    with pytest.raises(ValueError, match="one of 'floor', 'ceil', 'round'"):
        Round("up")
    with pytest.raises(ValueError, match="do not exist"):
        ReduceMax((2,)).shape((1, 3))
