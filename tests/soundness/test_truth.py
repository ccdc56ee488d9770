"""The exact side of the attack: kinks, ranges, distances and gaps against closed forms."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pindown import Box, ReluNetwork
from pindown.verification import UnsafeSet
from tests.soundness.families import FAMILIES, make_case
from tests.soundness.programs import hints
from tests.soundness.rational_line import ExactNetwork, along
from tests.soundness.reaching import reached, side_by_side
from tests.soundness.truth import (
    class_of,
    disagreement_on,
    form_range,
    gap_on,
    nearest_change,
    patterns,
    ranges,
    steepest,
    within_ball,
)

TENT = [([[1.0], [1.0], [1.0]], [0, -1, -2]), ([[1.0, -2.0, 1.0]], [0])]  # 0 but for a peak of 1 at 1


def line(layers, ends=None):
    """The function of one input from ``layers``, seen from 0."""
    return along(ExactNetwork(ReluNetwork.from_layers(layers)), [0], [1], ends)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_line_is_the_network(family):
    """At and between kinks, and beyond the ends, a line gives what rational evaluation gives."""
    case = make_case(11, list(FAMILIES).index(family))
    other = case.net.as_fractions()  # the library's own rational evaluation
    rng = case.rng(0)
    for found in (*case.lines[:2], *case.endless[:2]):
        low, high = found.knots[0], found.knots[-1]
        width = high - low or Fraction(1)
        times = (
            [low + Fraction(float(share)) * width for share in rng.random(3)] if high > low else [low]
        )
        times += found.knots[:3] + ([low - width, high + 3 * width] if found.rays else [])
        assert all(found.at(t) == other(found.point(t)) for t in times)


def test_kinks_slopes_and_ranges_of_a_tent():
    """All of them are whole numbers."""
    tent = line(TENT)
    assert tent.knots == [0, 1, 2] and tent.values == [[0], [1], [0]]
    assert tent.slopes() == [[0], [1], [-1], [0]]
    part = line(TENT, (Fraction(-1), Fraction(3, 2)))
    assert form_range([part], [1.0]) == (0, 1) and ranges([part])[0] == [
        (-1, Fraction(3, 2)),
        (-2, Fraction(1, 2)),
        (-3, Fraction(-1, 2)),
    ]
    assert (
        steepest([part], "l1") == 1 and patterns(ExactNetwork(ReluNetwork.from_layers(TENT)), part) == 3
    )
    assert form_range([within_ball(part, 0.5, "l2")], [1.0]) == (0, Fraction(1, 2))


def test_distances_to_a_tie():
    """The nearest tie of tent - 1/2 from 0 is at 1/2; above 1 there is none."""
    half = [*TENT[:1], (TENT[1][0], [-0.5])]
    assert class_of([Fraction(-1, 2)]) == 0 and nearest_change([line(half)], 0, "linf") == Fraction(1, 2)
    assert nearest_change([line(half, (Fraction(-1), Fraction(1, 4)))], 0, "l1") is None
    assert nearest_change([line([*TENT[:1], (TENT[1][0], [-2.0])])], 0, "l2") is None
    ray = [([[1.0]], [-3.0])]  # a tie at 3, on the ray behind the only knot
    assert nearest_change([line(ray)], 0, "l2") == 9 and nearest_change([line(ray)], 1, "l2") == 0


def test_gaps_of_two_functions():
    """Of the tent and x / 8: on a segment, relative to 1 + |x| everywhere, and as labels."""
    eighth = [([[0.125]], [0])]
    assert gap_on(
        line(TENT, (Fraction(-1), Fraction(3))), line(eighth, (Fraction(-1), Fraction(3)))
    ) == Fraction(7, 8)
    assert gap_on(line(TENT), line(eighth), relative=True) == Fraction(7, 16)
    steep = [([[4.0]], [0])]  # slope 4 at infinity is more than anywhere else
    assert gap_on(line(TENT), line(steep), relative=True) == 4
    two = [([[1.0], [-1.0]], [0, 0])]  # (x, -x) against (-x + 1, x - 1): they agree from 0 to 1
    other = [([[-1.0], [1.0]], [1, -1])]
    ends = Fraction(-1), Fraction(3, 2)
    assert disagreement_on(line(two, ends), line(other, ends)) == 2


def test_what_is_reached():
    """The tent is at least 1 at one point only, and never more; strict rows leave that point out."""
    tent = line(TENT, (Fraction(-1), Fraction(3)))

    def found(rows, limits, strict=None, input_rows=None):
        given = [None if part is None else np.array(part) for part in (rows, limits, input_rows, strict)]
        return reached([tent], UnsafeSet(np.full(1, -1.0), np.full(1, 3.0), *given))

    assert found([[-1.0]], [-1.0]) and not found([[-1.0]], [-1.0], [True])
    assert not found([[-1.0]], [np.nextafter(-1.0, -2.0)])
    assert found([[-1.0]], [np.nextafter(-1.0, 0.0)], [True])
    assert found([[-1.0], [1.0]], [-0.25, 0.5]) and not found([[-1.0], [1.0]], [-0.5, 0.25])
    assert found([[-1.0], [1.0]], [-0.5, 0.5]) and not found([[-1.0], [1.0]], [-0.5, 0.5], [True, False])
    # f >= x only where x <= 1, and f + x <= 0 only at 0 and to the left of it
    assert found([[-1.0]], [0.0], None, [[1.0]]) and not found([[-1.0]], [-1.0001], None, [[0.0]])
    assert found([[1.0], [0.0]], [0.0, 0.0], None, [[1.0], [-1.0]])
    assert not found([[1.0], [0.0]], [0.0, 0.0], [False, True], [[1.0], [-1.0]])


def test_two_networks_on_one_line():
    """The tent and its half, at the knots of both."""
    other = line([([[1.0], [1.0]], [0, -1]), ([[0.5, -0.5]], [0])], (Fraction(-1), Fraction(3)))
    both = side_by_side(line(TENT, (Fraction(-1), Fraction(3))), other)
    assert both.knots == [-1, 0, 1, 2, 3]
    assert both.values == [[0, 0], [0, 0], [1, Fraction(1, 2)], [0, Fraction(1, 2)], [0, Fraction(1, 2)]]


def test_programs_point_at_extremes_and_at_the_nearest_change():
    """On |x| + |y| - 1 from (1/4, 0): the corner, the middle, and a point of the diamond."""
    eye = np.eye(2)
    net = ReluNetwork.from_layers([(np.vstack([eye, -eye]), np.zeros(4)), (np.ones((1, 4)), [-1.0])])
    top, bottom, near = hints(net, Box([-1, -1], [1, 2]), np.array([0.25, 0.0]), 0)
    assert abs(top[0]) == pytest.approx(1) and top[1] == pytest.approx(2)
    assert bottom == pytest.approx([0, 0], abs=1e-6)
    assert np.abs(near - [0.25, 0]).max() == pytest.approx(0.375)
