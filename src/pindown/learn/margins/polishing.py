r"""The last digits of a support vector machine: a guess of the support, then one linear system.

With the samples at 0 and at C known, the others satisfy :math:`y_i(f(x_i) + b) = 1` and
:math:`\sum_j y_j\alpha_j = 0`, which are linear. Samples that break a condition change sides, and the
system is solved anew: the primal-dual active set method. What it returns is judged by its duality gap.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pindown.affine import Array

_AT_END = 1e-8  # of C (or the largest multiplier): closer than that a solver's multiplier is at the end
_BROKEN = 1e-10  # of the margin: conditions broken by less are rounding
_ALL_AT_ONCE = 15  # rounds in which all samples that break a condition change sides, then one by one
_MAX_CHANGES = 120  # systems solved before the guess is given up
_MOST_FREE = 400  # samples on the margin up to which a dense system is solved


def polish(K: Array, y: Array, coefficients: Array, C: float) -> tuple[Array, float] | None:
    """Return signed multipliers and offset with exact optimality conditions, or None if none were found.

    Args:
        K: Gram matrix (n, n).
        y: Labels -1 and 1.
        coefficients: Signed multipliers of a solver, whose support is the first guess.
        C: Price of slack, possibly infinite.

    Returns:
        Multipliers times labels and the offset, or None.

    Example:
        >>> K, y = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([1.0, -1.0])
        >>> multipliers, offset = polish(K, y, np.array([0.4, -0.4]), np.inf)
        >>> multipliers.round(9), abs(round(offset, 9))
        (array([ 0.5, -0.5]), 0.0)

    Lecture course, slides on support vectors; the method is standard.
    """
    alpha = y * coefficients
    rounding = _AT_END * (C if np.isfinite(C) else max(float(alpha.max()), np.finfo(float).tiny))
    bound = alpha >= C - rounding
    free = (alpha > rounding) & ~bound
    for change in range(_MAX_CHANGES):
        if not free.any() or free.sum() > _MOST_FREE:
            return None
        signed, offset = _with_sides(K, y, free, bound, C)
        alpha, margins = y * signed, y * (K @ signed + offset)
        low, high = free & (alpha < 0), free & (alpha > C)
        short, wide = ~free & ~bound & (margins < 1 - _BROKEN), bound & (margins > 1 + _BROKEN)
        if not (low | high | short | wide).any():
            return signed, offset
        if change >= _ALL_AT_ONCE:  # moving all of them may go round in circles
            low, high, short, wide = _worst_only(alpha, margins, low, high, short, wide)
        bound = (bound | high) & ~wide
        free = (free & ~low & ~high) | short | wide
    return None


def _worst_only(
    alpha: Array, margins: Array, *broken: npt.NDArray[np.bool_]
) -> list[npt.NDArray[np.bool_]]:
    """Return the same sets with the one sample that breaks its condition most, multipliers first."""
    low, high, short, wide = broken
    off = np.abs(alpha) if (low | high).any() else np.abs(margins - 1)
    candidates = (low | high) if (low | high).any() else (short | wide)
    chosen = np.zeros(len(alpha), dtype=bool)
    chosen[np.where(candidates, off, -1.0).argmax()] = True
    return [part & chosen for part in broken]


def _with_sides(
    K: Array, y: Array, free: npt.NDArray[np.bool_], bound: npt.NDArray[np.bool_], C: float
) -> tuple[Array, float]:
    """Return the multipliers that put the free samples on the margin, with the others where they are."""
    signed = np.where(bound, C * y, 0.0) if bound.any() else np.zeros(len(y))
    n = int(free.sum())
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = K[np.ix_(free, free)]
    system[n, n] = 0.0
    right = np.append(y[free] - K[free] @ signed, -signed.sum())
    solution, *_ = np.linalg.lstsq(system, right, rcond=None)
    signed[free] = solution[:n]
    return signed, float(solution[n])
