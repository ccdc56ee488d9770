"""Values at vertices, ties, and vertices whose cells are not all known."""

from __future__ import annotations

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry import Box
from pindown.geometry.complex._reading import complex_of
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.facts._values_and_slopes import (
    cell_edges,
    computed_anew,
    on_box_boundary,
    open_vertices,
    output_number,
    slope_jumps,
    slope_signs,
    value_ties,
    vertex_values,
)
from tests.geometry.oracles import KINDS, cube, degenerate_network, random_network, reference_network
from tests.geometry.partial import first_cells


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_values_agree_in_all_cells_of_a_vertex(d):
    net = random_network(np.random.default_rng(d), d, (6, 5))
    cx = polyhedral_complex(net, cube(d))
    owner = np.repeat(np.arange(len(cx)), np.diff(cx.offsets))
    own = np.einsum("vkd,vd->vk", cx.A[owner], cx.cell_vertices) + cx.c[owner]
    np.testing.assert_allclose(own, vertex_values(cx)[cx.vertex_ids], atol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_edges_of_cells_are_the_edges_of_the_complex(d):
    cx = polyhedral_complex(random_network(np.random.default_rng(d), d, (5, 4)), cube(d))
    pairs = np.unique(np.sort(cx.vertex_ids[cell_edges(cx.cells)], axis=1), axis=0)
    np.testing.assert_array_equal(pairs[pairs[:, 0] != pairs[:, 1]], cx.edges)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_open_vertices_are_those_with_a_missing_cell(d, seed):
    whole = polyhedral_complex(random_network(np.random.default_rng(seed), d, (6, 5)), cube(d))
    part = first_cells(whole, 2 * len(whole) // 3)
    owner = np.repeat(np.arange(len(whole)), np.diff(whole.offsets))
    missing = np.unique(whole.cell_vertices[owner >= len(part)].round(9), axis=0)
    expected = [np.abs(missing - v).max(axis=1).min() < 1e-7 for v in part.vertices]
    np.testing.assert_array_equal(open_vertices(part), expected)
    assert not open_vertices(whole).any()


def test_ties_follow_the_terms_not_the_value():
    # The terms are about 1e6, the output is theirs minus themselves.
    net = ReluNetwork.from_layers([([[1.0], [1.0]], [1e6, 1e6]), ([[1.0, -1.0]], [0])])
    assert 1e-7 < value_ties(net, Box([-1], [1]))[0] < 1e-5


def test_sides_of_the_box():
    points = np.array([[0.0, 0.5], [0.5, 0.5], [0.5, 1.0 - 1e-13]])
    assert on_box_boundary(points, Box([0, 0], [1, 1])).tolist() == [True, False, True]


def test_which_complex_and_which_output():
    net = reference_network((2, 4, 3), 0)
    cx = polyhedral_complex(net, (-1, 1))
    assert complex_of(cx) is cx and output_number(net, np.int64(2)) == 2
    with pytest.raises(ValueError, match="of at least 0 and at most 2; got -1"):
        output_number(net, -1)
    with pytest.raises(TypeError, match="output must be an integer"):
        output_number(net, 1.5)
    with pytest.raises(TypeError, match="not certified"):
        complex_of(cx, certified=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [2, 3])
def test_signs_agree_with_exact_arithmetic(kind, d):
    net = degenerate_network(kind, d, np.random.default_rng(d), widths=(5, 4))
    cx, exact = polyhedral_complex(net, cube(d)), exact_complex(net, cube(d))
    true = {
        pattern.tobytes(): [[(a > 0) - (a < 0) for a in row[:-1]] for row in rows]
        for pattern, rows in zip(exact.patterns, exact.maps, strict=True)
    }
    for pattern, signs in zip(cx.patterns, slope_signs(cx), strict=True):
        assert signs.tolist() == true[pattern.tobytes()]


def test_a_gentle_slope_beside_a_steep_one_is_seen():
    # Slope 1e-14 left of 0 and 1 right of it: small, but no rounding.
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, -1e-14]], [0])])
    cx = polyhedral_complex(net, (-1, 1))
    assert slope_signs(cx).ravel().tolist() == [1, 1]
    assert np.all(slope_jumps(cx, cx.neighbours) > 0.9)


def test_jumps_that_cancel_are_zero():
    net = ReluNetwork.from_layers([([[1.0, 0.3]] * 3, [0, 0, 0]), ([[0.1, 0.2, -0.3]], [0])])
    cx = polyhedral_complex(net, (-1, 1))
    assert np.abs(cx.A).max() > 0  # what rounding leaves
    assert not slope_jumps(cx, cx.neighbours).any() and not slope_signs(cx).any()


def test_slopes_computed_anew_are_those_of_the_complex():
    net = random_network(np.random.default_rng(0), 3, (6, 6))
    cx = polyhedral_complex(net, (-1, 1))
    anew, ties = computed_anew(cx, np.arange(len(cx)))
    np.testing.assert_allclose(anew, cx.A, atol=1e-12)
    assert np.all(ties < 1e-9)
