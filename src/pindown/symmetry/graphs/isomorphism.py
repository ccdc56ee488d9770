r"""Are two graphs the same up to the names of their nodes?

:math:`G_1 \cong G_2` if :math:`PA_1P^{-1} = A_2` for a permutation matrix P. Colour refinement tells
most pairs apart at once; where it does not, a node is singled out on both sides and refinement goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.symmetry.graphs.data import Graph

Colours: TypeAlias = NDArray[np.int64]


def colour_refinement(graph: Graph | ArrayLike, colours: ArrayLike | None = None) -> Colours:
    """Return the stable colours of the nodes: nodes of one colour see the same colours around them.

    Nodes start with the colours given, or with their features, and split until nothing changes. This is
    also all that message passing can tell apart: nodes of one colour get one answer.

    Args:
        graph: A graph, or its adjacency matrix.
        colours: Colours to start with; None for those of the features.

    Returns:
        Whole numbers from 0, ``(n,)``, that do not depend on the names of the nodes.

    Example:
        The ends of a path are told from its middle:

        >>> colour_refinement([[0, 1, 0], [1, 0, 1], [0, 1, 0]]).tolist()
        [0, 1, 0]

    Lecture course, section on graph isomorphism; the method is Weisfeiler and Leman's.
    """
    given = _graph(graph)
    return _refined(given.A, given.Y, _start(given) if colours is None else _ranked(np.asarray(colours)))


def isomorphisms(first: Graph | ArrayLike, second: Graph | ArrayLike) -> Iterator[tuple[int, ...]]:
    """Yield every isomorphism: permutations p with ``first.relabel(p)`` equal to ``second``.

    Features of nodes, edges and the whole must agree too.

    >>> triangle = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    >>> len(list(isomorphisms(triangle, triangle)))
    6

    Lecture course, section on graph isomorphism.
    """
    one, two = _graph(first), _graph(second)
    if one.A.shape != two.A.shape or one.X.shape != two.X.shape:
        return
    if (one.Y is None) != (two.Y is None) or not _same(one.g, two.g):
        return
    if one.Y is not None and two.Y is not None and one.Y.shape != two.Y.shape:
        return
    n = one.n_nodes
    A = np.zeros((2 * n, 2 * n))
    A[:n, :n], A[n:, n:] = one.A, two.A
    Y = None
    if one.Y is not None and two.Y is not None:
        Y = np.zeros((2 * n, 2 * n, one.Y.shape[2]))
        Y[:n, :n], Y[n:, n:] = one.Y, two.Y
    both = Graph(A, np.concatenate([one.X, two.X]), Y)
    for perm in _search(both, _start(both)):
        moved = one.relabel(perm)
        if np.array_equal(moved.A, two.A) and _same(moved.Y, two.Y):
            yield tuple(perm.tolist())


def find_isomorphism(first: Graph | ArrayLike, second: Graph | ArrayLike) -> tuple[int, ...] | None:
    """Return one isomorphism, or None if there is none; the answer is exact.

    >>> find_isomorphism([[0, 1, 1], [1, 0, 0], [1, 0, 0]], [[0, 1, 0], [1, 0, 1], [0, 1, 0]])[0]
    1

    Lecture course, section on graph isomorphism.
    """
    return next(isomorphisms(first, second), None)


def _search(both: Graph, colours: Colours) -> Iterator[Colours]:
    """Refine the union of both graphs; where several nodes share a colour, single one out and go on."""
    n = both.n_nodes // 2
    colours = _refined(both.A, both.Y, colours)
    left, right = colours[:n], colours[n:]
    if not np.array_equal(np.sort(left), np.sort(right)):
        return
    shades, counts = np.unique(left, return_counts=True)
    if (counts == 1).all():
        order = np.argsort(right)
        yield order[np.searchsorted(right[order], left)]
        return
    shade = shades[counts > 1][np.argmin(counts[counts > 1])]
    node = int(np.argmax(left == shade))
    for partner in np.flatnonzero(right == shade).tolist():
        split = 2 * colours
        split[[node, n + partner]] += 1
        yield from _search(both, split)


def _refined(A: Array, Y: Array | None, colours: Colours) -> Colours:
    out = _edge_kinds(A, Y)
    # Both directions are seen; one number codes the pair.
    kinds = out * (out.max() + 1) + out.T
    shades = kinds.max() + 1
    colours = _ranked(colours)
    while True:
        seen = np.where(kinds > 0, colours * shades + kinds, 0)
        around = np.sort(seen, axis=1)
        finer = _ranked(np.column_stack([colours, np.diagonal(out), around]))
        if finer.max() == colours.max():
            return finer
        colours = finer


def _edge_kinds(A: Array, Y: Array | None) -> NDArray[np.int64]:
    """Number the kinds of edges; 0 is no edge."""
    labels = A[:, :, None] if Y is None else np.concatenate([A[:, :, None], Y], axis=2)
    kinds = np.unique(labels.reshape(-1, labels.shape[2]), axis=0, return_inverse=True)[1]
    numbered = kinds.reshape(A.shape).astype(np.int64) + 1
    return np.where(labels.any(axis=2), numbered, 0)


def _start(graph: Graph) -> Colours:
    return _ranked(graph.X)


def _ranked(values: NDArray[np.generic]) -> Colours:
    if values.ndim == 1:
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    return np.unique(values, axis=0, return_inverse=True)[1].ravel().astype(np.int64)


def _same(a: Array | None, b: Array | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)


def _graph(graph: Graph | ArrayLike) -> Graph:
    return graph if isinstance(graph, Graph) else Graph(np.asarray(graph, dtype=float))
