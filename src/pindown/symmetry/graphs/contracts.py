r"""Does a function of graphs depend on the names of the nodes?

.. math:: F_G(PAP^{-1}, PX) = F_G(A, X), \qquad F_V(PAP^{-1}, PX) = P F_V(A, X), \qquad
          F_E(PAP^{-1}, PX) = P F_E(A, X) P^{-1}.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.symmetry.graphs.data import Graph, inverse_permutation

LEVELS = ("graph", "node", "edge")


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
    kind: str = "estimate"

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
        random_state: Their seed.

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
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}; got {level!r}.")
    if n_perms < 1:
        raise ValueError(f"n_perms must be at least 1; got {n_perms!r}.")
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
