r"""Kinks of a black box on many segments at once, from values.

On an interval the function is compared with the two lines that leave its ends. If they are one line it
is straight; if they cross inside, and the function follows both up to the crossing, that is its only
kink; otherwise the interval is cut in two. All intervals of all segments advance together, so a query
is asked for thousands of points at a time. At the end the lines left and right of every kink are fitted
again on long base lines, and their crossing places the kink to rounding.

Phuong 2021, section 2.3, on fold-sets; the scheme is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.equivalence.recovery.oracle import Oracle
from pindown.equivalence.tuning import (
    KINK_BESIDE,
    KINK_ROUNDS,
    LINE_NOISES,
    MIN_INTERVAL,
    SEGMENT_PARTS,
    SLOPE_STUB,
)

_CHECKS = np.array([0.13, 0.38, 0.71, 0.89])  # where a long straight interval is looked into
_INNER = np.array([0.04, 0.5, 0.96])  # where a piece is fitted and checked at the end


@dataclass(frozen=True, eq=False)
class LineKinks:
    """Kinks on segments, in flat arrays.

    Attributes:
        line: The segment of each kink, (m,).
        t: Its time there, (m,).
        room: Length in t of the straight pieces left and right, (m, 2).
        jump: Change of the slope df/dt, (m, k).
    """

    line: NDArray[np.int64]
    t: Array
    room: Array
    jump: Array

    def __len__(self) -> int:
        return len(self.t)


@dataclass
class _Intervals:
    """Intervals of segments: ends, values there, slopes inwards, and the base lines of these slopes."""

    line: NDArray[np.int64]
    t: Array  # (n, 2)
    value: Array  # (n, 2, k)
    slope: Array  # (n, 2, k)
    base: Array  # (n, 2)

    def take(self, which: NDArray[np.bool_]) -> _Intervals:
        return _Intervals(*(part[which] for part in vars(self).values()))


def kinks_on_lines(oracle: Oracle, starts: Array, ends: Array) -> LineKinks:
    """Find the kinks on the segments from ``starts`` (n, d) to ``ends`` (n, d)."""
    search = _Search(oracle, starts, ends - starts)
    work, found = search.first(), []
    for _ in range(KINK_ROUNDS):
        if not len(work.line):
            break
        straight = search.straight(work)
        work = work.take(~straight)
        lines, times, solved = search.crossings(work)
        found.append((lines, times))
        rest = work.take(~solved)
        wide = rest.t[:, 1] - rest.t[:, 0] > max(MIN_INTERVAL, 64.0 * oracle.noise)
        work = search.halves(rest.take(wide))
    line = np.concatenate([np.empty(0, dtype=np.int64), *(part[0] for part in found)])
    t = np.concatenate([np.empty(0), *(part[1] for part in found)])
    order = np.lexsort((t, line))
    return search.refit(line[order], t[order])


class _Search:
    def __init__(self, oracle: Oracle, starts: Array, steps: Array) -> None:
        self.oracle, self.starts, self.steps = oracle, starts, steps

    def at(self, line: NDArray[np.int64], t: Array) -> Array:
        """Return values at times (n,) or (n, j) of segments (n,)."""
        extra = (None,) * (t.ndim - 1)
        where = (slice(None), *extra)
        return self.oracle(self.starts[line][where] + t[..., None] * self.steps[line][where])

    def first(self) -> _Intervals:
        n = len(self.starts)
        knots = np.linspace(0.0, 1.0, SEGMENT_PARTS + 1)
        line = np.repeat(np.arange(n), SEGMENT_PARTS)
        t = np.tile(np.stack([knots[:-1], knots[1:]], axis=1), (n, 1))
        return self._with_stubs(line, t)

    def _with_stubs(self, line: NDArray[np.int64], t: Array) -> _Intervals:
        h = SLOPE_STUB * (t[:, 1] - t[:, 0])
        value = self.at(line, np.stack([t[:, 0], t[:, 0] + h, t[:, 1] - h, t[:, 1]], axis=1))
        slope = np.stack([value[:, 1] - value[:, 0], value[:, 3] - value[:, 2]], axis=1)
        slope /= h[:, None, None]
        return _Intervals(line, t, value[:, [0, 3]], slope, np.stack([h, h], axis=1))

    def _off(self, work: _Intervals, end: int, t: Array, value: Array) -> NDArray[np.bool_]:
        """Return which values (n, j, k) at times (n, j) are not on the line of one end."""
        away = t - work.t[:, end, None]
        line = work.value[:, end, None] + work.slope[:, end, None] * away[..., None]
        allowed = LINE_NOISES * self.oracle.noise * (1.0 + np.abs(away) / work.base[:, end, None])
        return np.any(np.abs(value - line) > allowed[..., None], axis=2)

    def straight(self, work: _Intervals) -> NDArray[np.bool_]:
        """Return which intervals hold no kink, after looking into the long ones."""
        straight = ~self._off(work, 0, work.t[:, [1]], work.value[:, [1]])[:, 0]
        straight &= ~self._off(work, 1, work.t[:, [0]], work.value[:, [0]])[:, 0]
        look = np.flatnonzero(straight)
        part = work.take(straight)
        t = part.t[:, [0]] + _CHECKS * (part.t[:, 1] - part.t[:, 0])[:, None]
        off = self._off(part, 0, t, self.at(part.line, t)).any(axis=1)
        straight[look[off]] = False
        return straight

    def crossings(self, work: _Intervals) -> tuple[NDArray[np.int64], Array, NDArray[np.bool_]]:
        """Find intervals whose two lines cross inside, at the only kink: segments, times, which."""
        width = work.t[:, 1] - work.t[:, 0]
        bend = work.slope[:, 1] - work.slope[:, 0]
        k = np.argmax(np.abs(bend), axis=1)
        every = np.arange(len(k))
        gap = work.value[:, 1] - work.slope[:, 1] * width[:, None] - work.value[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = -gap[every, k] / bend[every, k] / width
        inside = np.isfinite(share) & (share > 0.0) & (share < 1.0)
        part, share = work.take(inside), share[inside]
        t = part.t[:, 0] + share * width[inside]
        # At the crossing, and half way to it from both ends.
        look = np.stack([(part.t[:, 0] + t) / 2, t, (part.t[:, 1] + t) / 2], axis=1)
        value = self.at(part.line, look)
        off = self._off(part, 0, look[:, :2], value[:, :2]).any(axis=1)
        off |= self._off(part, 1, look[:, 1:], value[:, 1:]).any(axis=1)
        solved = np.zeros(len(k), dtype=bool)
        solved[np.flatnonzero(inside)[~off]] = True
        return part.line[~off], t[~off], solved

    def halves(self, work: _Intervals) -> _Intervals:
        """Cut intervals near the middle; the outer ends keep their lines."""
        # Not quite in the middle: symmetric functions have kinks there.
        middle = work.t[:, 0] + 0.4871 * (work.t[:, 1] - work.t[:, 0])
        h = SLOPE_STUB * (middle - work.t[:, 0])
        value = self.at(work.line, np.stack([middle - h, middle, middle + h], axis=1))
        left, right = (value[:, 1] - value[:, 0]) / h[:, None], (value[:, 2] - value[:, 1]) / h[:, None]
        first = _Intervals(
            work.line,
            np.stack([work.t[:, 0], middle], axis=1),
            np.stack([work.value[:, 0], value[:, 1]], axis=1),
            np.stack([work.slope[:, 0], left], axis=1),
            np.stack([work.base[:, 0], h], axis=1),
        )
        second = _Intervals(
            work.line,
            np.stack([middle, work.t[:, 1]], axis=1),
            np.stack([value[:, 1], work.value[:, 1]], axis=1),
            np.stack([right, work.slope[:, 1]], axis=1),
            np.stack([h, work.base[:, 1]], axis=1),
        )
        pairs = zip(vars(first).values(), vars(second).values(), strict=True)
        both = _Intervals(*(np.concatenate(pair) for pair in pairs))
        # An end's slope was measured on a stub of the whole; shrink it with the interval.
        return self._fresh_ends(both)

    def _fresh_ends(self, work: _Intervals) -> _Intervals:
        """Measure slopes again whose base lines have become longer than a quarter of the interval."""
        stale = (work.base > (work.t[:, [1]] - work.t[:, [0]]) / 4).any(axis=1)
        if stale.any():
            fresh = self._with_stubs(work.line[stale], work.t[stale])
            work.value[stale], work.slope[stale], work.base[stale] = fresh.value, fresh.slope, fresh.base
        return work

    def refit(self, line: NDArray[np.int64], t: Array) -> LineKinks:
        """Place kinks again by long base lines; leave out those beside a piece that is not straight."""
        n = len(t)
        first, last = np.ones(n, dtype=bool), np.ones(n, dtype=bool)
        if n:
            first[1:] = line[1:] != line[:-1]
            last[:-1] = first[1:]
        left = np.where(first, 0.0, np.roll(t, 1))
        right = np.where(last, 1.0, np.roll(t, -1))
        ends = np.stack([np.stack([left, t], 1), np.stack([t, right], 1)], axis=1)  # (n, side, end)
        width = ends[..., 1] - ends[..., 0]
        times = ends[..., :1] + width[..., None] * _INNER
        value = self.at(np.repeat(line, 2), times.reshape(-1, 3)).reshape(n, 2, 3, self.oracle.k)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (value[:, :, 2] - value[:, :, 0]) / (times[:, :, 2] - times[:, :, 0])[..., None]
            bent = np.abs(value[:, :, 1] - (value[:, :, 0] + value[:, :, 2]) / 2).max(axis=2)
            jump = slope[:, 1] - slope[:, 0]
            k = np.argmax(np.abs(jump), axis=1)
            every = np.arange(n)
            gap = value[:, 0, 2] - value[:, 1, 0] + slope[:, 1] * times[:, 1, [0]]
            gap -= slope[:, 0] * times[:, 0, [2]]
            exact = gap[every, k] / jump[every, k]
        good = (bent <= LINE_NOISES * self.oracle.noise).all(axis=1) & (width > 0.0).all(axis=1)
        good &= np.abs(exact - t) <= _INNER[0] * width.min(axis=1)
        # The lines around a pair of kinks cross as well, but the function does not bend there.
        look = np.flatnonzero(good)
        beside = exact[look, None] + KINK_BESIDE * width[look].min(axis=1)[:, None] * np.array(
            [-1.0, 1.0]
        )
        there = self.at(line[look], beside)
        for side, fitted in enumerate((2, 0)):
            away = (beside[:, side] - times[look, side, fitted])[:, None]
            miss = np.abs(there[:, side] - value[look, side, fitted] - slope[look, side] * away)
            good[look] &= miss.max(axis=1) <= 2.0 * LINE_NOISES * self.oracle.noise
        return LineKinks(line[good], exact[good], width[good], jump[good])
