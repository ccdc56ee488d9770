"""A point on each facet of a cell, off all others: where to cross to the next cell."""

from __future__ import annotations

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.regions.redundancy import LARGE_DIM, independent_rows
from pindown.geometry.regions.scaled import ScaledCell, deep_point
from pindown.geometry.regions.separation import (
    FEW_STEPS,
    MANY_STEPS,
    SMALL_DIM,
    Separation,
    ahead_by_program,
    ahead_by_projection,
    first_met,
)


def facet_points(halfspaces: Array, inner: Array, box: Box | None = None) -> Array:
    """Return for each facet a point on it that is strictly inside all other rows and the box.

    Args:
        halfspaces: Unit rows (m, d + 1), all of them facets.
        inner: A point strictly inside.
        box: The box that cuts the cell, or None.

    >>> facet_points(np.array([[1.0, -1.0], [-1.0, 0.0]]), np.array([0.3])).ravel().round(12)
    array([1., 0.])
    """
    m, d = len(halfspaces), len(inner)
    if not m:
        return np.zeros((0, d))
    center = deep_point(halfspaces, inner, box)
    cell = ScaledCell.around(halfspaces, center, box)
    directions = _directions(cell) if box is not None or d < LARGE_DIM else _directions_without_box(cell)
    rates = np.einsum("ij,ij->i", directions, cell.rows)
    return center + directions / rates[:, None] + 0.0


def _directions(cell: ScaledCell) -> Array:
    """Return for each row a direction that meets it before all other sides, (n, d)."""
    rows, facet = np.arange(len(cell.rows)), np.zeros(cell.n_sides, dtype=bool)
    directions = np.zeros_like(cell.rows)
    separation, small = Separation(cell), cell.rows.shape[1] <= SMALL_DIM
    for max_steps in (FEW_STEPS,) if small else (FEW_STEPS, MANY_STEPS):
        separation.try_all(rows[~facet[rows]], max_steps, facet, directions)
    for row in rows[~facet[rows]]:
        others = np.delete(rows, row)
        for ahead in (ahead_by_projection, ahead_by_program) if small else (ahead_by_program,):
            found = ahead(cell, int(row), others)
            if found is not None and first_met(cell, found[None], np.array([row]))[0]:
                directions[row] = found
                break
        else:
            raise ArithmeticError(
                f"row {row} was given as a facet, but no point of the cell lies on it."
            )
    return directions


def _directions_without_box(cell: ScaledCell) -> Array:
    """Return the same in the span of the rows that depend on each other, which is often small."""
    alone, rest, span = independent_rows(cell.rows)
    directions = np.zeros_like(cell.rows)
    if len(rest):
        smaller = ScaledCell(cell.rows[rest] @ span, cell.names[rest], cell.low, cell.high)
        directions[rest] = _directions(smaller) @ span.T
    # Directions orthogonal to that span move the independent rows at will: here, one of them or none.
    free = cell.rows[alone] - (cell.rows[alone] @ span) @ span.T
    push = np.linalg.pinv(free)  # (d, n_alone)
    directions[rest] -= (directions[rest] @ cell.rows[alone].T) @ push.T
    directions[alone] = push.T
    return directions
