"""ReLU between the sides of its triangle: any slope below, exact where the sign is known."""

from fractions import Fraction

import numpy as np
import pytest

from pindown.model.operations.operation import Interval
from pindown.model.operations.relu import Relu, Triangles, triangle_lines
from tests.model.properties import mixed


def exactly(form, z):
    """Return ``form . z`` in rational numbers."""
    pairs = zip(form.ravel(), z.ravel(), strict=True)
    return sum((Fraction(float(a)) * Fraction(float(b)) for a, b in pairs), Fraction(0))


def box_around(rng, size, spread):
    """Return ends of mixed sizes, some of known sign, some without width."""
    ends = np.sort(mixed(rng, (2, 1, size), spread), axis=0)
    kind = rng.integers(4, size=size)
    ends[0, 0, kind == 1] = np.abs(ends[0, 0, kind == 1])
    ends[1, 0, kind == 2] = -np.abs(ends[1, 0, kind == 2])
    ends = np.sort(ends, axis=0)
    ends[1, 0, kind == 3] = ends[0, 0, kind == 3]
    return Interval(*ends)


def points_of(rng, box):
    """Yield corners, the fold where it is inside, and points between."""
    for _ in range(6):
        share = rng.choice([0.0, 1.0, rng.random()], size=box.lower.shape)
        z = box.lower + share * (box.upper - box.lower)
        z = np.where(rng.random(z.shape) < 0.2, 0.0, z)
        yield np.clip(z, box.lower, box.upper)


@pytest.mark.parametrize("spread", [1, 12, 150])
def test_any_slopes_bound_in_rationals(spread):
    """Slopes of each form, also beyond [0, 1], which are cut: the bound holds without any rounding."""
    rng = np.random.default_rng(spread)
    for _ in range(60):
        box = box_around(rng, 3, spread)
        form = mixed(rng, (1, 2, 3), spread)
        made = Relu().relaxation(box)
        chosen = made.with_slopes(rng.uniform(-0.5, 1.5, form.shape))
        for relaxation in (made, chosen):
            pulled = relaxation.upper(form)
            for z in points_of(rng, box):
                for q in range(2):
                    if not np.isfinite(pulled.offset[0, q]):
                        continue
                    above = exactly(pulled.forms[0][0, q], z) + Fraction(float(pulled.offset[0, q]))
                    assert exactly(form[0, q], np.maximum(z, 0.0)) <= above


def test_the_lines_touch():
    """Above, the chord through both ends; below, the chosen line through zero."""
    box = Interval(np.array([[-1.0, -2.0]]), np.array([[3.0, 1.0]]))
    made = Relu().relaxation(box)
    up = made.upper(np.ones((1, 1, 2)))
    np.testing.assert_allclose(up.forms[0][0, 0], [0.75, 1 / 3])
    np.testing.assert_allclose(up.offset, [[0.75 + 2 / 3]], rtol=1e-13)
    slopes = np.array([[[0.25, 0.5], [1.0, 0.0]]])
    down = made.with_slopes(slopes).upper(-np.ones((1, 2, 2)))
    np.testing.assert_array_equal(down.forms[0], -slopes)
    assert (down.offset > 0).all() and (down.offset < 1e-13).all()
    usual = made.upper(-np.ones((1, 1, 2)))
    np.testing.assert_array_equal(usual.forms[0], [[[-1.0, 0.0]]])  # the smaller triangle: 3 > 1, 1 < 2


def test_known_signs_are_exact_whatever_the_slopes():
    box = Interval(np.array([[0.0, -3.0, 2.0, -1.0]]), np.array([[1.0, 0.0, 2.5, -1.0]]))
    made = Relu().relaxation(box).with_slopes(np.full((1, 2, 4), 0.3))
    form = np.array([[[2.0, 2.0, -2.0, 5.0], [-1.0, -1.0, 1.0, -5.0]]])
    pulled = made.upper(form)
    np.testing.assert_array_equal(pulled.forms[0], form * [1.0, 0.0, 1.0, 0.0])
    assert (pulled.offset < 1e-13).all()


def test_slopes_beyond_one_are_cut():
    made = Relu().relaxation(Interval(np.array([[-1.0, -1.0]]), np.array([[1.0, 1.0]])))
    assert isinstance(made, Triangles)
    np.testing.assert_array_equal(made.with_slopes(np.array([[[-3.0, 7.0]]])).lower, [[[0.0, 1.0]]])


def test_the_estimate_is_the_bound_but_for_rounding_and_is_attained():
    """``forms . z + offset = form . forward(z)`` wherever z is: the lines taken one by one."""
    rng = np.random.default_rng(3)
    box = Interval(-rng.uniform(0, 2, (4, 2, 5)), rng.uniform(0, 2, (4, 2, 5)))
    form = rng.normal(size=(4, 3, 2, 5))
    for made in (
        Relu().relaxation(box),
        Relu().relaxation(box).with_slopes(rng.uniform(size=form.shape)),
    ):
        careful, quick = made.upper(form), made.estimate(form)
        np.testing.assert_allclose(quick.forms[0], careful.forms[0], rtol=1e-14)
        np.testing.assert_allclose(quick.offset, careful.offset, rtol=1e-12)
        assert (quick.offset <= careful.offset).all()
        z = rng.normal(size=form.shape)
        taken = np.einsum("nqij,nqij->nq", form, made.forward(form, z))
        pulled = np.einsum("nqij,nqij->nq", quick.forms[0], z) + quick.offset
        np.testing.assert_allclose(taken, pulled, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("low", "high"), [(-np.inf, 1.0), (-1.0, np.inf), (-np.inf, np.inf), (-1e308, 1e308), (-5e-324, 1.0)]
)
def test_boxes_at_the_ends_of_float64(low, high):
    box = Interval(np.array([[low]]), np.array([[high]]))
    for sign in (1.0, -1.0):
        pulled = Relu().relaxation(box).upper(np.full((1, 1, 1), sign))
        for z in (-1e300, -1.0, -5e-324, 0.0, 0.5, 1.0, 1e300):
            if low <= z <= high and np.isfinite(pulled.offset[0, 0]):
                above = Fraction(float(pulled.forms[0][0, 0, 0])) * Fraction(z)
                above += Fraction(float(pulled.offset[0, 0]))
                assert sign * Fraction(max(z, 0.0)) <= above


@pytest.mark.parametrize("spread", [1, 20, 150])
def test_triangle_lines_hold_in_rationals(spread):
    """The line above is above both ends, with no help from elsewhere."""
    rng = np.random.default_rng(spread)
    low, high = -np.abs(mixed(rng, 400, spread)), np.abs(mixed(rng, 400, spread))
    for a, b, s, t in zip(low, high, *triangle_lines(low, high)[1:], strict=True):
        ends = [Fraction(float(s)) * Fraction(float(z)) + Fraction(float(t)) for z in (a, b)]
        assert ends[0] >= 0 and ends[1] >= Fraction(float(b))


def test_triangle_lines_of_huge_boxes_hold():
    """Where ``u - l`` leaves float64 the line is flat and above both ends."""
    lower, slope, shift = triangle_lines(np.array([-1.7e308]), np.array([1.7e308]))
    assert lower[0] in (0.0, 1.0) and 0.0 <= slope[0] <= 1.0
    assert Fraction(slope[0]) * Fraction(-1.7e308) + Fraction(shift[0]) >= 0
    assert Fraction(slope[0]) * Fraction(1.7e308) + Fraction(shift[0]) >= Fraction(1.7e308)
