r"""Prove the bound that a set of multipliers promises.

With all variables in one vector x the bound is the supremum of
:math:`q(x) = c + h \cdot x - x^\top A x`. For any vector y, with :math:`r = h - 2 A y`,

.. math::
    \sup_x q(x) \;\le\; c + \tfrac12 h \cdot y + \tfrac12 r \cdot y + \tfrac14 r^\top A^{-1} r,

and :math:`A^{-1} \preceq D^2 / \sigma` once :math:`D A D \succeq \sigma I` is proved by a Cholesky
factorisation that runs to completion. So y need not be exact, and all that is computed is bounded.

Rump 2006, "Verification of positive definiteness"; Higham 2002, Theorem 10.3.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import cho_solve, cholesky

from pindown.affine import Array
from pindown.equivalence.sensitivity.multipliers import SourceChain
from pindown.geometry.rounding import UNIT_ROUNDOFF, gamma

LARGEST_SYSTEM = 3000  # variables; the factorisation of such a matrix takes about a second
# Multipliers, and the maximiser, must be within these; then underflow moves nothing by more than _LOST.
_MODERATE = (1e-60, 1e60)
_LOST = 1e-200
# How far the smallest eigenvalue is tried to be from zero, relative to a diagonal near one.
_FLOORS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def proved_bounds(chain: SourceChain, x: Array) -> Array:
    """Return a proved upper bound for every objective of the chain; infinite where the proof fails.

    Args:
        chain: The source and all that follows.
        x: Positive multipliers.

    >>> one = np.ones((1, 1))  # a source of 3 passes one ReLU and is read with weight 1
    >>> chain = SourceChain(np.array([3.0]), np.ones((1, 0)), np.zeros(0), 0.0, (), one)
    >>> proved_bounds(chain, np.array([1 / 3])).round(9)
    array([3., 0.])
    """
    objectives = chain.objectives
    failed = np.full(objectives.shape[1], inf)
    A = _matrix(chain, x)
    N = len(A)
    if N > LARGEST_SYSTEM or not np.all((x > _MODERATE[0]) & (x < _MODERATE[1])):
        return failed
    powers = -(np.frexp(A.diagonal())[1] // 2)
    B = np.ldexp(A, powers[:, None] + powers)  # diagonal in [1/2, 2); exact but for underflow
    floor = _smallest_eigenvalue(B)
    if floor <= 0.0:
        return failed
    h = np.zeros((N, objectives.shape[1]))
    start = chain.matrix.shape[1]
    ball, entry, *lams = chain.split(x)
    h[-len(objectives) :] += objectives
    h[start : start + len(chain.fixed)] += (lams[0] * chain.fixed)[:, None]
    y = np.ldexp(
        cho_solve((cholesky(B, lower=True), True), np.ldexp(h, powers[:, None])), powers[:, None]
    )
    y *= 0.5
    if not np.max(np.abs(y)) < _MODERATE[1]:
        return failed
    # h and A carry two roundings, sums of up to N + 2 products the rest.
    size = np.abs(h) + 2.0 * np.abs(A) @ np.abs(y)
    error = 4.0 * gamma(N + 8) * size + _LOST
    r = np.abs(h - 2.0 * (A @ y)) + error
    quadratic = 0.25 * np.sum(np.ldexp(r, powers[:, None]) ** 2, axis=0) / floor
    linear = 0.5 * np.sum(h * y, axis=0)
    slack = 0.5 * np.sum(r * np.abs(y), axis=0) + 2.0 * gamma(N + 8) * np.sum(np.abs(h * y), axis=0)
    constant = float(np.sum(ball)) * chain.length**2 + float(np.sum(entry * chain.entries**2))
    total = linear + (slack + quadratic + constant) * (1.0 + 4.0 * gamma(N + 8)) + _LOST
    bounds = total + 8.0 * UNIT_ROUNDOFF * (np.abs(total) + np.abs(linear))
    return np.where(np.isfinite(bounds), bounds, inf)


def _matrix(chain: SourceChain, x: Array) -> Array:
    """Return A in float64: every entry off the diagonal carries one rounding."""
    ball, entry, *lams = chain.split(x)
    # Rounded down: a smaller multiplier is a valid one, and what it multiplies is counted in full.
    first = np.nextafter(ball + entry, 0.0) if len(entry) else np.zeros(0)
    diagonal = np.concatenate([first, *lams])
    A = np.diag(diagonal)
    column, row = 0, chain.matrix.shape[1]
    for lam, K in zip(lams, (chain.matrix, *chain.weights), strict=True):
        block = -0.5 * lam[:, None] * K
        A[row : row + len(lam), column : column + K.shape[1]] = block
        A[column : column + K.shape[1], row : row + len(lam)] = block.T
        column, row = row, row + len(lam)
    return A


def _smallest_eigenvalue(B: Array) -> float:
    r"""Return a number that the eigenvalues of the true matrix exceed, or 0 if none was proved.

    If Cholesky runs through on C, then C plus a matrix of norm at most
    :math:`n \gamma_{n+2} \max C_{ii}` is positive semidefinite; doubled for the factor
    :math:`1 / (1 - \gamma)` and its own rounding.
    """
    n = len(B)
    top = float(np.max(B.diagonal(), initial=1.0))
    rounding = 2.0 * n * gamma(n + 2) * top + 4.0 * UNIT_ROUNDOFF * top
    entries = 4.0 * UNIT_ROUNDOFF * float(np.linalg.norm(B)) + _LOST
    for floor in _FLOORS:
        C = B.copy()
        C[np.diag_indices_from(C)] -= floor
        try:
            np.linalg.cholesky(C)
        except LinAlgError:
            continue
        return max(0.0, floor - rounding - entries)
    return 0.0
