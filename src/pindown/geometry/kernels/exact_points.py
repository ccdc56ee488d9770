"""Forms of units and vertices of cells, exactly, modulo primes; computed when they are asked for."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

from math import ldexp

import numpy as np

from pindown.geometry.kernels import inner
from pindown.geometry.kernels.residues import EXACT, GRID, times
from pindown.geometry.kernels.ties import COUNT, FIRST, POINT_PRIMES, ROW_PRIMES, STAMP, VERSIONS


@inner
def level_of(net, label):
    """Return the hidden layer of a unit."""
    level = 0
    while label >= net.starts[level + 1]:
        level += 1
    return level


@inner
def bring_row(net, work, ties, label, n):
    """Make the residues of a form right on the cell at hand, for n primes."""
    if label >= net.starts[net.hidden]:
        return  # a side of the box
    level = level_of(net, label)
    fresh = ties.marks[STAMP, label] == ties.state[VERSIONS + level]
    if fresh and ties.marks[ROW_PRIMES, label] >= n:
        return
    # Forms that float64 computes without rounding need no others.
    for below in range(level if ties.measures[EXACT, label] != 0.0 else 0, level):
        for j in range(net.widths[below]):
            if work.current[below, j]:
                _make_row(net, work, ties, below, j, n)
    _make_row(net, work, ties, level, label - net.starts[level], n)


@inner
def _make_row(net, work, ties, level, unit, n):
    """Sum the forms of the units below that are on, unless it was done before."""
    d, label, marks = net.dim, net.starts[level] + unit, ties.marks
    version = ties.state[VERSIONS + level]
    if marks[STAMP, label] != version:
        marks[STAMP, label], marks[ROW_PRIMES, label] = version, 0
    width, weight = net.widths[level], net.weight_starts[level] + unit
    for p in range(marks[ROW_PRIMES, label], n):
        prime, row, weights = ties.primes[p], ties.rows[p, label], ties.network[p]
        if ties.measures[EXACT, label] != 0.0:
            at, grid = (d + 1) * net.starts[level] + unit, int(ties.measures[GRID, label])
            scale = weights[net.weight_starts[net.hidden] + net.starts[net.hidden] + label]
            for c in range(d + 1):
                row[c] = times(np.int64(ldexp(work.maps[at + c * width], grid)) % prime, scale, prime)
            continue
        row[d] = weights[net.weight_starts[net.hidden] + label]
        for c in range(d):
            row[c] = weights[weight + c * width] if level == 0 else 0
        if level > 0:
            below = net.starts[level - 1]
            for j in range(net.widths[level - 1]):
                w = weights[weight + j * width]
                if work.current[level - 1, j] and w != 0:
                    for c in range(d + 1):
                        total = row[c] + times(w, ties.rows[p, below + j, c], prime)
                        row[c] = total - prime if total >= prime else total
    marks[ROW_PRIMES, label] = max(n, marks[ROW_PRIMES, label])


@inner
def bring_point(net, work, ties, k, n):
    """Find the homogeneous coordinates of a vertex modulo n primes; return whether it is one point."""
    done = ties.facets[k, POINT_PRIMES]
    if done < n:
        for i in range(ties.facets[k, COUNT]):
            bring_row(net, work, ties, ties.facets[k, FIRST + i], n)
        for p in range(done, n):
            _solve(ties, k, p, net.dim)
        ties.facets[k, POINT_PRIMES] = n
    together = np.int64(0)  # stays 0 if the facets kept are dependent
    for c in range(net.dim + 1):
        together |= ties.points[k, 0, c]
    return together != 0


@inner
def _solve(ties, k, p, d):
    """Write the vector, unique up to a factor, that all facets of a vertex map to zero; else zeros.

    Elimination without division: rows are multiplied by pivots, none of which is zero.
    """
    prime, A, pivots, n = ties.primes[p], ties.matrix, ties.matrix[len(ties.matrix) - 1], 0
    point = ties.points[k, p]
    for i in range(ties.facets[k, COUNT]):
        for c in range(d + 1):
            A[n, c] = ties.rows[p, ties.facets[k, FIRST + i], c]
        for r in range(n):
            _eliminate(A[n], A[r], pivots[r], d, prime)
        column = 0
        while column <= d and A[n, column] == 0:
            column += 1
        if column <= d:
            pivots[n] = column
            for r in range(n):
                _eliminate(A[r], A[n], column, d, prime)
            n += 1
            if n == d:
                break
    free, product = 0, np.int64(1)
    for c in range(d + 1):
        point[c] = 0
    if n < d:
        return
    for r in range(d):
        free += pivots[r]
        product = times(product, A[r, pivots[r]], prime)
    free = d * (d + 1) // 2 - free  # the one column without a pivot
    point[free] = product
    for r in range(d):
        value = (prime - A[r, free]) % prime
        for s in range(d):
            if s != r:
                value = times(value, A[s, pivots[s]], prime)
        point[pivots[r]] = value


@inner
def _eliminate(row, by, column, d, prime):
    """Make ``row[column]`` zero with a row that is not zero there."""
    factor, pivot = row[column], by[column]
    if factor != 0:
        for c in range(d + 1):
            rest = times(row[c], pivot, prime) - times(by[c], factor, prime)
            row[c] = rest + prime if rest < 0 else rest
