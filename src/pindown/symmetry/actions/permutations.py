"""Permutations of the members of sets and of the nodes of graphs.

Sets are samples (n, m, ...) whose second axis lists the members. Of a graph, features and both sides of
the adjacency matrix move together.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.symmetry.families import Transformations
from pindown.symmetry.groups import Group, symmetric


def set_permutations(m: int) -> Group:
    """All m! orders of the members, up to m = 7; the member i goes to the place that i is sent to.

    >>> set_permutations(2).act(1, [[[1.0, 2.0], [3.0, 4.0]]]).tolist()
    [[[3.0, 4.0], [1.0, 2.0]]]

    Lecture course, slides on permutation-equivariant layers.
    """
    group = symmetric(m)
    assert group.points is not None
    sources = np.argsort(group.points, axis=1)
    return group.acting_by(partial(_moved_to, sources))


def set_shuffles(m: int, n: int = 10, seed: int = 0) -> Transformations:
    """Some random orders of the members, for sets too large to try all; none leaves all in place.

    The first swaps the first two members.

    >>> set_shuffles(100, 5).order
    5
    """
    if m < 2 or n < 1:
        raise ValueError(f"shuffles need at least two members and one order; got m = {m}, n = {n}.")
    rng = np.random.default_rng(seed)
    swap = np.r_[1, 0, 2:m]
    orders = [swap]
    while len(orders) < n:
        order = rng.permutation(m)
        if (order != np.arange(m)).any():
            orders.append(order)
    moves = tuple(partial(_moved_to, np.array([order]), 0) for order in orders)
    return Transformations(f"shuffles of {m}", tuple(range(n)), moves)


def _moved_to(sources: NDArray[np.int64], index: int, X: NDArray[np.float64]) -> NDArray[np.float64]:
    return _members(X, sources.shape[1])[:, sources[index]]


def _members(X: NDArray[np.float64], m: int) -> NDArray[np.float64]:
    if X.ndim < 2 or X.shape[1] != m:
        raise ValueError(f"sets of {m} members have shape (n, {m}, ...); got {X.shape}.")
    return X


def pack_graphs(adjacency: ArrayLike, features: ArrayLike) -> Array:
    """Return graphs as one array (n, m, m + c), edges and features side by side, to measure on.

    >>> pack_graphs(np.zeros((5, 3, 3)), np.zeros((5, 3, 2))).shape
    (5, 3, 5)
    """
    A, X = np.asarray(adjacency, dtype=float), np.asarray(features, dtype=float)
    if A.ndim != 3 or A.shape[1] != A.shape[2] or X.shape[:2] != A.shape[:2] or X.ndim != 3:
        raise ValueError(f"graphs are (n, m, m) and (n, m, c); got {A.shape} and {X.shape}.")
    return np.concatenate([A, X], axis=2)


def unpack_graphs(packed: ArrayLike) -> tuple[Array, Array]:
    """Return edges (n, m, m) and features (n, m, c) of packed graphs.

    >>> A, X = unpack_graphs(np.zeros((5, 3, 5)))
    >>> A.shape, X.shape
    ((5, 3, 3), (5, 3, 2))
    """
    graphs = np.asarray(packed, dtype=float)
    if graphs.ndim != 3 or graphs.shape[2] < graphs.shape[1]:
        raise ValueError(f"packed graphs are (n, m, m + c); got shape {graphs.shape}.")
    m = graphs.shape[1]
    return graphs[..., :m], graphs[..., m:]


def graph_permutations(m: int) -> Group:
    r"""All m! numberings of the nodes of packed graphs, up to m = 7: :math:`(P A P^\top, P X)`.

    >>> arrow = pack_graphs([[[0, 1], [0, 0]]], [[[5.0], [7.0]]])  # an edge from node 0 to node 1
    >>> graph_permutations(2).act(1, arrow).tolist()
    [[[0.0, 0.0, 7.0], [1.0, 0.0, 5.0]]]

    Lecture course, slides on graphs.
    """
    group = symmetric(m)
    assert group.points is not None
    return group.acting_by(partial(_renumbered, np.argsort(group.points, axis=1)))


def _renumbered(sources: NDArray[np.int64], index: int, packed: Array) -> Array:
    A, X = unpack_graphs(packed)
    if A.shape[1] != sources.shape[1]:
        raise ValueError(f"these graphs have {sources.shape[1]} nodes; got shape {packed.shape}.")
    order = sources[index]
    return pack_graphs(A[:, order][:, :, order], X[:, order])
