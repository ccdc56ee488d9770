"""Complexes put together from sub-boxes: equal to the unsplit one, wherever the cuts are."""

from itertools import product

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry import Box, Grid, complex_by_parts, polyhedral_complex, split_box
from pindown.geometry.complex._cells import pack_patterns
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.subboxes._batches import cells_with_patterns
from tests.geometry.oracles import KINDS, cube, degenerate_network, random_network, reference_network


def pattern_pairs(cx):
    rows = [row.tobytes() for row in cx.patterns]
    return {frozenset((rows[i], rows[j])): int(u) for (i, j), u in zip(
        cx.neighbours, cx.neighbour_units, strict=True)}  # fmt: skip


def check_same(parts, whole):
    """Cells, maps, volumes, facets, neighbours and skeleton of two complexes agree."""
    assert parts.complete and parts.n_regions == whole.n_regions
    here, there = np.lexsort(parts.patterns.T), np.lexsort(whole.patterns.T)
    assert (parts.patterns[here] == whole.patterns[there]).all()
    assert parts.growth == whole.growth
    np.testing.assert_allclose(parts.cells.maps[here], whole.cells.maps[there], atol=1e-10)
    np.testing.assert_allclose(parts.volumes[here], whole.volumes[there], rtol=1e-9, atol=1e-12)
    for i, j in zip(here, there, strict=True):
        assert set(parts.cells.labels(i).tolist()) == set(whole.cells.labels(j).tolist())
        assert len(parts.cells.vertices(i)) == len(whole.cells.vertices(j))
    assert pattern_pairs(parts) == pattern_pairs(whole)
    assert len(parts.neighbours) == len(whole.neighbours)
    assert len(parts.vertices) == len(whole.vertices) and len(parts.edges) == len(whole.edges)


def through_the_origin(d):
    """Cuts where networks written by hand have their folds."""
    return Grid(cube(d), ((-0.5, 0.0), *[(0.0,)] * (d - 1)))


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_degenerate_networks(kind, d):
    widths = {1: (8, 8), 2: (8, 8), 3: (6, 5), 4: (4, 4)}[d]
    net = degenerate_network(kind, d, np.random.default_rng(40 + d), widths=widths)
    whole = polyhedral_complex(net, cube(d))
    for splits in (3 if d == 4 else 8, through_the_origin(d)):
        check_same(complex_by_parts(net, cube(d), splits), whole)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kind", ["zero_bias", "integer", "handmade", "zero_row_deep"])
def test_certified(kind, d):
    net = degenerate_network(kind, d, np.random.default_rng(50 + d), widths=(5, 4) if d > 1 else (8, 8))
    parts = complex_by_parts(net, cube(d), through_the_origin(d), certified=True)
    exact = exact_complex(net, cube(d))
    assert parts.certified and parts.n_regions == exact.n_regions
    assert {row.tobytes() for row in parts.patterns} == {row.tobytes() for row in exact.patterns}
    rows = [row.tobytes() for row in exact.patterns]
    truth = {frozenset((rows[i], rows[j])) for i, j in exact.neighbours}
    assert set(pattern_pairs(parts)) == truth and len(parts.neighbours) == len(exact.neighbours)


@pytest.mark.parametrize("seed", range(8))
def test_random_networks_on_random_grids(seed):
    rng = np.random.default_rng(seed)
    d = 1 + seed % 4
    net = random_network(rng, d, (7, 6, 5) if d < 4 else (5, 4))
    whole = polyhedral_complex(net, cube(d))
    for _ in range(2):
        cuts = tuple(tuple(np.sort(rng.uniform(-1, 1, rng.integers(0, 3)))) for _ in range(d))
        check_same(complex_by_parts(net, cube(d), Grid(cube(d), cuts)), whole)


def test_fold_in_a_cut_is_a_fold():
    net = ReluNetwork.from_layers([([[1.0, 0, 0], [-1.0, 0, 0]], [0, 0]), ([[1.0, 1.0]], [0])])
    parts = complex_by_parts(net, cube(3), Grid(cube(3), ((0.0,), (0.0,), ())))
    assert parts.n_regions == 2 and parts.volumes.tolist() == [4, 4]
    assert parts.neighbours.tolist() == [[0, 1]] and parts.neighbour_units.tolist() == [0]
    assert len(parts.vertices) == 12


@pytest.mark.parametrize("beyond", [0.0, 1e-16, 1e-14, 3e-13, 1e-12, 1e-11, 1e-8, -1e-14, -1e-12])
def test_corner_next_to_a_cut(beyond):
    """Two folds meet about as far from the cut as rounding goes: no cell twice, none lost."""
    W = np.array([[1.0, 1.0], [1.0, -1.0], [-0.3, 1.0]])
    net = ReluNetwork.from_layers([(W, [-beyond, -beyond, 0.25]), ([[1.0, 1.0, 1.0]], [0])])
    grid = Grid(cube(2), ((0.0,), (-0.1, 0.3)))
    parts, whole = complex_by_parts(net, cube(2), grid), polyhedral_complex(net, cube(2))
    assert len({row.tobytes() for row in parts.patterns}) == parts.n_regions
    check_same(parts, whole)


@pytest.mark.parametrize("seed", range(6))
def test_cuts_within_rounding_of_vertices(seed):
    rng = np.random.default_rng(70 + seed)
    net = degenerate_network(KINDS[seed], 2, rng, widths=(5, 5))
    whole = polyhedral_complex(net, cube(2))
    for _ in range(4):
        cuts = []
        for c in range(2):
            inside = whole.vertices[np.abs(whole.vertices[:, c]) < 0.999, c]
            steps = rng.choice([0, 1e-16, -1e-15, 1e-14, -1e-13, 3e-13, 1e-12, -1e-12, 1e-11], 1)
            cuts.append(tuple((rng.choice(inside, 1) + steps).tolist()))
        check_same(complex_by_parts(net, cube(2), Grid(cube(2), tuple(cuts))), whole)


def test_patterns_without_a_cell_are_passed_over():
    net = random_network(np.random.default_rng(3), 2, (5, 4))
    every = np.array(list(product([False, True], repeat=9)))
    again = []
    for cells in cells_with_patterns(
        net, cube(2), pack_patterns(every, (5, 4)), certified=False, room=6
    ):
        again += [row.tobytes() for row in cells.unpacked_patterns()]
    whole = polyhedral_complex(net, cube(2))
    assert len(again) == whole.n_regions and set(again) == {row.tobytes() for row in whole.patterns}


def test_result_does_not_depend_on_workers():
    net = reference_network((3, 10, 10, 2), 1)
    one, two = (complex_by_parts(net, cube(3), 12, n_jobs=n) for n in (1, 2))
    for name in ("coords", "facets", "masks", "patterns", "maps", "vertex_starts", "keys"):
        assert (getattr(one.cells, name) == getattr(two.cells, name)).all()
    assert (one.neighbours == two.neighbours).all()


def test_far_and_uneven_boxes():
    rng = np.random.default_rng(8)
    net = random_network(rng, 2, (6, 6))
    box = Box([1e3, -1e-3], [1e3 + 1, 5])
    shifted = ReluNetwork.from_layers([(net.layers[0].weight, net.layers[0].bias - net.layers[0].weight
                                        @ box.center), *net.layers[1:]])  # fmt: skip
    check_same(complex_by_parts(shifted, box, (3, 4)), polyhedral_complex(shifted, box))


def test_network_without_units():
    net = ReluNetwork.from_layers([([[1.0, 2.0]], [3])])
    parts = complex_by_parts(net, (0, 1), 4)
    assert parts.n_regions == 1 and parts.volumes.tolist() == [1] and parts.complete


@pytest.mark.parametrize("splits", [1, 2, 7, 24, (1, 5, 2)])
def test_grids_tile_the_box(splits):
    grid = split_box(Box([-1, 0, 2], [1, 3, 2.5]), splits)
    boxes = [grid[i] for i in range(len(grid))]
    assert len(boxes) == (splits if isinstance(splits, int) else np.prod(splits))
    assert sum(np.prod(b.upper - b.lower) for b in boxes) == pytest.approx(3)
    inner = sum(len(grid.inner_sides(i)) for i in range(len(grid)))
    shape = np.array(grid.shape)
    assert inner == 2 * sum(np.prod(shape) // n * (n - 1) for n in shape)


def test_cuts_avoid_round_numbers():
    for n in range(2, 40):
        places = np.array(split_box(Box([-1.0], [1.0]), n).cuts[0])
        assert np.abs(places * 64 - np.round(places * 64)).min() > 1e-4


@pytest.mark.parametrize(
    ("box", "splits", "message"),
    [
        ((0, 1), 0, "integer of at least 1"),
        ((0, 1), 2.5, "integer of at least 1"),
        ((0, 1), (2, 2, 2), "each of 2 coordinates"),
        ((0, 1), 10**7, "at most"),
        (([0, 0], [1, 0]), 2, "flat in coordinate 1"),
        ((1, 1 + 4e-16), 100, "strictly inside"),
        ((0, 1), Grid(Box([0, 0], [2, 2]), ((), ())), "the grid cuts"),
    ],
)
def test_bad_input(box, splits, message):
    net = random_network(np.random.default_rng(0), 2, (3,))
    with pytest.raises(ValueError, match=message):
        complex_by_parts(net, box, splits)


@pytest.mark.parametrize("cuts", [((0.5, 0.5), ()), ((0.0,), ()), ((float("nan"),), ()), ((0.5,),)])
def test_bad_cuts(cuts):
    with pytest.raises(ValueError, match="cuts"):
        Grid(Box([0, 0], [1, 1]), cuts)
