"""Bounds at corners against trying all slopes, and the multipliers that make them sharp."""

import itertools
from math import inf

import numpy as np
import pytest

from pindown.deadline import Deadline
from pindown.equivalence.sensitivity._concave_quadratics import corner_form, proved_form
from pindown.equivalence.sensitivity._corners_of_changes import Cube, climb, climb_freely, cover
from tests.equivalence.sensitivity.chains import largest_at, random_layers


@pytest.mark.parametrize("n", [1, 2, 5])
def test_values_of_a_form_at_all_corners(n):
    rng = np.random.default_rng(n)
    Q = rng.standard_normal((n + 1, n + 1))
    cube = Cube(n)
    values = cube.values(Q)
    assert values.size == 2**n
    seen = set()
    for place in itertools.product(*map(range, values.shape)):
        corner = cube.corner(place)
        u = np.concatenate([[1.0], corner])
        assert values[place] == pytest.approx(u @ Q @ u) and cube.place(corner) == place
        seen.add(tuple(corner))
    assert len(seen) == 2**n


def test_cubes_that_cannot_be_listed_are_refused():
    for n in (0, 21):
        with pytest.raises(ValueError, match="1 to 20 bits"):
            Cube(n)


@pytest.mark.parametrize("seed", range(10))
def test_climbing_ends_at_slopes_that_exist_and_freely_at_the_best(seed):
    rng = np.random.default_rng(seed)
    layers, w = random_layers(rng, source=3, widths=(4, 3))
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=3))).T
    found = climb(layers, w, corners)
    best = np.array([largest_at(layers, w, corner) for corner in corners.T])
    assert np.all(found.values <= best + 1e-9) and found.values.sum() >= 0.5 * best.sum()
    freely = climb_freely(layers, w, starts=200)
    assert freely.values.max() == pytest.approx(best.max())


@pytest.mark.parametrize("seed", range(10))
def test_the_multipliers_of_the_best_slopes_prove_what_they_reach(seed):
    # The stationary quadratic is sharp wherever it is concave.
    rng = np.random.default_rng(seed)
    layers, w = random_layers(rng, source=3, widths=(4, 3))
    corner = rng.integers(0, 2, 3).astype(float)
    corner[0] = 1.0
    found = climb(layers, w, corner[:, None])
    Q = corner_form(layers, w, found.multipliers(0, 1e-6))
    u = np.concatenate([[1.0], corner])
    if Q is not None:
        assert u @ Q @ u == pytest.approx(found.values[0], rel=1e-3)
        assert found.values[0] == pytest.approx(largest_at(layers, w, corner))


@pytest.mark.parametrize("seed", range(20))
def test_any_multipliers_bound_all_corners(seed):
    rng = np.random.default_rng(seed)
    layers, w = random_layers(rng, source=3, widths=(3, 3))
    lams = [np.exp(rng.standard_normal(3) + shift) for shift in (6.0, 3.0)]
    proved = proved_form(layers, w, lams)
    Q = corner_form(layers, w, lams)
    if proved is None or Q is None:
        return
    np.testing.assert_allclose(proved[0], Q, rtol=1e-6, atol=1e-9)
    assert 0.0 < proved[1] < 1e-9 * np.abs(Q).sum()
    for corner in itertools.product((0.0, 1.0), repeat=3):
        u = np.concatenate([[1.0], corner])
        assert largest_at(layers, w, np.array(corner)) <= u @ proved[0] @ u + proved[1]


@pytest.mark.parametrize("widths", [(4,), (3, 3), (3, 2, 3)])
@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold_at_every_corner_and_are_close(seed, widths):
    rng = np.random.default_rng(seed)
    layers, w = random_layers(rng, source=3, widths=widths)
    corners = [np.array(c) for c in itertools.product((0.0, 1.0), repeat=3)]
    best = [largest_at(layers, w, corner) for corner in corners]
    for target in (0.0, 0.7 * max(best), 1.3 * max(best)):
        search = cover(layers, w, target, most_open=64)
        for corner, value in zip(corners, best, strict=True):
            assert value <= search.bounds[search.cube.place(corner)]
        if target > 0.0:  # what was tried and stays open, or is below: nothing is forgotten
            assert np.count_nonzero(search.bounds > target) == len(search.open)
        assert max(best) <= search.value <= max(3.0 * max(best), target) + 1e-9


def test_an_output_that_reads_nothing_is_bounded_by_zero():
    layers, w = random_layers(np.random.default_rng(0), source=2, widths=(3, 3))
    assert cover(layers, 0.0 * w, 0.0).value == 0.0
    assert cover([0.0 * layers[0], layers[1]], w, 0.0).value == 0.0


def test_no_time_still_gives_a_bound():
    layers, w = random_layers(np.random.default_rng(0), source=3, widths=(4, 3))
    bound = cover(layers, w, 0.0, Deadline.after(-1.0)).value
    best = max(largest_at(layers, w, np.array(c)) for c in itertools.product((0.0, 1.0), repeat=3))
    assert best <= bound < inf


def test_same_answer_every_time():
    layers, w = random_layers(np.random.default_rng(0), source=4, widths=(6, 5))
    first, second = (cover(layers, w, 0.0).bounds for _ in range(2))
    np.testing.assert_array_equal(first, second)
