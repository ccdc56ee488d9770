"""Proved forms, cells and margins hold in rational numbers, also where rounding is all there is."""

from fractions import Fraction

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.relaxation.linear import LinearForms
from pindown.relaxation.linear_on_balls import interval_margins, margin_bounds
from pindown.relaxation.lp_balls import NORMS, Balls, length_up
from pindown.verification._cell_forms import Sides, cell_forms, contradict, exact_rows, rounded_forms
from pindown.verification._distance_walk import walk_cells
from pindown.verification.distance_problem import DistanceState, Problem


def rationals(values):
    return [Fraction(float(v)) for v in np.ravel(values)]


def inner(a, b):
    return sum((u * v for u, v in zip(rationals(a), rationals(b), strict=True)), Fraction(0))


def size(values, norm):
    """The norm of a vector, squared in l2, in rational numbers."""
    sizes = [abs(v) for v in rationals(values)]
    return {"l1": sum, "linf": max, "l2": lambda s: sum(v * v for v in s)}[norm](sizes)


def cancelling_net(rng, where):
    """A network of moderate values and slopes, as sums of terms 1e9 times as large.

    They cancel in the last layer, near 0; or in pairs of units of the first one, which nearly repeat.
    """
    x = rng.normal(size=2) * (1.0 if where == "first" else 1e-9)
    if where == "last":
        W, V = rng.normal(size=(10, 2)), 1e9 * rng.normal(size=(2, 10))
    else:
        W, V = 1e9 * rng.normal(size=(5, 2)), rng.normal(size=(2, 5))
        W, V = np.concatenate([W, W + rng.normal(size=(5, 2))]), np.hstack([V, -V])
    b = np.tile(rng.choice([-1.0, 1.0], 5), 2) * (1.0 + rng.random(10))
    b = b - W @ x if where == "first" else b
    return ReluNetwork.from_layers([(W, b), (V, -(V @ np.maximum(W @ x + b, 0)))]), x


@pytest.mark.parametrize("norm", NORMS)
def test_lengths_are_rounded_up(norm):
    rng = np.random.default_rng(0)
    for _ in range(100):
        change = rng.normal(size=7) * 10.0 ** rng.integers(-8, 8)
        length = Fraction(length_up(change, norm))
        assert size(change, norm) <= (length**2 if norm == "l2" else length)
        assert length <= Fraction(
            np.linalg.norm(change, {"l1": 1, "l2": 2, "linf": np.inf}[norm]) * 1.001
        )


@pytest.mark.parametrize("cancel", [True, False])
@pytest.mark.parametrize("norm", NORMS)
def test_largest_of_a_form_on_a_ball_is_rounded_up(norm, cancel):
    rng = np.random.default_rng(1)
    X, A = rng.normal(size=(60, 4)), 1e6 * rng.normal(size=(60, 1, 4))
    radius = 1e-12 * rng.random(60)
    c = -np.einsum("nqd,nd->nq", A, X) if cancel else 1e12 * rng.normal(size=(60, 1))
    found = Balls.around(X, radius, norm).largest(LinearForms(A, c))[:, 0]
    dual = {"l1": "linf", "l2": "l2", "linf": "l1"}[norm]
    for value, w, offset, x, r in zip(found, A[:, 0], c[:, 0], X, radius, strict=True):
        gain = Fraction(value) - Fraction(float(offset)) - inner(w, x)
        reach = Fraction(float(r))
        assert gain >= 0
        if norm == "l2":
            assert gain**2 >= reach**2 * size(w, dual)
        else:
            assert gain >= reach * size(w, dual)


@pytest.mark.parametrize("where", ["first", "last"])
@pytest.mark.parametrize("norm", NORMS)
def test_margins_of_points_hold_where_everything_cancels(norm, where):
    rng = np.random.default_rng(2)
    rows = np.array([[[1.0, 0.0], [-1.0, 0.0], [1.0, -1.0]]])
    for _ in range(20):
        net, x = cancelling_net(rng, where)
        exact = net.as_fractions()(list(x))
        balls = Balls.around(x[None], np.zeros(1), norm)
        for bounds in (margin_bounds(net, balls, rows), interval_margins(net, balls, rows)):
            for row, bound in zip(rows[0], bounds[0], strict=True):
                assert sum(Fraction(r) * f for r, f in zip(row, exact, strict=True)) <= Fraction(bound)


@pytest.mark.parametrize("where", ["first", "last"])
def test_sides_of_a_cell_hold_within_their_errors(where):
    rng = np.random.default_rng(3)
    rows, widest = np.array([[1.0, -1.0]]), 0.0
    for _ in range(20):
        net, x = cancelling_net(rng, where)
        pattern = net.pattern(x)
        _, (side,) = exact_rows(net, x, pattern, rows)
        values = net.as_fractions().trace(list(x))[0]
        for norm in ("l1", "linf"):
            cell = cell_forms(net, x, pattern, rows, norm)
            margin = cell.margins
            assert abs(Fraction(margin.b[0]) - side[-1]) <= Fraction(margin.errors[0])
            wrong = [abs(Fraction(a) - s) for a, s in zip(margin.a[0], side[:-1], strict=True)]
            assert (max if norm == "l1" else sum)(wrong) <= Fraction(margin.slope_errors[0])
            widest = max(widest, margin.errors[0] / max(abs(float(side[-1])), 1e-300))
            for value, b, error in zip(values, cell.units.b, cell.units.errors, strict=True):
                assert abs(abs(value) - Fraction(b)) <= Fraction(error)
            rough = rounded_forms(net, x, pattern, rows, norm).margins
            scale = max(map(abs, side))
            assert abs(Fraction(rough.b[0]) - side[-1] / scale) <= Fraction(rough.errors[0])
            wrong = [abs(Fraction(a) - s / scale) for a, s in zip(rough.a[0], side[:-1], strict=True)]
            assert (max if norm == "l1" else sum)(wrong) <= Fraction(rough.slope_errors[0])
    assert widest > 1e-3  # somewhere rounding is of the size of the margin


@pytest.mark.parametrize(("norm", "corner"), [("l1", 2.0), ("l2", 2.0**0.5), ("linf", 1.0)])
def test_distances_of_half_spaces_and_corners_with_the_worst_errors(norm, corner):
    """x >= 1 and y >= 1 may be (1 + s) x >= 1 - e: that much nearer."""
    a, b, none = -np.eye(2), -np.ones(2), np.zeros(2)
    exact = Sides(a, b, none, none, norm)
    near = Sides(a, b, np.full(2, 0.25), np.full(2, 0.5), norm)
    np.testing.assert_allclose(exact.distances(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(near.distances(), 0.5 / 1.25, rtol=1e-12)
    assert (exact.distances() < 1.0).all()
    assert exact.distance(np.ones(2)) == pytest.approx(corner, rel=1e-12)
    assert exact.distance(np.ones(2)) < corner * (1 + 1e-16)
    length = {"l1": 1.0, "l2": 2.0**0.5, "linf": 2.0}[norm]
    assert near.distance(np.ones(2)) == pytest.approx((2 - 1.0) / (length + 0.5), rel=1e-12)
    assert near.distance(np.array([0.0, 3.0])) == pytest.approx(0.5 / 1.25, rel=1e-12)
    assert exact.distance(np.array([1.0, 0.0])) == pytest.approx(1.0, rel=1e-12)
    inside = Sides(a, -b, none, none, norm)
    assert inside.distance(np.ones(2)) == 0.0 and (inside.distances() == 0.0).all()
    np.testing.assert_allclose((-inside).distances(), 1.0, rtol=1e-12)
    slanted = Sides(np.array([[-3.0, -4.0]]), np.array([-10.0]), none[:1], none[:1], norm)
    dual = {"l1": 4.0, "l2": 5.0, "linf": 7.0}[norm]
    assert slanted.distances()[0] == pytest.approx(10 / dual, rel=1e-12)
    assert slanted.distance(np.ones(1)) == pytest.approx(10 / dual, rel=1e-12)


def test_multipliers_that_cancel_prove_no_more_than_is_true():
    """Two rows, nearly opposite: what is left of them is rounding, and must count as size."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        a = rng.normal(size=(2, 3))
        a[1] = -a[0] * (1 + 1e-15 * rng.normal(size=3))
        b = -rng.random(2)
        weights = rng.random(2)
        sides = Sides(a, b, np.zeros(2), np.zeros(2), "linf")
        lam = [Fraction(w) for w in weights]
        gap = -sum(v * w for v, w in zip(rationals(b), lam, strict=True))
        total = sum(
            abs(sum(v * w for v, w in zip(rationals(column), lam, strict=True))) for column in a.T
        )
        found = sides.distance(weights)
        assert Fraction(found) * total <= gap


def test_only_weights_of_one_sign_contradict():
    one, zero = Fraction(1), Fraction(0)
    assert contradict([[one, zero], [-one, -one]])  # x <= 0, x >= 1
    assert not contradict([[one, zero], [one, -one]])  # x <= 0, x <= -1
    assert not contradict([[one, one], [-one, zero]])  # x <= 1, x >= 0


def test_only_points_of_another_class_are_taken_for_such():
    net = ReluNetwork.from_layers([([[1.0], [0.0]], [0, 0])])
    problem = Problem(net, np.array([1.0]), 0, "l2", None)
    assert problem.changed(np.array([[1e-12], [0.0], [-1e-12]])).tolist() == [False, False, True]


@pytest.mark.parametrize("norm", NORMS)
def test_a_walk_leads_through_units_that_go_off_and_come_on(norm):
    """Class 1 is where relu(-x - 0.2) > 1; on the way from 0.5 to -1.2 one unit goes off first."""
    hidden = ([[1.0], [-1.0]], [0.0, -0.2])
    net = ReluNetwork.from_layers([hidden, ([[0.0, 0.0], [0.0, 1.0]], [1.0, 0.0])])
    found = walk_cells(Problem(net, np.array([0.5]), 0, norm, None), DistanceState())
    assert found.lower <= 1.7 and found.lower == pytest.approx(1.7, rel=1e-9)
    assert found.upper == pytest.approx(1.7, rel=1e-4)
