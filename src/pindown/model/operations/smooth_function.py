r"""Bounds and lines of smooth functions entry by entry: one rule for all of them.

A function says what it, its derivative and its second derivative are, and where it and its second
derivative turn; all else follows. Between neighbours :math:`a < b` of a grid on :math:`[l, u]`, with
:math:`c \le f'' \le d` there,

.. math::
    -\tfrac18 \max(d, 0) (b - a)^2 \;\le\; f(x) - L(x) \;\le\; \tfrac18 \max(-c, 0) (b - a)^2 ,

where :math:`L` is the chord: :math:`f(x) - L(x) = -\tfrac12 f''(\xi) (x - a)(b - x)`. A line with a
slope :math:`s` is therefore proved by the values of :math:`f - s x` on the grid. The grid is denser
where the curvature is, so that wide intervals stay tight.

What is assumed: values computed by NumPy and SciPy are off by at most ``relative * |f| + absolute``,
second derivatives by at most ``2**-36 |f''| + blur``. The tests compare with mpmath and ask for a
hundredth of that.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.model.operations.elementwise import Bulge, Elementwise, Lines, proved_lines
from pindown.model.operations.operation import Interval, Numbers

Points: TypeAlias = tuple[tuple[float, float], ...]

_CELLS = 24
_CHUNK = 1024  # entries at a time: their grids stay in the cache
_MAX_FLOAT = float(np.finfo(np.float64).max)
_SECOND_RELATIVE = 2.0**-35  # twice what is assumed: products and squares round, too
_NEAR = 1e-9  # turning points count for intervals that end this close to them
_NARROW = 2.0**-20  # relative to its ends, an interval on which a chord would be mostly rounding


class Smooth(Elementwise):
    """A function that has a second derivative, apart from kinks.

    Attributes:
        relative: How far computed values can be off, relative to their size.
        absolute: What else they can be off.
        blur: What computed second derivatives can be off beside a small relative error.
        tail: The limit at minus infinity, where the formula gives NaN.
        turns: Where the function turns, and its value there.
        bends: Where its second derivative turns or jumps, and its value there or its limit on a side.
        kinks: Where its derivative jumps.
    """

    relative: float = 2.0**-42
    absolute: float = 2.0**-1000
    blur: float = 2.0**-1000
    tail: float = np.nan
    turns: Points = ()
    bends: Points = ()
    kinks: tuple[float, ...] = ()

    @abstractmethod
    def function(self, x: Numbers) -> Array:
        """Return the value."""

    @abstractmethod
    def second(self, x: Array) -> Array:
        """Return the second derivative."""

    def defined(self, low: Array, high: Array) -> NDArray[np.bool_]:
        """Return where the function is defined and continuous on the whole interval."""
        return np.ones(low.shape, dtype=bool)

    def warp(self, x: Array) -> Array:
        """Return a scale on which the curvature is spread evenly; here it sits around zero."""
        return np.arcsinh(x)

    def unwarp(self, y: Array) -> Array:
        """Undo :meth:`warp`."""
        return np.sinh(y)

    def hull(self, low: Array, high: Array, at_low: Array, at_high: Array) -> tuple[Array, Array]:
        """Return the least and the largest value on intervals, from those at their ends."""
        return _hull(self.turns, low, high, at_low, at_high)

    def curvature(self, low: Array, high: Array, at_low: Array, at_high: Array) -> tuple[Array, Array]:
        """Return the least and the largest second derivative on intervals that no kink divides."""
        return _hull(self.bends, low, high, at_low, at_high)

    def range(self, box: Interval) -> Interval:
        """Look at the ends and the turning points between them."""
        ends = (
            np.where(np.isneginf(end) & ~np.isnan(self.tail), self.tail, self.function(end))
            for end in box
        )
        low, high = self.hull(*box, *ends)
        # What overflowed is at least as large as the largest number, apart from its error.
        low, high = self._off(np.minimum(low, _MAX_FLOAT), np.maximum(high, -_MAX_FLOAT))
        known = self.defined(*box)
        return Interval(np.where(known, low, np.nan), np.where(known, high, np.nan))

    def lines(self, box: Interval) -> Lines:
        """Prove lines on grids, some entries at a time; keep the interval where they are no better."""
        shape = box.lower.shape
        low, high = (end.ravel() for end in box)
        values = self.interval(box)
        made = [
            np.zeros(low.size),
            values.lower.ravel().copy(),
            np.zeros(low.size),
            values.upper.ravel().copy(),
        ]
        middle = 0.5 * low + 0.5 * high
        known = np.flatnonzero(np.isfinite(low) & np.isfinite(high) & self.defined(low, high))
        for start in range(0, known.size, _CHUNK):
            part = known[start : start + _CHUNK]
            lower, below, upper, above = self._on_grids(low[part], high[part])
            better = lower * middle[part] + below > made[1][part]
            made[0][part], made[1][part] = np.where(
                better, (lower, below), (made[0][part], made[1][part])
            )
            better = upper * middle[part] + above < made[3][part]
            made[2][part], made[3][part] = np.where(
                better, (upper, above), (made[2][part], made[3][part])
            )
        return Lines(*(line.reshape(shape) for line in made))

    def _on_grids(self, low: Array, high: Array) -> Lines:
        """Return lines for intervals (m,)."""
        points = self._grid(low, high)
        values = self.function(points)
        below, above = self._off(values, values)
        cells = points[:-1], points[1:]
        second = self.second(points)
        least, most = self.curvature(*cells, second[:-1], second[1:])
        width = cells[1] - cells[0]
        # Not times the square, which may underflow although the product does not.
        sag, rise = (
            (np.maximum(end, 0.0) + self.blur) * (0.125 * (1.0 + _SECOND_RELATIVE)) * width * width
            for end in (most, -least)
        )
        bulge = Bulge(sag, rise, *self._off(*self.hull(*cells, values[:-1], values[1:])))
        narrow = high - low <= _NARROW * np.maximum(np.abs(low), np.abs(high))
        tangent = self.derivative(0.5 * low + 0.5 * high)
        slopes = np.where(narrow, tangent, -np.inf), np.where(narrow, tangent, np.inf)
        return proved_lines(points, below, above, slopes, bulge)

    def _grid(self, low: Array, high: Array) -> Array:
        """Return points (k, m) from low to high; cells that overlap by rounding do no harm."""
        start, stop = self.warp(low), self.warp(high)
        share = np.linspace(0.0, 1.0, _CELLS + 1)[:, None]
        points = np.fmin(np.fmax(self.unwarp(start + share * (stop - start)), low), high)
        points[0], points[-1] = low, high
        if self.kinks:
            kinks = [np.clip(kink, low, high)[None] for kink in self.kinks]
            points = np.sort(np.concatenate([points, *kinks]), axis=0)
        return points

    def _off(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Move computed values outwards by what they can be off; infinite ones become NaN."""
        return (
            low - self.relative * np.abs(low) - self.absolute,
            high + self.relative * np.abs(high) + self.absolute,
        )


def _hull(turns: Points, low: Array, high: Array, at_low: Array, at_high: Array) -> tuple[Array, Array]:
    """Return the least and the largest of the values at the ends and at turning points between them."""
    least, most = np.minimum(at_low, at_high), np.maximum(at_low, at_high)
    for x, value in turns:
        near = _NEAR * (1.0 + abs(x))
        inside = (low <= x + near) & (high >= x - near)
        least = np.where(inside, np.minimum(least, value), least)
        most = np.where(inside, np.maximum(most, value), most)
    return least, most


def periodic_hull(
    top: Any, low: Array, high: Array, at_low: Array, at_high: Array
) -> tuple[Array, Array]:
    r"""Return the hull of a sine whose maxima are at ``top`` and every :math:`2 \pi` from there."""
    far = np.maximum(np.abs(low), np.abs(high)) > 1e6  # beyond it a multiple of pi is not certain enough

    def holds(x: float) -> NDArray[np.bool_]:
        turns = ((end - x) / (2.0 * np.pi) for end in (low, high))
        first, last = turns
        return np.ceil(first - _NEAR) <= np.floor(last + _NEAR)

    least = np.where(far | holds(top + np.pi), -1.0, np.minimum(at_low, at_high))
    return least, np.where(far | holds(top), 1.0, np.maximum(at_low, at_high))
