r"""Which half-spaces are facets: the others can go without changing the cell.

Scaled about a point inside (see ``scaled.py``), row i is a facet exactly when :math:`q_i` lies outside
the hull of the origin and the other rows. A side that some direction meets first is a facet
(``separation.py``). The sides that are left are compared, one by one, with the few that the attempts
ran into; a direction that passes all of these shows which sides were missing (Clarkson's algorithm).

Directions are checked in the original numbers before they count. A side that reaches beyond the others
by less than ``SAME``, in units of its own slack, is not a facet.

Clarkson 1994, "More output-sensitive geometric algorithms".
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.nearness import SAME
from pindown.geometry.regions.cell import box_halfspaces
from pindown.geometry.regions.hull import interval_rows, polygon_rows
from pindown.geometry.regions.scaled import Rows, ScaledCell, column_space, deep_point
from pindown.geometry.regions.separation import (
    FEW_STEPS,
    MANY_STEPS,
    SMALL_DIM,
    Flags,
    Separation,
    ahead_by_program,
    ahead_by_projection,
    first_met,
)

LARGE_DIM = 32  # from here on it pays to look at the rows without the box first
_MOST_ADDED = 16  # violated rows that join a comparison at once


def facet_rows(halfspaces: Array, inner: Array, box: Box | None = None) -> Rows:
    """Return which rows are facets of the cell, ascending.

    Args:
        halfspaces: Unit rows (m, d + 1).
        inner: A point strictly inside all rows and the box.
        box: If given, the cell is cut to it; side k of the box (x_1 >= l_1, x_1 <= u_1, x_2 >= ...)
            has row number m + k.

    Returns:
        Row numbers. Of rows with the same side one is returned: a side of the box if there is one,
        else the first.

    >>> square = np.array([[1.0, 0, -1], [-1, 0, 0], [0, 1, -1], [0, -1, 0], [0.6, 0.8, -5]])
    >>> facet_rows(square, np.array([0.5, 0.5]))
    array([0, 1, 2, 3])
    """
    m, d = len(halfspaces), len(inner)
    if d <= 2:
        return _rows_on_line_or_plane(halfspaces, inner, box)
    cell = ScaledCell.around(halfspaces, deep_point(halfspaces, inner, box), box).nearest_of_parallel()
    if box is None:
        return np.sort(cell.names[_without_box(cell)])
    cell = cell.keep(_not_screened(cell))
    if d >= LARGE_DIM:
        cell = cell.keep(_without_box(cell.without_box()))
    chosen, n = _facets(cell), len(cell.rows)
    return np.sort(np.concatenate([cell.names[chosen[chosen < n]], m + chosen[chosen >= n] - n]))


def _rows_on_line_or_plane(halfspaces: Array, inner: Array, box: Box | None) -> Rows:
    # The box first, so that its sides win against rows that lie on them.
    sides = np.zeros((0, len(inner) + 1)) if box is None else box_halfspaces(box)
    rows = np.concatenate([sides, halfspaces])
    if len(inner) == 1:
        chosen = np.array([row for row in interval_rows(rows) if row is not None], dtype=np.int64)
    else:
        chosen = polygon_rows(rows, inner)
    return np.sort((chosen - len(sides)) % max(len(rows), 1))


def _not_screened(cell: ScaledCell) -> Rows:
    """Return the rows that can be met inside the box at all."""
    highest = np.where(cell.rows > 0, cell.rows / cell.high, -cell.rows / cell.low).sum(axis=1)
    return np.flatnonzero(highest > 1.0 + SAME)


def _without_box(cell: ScaledCell) -> Rows:
    """Return the facets among rows alone, ascending, after splitting off independent rows.

    A row outside the span of the others can be moved through without moving the others: it is a facet
    and says nothing about the rest, whose span then often has a much smaller dimension.
    """
    if not len(cell.rows):
        return np.zeros(0, dtype=np.int64)
    alone, rest, span = independent_rows(cell.rows)
    if not len(rest):
        return alone
    smaller = ScaledCell(cell.rows[rest] @ span, cell.names[rest], cell.low, cell.high)
    return np.sort(np.concatenate([alone, rest[_facets(smaller)]]))


def independent_rows(rows: Array) -> tuple[Rows, Rows, Array]:
    """Split rows into those outside the span of all others, and the rest with a basis of its span.

    Returns:
        Numbers of the former, of the latter, and an orthonormal basis (d, rank).
    """
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    alone = (column_space(unit) ** 2).sum(axis=1) > 1.0 - SAME
    rest = np.flatnonzero(~alone)
    span = column_space(unit[rest].T) if len(rest) else np.zeros((rows.shape[1], 0))
    return np.flatnonzero(alone), rest, span


def _facets(cell: ScaledCell) -> Rows:
    """Return the sides that are facets, ascending."""
    facet, n = np.zeros(cell.n_sides, dtype=bool), len(cell.rows)
    separation = Separation(cell)
    met = separation.try_all(np.arange(cell.n_sides), FEW_STEPS, facet)
    small = cell.rows.shape[1] <= SMALL_DIM
    if not small:
        met = separation.try_all(np.flatnonzero(~facet), MANY_STEPS, facet)
    for side in np.flatnonzero(~facet):
        if not facet[side]:
            _settle(cell, int(side), np.flatnonzero(facet[:n]) if small else met[int(side)], facet)
    return np.flatnonzero(facet)


def _settle(cell: ScaledCell, side: int, working: Rows, facet: Flags) -> None:
    """Decide one side by growing the set of rows it is compared with; mark every facet that shows."""
    ahead = ahead_by_projection if cell.rows.shape[1] <= SMALL_DIM else ahead_by_program
    while (direction := ahead(cell, side, working)) is not None:
        rates = cell.rates(direction[None])[0]
        first = int(np.argmax(rates))
        facet[first] |= bool(first_met(cell, direction[None], np.array([first]))[0])
        if facet[side]:
            return
        faster = np.flatnonzero(rates[: len(cell.rows)] > rates[side] * (1.0 - SAME))
        missing = np.setdiff1d(faster, [*working, side])
        if not len(missing):
            if ahead is ahead_by_program:
                return  # ahead of the others by less than rounding tells
            ahead = ahead_by_program  # squares lose half the digits: a thin facet needs the other way
        worst = missing[np.argsort(-rates[missing])][:_MOST_ADDED]
        working = np.concatenate([working, worst])
