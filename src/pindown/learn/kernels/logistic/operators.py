r"""Two forms of a Gram matrix inside Newton's method: the matrix, and a factor of low rank.

Smooth kernels in few dimensions have Gram matrices of small numerical rank; then :math:`K = ZZ^\top`
with a thin Z, exact to rounding, and every system costs :math:`nr^2` instead of :math:`n^3` operations.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack

from pindown.affine import Array

_RANK = 1e-13  # of the largest diagonal entry: what pivoted elimination leaves below this is rounding
_PROBE = 400  # samples whose rank decides whether a factor is worth computing
_THIN = 0.5  # a factor pays if its rank is below this share of the samples

Map = Callable[[Array], Array]


class Dense:
    """The matrix itself."""

    def __init__(self, K: Array) -> None:
        self.K = K

    def product(self, V: Array) -> Array:
        """Return K V."""
        return np.asarray(self.K @ V)

    def inverse(self, weights: Array) -> Map:
        """Return the map v -> (I + W K)^-1 v for a diagonal W, which may have zeros."""
        root = np.sqrt(weights)
        B = root[:, None] * self.K
        B *= root
        B.flat[:: len(B) + 1] += 1.0
        factor = cho_factor(B.T, lower=False, overwrite_a=True, check_finite=False)

        def apply(v: Array) -> Array:
            return np.asarray(v - root * cho_solve(factor, root * (self.K @ v), check_finite=False))

        return apply

    def rough_inverse(self, weight: float, single: bool) -> Map:
        """Return the map v -> (I + weight K)^-1 v, in single precision if that is enough."""
        if single:
            B = (weight * self.K).astype(np.float32)
            B.flat[:: len(B) + 1] += np.float32(1.0)
            factor, failed = lapack.spotrf(B.T, lower=0, overwrite_a=1)
            if not failed:
                # One product with the inverse is several times faster than two triangular solves.
                upper, _ = lapack.spotri(factor, lower=0, overwrite_c=1)
                whole = np.triu(upper) + np.triu(upper, 1).T
                return lambda v: (whole @ v.astype(np.float32)).astype(np.float64)
        D = weight * self.K
        D.flat[:: len(D) + 1] += 1.0
        double = cho_factor(D.T, lower=False, overwrite_a=True, check_finite=False)
        return lambda v: np.asarray(cho_solve(double, v, check_finite=False))


class Factored:
    """A thin factor Z with K = Z Z'."""

    def __init__(self, Z: Array) -> None:
        self.Z = Z
        self._inner: Array | None = None

    def product(self, V: Array) -> Array:
        """Return K V."""
        return np.asarray(self.Z @ (self.Z.T @ V))

    def inverse(self, weights: Array) -> Map:
        """Return the map v -> (I + W K)^-1 v for a diagonal W, which may have zeros."""
        weighted = weights[:, None] * self.Z
        return self._map(weighted.T @ self.Z, weighted)

    def rough_inverse(self, weight: float, single: bool) -> Map:
        """Return the map v -> (I + weight K)^-1 v; single precision would save nothing here."""
        if self._inner is None:
            self._inner = self.Z.T @ self.Z
        return self._map(weight * self._inner, weight * self.Z)

    def _map(self, inner: Array, weighted: Array) -> Map:
        inner.flat[:: len(inner) + 1] += 1.0
        factor = cho_factor(inner, check_finite=False)
        return lambda v: np.asarray(v - weighted @ cho_solve(factor, self.Z.T @ v, check_finite=False))


def operator(K: Array) -> Dense | Factored:
    """Return the cheaper of the two forms of a positive semi-definite matrix."""
    n = len(K)
    if n <= _PROBE:
        return Dense(K)
    some = np.linspace(0, n - 1, _PROBE).astype(int)
    part = np.linalg.eigvalsh(K[np.ix_(some, some)])
    if np.count_nonzero(part > _RANK * _PROBE * part[-1]) > _THIN * _PROBE:
        return Dense(K)
    largest = float(K.diagonal().max())
    factor, pivots, rank, _ = lapack.dpstrf(K, tol=_RANK * largest, lower=1)
    if rank > _THIN * n:
        return Dense(K)
    Z = np.empty((n, rank))
    Z[pivots - 1] = np.tril(factor[:, :rank])
    return Factored(Z)
