"""Some cells out of many: rows of ragged arrays, and sets of patterns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.box import Box
from pindown.geometry.complex.cells import Cells
from pindown.geometry.nearness import same_place

# Determinant of the covariance over its trace to the power d: a cell as flat as this is a millionth as
# thick as it is long, far more than rounding can do and far less than cells are as a rule.
_FLAT = 1e-12

# Cells are numbered up to a million at a time, and the sum of number and place rounds to less than this.
_CLOSE = 4.0

_TINY = 2.0**-1022

Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]


def select(cells: Cells, wanted: Bools) -> Cells:
    """Return the cells that ``wanted`` (n,) marks, copied."""
    vertices = np.repeat(wanted, np.diff(cells.vertex_starts))
    facets = np.repeat(wanted, np.diff(cells.facet_starts))
    return Cells(
        hidden_widths=cells.hidden_widths,
        vertex_starts=_starts(np.diff(cells.vertex_starts)[wanted]),
        facet_starts=_starts(np.diff(cells.facet_starts)[wanted]),
        coords=cells.coords[vertices],
        facets=cells.facets[facets],
        masks=None if cells.masks is None else cells.masks[vertices],
        patterns=cells.patterns[wanted],
        keys=cells.keys[wanted],
        hashes=cells.hashes,
        flips=cells.flips,
        maps=cells.maps[wanted],
    )


def with_facet_in(cells: Cells, labels: NDArray[np.int64]) -> Bools:
    """Return for each cell whether one of its facets has one of the labels."""
    if not len(labels) or not cells.n:
        return np.zeros(cells.n, bool)
    hits = np.isin(cells.facets, labels)
    return np.logical_or.reduceat(hits, cells.facet_starts[:-1])


def touching(cells: Cells, coordinate: int, place: float, width: float) -> Bools:
    """Return for each cell whether a vertex of it is next to the plane ``x[coordinate] = place``."""
    if not cells.n:
        return np.zeros(0, bool)
    near = np.abs(cells.coords[:, coordinate] - place) <= width
    return np.logical_or.reduceat(near, cells.vertex_starts[:-1])


def doubtful(cells: Cells, box: Box) -> Bools:
    """Return for each cell whether rounding may have had a say in it: too thin, or vertices too close.

    Lengths are shares of the sides of the box. Vertices are compared along one direction, and thickness
    is measured by the covariance of the vertices; both may find more than there is, which does no harm.
    """
    if not cells.n:
        return np.zeros(0, bool)
    d, starts, counts = cells.dim, cells.vertex_starts[:-1], np.diff(cells.vertex_starts)
    points = cells.coords / (box.upper - box.lower)
    owner = np.repeat(np.arange(cells.n), counts)
    along = points @ np.random.default_rng(0).standard_normal(d)
    along = (along - along.min()) / (np.ptp(along) + _TINY)
    order = np.argsort(2.0 * owner + along)  # one key: several times faster than sorting by two
    close = (np.abs(np.diff(along[order])) <= _CLOSE * same_place(box)) & (np.diff(owner) == 0)
    found = np.zeros(cells.n, bool)
    found[owner[1:][close]] = True
    points -= (np.add.reduceat(points, starts) / counts[:, None])[owner]
    spread = np.empty((cells.n, d, d))
    for i in range(d):
        for j in range(i + 1):
            spread[:, i, j] = spread[:, j, i] = np.add.reduceat(points[:, i] * points[:, j], starts)
    size = np.trace(spread, axis1=1, axis2=2)
    return found | (np.linalg.det(spread) <= _FLAT * size**d)


def distinct(patterns: Words) -> Words:
    """Return the different rows of packed patterns, ascending: near ones share their way through a walk.

    >>> distinct(np.array([[2, 1], [0, 5], [2, 1]], dtype=np.uint64))
    array([[0, 5],
           [2, 1]], dtype=uint64)
    """
    if patterns.shape[1] == 0:
        return patterns[:1]
    # Rows compare byte by byte, and walks split by the last units of a layer first.
    rows = np.unique(as_rows(patterns.byteswap()))
    return rows.view(np.uint64).reshape(-1, patterns.shape[1]).byteswap()


def is_among(patterns: Words, others: Words) -> Bools:
    """Return for each packed pattern whether it is one of ``others``."""
    if patterns.shape[1] == 0:
        return np.full(len(patterns), len(others) > 0)
    return np.isin(as_rows(patterns), as_rows(others))


def as_rows(patterns: Words) -> NDArray[np.void]:
    """View rows as single values, which sort and compare byte by byte."""
    rows = np.ascontiguousarray(patterns)
    return rows.view(np.dtype((np.void, 8 * patterns.shape[1]))).reshape(len(patterns))


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
