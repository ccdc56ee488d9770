"""The complex: cells against exact rationals, and the laws that every complex obeys."""

import time
from itertools import combinations

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.deadline import NEVER, Deadline
from pindown.geometry.complex import _traversal
from pindown.geometry.complex._traversal import Walk
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.exact.polytope import face_numbers
from tests.geometry.oracles import KINDS, cube, degenerate_network, random_network, reference_network


def pattern_set(patterns):
    return {row.tobytes() for row in np.asarray(patterns, bool)}


def pattern_pairs(patterns, pairs):
    return {frozenset((patterns[i].tobytes(), patterns[j].tobytes())) for i, j in pairs}


def check_same_complex(cx, truth):
    assert cx.complete and cx.n_regions == truth.n_regions
    assert pattern_set(cx.patterns) == pattern_set(truth.patterns)
    assert cx.growth == truth.growth
    assert pattern_pairs(cx.patterns, cx.neighbours) == pattern_pairs(truth.patterns, truth.neighbours)
    assert len(cx.neighbours) == len(truth.neighbours)
    assert cx.n_pieces == truth.n_pieces
    assert len(cx.vertices) == len(truth.vertex_signs)


def check_laws(cx):
    """What holds for every complete complex."""
    net, d = cx.net, cx.box.dim
    assert abs(cx.volumes.sum() / np.prod(cx.box.upper - cx.box.lower) - 1) < 1e-9
    assert (cx.volumes > 0).all()
    centers = np.add.reduceat(cx.cell_vertices, cx.offsets[:-1]) / np.diff(cx.offsets)[:, None]
    z = np.abs(net.preactivations(centers))
    clear = z > 1e-13 * (1 + np.abs(z).max())
    assert ((net.pattern(centers) == cx.patterns) | ~clear).all()
    values = np.einsum("nkd,nd->nk", cx.A, centers) + cx.c
    np.testing.assert_allclose(values, net(centers), atol=1e-9 * (1 + np.abs(values).max()))
    if d == 2 and cx.n_regions > 1:
        assert len(cx.vertices) - len(cx.edges) + cx.n_regions == 1


def check_facets_shared(cx, rng):
    """Across a shared facet values and, along it, slopes agree."""
    for i, j in cx.neighbours[rng.permutation(len(cx.neighbours))[:30]]:
        shared = set(cx.vertex_ids[cx.offsets[i] : cx.offsets[i + 1]].tolist())
        shared &= set(cx.vertex_ids[cx.offsets[j] : cx.offsets[j + 1]].tolist())
        corners = cx.vertices[sorted(shared)]
        assert len(corners) >= cx.box.dim
        a, b = corners @ cx.A[i].T + cx.c[i], corners @ cx.A[j].T + cx.c[j]
        np.testing.assert_allclose(a, b, atol=1e-9 * (1 + np.abs(a).max()))


@pytest.mark.parametrize("certified", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_degenerate_networks(kind, d, certified):
    net = degenerate_network(kind, d, np.random.default_rng(10 + d), widths=(8, 8) if d < 3 else (6, 5))
    cx = polyhedral_complex(net, cube(d), certified=certified)
    check_same_complex(cx, exact_complex(net, cube(d)))
    check_laws(cx)


@pytest.mark.parametrize("seed", range(12))
def test_random_networks(seed):
    rng = np.random.default_rng(seed)
    d = 1 + seed % 4
    net = random_network(rng, d, (6, 5, 4) if d < 4 else (5, 4))
    cx = polyhedral_complex(net, cube(d))
    check_same_complex(cx, exact_complex(net, cube(d)))
    check_laws(cx)
    check_facets_shared(cx, rng)


@pytest.mark.parametrize(("widths", "count"), [((2, 64, 64, 1), 4636), ((3, 16, 16, 1), 2543)])
@pytest.mark.parametrize("certified", [False, True])
def test_larger_networks_obey_the_laws(widths, count, certified):
    cx = polyhedral_complex(reference_network(widths, 0), cube(widths[0]), certified=certified)
    assert cx.n_regions == count
    check_laws(cx)
    check_facets_shared(cx, np.random.default_rng(0))


@pytest.mark.parametrize("d", [2, 3])
def test_faces_satisfy_euler(d):
    net = random_network(np.random.default_rng(d), d, (6, 4))
    cx, truth = polyhedral_complex(net, cube(d)), exact_complex(net, cube(d))
    numbers = face_numbers(truth.cells)
    assert sum((-1) ** k * n for k, n in enumerate(numbers)) == 1
    assert [len(cx.vertices), len(cx.edges)] == numbers[:2]


def test_skeleton_signs_agree_with_rationals():
    net = degenerate_network("integer", 2, np.random.default_rng(4))
    cx, truth = polyhedral_complex(net, cube(2)), exact_complex(net, cube(2))
    exact = {tuple(map(float, x)): signs for x, signs in truth.vertex_signs.items()}
    for x, signs in zip(cx.vertices, cx.vertex_signs, strict=True):
        nearest = min(exact, key=lambda y: np.abs(np.array(y) - x).max())
        assert np.abs(np.array(nearest) - x).max() < 1e-9
        np.testing.assert_array_equal(signs, exact[nearest])
    middles = cx.vertices[cx.edges].mean(axis=1)
    z = net.preactivations(middles)
    np.testing.assert_array_equal(cx.edge_signs, np.where(np.abs(z) < 1e-9, 0, np.sign(z)))


def test_regions_carry_their_parts():
    net = reference_network((2, 16, 16, 1), 0)
    cx = polyhedral_complex(net, cube(2))
    rng = np.random.default_rng(0)
    assert len(cx.regions) == 391 and len(cx.regions[3:7]) == 4
    for i in rng.integers(0, 391, 40):
        region = cx.regions[i]
        inside = rng.dirichlet(np.ones(len(region.vertices)), 5) @ region.vertices
        assert region.contains(inside).all()
        np.testing.assert_allclose(region(inside), net(inside), atol=1e-12)
        np.testing.assert_allclose(region.volume, cx.volumes[i], rtol=1e-6)
        np.testing.assert_allclose(region.A, cx.A[i], atol=1e-10)
        gaps = region.halfspaces[:, :2] @ region.vertices.T + region.halfspaces[:, 2:]
        assert (gaps < 1e-9).all() and ((np.abs(gaps) < 1e-9).sum(axis=1) == 2).all()


def test_points_are_located():
    net = reference_network((3, 16, 16, 1), 0)
    cx = polyhedral_complex(net, cube(3))
    X = cube(3).sample(500, np.random.default_rng(0))
    found = cx.locate(X)
    assert (found >= 0).all()
    np.testing.assert_array_equal(cx.patterns[found], net.pattern(X))


def test_neighbours_differ_in_the_unit_between_them():
    cx = polyhedral_complex(reference_network((2, 16, 16, 1), 0), cube(2))
    for (i, j), unit in zip(cx.neighbours, cx.neighbour_units, strict=True):
        assert np.flatnonzero(cx.patterns[i] != cx.patterns[j]).tolist() == [unit]
    assert sorted(cx.neighbours_of(5)) == sorted(
        {int(k) for pair in cx.neighbours for k in pair if 5 in pair} - {5}
    )


def test_pieces_merge_cells_with_one_map():
    # relu(x) - relu(-x) = x: the fold of two units cancels, four quadrants are two pieces.
    net = ReluNetwork.from_layers([([[1.0, 0], [-1, 0], [0, 1]], [0, 0, 0]), ([[1.0, -1.0, 1.0]], [0])])
    cx = polyhedral_complex(net, cube(2))
    assert (cx.n_regions, cx.n_pieces, cx.n_maps) == (4, 2, 2)
    for i, j in combinations(range(4), 2):
        assert (cx.pieces[i] == cx.pieces[j]) == np.allclose(cx.A[i], cx.A[j])


def test_far_pieces_may_share_a_map():
    # A hat: flat on both sides, so three regions along x but two maps plus the slopes.
    hat = ReluNetwork.from_layers([([[1.0], [1.0], [1.0]], [1, 0, -1]), ([[1.0, -2.0, 1.0]], [0])])
    cx = polyhedral_complex(hat, (-3, 3))
    assert (cx.n_regions, cx.n_pieces, cx.n_maps) == (4, 4, 3)


def test_affine_network_is_the_box():
    for d in (1, 2, 3):
        net = ReluNetwork.from_layers([(np.ones((2, d)), [1, 2])])
        cx = polyhedral_complex(net, cube(d))
        assert cx.n_regions == 1 and len(cx.neighbours) == 0 and len(cx.vertices) == 2**d
        assert abs(cx.volumes[0] - 2**d) < 1e-12 and len(cx.regions[0].facets) == 2 * d


def test_limits_leave_a_part_that_is_true():
    net = reference_network((2, 64, 64, 1), 0)
    cx = polyhedral_complex(net, cube(2), max_cells=100)
    assert not cx.complete and cx.n_regions >= 100
    truth = pattern_set(polyhedral_complex(net, cube(2)).patterns)
    assert pattern_set(cx.patterns) <= truth
    nothing = polyhedral_complex(net, cube(2), budget=0)
    assert not nothing.complete and nothing.n_regions == 0 and nothing.n_pieces == 0
    assert "not complete" in repr(nothing)
    with pytest.raises(ValueError, match="max_cells"):
        polyhedral_complex(net, cube(2), max_cells=0)


def test_budget_is_kept_where_cells_are_large():
    net = reference_network((6, 32, 32, 3), 0)
    polyhedral_complex(net, cube(6), max_cells=1)  # compiles, if it must
    began = time.monotonic()
    cx = polyhedral_complex(net, cube(6), budget=1.0)
    assert not cx.complete and cx.n_regions > 100
    assert time.monotonic() - began < 1.5


@pytest.mark.parametrize("d", [3, 4])
def test_volumes_of_nearly_coinciding_folds_sum_to_the_box(d: int) -> None:
    """Folds 1e-12 apart meet in vertices that fit no polytope; the volumes must not notice."""
    rng = np.random.default_rng(d)
    box = cube(d)
    for _ in range(60):
        point, distance = rng.uniform(-0.5, 0.5, d), 10.0 ** -rng.integers(6, 17)
        W = rng.normal(size=(5, d))
        b = -W @ point + distance * rng.normal(size=5) * (rng.random(5) < 0.5)
        W2 = rng.normal(size=(3, 5))
        net = ReluNetwork.from_layers([(W, b), (W2, rng.normal(size=3)), (np.ones((1, 3)), [0])])
        total = polyhedral_complex(net, box).volumes.sum()
        assert abs(total / 2**d - 1) < 1e-9


def test_more_room_is_only_made_if_copying_fits(monkeypatch):
    """Cells that fill their room are copied; what that took last time, measured, is asked for first."""
    monkeypatch.setattr(_traversal, "FIRST_CELL_ROOM", 64)
    net = random_network(np.random.default_rng(0), 2, [20, 20])
    walk = Walk(net, cube(2), counting=False)
    room = len(walk.store.keys)
    walk._seconds_per_byte = 1.0  # a slow machine: hours
    walk.run(deadline=Deadline.after(100.0))
    assert not walk.finished and len(walk.store.keys) == room
    found = walk.n_cells
    walk.run(deadline=NEVER)
    assert walk.finished and walk.n_cells > found and walk._seconds_per_byte < 1e-3
    assert walk.n_cells == polyhedral_complex(net, cube(2)).n_regions
