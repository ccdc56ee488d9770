"""Driving the compiled traversal of all cells: memory that grows, time limits, taking it up again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.compiling import time_limit
from pindown.deadline import NEVER, Deadline, Stopwatch
from pindown.geometry._compiled import arrays
from pindown.geometry._compiled.arrangement import new_slices
from pindown.geometry._compiled.arrays import FlatNetwork
from pindown.geometry._compiled.exact_residues import (
    POINT_PRIMES,
    READY,
    WANTED,
    Ties,
    corner_facets,
    new_ties,
    with_more_vertices,
    with_primes,
)
from pindown.geometry._compiled.finished_cells import CellStore, new_cell_store
from pindown.geometry._compiled.layer_maps import start
from pindown.geometry._compiled.traversal import walk
from pindown.geometry._compiled.zero_proofs import MAX_PRIMES, prepare
from pindown.geometry.nearness import leaves_float64, zero_bounds
from pindown.geometry.tuning import (
    COPIED_BYTES_PER_SECOND,
    FIRST_CELL_ROOM,
    MAX_FACET_WORDS,
    MAX_RESERVED_BYTES,
    WALK_FIRST_STEPS,
    WALK_SLICE_SECONDS,
)
from pindown.network import ReluNetwork
from pindown.progress import Report

Integers = NDArray[np.int64]


class Cell(NamedTuple):
    """A cell taken off the stack of one walk, to be put on that of another."""

    level: int
    key: np.uint64
    coords: Array
    edges: NDArray[np.int32]
    candidates: NDArray[np.int32]
    states: NDArray[np.uint8]
    masks: NDArray[np.uint64] | None
    labels: NDArray[np.int64] | None
    words: int
    facets: Integers | None  # by which certified walks know the vertices

    @property
    def n_candidates(self) -> int:
        """How many units of its level still cut it."""
        return len(self.candidates)


class Walk:
    """A walk through the cells of a network on a box, as far as it has come.

    Args:
        net: A network with at least one hidden layer.
        box: A full-dimensional box of two or more dimensions.
        counting: Whether cells are only counted (the last layer's are then never built).
        certified: Whether undecided signs are handed over (``deferred``) instead of taken as zero.
        flat: The network laid out already.
    """

    def __init__(
        self,
        net: ReluNetwork,
        box: Box,
        *,
        counting: bool,
        certified: bool = False,
        flat: FlatNetwork | None = None,
    ) -> None:
        self.flat = flat or FlatNetwork.of(net)
        self.box, self.counting, self.certified = box, counting, certified
        self._bounds = np.zeros(net.size) if certified else zero_bounds(net, box)
        self.hashes = np.random.default_rng(0).integers(0, 2**64, net.size, dtype=np.uint64)
        self._leaves_float64 = certified and leaves_float64(net, box)
        self._begin(words=1)

    def _begin(self, words: int) -> None:
        flat, d, self._words = self.flat, self.flat.dim, words
        corners, masks, edges, labels = _corners(self.box, flat.size, words)
        n, n_edges = len(corners), len(edges)
        self.work = arrays.new_work(flat, self.box.lower, self.box.upper, self._bounds)
        columns = d + 2 if self.certified else d + 1
        self.ties: Ties | None = new_ties(flat, 8 * (n + n_edges)) if self.certified else None
        self.stack = arrays.new_stack(columns, 64, 64 * n, 64 * n_edges, 64 + 16 * flat.widest)
        self.halves = arrays.new_halves(columns, 4 * (n + n_edges), 16 * n_edges)
        self.faces = None if d == 2 else arrays.new_faces(words, self.stack, self.halves)
        room = 4 * (n + n_edges), 16 * n_edges, flat.widest
        self.slices = new_slices(d, columns, words, *room) if d > 2 and self.counting else None
        self.store: CellStore | None = (
            None if self.counting else new_cell_store(flat, words, FIRST_CELL_ROOM)
        )
        self._deferred = np.zeros((64, flat.size), np.int8)
        self._seconds_per_byte = 1 / COPIED_BYTES_PER_SECOND
        self.counters = np.zeros(6, np.int64)
        self.growth = np.zeros(flat.hidden, np.int64)
        self.stack.frames[0] = [-1, 0, n, 0, n_edges, 0, 0, 0, n]
        self.stack.coords[:n, :d] = corners
        self.stack.edges[:n_edges] = edges
        if self.faces is not None:
            self.faces.masks[:n] = masks
            self.faces.labels[0, : len(labels)] = labels
        self.counters[arrays.FRAMES] = 1
        if self.ties is not None:
            self._number(corner_facets(self.ties, corners, self.box.upper, flat.size))
        start(flat, self.work, self.ties)
        if self._leaves_float64:
            # The error bounds know of rounding and underflow only: one cell, all of it left open.
            self.counters[arrays.FRAMES], self.counters[arrays.DEFERRED] = 0, 1

    @property
    def n_cells(self) -> int:
        """Cells found so far, those of ``deferred`` not among them."""
        return int(self.counters[arrays.CELLS])

    @property
    def finished(self) -> bool:
        """Whether nothing is left on the stack."""
        return int(self.counters[arrays.FRAMES]) == 0

    @property
    def deferred(self) -> NDArray[np.int8]:
        """States (1 on, -1 off, 0 open) of the cells left to exact arithmetic."""
        return self._deferred[: self.counters[arrays.DEFERRED]]

    def run(
        self,
        *,
        deadline: Deadline = NEVER,
        max_cells: int | None = None,
        max_steps: int | None = None,
        progress: Report | None = None,
    ) -> None:
        """Go on until finished, past the deadline, or past a maximum."""
        with time_limit(deadline):
            self._run(deadline, max_cells, max_steps, progress)

    def _run(
        self,
        deadline: Deadline,
        max_cells: int | None,
        max_steps: int | None,
        progress: Report | None,
    ) -> None:
        steps = max_steps or WALK_FIRST_STEPS
        while not self.finished:
            watch = Stopwatch()
            if deadline.left <= self._closing_seconds:
                return
            if max_cells is not None and self.n_cells >= max_cells:
                return
            # A step finds at most one cell of a list, so it does not get longer than it may.
            most = steps if max_cells is None else max(1, int(min(steps, max_cells - self.n_cells)))
            status = self._step(most)
            if status == arrays.PAUSED and max_steps is not None:
                return
            if status == arrays.PAUSED:
                wanted = min(WALK_SLICE_SECONDS, max(deadline.left / 2, WALK_SLICE_SECONDS / 20))
                steps = int(np.clip(steps * wanted / max(watch.seconds, 1e-9), 20, 4 * steps))
            elif deadline.left <= self._closing_seconds + self._room_seconds(status):
                return
            else:
                self._make_room(status)
            if progress is not None:
                progress("cells", self.n_cells, None)

    @property
    def _closing_seconds(self) -> float:
        """How long it takes to copy what has been found, which is to be joined with exact cells."""
        if self.store is None or not self.counters[arrays.DEFERRED]:
            return 0.0
        vertices = int(self.counters[arrays.VERTICES])
        row = self.store.coords.shape[1] + self.store.masks.shape[1]
        words = self.store.patterns.shape[1] + self.store.outputs.shape[1]
        return (vertices * row + self.n_cells * words) * 8 / COPIED_BYTES_PER_SECOND

    def _room_seconds(self, status: int) -> float:
        """How long it takes to copy all cells to where there is more room, at the pace of last time."""
        full = status == arrays.FULL and self.counters[arrays.DEFERRED] < len(self._deferred)
        if self.store is None or not full:
            return 0.0
        return self._seconds_per_byte * sum(array.nbytes for array in self.store)

    def _step(self, steps: int) -> int:
        where = self.stack, self.halves, self.faces, self.slices, self.store
        counts = self.counters, self.growth
        # Two loops, each without the other's code: ``ties`` is None unless certified.
        return walk(self.flat, self.work, *where, self.hashes, self._deferred, *counts, self.ties, steps)

    def _number(self, facets: Integers) -> None:
        """Number the vertices of the lowest cell on the stack, given the facets they lie on."""
        assert self.ties is not None
        n, d = len(facets), self.flat.dim
        while n > len(self.ties.facets):
            self.ties = with_more_vertices(self.ties)
        self.ties.facets[:n] = facets
        self.ties.weights[:n], self.ties.facets[:n, POINT_PRIMES] = -1.0, 0
        self.stack.coords[:n, d + 1] = np.arange(n)

    def _widen(self) -> None:
        """Make room for twice as many facets per cell."""
        assert self.faces is not None
        self._words *= 2
        if self._words > MAX_FACET_WORDS:
            raise ValueError("a cell has more than 4,096 facets; use a smaller box.")
        self.faces = arrays.Faces(*map(_wider, self.faces))
        if self.slices is not None:
            self.slices = self.slices._replace(masks=_wider(self.slices.masks))
        if self.store is not None:
            self.store = self.store._replace(masks=_wider(self.store.masks))

    def unload(self) -> list[Cell]:
        """Take all cells off the stack; at the first level they can be loaded into another walk."""
        cells = []
        for k in range(int(self.counters[arrays.FRAMES])):
            level, v, n, e, n_edges, c, n_candidates, s, _ = self.stack.frames[k]
            numbers = self.stack.coords[v : v + n, -1].astype(np.int64)
            width = arrays.padded(int(self.flat.widths[max(level, 0)]))
            cells.append(
                Cell(
                    level=int(level),
                    key=self.stack.keys[k],
                    coords=self.stack.coords[v : v + n].copy(),
                    edges=self.stack.edges[e : e + n_edges].copy(),
                    candidates=self.stack.candidates[c : c + n_candidates].copy(),
                    states=self.stack.states[s : s + width].copy(),
                    masks=None if self.faces is None else self.faces.masks[v : v + n].copy(),
                    labels=None if self.faces is None else self.faces.labels[k].copy(),
                    words=self._words,
                    facets=None if self.ties is None else self.ties.facets[numbers],
                )
            )
        self.counters[arrays.FRAMES] = 0
        return cells

    def load(self, cell: Cell) -> None:
        """Put one cell on an empty stack."""
        while self._words < cell.words:
            self._widen()
        n, n_edges, width = len(cell.coords), len(cell.edges), len(cell.states)
        while n > len(self.stack.coords) or n_edges > len(self.stack.edges):
            self._make_room(arrays.GROW)
        while max(len(cell.candidates), width) > len(self.stack.states):
            self._make_room(arrays.GROW)
        self.stack.frames[0] = [cell.level, 0, n, 0, n_edges, 0, len(cell.candidates), 0, n]
        self.stack.keys[0] = cell.key
        self.stack.coords[:n] = cell.coords
        self.stack.edges[:n_edges] = cell.edges
        self.stack.candidates[: len(cell.candidates)] = cell.candidates
        self.stack.states[:width] = cell.states
        if cell.facets is not None:
            self._number(cell.facets)
        if self.faces is not None:
            assert cell.masks is not None and cell.labels is not None
            self.faces.masks[:n], self.faces.labels[0] = 0, -1
            self.faces.masks[:n, : cell.words] = cell.masks
            self.faces.labels[0, : len(cell.labels)] = cell.labels
        self.counters[arrays.FRAMES] = 1

    def _make_room(self, status: int) -> None:
        """Enlarge what was too small; the walk then repeats its last step."""
        if status == arrays.GROW:
            self.stack = arrays.Stack(*map(_longer, self.stack))
            self.stack = self.stack._replace(words=self.stack.states.view(np.uint64))
            self.halves = arrays.Halves(
                self.halves.counts, self.halves.keys, *map(_longer_inside, self.halves[2:])
            )
            if self.ties is not None:
                self.ties = with_more_vertices(self.ties)
            if self.faces is not None:
                self.faces = self.faces._replace(
                    masks=_longer(self.faces.masks),
                    labels=_longer(self.faces.labels),
                    half_masks=_longer_inside(self.faces.half_masks),
                )
            if self.slices is not None:
                self.slices = type(self.slices)(
                    self.slices.counts, *map(_longer_inside, self.slices[1:])
                )
        elif status == arrays.FULL and self.counters[arrays.DEFERRED] == len(self._deferred):
            self._deferred = _longer(self._deferred)
        elif status == arrays.FULL and self.store is not None:
            watch, size = Stopwatch(), sum(array.nbytes for array in self.store)
            self.store = CellStore(*map(_much_longer, self.store))
            self._seconds_per_byte = watch.seconds / size
        elif status == arrays.TOO_MANY_FACETS:
            self._widen()
        elif status == arrays.WANTS_PRIMES:
            self._prepare_ties()

    def _prepare_ties(self) -> None:
        """Measure the network's numbers, the first time; later, take more primes."""
        assert self.ties is not None
        state = self.ties.state
        if state[READY]:
            wanted = max(int(state[WANTED]), 2 * len(self.ties.primes))
            self.ties = with_primes(self.ties, min(wanted, MAX_PRIMES))
        prepare(self.flat, self.work, self.ties)


def _longer(array: Any) -> Any:
    """Return a copy with twice the rows."""
    bigger = np.zeros((2 * len(array), *array.shape[1:]), array.dtype)
    bigger[: len(array)] = array
    return bigger


def _much_longer(array: Any) -> Any:
    """Return a copy with more room behind it; memory that is never written to costs nothing."""
    factor = 16 if 16 * array.nbytes <= MAX_RESERVED_BYTES else 2
    bigger = np.empty((factor * len(array), *array.shape[1:]), array.dtype)
    bigger[: len(array)] = array
    return bigger


def _longer_inside(array: Any) -> Any:
    """Return room of twice the length along the second axis (the first, if there is only one)."""
    if array.ndim == 1:
        return np.zeros(2 * len(array), array.dtype)
    return np.zeros((len(array), 2 * array.shape[1], *array.shape[2:]), array.dtype)


def _wider(array: Any) -> Any:
    """Return a copy with twice the length along the last axis."""
    bigger = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    bigger[..., : array.shape[-1]] = array
    return bigger


def _corners(box: Box, size: int, words: int) -> tuple[Array, Any, Any, Any]:
    """Return vertices, masks, edges and facet labels of a box."""
    d = box.dim
    if d == 2:
        (a, b), (c, e) = box.lower, box.upper
        sides = np.array([[size + 2, 0], [size + 1, 0], [size + 3, 0], [size, 0]], np.int32)
        return np.array([[a, b], [c, b], [c, e], [a, e]]), None, sides, None
    upper = (np.arange(2**d)[:, None] >> np.arange(d)) & 1
    vertices = np.where(upper == 1, box.upper, box.lower)
    masks = np.zeros((2**d, words), np.uint64)
    for slot in (2 * np.arange(d) + upper).T:
        masks[:, 0] |= np.uint64(1) << slot.astype(np.uint64)
    edges = [(v, v | 1 << c) for v in range(2**d) for c in range(d) if not v >> c & 1]
    return vertices, masks, np.array(edges, np.int32), size + np.arange(2 * d)
