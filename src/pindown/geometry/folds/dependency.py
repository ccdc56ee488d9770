r"""Which fold bends at which, and what that says about the layers they come from.

A fold of layer l bends only where it meets a fold of an earlier layer. So the canonical pieces of a
picture form a graph: an edge :math:`H \to K` says that K has the higher level, ends inside H, and
*bends* there, that is, does not go on straight on the other side of H. If S is the union of the unit
fold-sets of layers :math:`1..\lambda` of a general network, a piece of level k that starts a path of
length m belongs to a layer l with

.. math:: k \le l \le \lambda - m.

Phuong 2021, section 2.4 and Lemma A.18. The printed definition has an edge wherever K ends at H, also
where it goes on straight; the lemma is false for that graph (``variant="as_printed"``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pindown.geometry.folds.canonical_surface import CanonicalSurface
from pindown.geometry.tuning import FOLD_PAIRS_PER_BLOCK
from pindown.validation import choice, integer

Variant: TypeAlias = Literal["corrected", "as_printed"]


@dataclass(frozen=True, eq=False, repr=False)
class DependencyGraph:
    """The pieces of a surface and the edges from a piece to those that bend at it.

    Attributes:
        surface: The pieces.
        edges: Pairs (e, 2) of pieces: the second bends at the first. Levels ascend along every edge.
        variant: ``"corrected"`` if straight continuations are left out, else ``"as_printed"``.
    """

    surface: CanonicalSurface
    edges: NDArray[np.int64]
    variant: Variant

    @cached_property
    def path_lengths(self) -> NDArray[np.int64]:
        """For each piece the number of edges on the longest path that starts there, (p,)."""
        longest = np.zeros(len(self.surface), dtype=np.int64)
        # Levels ascend along edges, so everything after a piece is done before it.
        for first, second in self.edges[
            np.argsort(-self.surface.levels[self.edges[:, 0]], kind="stable")
        ]:
            longest[first] = max(longest[first], longest[second] + 1)
        return longest

    def after(self, piece: int) -> NDArray[np.int64]:
        """Return the pieces that bend at the given one."""
        return self.edges[self.edges[:, 0] == piece, 1]

    def __repr__(self) -> str:
        kind = "bends" if self.variant == "corrected" else "as printed"
        longest = f"longest path {self.path_lengths.max(initial=0)}"
        return f"DependencyGraph({kind}: {len(self.surface)} pieces, {len(self.edges)} edges, {longest})"


def dependency_graph(surface: CanonicalSurface, *, variant: Variant = "corrected") -> DependencyGraph:
    """Find which pieces of a surface end at which others.

    Args:
        surface: The canonical pieces.
        variant: ``"corrected"`` counts an end only if the piece does not go on straight beyond it;
            ``"as_printed"`` is the printed definition, for comparison.

    Example:
        The ray that leaves the cross at (0, 0.5) bends there, as nothing continues it:

        >>> from pindown.geometry.folds.canonical_surface import canonical_surface
        >>> cross = [[[-1, 0], [1, 0]], [[0, -1], [0, 1]]]
        >>> surface = canonical_surface([*cross, [[0, 0.5], [1, 0.5]]], (-1, 1))
        >>> graph = dependency_graph(surface)
        >>> [[sorted(surface.ends[i].tolist()) for i in edge] for edge in graph.edges]
        [[[[0.0, -1.0], [0.0, 1.0]], [[0.0, 0.5], [1.0, 0.5]]]]

    Phuong 2021, Definition A.5, corrected.
    """
    choice("variant", variant, ("corrected", "as_printed"))
    bend, lines, levels = variant == "corrected", surface.lines, surface.levels
    found: list[tuple[int, int]] = []
    every, n = np.arange(len(surface)), len(surface)
    along = np.column_stack([-lines.normals[surface.carriers, 1], lines.normals[surface.carriers, 0]])
    spans = np.sort(np.einsum("pej,pj->pe", surface.ends - lines.origin, along), axis=1)
    step = max(1, FOLD_PAIRS_PER_BLOCK // max(2 * n, 1))
    for start in range(0, n, step):
        later = every[start : start + step]
        ends = surface.ends[later].reshape(-1, 2)
        owner = np.repeat(later, 2)
        near = np.abs(lines.heights(ends, surface.carriers)) <= lines.tolerance
        t = (ends - lines.origin) @ along.T
        inside = (t > spans[:, 0] + lines.tolerance) & (t < spans[:, 1] - lines.tolerance)
        for row, first in np.argwhere(near & inside & (levels < levels[owner][:, None])):
            second = int(owner[row])
            carrier = int(surface.carriers[second])
            position = float(lines.positions(ends[row], carrier))
            if not (bend and lines.continues(carrier, position)):
                found.append((int(first), second))
    edges = np.array(sorted(set(found)), dtype=np.int64).reshape(-1, 2)
    edges.flags.writeable = False
    return DependencyGraph(surface, edges, variant)


@dataclass(frozen=True, eq=False, repr=False)
class Attribution:
    """For every piece of a picture, the layers it can come from.

    Attributes:
        graph: The pieces and what bends where.
        n_layers: Number of hidden layers assumed.
        lower: The first possible layer (p,): the piece's level.
        upper: The last one (p,): the number of layers less the longest path from the piece.
    """

    graph: DependencyGraph
    n_layers: int
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]

    @property
    def identified(self) -> NDArray[np.bool_]:
        """Whether (p,) exactly one layer is possible."""
        return self.lower == self.upper

    @property
    def consistent(self) -> bool:
        """Whether every piece has a possible layer; if not, more layers are needed."""
        return bool((self.lower <= self.upper).all())

    def __repr__(self) -> str:
        if not self.consistent:
            return f"Attribution(not the folds of a general network with {self.n_layers} hidden layers)"
        known = f"{self.identified.sum()} of {len(self.lower)} pieces"
        return f"Attribution({known} have one possible layer of {self.n_layers})"


def attribute_layers(
    surface: CanonicalSurface, n_layers: int, *, variant: Variant = "corrected"
) -> Attribution:
    r"""Bound the layer of every piece, from the picture alone: :math:`k \le l \le \lambda - m`.

    Holds for the union of the unit fold-sets of a general network in the plane, if no three folds meet
    in a point where one of them bends. That union is what the output shows if the network is
    transparent; otherwise folds can end where a deeper layer is off, and the picture misleads.

    Args:
        surface: The canonical pieces.
        n_layers: Number :math:`\lambda` of hidden layers.
        variant: ``"as_printed"`` uses the printed graph, for which the upper bound is wrong.

    Raises:
        ValueError: If ``n_layers`` is not a positive number.

    >>> from pindown.geometry.folds.canonical_surface import canonical_surface
    >>> cross = [[[-1, 0], [1, 0]], [[0, -1], [0, 1]]]
    >>> surface = canonical_surface([*cross, [[0, 0.5], [1, 0.5]]], (-1, 1))
    >>> layers = attribute_layers(surface, 2)
    >>> layers
    Attribution(2 of 3 pieces have one possible layer of 2)
    >>> sorted(zip(layers.lower.tolist(), layers.upper.tolist()))
    [(1, 1), (1, 2), (2, 2)]

    Phuong 2021, Lemma 2.3, with the corrected graph.
    """
    integer("n_layers", n_layers)
    graph = dependency_graph(surface, variant=variant)
    return Attribution(graph, n_layers, surface.levels, n_layers - graph.path_lengths)
