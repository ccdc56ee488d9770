r"""All cells of a network with one input, proved: by intervals where they decide, else by rationals.

The float64 sweep guesses break points :math:`t_1 < \dots < t_m` and patterns :math:`P_0, \dots, P_m`.
A guess :math:`t_i` is proved by two points :math:`l < t_i < r`, where :math:`P_{i-1}` and :math:`P_i`
differ in one unit u only:

1. interval arithmetic shows the states of all other units on [l, r], so u is affine there, and
2. the zero of that affine form, in integers, lies between l and r.

The cell of a pattern is convex, so from the r of one break point to the l of the next there is one cell.
Stretches between proved points that hold a guess
without a proof are searched in exact arithmetic. The break points returned are the true ones, rounded
once: zeros of u's affine form in integers.
"""

from __future__ import annotations

from contextlib import suppress
from math import frexp
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, dense, stored_numbers
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.nearness import leaves_float64
from pindown.geometry.slices.segment import line_complex
from pindown.network import ReluNetwork
from pindown.relaxation.linear import times
from pindown.rounding import SAFE_PRODUCT, TINY, add_up, gamma, smallest_nonzero

Patterns = NDArray[np.bool_]

# The points left and right of a guess: far enough for signs to be seen, near enough for other units to
# keep theirs; shares of the way to the next guess, and of the largest coordinate.
_STEP_ASIDE, _MAX_STEP_ASIDE, _ROUNDING_STEP = 2.0**-10, 1.0 / 3.0, 2.0**-44


class ProvedLine(NamedTuple):
    """Ends of cells, ascending, (n + 1,), their patterns (n, size), and how many needed rationals."""

    ends: Array
    patterns: Patterns
    n_exact: int


def proved_line(net: ReluNetwork, box: Box, deadline: Deadline = NEVER) -> ProvedLine | None:
    """Return the cells of a network with one input on a box; None if the time did not suffice.

    >>> net = ReluNetwork.from_layers([([[1.0], [1.0]], [0, -1e-12]), ([[1.0, -1.0]], [0])])
    >>> proved_line(net, Box([-1], [1])).ends
    array([-1.e+00,  0.e+00,  1.e-12,  1.e+00])
    """
    low, high = float(box.lower[0]), float(box.upper[0])
    if leaves_float64(net, box):
        guesses, patterns = np.zeros(0), np.zeros((1, net.size), bool)
        left = right = np.array([low, high])
        sure = np.zeros(2, bool)
    else:
        line = line_complex(net, low, high)
        guesses, patterns = line.breakpoints, line.patterns
        left, right = _beside(guesses, low, high)
        sure = _sure(net, left, right, patterns)
        guesses, inside = _zeros(net, left, right, patterns, sure)
        sure[1:-1] &= inside
    breaks: list[float] = []
    cells: list[NDArray[np.bool_]] = [patterns[0]] if sure[0] else []
    n_exact, at = 0, 0
    for first, last in _runs(~sure):
        breaks += guesses[at : max(first - 1, 0)].tolist()
        cells += list(patterns[at + 1 : first])
        start, stop = float(right[max(first - 1, 0)]), float(left[min(last + 1, len(guesses) + 1)])
        found = _exactly(net, start, stop, deadline)
        if found is None:
            return None
        n_exact += len(found.patterns)
        # A unit that is zero at the proved point itself may be on there and off in the cell behind it.
        same = bool(cells) and np.array_equal(cells[-1], found.patterns[0])
        breaks += [] if same or not cells else [start]
        cells += list(found.patterns[int(same) :])
        breaks += found.ends.tolist()
        if last <= len(guesses) and not np.array_equal(cells[-1], patterns[last]):
            breaks.append(stop)
            cells.append(patterns[last])
        at = min(last, len(guesses))
    breaks += guesses[at:].tolist()
    cells += list(patterns[at + 1 :])
    return ProvedLine(np.array([low, *breaks, high]), np.array(cells).reshape(-1, net.size), n_exact)


def _beside(guesses: Array, low: float, high: float) -> tuple[Array, Array]:
    """Return points left and right of the ends of the interval and the guesses in it."""
    ends = np.concatenate([[low], guesses, [high]])
    gap = np.diff(ends)
    near = np.minimum(gap[:-1], gap[1:])
    aside = np.maximum(
        _STEP_ASIDE * near, np.minimum(_MAX_STEP_ASIDE * near, _ROUNDING_STEP * np.abs(ends).max())
    )
    left, right = ends.copy(), ends.copy()
    left[1:-1] -= aside
    right[1:-1] += aside
    return left, right


def _sure(net: ReluNetwork, left: Array, right: Array, patterns: Patterns) -> NDArray[np.bool_]:
    """Return which ends and guesses are proved."""
    before, after = np.concatenate([patterns[:1], patterns]), np.concatenate([patterns, patterns[-1:]])
    moved = before != after
    sure = (moved.sum(axis=1) <= 1) & (right[:1] <= left).all()
    sure[1:-1] &= (left < right)[1:-1] & moved[1:-1].any(axis=1)
    sure[1:] &= right[:-1] < left[1:]
    sure[:-1] &= right[:-1] < left[1:]
    for part in net.chunks(len(left)):
        sure[part] &= _shown(net, left[part], right[part], before[part], after[part])
    return sure


def _shown(
    net: ReluNetwork, left: Array, right: Array, before: Patterns, after: Patterns
) -> NDArray[np.bool_]:
    """Return for which guesses all units but the one that switches keep their state from left to right.

    Units are enclosed by ``middle +- radius``, rounding included.
    """
    at, shown = 0, np.ones(len(left), bool)
    inside = left / 2 + right / 2
    middle, radius = inside[:, None], np.maximum(add_up(right, -inside), add_up(inside, -left))[:, None]
    for W, b in net.layers[:-1]:
        units = slice(at, at + len(b))
        at += len(b)
        rounding = 2.0 * gamma(W.shape[1] + 8)
        sizes = times(abs(W), radius + rounding * (np.abs(middle) + radius))
        radius = (sizes + rounding * np.abs(b)) * (1.0 + rounding)
        if smallest_nonzero(stored_numbers(W)) * smallest_nonzero(middle) < SAFE_PRODUCT:
            radius = radius + TINY * (W.shape[1] + 1)
        middle = times(W, middle) + b
        on, own = before[:, units], before[:, units] != after[:, units]
        holds = np.where(on, middle, -middle) > radius
        if not holds.all():
            holds |= own | (on & (middle == 0.0) & (radius == 0.0))
        shown &= holds.all(axis=1)
        # Wrong guesses are dropped: the others are on or off as guessed, but for the one unit inside.
        half = np.maximum(middle + radius, 0.0) * (0.5 + rounding)
        middle, radius = (np.where(own, half, np.where(on, end, 0.0)) for end in (middle, radius))
    return shown


def _zeros(
    net: ReluNetwork, left: Array, right: Array, patterns: Patterns, sure: NDArray[np.bool_]
) -> tuple[Array, NDArray[np.bool_]]:
    """Return the zeros that guesses stand for, rounded correctly, and which lie where they should."""
    forms, zeros = _IntegerForms(net), (left / 2 + right / 2)[1:-1]
    inside = np.zeros(len(zeros), bool)
    units = np.argmax(patterns[1:] != patterns[:-1], axis=1)
    for i in np.flatnonzero(sure[1:-1]).tolist():
        slope, offset = forms.of_unit(int(units[i]), patterns[i])
        if slope == 0 or (slope < 0) != patterns[i, units[i]]:
            continue
        with suppress(OverflowError):
            zero = -offset / slope  # the quotient of two integers is rounded correctly
            zeros[i], inside[i] = zero, left[i + 1] < zero < right[i + 1]
    return zeros, inside


class _IntegerForms:
    """Slopes and offsets of units on cells of a line, times a power of two of their layer.

    From one cell to the next few units switch, so forms are updated where that is less work.
    """

    def __init__(self, net: ReluNetwork) -> None:
        self.net, self.starts = net, np.cumsum([0, *net.hidden_widths])
        self.powers, self.total = [], [0]
        for W, b in net.layers[:-1]:
            sizes = np.abs(np.append(W.data if not isinstance(W, np.ndarray) else W, b))
            smallest = float(np.min(sizes, initial=1.0, where=sizes > 0))
            self.powers.append(max(0, 53 - frexp(smallest)[1]))
            self.total.append(self.total[-1] + self.powers[-1])
        self.rows: dict[int, tuple[list[int], int]] = {}
        self.levels: list[Any] = [None] * len(self.powers)

    def of_unit(self, unit: int, pattern: NDArray[np.bool_]) -> tuple[int, int]:
        """Return slope and offset of a unit where a pattern holds for the layers below it."""
        level = int(np.searchsorted(self.starts, unit, side="right")) - 1
        row, bias = self._row(level, unit)
        if level == 0:
            return row[0], bias
        on = pattern[self.starts[level - 1] : self.starts[level]]
        slopes, offsets, _ = self._level(level - 1, pattern)
        chosen = np.flatnonzero(on).tolist()
        slope = sum(row[j] * slopes[j] for j in chosen)
        return slope, sum(row[j] * offsets[j] for j in chosen) + (bias << self.total[level])

    def _row(self, level: int, unit: int) -> tuple[list[int], int]:
        if unit not in self.rows:
            (W, b), i, power = self.net.layers[level], unit - self.starts[level], self.powers[level]
            row = W[i] if isinstance(W, np.ndarray) else dense(W[[i]])[0]
            self.rows[unit] = _integers(row, power), _integers(b[i : i + 1], power)[0]
        return self.rows[unit]

    def _level(self, level: int, pattern: NDArray[np.bool_]) -> tuple[Any, Any, bytes]:
        """Return slopes and offsets of all units of a layer, and the pattern below that they are for."""
        below = pattern[: self.starts[level]]
        known, key = self.levels[level], below.tobytes()
        if known is not None and known[2] == key:
            return known[:3]
        if known is None:
            first, last = int(self.starts[level]), int(self.starts[level + 1])
            rows = [self._row(level, unit) for unit in range(first, last)]
            weights, biases = np.array([row for row, _ in rows], dtype=object), [b for _, b in rows]
        else:
            weights, biases = known[3:]
        if level == 0:
            slopes, offsets = weights[:, 0], np.array(biases, dtype=object)
        else:
            lower = self._level(level - 1, pattern)
            on = below[self.starts[level - 1] :]
            before = None if known is None else np.frombuffer(known[2], bool)
            same = before is not None and np.array_equal(
                before[: self.starts[level - 1]], below[: self.starts[level - 1]]
            )
            if same and before is not None:
                slopes, offsets = known[0], known[1]
                changed = np.flatnonzero(before[self.starts[level - 1] :] != on)
            else:
                slopes = np.zeros(len(biases), dtype=object)
                offsets = np.array([b << self.total[level] for b in biases], dtype=object)
                changed = np.flatnonzero(on)
            for j in changed.tolist():
                column = weights[:, j] if on[j] else -weights[:, j]
                slopes, offsets = slopes + column * lower[0][j], offsets + column * lower[1][j]
        self.levels[level] = (slopes, offsets, key, weights, biases)
        return slopes, offsets, key


def _integers(values: Array, power: int) -> list[int]:
    """Return values times a power of two that makes them integers."""
    ratios = map(float.as_integer_ratio, values.tolist())
    return [n << (power - d.bit_length() + 1) for n, d in ratios]


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return first and last place of each run of true flags.

    >>> _runs(np.array([True, False, True, True]))
    [(0, 0), (2, 3)]
    """
    steps = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(a), int(b) - 1) for a, b in steps.reshape(-1, 2)]


def _exactly(net: ReluNetwork, low: float, high: float, deadline: Deadline) -> ProvedLine | None:
    """Search a stretch in exact arithmetic; ``ends`` are those between its cells, rounded."""
    exact = exact_complex(net, ([low], [high]), budget=deadline.left)
    if not exact.complete:
        return None
    starts = [vertices[0][0] for vertices in exact.vertices]
    order = sorted(range(len(starts)), key=starts.__getitem__)
    ends = [float(starts[i]) for i in order[1:]]
    return ProvedLine(np.array(ends), exact.patterns[order], exact.n_regions)
