"""Dual bounds on cells: true and tight, cell by cell, in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from pindown.geometry.box import Box
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.facts.cell_bounds import upper_bounds
from pindown.network import ReluNetwork
from tests.geometry.exact_extrema import exact_cell_values
from tests.geometry.oracles import cube, degenerate_network, random_network


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_every_cell_has_its_own_proved_bound(d):
    net = random_network(np.random.default_rng(d), d, (5, 4))
    cx = polyhedral_complex(net, cube(d), certified=True)
    true = exact_cell_values(net, cube(d))
    for sign in (1, -1):
        for pattern, bound in zip(cx.patterns, upper_bounds(cx, 0, sign), strict=True):
            best = max(sign * v for v in true[pattern.tobytes()])
            assert best <= Fraction(bound) <= best + Fraction(1, 10**9)


def test_bounds_do_not_depend_on_the_vertices():
    # Only patterns enter: spoiled vertices make bounds loose, never wrong.
    net = random_network(np.random.default_rng(0), 2, (6, 5))
    cx = polyhedral_complex(net, cube(2), certified=True)
    true = upper_bounds(cx, 0)
    rng = np.random.default_rng(1)
    cx.cells.coords[:] = cube(2).sample(len(cx.cells.coords), rng)
    spoiled = upper_bounds(cx, 0)
    assert np.all(spoiled >= true - 1e-9) and spoiled.max() > true.max() + 1e-3


@pytest.mark.parametrize("kind", ["zero_bias", "integer", "handmade", "through_corner"])
def test_vertices_on_more_facets_than_dimensions(kind):
    net = degenerate_network(kind, 3, np.random.default_rng(0), widths=(5, 4))
    cx = polyhedral_complex(net, cube(3), certified=True)
    true = exact_cell_values(net, cube(3))
    for pattern, bound in zip(cx.patterns, upper_bounds(cx, 0), strict=True):
        best = max(true[pattern.tobytes()])
        assert best <= Fraction(bound) <= best + Fraction(1, 10**9)


def test_bounds_cover_what_underflows():
    # On a box of size 1e-150 the values reach 1e-350, which float64 rounds to 0.
    net = ReluNetwork.from_layers([([[1.0]], [0]), ([[1e-200]], [0])])
    cx = polyhedral_complex(net, Box([-1e-150], [1e-150]))
    assert upper_bounds(cx, 0).max() > 0.0
