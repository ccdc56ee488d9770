"""Sums of non-negative numbers rounded up, for matrices dense or sparse."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array, Matrix
from pindown.rounding import SMALLEST, gamma

_BLOCK_ENTRIES = 2**18


def product_above(W: Matrix, v: Array) -> Array:
    r"""Return at least :math:`|W| v` for :math:`v \ge 0`; infinite where v has an infinite entry.

    >>> product_above(np.array([[1.0, -2.0]]), np.array([3.0, 4.0])).round(9)
    array([11.])
    """
    n = W.shape[1]
    if not np.isfinite(v).all():
        return np.full(W.shape[0], np.inf)
    with np.errstate(over="ignore"):
        if sp.issparse(W):
            total = np.asarray(abs(W) @ v)
        else:
            total = np.empty(len(W))
            step = max(1, _BLOCK_ENTRIES // n)
            for start in range(0, len(W), step):
                rows = slice(start, start + step)
                total[rows] = np.abs(W[rows]) @ v
        # Where nothing is added nothing is lost: an exact zero stays one.
        exact = total == 0.0
        if exact.any() and not _safe(W, v):
            exact[:] = False
        lost = np.where(exact, 0.0, n * SMALLEST)
        return np.asarray(total * (1.0 + 2.0 * gamma(n + 4)) + lost)


def sum_above(*terms: Array | float) -> Array:
    """Return at least the sum of non-negative arrays, entry by entry."""
    with np.errstate(over="ignore"):
        return np.asarray(sum(np.asarray(t) for t in terms) * (1.0 + 2.0 * gamma(len(terms) + 1)))


def row_norms_above(W: Matrix) -> Array:
    """Return at least the Euclidean length of every row."""
    parts = W.data if sp.issparse(W) else W
    top = float(np.max(np.abs(parts), initial=0.0))
    if top == 0.0:
        return np.zeros(W.shape[0])
    power = int(np.frexp(top)[1])
    scaled = abs(W)
    if sp.issparse(W):
        scaled.data = np.ldexp(scaled.data, -power)
        squares = np.asarray((scaled * scaled).sum(axis=1)).reshape(-1)
    else:
        scaled = np.ldexp(scaled, -power)
        squares = np.einsum("ij,ij->i", scaled, scaled)
    n = W.shape[1]
    used = (
        np.asarray(abs(W).max(axis=1).todense()).reshape(-1) if sp.issparse(W) else np.abs(W).max(axis=1)
    )
    squares = np.where(used > 0.0, squares + n * SMALLEST, 0.0)
    with np.errstate(over="ignore"):
        return np.asarray(
            np.ldexp(np.sqrt(squares) * (1.0 + gamma(n + 8)), power) + SMALLEST * (used > 0.0)
        )


def _safe(W: Matrix, v: Array) -> bool:
    """Return whether no product of two numbers other than zero can underflow to zero."""
    numbers = [W.data if sp.issparse(W) else W, v]
    low = [float(np.min(np.abs(x), initial=1.0, where=x != 0.0)) for x in numbers]
    return low[0] * low[1] >= SMALLEST
