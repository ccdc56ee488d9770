"""Compiled least squares for a tuple of cells: one factorisation, then projections on cones.

With units on at ``P_1, ..., P_w`` the prediction is linear in the weights, ``sum_u s_u <phi_u, p>`` over
the points of ``P_u``. Signs only flip the cones, so one factorisation serves all ``2^w`` sign choices,
and the fit without cones bounds them all. Weights are those of the whitened points, with signs folded
in: ``phi_u = s_u (a_u, b_u)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pindown.affine import Array, Integers
from pindown.learn.exact._compiled import compiled

# A constraint violated by less than this, relative to the weights, holds: rounding alone gives as much.
_VIOLATION = 1e-11
# Directions that shorter than this after orthogonalisation depend on the ones before.
_DEPENDENT = 1e-9


@compiled
def forward(L: Array, b: Array, size: int) -> None:
    """Solve ``L z = b`` in place for a lower triangular matrix."""
    for i in range(size):
        total = b[i]
        for k in range(i):
            total -= L[i, k] * b[k]
        b[i] = total / L[i, i]


@compiled
def backward(L: Array, z: Array, size: int) -> None:
    """Solve ``L^T theta = z`` in place for a lower triangular matrix."""
    for i in range(size - 1, -1, -1):
        total = z[i]
        for k in range(i + 1, size):
            total -= L[k, i] * z[k]
        z[i] = total / L[i, i]


@compiled
def extend(L: Array, p: Array, size: int, rank: int, block: Array, target: Array, floor: Array) -> None:
    """Extend a factor and ``p = L^-1 r`` by one unit; rows ``size:`` of L hold cross products."""
    for i in range(rank):
        row = L[size + i]
        for k in range(size):
            total = row[k]
            for q in range(k):
                total -= row[q] * L[k, q]
            row[k] = total / L[k, k]
        for k in range(i + 1):
            total = block[i, k]
            for q in range(size + k):
                total -= row[q] * L[size + k, q]
            if k < i:
                row[size + k] = total / L[size + k, size + k]
            else:
                row[size + i] = np.sqrt(max(total, 0.0) + floor[i])
        total = target[i]
        for q in range(size + i):
            total -= row[q] * p[q]
        p[size + i] = total / row[size + i]


@compiled
def _fit_passive(
    normals: Array,
    p: Array,
    passive: Integers,
    count: int,
    basis: Array,
    R: Array,
    weights: Array,
    z: Array,
) -> bool:
    """Set ``z = p + sum_k weights_k normals_k`` of least length; False if normals depend."""
    m = p.shape[0]
    for c in range(count):
        for i in range(m):
            basis[c, i] = normals[passive[c], i]
        for _ in range(2):  # twice is enough to be orthogonal to rounding
            for q in range(c):
                along = 0.0
                for i in range(m):
                    along += basis[q, i] * basis[c, i]
                R[q, c] = along if _ == 0 else R[q, c] + along
                for i in range(m):
                    basis[c, i] -= along * basis[q, i]
        length = 0.0
        for i in range(m):
            length += basis[c, i] ** 2
        length = np.sqrt(length)
        if length < _DEPENDENT:
            return False
        R[c, c] = length
        for i in range(m):
            basis[c, i] /= length
    for i in range(m):
        z[i] = p[i]
    for c in range(count):
        along = 0.0
        for i in range(m):
            along += basis[c, i] * z[i]
        weights[c] = -along
        for i in range(m):
            z[i] -= along * basis[c, i]
    for c in range(count - 1, -1, -1):
        total = weights[c]
        for q in range(c + 1, count):
            total -= R[c, q] * weights[q]
        weights[c] = total / R[c, c]
    return True


@compiled
def project(normals: Array, n_normals: int, p: Array, enough: float, work: Any) -> tuple[float, int]:
    """Project ``p`` on the cone ``{z : normals z >= 0}`` by active sets on the dual (Lawson and Hanson).

    The squared length of ``z`` falls towards that of the projection: every iterate bounds it from above,
    so the search stops as soon as that is ``enough`` to reject the cone. Normals have unit length.

    Returns:
        The squared length and the number of active normals, or -1 if rejected early, -2 if it did not
        settle.
    """
    passive, weights, trial, basis, R, z = work
    m = p.shape[0]
    count = 0
    length = 0.0
    for i in range(m):
        z[i] = p[i]
        length += p[i] * p[i]
    slack = _VIOLATION * np.sqrt(length)
    for _ in range(10 * (n_normals + 1)):
        worst, entering = -slack, -1
        for k in range(n_normals):
            value = 0.0
            for i in range(m):
                value += normals[k, i] * z[i]
            if value < worst:
                worst, entering = value, k
        if entering < 0:
            return length, count
        for c in range(count):
            if passive[c] == entering:  # rounding brings back what is already active
                return length, count
        if count == m:
            return length, -2
        passive[count] = entering
        weights[count] = 0.0
        count += 1
        while True:
            if not _fit_passive(normals, p, passive, count, basis, R, trial, z):
                return length, -2
            step, leaving = 1.0, -1
            for c in range(count):
                if trial[c] <= 0.0:
                    share = weights[c] / (weights[c] - trial[c]) if weights[c] > 0 else 0.0
                    if leaving < 0 or share < step:
                        step, leaving = share, c
            if leaving < 0:
                break
            for c in range(count):
                weights[c] += step * (trial[c] - weights[c])
            for c in range(leaving, count - 1):
                passive[c] = passive[c + 1]
                weights[c] = weights[c + 1]
            count -= 1
        for c in range(count):
            weights[c] = trial[c]
        length = 0.0
        for i in range(m):
            length += z[i] * z[i]
        if length <= enough:
            return length, -1
    return length, -2
