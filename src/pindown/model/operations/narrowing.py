r"""What bounds on the rows of an affine map say about what enters it.

Where :math:`y = W x + b` is known to lie in :math:`[p, q]` and x in the box :math:`[l, u]`, let m be the
smallest and M the largest value of a row i on the box. For :math:`w_{ij} > 0`

.. math::
    x_j \;\le\; l_j + \frac{q_i - m_i}{w_{ij}}, \qquad x_j \;\ge\; u_j - \frac{M_i - p_i}{w_{ij}},

and with the two numerators exchanged for :math:`w_{ij} < 0`. Every step is rounded outwards.

Benhamou et al. 1999, "Revising hull and box consistency" (hull consistency).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array, Matrix
from pindown.model.operations.operation import Interval
from pindown.rounding import TINY, UNIT_ROUNDOFF, add_down, add_up

# A row that keeps this share of its width says nothing new: so much is rounding.
_LOOSE = 1.0 - 1e-9


@dataclass(frozen=True, eq=False)
class LinearRows:
    """A matrix by columns, for conclusions from its rows.

    Attributes:
        rows: The row of every entry that is not zero, column after column.
        columns: Its column.
        weights: The entries.
        shape: Shape of the matrix.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    weights: Array
    shape: tuple[int, int]

    @classmethod
    def of(cls, weight: Matrix | Array) -> LinearRows:
        """Take a matrix (out, in)."""
        W = sp.csc_array(weight)
        W.sort_indices()
        W.eliminate_zeros()
        m, d = W.shape
        columns = np.repeat(np.arange(d, dtype=np.intp), np.diff(W.indptr))
        return cls(W.indices.astype(np.intp), columns, np.asarray(W.data), (int(m), int(d)))

    @np.errstate(all="ignore")
    def narrowed(self, box: Interval, own: Interval, value: Interval) -> Interval:
        """Return where in a box (n, d) rows can have given values.

        Args:
            box: Where x lies.
            own: What the rows can be on the box, (n, m), rounded outwards.
            value: What they are known to be, (n, m).
        """
        above, below = add_up(value.upper, -own.lower), add_up(own.upper, -value.lower)
        binding = np.minimum(above, below) < _LOOSE * (own.upper - own.lower)
        used = np.flatnonzero(np.any(binding, axis=0, keepdims=True)[0, self.rows])
        if not len(used):
            return box
        rows, columns, weights = self.rows[used], self.columns[used], self.weights[used]
        first = np.flatnonzero(np.diff(columns, prepend=-1))
        both = np.concatenate([above, below], axis=1)
        m, positive = self.shape[0], weights > 0
        sizes = np.abs(weights)
        up = _least(both, np.where(positive, rows, rows + m), sizes, first)
        down = _least(both, np.where(positive, rows + m, rows), sizes, first)
        low, high = (end.copy() for end in box)
        at = columns[first]
        high[:, at] = np.fmin(high[:, at], add_up(box.lower[:, at], up))
        low[:, at] = np.fmax(low[:, at], add_down(box.upper[:, at], -down))
        return Interval(low, high)

    @np.errstate(all="ignore")
    def pressure(self, box: Interval, own: Interval, value: Interval) -> tuple[Array, Array]:
        r"""Return how much moving every entry up, or down, brings rows to their limits, both (n, d).

        A row that may still move by R before its limit, whose largest step by one entry is t, counts
        :math:`2^{-R / t}`: with one step left it decides something, with many it hardly matters.

        Jeroslow and Wang 1990, "Solving propositional satisfiability problems".
        """
        width = box.upper - box.lower
        n, d = width.shape
        m = self.shape[0]
        reach = own.upper - own.lower
        above, below = value.upper - own.lower, own.upper - value.lower
        steps = np.abs(self.weights) * width[:, self.columns]
        largest = np.zeros((n, m))
        order = np.argsort(self.rows, kind="stable")
        first = np.flatnonzero(np.diff(self.rows[order], prepend=-1))
        if len(first):
            largest[:, self.rows[order][first]] = np.maximum.reduceat(steps[:, order], first, axis=1)
        safe = np.where(largest > 0, largest, 1.0)
        counts = [
            np.where((room < _LOOSE * reach) & (largest > 0), np.exp2(-np.maximum(room, 0) / safe), 0.0)
            for room in (above, below)
        ]
        shares = steps / safe[:, self.rows]
        positive = self.weights > 0
        up = np.where(positive, counts[0][:, self.rows], counts[1][:, self.rows]) * shares
        down = np.where(positive, counts[1][:, self.rows], counts[0][:, self.rows]) * shares
        start = np.flatnonzero(np.diff(self.columns, prepend=-1))
        pressures = np.zeros((2, n, d))
        if len(start):
            at = self.columns[start]
            pressures[0][:, at] = np.add.reduceat(np.nan_to_num(up), start, axis=1)
            pressures[1][:, at] = np.add.reduceat(np.nan_to_num(down), start, axis=1)
        return pressures[0], pressures[1]


def _least(both: Array, which: NDArray[np.intp], sizes: Array, first: NDArray[np.intp]) -> Array:
    """Return for every column the least of numerator over weight, rounded up."""
    steps = both[:, which] / sizes  # a negative one is a contradiction, whatever its size
    steps = np.where(np.isnan(steps), np.inf, steps)
    least = np.minimum.reduceat(steps, first, axis=1)
    return np.asarray(least * (1.0 + 4.0 * UNIT_ROUNDOFF) + TINY)
