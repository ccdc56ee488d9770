r"""Kinks of a black box on a segment, from value queries alone.

March along :math:`x(t) = a + t (b - a)`: fit a line, double the reach while the function stays on it,
bisect to where it leaves, fit the line beyond, and take the crossing of the two lines for the kink. The
crossing uses a long base line on the left, so it is far more accurate than the bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.geometry.nearness import RESOLUTION, SAME
from pindown.geometry.tuning import KINK_OVERSHOOT
from pindown.validation import integer, number, probability

Function = Callable[[Array], NDArray[np.floating]]

_UNIT = 2.0**-52
_SAFETY = 64.0  # rounding errors of a value, in units of its last place, that are forgiven
_MIN_STEP = 2.0**-14  # of the resolution: how close two kinks are pulled apart before giving up


@dataclass(frozen=True, eq=False, repr=False)
class LineKinks:
    """Where a function on a segment is not straight.

    Attributes:
        t: Times of the kinks, ascending, in (0, 1), (m,).
        jumps: How much the slope of each output changes there, (m, k).
        n_queries: Values asked for.
        complete: Whether the march reached the end within the budget, and all kinks were pulled apart.
    """

    t: Array
    jumps: Array
    n_queries: int
    complete: bool

    def __repr__(self) -> str:
        state = "" if self.complete else ", incomplete"
        return f"LineKinks({len(self.t)} kinks, {self.n_queries:,} queries{state})"


def kinks_on_line(
    f: Function,
    a: ArrayLike,
    b: ArrayLike,
    *,
    resolution: float = 1e-5,
    stride: float = 1 / 128,
    noise: float = RESOLUTION,
    max_queries: int = 1_000_000,
) -> LineKinks:
    """Find the kinks of a piecewise linear function on the segment from a to b.

    Args:
        f: Takes points (n, d), returns values (n,) or (n, k). Nothing else is asked of it.
        a: Start, (d,).
        b: End, (d,).
        resolution: Length in t of the short base lines. Kinks that are closer may be missed, and slope
            changes below about ``noise / resolution`` of the values' size are not seen.
        stride: Longest step in t between two checks of one line. Where a network returns to an earlier
            line, as those that are constant in places often do, a bump between checks is not seen.
        noise: Error of a value relative to the largest one; more than rounding if f is noisier.
        max_queries: Stop after this many values, with what was found.

    Returns:
        The kinks. They are an estimate by nature: a black box can hide a kink between any two queries.

    >>> found = kinks_on_line(lambda X: np.abs(X[:, 0] - 1) + np.maximum(X[:, 0], 2), [0.0], [4.0])
    >>> found.t.round(9)
    array([0.25, 0.5 ])

    Phuong 2021, section 2.3: fold-sets are what the values of a network tell about its units.
    """
    start, end = (np.asarray(p, dtype=np.float64) for p in (a, b))
    if start.ndim != 1 or start.shape != end.shape or not np.isfinite([start, end]).all():
        raise ValueError(
            f"a and b must be finite points of one shape (d,); got {start.shape}, {end.shape}."
        )
    number("resolution", resolution, 0.0, 0.1, above=True, below=True)
    number("stride", stride, resolution, 1.0)
    probability("noise", noise)
    integer("max_queries", max_queries)
    return _KinkSearch(f, start, end, resolution, stride, noise, max_queries).run()


class _OutOfQueriesError(Exception):
    pass


@dataclass
class _Line:
    """The line through two points of the graph."""

    t: float
    value: Array
    slope: Array
    base: float  # distance of the two points

    def __call__(self, t: float) -> Array:
        return self.value + self.slope * (t - self.t)


class _KinkSearch:
    def __init__(
        self,
        f: Function,
        a: Array,
        b: Array,
        resolution: float,
        stride: float,
        noise: float,
        max_queries: int,
    ) -> None:
        self.f, self.a, self.step = f, a, b - a
        self.resolution, self.stride, self.noise = resolution, stride, noise
        self.max_queries = max_queries
        self.queries, self.complete = 0, True
        self.known: dict[float, Array] = {}
        self.scale = np.zeros(1)

    def run(self) -> LineKinks:
        corners: list[tuple[_Line, _Line, float]] = []
        try:
            for t in np.linspace(0.0, 1.0, 9):
                self.at(float(t))
            self._march(corners)
        except _OutOfQueriesError:
            self.complete = False
        # Only now: a line's slope is best known when it has been followed to its end.
        kinks = [(self._crossing(*corner), corner) for corner in corners]
        found = [(t, right.slope - left.slope) for t, (left, right, _) in kinks if t is not None]
        jumps = np.array([jump for _, jump in found]).reshape(len(found), len(self.scale))
        return LineKinks(np.array([t for t, _ in found]), jumps, self.queries, self.complete)

    def _march(self, corners: list[tuple[_Line, _Line, float]]) -> None:
        line = self._fit_right_of(0.0)
        while line is not None:
            leaves = self._follow(line)
            if leaves is None:
                return
            beyond = self._fit_right_of(leaves)
            if beyond is None:
                break
            corners.append((line, beyond, leaves))
            line = beyond
        self.complete = False  # kinks too close to each other, or to the end, for a line in between

    def at(self, t: float) -> Array:
        """Return the value at time t, asked for once."""
        if t not in self.known:
            if self.queries >= self.max_queries:
                raise _OutOfQueriesError
            self.queries += 1
            value = np.asarray(self.f((self.a + t * self.step)[None]), dtype=np.float64).reshape(-1)
            if not np.isfinite(value).all():
                raise ValueError(f"the function is not finite at t = {t:g} of the segment.")
            self.known[t] = value
            self.scale = np.maximum(self.scale, np.abs(value))
        return self.known[t]

    def _on(self, line: _Line, t: float) -> bool:
        """Return whether the function is on the line at t, up to rounding of values and slope."""
        stretch = 1.0 + abs(t - line.t) / line.base
        allowed = self.noise * self.scale + _SAFETY * _UNIT * self.scale * stretch
        return bool(np.all(np.abs(self.at(t) - line(t)) <= allowed))

    def _line(self, t: float, other: float) -> _Line:
        value = self.at(t)
        return _Line(t, value, (self.at(other) - value) / (other - t), other - t)

    def _fit_right_of(self, t: float) -> _Line | None:
        """Return a line that the function follows just right of t, on as long a base as fits."""
        step = self.resolution
        while step >= self.resolution * _MIN_STEP:
            begin, end = (
                t + (KINK_OVERSHOOT * step if t > 0.0 else 0.0),
                t + (1.0 + KINK_OVERSHOOT) * step,
            )
            if end <= 1.0:
                line = self._line(begin, end)
                if self._on(line, (begin + end) / 2):
                    return line
            step /= 4
        return None

    def _follow(self, line: _Line) -> float | None:
        """Follow a line, refitting it in place; return where it is left, or None at the end."""
        good, bad = line.t + line.base, 1.0
        while good < 1.0:
            reach = min(1.0, line.t + 2.0 * (good - line.t), good + self.stride)
            if not self._on(line, reach):
                bad = reach
                break
            good = reach
            self._refit(line, good)
        else:
            return None
        while bad - good > 1e-3 * self.resolution:
            middle = (good + bad) / 2
            if self._on(line, middle):
                good = middle
                self._refit(line, good)
            else:
                bad = middle
        # A weak kink is noticed late: the base line ends well before it.
        if good - 2.0 * self.resolution > line.t + self.resolution:
            self._refit(line, good - 2.0 * self.resolution)
        return bad

    def _refit(self, line: _Line, t: float) -> None:
        line.slope, line.base = (self.at(t) - line.value) / (t - line.t), t - line.t

    def _crossing(self, line: _Line, beyond: _Line, near: float) -> float | None:
        """Return where two lines cross, by the output that bends most; None if they hardly do."""
        bend = beyond.slope - line.slope
        k = int(np.argmax(np.abs(bend) / np.maximum(self.scale, np.finfo(float).tiny)))
        if abs(bend[k]) <= SAME * max(abs(beyond.slope[k]), abs(line.slope[k])):
            return None
        gap = line(beyond.t)[k] - beyond.value[k]
        t = beyond.t + float(gap / bend[k])
        return t if abs(t - near) <= 2.0 * self.resolution else None
