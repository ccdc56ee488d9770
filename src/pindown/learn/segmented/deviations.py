r"""Least absolute deviations with few coefficients, compiled: simplex steps with an exact line search.

A vertex interpolates as many rows as there are coefficients. At an optimum the multipliers of these rows
are at most their weights; a row that violates this is let go, and the weighted median along the edge
says
which row takes its place. The caller perturbs targets and weights by amounts far below the resolution,
so
that vertices are not degenerate and the optimum is one point.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.learn.segmented.quadratics import compiled

Indices = NDArray[np.int64]

# A multiplier may exceed its weight by this fraction of the total weight: rounding.
_ROUNDING = 1e-12
# Pivots smaller than this fraction of the largest entry count as zero.
_SINGULAR = 1e-11
_MAX_PIVOTS = 2_000


@compiled
def independent_rows(X: Array) -> Indices:
    """Indices of rows that span (elimination with row choice); fewer than columns if X lacks rank."""
    n, p = X.shape
    left = X.copy()
    basis = np.empty(p, dtype=np.int64)
    scale = np.max(np.abs(X))
    count = 0
    for column in range(p):
        best, row = _SINGULAR * scale, -1
        for i in range(n):
            if abs(left[i, column]) > best:
                best, row = abs(left[i, column]), i
        if row < 0:
            break
        basis[count] = row
        count += 1
        pivot = left[row].copy()
        for i in range(n):
            factor = left[i, column] / pivot[column]
            for j in range(p):
                left[i, j] -= factor * pivot[j]
    return basis[:count]


@compiled
def least_absolute(X: Array, y: Array, w: Array, basis: Indices) -> tuple[float, Array]:
    """Least weighted absolute loss and its coefficients, from a vertex; ``basis`` ends at the best."""
    n, p = X.shape
    total = np.sum(w)
    beta = np.zeros(p)
    rhs = np.empty(p)
    B = np.empty((p, p))
    r = np.empty(n)
    along = np.empty(n)
    ratios = np.empty(n)
    for _ in range(_MAX_PIVOTS):
        for j in range(p):
            B[j] = X[basis[j]]
            rhs[j] = y[basis[j]]
        inverse = np.linalg.inv(B)
        for j in range(p):
            beta[j] = np.sum(inverse[j] * rhs)
        pull = np.zeros(p)
        loss = 0.0
        for i in range(n):
            value = y[i]
            for j in range(p):
                value -= X[i, j] * beta[j]
            r[i] = value
            loss += w[i] * abs(value)
        for j in range(p):
            r[basis[j]] = 0.0
        for i in range(n):
            if r[i] != 0.0:
                for j in range(p):
                    pull[j] += w[i] * np.sign(r[i]) * X[i, j]
        leaving, worst, sign = -1, _ROUNDING * total, 1.0
        for j in range(p):
            multiplier = 0.0
            for i in range(p):
                multiplier -= pull[i] * inverse[i, j]
            if abs(multiplier) - w[basis[j]] > worst:
                leaving, worst, sign = j, abs(multiplier) - w[basis[j]], -np.sign(multiplier)
        if leaving < 0:
            break
        count = 0
        for i in range(n):
            along[i] = 0.0
            for j in range(p):
                along[i] += X[i, j] * inverse[j, leaving] * sign
            if r[i] * along[i] > 0.0:
                ratios[count] = r[i] / along[i]
                count += 1
        entering = _line_search(r, along, w, ratios, count, worst)
        if entering < 0:
            break
        basis[leaving] = entering
    return loss, beta


@compiled
def _line_search(r: Array, along: Array, w: Array, ratios: Array, count: int, descent: float) -> int:
    """Row at which the loss along an edge stops falling, given how fast it falls at first."""
    rows = np.empty(count, dtype=np.int64)
    k = 0
    for i in range(len(r)):
        if r[i] * along[i] > 0.0:
            rows[k] = i
            k += 1
    left = descent
    for k in np.argsort(ratios[:count]):
        left -= 2.0 * w[rows[k]] * abs(along[rows[k]])
        if left <= 0.0:
            return rows[k]
    return -1


@compiled
def line_table(
    x: Array, y: Array, w: Array, first: Indices, losses: Array, lines: Array, a: int
) -> None:
    """Fill row a: best line on groups a, a+1, ..., b for every b (loss, value at 0, slope; NaN: any)."""
    G = len(first) - 1
    start = first[a]
    X = np.ones((first[G] - start, 2))
    X[:, 1] = x[start:]
    basis = np.empty(2, dtype=np.int64)
    ready = False
    for b in range(a, G):
        stop = first[b + 1] - start
        if a == b:
            one = np.zeros(1, dtype=np.int64)
            loss, beta = least_absolute(
                X[:stop, :1].copy(), y[start : start + stop], w[start : start + stop], one
            )
            losses[a, b], lines[a, b, 0], lines[a, b, 1] = loss, beta[0], np.nan
            continue
        if not ready:
            basis[0], basis[1] = 0, stop - 1
            ready = True
        loss, beta = least_absolute(X[:stop], y[start : start + stop], w[start : start + stop], basis)
        losses[a, b], lines[a, b, 0], lines[a, b, 1] = loss, beta[0], beta[1]
