"""Cells against closed forms, brute force over subsets of sides, linear programs and Qhull."""

from itertools import combinations
from math import factorial, inf

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from pindown.box import Box
from pindown.geometry.regions.cell import Cell, box_halfspaces
from pindown.geometry.tuning import MAX_CORNER_DIM


def random_polytope(rng, d, m):
    """A bounded cell around a random point: m random sides and a box."""
    normals = rng.standard_normal((m, d))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    center = rng.standard_normal(d)
    sides = np.column_stack([normals, -normals @ center - rng.uniform(0.2, 1.5, m)])
    return Cell(np.vstack([sides, box_halfspaces(Box(center - 1, center + 1))]))


def corners_by_subsets(H):
    """All feasible solutions of d of the equations."""
    d, found = H.shape[1] - 1, []
    for rows in combinations(range(len(H)), d):
        A = H[list(rows), :-1]
        if abs(np.linalg.det(A)) > 1e-9:
            x = np.linalg.solve(A, -H[list(rows), -1])
            if (H[:, :-1] @ x + H[:, -1] <= 1e-9).all():
                found.append(x)
    return np.array(found)


def check_same_points(first, second):
    """Every point of one is near a point of the other; the first has none twice."""
    gaps = np.linalg.norm(first[:, None] - second[None], axis=2)
    assert gaps.min(axis=0).max() < 1e-7 and gaps.min(axis=1).max() < 1e-7
    own = np.linalg.norm(first[:, None] - first[None], axis=2) + np.eye(len(first))
    assert own.min() > 1e-7


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_corners_are_all_feasible_intersections(d, seed):
    cell = random_polytope(np.random.default_rng(seed), d, 2 * d + 3)
    check_same_points(cell.vertices, corners_by_subsets(cell.halfspaces))


@pytest.mark.parametrize("d", [2, 3, 4])
def test_volume_agrees_with_qhull_and_with_the_hull_of_its_corners(d):
    cell = random_polytope(np.random.default_rng(d), d, 3 * d)
    assert cell.volume == pytest.approx(ConvexHull(cell.vertices).volume, rel=1e-9)
    again = Cell.from_vertices(cell.vertices)
    assert again.volume == pytest.approx(cell.volume, rel=1e-9)
    check_same_points(again.vertices, cell.vertices)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_volumes_of_simplex_and_cross_polytope(d):
    simplex = Cell(np.vstack([np.column_stack([-np.eye(d), np.zeros(d)]), np.append(np.ones(d), -1.0)]))
    assert simplex.volume == pytest.approx(1 / factorial(d))
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * d)).reshape(d, -1).T
    cross = Cell(np.column_stack([signs, -np.ones(len(signs))]))
    assert cross.volume == pytest.approx(2**d / factorial(d))
    assert len(cross.vertices) == 2 * d  # more than d sides meet in each


def test_polygon_corners_go_round_counter_clockwise():
    for seed in range(10):
        V = random_polytope(np.random.default_rng(seed), 2, 8).vertices
        edges = np.roll(V, -1, axis=0) - V
        turns = edges[:, 0] * np.roll(edges[:, 1], -1) - edges[:, 1] * np.roll(edges[:, 0], -1)
        assert (turns > 0).all()


def test_interval_corners_ascend():
    assert Cell([[2.0, -6.0], [-1.0, 1.0], [1.0, -7.0]]).vertices.ravel().tolist() == [1, 3]


def test_many_lines_through_one_corner_and_repeated_sides():
    # Lines that touch the square at its corner (1, 1) cut nothing off; sides come twice and scaled.
    square = np.array([[-1, 0, 0], [1, 0, -1], [0, -1, 0], [0, 1, -1.0]])
    touching = [[p, 1 - p, -1] for p in (0.1, 0.3, 0.5, 0.9)]
    cell = Cell(np.vstack([square, 3 * square, touching]))
    assert len(cell.vertices) == 4 and cell.volume == pytest.approx(1)
    assert len(cell.irredundant().halfspaces) == 4


@pytest.mark.parametrize("shift, scale", [(0, 1e-6), (1e3, 1.0), (-50, 1e4)])
def test_shifted_and_scaled_cells(shift, scale):
    cell = random_polytope(np.random.default_rng(0), 3, 8)
    moved = Cell(np.column_stack([cell.halfspaces[:, :-1] / scale, cell.halfspaces[:, -1]]))
    sides = moved.halfspaces.copy()
    sides[:, -1] -= sides[:, :-1].sum(axis=1) * shift
    assert Cell(sides).volume == pytest.approx(cell.volume * scale**3, rel=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_chebyshev_ball_of_a_box(d):
    box = Box(np.arange(d), np.arange(d) + np.arange(1, d + 1))
    center, radius = Cell.from_box(box).chebyshev
    assert radius == pytest.approx(0.5)
    assert (Cell.from_box(box).halfspaces @ np.append(center, 1) <= -0.5 + 1e-9).all()


def test_membership():
    cell = Cell.from_box(Box([0, 0], [1, 1]))
    assert cell.contains([[0.5, 0.5], [1, 1], [1.1, 0.5]]).tolist() == [True, True, False]
    assert cell.contains([0.2, 0.3]).item()


@pytest.mark.parametrize("d", [2, 3, 5, 8])
@pytest.mark.parametrize("seed", range(3))
def test_irredundant_sides_are_those_a_linear_program_needs(d, seed):
    cell = random_polytope(np.random.default_rng(seed), d, 4 * d)
    H = cell.halfspaces
    needed = []
    for i, row in enumerate(H):
        others = np.delete(H, i, axis=0)
        best = linprog(-row[:-1], others[:, :-1], -others[:, -1], bounds=(None, None))
        needed.append(best.status != 0 or -best.fun + row[-1] > 1e-7)
    np.testing.assert_allclose(cell.irredundant().halfspaces, H[needed], rtol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 4, 7])
def test_samples_lie_inside_and_fill_the_cell(d):
    rng = np.random.default_rng(0)
    box = Box(np.zeros(d), np.arange(1, d + 1))
    X = Cell.from_box(box).sample(2_000 if d < 7 else 300, rng)
    assert box.contains(X).all()
    # A uniform coordinate on [0, u] has mean u / 2 and deviation u / sqrt(12).
    allowed = 5 * box.upper / np.sqrt(12 * len(X))
    assert (np.abs(X.mean(axis=0) - box.center) < allowed).all()


def test_uniform_samples_of_a_triangle():
    triangle = Cell([[-1, 0, 0], [0, -1, 0], [1, 1, -1]])
    X = triangle.sample(4_000, np.random.default_rng(0))
    quarter = (X.sum(axis=1) < 0.5).mean()  # a triangle of half the side has a quarter of the area
    assert quarter == pytest.approx(0.25, abs=0.03)


def test_empty_flat_and_unbounded_cells_say_so():
    empty, flat = Cell([[1, 0, 1], [-1, 0, 0]]), Cell([[1.0, 0.0], [-1.0, 0.0]])
    half = Cell([[1.0, 0, 0, 0]])
    assert empty.is_empty and not empty.is_full_dimensional and empty.volume == 0
    assert not flat.is_empty and not flat.is_full_dimensional and flat.volume == 0
    assert half.is_full_dimensional and half.chebyshev[1] == inf
    with pytest.raises(ValueError, match="empty"):
        _ = empty.chebyshev
    with pytest.raises(ValueError, match="flat"):
        _ = flat.vertices
    for cell in (
        half,
        Cell([[1.0, 0, 0]]),
        Cell([[1.0, 0]]),
        Cell([[1, 0, 0], [-1, 0, -1], [0, 1.0, 0]]),
    ):
        with pytest.raises(ValueError, match="unbounded"):
            _ = cell.vertices
    with pytest.raises(ValueError, match="unbounded"):
        half.sample(3, np.random.default_rng(0))


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="shape"):
        Cell([1.0, 2.0])
    with pytest.raises(ValueError, match="finite"):
        Cell([[1.0, np.nan]])
    with pytest.raises(ValueError, match="empty"):
        Cell([[0.0, 0.0, 1.0]])
    with pytest.raises(ValueError, match="dimensions"):
        Cell.from_box(Box.cube(2, 0, 1)).contains([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="flat hull"):
        Cell.from_vertices([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    many = MAX_CORNER_DIM + 1
    with pytest.raises(ValueError, match=f"up to dimension {MAX_CORNER_DIM}"):
        _ = Cell.from_box(Box.cube(many, 0, 1)).vertices
    assert len(Cell([[0.0, 0.0, -1.0], [1.0, 0.0, 0.0]]).halfspaces) == 1  # 0 <= 1 says nothing
