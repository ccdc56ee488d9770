r"""How far a computed vertex can be from the true one.

The true vertex :math:`v` solves :math:`w_k \cdot v + c_k = 0` for d facets. If the computed
:math:`\hat v` leaves residuals :math:`|w_k \cdot \hat v + c_k| \le \rho_k`, every error of the
coefficients and of the evaluation included, and B is any matrix with
:math:`q = \|I - B W\|_\infty < 1`, then

.. math::
    \|\hat v - v\|_\infty \le \frac{\||B| \rho\|_\infty}{1 - q} .

The bound is infinite where float64 cannot tell :math:`W` from a singular matrix; then nothing is
decided at that vertex, and exact arithmetic must.

A vertex on the edge from u to v is first bounded from their errors, which is cheap but grows from
vertex to vertex; only where that bound has become large is the one above computed.
"""

from __future__ import annotations

import numpy as np

from pindown.geometry._compiled import inner
from pindown.geometry._compiled.arrays import HALF, LOWER, REST, UPPER, ZERO
from pindown.geometry._compiled.layer_maps import TINY, row_of

ULP = 2.0**-52
_COARSE = 2.0**-38  # of the box: errors above are computed anew from the facets
_USELESS = 2.0**-10  # of the box: errors above are taken for infinite

ROWS, SQUARE, INVERSE = range(3)  # of Work.matrices


@inner
def facet_row(net, work, label, row):
    """Write the affine form that vanishes on a facet; return its error bound on the box."""
    d, side = net.dim, label - net.starts[net.hidden]
    if side >= 0:
        for c in range(d):
            row[c] = 0.0
        row[side // 2] = 1.0
        row[d] = -work.vectors[UPPER if side % 2 else LOWER, side // 2]
        return 0.0
    level = 0
    while label >= net.starts[level + 1]:
        level += 1
    row_of(net, work.maps, level, label - net.starts[level], row)
    return work.bounds[label]


@inner
def edge_error(d, work, u, v, a, b, norm, bound):
    """Bound the error of the zero between u and v of a form with values a, b there; inf if coarse.

    With values off by at most e, the place t = a / (a - b) on the edge is off by at most
    ``e / |a - b|``.
    """
    ends = max(u[d], v[d])
    length, size, half = 0.0, 0.0, np.inf
    for c in range(d):
        length = max(length, abs(v[c] - u[c]))
        size = max(size, abs(u[c]), abs(v[c]))
        half = min(half, work.vectors[HALF, c])
    shift = (bound + norm * ends) / abs(a - b) + 4 * ULP
    error = 1.01 * (ends + shift * (length + 2 * ends)) + 4 * ULP * size + TINY
    return error if error < _COARSE * half else np.inf


@inner
def vertex_error(net, work, point):
    """Bound the error of a computed vertex on the d facets ``work.labels``."""
    d, vectors, matrices = net.dim, work.vectors, work.matrices
    for k in range(d):
        row = matrices[ROWS, k]
        zero = facet_row(net, work, work.labels[k], row)
        value, size = row[d], abs(row[d])
        for c in range(d):
            matrices[SQUARE, k, c] = row[c]
            matrices[INVERSE, k, c] = 1.0 if k == c else 0.0
            value += row[c] * point[c]
            size += abs(row[c] * point[c])
        vectors[ZERO, k] = zero
        vectors[REST, k] = abs(value) + 2.0 * zero + (2 * d + 8) * ULP * size + TINY
    if not _invert(matrices[SQUARE], matrices[INVERSE], d):
        return np.inf
    q, largest = 0.0, 0.0
    for i in range(d):
        total, weighted = 0.0, 0.0
        for c in range(d):
            weighted += abs(matrices[INVERSE, i, c]) * vectors[REST, c]
            entry, doubt = (1.0 if i == c else 0.0), 0.0
            for k in range(d):
                b, w = matrices[INVERSE, i, k], matrices[ROWS, k, c]
                entry -= b * w
                # A form that errs by at most e on a box of half width r errs by e / r in its slope.
                doubt += abs(b) * (abs(w) * (d + 2) * ULP + vectors[ZERO, k] / vectors[HALF, c])
            total += abs(entry) + doubt
        if not (total < 0.5 and weighted < np.inf):  # also where either is no number
            return np.inf
        q, largest = max(q, total), max(largest, weighted)
    half = np.inf
    for c in range(d):
        half = min(half, vectors[HALF, c])
    error = 1.01 * largest / (1.0 - q)
    return error if error < _USELESS * half else np.inf


@inner
def _invert(A, inverse, d):
    """Invert by Gauss-Jordan elimination with partial pivoting, in place; return whether it worked."""
    for k in range(d):
        pivot = k
        for r in range(k + 1, d):
            if abs(A[r, k]) > abs(A[pivot, k]):
                pivot = r
        if A[pivot, k] == 0.0:
            return False
        for c in range(d):
            A[k, c], A[pivot, c] = A[pivot, c], A[k, c]
            inverse[k, c], inverse[pivot, c] = inverse[pivot, c], inverse[k, c]
        factor = 1.0 / A[k, k]
        for c in range(d):
            A[k, c] *= factor
            inverse[k, c] *= factor
        for r in range(d):
            factor = A[r, k]
            if r != k and factor != 0.0:
                for c in range(d):
                    A[r, c] -= factor * A[k, c]
                    inverse[r, c] -= factor * inverse[k, c]
    return True
