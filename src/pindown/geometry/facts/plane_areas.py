r"""Where in the plane one output is the largest, or a value lies between two levels: exact areas.

On a cell the outputs are affine, so :math:`\{f_k \ge f_j\}` and :math:`\{f_k \ge t\}` cut it along
straight lines; the areas of all cells together are those of the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.validation import integer, refuse

Row = Sequence[float]  # x, y, then the outputs there


@dataclass(frozen=True, eq=False, repr=False)
class Areas:
    """Convex polygons that tile the plane's box, each within one cell and with one label.

    Attributes:
        corners: Corners of all polygons, counter-clockwise, one polygon after the other, (P, 2).
        offsets: Polygon i has the corners ``offsets[i] : offsets[i + 1]``, (n + 1,).
        labels: Class or band of each polygon, (n,).
        cells: The cell that each polygon is part of, (n,).
    """

    corners: Array
    offsets: NDArray[np.int64]
    labels: NDArray[np.int64]
    cells: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def polygon(self, i: int) -> Array:
        """Return the corners of polygon i, (m, 2)."""
        return self.corners[self.offsets[i] : self.offsets[i + 1]]

    @property
    def sizes(self) -> Array:
        """Area of each polygon, (n,)."""
        if not len(self):
            return np.zeros(0)
        here = self.corners - np.repeat(self.corners[self.offsets[:-1]], np.diff(self.offsets), axis=0)
        after = np.arange(1, len(here) + 1)
        after[self.offsets[1:] - 1] = self.offsets[:-1]
        cross = here[:, 0] * here[after, 1] - here[:, 1] * here[after, 0]
        return np.add.reduceat(cross, self.offsets[:-1]) / 2

    def __repr__(self) -> str:
        return f"Areas({len(self):,} polygons, {len(np.unique(self.labels)):,} labels)"


def class_areas(cx: PolyhedralComplex) -> Areas:
    """Cut cells in the plane by which output is the largest; for one output, by whether it is positive.

    Args:
        cx: The cells of a network with two inputs.

    Returns:
        Polygons labelled with the class.

    Example:
        Of ``(x, y)`` the first is larger below the diagonal, on half of the square:

        >>> from pindown import ReluNetwork
        >>> from pindown.geometry.complex.polyhedral import polyhedral_complex
        >>> net = ReluNetwork.from_layers([([[1.0, 0], [0, 1]], [0, 0])])
        >>> areas = class_areas(polyhedral_complex(net, (0, 1)))
        >>> areas.labels, areas.sizes
        (array([0, 1]), array([0.5, 0.5]))
    """
    values = _values_at_corners(cx)
    if values.shape[1] == 1:
        return _banded(cx, values, [0.0])
    starts = cx.offsets[:-1]
    # One class for a whole cell if it is not beaten at any corner: gaps are affine.
    slack = values - values.max(axis=1, keepdims=True)
    worst = np.minimum.reduceat(slack, starts, axis=0) if len(starts) else slack
    best = worst.argmax(axis=1)
    whole = np.where(worst[np.arange(len(worst)), best] >= 0.0, best, -1)
    return _assembled(cx, values, whole, _winners)


def level_areas(cx: PolyhedralComplex, levels: ArrayLike, *, output: int = 0) -> Areas:
    """Cut cells in the plane where one output passes given levels.

    Args:
        cx: The cells of a network with two inputs.
        levels: Ascending numbers; band j lies between levels j - 1 and j.
        output: Which output.

    Returns:
        Polygons labelled with the band, 0 to ``len(levels)``.
    """
    steps = np.asarray(levels, dtype=np.float64)
    if steps.ndim != 1 or not np.isfinite(steps).all() or not (np.diff(steps) > 0).all():
        refuse("levels", "finite numbers in ascending order", levels)
    values = _values_at_corners(cx)
    chosen = integer("output", output, least=0, most=values.shape[1] - 1)
    return _banded(cx, values[:, [chosen]], steps.tolist())


def _values_at_corners(cx: PolyhedralComplex) -> Array:
    """Return the outputs at every corner of every cell, by the cell's own map, (P, k)."""
    if cx.net.in_features != 2:
        raise ValueError(
            f"areas are drawn in the plane; the network takes {cx.net.in_features} inputs. "
            "Restrict it with on_plane first."
        )
    owner = np.repeat(np.arange(cx.n_regions), np.diff(cx.offsets))
    return np.einsum("pkd,pd->pk", cx.A[owner], cx.cell_vertices) + cx.c[owner]


def _banded(cx: PolyhedralComplex, values: Array, levels: list[float]) -> Areas:
    starts = cx.offsets[:-1]
    lowest, highest = (
        pick.reduceat(values[:, 0], starts) if len(starts) else np.zeros(0)
        for pick in (np.minimum, np.maximum)
    )
    low, high = np.searchsorted(levels, lowest, "right"), np.searchsorted(levels, highest, "left")
    return _assembled(cx, values, np.where(high <= low, high, -1), lambda rows: _bands(rows, levels))


def _assembled(
    cx: PolyhedralComplex,
    values: Array,
    whole: NDArray[np.int64],
    split: Callable[[list[Row]], Iterable[tuple[int, list[Row]]]],
) -> Areas:
    """Keep the cells that have one label, and split the others."""
    kept = np.flatnonzero(whole >= 0)
    counts = np.diff(cx.offsets)
    corners = [cx.cell_vertices[np.repeat(whole >= 0, counts)]]
    lengths, labels, cells = [counts[kept]], [whole[kept]], [kept]
    rows = np.concatenate([cx.cell_vertices, values], axis=1)
    for cell in np.flatnonzero(whole < 0):
        parts = list(split(rows[cx.offsets[cell] : cx.offsets[cell + 1]].tolist()))
        corners += [np.array(part)[:, :2] for _, part in parts]
        lengths.append(np.array([len(part) for _, part in parts], dtype=np.int64))
        labels.append(np.array([label for label, _ in parts], dtype=np.int64))
        cells.append(np.full(len(parts), cell))
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    return Areas(np.concatenate(corners), offsets, np.concatenate(labels), np.concatenate(cells))


def _winners(rows: list[Row]) -> Iterable[tuple[int, list[Row]]]:
    """Yield the parts of a polygon where each output is the largest."""
    k = len(rows[0]) - 2
    for winner in range(k):
        part = rows
        for other in range(k):
            gaps = [row[2 + winner] - row[2 + other] for row in part]
            if other != winner and (winner > other or any(gaps)):  # of equals the first wins
                part = _above(part, gaps)
            if not part:
                break
        else:
            yield winner, part


def _bands(rows: list[Row], levels: Sequence[float]) -> Iterable[tuple[int, list[Row]]]:
    """Yield the parts of a polygon between consecutive levels of its one output."""
    rest = rows
    for band, level in enumerate(levels):
        below = _above(rest, [level - row[2] for row in rest])
        if below:
            yield band, below
        rest = _above(rest, [row[2] - level for row in rest])
        if not rest:
            return
    yield len(levels), rest


def _above(rows: list[Row], heights: Sequence[float]) -> list[Row]:
    """Return the part of a convex polygon where an affine function is not negative; [] if it is flat.

    Sutherland, Hodgman 1974, for one line; everything in a row is affine and is interpolated with it.
    """
    if min(heights) >= 0.0:
        return rows if max(heights) > 0.0 else []
    if max(heights) <= 0.0:
        return []
    part: list[Row] = []
    for i, (row, height) in enumerate(zip(rows, heights, strict=True)):
        before, below = rows[i - 1], heights[i - 1]
        if (height > 0.0 > below) or (height < 0.0 < below):
            share = below / (below - height)
            part.append([a + share * (b - a) for a, b in zip(before, row, strict=True)])
        if height >= 0.0:
            part.append(row)
    return part if len(part) > 2 else []
