r"""From sides to corners and back: duality about an interior point.

Seen from a point p inside, the side :math:`a \cdot x + b \le 0` has slack
:math:`s = -(a \cdot p + b) > 0` and the dual point :math:`a / s`. Corners of the hull of the dual points
are the facets of the cell, and facets of that hull are its corners. Intervals and polygons need sorting
only; Qhull does the rest.
"""

from __future__ import annotations

from math import pi
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.geometry.nearness import SAME
from pindown.geometry.tuning import HIT_AND_RUN_STEPS_PER_DIM, MAX_TRIANGULATED_DIM

if TYPE_CHECKING:
    from pindown.geometry.regions.cell import Cell


_UNBOUNDED = "the cell is unbounded and has no corners that describe it; intersect it with a box."


def corners(halfspaces: Array, inner: Array) -> Array:
    """Return the corners (V, d) of a bounded cell.

    Args:
        halfspaces: Unit rows (m, d + 1), redundant ones allowed.
        inner: A point strictly inside.

    Raises:
        ValueError: If the cell is unbounded.

    >>> corners(np.array([[-1.0, 0.0], [1.0, -2.0], [1.0, -3.0]]), np.array([1.0])).ravel()
    array([0., 2.])
    """
    d = halfspaces.shape[1] - 1
    if d == 1:
        low, high = interval_rows(halfspaces)
        if low is None or high is None:
            raise ValueError(_UNBOUNDED)
        ends = [-halfspaces[row, 1] / halfspaces[row, 0] for row in (low, high)]
        return np.array(ends)[:, None] + 0.0
    if d == 2:
        rows = halfspaces[polygon_rows(halfspaces, inner)]
        gaps = np.diff(_angles(rows), append=_angles(rows)[:1] + 2 * pi)
        if len(rows) < 3 or gaps.max() >= pi * (1.0 - SAME):
            raise ValueError(_UNBOUNDED)
        return _crossings(np.roll(rows, 1, axis=0), rows)
    return _qhull_corners(halfspaces, inner)


def interval_rows(halfspaces: Array) -> tuple[int | None, int | None]:
    """Return the rows that bound an interval below and above (None where nothing does)."""
    ends = -halfspaces[:, 1] / halfspaces[:, 0]
    below, above = np.flatnonzero(halfspaces[:, 0] < 0), np.flatnonzero(halfspaces[:, 0] > 0)
    low = int(below[np.argmax(ends[below])]) if len(below) else None
    high = int(above[np.argmin(ends[above])]) if len(above) else None
    return low, high


def polygon_rows(halfspaces: Array, inner: Array) -> NDArray[np.int64]:
    """Return the rows that are edges of a polygon (bounded or not), counter-clockwise by normal.

    Graham's scan around the inner point, from the nearest side on, which is surely an edge. One of
    several rows on the same line stays: the first.
    """
    if not len(halfspaces):
        return np.zeros(0, dtype=np.int64)
    slack = -(halfspaces[:, :2] @ inner + halfspaces[:, 2])
    nearest = int(np.argmin(slack))
    on_same_line = np.abs(halfspaces[:, :2] - halfspaces[nearest, :2]).max(axis=1) <= SAME
    start = int(np.argmax(on_same_line & (slack <= slack[nearest] * (1.0 + SAME))))
    turned = (_angles(halfspaces) - _angles(halfspaces)[start]) % (2 * pi)
    turned[start] = 0.0
    order = np.lexsort([np.arange(len(slack)), slack, turned])
    order = np.concatenate([[start], order[order != start], [start]])
    edges: list[int] = []
    for row in order:
        while edges and _shadowed(halfspaces, slack, edges, int(row)):
            edges.pop()
        closing = len(edges) > 0 and row == start
        if closing or not (edges and _parallel(halfspaces, edges[-1], int(row))):
            edges.append(int(row))
    if len(edges) > 1:
        edges.pop()  # the first once more
    return np.roll(edges, -int(np.argmin(_angles(halfspaces[edges]))))


def _shadowed(H: Array, slack: Array, edges: list[int], new: int) -> bool:
    """Return whether the new row, with the edge before, makes the last edge needless."""
    last = edges[-1]
    if _parallel(H, last, new):
        nearer = slack[new] < slack[last] * (1.0 - (SAME if new > last else -SAME))
        return bool(nearer) or (len(edges) > 1 and new == edges[0])
    if len(edges) < 2:
        return False
    before = edges[-2]
    if _turn(H, before, new) <= SAME or _turn(H, before, last) < 0 or _turn(H, last, new) < 0:
        return False  # the neighbours do not meet in front of this edge
    corner = _crossings(H[[before]], H[[new]])[0]
    return bool(H[last, :2] @ corner + H[last, 2] <= SAME * slack[last])


def _turn(H: Array, i: int, j: int) -> float:
    return float(H[i, 0] * H[j, 1] - H[i, 1] * H[j, 0])


def _parallel(H: Array, i: int, j: int) -> bool:
    return bool(np.abs(H[i, :2] - H[j, :2]).max() <= SAME)


def volume(vertices: Array) -> float:
    """Return the volume of the hull of corners, which are in order in one and two dimensions.

    >>> volume(np.array([[0.0, 0], [2, 0], [2, 1], [0, 1]]))
    2.0
    """
    d = vertices.shape[1]
    if d == 1:
        return float(vertices.max() - vertices.min())
    if d == 2:
        x, y = (vertices - vertices[0]).T
        return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
    from scipy.spatial import ConvexHull

    return float(ConvexHull(vertices).volume)


def hull_halfspaces(points: ArrayLike) -> Array:
    """Return the sides (m, d + 1) of the convex hull of points (n, d).

    Raises:
        ValueError: If the points do not span d dimensions.
    """
    V = np.asarray(points, dtype=np.float64)
    if V.ndim != 2 or 0 in V.shape or not np.isfinite(V).all():
        raise ValueError(f"a hull needs finite points of shape (n, d) with n >= 1; got {V.shape}.")
    d = V.shape[1]
    if len(V) <= d or np.linalg.matrix_rank(V - V.mean(axis=0)) < d:
        raise ValueError(f"{len(V)} points that span fewer than {d} dimensions have a flat hull.")
    if d == 1:
        return np.array([[-1.0, V.min()], [1.0, -V.max()]])
    if d == 2:
        edge = np.diff(ring := _ring(V), axis=0, append=ring[:1])
        normals = np.column_stack([edge[:, 1], -edge[:, 0]])
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        return np.column_stack([normals, -np.einsum("ij,ij->i", normals, ring)])
    from scipy.spatial import ConvexHull

    return _distinct(ConvexHull(V).equations)  # a facet with many corners comes once per simplex


def sample(cell: Cell, inner: Array, n: int, rng: np.random.Generator) -> Array:
    """Draw n points of a bounded cell; see :meth:`Cell.sample`."""
    if cell.dim > MAX_TRIANGULATED_DIM:
        return _hit_and_run(cell.halfspaces, inner, n, rng)
    V = cell.vertices
    simplices = _boundary_simplices(V)
    spans = simplices - inner
    sizes = np.abs(np.linalg.det(spans))
    chosen = rng.choice(len(sizes), size=n, p=sizes / sizes.sum())
    mix = rng.dirichlet(np.ones(cell.dim + 1), size=n)[:, 1:]
    return inner + np.einsum("ni,nij->nj", mix, spans[chosen])


def _boundary_simplices(V: Array) -> Array:
    """Return the boundary in simplices, (s, d, d): cones over them from inside fill the cell."""
    if V.shape[1] == 1:
        return V[:, None, :]
    if V.shape[1] == 2:
        return np.stack([V, np.roll(V, -1, axis=0)], axis=1)
    from scipy.spatial import ConvexHull

    return V[ConvexHull(V).simplices]


def _hit_and_run(H: Array, inner: Array, n: int, rng: np.random.Generator) -> Array:
    """Walk: a random line through the point, then a uniform point on what the cell leaves of it."""
    points, x = np.empty((n, len(inner))), inner.copy()
    for i in range(n):
        for _ in range(HIT_AND_RUN_STEPS_PER_DIM):
            step = rng.standard_normal(len(x))
            slack, speed = -(H[:, :-1] @ x + H[:, -1]), H[:, :-1] @ step
            with np.errstate(divide="ignore"):
                reach = np.maximum(slack, 0.0) / speed
            ahead, behind = reach[speed > 0].min(initial=np.inf), reach[speed < 0].max(initial=-np.inf)
            if not np.isfinite(ahead - behind):
                raise ValueError(
                    "the cell is unbounded and has no uniform points; intersect it with a box."
                )
            x = x + rng.uniform(behind, ahead) * step
        points[i] = x
    return points


def _angles(rows: Array) -> Array:
    return np.arctan2(rows[:, 1], rows[:, 0])


def _crossings(first: Array, second: Array) -> Array:
    """Return where lines cross, pair by pair: (m, 3), (m, 3) -> (m, 2)."""
    (a, b, c), (p, q, r) = first.T, second.T
    turn = a * q - b * p
    return np.column_stack([b * r - c * q, c * p - a * r]) / turn[:, None] + 0.0


def _ring(V: Array) -> Array:
    """Return the corners of the convex hull in the plane, counter-clockwise (monotone chain)."""
    points = np.unique(V, axis=0)
    chains = []
    for ordered in (points, points[::-1]):
        chain: list[Array] = []
        for p in ordered:
            while len(chain) > 1 and np.linalg.det([chain[-1] - chain[-2], p - chain[-1]]) <= 0:
                chain.pop()
            chain.append(p)
        chains += chain[:-1]
    return np.array(chains)


def _qhull_corners(H: Array, inner: Array) -> Array:
    from scipy.spatial import HalfspaceIntersection, QhullError

    try:
        found = HalfspaceIntersection(H, inner)
    except (QhullError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"Qhull found no corners ({reason}): the cell is unbounded or nearly flat."
        ) from None
    if found.dual_equations[:, -1].max() >= 0.0 or not np.isfinite(found.intersections).all():
        raise ValueError(_UNBOUNDED)
    return _distinct(found.intersections)


def _distinct(points: Array) -> Array:
    """Return one of each group of nearly equal rows, in order of first appearance."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    near = SAME * float(np.ptp(points, axis=0).max())
    pairs = cKDTree(points).query_pairs(near, output_type="ndarray")
    n = len(points)
    graph = coo_array((np.ones(len(pairs), dtype=bool), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    _, first = np.unique(connected_components(graph, directed=False)[1], return_index=True)
    return points[np.sort(first)]
