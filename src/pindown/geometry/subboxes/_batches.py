"""Cells in batches: walks that hand over what they found when their room is full; choosing cells."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import NEVER
from pindown.geometry._compiled import arrays
from pindown.geometry._compiled.finished_cells import CellStore, new_cell_store
from pindown.geometry.complex._cell_search import cells_of, from_exact
from pindown.geometry.complex._cells import Cells, unpack_patterns
from pindown.geometry.complex._traversal import Walk
from pindown.geometry.complex.proportional_units import ProportionalUnits, flip_hashes
from pindown.geometry.exact.complex import exact_cells_within
from pindown.geometry.nearness import same_place, zero_bounds
from pindown.geometry.tuning import BATCH_WALK_STEPS, FIRST_CELL_ROOM, UNLIMITED_CELLS
from pindown.network import ReluNetwork

Patterns = NDArray[np.uint64]
# Determinant of the covariance over its trace to the power d: a cell as flat as this is a millionth as
# thick as it is long, far more than rounding can do and far less than cells are as a rule.
_FLAT = 1e-12
# Cells are numbered up to a million at a time, and the sum of number and place rounds to less than this.
_CLOSE = 4.0
_TINY = 2.0**-1022
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]


class BatchWalk(Walk):
    """A walk with room for a fixed number of cells.

    Args:
        net: A network with a hidden layer and two inputs or more.
        box: Where to walk.
        certified: As of :class:`Walk`.
        bounds: What counts as zero for every unit, if not certified. Sub-boxes take that of the whole
            box, so that all of them mean the same by zero.
        room: How many cells of an ordinary size there is room for.
        most_exact: The most cells that exact arithmetic may list at a time, None for any number.
    """

    def __init__(
        self,
        net: ReluNetwork,
        box: Box,
        *,
        certified: bool,
        bounds: Array,
        room: int,
        most_exact: int | None = None,
    ) -> None:
        self.net, self._given, self._room, self._most_exact = net, bounds, room, most_exact
        super().__init__(net, box, counting=False, certified=certified)
        self._flips = flip_hashes(net, ProportionalUnits(*self.flat[-3:]), self.hashes)

    def _begin(self, words: int) -> None:
        if not self.certified:
            self._bounds = self._given
        super()._begin(words)
        # Little at first: a small complex is over before room for a large one is made.
        self.store = new_cell_store(self.flat, words, min(self._room, FIRST_CELL_ROOM))

    def batches(self) -> Iterator[Cells]:
        """Yield cells until there are none left; a batch is overwritten when the next one is asked for.

        Cells that float64 could not decide come last, from exact arithmetic.
        """
        first = True
        while not self.finished:
            status = self._step(BATCH_WALK_STEPS)
            if status == arrays.FULL and self.n_cells > 0 and self._has_deferred_room:
                yield self._taken()
                if first and self._room > FIRST_CELL_ROOM:
                    self.store = new_cell_store(self.flat, self._words, self._room)
                first = False
            elif status not in (arrays.PAUSED, arrays.FINISHED):
                self._make_room(status)
        if self.n_cells > 0:
            yield self._taken()
        yield from self._decided_exactly()

    @property
    def _has_deferred_room(self) -> bool:
        return int(self.counters[arrays.DEFERRED]) < len(self._deferred)

    def _decided_exactly(self) -> Iterator[Cells]:
        for states in self.deferred:
            found = exact_cells_within(self.net, self.box, states, max_cells=self._most_exact)
            if not found.complete:
                raise MemoryError(
                    f"more than {self._most_exact:,} cells next to each other are left to exact "
                    "arithmetic; give more memory, or more splits."
                )
            if found.n_regions:
                yield from_exact(found, self.hashes)

    def _taken(self) -> Cells:
        """Return what is in the store, not copied, and let the walk write over it."""
        store, n, d = self.store, self.n_cells, self.flat.dim
        assert isinstance(store, CellStore)
        vertices, facets = (int(self.counters[i]) for i in (arrays.VERTICES, arrays.FACETS))
        self.counters[[arrays.CELLS, arrays.VERTICES, arrays.FACETS]] = 0
        return Cells(
            hidden_widths=self.net.hidden_widths,
            vertex_starts=store.starts[: n + 1, 0],
            facet_starts=store.starts[: n + 1, 1],
            coords=store.coords[:vertices],
            facets=store.facets[:facets],
            masks=None if d == 2 else store.masks[:vertices],
            patterns=store.patterns[:n],
            keys=store.keys[:n],
            hashes=self.hashes,
            flips=self._flips,
            maps=store.outputs[:n].reshape(n, d + 1, self.net.out_features),
        )


class PatternWalk(BatchWalk):
    """A walk to the cells with given patterns only.

    Args:
        patterns: Packed patterns; those that no cell has are passed over.
    """

    def __init__(
        self,
        net: ReluNetwork,
        box: Box,
        patterns: Patterns,
        *,
        certified: bool,
        bounds: Array,
        room: int,
    ) -> None:
        self._wanted = unpack_patterns(patterns, net.hidden_widths).view(np.uint8)
        self._order = np.arange(len(patterns))
        self._missing = {row.tobytes(): i for i, row in enumerate(patterns)}
        super().__init__(net, box, certified=certified, bounds=bounds, room=room)
        self._ranges = np.zeros((len(self.stack.frames), 2), np.int64)
        self._ranges[0, 1] = len(patterns)

    def _step(self, steps: int) -> int:
        from pindown.geometry._compiled.pattern_traversal import retrace

        if len(self._ranges) < len(self.stack.frames):  # the stack has grown
            self._ranges = np.resize(self._ranges, (len(self.stack.frames), 2))
        where = self.stack, self.halves, self.faces, self.store
        counts = self.counters, self.growth, self.ties
        towards = self._wanted, self._order, self._ranges
        return int(
            retrace(self.flat, self.work, *where, self.hashes, self._deferred, *counts, *towards, steps)
        )

    def _taken(self) -> Cells:
        """Return the cells in the store that were asked for; the others are what is there instead."""
        cells = super()._taken()
        found = [self._missing.pop(row.tobytes(), -1) >= 0 for row in cells.patterns]
        return cells if all(found) else select(cells, np.array(found, dtype=bool))

    def _decided_exactly(self) -> Iterator[Cells]:
        if not len(self.deferred):
            return
        for i in sorted(self._missing.values()):
            states = 2 * self._wanted[i].astype(np.int8) - 1
            found = exact_cells_within(self.net, self.box, states)
            if found.n_regions:
                yield from_exact(found, self.hashes)


def cell_batches(
    net: ReluNetwork,
    box: Box,
    whole: Box,
    *,
    certified: bool,
    room: int,
    most_exact: int | None = None,
) -> Iterator[Cells]:
    """Yield all cells of a network on a sub-box, about ``room`` at a time."""
    if net.size == 0 or net.in_features == 1:
        yield cells_of(net, box, NEVER, UNLIMITED_CELLS, certified).cells
        return
    bounds = zero_bounds(net, whole)
    walk = BatchWalk(net, box, certified=certified, bounds=bounds, room=room, most_exact=most_exact)
    yield from walk.batches()


def cells_with_patterns(
    net: ReluNetwork, box: Box, patterns: Patterns, *, certified: bool, room: int
) -> Iterator[Cells]:
    """Yield the cells of a network on a box that have the given patterns, each once."""
    if not len(patterns):
        return
    if net.size == 0 or net.in_features == 1:
        cells = cells_of(net, box, NEVER, UNLIMITED_CELLS, certified).cells
        yield select(cells, is_among(cells.patterns, patterns))
        return
    bounds = zero_bounds(net, box)
    walk = PatternWalk(net, box, patterns, certified=certified, bounds=bounds, room=room)
    yield from walk.batches()


def select(cells: Cells, wanted: Bools) -> Cells:
    """Return the cells that ``wanted`` (n,) marks, copied."""
    vertices = np.repeat(wanted, np.diff(cells.vertex_starts))
    facets = np.repeat(wanted, np.diff(cells.facet_starts))
    return Cells(
        hidden_widths=cells.hidden_widths,
        vertex_starts=_starts(np.diff(cells.vertex_starts)[wanted]),
        facet_starts=_starts(np.diff(cells.facet_starts)[wanted]),
        coords=cells.coords[vertices],
        facets=cells.facets[facets],
        masks=None if cells.masks is None else cells.masks[vertices],
        patterns=cells.patterns[wanted],
        keys=cells.keys[wanted],
        hashes=cells.hashes,
        flips=cells.flips,
        maps=cells.maps[wanted],
    )


def with_facet_in(cells: Cells, labels: NDArray[np.int64]) -> Bools:
    """Return for each cell whether one of its facets has one of the labels."""
    if not len(labels) or not cells.n:
        return np.zeros(cells.n, bool)
    hits = np.isin(cells.facets, labels)
    return np.logical_or.reduceat(hits, cells.facet_starts[:-1])


def near_cut(cells: Cells, coordinate: int, place: float, width: float) -> Bools:
    """Return for each cell whether a vertex of it is next to the plane ``x[coordinate] = place``."""
    if not cells.n:
        return np.zeros(0, bool)
    near = np.abs(cells.coords[:, coordinate] - place) <= width
    return np.logical_or.reduceat(near, cells.vertex_starts[:-1])


def rounding_may_matter(cells: Cells, box: Box) -> Bools:
    """Return for each cell whether rounding may have had a say in it: too thin, or vertices too close.

    Lengths are shares of the sides of the box. Vertices are compared along one direction, and thickness
    is measured by the covariance of the vertices; both may find more than there is, which does no harm.
    """
    if not cells.n:
        return np.zeros(0, bool)
    d, starts, counts = cells.dim, cells.vertex_starts[:-1], np.diff(cells.vertex_starts)
    points = cells.coords / (box.upper - box.lower)
    owner = np.repeat(np.arange(cells.n), counts)
    along = points @ np.random.default_rng(0).standard_normal(d)
    along = (along - along.min()) / (np.ptp(along) + _TINY)
    order = np.argsort(2.0 * owner + along)  # one key: several times faster than sorting by two
    close = (np.abs(np.diff(along[order])) <= _CLOSE * same_place(box)) & (np.diff(owner) == 0)
    found = np.zeros(cells.n, bool)
    found[owner[1:][close]] = True
    points -= (np.add.reduceat(points, starts) / counts[:, None])[owner]
    spread = np.empty((cells.n, d, d))
    for i in range(d):
        for j in range(i + 1):
            spread[:, i, j] = spread[:, j, i] = np.add.reduceat(points[:, i] * points[:, j], starts)
    size = np.trace(spread, axis1=1, axis2=2)
    return found | (np.linalg.det(spread) <= _FLAT * size**d)


def distinct(patterns: Words) -> Words:
    """Return the different rows of packed patterns, ascending: near ones share their way through a walk.

    >>> distinct(np.array([[2, 1], [0, 5], [2, 1]], dtype=np.uint64))
    array([[0, 5],
           [2, 1]], dtype=uint64)
    """
    if patterns.shape[1] == 0:
        return patterns[:1]
    # Rows compare byte by byte, and walks split by the last units of a layer first.
    rows = np.unique(as_rows(patterns.byteswap()))
    return rows.view(np.uint64).reshape(-1, patterns.shape[1]).byteswap()


def is_among(patterns: Words, others: Words) -> Bools:
    """Return for each packed pattern whether it is one of ``others``."""
    if patterns.shape[1] == 0:
        return np.full(len(patterns), len(others) > 0)
    return np.isin(as_rows(patterns), as_rows(others))


def as_rows(patterns: Words) -> NDArray[np.void]:
    """View rows as single values, which sort and compare byte by byte."""
    rows = np.ascontiguousarray(patterns)
    return rows.view(np.dtype((np.void, 8 * patterns.shape[1]))).reshape(len(patterns))


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
