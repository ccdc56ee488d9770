r"""The names of nodes do not matter: are two graphs the same but for them, does a function see them?

:math:`G_1 \cong G_2` if :math:`PA_1P^{-1} = A_2` for a permutation matrix P. Colour refinement, the test
of Weisfeiler and Leman, tells most pairs apart at once; where it does not, a node is singled out on both
sides and refinement goes on. A function of graphs, nodes or edges keeps its contract if

.. math:: F_G(PAP^{-1}, PX) = F_G(A, X), \qquad F_V(PAP^{-1}, PX) = P F_V(A, X), \qquad
          F_E(PAP^{-1}, PX) = P F_E(A, X) P^{-1}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.symmetry.graphs.data import Graph, inverse_permutation
from pindown.validation import choice, integer

Colours: TypeAlias = NDArray[np.int64]
LEVELS = ("graph", "node", "edge")


def colour_refinement(graph: Graph | ArrayLike, colours: ArrayLike | None = None) -> Colours:
    """Return the stable colours of the nodes: nodes of one colour see the same colours around them.

    Nodes start with the colours given, or with their features, and split until nothing changes. This is
    also all that message passing can tell apart: nodes of one colour get one answer.

    Args:
        graph: A graph, or its adjacency matrix.
        colours: Colours to start with; None for those of the features.

    Returns:
        Integers from 0, ``(n,)``, that do not depend on the names of the nodes.

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


@dataclass(frozen=True)
class GraphContract:
    """How far a function is from its contract.

    Attributes:
        level: What it answers about: ``"graph"``, ``"node"`` or ``"edge"``.
        error: Largest difference over the permutations that were tried.
        scale: Largest answer, to read the error against.
        n_perms: Permutations that were tried.
        kind: ``"estimate"``: other graphs or permutations may do worse.
    """

    level: str
    error: float
    scale: float
    n_perms: int
    kind: Kind = "estimate"

    def __float__(self) -> float:
        return self.error

    def __str__(self) -> str:
        share = self.error / self.scale if self.scale else self.error
        return (
            f"answers about each {self.level} change by up to {self.error:.3g} ({share:.2g} of the "
            f"largest) under {self.n_perms} renamings ({self.kind})"
        )


def graph_contract_error(
    fn: Callable[..., Any], level: str, graph: Graph, n_perms: int = 20, random_state: int = 0
) -> GraphContract:
    """Measure how much a function of graphs depends on the order of the nodes.

    Args:
        fn: Takes A and X, then Y and g if the graph has them; returns an array or a tensor: anything for
            a graph, ``(n, ...)`` for nodes, ``(n, n, ...)`` for edges.
        level: ``"graph"``, ``"node"`` or ``"edge"``.
        graph: The graph to try.
        n_perms: Random permutations.
        random_state: Seed of the permutations.

    Returns:
        The largest difference and its scale.

    Raises:
        ValueError: If the level is unknown, or the answer has the wrong shape or is not finite.

    Example:
        >>> path = Graph([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
        >>> graph_contract_error(lambda A, X: A.sum(), "graph", path).error
        0.0
        >>> graph_contract_error(lambda A, X: A[0].sum(), "graph", path).error  # asks the first node
        1.0

    Lecture course, section on graph isomorphism.
    """
    choice("level", level, LEVELS)
    integer("n_perms", n_perms)
    answer = _answer(fn, graph)
    axes = LEVELS.index(level)
    if answer.shape[:axes] != (graph.n_nodes,) * axes:
        raise ValueError(
            f"answers about a {level} of {graph.n_nodes} nodes start with {axes} axes of that length; "
            f"got shape {answer.shape}."
        )
    rng = np.random.default_rng(random_state)
    error = 0.0
    for _ in range(n_perms):
        perm = rng.permutation(graph.n_nodes)
        moved = _answer(fn, graph.relabel(perm))
        error = max(error, float(np.abs(moved - _renamed(answer, perm, axes)).max(initial=0.0)))
    return GraphContract(level, error, float(np.abs(answer).max(initial=0.0)), n_perms)


def _answer(fn: Callable[..., Any], graph: Graph) -> Array:
    extra = [part for part in (graph.Y, graph.g) if part is not None]
    answer = fn(graph.A, graph.X, *extra)
    values = np.asarray(answer.detach().cpu() if hasattr(answer, "detach") else answer, dtype=float)
    if not np.isfinite(values).all():
        raise ValueError("the function must give finite numbers; some answers are NaN or infinite.")
    return values


def _renamed(answer: Array, perm: NDArray[np.int64], axes: int) -> Array:
    order = inverse_permutation(perm, len(perm))
    if axes == 0:
        return answer
    return answer[order] if axes == 1 else answer[np.ix_(order, order)]
