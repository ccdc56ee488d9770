"""Dual bounds on cells: true and tight, cell by cell, in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from pindown.box import Box
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.facts.dual_bounds import _forms, upper_bounds
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
    assert np.all(spoiled >= true - 1e-9) and np.any(spoiled > true + 1e-3)


@pytest.mark.parametrize("kind", ["zero_bias", "integer", "handmade", "through_corner"])
def test_vertices_on_more_facets_than_dimensions(kind):
    net = degenerate_network(kind, 3, np.random.default_rng(0), widths=(5, 4))
    cx = polyhedral_complex(net, cube(3), certified=True)
    true = exact_cell_values(net, cube(3))
    for pattern, bound in zip(cx.patterns, upper_bounds(cx, 0), strict=True):
        best = max(true[pattern.tobytes()])
        assert best <= Fraction(bound) <= best + Fraction(1, 10**9)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_cells_between_folds_that_nearly_coincide(d):
    # f - g, where the folds of g are those of f but for a rounding or two: slivers whose opposite
    # vertices are the same in float64, between slopes that differ a lot.
    for seed in range(6):
        net = random_network(np.random.default_rng(seed), d, (3,))
        (W, b), (C, _) = net.layers
        factor = np.array([1 / 3, 0.7, 3.1])
        rows, biases = W * factor[:, None], b * factor
        joint = ReluNetwork.from_layers(
            [(np.vstack([W, rows]), np.append(b, biases)), (np.hstack([C, -C / factor]), [0.0])]
        )
        cx = polyhedral_complex(joint, cube(d), certified=True)
        true = exact_cell_values(joint, cube(d))
        for sign in (1, -1):
            for pattern, bound in zip(cx.patterns, upper_bounds(cx, 0, sign), strict=True):
                best = max(sign * v for v in true[pattern.tobytes()])
                assert best <= Fraction(bound) <= best + Fraction(1, 10**9)


@pytest.mark.parametrize("off", [1e-14, 1e-12, 1e-10])
def test_wedges_between_folds_that_are_nearly_parallel(off):
    # Opposite normals all but cancel; combinations of them that fit exactly would be huge.
    rng = np.random.default_rng(0)
    for _ in range(10):
        net = random_network(rng, 2, (3,))
        (W, b), (C, _) = net.layers
        moved = W * (1 + off * rng.standard_normal(W.shape))
        joint = ReluNetwork.from_layers(
            [(np.vstack([W, moved]), np.append(b, b)), (np.hstack([C, -C]), [0.0])]
        )
        cx = polyhedral_complex(joint, cube(2), certified=True)
        true = exact_cell_values(joint, cube(2))
        for pattern, bound in zip(cx.patterns, upper_bounds(cx, 0), strict=True):
            best = max(true[pattern.tobytes()])
            assert best <= Fraction(bound) <= best + Fraction(1, 10**7)


def test_sizes_of_terms_are_sums_of_absolute_values():
    rng = np.random.default_rng(3)
    net = random_network(rng, 2, (5, 4))
    patterns = rng.random((10, net.size)) < 0.5
    slope, offset, sizes, offset_sizes = _forms(net, patterns, net.depth - 1, np.zeros(10, int))
    A, c = net.affine_of_pattern(patterns)
    np.testing.assert_allclose(slope, A[:, 0], atol=1e-12)
    np.testing.assert_allclose(offset, c[:, 0], atol=1e-12)
    absolute = ReluNetwork.from_layers([(np.abs(W), np.abs(b)) for W, b in net.layers])
    A, c = absolute.affine_of_pattern(patterns)
    np.testing.assert_allclose(sizes, A[:, 0], rtol=1e-12)
    np.testing.assert_allclose(offset_sizes, c[:, 0], rtol=1e-12)


def test_bounds_beyond_float64_are_infinite():
    net = ReluNetwork.from_layers([([[1e200], [-1e200]], [0, 0]), ([[1e200, 0.0]], [0])])
    cx = polyhedral_complex(net, Box([-1e-150], [1e-150]))  # values of 1e250, slopes of 1e400
    assert sorted(upper_bounds(cx, 0)) == [pytest.approx(0.0, abs=1e-100), np.inf]


def test_bounds_cover_what_underflows():
    # On a box of size 1e-150 the values reach 1e-350, which float64 rounds to 0.
    net = ReluNetwork.from_layers([([[1.0]], [0]), ([[1e-200]], [0])])
    cx = polyhedral_complex(net, Box([-1e-150], [1e-150]))
    assert upper_bounds(cx, 0).max() > 0.0
