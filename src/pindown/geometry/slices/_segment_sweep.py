r"""The network along many segments at once, layer by layer, in bounded memory.

Between consecutive break points every unit is affine in t, so its values at the break points say
everything. One layer is one matrix product with the values at all points so far; where a unit changes
sign between two points a new point goes in, with the values in between found by interpolation. Points
go through in blocks, depth first: memory grows with the depth, not with the number of points.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, is_finite
from pindown.geometry.nearness import RESOLUTION
from pindown.geometry.tuning import MIN_SWEEP_ROWS, SWEEP_NUMBERS_PER_BLOCK
from pindown.network import ReluNetwork

Integers = NDArray[np.int64]


class Swept(NamedTuple):
    """All break points of n segments, flat.

    Attributes:
        events: Rows (segment, unit) for every unit that switches, (E, 2).
        event_times: When, (E,).
        knots: The distinct times with 0 and 1, ascending per segment, (K,).
        knot_segments: Whose they are, (K,).
        values: The outputs there, (K, k).
        scales: Sum of the sizes of the terms of each output, at its largest on the segment, (K, k).
    """

    events: Integers
    event_times: Array
    knots: Array
    knot_segments: Integers
    values: Array
    scales: Array


class _Points(NamedTuple):
    """Consecutive points; ``continues``: the first is the last one of the block before."""

    times: Array
    segments: Integers
    values: Array
    continues: bool


@dataclass
class _Carry:
    """The last two rows of a block that the next block of the same layer starts from."""

    before: Array
    last: Array
    joined: bool  # whether they belong to one segment


@dataclass
class Sweep:
    """One pass; collects what it finds.

    Attributes:
        net: The network.
    """

    net: ReluNetwork
    found: list[tuple[Integers, Array]] = field(default_factory=list)
    ends: list[tuple[Array, Integers, Array, Array]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sizes = [abs(layer.weight) for layer in self.net.layers]
        self.first_unit = np.concatenate([[0], np.cumsum(self.net.hidden_widths)]).astype(np.int64)
        self.carries: list[_Carry | None] = [None] * (self.net.depth - 1)
        widest = max(self.net.widths)
        self.rows = max(MIN_SWEEP_ROWS, SWEEP_NUMBERS_PER_BLOCK // (widest * self.net.depth))

    def run(self, a: Array, b: Array) -> Swept:
        """Sweep the segments from the rows of a to the rows of b, (n, d)."""
        step = max(1, self.rows // 2)
        for start in range(0, len(a), step):
            ends = np.stack([a[start : start + step], b[start : start + step]], axis=1)
            n = len(ends)
            segments = np.repeat(np.arange(start, start + n), 2)
            times = np.tile([0.0, 1.0], n)
            self._descend(0, _Points(times, segments, ends.reshape(2 * n, -1), False))
        return self._collect()

    def _descend(self, level: int, points: _Points) -> None:
        """Send points through layer ``level`` and, refined, on to the next ones."""
        with np.errstate(over="ignore", invalid="ignore"):
            Z = self.net.layers[level](points.values)
        if not is_finite(Z):
            raise ValueError("the network overflows float64 on a segment; scale the inputs down.")
        run, scales = self._scales(level, points)
        if level == self.net.depth - 1:
            new = slice(1 if points.continues else 0, None)
            self.ends.append((points.times[new], points.segments[new], Z[new], scales[run[new]]))
            return
        refined = self._refine(level, points, Z, run, RESOLUTION * scales)
        total = len(refined.origin)
        for start in range(0, total, self.rows):
            stop = min(total, start + self.rows + 1)  # one more: the next block starts from it
            if stop - start == 1 and start > 0:
                break
            block = refined.block(Z, points, start, stop)
            self._descend(level + 1, block)

    def _scales(self, level: int, points: _Points) -> tuple[Integers, Array]:
        r"""Return each point's run (points in a row on one segment), and scales (runs, units).

        The scale of unit i is :math:`\sum_j |W_{ij}| \max_p |a_j(p)| + |b_i|` over the run's points p.
        """
        fresh = np.append(True, points.segments[1:] != points.segments[:-1])
        largest = np.maximum.reduceat(np.abs(points.values), np.flatnonzero(fresh), axis=0)
        scales = np.ascontiguousarray((self.sizes[level] @ largest.T).T)
        scales += np.abs(self.net.layers[level].bias)
        return np.cumsum(fresh) - 1, scales

    def _refine(self, level: int, points: _Points, Z: Array, run: Integers, near: Array) -> _Refined:
        from pindown.geometry._compiled.segments import count_turns, find_crossings, list_turns, snap

        times, segments = points.times, points.segments
        joined = np.append(segments[1:] == segments[:-1], False)
        carry = self.carries[level] if points.continues else None
        if carry is not None:
            Z[0] = carry.last
        counts = np.zeros(len(times), dtype=np.int64)
        snap(Z, times, joined, near, run, RESOLUTION, int(points.continues), counts)
        starts = np.concatenate([[0], np.cumsum(counts)])
        shares, slack = np.empty(starts[-1]), np.empty(starts[-1])
        units, knots = np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1], dtype=np.int64)
        find_crossings(Z, times, joined, near, run, RESOLUTION, starts, shares, slack, units, knots)

        has_left = carry is not None and carry.joined
        left = Z[0] if carry is None else carry.before
        turns = np.empty(len(times), dtype=np.int64)
        count_turns(Z, joined, left, has_left, turns)
        turn_points, turn_units = (np.empty(turns.sum(), dtype=np.int64) for _ in range(2))
        list_turns(Z, turns, left, turn_points, turn_units)
        if len(Z) > 1:
            self.carries[level] = _Carry(Z[-2].copy(), Z[-1].copy(), bool(joined[-2]))

        refined = _Refined.of(times, segments, starts, shares, units, knots)
        first = self.first_unit[level]
        self._note(segments[turn_points], times[turn_points], first + turn_units)
        self._note(segments[refined.owner], refined.crossing_times, first + units)
        return refined

    def _note(self, segments: Integers, times: Array, units: Integers) -> None:
        if len(units):
            self.found.append((np.column_stack([segments, units]), times))

    def _collect(self) -> Swept:
        k = self.net.out_features
        events = np.concatenate([np.zeros((0, 2), dtype=np.int64), *(e for e, _ in self.found)])
        times = np.concatenate([np.zeros(0), *(t for _, t in self.found)])
        order = np.lexsort([events[:, 1], times, events[:, 0]])
        empty = np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros((0, k)), np.zeros((0, k))
        ends = [np.concatenate(part) for part in zip(empty, *self.ends, strict=True)]
        return Swept(events[order], times[order], *ends)


class _Refined(NamedTuple):
    """Old points and new ones in order of time.

    Attributes:
        origin: Old point, or for a new one the old point before it, (R,).
        first_crossing: For a new point the first crossing at its time, -1 for an old one, (R,).
        times: (R,).
        owner: For every crossing the old point before it, (C,).
        crossing_times: (C,).
        parts: What the compiled loops made: starts, shares, units, knots.
    """

    origin: Integers
    first_crossing: Integers
    times: Array
    owner: Integers
    crossing_times: Array
    parts: tuple[Integers, Array, Integers, Integers]

    @classmethod
    def of(
        cls,
        times: Array,
        segments: Integers,
        starts: Integers,
        shares: Array,
        units: Integers,
        knots: Integers,
    ) -> _Refined:
        crossings = len(shares)
        owner = np.repeat(np.arange(len(times)), np.diff(starts))
        spans = np.append(np.diff(times), 0.0)
        at = times[owner] + shares * spans[owner]
        heads = np.ones(crossings, dtype=bool)
        heads[1:] = (owner[1:] != owner[:-1]) | (knots[1:] != knots[:-1])
        new = np.flatnonzero(heads)
        added = np.bincount(owner[new], minlength=len(times))
        place = np.arange(len(times)) + np.concatenate([[0], np.cumsum(added)[:-1]])  # of the old points
        origin = np.repeat(np.arange(len(times)), added + 1)
        first_crossing = np.full(len(origin), -1, dtype=np.int64)
        is_new = np.ones(len(origin), dtype=bool)
        is_new[place] = False
        first_crossing[is_new] = new
        refined_times = np.empty(len(origin))
        refined_times[place], refined_times[is_new] = times, at[new]
        return cls(origin, first_crossing, refined_times, owner, at, (starts, shares, units, knots))

    def block(self, Z: Array, points: _Points, start: int, stop: int) -> _Points:
        from pindown.geometry._compiled.segments import fill

        values = np.empty((stop - start, Z.shape[1]))
        fill(Z, *self.parts, self.origin, self.first_crossing, start, stop, values)
        segments = points.segments[self.origin[start:stop]]
        return _Points(self.times[start:stop], segments, values, start > 0 or points.continues)
