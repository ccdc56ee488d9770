"""Renumbering the nodes of a graph: features and both sides of the adjacency matrix move together."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.groups import Group, symmetric

Arrays = NDArray[np.float64]


def pack_graphs(adjacency: ArrayLike, features: ArrayLike) -> Arrays:
    """Return graphs as one array (n, m, m + c), edges and features side by side, to measure on.

    >>> pack_graphs(np.zeros((5, 3, 3)), np.zeros((5, 3, 2))).shape
    (5, 3, 5)
    """
    A, X = np.asarray(adjacency, dtype=float), np.asarray(features, dtype=float)
    if A.ndim != 3 or A.shape[1] != A.shape[2] or X.shape[:2] != A.shape[:2] or X.ndim != 3:
        raise ValueError(f"graphs are (n, m, m) and (n, m, c); got {A.shape} and {X.shape}.")
    return np.concatenate([A, X], axis=2)


def unpack_graphs(packed: ArrayLike) -> tuple[Arrays, Arrays]:
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


def _renumbered(sources: NDArray[np.int64], index: int, packed: Arrays) -> Arrays:
    A, X = unpack_graphs(packed)
    if A.shape[1] != sources.shape[1]:
        raise ValueError(f"these graphs have {sources.shape[1]} nodes; got shape {packed.shape}.")
    order = sources[index]
    return pack_graphs(A[:, order][:, :, order], X[:, order])
