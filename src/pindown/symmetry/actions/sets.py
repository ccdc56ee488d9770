"""Permutations of the members of a set: samples (n, m, ...) whose second axis lists the members."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from pindown.symmetry.actions.families import Transformations
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
