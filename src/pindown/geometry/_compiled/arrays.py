"""A network and the working memory of a walk as flat arrays, the form that compiled loops read fastest.

The memory of a walk is the stack of cells, room for the two halves of one, and what is known of the
network on the cell at hand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, dense
from pindown.geometry.complex.proportional_units import proportional_units
from pindown.network import ReluNetwork

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

# Columns of Stack.frames.
LEVEL, VERTEX, N_VERTICES, EDGE, N_EDGES, CANDIDATE, N_CANDIDATES, STATE, NUMBERED = range(9)
# Rows of Work.vectors.
LOWER, UPPER, HALF, REACH, CENTER, RADIUS, ROW, POINT, REST, ZERO = range(10)
# Rows of Halves.marks.
SIGN, PLACE, CUT = 0, 1, 3  # the last two for the negative and the positive half
# Entries of the counters that a walk keeps.
FRAMES, CELLS, DEFERRED, VERTICES, FACETS, CHOSEN = range(6)
# Why a walk stopped.
FINISHED, PAUSED, GROW, FULL, TOO_MANY_FACETS, WANTS_PRIMES = range(6)
FACETS_PER_WORD = 64


class FlatNetwork(NamedTuple):
    r"""All layers in a few arrays.

    Hidden layer :math:`l` (from 0) has its units at ``starts[l] : starts[l + 1]``; the output layer
    comes last. Weights stand column by column: what unit j of layer l - 1 feeds into layer l, of
    width n, is ``weights[weight_starts[l] + j * n : ... + n]``.
    """

    dim: int
    hidden: int  # number of ReLU layers
    widths: Integers  # of the hidden layers, then of the output
    starts: Integers
    weight_starts: Integers
    weights: Array
    biases: Array
    leader: NDArray[np.int32]  # which unit of a layer stands for which (proportional_units.py)
    follower: NDArray[np.int32]
    opposite: NDArray[np.uint8]

    @classmethod
    def of(cls, net: ReluNetwork) -> FlatNetwork:
        """Lay out ``net``."""
        widths = np.array(net.widths[1:], dtype=np.int64)
        groups = proportional_units(net)
        columns = [np.ascontiguousarray(dense(layer.weight).T).ravel() for layer in net.layers]
        return cls(
            dim=net.in_features,
            hidden=net.depth - 1,
            widths=widths,
            starts=np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
            weight_starts=np.concatenate([[0], np.cumsum([c.size for c in columns])]).astype(np.int64),
            weights=np.concatenate(columns),
            biases=np.concatenate([layer.bias for layer in net.layers]).astype(np.float64),
            leader=groups.leader,
            follower=groups.follower,
            opposite=groups.opposite,
        )

    @property
    def size(self) -> int:
        """Number of ReLUs."""
        return int(self.starts[self.hidden])

    @property
    def widest(self) -> int:
        """Width of the widest layer, output included."""
        return int(self.widths.max())


class Stack(NamedTuple):
    """Cells still to be worked on, last in first out.

    A row of ``frames`` says where the parts of a cell lie in the other arrays: its vertices, its
    edges, the units of its level that still cut it, and the states of the level's units; and how many
    vertices were numbered when it was made. In the plane, ``edges[k, 0]`` is the label of the side from
    vertex k to the next.
    """

    frames: Integers
    keys: Words  # one hash of the units known to be on
    coords: Array  # (d + 1): the last column is how far the vertex can be from the true one
    # (d + 2) in certified walks: then follows the number of the vertex (see Ties)
    edges: NDArray[np.int32]
    candidates: NDArray[np.int32]
    states: NDArray[np.uint8]
    words: Words  # the same states, eight at a time


class Halves(NamedTuple):
    """The two halves of a cell, the negative one first."""

    counts: Integers  # (2, 3): vertices, edges, candidates of each half
    keys: Words
    coords: Array
    edges: NDArray[np.int32]
    marks: NDArray[np.int32]  # of the parent's vertices: sign, places in the halves, vertices of the cut
    values: Array


class Faces(NamedTuple):
    """Which facets meet in which vertex, as bit masks; used in three and more dimensions."""

    masks: Words  # one row per vertex of the stack
    labels: Integers  # of each bit, one row per frame
    half_masks: Words
    half_labels: Integers
    numbers: Integers  # of the facets of a finished cell, by bit


class Work(NamedTuple):
    """What is known of the network on the cell at hand, and small buffers."""

    vectors: Array
    matrices: Array  # (3, d, d + 1)
    maps: Array  # per layer (d + 1, width), layers one after the other
    bounds: Array  # per unit: values below are not told from zero
    current: NDArray[np.uint8]  # states that the maps were made for, one row per layer
    current_words: Words  # the same, eight at a time
    updates: Integers  # of each map since it was built from nothing
    values: Array  # (2, width)
    states: NDArray[np.uint8]
    words: Words
    chosen: NDArray[np.int32]
    labels: Integers
    found: Array


def padded(n: int) -> int:
    """Round up to a multiple of eight: states are copied and compared as 64-bit words."""
    return (n + 7) // 8 * 8


def new_work(net: FlatNetwork, lower: Array, upper: Array, bounds: Array) -> Work:
    """Reserve buffers for one walk; ``bounds`` are copied."""
    d, widest = net.dim, net.widest
    vectors = np.zeros((10, d + 1))
    vectors[LOWER, :d], vectors[UPPER, :d] = lower, upper
    vectors[HALF, :d] = upper / 2 - lower / 2
    vectors[REACH, :d] = np.maximum(np.abs(lower), np.abs(upper))
    vectors[REACH, d] = 1.0
    current = np.zeros((max(net.hidden, 1), padded(widest)), np.uint8)
    states = np.zeros(padded(widest), np.uint8)
    return Work(
        vectors=vectors,
        matrices=np.zeros((3, d, d + 1)),
        maps=np.zeros((d + 1) * int(net.starts[-1])),
        bounds=np.array(bounds, dtype=np.float64),
        current=current,
        current_words=current.view(np.uint64),
        updates=np.full(net.hidden + 1, -1, np.int64),
        values=np.zeros((2, widest)),
        states=states,
        words=states.view(np.uint64),
        chosen=np.zeros(widest, np.int32),
        labels=np.zeros(d, np.int64),
        found=np.zeros((widest + 2, 4)),
    )


def new_stack(columns: int, frames: int, vertices: int, edges: int, units: int) -> Stack:
    """Reserve a stack; ``columns`` are those of a vertex."""
    states = np.zeros(padded(units), np.uint8)
    return Stack(
        frames=np.zeros((frames, 9), np.int64),
        keys=np.zeros(frames, np.uint64),
        coords=np.zeros((vertices, columns)),
        edges=np.zeros((edges, 2), np.int32),
        candidates=np.zeros(units, np.int32),
        states=states,
        words=states.view(np.uint64),
    )


def new_halves(columns: int, vertices: int, edges: int) -> Halves:
    """Reserve room for two halves of at most this many vertices and edges each."""
    return Halves(
        counts=np.zeros((2, 3), np.int64),
        keys=np.zeros(2, np.uint64),
        coords=np.zeros((2, vertices, columns)),
        edges=np.zeros((2, edges, 2), np.int32),
        marks=np.zeros((5, vertices), np.int32),
        values=np.zeros(vertices),
    )


def new_faces(words: int, stack: Stack, halves: Halves) -> Faces:
    """Reserve masks of so many words for all vertices of a stack and of two halves."""
    slots = words * FACETS_PER_WORD
    return Faces(
        masks=np.zeros((len(stack.coords), words), np.uint64),
        labels=np.full((len(stack.frames), slots), -1, np.int64),
        half_masks=np.zeros((2, halves.coords.shape[1], words), np.uint64),
        half_labels=np.full((2, slots), -1, np.int64),
        numbers=np.zeros(slots, np.int64),
    )
