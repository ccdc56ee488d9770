"""Corners that neighbouring cells have in common: the corners of the facet between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array

if TYPE_CHECKING:
    from pindown.geometry.complex.polyhedral import PolyhedralComplex


def shared_corners(
    cells: PolyhedralComplex, pairs: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each pair, the corners of the first cell that are corners of the second as well.

    Cells meet face to face, so these are the corners of the fold.

    Returns:
        Rows of ``cells.cell_vertices``, and where those of each pair start.
    """
    if not len(pairs):
        return np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    ids, starts = cells.vertex_ids, cells.offsets
    n = int(ids.max(initial=0)) + 1
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    known = np.append(np.sort(owner * n + ids), -1)
    counts = np.diff(starts)[pairs[:, 0]]
    pair = np.repeat(np.arange(len(pairs)), counts)
    first = np.repeat(starts[pairs[:, 0]] - np.cumsum(counts) + counts, counts)
    rows = first + np.arange(len(pair))
    wanted = pairs[pair, 1] * n + ids[rows]
    shared = known[np.searchsorted(known[:-1], wanted)] == wanted
    rows, pair = rows[shared], pair[shared]
    parts = np.split(rows, np.searchsorted(pair, np.arange(1, len(pairs))))
    for i, part in enumerate(parts):
        if not len(part):
            parts[i] = _nearest(cells, *pairs[i])
    order = {1: _one, 2: _two_ends, 3: _around}[cells.net.in_features]
    parts = [part[order(cells.cell_vertices[part])] for part in parts]
    return np.concatenate(parts), np.cumsum([0, *map(len, parts)]).astype(np.int64)


def _nearest(cells: PolyhedralComplex, i: int, j: int) -> NDArray[np.int64]:
    """Return the corner of cell i nearest to cell j, for cells too thin to have corners of their own."""
    first = np.arange(cells.offsets[i], cells.offsets[i + 1])
    others = cells.cell_vertices[cells.offsets[j] : cells.offsets[j + 1]]
    gaps = np.abs(cells.cell_vertices[first][:, None] - others).sum(axis=2).min(axis=1)
    return first[[int(gaps.argmin())]]


def _one(corners: Array) -> NDArray[np.int64]:
    """Return the corner of a point."""
    return np.zeros(1, dtype=np.int64)


def _two_ends(corners: Array) -> NDArray[np.int64]:
    """Return the ends of a segment, which may have more corners on it."""
    if len(corners) == 2:
        return np.arange(2)
    far = int(((corners - corners[0]) ** 2).sum(axis=1).argmax())
    return np.array([int(((corners - corners[far]) ** 2).sum(axis=1).argmax()), far])


def _around(corners: Array) -> NDArray[np.int64]:
    """Return the order of a planar polygon's corners in space, around it."""
    if len(corners) <= 3:
        return np.arange(len(corners))
    arms = corners - corners.mean(axis=0)
    plane = np.linalg.svd(arms, full_matrices=False)[2][:2]
    x, y = plane @ arms.T
    return np.argsort(np.arctan2(y, x))


def polygon_area(corners: Array) -> float:
    """Return the area of a planar polygon in space."""
    arms = corners[1:] - corners[0]
    return float(np.linalg.norm(np.cross(arms[:-1], arms[1:]).sum(axis=0))) / 2.0
