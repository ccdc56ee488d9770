"""Where a function that is affine on every cell vanishes: its corners on edges and vertices."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.facts.vertex_values import Ids, cell_edges, value_ties, vertex_values


@dataclass(frozen=True, eq=False)
class Nodes:
    """Corners of a level set, and which cells they belong to.

    Attributes:
        points: A point for each vertex of the complex, then for each edge that is crossed, (V + E, d).
        cells: Cells, ascending, (q,); flat ones are left out.
        ids: Rows of ``points`` at which the level set meets that cell, (q,).
        flat: Cells on which all vertices are at the level.
    """

    points: Array
    cells: Ids
    ids: Ids
    flat: Ids


def level_signs(cx: PolyhedralComplex, output: int, level: float) -> tuple[NDArray[np.int8], Array]:
    """Return an output minus a level at all vertices: signs, 0 within rounding, and values."""
    if not isfinite(level):
        raise ValueError(f"a level is a finite number; got {level}.")
    heights = vertex_values(cx)[:, output] - level
    signs = np.where(np.abs(heights) <= value_ties(cx.net, cx.box)[output], 0, np.sign(heights))
    return signs.astype(np.int8), heights


def section_nodes(cx: PolyhedralComplex, signs: NDArray[np.int8], heights: Array) -> Nodes:
    """Find where the zero set of a function, affine on every cell, meets vertices and edges."""
    ids, n = cx.vertex_ids, len(signs)
    owner = np.repeat(np.arange(cx.n_regions), np.diff(cx.offsets))
    rows = cell_edges(cx.cells)
    rows = rows[signs[ids[rows[:, 0]]] * signs[ids[rows[:, 1]]] < 0]
    pairs, number = np.unique(np.sort(ids[rows], axis=1), axis=0, return_inverse=True)
    a, b = pairs.T
    share = (heights[a] / (heights[a] - heights[b]))[:, None]
    crossings = (1.0 - share) * cx.vertices[a] + share * cx.vertices[b]
    at_zero = signs[ids] == 0
    found = np.stack(
        [
            np.concatenate([owner[rows[:, 0]], owner[at_zero]]),
            np.concatenate([n + number.reshape(-1), ids[at_zero]]),
        ]
    )
    cells, nodes = np.unique(found, axis=1)
    elsewhere = np.ones(cx.n_regions, bool)
    elsewhere[owner[~at_zero]] = False
    keep = ~elsewhere[cells]
    return Nodes(
        np.vstack([cx.vertices, crossings]), cells[keep], nodes[keep], np.flatnonzero(elsewhere)
    )


def section_parts(cx: PolyhedralComplex, output: int, nodes: Nodes) -> tuple[Ids, Ids, Ids]:
    """Return the cell and the corners of every part; one that two cells share comes once."""
    d = cx.net.in_features
    cells, first, counts = np.unique(nodes.cells, return_index=True, return_counts=True)
    seen: set[tuple[int, ...]] = set()
    owners, rows, sizes = [], [], [0]
    for cell, at, count in zip(cells, first, counts, strict=True):
        own = nodes.ids[at : at + count]
        for part in _cell_parts(own, nodes.points, cx.A[cell, output], d):
            key = tuple(sorted(part.tolist()))
            if key not in seen:
                seen.add(key)
                owners.append(cell)
                rows.append(part)
                sizes.append(len(part))
    flat_rows = np.concatenate([np.zeros(0, np.int64), *rows])
    return np.array(owners, dtype=np.int64), flat_rows, np.cumsum(sizes)


def _cell_parts(own: Ids, points: Array, slope: Array, d: int) -> list[Ids]:
    """Return the parts of the level set in one cell as rows of points."""
    if len(own) < d:
        return []
    if d == 1:
        return [own[i : i + 1] for i in range(len(own))]
    if d == 2:
        along = np.array([slope[1], -slope[0]])  # larger values on the left
        order = own[np.argsort(points[own] @ along, kind="stable")]
        return [order[i : i + 2] for i in range(len(own) - 1)]
    return [own[_around(points[own])]]


def polytope_volume(corners: Array) -> float:
    """Return the volume of the hull of corners in any order; 0 if it is flat to rounding."""
    from scipy.spatial import QhullError

    from pindown.geometry.regions.hull import volume

    if corners.shape[1] == 2:
        arms = corners - corners.mean(axis=0)
        return volume(corners[np.argsort(np.arctan2(arms[:, 1], arms[:, 0]))])
    try:
        return volume(corners)
    except QhullError:  # thinner than rounding
        return 0.0


def _around(corners: Array) -> Ids:
    """Return the order of a planar polygon's corners in space, around it."""
    arms = corners - corners.mean(axis=0)
    plane = np.linalg.svd(arms, full_matrices=False)[2][:2]
    x, y = plane @ arms.T
    return np.argsort(np.arctan2(y, x))
