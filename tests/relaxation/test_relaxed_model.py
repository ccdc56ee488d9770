"""Linear bounds on any tensor: with any slopes and multipliers, where signs are what was assumed."""

from fractions import Fraction

import numpy as np
import pytest

from pindown.model import Builder
from pindown.model.operations.dense import Dense
from pindown.model.operations.operation import Interval
from pindown.model.operations.relu import Relu
from pindown.relaxation.model_bounds import tighten, usual_slopes
from pindown.relaxation.relaxed_model import Choice, RelaxedModel
from tests.relaxation.small_models import MAKERS, dense, exactly, relu_inputs, tensors_at


def corners_and_more(rng, low, high, n):
    """Yield points of a box, many of them corners or on faces."""
    for _ in range(n):
        share = rng.choice([0.0, 1.0, rng.random(), 0.5], size=low.shape)
        yield np.clip(low + share * (high - low), low, high)


def random_choice(rng, relaxed, index, q, size):
    """Return slopes around [0, 1] and multipliers of any sign, of about a size."""
    slopes = {
        i: rng.uniform(-0.2, 1.2, (1, q, *relaxed.values[i].lower.shape[1:]))
        for i in usual_slopes(relaxed, index, 1, q)
    }
    multipliers = {
        j: size * rng.normal(size=(1, q, *relaxed.values[j].lower.shape[1:])) for j in relaxed.signs
    }
    return Choice(slopes, multipliers)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("spread", [0.0, 9.0])
def test_any_choice_holds_where_the_signs_are_as_assumed(kind, spread):
    """In rational numbers, for forms of every tensor and of the input, also on tightened bounds."""
    rng = np.random.default_rng(5)
    checked = 0
    for _ in range(12 if kind == "convolutional" else 30):
        model = MAKERS[kind](rng, spread=spread)
        center, radius = rng.normal(size=model.in_features), 10.0 ** rng.uniform(-2, 1)
        low, high = center - radius, center + radius
        relaxed = RelaxedModel.by_intervals(model, Interval(low[None], high[None]))
        if rng.random() < 0.5:
            tighten(relaxed, steps=int(rng.choice([0, 3])))
        points = list(corners_and_more(rng, low, high, 12))
        known = [tensors_at(model, x) for x in points]
        signs = {}
        for j in relu_inputs(model):  # the signs at one of the points, for about half of the units
            here = np.sign(np.array([float(v) for v in known[0][j]]))
            drawn = np.where(rng.random(len(here)) < 0.5, here, 0).astype(np.int8)
            signs[j] = drawn.reshape(relaxed.values[j].lower.shape)
        cut = relaxed.assuming(signs)
        index = int(rng.integers(0, len(model.nodes) + 1))
        form = rng.normal(size=(1, 2, *cut.values[index].lower.shape[1:]))
        at_input = rng.normal(size=(1, 2, model.in_features)) if rng.random() < 0.5 else None
        choice = random_choice(rng, cut, index, 2, 10.0 ** rng.uniform(-20, 20))
        plain = cut.upper_ends(index, form, None, at_input)
        chosen = cut.upper_ends(index, form, choice, at_input)
        estimate = cut.estimate(index, form, _signed(choice, signs), at_input).ends
        np.testing.assert_array_less(estimate, chosen + 1e-9 * np.abs(chosen))
        for values in known:
            if not all(
                v * int(s) >= 0
                for j, sign in signs.items()
                for v, s in zip(values[j], sign.ravel(), strict=True)
            ):
                continue
            checked += 1
            for held, value in zip(cut.values, values, strict=True):
                ends = zip(held.lower.ravel(), value, held.upper.ravel(), strict=True)
                assert all(Fraction(a) <= v <= Fraction(b) for a, v, b in ends)
            for q in range(2):
                value = exactly(form[0, q], values[index])
                if at_input is not None:
                    value += exactly(at_input[0, q], values[0])
                assert value <= Fraction(float(plain[0, q]))
                assert value <= Fraction(float(chosen[0, q]))
    assert checked > 20


def _signed(choice, signs):
    """Return multipliers as they may be: of the assumed sign, else zero."""
    held = {j: np.where(signs[j][:, None] * m > 0, m, 0.0) for j, m in choice.multipliers.items()}
    return Choice(choice.slopes, held)


def line_and_unit():
    """Return x + 2 on [-1, 1], behind two ReLUs: of x, which is not used, and of x + 2."""
    graph = Builder((1, 1))
    z = graph.add(Dense([[1.0], [1.0]], [0.0, 2.0]), graph.input)
    out = graph.add(Dense([[0.0, 1.0]], [0.0]), graph.add(Relu(), z))
    box = Interval(np.array([[-1.0]]), np.array([[1.0]]))
    return RelaxedModel.by_intervals(graph.model(out, input_shape=(1,)), box)


@pytest.mark.parametrize(
    ("sign", "multiplier", "bound"),
    [
        (-1, 0.0, 3.0),
        (-1, -0.5, 2.5),
        (-1, -1.0, 2.0),  # x + 2 - x: all that x <= 0 can give
        (-1, -2.0, 3.0),
        (-1, 0.7, 3.0),  # of the wrong sign: not used
        (1, 0.5, 3.5),
        (1, -0.5, 3.0),
        (0, -1.0, 3.0),
    ],
)
def test_multipliers_use_what_is_assumed(sign, multiplier, bound):
    """The bound is the largest x + 2 + beta x on [-1, 1], with beta of the sign of x, else zero."""
    relaxed = line_and_unit().assuming({1: np.array([[[sign, 0]]], dtype=np.int8)})
    added = np.array([[[[multiplier, 0.0]]]])
    ends = relaxed.upper_ends(3, np.ones((1, 1, 1, 1)), Choice({}, {1: added}))
    np.testing.assert_allclose(ends, bound, atol=1e-12)
    if multiplier * sign >= 0 and sign:
        found = relaxed.estimate(3, np.ones((1, 1, 1, 1)), Choice({}, {1: added}))
        np.testing.assert_allclose(found.ends, bound, atol=1e-12)
        np.testing.assert_allclose(found.point.ravel(), 1.0 if multiplier > -1 else -1.0)


def test_assumed_signs_cut_bounds_and_leave_the_rest():
    relaxed = line_and_unit()
    first = relaxed.relaxation(2)
    for sign, ends in ((1, (0.0, 1.0)), (-1, (-1.0, 0.0)), (0, (-1.0, 1.0))):
        cut = relaxed.assuming({1: np.array([[[sign, 0]]], dtype=np.int8)})
        low, high = (end[0, 0] for end in cut.values[1])
        np.testing.assert_allclose([low[0], high[0]], ends, atol=1e-12)
        np.testing.assert_allclose([low[1], high[1]], [1.0, 3.0])
        assert cut.relaxation(2) is not first and relaxed.relaxation(2) is first
    assert relaxed.assuming({}).relaxation(2) is first and not relaxed.signs


def test_nothing_left_is_no_trouble():
    """x + 2 <= 0 nowhere on [-1, 1]: any bound holds there, in other rows it must be right."""
    one = line_and_unit()
    both = RelaxedModel(one.model, [Interval(*(np.repeat(e, 2, axis=0) for e in v)) for v in one.values])
    cut = both.assuming({1: np.array([[[0, -1]], [[0, 1]]], dtype=np.int8)})
    assert (cut.values[1].lower <= cut.values[1].upper).all()
    added = np.array([[[[0.0, -1e30]]], [[[0.0, 0.25]]]])
    ends = cut.upper_ends(3, np.ones((2, 1, 1, 1)), Choice({}, {1: added}))
    np.testing.assert_allclose(ends[1], 3.75)  # x + 2 + (x + 2) / 4 at 1


def test_forms_of_the_input_alone_and_of_nothing():
    relaxed = line_and_unit()
    ends = relaxed.upper_ends(0, np.full((1, 1, 1, 1), 2.0), None, np.full((1, 1, 1), -5.0))
    np.testing.assert_allclose(ends, 3.0)  # -3 x at -1
    nothing = np.zeros((1, 1, 1, 1))
    np.testing.assert_allclose(relaxed.upper_ends(3, nothing), 0.0, atol=1e-250)
    np.testing.assert_allclose(relaxed.upper_ends(3, nothing, None, np.ones((1, 1, 1))), 1.0)


def test_one_box_stands_for_many_forms():
    rng = np.random.default_rng(0)
    model = dense(rng)
    box = Interval(-np.ones((1, 2)), np.ones((1, 2)))
    one = RelaxedModel.by_intervals(model, box)
    many = RelaxedModel.by_intervals(model, Interval(*(np.repeat(end, 5, axis=0) for end in box)))
    form = rng.normal(size=(5, 3, 1, 2))
    np.testing.assert_allclose(one.upper_ends(5, form), many.upper_ends(5, form), rtol=1e-12)


@pytest.mark.parametrize("kind", MAKERS)
def test_the_way_forth_ends_where_the_way_back_began(kind):
    """Where the bound is attained, the lines taken one by one give the bound itself."""
    rng = np.random.default_rng(7)
    model = MAKERS[kind](rng)
    low, high = rng.normal(size=(2, 3, model.in_features))
    relaxed = RelaxedModel.by_intervals(model, Interval(np.minimum(low, high), np.maximum(low, high)))
    last = len(model.nodes)
    form = rng.normal(size=(3, 4, *relaxed.values[last].lower.shape[1:]))
    slopes = {i: rng.uniform(size=s.shape) for i, s in usual_slopes(relaxed, last, 3, 4).items()}
    at_input = rng.normal(size=(3, 4, model.in_features))
    found = relaxed.estimate(last, form, Choice(slopes, {}), at_input)
    points = relaxed.followed(found)
    value = np.einsum("nqi,nqi->nq", form.reshape(3, 4, -1), points[last].reshape(3, 4, -1))
    value += np.einsum("nqi,nqi->nq", at_input, points[0].reshape(3, 4, -1))
    np.testing.assert_allclose(value, found.ends, rtol=1e-9, atol=1e-9)
    proved = relaxed.upper_ends(last, form, Choice(slopes, {}), at_input)
    np.testing.assert_allclose(found.ends, proved, rtol=1e-9, atol=1e-9)
    assert (found.ends <= proved + 1e-12).all()
    inside = found.point.reshape(3, 4, -1)
    assert ((inside >= relaxed.values[0].lower.reshape(3, 1, -1)) & (inside <= 9)).all()
