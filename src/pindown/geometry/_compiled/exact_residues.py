r"""Forms of units and vertices of cells, exactly: their residues modulo primes below :math:`2^{50}`.

Every float64 is an odd integer times a power of two. So the coefficients of every unit, on whatever
cell, are multiples of one number :math:`2^{-g}`, its *grid*, which follows from the weights alone. A
multiple of a grid is an integer after scaling: it is zero if it is smaller than 1, or if it is zero
modulo primes whose product exceeds it.

Certified walks keep in :class:`Ties` what decides ties, values that float64 cannot tell from zero:
vertices by the facets they lie on, and residues of forms and vertices, computed when they are asked for.
"""

from __future__ import annotations

from math import frexp, ldexp, log2
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.geometry._compiled import inner
from pindown.geometry._compiled.arrays import FlatNetwork

BITS_PER_PRIME = 49.99  # each of them is above 2^49.99
GRID, SLOPE, SIZE, HEIGHT, EXACT = range(5)  # rows of Ties.measures
_WHOLE = 53  # bits of a float64's integer
_FAR = 900  # powers of two up to here, times an integer of so many bits, are float64 numbers

Integers = NDArray[np.int64]
_ROOM = 16  # facets through one vertex that are kept; d of them are independent

# Entries of Ties.state; from VERSIONS on, one for each level, which changes when its map does.
USED, READY, WANTED, CLOCK, VERSIONS = range(5)
# Columns of Ties.facets: how many, how many of them are sure to be independent, primes; then labels.
COUNT, SURE, POINT_PRIMES, FIRST = range(4)
# Rows of Ties.marks.
STAMP, ROW_PRIMES = range(2)


# The largest primes below 2^50: a product of residues is then below 2^100, and its quotient by the
# prime comes out of float64 to within one.
PRIMES = tuple(
    2**50 - k for k in (27, 35, 51, 71, 113, 117, 131, 161, 195, 233, 267, 341, 351, 377, 423)
)
PRIMES += tuple(2**50 - k for k in (447, 545, 591, 603, 611, 651, 653, 665, 675))


@inner
def times(a, b, prime):
    r"""Multiply two residues.

    The quotient :math:`ab / p < 2^{50}` computed in float64 errs by less than 1/2, so the difference
    below, whose 64-bit parts may overflow but cancel, is off by at most one prime.
    """
    quotient = np.int64(np.float64(a) * np.float64(b) / np.float64(prime))
    rest = a * b - quotient * prime
    if rest < 0:
        rest += prime
    elif rest >= prime:
        rest -= prime
    return rest


@inner
def split_float(value):
    """Return the odd integer m and the exponent e of ``value = m 2^e``; 0 and 0 for zero."""
    if value == 0.0:
        return np.int64(0), 0
    mantissa, exponent = frexp(value)
    whole = np.int64(ldexp(mantissa, _WHOLE))
    _, zeros = frexp(np.float64(whole & -whole))
    return whole >> (zeros - 1), exponent - _WHOLE + zeros - 1


@inner
def residue(value, prime):
    """Return the residue of a float64, taken as the exact number it is."""
    whole, exponent = split_float(value)
    return shifted(whole % prime, exponent, prime)  # a remainder is never negative


@inner
def shifted(result, exponent, prime):
    """Multiply a residue by a power of two."""
    base, count = np.int64(2), exponent
    if exponent < 0:
        base, count = (prime + 1) // 2, -exponent  # one half
    while count > 0:
        if count & 1:
            result = times(result, base, prime)
        base = times(base, base, prime)
        count >>= 1
    return result


@inner
def measure(net, reach, measures):
    r"""Measure the form of every hidden unit, whatever the states of the units below.

    Rows of ``measures``: the grid g; a bound on :math:`\log_2` of the sum of the slopes in absolute
    value; bounds on the absolute value on the box and on that of the constant; and whether
    float64 computes the form without rounding, because no coefficient exceeds :math:`2^{53 - g}`.
    """
    for level in range(net.hidden):
        for i in range(net.widths[level]):
            _measure_unit(net, reach, measures, level, i)
    for u in range(net.starts[net.hidden]):
        # A little more than computed: sums of positive numbers round by less than this.
        slope = measures[SLOPE, u]
        measures[SLOPE, u] = log2(slope) + 0.01 if slope > 0.0 else 0.0
        measures[SIZE, u] *= 1.01


@inner
def _measure_unit(net, reach, measures, level, i):
    n, unit = net.widths[level], net.starts[level] + i
    inputs = net.dim if level == 0 else net.widths[level - 1]
    below = 0 if level == 0 else net.starts[level - 1]
    _, exponent = split_float(net.biases[unit])
    grid, size, slope, exact = -exponent, abs(net.biases[unit]), 0.0, True
    height, empty = size, size == 0.0
    for j in range(inputs):
        w = net.weights[net.weight_starts[level] + j * n + i]
        if w != 0.0:
            _, exponent = split_float(w)
            if level == 0:
                term, slope, size = -exponent, slope + abs(w), size + abs(w) * reach[j]
            else:
                term = np.int64(measures[GRID, below + j]) - exponent
                slope += abs(w) * measures[SLOPE, below + j]
                size += abs(w) * measures[SIZE, below + j]
                height += abs(w) * measures[HEIGHT, below + j]
                exact = exact and measures[EXACT, below + j] != 0.0
            grid = term if empty else max(grid, term)
            empty = False
    # One bit is left to the rounding of these sums.
    fits = abs(grid) < _FAR and log2(max(slope, height)) + 1.0 + grid <= _WHOLE
    measures[GRID, unit], measures[SLOPE, unit], measures[SIZE, unit] = grid, slope, size
    measures[HEIGHT, unit], measures[EXACT, unit] = height, 1.0 if exact and (fits or empty) else 0.0


class Ties(NamedTuple):
    """What decides ties: few arrays, each for several things: loops that get many compile slowly.

    Vertices are numbered; the number is the last column of ``coords``. Labels are those of units and
    sides of the box.
    """

    state: Integers
    facets: Integers  # one row per vertex
    weights: Array  # per vertex: log2 of what multiplies a value in the determinant; < 0 if not known
    zeros: NDArray[np.uint64]  # per vertex: one bit for each label known to be zero there
    points: Integers  # (vertex, prime, d + 1): homogeneous coordinates
    measures: Array  # (5, label), see ``measure``
    marks: Integers  # (2, label): the version that a row was made for, and for how many primes
    rows: Integers  # (prime, label, d + 1)
    network: Integers  # (prime, ...): weights, biases, then the grid of each label
    primes: Integers
    matrix: Integers  # to find a point from its facets; the last row holds the pivots


def new_ties(net: FlatNetwork, vertices: int) -> Ties:
    """Reserve room for so many vertices; nothing is known yet."""
    d, labels = net.dim, net.size + 2 * net.dim
    room = max(_ROOM, d)
    return Ties(
        state=np.zeros(VERSIONS + net.hidden + 1, np.int64),
        facets=np.zeros((vertices, FIRST + room), np.int64),
        weights=np.zeros(vertices),
        zeros=np.zeros((vertices, (labels + 63) // 64), np.uint64),
        points=np.zeros((vertices, 0, d + 1), np.int64),
        measures=np.zeros((5, labels)),
        marks=np.full((2, labels), -1, np.int64),
        rows=np.zeros((0, labels, d + 1), np.int64),
        network=np.zeros((0, int(net.weight_starts[-2]) + 2 * net.size), np.int64),
        primes=np.zeros(0, np.int64),
        matrix=np.zeros((room + 1, d + 1), np.int64),
    )


def with_more_vertices(ties: Ties) -> Ties:
    """Return room for twice as many vertices."""

    def longer(array: Any) -> Any:
        bigger = np.zeros((2 * len(array), *array.shape[1:]), array.dtype)
        bigger[: len(array)] = array
        return bigger

    names = ("facets", "weights", "zeros", "points")
    return ties._replace(**{name: longer(getattr(ties, name)) for name in names})


def with_primes(ties: Ties, n: int) -> Ties:
    """Return ties with residues for n primes, all still to be computed."""
    ties.facets[:, POINT_PRIMES] = ties.marks[ROW_PRIMES] = 0
    labels, columns = ties.rows.shape[1:]
    return ties._replace(
        points=np.zeros((len(ties.facets), n, columns), np.int64),
        rows=np.zeros((n, labels, columns), np.int64),
        network=np.zeros((n, ties.network.shape[1]), np.int64),
        primes=np.array(PRIMES[:n], dtype=np.int64),
    )


def corner_facets(ties: Ties, corners: Array, upper: Array, size: int) -> Integers:
    """Return the rows of ``facets`` for the corners of a box; its sides follow after ``size`` units."""
    n, d = corners.shape
    facets = np.zeros((n, ties.facets.shape[1]), np.int64)
    facets[:, COUNT] = facets[:, SURE] = d
    facets[:, FIRST : FIRST + d] = size + 2 * np.arange(d) + (corners == upper)
    return facets


@inner
def new_vertex(ties):
    """Return the number of a new vertex, no facet of which is known yet."""
    k = ties.state[USED]
    ties.state[USED] = k + 1
    ties.facets[k, COUNT] = ties.facets[k, SURE] = ties.facets[k, POINT_PRIMES] = 0
    ties.weights[k] = -1.0
    return k


@inner
def put_facet(ties, k, label, sure):
    """Add a facet to a vertex; the sure ones, independent of each other, come first."""
    n = ties.facets[k, COUNT]
    if FIRST + n < ties.facets.shape[1]:
        ties.facets[k, FIRST + n] = label
    ties.facets[k, COUNT] = n + 1  # more than there is room for: the vertex cannot be used
    if sure:
        ties.facets[k, SURE] = n + 1


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
