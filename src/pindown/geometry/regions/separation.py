r"""Directions in which a cell ends at one chosen side: three ways to find them, cheapest first.

Sides are those of a :class:`ScaledCell`: :math:`q_i \cdot y \le 1`. A direction that runs into side i
before all others shows that it is a facet.

1. *Rays* along :math:`M^{-1} q_i` with :math:`M = \sum_j q_j q_j^T`: long thin cells look round to them.
2. *Separation*: Frank-Wolfe steps (``kernels/separation.py``) turn the ray until side i is first. In few
   dimensions the projection of :math:`q_i` on the hull of the others gives the direction outright.
3. *Linear programs.*

Lacoste-Julien and Jaggi 2015, "On the global linear convergence of Frank-Wolfe optimization variants".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import nnls

from pindown.affine import Array
from pindown.geometry.nearness import RESOLUTION, SAME
from pindown.geometry.regions.cell import linear_program
from pindown.geometry.regions.scaled import Rows, ScaledCell, column_space

Flags = NDArray[np.bool_]

# Steps of separation: most facets need few; many, at 784 inputs, cost as much as the linear program that
# they may save.
FEW_STEPS, MANY_STEPS = 50, 8_000
SMALL_DIM = 64  # up to here, projecting (non-negative least squares) is faster than both
_BATCH_NUMBERS = 2**22  # 32 MB of directions at a time
_FAR = 1.0 / SAME  # times a side's own distance: what begins farther away is parallel to it
_CAP = 2.0  # how far a program may push its side: any number above 1 decides


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
        from pindown.geometry.kernels.separation import separate

        cell, size = self.cell, len(self.gram)
        room = np.empty(size), np.empty(cell.n_sides), np.empty(cell.n_sides, dtype=np.int64)
        batch = max(1, _BATCH_NUMBERS // max(1, size))
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
        bounds = length * np.stack([-1.0 / cell.low, 1.0 / cell.high], axis=1)
        if side >= n:  # the side itself must not stop the program
            bounds[(side - n) // 2, (side - n) % 2] *= _CAP
        found = linear_program(-q / length, rows, limits, bounds)
    else:
        span = column_space(rows.T)  # directions that move no row would only confuse the solver
        bounds = np.tile([-_FAR, _FAR], (span.shape[1], 1))
        found = np.dot(span, linear_program(-(q @ span) / length, rows @ span, limits, bounds))
    return found / length if float(q @ found) > length * (1.0 + SAME) else None


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
