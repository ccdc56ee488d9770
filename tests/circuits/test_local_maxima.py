"""Theorem 1 of Wolf, Benaim and Galanti: how many units m local maxima need."""

from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from scipy.optimize import linprog

from pindown.circuits.local_maxima import (
    indicator_network,
    local_maxima_network,
    smallest_local_maxima_network,
)
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.facts.extrema import local_maxima
from pindown.geometry.slices.segment import count_pieces_on_line
from tests.geometry.exact_extrema import exact_local_maxima

BUILDERS = (local_maxima_network, smallest_local_maxima_network)


def random_points(rng, m):
    """Quarters: sums, halves and differences of them are exact in float64."""
    return sorted(rng.choice(np.arange(-40, 40), m, replace=False) / 4)


def hidden_units(net):
    return len(net.layers[0][1])


@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize("m", range(1, 8))
def test_local_maxima_are_exactly_the_points(build, m):
    points = random_points(np.random.default_rng(m), m)
    net = build(points).to_network()
    found = local_maxima(net, (points[0] - 3, points[-1] + 3))
    assert sorted(found.points.ravel()) == pytest.approx(points, abs=1e-12)
    assert found.exact and not found.is_plateau.any() and not found.on_boundary.any()


@pytest.mark.parametrize("build", BUILDERS)
def test_local_maxima_are_exactly_the_points_in_rational_arithmetic(build):
    # Every gap is a power of two, so that rounding the slopes to float64 changes nothing.
    points = [-3.0, -2.5, 1.5, 3.5, 3.75]
    found = exact_local_maxima(build(points).to_network(), (-5, 5))
    assert {vertices for _, vertices in found} == {frozenset({(Fraction(x),)}) for x in points}


def test_certified_complex_returns_the_very_points():
    points = [-1.0, 0.1, 0.7, 2.3]
    net = local_maxima_network(points).to_network()
    found = local_maxima(polyhedral_complex(net, (-3, 4), certified=True))
    assert sorted(found.points.ravel().tolist()) == points


@pytest.mark.parametrize("m", range(1, 8))
def test_values_of_the_construction(m):
    rng = np.random.default_rng(m)
    points = [Fraction(int(p), 7) for p in sorted(rng.choice(np.arange(-50, 50), m, replace=False))]
    net = local_maxima_network(points, height=1)
    assert all(net([x]) == [1] for x in points)
    assert all(net([(a + b) / 2]) == [0] for a, b in pairwise(points))
    assert net([points[0] - 5]) == [-4] and net([points[-1] + 5]) == [-4]


def test_unit_counts():
    for m in range(1, 8):
        points = list(range(m))
        assert hidden_units(local_maxima_network(points)) == 2 * m
        assert hidden_units(smallest_local_maxima_network(points)) == (2 * m - 1 if m > 1 else 2)
        assert hidden_units(indicator_network(points, 0.25)) == 3 * m


def test_printed_slope_is_not_continuous():
    # The source prints -2 (x - x_1) / gap + 1 up to the midpoint, (x - x_2) / gap + 1 after it.
    x1, x2 = Fraction(0), Fraction(1)
    middle, gap = (x1 + x2) / 2, x2 - x1
    from_left = -2 * (middle - x1) / gap + 1
    assert 1 * (middle - x2) / gap + 1 != from_left
    assert 2 * (middle - x2) / gap + 1 == from_left
    net = local_maxima_network([x1, x2], height=1)
    assert net([middle]) == [from_left] == [0]
    for x in (Fraction(5, 8), Fraction(3, 4)):  # beyond the midpoint it has slope 2 / gap
        assert net([x]) == [2 * (x - x2) / gap + 1] != [(x - x2) / gap + 1]


def can_have_maxima(m, units):
    """Whether some output weights give units (place of the kink, side it looks to) m strict maxima.

    Places 0, 2, .. 2m - 2 are the points and odd ones the gaps between them, -1 is left of all. Slopes
    next to the points are linear in the weights: a linear program, scaled so that they are at least 1.
    """
    rows = []
    for gap in range(2 * m):  # just before place number `gap`: up before a point, down after it
        slopes = [side if (place < gap) == (side > 0) else 0 for place, side in units]
        rows.append([(-1) ** (gap + 1) * slope for slope in slopes])
    bounds = [(None, None)] * len(units)
    return linprog(np.zeros(len(units)), rows, -np.ones(2 * m), bounds=bounds).status == 0


@pytest.mark.parametrize("m", [1, 2, 3])
def test_smallest_size_by_brute_force(m):
    # Units with one place and side could be merged. Left of all points only the side that looks at them
    # matters, and right of all it does nothing new.
    kinds = [(-1, 1), *product(range(2 * m - 1), (-1, 1))]
    smallest = next(
        size
        for size in range(1, 2 * m + 1)
        if any(can_have_maxima(m, units) for units in combinations(kinds, size))
    )
    assert smallest >= 2 * m - 1
    assert smallest == hidden_units(smallest_local_maxima_network(range(m)))


def test_height_one_needs_its_bias():
    # One point, two units without output bias: the only kink is at x_1 = 0, where v must be 1. A unit
    # with a kink there is 0 there, so the other one would be constant: then one side is flat.
    for sides in product((-1, 0, 1), repeat=2):  # 0: a constant unit
        at_zero = [1.0 if side == 0 else 0.0 for side in sides]
        left = [1.0 if side < 0 else 0.0 for side in sides]
        right = [1.0 if side > 0 else 0.0 for side in sides]
        answer = linprog(
            np.zeros(2),
            A_ub=[left, right],
            b_ub=[-1, -1],
            A_eq=[at_zero],
            b_eq=[1],
            bounds=[(None, None)] * 2,
        )
        assert answer.status == 2  # infeasible
    # Height 0 works with as many units, and height 1 with the bias.
    for height in (0, 1):
        net = local_maxima_network([0], height=height)
        assert hidden_units(net) == 2 and net.layers[-1][1] == (height,)
        assert [net([x]) for x in (-1, 0, 2)] == [[height - 1], [height], [height - 2]]


def test_indicator_is_right_away_from_the_points_and_has_its_pieces():
    points, width = [Fraction(-2), Fraction(0), Fraction(3)], Fraction(1, 2)
    net = indicator_network(points, width)
    assert all(net([x]) == [1] for x in points)
    grid = [Fraction(i, 8) for i in range(-40, 41)]
    away = [x for x in grid if all(abs(x - p) >= width for p in points)]
    assert len(away) > 50 and all(net([x]) == [-1] for x in away)
    assert count_pieces_on_line(net.to_network(), [-5.0], [1.0], (0, 10)) == 3 * len(points) + 1


@pytest.mark.parametrize("points", [[], [1, 1], [2, 1], [0, float("nan")], [float("inf")]])
def test_bad_points(points):
    for build in (*BUILDERS, lambda x: indicator_network(x, 0.1)):
        with pytest.raises(ValueError, match="point"):
            build(points)


@pytest.mark.parametrize("width", [0, -1, 0.6])
def test_overlapping_tents(width):
    with pytest.raises(ValueError, match="at most half the smallest gap 1"):
        indicator_network([0, 1], width)
