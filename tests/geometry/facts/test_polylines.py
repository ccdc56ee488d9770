"""Joined outlines and lines: nothing lost, nothing drawn twice."""

from __future__ import annotations

import itertools
from itertools import pairwise

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.box import Box
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.facts.plane_areas import class_areas
from pindown.geometry.facts.polylines import Grid, join_segments, outlines, path_data, polylines
from pindown.geometry.folds.fold_set import fold_set


@pytest.fixture(scope="module")
def cells():
    rng = np.random.default_rng(3)
    pairs = itertools.pairwise((2, 12, 10, 3))
    net = ReluNetwork.from_layers(
        [(rng.standard_normal((m, n)), 0.5 * rng.standard_normal(m)) for n, m in pairs]
    )
    return polyhedral_complex(net, ([-1, -1], [2, 1]))


def signed_area(line):
    x, y = np.array(line, dtype=float).T
    return (x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def length(line):
    return np.linalg.norm(np.diff(np.array(line, dtype=float), axis=0), axis=1).sum()


def test_outlines_enclose_as_much_as_their_polygons(cells):
    areas, grid = class_areas(cells), Grid(cells.box, steps=6000)
    drawn = outlines(areas, grid)
    assert set(drawn) == set(np.unique(areas.labels).tolist())
    for label, lines in drawn.items():
        enclosed = sum(map(signed_area, lines)) * grid.step**2
        assert enclosed == pytest.approx(areas.sizes[areas.labels == label].sum(), abs=0.01)
    total = sum(signed_area(line) for lines in drawn.values() for line in lines)
    assert total * grid.step**2 == pytest.approx(6.0, abs=1e-6)  # what one loses another gains
    corners = sum(len(line) for lines in drawn.values() for line in lines)
    assert corners < len(areas.corners) / 4


def test_one_label_everywhere_is_outlined_by_the_box(cells):
    areas = class_areas(cells)
    alone = type(areas)(areas.corners, areas.offsets, np.zeros_like(areas.labels), areas.cells)
    (line,) = outlines(alone, Grid(cells.box, steps=600))[0]
    assert sorted(line) == [(0, 0), (0, 400), (600, 0), (600, 400)]


def test_joined_folds_are_as_long_as_the_folds(cells):
    folds, grid = fold_set(cells), Grid(cells.box, steps=20_000)
    lines = polylines(folds.segments, folds.units, grid)
    assert sum(map(length, lines)) * grid.step == pytest.approx(folds.size, rel=1e-3)
    assert sum(map(len, lines)) < len(folds)  # a fold for every pair of cells, few points per line


def test_straight_lines_are_two_points_and_closed_ones_come_back():
    grid = Grid(Box([0, 0], [10, 10]), steps=10)
    ends = [[[0, 0], [3, 0]], [[7, 0], [3, 0]], [[7, 0], [10, 0]]]
    assert polylines(np.array(ends, float), np.zeros(3, int), grid) in (
        [[(0, 0), (10, 0)]],
        [[(10, 0), (0, 0)]],
    )
    square = [[[1, 1], [5, 1]], [[5, 5], [5, 1]], [[5, 5], [1, 5]], [[1, 5], [1, 1]]]
    (line,) = polylines(np.array(square, float), np.zeros(4, int), grid)
    assert line[0] == line[-1] and len(line) == 5 and length(line) == 16
    two = polylines(np.array(ends[:2], float), np.array([0, 1]), grid)
    assert len(two) == 2  # different owners are not joined
    assert polylines(np.zeros((1, 2, 2)), np.zeros(1, int), grid) == []


def test_path_data_is_relative_and_short():
    assert path_data([[(1, 2), (4, 2), (4, -3)], [(0, 0), (-1, 0)]]) == "M1 2l3 0 0-5M0 0l-1 0"
    assert path_data([]) == ""


def test_chains_stop_where_three_lines_meet():
    chains = join_segments(np.array([[0, 1], [1, 2], [1, 3], [3, 4], [7, 8], [8, 7]]))
    assert sorted(map(list, (c.tolist() for c in chains))) == [[0, 1], [1, 2], [1, 3, 4], [7, 8, 7]]
    assert join_segments(np.zeros((0, 2), int)) == []


@pytest.mark.parametrize("seed", range(10))
def test_every_segment_is_in_one_chain(seed):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 12, (25, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    steps = [tuple(sorted(s)) for c in join_segments(pairs) for s in pairwise(c)]
    assert sorted(steps) == sorted(map(tuple, pairs.tolist()))


@pytest.mark.parametrize("seed", range(5))
def test_rings_and_lines_keep_their_direction(seed):
    ring, line = np.arange(6), np.arange(10, 15)
    pairs = np.vstack([np.stack([ring, np.roll(ring, -1)], 1), np.stack([line[:-1], line[1:]], 1)])
    shuffled = pairs[np.random.default_rng(seed).permutation(len(pairs))]
    first, second = join_segments(shuffled)
    assert first.tolist() == line.tolist()
    assert np.all(np.diff(second) % 6 == 1) and second[0] == second[-1]
