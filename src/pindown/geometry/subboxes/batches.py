"""Walks that hand over what they have found whenever their room is full, and go on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.complex.cells import Cells, cells_of, unpack_patterns
from pindown.geometry.complex.sources import from_exact
from pindown.geometry.complex.twins import Twins, flip_hashes
from pindown.geometry.complex.walk import Walk
from pindown.geometry.exact.complex import exact_cells_within
from pindown.geometry.kernels import memory
from pindown.geometry.kernels.sink import Sink, new_sink
from pindown.geometry.nearness import zero_bounds
from pindown.network import ReluNetwork

Patterns = NDArray[np.uint64]

_STEPS = 100_000  # of a walk between looks at the keyboard, a fraction of a second
_MOST_CELLS = 2**40


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
        self._flips = flip_hashes(net, Twins(*self.flat[-3:]), self.hashes)

    def _begin(self, words: int) -> None:
        if not self.certified:
            self._bounds = self._given
        super()._begin(words)
        self.sink = new_sink(self.flat, words, self._room)

    def batches(self) -> Iterator[Cells]:
        """Yield cells until there are none left; a batch is overwritten when the next one is asked for.

        Cells that float64 could not decide come last, from exact arithmetic.
        """
        while not self.finished:
            status = self._step(_STEPS)
            if status == memory.FULL and self.n_cells > 0 and self._has_deferred_room:
                yield self._taken()
            elif status not in (memory.PAUSED, memory.FINISHED):
                self._make_room(status)
        if self.n_cells > 0:
            yield self._taken()
        yield from self._decided_exactly()

    @property
    def _has_deferred_room(self) -> bool:
        return int(self.counters[memory.DEFERRED]) < len(self._deferred)

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
        """Return what is in the sink, not copied, and let the walk write over it."""
        sink, n, d = self.sink, self.n_cells, self.flat.dim
        assert isinstance(sink, Sink)
        vertices, facets = (int(self.counters[i]) for i in (memory.VERTICES, memory.FACETS))
        self.counters[[memory.CELLS, memory.VERTICES, memory.FACETS]] = 0
        return Cells(
            hidden_widths=self.net.hidden_widths,
            vertex_starts=sink.starts[: n + 1, 0],
            facet_starts=sink.starts[: n + 1, 1],
            coords=sink.coords[:vertices],
            facets=sink.facets[:facets],
            masks=None if d == 2 else sink.masks[:vertices],
            patterns=sink.patterns[:n],
            keys=sink.keys[:n],
            hashes=self.hashes,
            flips=self._flips,
            maps=sink.outputs[:n].reshape(n, d + 1, self.net.out_features),
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
        from pindown.geometry.subboxes.kernels.retrace import retrace

        if len(self._ranges) < len(self.stack.frames):  # the stack has grown
            self._ranges = np.resize(self._ranges, (len(self.stack.frames), 2))
        where = self.stack, self.halves, self.faces, self.sink
        counts = self.counters, self.growth, self.ties
        towards = self._wanted, self._order, self._ranges
        return int(
            retrace(self.flat, self.work, *where, self.hashes, self._deferred, *counts, *towards, steps)
        )

    def _taken(self) -> Cells:
        """Return the cells in the sink that were asked for; the others are what is there instead."""
        from pindown.geometry.subboxes.selection import select

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
        yield cells_of(net, box, None, _MOST_CELLS, certified).cells
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
        from pindown.geometry.subboxes.selection import is_among, select

        cells = cells_of(net, box, None, _MOST_CELLS, certified).cells
        yield select(cells, is_among(cells.patterns, patterns))
        return
    bounds = zero_bounds(net, box)
    walk = PatternWalk(net, box, patterns, certified=certified, bounds=bounds, room=room)
    yield from walk.batches()
