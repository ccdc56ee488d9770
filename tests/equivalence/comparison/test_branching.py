"""Branch and bound by one worker or several: a bound that is not a number proves nothing."""

from math import inf, nan

import numpy as np
import pytest

from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.comparison._branching import Cover, branch, cuts, halves
from pindown.equivalence.comparison._parallel_branching import Part, branch_in_rounds, explore
from pindown.relaxation.linear import LinearForms

LINE = Box([0.0], [1.0])
FEW = 12  # halvings


def line(X):
    """x on [0, 1], whose largest value is 1."""
    return X[:, 0]


def bounded_by_end(hide):
    """Bound x on boxes by its value at the right end, but by NaN where ``hide`` says so."""

    def bounds(lower, upper, deadline=NEVER):
        bound = np.where(hide(lower[:, 0], upper[:, 0]), nan, upper[:, 0])
        return bound, LinearForms(np.ones((len(lower), 1, 1)), np.zeros((len(lower), 1)))

    return bounds


def serially(bounds, value, **goal):
    return branch(bounds, value, lambda x: float(line(x[None])[0]), LINE, **goal)


def by_rounds(bounds, value, **goal):
    proved = lambda x: float(line(x[None])[0])  # noqa: E731
    return branch_in_rounds(bounds, value, proved, LINE, size=1, n_jobs=1, **goal)


ROUTES = pytest.mark.parametrize("route", [serially, by_rounds])


def steps(states, n=FEW):
    """The first few states; a search without any bound never ends by itself."""
    return [state for state, _ in zip(states, range(n), strict=False)]


def test_halves_cover_the_box():
    rng = np.random.default_rng(0)
    corners = np.sort(rng.normal(size=(2, 50, 3)), axis=0)
    cut = rng.integers(0, 3, 50)
    lower, upper, stuck = halves(*corners, cut)
    assert not stuck.any()
    rows = np.arange(50)
    np.testing.assert_array_equal(lower[:50], corners[0])
    np.testing.assert_array_equal(upper[50:], corners[1])
    np.testing.assert_array_equal(upper[rows, cut], lower[rows + 50, cut])
    others = np.arange(3) != cut[:, None]
    np.testing.assert_array_equal(upper[:50][others], corners[1][others])
    np.testing.assert_array_equal(lower[50:][others], corners[0][others])


@ROUTES
def test_nothing_is_proved_where_no_bound_is_a_number(route):
    bounds = bounded_by_end(lambda low, high: low > -1)
    soon = Deadline.after(0.05)
    found = list(route(bounds, line, tol=0.5, deadline=soon))
    assert all(state.upper == inf for state in found)
    below = list(route(bounds, lambda X: 0.1 * line(X), tol=2.0, deadline=Deadline.after(0.05)))
    assert all(not state.upper <= 2.0 for state in below)  # nor that it is at most the tolerance


def test_halves_are_bounded_by_what_holds_for_the_whole_and_by_no_less():
    """At most 1 on the whole of [0, 1], and nothing known about its parts."""

    def bounds(lower, upper, deadline=NEVER):
        found = np.where(upper[:, 0] - lower[:, 0] == 1.0, 1.0, inf)
        return found, LinearForms(np.ones((len(lower), 1, 1)), np.zeros((len(lower), 1)))

    soon = Deadline.after(0.05)
    found = branch(bounds, lambda X: 0.1 * line(X), lambda x: 0.1 * float(x[0]), LINE, deadline=soon)
    assert {state.upper for state in steps(found)} == {1.0}


@ROUTES
def test_what_is_below_the_tolerance_is_bounded_all_the_same(route):
    bounds = bounded_by_end(lambda low, high: np.zeros_like(low, bool))
    *_, last = route(bounds, line, tol=2.0)
    assert 1.0 <= last.upper <= 2.0


def test_a_box_too_thin_to_cut_keeps_its_bound_while_others_are_cut():
    """Six neighbours of 1; near 1 itself no bound is better than 2."""

    def bounds(lower, upper, deadline=NEVER):
        found = np.where(lower[:, 0] == 1.0, 2.0, 1.5)
        return found, LinearForms(np.ones((len(lower), 1, 1)), np.zeros((len(lower), 1)))

    thin = Box([1.0], [1.0 + 5 * 2.0**-52])
    value, proved = (lambda X: 0.5 * line(X)), (lambda x: 0.5 * float(x[0]))
    assert all(state.upper >= 2.0 for state in branch(bounds, value, proved, thin))


@ROUTES
def test_a_box_without_bound_is_cut_until_it_has_one(route):
    bounds = bounded_by_end(lambda low, high: high - low > 0.1)
    found = steps(route(bounds, line))
    assert all(state.upper >= 1.0 for state in found)
    assert found[-1].upper == 1.0 and found[-1].lower == 1.0


@ROUTES
def test_halves_keep_the_bound_of_the_whole(route):
    def hide(low, high):
        return (high - low <= 0.5) & (high == 1.0)

    found = steps(route(bounded_by_end(hide), lambda X: 0.5 * line(X), deadline=Deadline.after(0.05)))
    assert found[0].upper == found[-1].upper == 1.0  # never below, never lost


@ROUTES
def test_values_that_are_no_numbers_are_no_witnesses(route):
    def value(X):
        return np.where(X[:, 0] < 0.9, nan, X[:, 0])

    (*_, last) = steps(route(bounded_by_end(lambda low, high: low > 1), value))
    assert last.lower == last.upper == 1.0 and last.witness.tolist() == [1.0]


def test_covers_and_parts_take_no_number_for_no_bound():
    cover = Cover(np.zeros((1, 1)), np.ones((1, 1)), np.array([nan]), np.array([0]))
    assert cover.top == inf
    cover.put(np.ones((1, 1)), np.full((1, 1), 2.0), np.array([nan]), np.array([0]))
    assert cover.bound.tolist() == [inf, inf]
    assert cover.pop(1).bound.tolist() == [inf]
    bounds = bounded_by_end(lambda low, high: high - low > 0.3)
    lower, upper = np.zeros((1, 1)), np.ones((1, 1))
    given = Cover(lower, upper, np.array([nan]), cuts(bounds(lower, upper)[1], lower, upper))
    part = Part(given, 0.0, 0.0, 0.0, None, 0.0, 2, 60.0)
    assert explore(bounds, line, 8, part).cover.top == inf
    assert explore(bounds, line, 8, part._replace(quota=20)).cover.top == 1.0
