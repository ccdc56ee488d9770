r"""Proved suprema of concave quadratics.

For :math:`q(x) = h \cdot x - x^\top A x` and any vector y, with :math:`r = h - 2 A y`,

.. math::
    \sup_x q(x) \;\le\; \tfrac12 h \cdot y + \tfrac12 r \cdot y + \tfrac14 r^\top A^{-1} r,

and :math:`A^{-1} \preceq D^2 / \sigma` once :math:`D A D \succeq \sigma I` is proved by a Cholesky
factorisation that runs to completion. So y need not be exact, and all that is computed is bounded.

With the multipliers fixed, the supremum over all that leaves the layers is a quadratic form of
:math:`u = (1, v)`, where v says which entries of the source pass: one factorisation bounds all corners.

Rump 2006, "Verification of positive definiteness"; Higham 2002, Theorem 10.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import cho_solve, cholesky, solve_triangular

from pindown.affine import Array
from pindown.equivalence.tuning import EIGENVALUE_SHARES, POWER_ITERATIONS
from pindown.rounding import UNIT_ROUNDOFF, gamma

# Numbers must be within these; then underflow moves nothing by more than LOST.
MODERATE = (1e-60, 1e60)
LOST = 1e-200


@dataclass(frozen=True, eq=False)
class ConcaveQuadratic:
    """A matrix A proved to be positive definite, and what bounds the suprema of ``h x - x A x``.

    Attributes:
        matrix: A in float64; off the diagonal every entry may carry one rounding.
        scale: Powers of two, as a column, that bring its diagonal near one.
        floor: The smallest eigenvalue of the matrix so scaled is at least this.
        factor: The Cholesky factor of the scaled matrix, not exact.

    >>> double = ConcaveQuadratic.proved(np.array([[2.0]]))
    >>> double.suprema(np.array([[4.0]]))  # of 4 x - 2 x^2
    array([2.])
    """

    matrix: Array
    scale: Array
    floor: float
    factor: Array

    @staticmethod
    def proved(A: Array) -> ConcaveQuadratic | None:
        """Return A with its proof; None if it is not definite, or too close to that."""
        diagonal = A.diagonal()
        moderate = np.all(diagonal > MODERATE[0]) and _largest(A) < MODERATE[1]
        if not moderate:
            return None
        scale = np.ldexp(1.0, -(np.frexp(diagonal)[1] // 2))
        B = scale[:, None] * A * scale  # diagonal in [1/2, 2); exact but for underflow
        try:
            factor = cholesky(B, lower=True)
        except (LinAlgError, ValueError):  # the latter if there is NaN
            return None
        floor = _smallest_eigenvalue(B, factor)
        return ConcaveQuadratic(A, scale[:, None], floor, factor) if floor > 0.0 else None

    def maximisers(self, h: Array) -> Array:
        """Return where the quadratics with these linear parts, (N, m), are largest: about."""
        inner = cho_solve((self.factor, True), self.scale * h, check_finite=False)
        return np.asarray(0.5 * self.scale * inner)

    def suprema(self, h: Array, blur: Array | float = 0.0) -> Array:
        """Return a proved bound for each column of h.

        Its entries may carry two roundings, and be off by ``blur`` besides.
        """
        y = self.maximisers(h)
        N = len(y)
        if not max(_largest(h), _largest(y)) < MODERATE[1]:
            return np.full(h.shape[1], inf)
        r = self._residual(h, y) + blur
        linear = 0.5 * np.sum(h * y, axis=0)
        slack = 0.5 * np.sum(r * np.abs(y), axis=0) + 2.0 * gamma(N + 8) * np.sum(np.abs(h * y), axis=0)
        slack += np.sum(blur * np.abs(y), axis=0)
        total = linear + (slack + self._quadratic(r)) * (1.0 + 4.0 * gamma(N + 8)) + LOST
        return np.asarray(total + 8.0 * UNIT_ROUNDOFF * (np.abs(total) + np.abs(linear)))

    def form(self, H: Array) -> tuple[Array, float] | None:
        r"""Bound all linear parts :math:`H u`, :math:`u \in [0, 1]^m`, at once.

        Returns:
            Q and s such that the supremum is at most :math:`u^\top Q u + s`, s including what rounding
            does when that is computed; None if numbers are too large.
        """
        Y = self.maximisers(H)
        N, m = Y.shape
        if not max(_largest(H), _largest(Y)) < MODERATE[1]:
            return None
        R = self._residual(H, Y)
        Q = 0.5 * H.T @ Y
        sizes = np.sum(np.abs(H), axis=1) @ np.sum(np.abs(Y), axis=1)
        slack = 0.5 * float(np.sum(R, axis=1) @ np.sum(np.abs(Y), axis=1)) + 2.0 * gamma(N + 8) * sizes
        slack += float(self._quadratic(np.sum(R, axis=1, keepdims=True))[0])
        slack += 2.0 * gamma(4 * m + 8) * float(np.sum(np.abs(Q)))
        return Q, float(slack) * (1.0 + 4.0 * gamma(N + 8)) + LOST

    def _residual(self, h: Array, y: Array) -> Array:
        """Bound ``|h - 2 A y|``: h and A carry two roundings, sums of N + 2 products the rest."""
        size = np.abs(h) + 2.0 * np.abs(self.matrix) @ np.abs(y)
        return np.asarray(np.abs(h - 2.0 * (self.matrix @ y)) + 4.0 * gamma(len(y) + 8) * size + LOST)

    def _quadratic(self, r: Array) -> Array:
        return np.asarray(0.25 * np.sum((self.scale * r) ** 2, axis=0) / self.floor)


def _largest(x: Array) -> float:
    """Return the largest absolute value, infinite if there is NaN."""
    top = float(np.max(np.abs(x), initial=0.0))
    return inf if np.isnan(top) else top


def coupled_layers(diagonals: Sequence[Array], weights: Sequence[Array]) -> Array:
    r"""Return the matrix of :math:`\sum_l e_l^\top \Lambda_l (e_l - W_l e_{l-1})`.

    Args:
        diagonals: :math:`\Lambda_0, \Lambda_1, \dots`; the first has no weights before it.
        weights: :math:`W_1, W_2, \dots`.

    >>> coupled_layers([np.array([1.0]), np.array([2.0])], [np.array([[3.0]])])
    array([[ 1., -3.],
           [-3.,  2.]])
    """
    A = np.diag(np.concatenate(diagonals))
    column = 0
    for before, lam, W in zip(diagonals, diagonals[1:], weights, strict=False):
        row = column + len(before)
        block = -0.5 * lam[:, None] * W
        A[row : row + len(lam), column:row] = block
        A[column:row, row : row + len(lam)] = block.T
        column = row
    return A


def _smallest_eigenvalue(B: Array, factor: Array) -> float:
    r"""Return a number that the eigenvalues of the true matrix exceed, or 0 if none was proved.

    If Cholesky runs through on C, then C plus a matrix of norm at most
    :math:`n \gamma_{n+2} \max C_{ii}` is positive semidefinite; doubled for the factor
    :math:`1 / (1 - \gamma)` and its own rounding.
    """
    n = len(B)
    top = float(np.max(B.diagonal(), initial=1.0))
    rounding = 2.0 * n * gamma(n + 2) * top + 4.0 * UNIT_ROUNDOFF * top
    entries = 4.0 * UNIT_ROUNDOFF * float(np.linalg.norm(B)) + LOST
    x = np.random.default_rng(0).standard_normal(n)
    for _ in range(POWER_ITERATIONS):
        x = cho_solve((factor, True), x / np.linalg.norm(x), check_finite=False)
    estimate = 1.0 / float(np.linalg.norm(x))
    for share in EIGENVALUE_SHARES:
        floor = share * estimate
        C = B.copy(order="F")
        C[np.diag_indices_from(C)] -= floor
        try:
            cholesky(C, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            continue
        return max(0.0, floor - rounding - entries)
    return 0.0


def corner_form(layers: Sequence[Array], w: Array, lams: Sequence[Array]) -> Array | None:
    """Return Q with ``u Q u`` about the bound; None if the quadratic is not concave.

    Args:
        layers: K, one column per entry of the source, and the weights that follow.
        w: Coefficients of the output.
        lams: Multipliers of every layer.

    >>> Q = corner_form([np.array([[3.0]])], np.ones(1), [np.array([1 / 3])])
    >>> u = np.array([1.0, 1.0])
    >>> round(float(u @ Q @ u), 9)  # all of 3 passes
    3.0
    """
    if not all(np.isfinite(lam).all() for lam in lams):
        return None
    g, H, constant = w, np.zeros((len(w), len(w))), 0.0
    try:
        for W, lam in zip(reversed(layers[1:]), reversed(lams), strict=False):
            C = cholesky(np.diag(lam) - H, lower=True, check_finite=False)
            y = solve_triangular(C, g, lower=True, check_finite=False)
            Y = solve_triangular(C, lam[:, None] * W, lower=True, check_finite=False)
            constant += 0.25 * float(y @ y)
            g, H = 0.5 * Y.T @ y, 0.25 * Y.T @ Y
        C = cholesky(np.diag(lams[0]) - H, lower=True, check_finite=False)
    except LinAlgError:
        return None
    right = np.column_stack([g, lams[0][:, None] * layers[0]])
    Y = solve_triangular(C, right, lower=True, check_finite=False)
    Q = 0.25 * Y.T @ Y
    Q[0, 0] += constant
    return np.asarray(Q)


def quadratic_of(layers: Sequence[Array], lams: Sequence[Array]) -> ConcaveQuadratic | None:
    """Return the quadratic of the multipliers with a proof that it is concave, or None."""
    return ConcaveQuadratic.proved(coupled_layers(lams, layers[1:]))


def linear_parts(layers: Sequence[Array], w: Array, lams: Sequence[Array]) -> Array:
    """Return H such that ``H u`` is the linear part of the quadratic at the corner ``u = (1, v)``."""
    H = np.zeros((sum(map(len, lams)), layers[0].shape[1] + 1))
    H[-len(w) :, 0] = w
    H[: len(lams[0]), 1:] = lams[0][:, None] * layers[0]
    return H


def proved_form(layers: Sequence[Array], w: Array, lams: Sequence[Array]) -> tuple[Array, float] | None:
    """Return Q and s: at every corner ``u Q u + s`` is a proved bound; None if it cannot be proved.

    The entries of K may carry one rounding.
    """
    quadratic = quadratic_of(layers, lams)
    return None if quadratic is None else quadratic.form(linear_parts(layers, w, lams))
