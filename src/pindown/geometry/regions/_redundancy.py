r"""Which half-spaces are facets: the others can go without changing the cell.

Scaled about a point inside (see ``polar.py``), row i is a facet exactly when :math:`q_i` lies outside
the hull of the origin and the other rows. A side that some direction meets before all others is a facet.
There are three ways to find such a direction, cheapest first:

1. *Rays* along :math:`M^{-1} q_i` with :math:`M = \sum_j q_j q_j^T`: long thin cells look round to them.
2. *Separation*: Frank-Wolfe steps (``compiled/frank_wolfe.py``) turn the ray until side i is first. In
   few dimensions the projection of :math:`q_i` on the hull of the others gives the direction outright.
3. *Linear programs.*

The sides that are left are compared, one by one, with the few that the attempts ran into; a direction
that passes all of these shows which sides were missing (Clarkson's algorithm).

Directions are checked in the original numbers before they count. A side that reaches beyond the others
by less than ``SAME``, in units of its own slack, is not a facet.

Clarkson 1994, "More output-sensitive geometric algorithms". Lacoste-Julien and Jaggi 2015, "On the
global linear convergence of Frank-Wolfe optimization variants".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import nnls

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.nearness import RESOLUTION, SAME
from pindown.geometry.regions._hull import interval_rows, polygon_rows
from pindown.geometry.regions._polar import Rows, ScaledCell, column_space, deep_point
from pindown.geometry.regions.cell import box_halfspaces
from pindown.geometry.tuning import (
    DIRECTION_NUMBERS_PER_BLOCK,
    FEW_SEPARATION_STEPS,
    MANY_SEPARATION_STEPS,
    MAX_PROJECTION_DIM,
    MIN_BOXLESS_DIM,
    ROWS_ADDED_AT_ONCE,
)
from pindown.programs import EXACT_OR_ELSE, linear_program

Flags = NDArray[np.bool_]
_FAR = 1.0 / SAME  # times a side's own distance: what begins farther away is parallel to it
_CAP = 2.0  # how far a program may push its side: any number above 1 decides


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
    if d >= MIN_BOXLESS_DIM:
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
    met = separation.try_all(np.arange(cell.n_sides), FEW_SEPARATION_STEPS, facet)
    small = cell.rows.shape[1] <= MAX_PROJECTION_DIM
    if not small:
        met = separation.try_all(np.flatnonzero(~facet), MANY_SEPARATION_STEPS, facet)
    for side in np.flatnonzero(~facet):
        if not facet[side]:
            _settle(cell, int(side), np.flatnonzero(facet[:n]) if small else met[int(side)], facet)
    return np.flatnonzero(facet)


def _settle(cell: ScaledCell, side: int, working: Rows, facet: Flags) -> None:
    """Decide one side by growing the set of rows it is compared with; mark every facet that shows."""
    ahead = ahead_by_projection if cell.rows.shape[1] <= MAX_PROJECTION_DIM else ahead_by_program
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
        worst = missing[np.argsort(-rates[missing])][:ROWS_ADDED_AT_ONCE]
        working = np.concatenate([working, worst])


class Separation:
    """Rays and separation, for many sides at once."""

    def __init__(self, cell: ScaledCell) -> None:
        basis = cell.basis
        M = cell.rows.T @ cell.rows
        ridge = cell.low**2 + cell.high**2 if len(cell.low) else RESOLUTION * np.trace(M)
        M[np.diag_indices_from(M)] += ridge
        self.cell, self.directions = cell, cho_solve(cho_factor(M), basis.T).T
        self.gram = np.ascontiguousarray(basis @ self.directions.T)

    def try_all(
        self, sides: Rows, max_steps: int, facet: Flags, directions: Array | None = None
    ) -> dict[int, Rows]:
        """Mark the facets that show; return for the other sides the rows that the steps ran into.

        The direction that shows facet i goes to ``directions[i]`` if that is given.
        """
        from pindown.geometry._compiled.frank_wolfe import separate

        cell, size = self.cell, len(self.gram)
        room = np.empty(size), np.empty(cell.n_sides), np.empty(cell.n_sides, dtype=np.int64)
        batch = max(1, DIRECTION_NUMBERS_PER_BLOCK // max(1, size))
        met = {}
        for start in range(0, len(sides), batch):
            tried = sides[start : start + batch]
            residuals, steps = np.empty((len(tried), size)), np.empty(len(tried), dtype=np.int64)
            separate(self.gram, cell.low, cell.high, tried, max_steps, SAME, *room, residuals, steps)
            along = residuals @ self.directions
            facet[tried] = first_met(cell, along, tried)
            if directions is not None:
                directions[tried] = along
            for i in np.flatnonzero(~facet[tried]):
                met[int(tried[i])] = np.flatnonzero(residuals[i, : len(cell.rows)] < 0.0)
        return met


def first_met(cell: ScaledCell, directions: Array, sides: Rows) -> Flags:
    """Return for each direction whether it meets its own side clearly before all others."""
    rates = cell.rates(directions)
    at = np.arange(len(sides)), sides
    own = rates[at].copy()
    rates[at] = 0.0
    return own > rates.max(axis=1, initial=0.0) * (1.0 + SAME)


def ahead_by_program(cell: ScaledCell, side: int, working: Rows) -> Array | None:
    """Return a direction that meets ``side`` before the box and the working rows, if there is one."""
    q, n = cell.side(side), len(cell.rows)
    length = np.linalg.norm(q)
    # In units of 1 / |q|, with rows of length one: sides may be much nearer or farther than others.
    rows = np.concatenate([cell.rows[working], q[None]])
    lengths = np.linalg.norm(rows, axis=1)
    rows, limits = rows / lengths[:, None], np.append(np.ones(len(working)), _CAP) * length / lengths
    if len(cell.low):
        ends = length * np.stack([-1.0 / cell.low, 1.0 / cell.high], axis=1)
        if side >= n:  # the side itself must not stop the program
            ends[(side - n) // 2, (side - n) % 2] *= _CAP
        found = _minimum(-q / length, rows, limits, ends)
    else:
        span = column_space(rows.T)  # directions that move no row would only confuse the solver
        ends = np.tile([-_FAR, _FAR], (span.shape[1], 1))
        found = np.dot(span, _minimum(-(q @ span) / length, rows @ span, limits, ends))
    return found / length if float(q @ found) > length * (1.0 + SAME) else None


def _minimum(cost: Array, rows: Array, limits: Array, ends: Array) -> Array:
    """Minimise ``cost . x`` subject to ``rows x <= limits`` and ends of x."""
    found = linear_program(
        cost, rows, limits, lower=ends[:, 0], upper=ends[:, 1], attempts=EXACT_OR_ELSE
    )
    return found.optimum(f"a linear program over {len(rows)} rows")


def ahead_by_projection(cell: ScaledCell, side: int, working: Rows) -> Array | None:
    """Return the same, as what is missing from q to the hull of the others and the origin."""
    q, n = cell.side(side), len(cell.rows)
    d, used = len(q), len(working)
    length = float(np.linalg.norm(q))
    columns = np.zeros((d + 1, used + 2 * len(cell.low) + 1))  # the last one is the origin
    columns[:-1, :used] = cell.rows[working].T
    columns[-1] = length  # makes the weights sum to one
    if len(cell.low):
        k = np.arange(d)
        columns[k, used + 2 * k], columns[k, used + 2 * k + 1] = -cell.low, cell.high
        if side >= n:
            columns[:-1, used + side - n] = 0.0  # not itself: another origin
    target = np.append(q, length)
    try:
        weights, distance = nnls(columns, target)
    except RuntimeError:  # too many iterations
        return ahead_by_program(cell, side, working)
    return (target - columns @ weights)[:-1] if distance > RESOLUTION * length else None
