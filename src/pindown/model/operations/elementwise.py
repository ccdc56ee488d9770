r"""Operations entry by entry on one tensor, and the lines between which they stay on an interval.

On :math:`[l, u]` a function :math:`f` stays below the line with slope :math:`s` whose offset is at least
:math:`\max_x f(x) - s x`. Of all lines above :math:`f` the one that is lowest in the middle, and so
encloses the least area, lies along its upper hull there. Its slope is found from values of :math:`f` at
points, and may be anything; its offset is then proved for that slope. The line below is the one above
:math:`-f`, negated.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.model.operations.operation import (
    EntrywiseLines,
    Interval,
    Numbers,
    Operation,
    Relaxation,
    Shape,
)
from pindown.rounding import TINY

_HULL_STEPS = 5  # halves 24 cells down to one
# Far above what a handful of float64 operations loses, relative to their largest part.
_ROUNDING = 2.0**-48


class Lines(NamedTuple):
    """Entry by entry ``lower * x + below <= f(x) <= upper * x + above``."""

    lower: Array
    below: Array
    upper: Array
    above: Array


class Elementwise(Operation):
    """A function of numbers, applied to every entry of a tensor.

    Attributes:
        least: No value is below this.
        most: No value is above this.
    """

    least: ClassVar[float] = -np.inf
    most: ClassVar[float] = np.inf

    @abstractmethod
    def function(self, x: Numbers) -> Numbers:
        """Return the value at every entry."""

    @abstractmethod
    def derivative(self, x: Array) -> Array:
        """Return the derivative at every entry; at a kink one of those beside it, of a step zero."""

    @abstractmethod
    def range(self, box: Interval) -> Interval:
        """Return bounds on the values on a box that may be NaN where nothing is known."""

    @abstractmethod
    def lines(self, box: Interval) -> Lines:
        """Return proved lines below and above the function, of any value where the box is not finite."""

    def shape(self, *shapes: Shape) -> Shape:
        """Keep the shape."""
        return shapes[0]

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Apply the function to every entry; outside of its domain the value is NaN or infinite."""
        with np.errstate(all="ignore"):
            return self.function(inputs[0])

    def interval(self, *boxes: Interval) -> Interval:
        """Bound the values entry by entry."""
        with np.errstate(all="ignore"):
            low, high = self.range(boxes[0])
        return Interval(np.fmax(low, self.least), np.fmin(high, self.most))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return the lines, or the interval where they or the box are not finite."""
        (box,) = boxes
        with np.errstate(all="ignore"):
            lower, below, upper, above = self.lines(box)
        finite = np.isfinite(box.lower) & np.isfinite(box.upper)
        low, high = finite & np.isfinite(lower + below), finite & np.isfinite(upper + above)
        if not (low.all() and high.all()):
            values = self.interval(box)
            lower, below = np.where(low, lower, 0.0), np.where(low, below, values.lower)
            upper, above = np.where(high, upper, 0.0), np.where(high, above, values.upper)
        return EntrywiseLines((lower,), below, (upper,), above, boxes)

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Multiply by the derivative."""
        with np.errstate(all="ignore"):
            return (np.where(form == 0, 0.0, form * self.derivative(inputs[0])),)


def proved_lines(
    points: Array,
    low: Array,
    high: Array,
    slopes: tuple[Array, Array],
    bulge: Bulge | None = None,
) -> Lines:
    """Return lines below and above functions of which some is known at points, one function per column.

    Args:
        points: Ascending, (k, ...); between neighbours the functions are linear, without a ``bulge``.
        low: Lower bounds on the values there.
        high: Upper bounds on the values there.
        slopes: Between which numbers to choose slopes.
        bulge: What the functions do between the points.
    """
    bulge = bulge or Bulge()
    upper, above = _upper_line(points, high, slopes, bulge.rise, bulge.top)
    bottom = None if bulge.bottom is None else -bulge.bottom
    lower, below = _upper_line(points, -low, (-slopes[1], -slopes[0]), bulge.sag, bottom)
    return Lines(-lower, -below, upper, above)


class Bulge(NamedTuple):
    """What functions do between k points.

    Attributes:
        sag: How far they get below the chord of their values, (k - 1, ...).
        rise: How far they get above it.
        bottom: Lower bounds on their values.
        top: Upper bounds on their values.
    """

    sag: Array | None = None
    rise: Array | None = None
    bottom: Array | None = None
    top: Array | None = None


def _upper_line(
    points: Array, values: Array, slopes: tuple[Array, Array], rise: Array | None, top: Array | None
) -> tuple[Array, Array]:
    """Return the slope and the proved offset of a line above functions."""
    slope = np.clip(_hull_slope(points, values), *slopes)
    line = slope * points
    offsets = values - line
    sizes = np.abs(values).max(axis=0) + np.abs(line).max(axis=0)
    if rise is not None and top is not None:
        chords = np.maximum(offsets[:-1], offsets[1:]) + rise
        # A cell on which the curvature is unknown or too much: its largest value at its worst end.
        offsets = np.fmin(chords, top - np.minimum(line[:-1], line[1:]))
    offset = offsets.max(axis=0)
    return slope, offset + _ROUNDING * (sizes + np.abs(offset)) + TINY


def _hull_slope(points: Array, values: Array) -> Array:
    """Return the slope of the upper hull of points in the plane, halfway from the first to the last.

    The hull's edge there is looked for as a bridge: the point farthest above the present edge takes the
    place of that one of its ends which lies on the same side of the middle.
    """
    middle = 0.5 * points[0] + 0.5 * points[-1]
    left, right = np.zeros(middle.shape, dtype=np.intp), np.full(middle.shape, len(points) - 1)
    slope = _slope(points, values, left, right)
    for _ in range(min(_HULL_STEPS, len(points) - 1)):
        far = np.argmax(values - slope * points, axis=0)
        on_left = _at(points, far) < middle
        left, right = np.where(on_left, far, left), np.where(on_left, right, far)
        slope = _slope(points, values, left, right)
    return slope


def _slope(points: Array, values: Array, left: NDArray[Any], right: NDArray[Any]) -> Array:
    step = _at(points, right) - _at(points, left)
    return np.where(step > 0, (_at(values, right) - _at(values, left)) / step, 0.0)


def _at(values: Array, index: NDArray[Any]) -> Array:
    return np.asarray(np.take_along_axis(values, index[None], axis=0)[0])
