"""Facets against one linear program per side."""

import numpy as np
import pytest
from scipy.optimize import linprog

from pindown.box import Box
from pindown.geometry.regions._polar import ScaledCell, deep_point, parallel_groups
from pindown.geometry.regions._redundancy import facet_rows
from pindown.geometry.regions.cell import box_halfspaces
from pindown.geometry.regions.neighbours import facet_points


def random_sides(rng, m, d, rank=None):
    """m sides at distance about 1 from the origin, with normals in a random subspace."""
    normals = rng.standard_normal((m, rank or d))
    if rank:
        normals = normals @ rng.standard_normal((rank, d))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return np.column_stack([normals, -rng.uniform(0.3, 1.0, m)])


def facets_by_programs(sides, box):
    """Rows whose removal makes the cell larger."""
    rows = sides if box is None else np.vstack([sides, box_halfspaces(box)])
    found = []
    for i, row in enumerate(rows):
        others = np.delete(rows, i, axis=0)
        extra = np.vstack([others, np.append(row[:-1], row[-1] - 1)])  # at most 1 beyond
        best = linprog(-row[:-1], extra[:, :-1], -extra[:, -1], bounds=(None, None))
        if -best.fun + row[-1] > 1e-7:
            found.append(i)
    return found


@pytest.mark.parametrize("d, m", [(1, 5), (2, 12), (3, 15), (6, 25), (10, 40)])
@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_facets_are_the_rows_that_matter(d, m, boxed, seed):
    sides = random_sides(np.random.default_rng(seed), m, d)
    box = Box.cube(d, -0.6, 0.8) if boxed else None
    assert facet_rows(sides, np.zeros(d), box).tolist() == facets_by_programs(sides, box)


@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("m, d, rank", [(60, 40, 6), (80, 66, None), (90, 66, 10)])
def test_many_dimensions(m, d, rank, boxed):
    # Through the reduction to the span of the rows, the long separations and the programs.
    sides = random_sides(np.random.default_rng(1), m, d, rank)
    box = Box.cube(d, -0.2, 0.3) if boxed else None
    assert facet_rows(sides, np.zeros(d), box).tolist() == facets_by_programs(sides, box)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_repeated_sides_keep_the_first_and_the_box_wins(d):
    sides = random_sides(np.random.default_rng(2), 6, d)
    once = facet_rows(sides, np.zeros(d))
    assert facet_rows(np.vstack([sides, sides]), np.zeros(d)).tolist() == once.tolist()
    box = Box.cube(d, -0.1, 0.1)
    on_box = box_halfspaces(box)
    found = facet_rows(np.vstack([on_box, sides]), np.zeros(d), box)
    assert found.tolist() == [len(on_box) + len(sides) + i for i in range(2 * d)]


@pytest.mark.parametrize("d", [2, 3, 4])
def test_a_side_that_only_touches_is_no_facet(d):
    box = Box.cube(d, -1, 1)
    normal = np.ones(d) / np.sqrt(d)
    touching = np.append(normal, -np.sqrt(d))[None]  # through the corner (1, ..., 1)
    assert facet_rows(touching, np.zeros(d), box).tolist() == list(range(1, 2 * d + 1))
    touching[0, -1] += 1e-4
    assert 0 in facet_rows(touching, np.zeros(d), box)


@pytest.mark.parametrize(
    "d, boxed", [(1, True), (2, False), (3, True), (8, False), (40, True), (50, False)]
)
def test_points_on_facets_are_inside_everything_else(d, boxed):
    rng = np.random.default_rng(0)
    sides, box = random_sides(rng, 3 * d, d), Box.cube(d, -0.5, 0.5) if boxed else None
    rows = facet_rows(sides, np.zeros(d), box)
    kept = sides[rows[rows < len(sides)]]
    points = facet_points(kept, np.zeros(d), box)
    beyond = points @ kept[:, :-1].T + kept[:, -1]
    assert np.abs(np.diag(beyond)).max(initial=0) < 1e-12
    assert (beyond - np.eye(len(kept)) < 0).all()
    assert box is None or ((points > box.lower) & (points < box.upper)).all()


def test_no_rows_and_all_of_space():
    assert facet_rows(np.zeros((0, 5)), np.zeros(4)).size == 0
    assert facet_rows(np.zeros((0, 5)), np.zeros(4), Box.cube(4, -1, 1)).tolist() == list(range(8))
    assert facet_points(np.zeros((0, 5)), np.zeros(4)).shape == (0, 4)


def test_independent_rows_are_all_facets():
    rng = np.random.default_rng(0)
    sides = random_sides(rng, 30, 50)
    assert facet_rows(sides, np.zeros(50)).tolist() == list(range(30))


def test_deep_point_moves_off_the_sides():
    box, start = Box.cube(3, 0, 1), np.array([1e-9, 1e-9, 0.5])
    point = deep_point(np.zeros((0, 4)), start, box)
    assert (np.minimum(point, 1 - point) > 0.05).all()


def test_nearly_parallel_is_not_parallel():
    rows = np.array([[1, 0], [1, 1e-7], [1, 0], [np.sqrt(1 - 1e-14), 1e-7]])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert parallel_groups(rows).tolist() == [0, 1, 0, 1]


def test_a_point_outside_is_refused():
    with pytest.raises(ValueError, match="strictly inside"):
        ScaledCell.around(np.array([[1.0, 0, 0, 1.0]]), np.zeros(3), None)
