r"""Pair the units of one layer of two networks by the directions of their rows.

The distance of units i and j is :math:`\| r_i / \|r_i\| - r'_j / \|r'_j\| \|` with rows
:math:`r = (W, b)`. A handful of random projections finds nearest neighbours in near-linear time; an
optimal assignment decides the units they leave open. Units whose rows are parallel within one network
cannot be told apart by them, so their outgoing weights decide, sorted, since the order of the next layer
is not known yet.

Kuhn 1955 (the assignment problem); Johnson and Lindenstrauss 1984 (random projections).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Affine, Array, Matrix, dense, is_finite
from pindown.deadline import NEVER, Deadline, OutOfTime
from pindown.equivalence.gauge_fixing import row_lengths
from pindown.equivalence.tuning import ASSIGNMENT_SECONDS, NEAR_ROWS, PARALLEL_ROWS, ROW_KEYS
from pindown.equivalence.weight_symmetry import moved_columns
from pindown.rounding import TINY

_SEED = 0
# A projection to 8 numbers stretches a vector by about sqrt(8), and by three times that never.
_STRETCH = 8.5
_MODERATE = 300  # powers of two far from the ends of float64
_FAR = 1e3  # what a distance that float64 cannot hold is taken for


@np.errstate(all="ignore")  # far-apart scales only make the pairing less sure
def pair_units(
    mine: Affine,
    theirs: Affine,
    powers: NDArray[np.intc],
    following: tuple[Affine, Affine],
    *,
    last: bool,
    deadline: Deadline = NEVER,
) -> NDArray[np.intp]:
    """Return for every unit of mine its partner among theirs, a permutation.

    Args:
        mine: The layer of the first network.
        theirs: That of the second, its columns aligned with the first already.
        powers: Exponents of two by which columns are multiplied before rows are compared.
        following: The next layers of both networks, as they are: they break ties.
        last: Whether these are the output layers, whose rows need no pairing.
        deadline: When to give up.

    Raises:
        OutOfTime: If an assignment would take until after the deadline.

    >>> mine = Affine.of([[1.0, 0.0], [0.0, 1.0]], [0, 0])
    >>> theirs = Affine.of([[0.0, 3.0], [2.0, 0.0]], [0, 0])
    >>> out = Affine.of([[1.0, 1.0]], [0])
    >>> pair_units(mine, theirs, np.zeros(2, dtype=np.intc), (out, out), last=True)
    array([1, 0])
    """
    A, B = _Directions(mine, powers), _Directions(theirs, powers)
    pairs = _nearest(A, B)
    open_units = np.flatnonzero(pairs < 0)
    if len(open_units):
        free = np.setdiff1d(np.arange(len(pairs)), pairs)
        pairs[open_units] = free[_assign(A.distances_to(B, open_units, free), deadline)]
    apart = A.distance_to(B, pairs)
    near = apart[apart <= NEAR_ROWS]
    tie = max(PARALLEL_ROWS, 4.0 * float(np.max(near, initial=0.0)))
    groups = _parallel_groups(A, tie)
    if groups:
        outgoing = [_Outgoing(*of, last) for of in zip(following, (A.lengths, B.lengths), strict=True)]
    for group in groups:
        partners = pairs[group]
        cost = A.distances_to(B, group, partners)
        cost += _column_distances(outgoing[0].columns(group), outgoing[1].columns(partners))
        pairs[group] = partners[_assign(cost, deadline)]
    return pairs


class _Directions:
    """The rows of a layer scaled to length one, and their random projections."""

    def __init__(self, layer: Affine, powers: NDArray[np.intc]) -> None:
        weight = times_powers(layer.weight, powers)
        fits = is_finite(weight.data if sp.issparse(weight) else weight)
        moderate = Affine(weight if fits else layer.weight, layer.bias)
        self.lengths = row_lengths(*moderate)
        self.weight, self.bias = unit_rows(moderate, self.lengths)
        g = np.random.default_rng(_SEED).standard_normal((layer.in_features + 1, ROW_KEYS))
        self.keys = np.asarray(self.weight @ g[:-1]) + self.bias[:, None] * g[-1]

    def distance_to(self, other: _Directions, pairs: NDArray[np.intp]) -> Array:
        """Return the distance of every row to its partner."""
        D = self.weight - other.weight[pairs]
        if sp.issparse(D):
            squares = np.asarray((D * D).sum(axis=1)).reshape(-1)
        else:
            squares = np.einsum("ij,ij->i", D, D)
        return np.asarray(np.sqrt(squares + (self.bias - other.bias[pairs]) ** 2))

    def distances_to(
        self, other: _Directions, rows: NDArray[np.intp], others: NDArray[np.intp]
    ) -> Array:
        """Return the squared distances of some rows to some of the other's, (rows, others)."""
        A, B = self.weight[rows], other.weight[others]
        cosines = dense(A @ B.T) + np.outer(self.bias[rows], other.bias[others])
        here, there = ((x.lengths[i] > TINY).astype(float) for x, i in ((self, rows), (other, others)))
        return np.asarray(here[:, None] + there - 2.0 * cosines)


def unit_rows(layer: Affine, lengths: Array) -> tuple[Matrix, Array]:
    """Return the rows and biases divided by their lengths; rows of length zero stay as they are."""
    moderate = bool(np.all((lengths > 2.0**-_MODERATE) & (lengths < 2.0**_MODERATE)))
    if moderate and not sp.issparse(layer.weight):
        return layer.weight * (1.0 / lengths)[:, None], layer.bias / lengths
    powers = np.frexp(lengths)[1]  # powers of two first: one over a length may not fit float64
    fractions = np.where(lengths > 0.0, np.frexp(lengths)[0], 1.0)
    W, b = layer
    if not sp.issparse(W):
        return np.ldexp(W, -powers[:, None]) / fractions[:, None], np.ldexp(b, -powers) / fractions
    unit = W.copy()
    counts = np.diff(W.indptr)
    unit.data = np.ldexp(W.data, np.repeat(-powers, counts)) / np.repeat(fractions, counts)
    return unit, np.ldexp(b, -powers) / fractions


def times_powers(weight: Matrix, exponents: NDArray[np.intc]) -> Matrix:
    """Return the matrix with columns multiplied by powers of two."""
    if not exponents.any():
        return weight
    with np.errstate(over="ignore"):
        if not sp.issparse(weight):
            moderate = np.max(np.abs(exponents)) < _MODERATE  # a product is much faster
            return weight * np.ldexp(1.0, exponents) if moderate else np.ldexp(weight, exponents)
        scaled = weight.copy()
        scaled.data = np.ldexp(weight.data, exponents[weight.indices])
        return scaled


def _nearest(A: _Directions, B: _Directions) -> NDArray[np.intp]:
    """Return the partner of every unit that has a clear one, and -1 for the others."""
    from scipy.spatial import cKDTree

    n = len(A.keys)
    same = np.arange(n)
    if np.max(np.linalg.norm(A.keys - B.keys, axis=1)) > _STRETCH * NEAR_ROWS:
        same = np.asarray(cKDTree(B.keys).query(A.keys)[1], dtype=np.intp)
    counts = np.bincount(same, minlength=n)
    clear = (counts[same] == 1) & (A.distance_to(B, same) <= NEAR_ROWS)
    return np.where(clear, same, -1)


def _assign(cost: Array, deadline: Deadline) -> NDArray[np.intp]:
    from scipy.optimize import linear_sum_assignment

    if ASSIGNMENT_SECONDS * len(cost) ** 3 > deadline.left:
        raise OutOfTime("no time left for pairing the units of two networks.")
    finite = np.nan_to_num(cost, nan=_FAR, posinf=_FAR)
    return np.asarray(linear_sum_assignment(finite)[1], dtype=np.intp)


def _parallel_groups(A: _Directions, tie: float) -> list[NDArray[np.intp]]:
    """Return groups of units, two or more each, linked by rows nearer to each other than the tie."""
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    close = cKDTree(A.keys).query_pairs(_STRETCH * tie, output_type="ndarray")
    if not len(close):
        return []
    n = len(A.keys)
    links = sp.coo_array((np.ones(len(close)), (close[:, 0], close[:, 1])), shape=(n, n))
    _, labels = connected_components(links, directed=False)
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    return [group for group in groups if len(group) > 1]


class _Outgoing:
    """The outgoing weights of units in the unit gauge, as far as they are known."""

    def __init__(self, layer: Affine, lengths: Array, last: bool) -> None:
        self._weight, self._lengths, self._rows = layer.weight, lengths, None
        if not last:  # rows of the next layer are known up to order and scale only
            places = np.arange(len(lengths))
            rows = row_lengths(moved_columns(layer.weight, places, 1.0 / np.maximum(lengths, TINY)))
            self._rows = np.where(rows > 0.0, rows, 1.0)[:, None]

    def columns(self, units: NDArray[np.intp]) -> Array:
        """Return what units feed to the next layer, one row each; sorted if its order is not known."""
        out = dense(self._weight[:, units]) * self._lengths[units]
        return (out if self._rows is None else np.sort(out / self._rows, axis=0)).T


def _column_distances(mine: Array, theirs: Array) -> Array:
    """Return how much outgoing weights differ, relative to the largest."""
    from scipy.spatial.distance import cdist

    size = max(float(np.max(np.abs(mine))), float(np.max(np.abs(theirs))))
    if not 0.0 < size < np.inf:
        return np.zeros((len(mine), len(theirs)))
    return np.asarray(cdist(mine / size, theirs / size))
