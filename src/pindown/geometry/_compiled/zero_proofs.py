r"""Ties: whether a unit whose computed value at a vertex is next to nothing is exactly zero there.

A vertex solves :math:`a_k \cdot v + b_k = 0` for d independent facets. With the determinant of the
facets' forms and the form (a, b) of a unit,

.. math::
    N = 2^{g + \sum_k g_k} \det\begin{pmatrix} a_1 & b_1 \\ \vdots & \vdots \\ a & b \end{pmatrix}
      = \pm 2^{g + \sum_k g_k} \det(a_1, \dots, a_d)\, (a \cdot v + b),

N is an integer if the :math:`g` are the forms' grids, and zero iff the unit vanishes at v. The error
bounds say how large the value, and so N, can be at most. If that is below 1, the unit vanishes. If
not, N is looked at modulo as many primes as the bound needs; all zero proves zero.

Weights with few digits, such as small integers, need no prime at all. A unit whose value is not zero
but too small for float64 to tell its sign is left to exact rationals.
"""

from __future__ import annotations

from math import log2

import numpy as np

from pindown.geometry._compiled import entry, inner
from pindown.geometry._compiled.arrays import LOWER, REACH, UPPER
from pindown.geometry._compiled.exact_residues import (
    BITS_PER_PRIME,
    COUNT,
    EXACT,
    FIRST,
    GRID,
    PRIMES,
    READY,
    ROW_PRIMES,
    SIZE,
    SLOPE,
    SURE,
    WANTED,
    bring_point,
    bring_row,
    measure,
    residue,
    shifted,
    split_float,
    times,
)

MAX_PRIMES = len(PRIMES)

NOT_ZERO, ZERO, OPEN = range(3)  # a unit at a vertex


@entry
def prepare(net, work, ties):
    """Measure the network's numbers; write the residues of its weights and of the box sides."""
    d, first_side, measures = net.dim, net.starts[net.hidden], ties.measures
    measure(net, work.vectors[REACH], measures)
    for side in range(2 * d):
        at = work.vectors[UPPER if side % 2 else LOWER, side // 2]
        _, exponent = split_float(at)
        measures[GRID, first_side + side] = max(0, -exponent)
        for p in range(len(ties.primes)):
            for c in range(d):
                ties.rows[p, first_side + side, c] = 1 if c == side // 2 else 0
            ties.rows[p, first_side + side, d] = residue(-at, ties.primes[p])
        ties.marks[ROW_PRIMES, first_side + side] = len(ties.primes)
    n_weights = net.weight_starts[net.hidden]
    for p in range(len(ties.primes)):
        for k in range(n_weights):
            ties.network[p, k] = residue(net.weights[k], ties.primes[p])
        for u in range(first_side):
            grid = shifted(np.int64(1), -int(measures[GRID, u]), ties.primes[p])
            ties.network[p, n_weights + u] = residue(net.biases[u], ties.primes[p])
            ties.network[p, n_weights + first_side + u] = grid
    ties.state[READY], ties.state[WANTED] = 1, 0


@inner
def at_vertex(net, work, ties, k, label, size):
    """Return whether a unit, of value at most ``size`` at vertex k, vanishes there; OPEN if unknown."""
    state, facets, zeros = ties.state, ties.facets, ties.zeros
    if not state[READY]:
        state[WANTED] = 1
        return OPEN
    if FIRST + facets[k, COUNT] > facets.shape[1]:
        return OPEN
    if ties.weights[k] < 0.0:
        ties.weights[k] = _weight(facets[k], ties.measures, net.dim)
        for w in range(zeros.shape[1]):
            zeros[k, w] = 0
    word, bit = label // 64, np.uint64(1) << np.uint64(label % 64)
    if zeros[k, word] & bit:
        return ZERO  # the network is continuous: what is zero at a point is so in all cells there
    # One bit more than computed: logarithms round.
    bits = ties.weights[k] + ties.measures[GRID, label] + 1.0
    bits += log2(min(size, ties.measures[SIZE, label]))
    if bits < 0.0:
        return ZERO
    if not bits < BITS_PER_PRIME * MAX_PRIMES:
        return OPEN
    n = int(bits / BITS_PER_PRIME) + 1
    if n > len(ties.primes):
        state[WANTED] = n
        return OPEN
    verdict = _modulo_primes(net, work, ties, k, label, n)
    if verdict == ZERO:
        zeros[k, word] |= bit
    return verdict


@inner
def _modulo_primes(net, work, ties, k, label, n):
    """Look at the value modulo n primes."""
    bring_row(net, work, ties, label, n)
    if not bring_point(net, work, ties, k, n):
        return OPEN
    for p in range(n):
        prime, total = ties.primes[p], np.int64(0)
        for c in range(net.dim + 1):
            total += times(ties.rows[p, label, c], ties.points[k, p, c], prime)
        if total % prime != 0:
            return NOT_ZERO
    return ZERO


@inner
def vanishes_everywhere(ties, label, row):
    """Return whether a form that float64 computes without rounding is zero."""
    if not (ties.state[READY] and ties.measures[EXACT, label] != 0.0):
        return False
    largest = 0.0
    for c in range(len(row)):
        largest = max(largest, abs(row[c]))
    return largest == 0.0


@inner
def _weight(facets, measures, d):
    """Bound log2 of the factor of the value in N over all choices of d independent facets."""
    n, sure = facets[COUNT], facets[SURE]
    total, largest = 0.0, 0.0
    for i in range(n):
        label = facets[FIRST + i]
        weight = measures[GRID, label] + measures[SLOPE, label]
        if i < sure or n <= d:
            total += weight
        elif i == sure or weight > largest:
            largest = weight
    if n > d:
        total += (d - sure) * largest
    return max(total, 0.0)
