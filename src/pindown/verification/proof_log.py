r"""What a search proved, on the way: for every unsafe set a tree of cuts, with what closes its leaves.

A search that is given a log tells it three things, in batches:

- ``halve(nodes, places)``: parts were cut in two, and which numbers the halves have;
- ``shrink(nodes)``: boxes were cut down to where linear bounds do not show them to be safe;
- ``close(nodes)``: parts were proved; for choices of signs, with the slopes, multipliers and weights
  of the bound that proves them.

What is not told stays open: a set that was proved by a step that no log knows has an open tree, and then
no certificate is written. :mod:`~pindown.verification.proof_files` writes logs as certificates.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array

# What a node of a tree is.
OPEN, LEAF, CUT, SHRUNK, SHRUNK_AND_CUT = range(5)
_CHILDREN = np.array([0, 0, 2, 1, 2])  # how many parts each has
# How a set was proved.
BY_ENDS, BY_BOXES, BY_SIGNS = "ends", "boxes", "signs"
# Slopes are written as whole numbers up to this one.
SLOPE_STEPS = 15

Ids = NDArray[np.int64]


class CutTree:
    """Trees that grow by cuts; a node is known by its number.

    >>> tree = CutTree()
    >>> (root,) = tree.begin(1)
    >>> low, high = tree.halve([root], [3])  # along input 3
    >>> tree.close([low])
    >>> tree.walk(root)  # nodes level by level, low halves first; their kinds; places of the cuts
    (array([0, 1, 2]), array([2, 1, 0], dtype=uint8), array([3], dtype=int32))
    """

    def __init__(self) -> None:
        self._n = 0
        self._kind = np.zeros(64, np.uint8)
        self._place = np.zeros(64, np.int32)
        self._child = np.zeros(64, np.int64)

    def begin(self, n: int) -> Ids:
        """Add n open nodes, and return their numbers."""
        end = self._n + n
        if end > len(self._kind):
            more = max(end, 2 * len(self._kind)) - len(self._kind)
            self._kind, self._place, self._child = (
                np.concatenate([old, np.zeros(more, old.dtype)])
                for old in (self._kind, self._place, self._child)
            )
        made = np.arange(self._n, end)
        self._n = end
        return made

    def close(self, nodes: Sequence[int] | Ids) -> None:
        """Say that nodes are proved."""
        self._kind[np.asarray(nodes, np.int64)] = LEAF

    def shrink(self, nodes: Sequence[int] | Ids) -> Ids:
        """Say that nodes were shrunk, and return what they became."""
        at = np.asarray(nodes, np.int64)
        made = self.begin(len(at))
        self._kind[at], self._child[at] = SHRUNK, made
        return made

    def halve(
        self,
        nodes: Sequence[int] | Ids,
        places: Sequence[int] | Ids,
        shrunk: NDArray[np.bool_] | bool = False,
    ) -> Ids:
        """Say that nodes were cut, and return their halves: first all low ones, then all high ones.

        Args:
            nodes: Which.
            places: Inputs along which boxes were cut in the middle, or units whose sign was chosen; then
                the first half has the sign plus.
            shrunk: Whether they were shrunk before.
        """
        at = np.asarray(nodes, np.int64)
        made = self.begin(2 * len(at)).reshape(-1, 2)
        self._kind[at] = np.where(shrunk, SHRUNK_AND_CUT, CUT)
        self._place[at], self._child[at] = places, made[:, 0]
        return made.T.ravel()

    def reopen(self, nodes: Iterable[int]) -> None:
        """Forget what became of nodes."""
        self._kind[list(nodes)] = OPEN

    def walk(self, root: int) -> tuple[Ids, NDArray[np.uint8], NDArray[np.int32]]:
        """Return the nodes of a tree level by level, their kinds, and the places of its cuts."""
        level = np.array([root], np.int64)
        levels = []
        while len(level):
            levels.append(level)
            counts = _CHILDREN[self._kind[level]]
            first = np.repeat(self._child[level], counts)
            second = np.append(False, first[1:] == first[:-1]) if len(first) else np.zeros(0, bool)
            level = first + second
        at = np.concatenate(levels)
        return at, self._kind[at], self._place[at[_is_cut(self._kind[at])]]

    def ends(self, root: int = 0) -> list[tuple[int, int, int]]:
        """Return the leaves and open nodes of a tree of cuts level by level: number, depth and kind."""
        found, level, depth = [], [int(root)], 0
        while level:
            below = []
            for node in level:
                kind, first = int(self._kind[node]), int(self._child[node])
                if kind in (OPEN, LEAF):
                    found.append((node, depth, kind))
                else:
                    below += [first, first + 1]
            level, depth = below, depth + 1
        return found

    def way(self, root: int, wanted: Iterable[int]) -> dict[int, tuple[list[int], list[int]]]:
        """Return, for some nodes of a tree of signs, the units on the way to them and their signs."""
        left, found = set(wanted), {}
        waiting: list[tuple[int, list[int], list[int]]] = [(int(root), [], [])]
        while waiting:
            node, units, signs = waiting.pop()
            if node in left:
                found[node] = units, signs
            elif self._kind[node] == CUT:
                first, unit = int(self._child[node]), int(self._place[node])
                waiting += [
                    (first + 1, [*units, unit], [*signs, -1]),
                    (first, [*units, unit], [*signs, 1]),
                ]
        return found

    def grow(self, kinds: NDArray[np.uint8], places: NDArray[np.int32]) -> tuple[int, Ids]:
        """Add the tree that :meth:`walk` told; return its root and its open nodes, in that order.

        Raises:
            ValueError: If it is no tree.
        """
        (root,) = self.begin(1).tolist()
        waiting, open_nodes = deque([root]), []
        where = np.zeros(len(kinds), np.int32)
        where[_is_cut(kinds)] = places
        for kind, place in zip(kinds.tolist(), where.tolist(), strict=True):
            if not waiting:
                raise ValueError("a tree has more nodes than room for them.")
            node = waiting.popleft()
            self._kind[node], self._place[node] = kind, place
            if kind == OPEN:
                open_nodes.append(node)
            elif kind != LEAF:
                made = self.begin(1 if kind == SHRUNK else 2).tolist()
                self._child[node] = made[0]
                waiting += made
        if waiting:
            raise ValueError("a tree ends before all of its parts are told.")
        return root, np.array(open_nodes, np.int64)


def _is_cut(kinds: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return np.asarray((kinds == CUT) | (kinds == SHRUNK_AND_CUT))


class SignLeaf(NamedTuple):
    """The bound that proves a choice of signs, or the best one of an open one.

    Attributes:
        slopes: Below the units of open sign, in steps of 1 / ``SLOPE_STEPS``.
        multipliers: Multipliers of the signs, from the root of the tree down.
        weights: Weights of the set's rows.
    """

    slopes: NDArray[np.uint8]
    multipliers: NDArray[np.float32]
    weights: Array

    @classmethod
    def of(cls, slopes: NDArray[np.floating], multipliers: Array, weights: Array) -> SignLeaf:
        """Return a leaf of slopes in [0, 1], rounded to steps."""
        codes = np.rint(np.asarray(slopes, np.float64) * SLOPE_STEPS).astype(np.uint8)
        return cls(codes, multipliers.astype(np.float32), np.array(weights))


class InnerBounds(NamedTuple):
    """Proved bounds on what enters the ReLUs of one tensor, and the slopes that prove them.

    Attributes:
        lower: Lower ends.
        upper: Upper ends.
        entries: Entries that were bounded with slopes of their own: 2 i for the upper end of entry i,
            2 i + 1 for its lower end.
        slopes: For each of these, slopes below all units of open sign of the tensors before.
    """

    lower: NDArray[np.float32]
    upper: NDArray[np.float32]
    entries: NDArray[np.int32]
    slopes: NDArray[np.uint8]


@dataclass(eq=False)
class SignLog:
    """A tree of signs of one unsafe set.

    Attributes:
        root: Which root its bounds are taken from: a place in the log's list.
        tree: The cuts; node 0 is the whole.
        leaves: What closes its leaves.
    """

    root: int
    tree: CutTree = field(default_factory=CutTree)
    leaves: dict[int, SignLeaf] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tree.begin(1)

    def close(self, node: int, leaf: SignLeaf) -> None:
        """Say what proves a node."""
        self.tree.close([node])
        self.leaves[node] = leaf


@dataclass(eq=False)
class ProofLog:
    """What was proved about a property.

    Attributes:
        boxes: The trees of boxes of all sets.
        box_roots: Where the tree of a set begins.
        roots: Bounds inside the model on the box of some sets, for trees of signs: for every tensor that
            enters a ReLU, in order.
        signs: Trees of signs, by set.
        proved: How each set was proved.
        refused: Why no certificate can be written; empty if one can.
    """

    boxes: CutTree = field(default_factory=CutTree)
    box_roots: dict[int, int] = field(default_factory=dict)
    roots: list[list[InnerBounds]] = field(default_factory=list)
    signs: dict[int, SignLog] = field(default_factory=dict)
    proved: dict[int, str] = field(default_factory=dict)
    refused: str = ""

    def open_boxes(self, s: int) -> list[int]:
        """Return the open boxes of a set."""
        nodes, kinds, _ = self.boxes.walk(self.box_roots[s])
        return [int(node) for node in nodes[kinds == OPEN]]

    def refuse(self, reason: str) -> None:
        """Say that a step was taken which certificates do not have; the first reason stays."""
        self.refused = self.refused or reason

    def settle(self, sets: Iterable[int], how: str, method: str) -> None:
        """Say how sets were proved.

        Args:
            sets: Which.
            how: ``"ends"``, ``"boxes"`` or ``"signs"``; anything else is no step of a certificate.
            method: What users call it.
        """
        for s in sets:
            if how not in (BY_ENDS, BY_BOXES, BY_SIGNS):
                self.refuse(f"{method} is no step that certificates have")
            self.proved.setdefault(s, how)
