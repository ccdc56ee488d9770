"""What certified walks keep to decide ties: vertices by the facets they lie on, residues on demand."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.geometry.kernels import inner
from pindown.geometry.kernels.flat import FlatNetwork
from pindown.geometry.kernels.residues import PRIMES

Integers = NDArray[np.int64]

_ROOM = 16  # facets through one vertex that are kept; d of them are independent

# Entries of Ties.state; from VERSIONS on, one for each level, which changes when its map does.
USED, READY, WANTED, CLOCK, VERSIONS = range(5)

# Columns of Ties.facets: how many, how many of them are sure to be independent, primes; then labels.
COUNT, SURE, POINT_PRIMES, FIRST = range(4)

# Rows of Ties.marks.
STAMP, ROW_PRIMES = range(2)


class Ties(NamedTuple):
    """Few arrays, each for several things: kernels that get many compile slowly.

    Vertices are numbered; the number is the last column of ``coords``. Labels are those of units and
    sides of the box.
    """

    state: Integers
    facets: Integers  # one row per vertex
    weights: Array  # per vertex: log2 of what multiplies a value in the determinant; < 0 if not known
    zeros: NDArray[np.uint64]  # per vertex: one bit for each label known to be zero there
    points: Integers  # (vertex, prime, d + 1): homogeneous coordinates
    measures: Array  # (5, label), see residues.py
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
