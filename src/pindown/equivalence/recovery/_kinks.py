r"""Kinks of a black box on many segments at once, from values.

On an interval the function is compared with the two lines that leave its ends. If they are one line it
is straight; if they cross inside, and the function follows both up to the crossing, that is its only
kink; otherwise the interval is cut in two. All intervals of all segments advance together, so a query
is asked for thousands of points at a time. At the end the lines left and right of every kink are fitted
again on long base lines, and their crossing places the kink to rounding.

A kink tells where it is, its normal, and the gradients on both sides. At a point y of a fold the
gradients before and after, both (k, d), differ by a matrix of rank one,

.. math:: G_+ - G_- = \kappa\, n^\top,

n being the normal of the fold and :math:`\kappa` the jump of each output. The gradients come from
central differences inside the two pieces, on steps as long as the pieces allow: values of a linear
piece are exact to rounding, so the longer the step, the more digits.

Phuong 2021, section 2.3, on fold-sets, and the proof of Theorem 2.1 (step one); the scheme is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.equivalence.recovery._oracle import Oracle
from pindown.equivalence.tuning import (
    GRADIENT_NOISES,
    KINK_BESIDE,
    KINK_ROUNDS,
    LINE_NOISES,
    MAX_COORDINATES,
    MAX_NORMAL_ERROR,
    MIN_INTERVAL,
    RANK_ONE,
    SEGMENT_PARTS,
    SLOPE_STUB,
    STEP_TRIES,
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


@dataclass(frozen=True, eq=False)
class Observations:
    """Points on folds, in cube coordinates.

    Attributes:
        y: The points, (m, d).
        normal: Unit normals, of either sign, (m, d).
        error: How far a normal may be off, (m,).
        place: How far the point may be off the fold, (m,).
        side: A point within the piece on each side, (m, 2, d).
        gradient: The gradient there, (m, 2, k, d).
        gradient_error: How far its entries may be off, (m, 2).
    """

    y: Array
    normal: Array
    error: Array
    place: Array
    side: Array
    gradient: Array
    gradient_error: Array

    def __len__(self) -> int:
        return len(self.y)

    def take(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Observations:
        """Return some of them."""
        return Observations(*(part[which] for part in vars(self).values()))

    def __add__(self, other: Observations) -> Observations:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Observations(*(np.concatenate(pair) for pair in pairs))

    @classmethod
    def none(cls, d: int, k: int) -> Observations:
        """Return an empty collection for d inputs and k outputs."""
        shapes = [(0, d), (0, d), (0,), (0,), (0, 2, d), (0, 2, k, d), (0, 2)]
        return cls(*(np.empty(shape) for shape in shapes))


def observe(oracle: Oracle, starts: Array, ends: Array) -> Observations:
    """Find the kinks on segments (n, d) and measure the folds there."""
    kinks = kinks_on_lines(oracle, starts, ends)
    if not len(kinks):
        return Observations.none(oracle.d, oracle.k)
    steps = (ends - starts)[kinks.line]
    y = starts[kinks.line] + kinks.t[:, None] * steps
    return _measure(oracle, kinks, y, steps)


def _measure(oracle: Oracle, kinks: LineKinks, y: Array, steps: Array) -> Observations:
    n, d = y.shape
    length = np.linalg.norm(steps, axis=1)
    room = kinks.room * length[:, None]  # (n, 2)
    unit = steps / length[:, None]
    offset = np.stack([-0.5 * room[:, 0], 0.5 * room[:, 1]], axis=1)
    side = y[:, None] + offset[..., None] * unit[:, None]
    flat = side.reshape(2 * n, d)
    gradient, error = gradients(oracle, flat, 0.5 * room.reshape(-1))
    gradient, error = gradient.reshape(n, 2, -1, d), error.reshape(n, 2)
    jump = gradient[:, 1] - gradient[:, 0]
    good = np.isfinite(error).all(axis=1)
    jump[~good] = 0.0
    _, sizes, right = np.linalg.svd(jump, full_matrices=False)
    doubt = np.sqrt(d) * np.where(good, error.max(axis=1), np.inf) / np.maximum(sizes[:, 0], 1e-300)
    good &= doubt < MAX_NORMAL_ERROR
    if sizes.shape[1] > 1:
        good &= sizes[:, 1] <= np.maximum(RANK_ONE, 4.0 * doubt) * sizes[:, 0]
    # The crossing of two lines whose slopes differ by the jump along the segment.
    slope = np.max(np.abs(kinks.jump), axis=1) / length
    place = 4.0 * oracle.noise / np.maximum(slope, 1e-300) + 2.0**-50
    found = Observations(y, right[:, 0], doubt, place, side, gradient, error)
    return found.take(good)


def gradients(oracle: Oracle, points: Array, reach: Array) -> tuple[Array, Array]:
    """Measure gradients by central differences within the linear piece around each point.

    Args:
        oracle: The function.
        points: Points of the cube, (n, d).
        reach: The longest step to try at each, (n,).

    Returns:
        Gradients (n, k, d), and how far their entries may be off, (n,); infinity where no step stayed
        within one piece.
    """
    n, d = points.shape
    inside = 1.0 - np.abs(points).max(axis=1)
    step = np.minimum(reach, np.maximum(inside, 0.0))
    gradient, error = np.zeros((n, oracle.k, d)), np.full(n, np.inf)
    todo = np.flatnonzero(step > 0.0)
    middle = oracle(points[todo])
    for _ in range(STEP_TRIES):
        if not len(todo):
            break
        fine = np.zeros(len(todo), dtype=bool)
        block = max(1, MAX_COORDINATES // d**2)
        for i in range(0, len(todo), block):
            part, h = todo[i : i + block], step[todo[i : i + block]]
            moves = h[:, None, None] * np.eye(d)
            ahead, behind = oracle(points[part, None] + moves), oracle(points[part, None] - moves)
            bent = np.abs(ahead + behind - 2.0 * middle[i : i + block, None]).max(axis=(1, 2))
            fine[i : i + block] = bent <= GRADIENT_NOISES * oracle.noise
            gradient[part] = np.swapaxes(ahead - behind, 1, 2) / (2.0 * h[:, None, None])
        good = todo[fine]
        error[good] = 2.0 * oracle.noise / step[good]
        step[todo] /= 4.0
        todo, middle = todo[~fine], middle[~fine]
    return gradient, error
