r"""Piecewise-linear surfaces in the plane: from a bare picture of folds to levels.

Let S be a union of segments in a convex domain X. Write :math:`\square_k S` for the largest part of S
that k layers could draw: level 1 takes the lines that S covers all across X, level k + 1 the lines that
S covers all across a cell of :math:`X \setminus \square_k S`. The pieces found in this way, each with
its level, are the *canonical representation* of S. It is unique, and for the folds of a network no piece
has a level above the layer it comes from; it can have a lower one.

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
from pindown.geometry.folds.collinear import Lines, merge_segments

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
