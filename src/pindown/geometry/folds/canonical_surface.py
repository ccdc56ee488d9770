r"""Piecewise-linear surfaces in the plane: from a bare picture of folds to levels.

Let S be a union of segments in a convex domain X. Write :math:`\square_k S` for the largest part of S
that k layers could draw: level 1 takes the lines that S covers all across X, level k + 1 the lines that
S covers all across a cell of :math:`X \setminus \square_k S`. The pieces found in this way, each with
its level, are the *canonical representation* of S. It is unique, and for the folds of a network no piece
has a level above the layer it comes from; it can have a lower one.

A line that carries segments is :math:`\{p : n \cdot (p - o) = c\}` with :math:`\|n\| = 1` and o the
centre of the domain; its points are :math:`o + c\, n + t\, \bar n` with :math:`\bar n = (-n_2, n_1)`.
Segments are intervals of t. All comparisons have one tolerance, a length.

Phuong 2021, section 2.4 and Lemmas A.1 to A.6 (the bound in (A.1) read with a minimum).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box, as_box

_Cell: TypeAlias = tuple[Array, NDArray[np.int64]]  # a convex polygon and the lines that may enter it


@dataclass(frozen=True, eq=False, repr=False)
class CanonicalSurface:
    """A union of segments as canonical pieces, each a line across one cell of the levels before it.

    Attributes:
        box: The domain.
        lines: The lines that carry the segments, and how far the segments cover them.
        levels: Level (p,) of each piece, from 1, ascending.
        carriers: Number (p,) of each piece's line.
        ends: End points (p, 2, 2), on the boundary of the cell that the piece crosses.
        rest: End points (r, 2, 2) of what no level explains; empty for the fold-set of a network.
    """

    box: Box
    lines: Lines
    levels: NDArray[np.int64]
    carriers: NDArray[np.int64]
    ends: Array
    rest: Array

    def __len__(self) -> int:
        return len(self.levels)

    @property
    def order(self) -> int:
        """The largest level: how many layers the picture needs at least."""
        return int(self.levels.max(initial=0))

    @cached_property
    def lengths(self) -> Array:
        """Lengths (p,) of the pieces."""
        return np.linalg.norm(self.ends[:, 1] - self.ends[:, 0], axis=1)

    def up_to(self, level: int) -> Array:
        r"""Return the end points of the pieces of :math:`\square_k S`, levels 1 to k."""
        return self.ends[self.levels <= level]

    def __repr__(self) -> str:
        counts = np.bincount(self.levels, minlength=self.order + 1)[1:]
        levels = ", ".join(f"{n} of level {level}" for level, n in enumerate(counts.tolist(), 1))
        left = f"; {len(self.rest)} segments left over" if len(self.rest) else ""
        return f"CanonicalSurface({len(self)} pieces: {levels or 'none'}{left})"


def canonical_surface(
    segments: ArrayLike, box: Box | tuple[ArrayLike, ArrayLike], *, tolerance: float = 1e-8
) -> CanonicalSurface:
    """Sort the segments of a picture into canonical pieces.

    Args:
        segments: End points (n, 2, 2), without labels, in any order; overlaps and cuts do not matter.
        box: The domain.
        tolerance: Segments on one line, gaps in it, and points on a line are recognised up to this share
            of the box's diagonal; shorter segments are left out.

    Returns:
        The pieces with their levels.

    Raises:
        ValueError: If the segments have another shape or leave the box.

    Example:
        A cross, and a ray that ends at it, which is a line across the right half only:

        >>> cross = [[[-1, 0], [1, 0]], [[0, -1], [0, 1]]]
        >>> canonical_surface([*cross, [[0, 0.5], [1, 0.5]]], (-1, 1))
        CanonicalSurface(3 pieces: 2 of level 1, 1 of level 2)

    Phuong 2021, section 2.4, the three steps before (2.8).
    """
    domain = as_box(box, 2)
    lines = merge_segments(segments, domain, tolerance)
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    square = np.where(corners == 0, domain.lower, domain.upper)
    cells = [(square, np.arange(len(lines)))]
    levels: list[int] = []
    carriers: list[int] = []
    ends: list[Array] = []
    level = 0
    while cells:
        level += 1
        later: list[_Cell] = []
        for polygon, candidates in cells:
            across, chords = lines.chords(polygon, candidates)
            whole, partly = lines.covers(across, chords)
            for line, chord in zip(across[whole], chords[whole], strict=True):
                levels.append(level)
                carriers.append(int(line))
                ends.append(lines.at(line, chord))
            if whole.any():  # a cell that no piece crosses is never cut again
                later += _cut(lines, (polygon, across[partly & ~whole]), across[whole])
        cells = later
    found = (
        np.array(levels, dtype=np.int64),
        np.array(carriers, dtype=np.int64),
        np.array(ends).reshape(-1, 2, 2),
    )
    rest = lines.uncovered(found[1], found[2])
    for part in (*found, rest):
        part.flags.writeable = False
    return CanonicalSurface(domain, lines, *found, rest)


def _cut(lines: Lines, cell: _Cell, by: NDArray[np.int64]) -> list[_Cell]:
    """Cut a cell by lines; return the parts that segments of other lines enter, and these lines."""
    parts = [cell] if len(cell[1]) else []
    for line in by:
        after: list[_Cell] = []
        for polygon, candidates in parts:
            halves = lines.cut(polygon, int(line))
            if len(halves) == 1:
                after.append((polygon, candidates))
                continue
            for half in halves:
                across, chords = lines.chords(half, candidates)
                entering = across[lines.covers(across, chords)[1]]
                if len(entering):
                    after.append((half, entering))
        parts = after
    return parts


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines with disjoint covered intervals, sorted by line and position.

    Attributes:
        origin: The point o (2,).
        normals: Unit normals (m, 2).
        offsets: The numbers c (m,).
        starts: The covered intervals of line i are rows ``starts[i]:starts[i + 1]``.
        intervals: Covered intervals (q, 2).
        tolerance: Lengths up to this count as zero.
    """

    origin: Array
    normals: Array
    offsets: Array
    starts: NDArray[np.int64]
    intervals: Array
    tolerance: float

    def __len__(self) -> int:
        return len(self.offsets)

    def heights(self, points: Array, lines: NDArray[np.int64]) -> Array:
        """Return the signed distances of points (v, 2) from lines: (v, len(lines))."""
        return (points - self.origin) @ self.normals[lines].T - self.offsets[lines]

    def positions(self, points: Array, line: int) -> Array:
        """Return t for points (v, 2) on or near a line."""
        normal = self.normals[line]
        return (points - self.origin) @ np.array([-normal[1], normal[0]])

    def at(self, line: int, positions: Array) -> Array:
        """Return the points (v, 2) of a line at positions t (v,)."""
        normal = self.normals[line]
        along = np.array([-normal[1], normal[0]])
        return self.origin + self.offsets[line] * normal + np.asarray(positions)[:, None] * along

    def chords(self, polygon: Array, lines: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array]:
        """Return which lines cross the inside of a convex polygon, and on what interval (n, 2)."""
        h = self.heights(polygon, lines)
        h[np.abs(h) <= self.tolerance] = 0.0
        crosses = (h.max(axis=0) > 0) & (h.min(axis=0) < 0)
        lines, h = lines[crosses], h[:, crosses]
        along = np.stack([-self.normals[lines, 1], self.normals[lines, 0]])
        t = (polygon - self.origin) @ along
        next_t, next_h = np.roll(t, -1, axis=0), np.roll(h, -1, axis=0)
        cut = h * next_h < 0
        share = np.divide(h, h - next_h, out=np.zeros_like(h), where=cut)
        position = np.where(cut, t + share * (next_t - t), t)
        touched = cut | (h == 0)
        low = np.where(touched, position, np.inf).min(axis=0)
        return lines, np.column_stack([low, np.where(touched, position, -np.inf).max(axis=0)])

    def covers(
        self, lines: NDArray[np.int64], chords: Array
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return for each line whether a chord of it is covered all along, and whether in some part."""
        if not len(lines):
            return np.zeros(0, dtype=bool), np.zeros(0, dtype=bool)
        # The first covered interval that ends after the chord's start decides both.
        first = np.searchsorted(self._ends, self._keys(lines, chords[:, 0] + self.tolerance))
        exists = first < self.starts[lines + 1]
        start, stop = self.intervals[np.where(exists, first, 0)].T
        whole = (start <= chords[:, 0] + self.tolerance) & (stop >= chords[:, 1] - self.tolerance)
        return exists & whole, exists & (start < chords[:, 1] - self.tolerance)

    @cached_property
    def _reach(self) -> float:
        return float(np.abs(self.intervals).max(initial=0.0))

    @cached_property
    def _ends(self) -> Array:
        return self._keys(np.repeat(np.arange(len(self)), np.diff(self.starts)), self.intervals[:, 1])

    def _keys(self, lines: NDArray[np.int64], positions: Array) -> Array:
        """Return numbers that sort by line, then by position."""
        return np.asarray(
            lines * 4.0 * self._reach + np.clip(positions, -1.5 * self._reach, 1.5 * self._reach)
        )

    def continues(self, line: int, t: float) -> bool:
        """Return whether the line is covered on both sides of the point t."""
        covered = self.intervals[self.starts[line] : self.starts[line + 1]]
        margin = self.tolerance
        return bool(((covered[:, 0] < t - margin) & (covered[:, 1] > t + margin)).any())

    def cut(self, polygon: Array, line: int) -> list[Array]:
        """Cut a convex polygon by a line into the parts that have an inside."""
        h = self.heights(polygon, np.array([line]))[:, 0]
        h = np.where(np.abs(h) <= self.tolerance, 0.0, h)
        if h.max() <= 0 or h.min() >= 0:
            return [polygon]
        return [_side(polygon, h), _side(polygon, -h)]

    def uncovered(self, carriers: NDArray[np.int64], ends: Array) -> Array:
        """Return the covered parts (r, 2, 2) of all lines that given segments on them leave out."""
        left = []
        for line in range(len(self)):
            taken = np.sort(self.positions(ends[carriers == line], line), axis=1)
            for low, high in self.intervals[self.starts[line] : self.starts[line + 1]]:
                here = taken[(taken[:, 1] > low) & (taken[:, 0] < high)]
                marks = [low, *np.ravel(_union(here, self.tolerance)), high]
                gaps = zip(marks[::2], marks[1::2], strict=True)
                left += [
                    self.at(line, np.array(gap)) for gap in gaps if gap[1] - gap[0] > self.tolerance
                ]
        return np.array(left).reshape(-1, 2, 2)


def merge_segments(segments: ArrayLike, box: Box, relative: float) -> Lines:
    """Find the lines that carry segments (n, 2, 2), and what the segments cover of them.

    Long segments come first: they fix the line best. A segment joins the nearest line that both its
    ends lie on, within ``relative`` times the box's diagonal; others start a line of their own. Then
    each line is drawn again through its two points that are farthest apart.
    """
    given = np.asarray(segments, dtype=np.float64)
    if given.size == 0:
        given = given.reshape(0, 2, 2)
    if given.ndim != 3 or given.shape[1:] != (2, 2):
        raise ValueError(f"segments need end points of shape (n, 2, 2); got {given.shape}.")
    tolerance = _tolerance(relative, box)
    if not np.isfinite(given).all():
        raise ValueError("the end points of segments must be finite.")
    if (given < box.lower - tolerance).any() or (given > box.upper + tolerance).any():
        raise ValueError("the segments leave the box; cut them first, or give a larger box.")
    lengths = np.linalg.norm(given[:, 1] - given[:, 0], axis=1)
    given = (given - box.center)[np.argsort(-lengths, kind="stable")][: int((lengths > tolerance).sum())]
    owners = _assign(given, tolerance)
    normals, offsets, starts, intervals = [], [], [0], []
    for line in range(int(owners.max(initial=-1)) + 1):
        ends = given[owners == line].reshape(-1, 2)
        normal, offset = _through(ends)
        normals.append(normal)
        offsets.append(offset)
        t = (ends @ np.array([-normal[1], normal[0]])).reshape(-1, 2)
        intervals += _union(np.sort(t, axis=1), tolerance)
        starts.append(len(intervals))
    return Lines(
        box.center,
        np.array(normals).reshape(-1, 2),
        np.array(offsets),
        np.array(starts),
        np.array(intervals).reshape(-1, 2),
        tolerance,
    )


def _tolerance(relative: float, box: Box) -> float:
    if not 0 <= relative < 1:
        raise ValueError(f"tolerance is a share of the box's diagonal, at least 0; got {relative}.")
    if (box.lower >= box.upper).any():
        raise ValueError("the box is flat; surfaces need a domain with an inside.")
    return relative * float(np.linalg.norm(box.upper - box.lower))


def _assign(segments: Array, tolerance: float) -> NDArray[np.int64]:
    """Return the number of the line that each segment, longest first, lies on."""
    normals, offsets = np.empty((len(segments), 2)), np.empty(len(segments))
    owners, n = np.empty(len(segments), dtype=np.int64), 0
    for i, ends in enumerate(segments):
        off = np.abs(normals[:n] @ ends.T - offsets[:n, None]).max(axis=1)
        nearest = int(off.argmin()) if n else -1
        if n and off[nearest] <= tolerance:
            owners[i] = nearest
        else:
            normals[n], offsets[n] = _through(ends)
            owners[i], n = n, n + 1
    return owners


def _through(points: Array) -> tuple[Array, float]:
    """Return the line through the two of nearly collinear points (v, 2) that are farthest apart."""
    first = points[np.argmax(((points - points[0]) ** 2).sum(axis=1))]
    second = points[np.argmax(((points - first) ** 2).sum(axis=1))]
    along = second - first
    normal = np.array([along[1], -along[0]]) / np.linalg.norm(along)
    if (normal[0], normal[1]) < (0, 0):
        normal = -normal
    return normal, float(normal @ (first + second)) / 2.0


def _union(intervals: Array, tolerance: float) -> list[tuple[float, float]]:
    """Return the union of intervals (n, 2) as disjoint ones; gaps up to the tolerance are closed."""
    merged: list[tuple[float, float]] = []
    for low, high in sorted(map(tuple, intervals.tolist())):
        if merged and low <= merged[-1][1] + tolerance:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return merged


def _side(polygon: Array, h: Array) -> Array:
    """Return the part of a convex polygon where the heights of its corners, 0 where near 0, are >= 0."""
    after, next_h = np.roll(polygon, -1, axis=0), np.roll(h, -1)
    corners = []
    for p, q, a, b in zip(polygon, after, h, next_h, strict=True):
        if a >= 0:
            corners.append(p)
        if a * b < 0:
            corners.append(p + a / (a - b) * (q - p))
    return np.array(corners)
