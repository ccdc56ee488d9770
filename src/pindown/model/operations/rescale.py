r"""Rows of numbers divided by their own size, with their mean taken away or not.

With m entries in a row, z is d over s, where d is x or x less its mean and

.. math::
    s^2 = \tfrac1m \sum_j d_j^2 + \epsilon \quad\text{or}\quad s = \Bigl(\sum_j |d_j|^p\Bigr)^{1/p} .

On a box d is affine in x, and the size lies between two numbers. It is never below what an entry alone
makes it, so that :math:`|z_i| \le \sqrt{m - 1}` (averaged squares, mean taken away) whatever the box.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pindown.affine import Array
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.chain import ChainedForms
from pindown.model.operations.operation import (
    EntrywiseLines,
    Interval,
    Numbers,
    Operation,
    Relaxation,
    Shape,
    Writer,
)
from pindown.model.operations.softmax import sum_of_others
from pindown.rounding import TINY, add_down, add_up, gamma

_BISECTIONS = 40
_ROUNDING = 2.0**-48  # far above what a handful of float64 operations loses


@dataclass(frozen=True, eq=False)
class Centre(AffineOperation):
    """``x - mean(x)`` along the last axis."""

    def shape(self, *shapes: Shape) -> Shape:
        """Keep the shape."""
        return shapes[0]

    def linear(self, x: Numbers) -> Numbers:
        """Take away the mean."""
        return x - x.sum(axis=-1, keepdims=True) / x.shape[-1]

    def transposed(self, form: Array, shape: Shape) -> Array:
        """Take away the mean: the map is symmetric."""
        return self.linear(form)

    def signed(self) -> tuple[AffineOperation, AffineOperation]:
        """Split into what an entry keeps and what the others take."""
        return _Share(True), _Share(False)

    def n_terms(self, shape: Shape) -> int:
        """All entries of a row, and the entry itself."""
        return shape[-1] + 2

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write ReduceMean and Sub."""
        mean = writer.node("ReduceMean", [*inputs, writer.integers([-1])], keepdims=1)
        return writer.node("Sub", [*inputs, mean])


@dataclass(frozen=True, eq=False)
class _Share(AffineOperation):
    """A signed part of :class:`Centre`."""

    own: bool

    def shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    def linear(self, x: Numbers) -> Numbers:
        m = x.shape[-1]
        if self.own:
            return x * ((m - 1) / m)
        return sum_of_others(x) / m

    def transposed(self, form: Array, shape: Shape) -> Array:
        return self.linear(form)

    def signed(self) -> tuple[AffineOperation, AffineOperation]:
        raise NotImplementedError

    def n_terms(self, shape: Shape) -> int:
        return shape[-1]

    def write(self, writer: Writer, *inputs: str) -> str:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Rescale(Operation):
    """The rows along the last axis divided by their size.

    Attributes:
        centred: Whether the mean is taken away first.
        power: 2 for the root of squares, 1 for absolute values.
        mean: Whether squares are averaged, not summed.
        epsilon: What is added to the squares; without it a row of zeros stays one.
    """

    centred: bool = True
    power: int = 2
    mean: bool = True
    epsilon: float = 0.0

    def shape(self, *shapes: Shape) -> Shape:
        """Keep the shape."""
        return shapes[0]

    def _share(self, m: int) -> float:
        """What a sum of squares is multiplied by."""
        return 1.0 / m if self.mean else 1.0

    def _own(self, m: int) -> float:
        """The least c such that the squared size is at least ``c * d_i**2``."""
        return self._share(m) * (m / max(1, m - 1) if self.centred else 1.0)

    def _size(self, d: Array) -> Array:
        if self.power == 1:
            return _total(np.abs(d))
        return np.sqrt(self._share(d.shape[-1]) * _total(d * d) + self.epsilon)

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Divide."""
        (x,) = inputs
        d = Centre().linear(x) if self.centred else x
        if self.epsilon == 0:  # the squares of small or large numbers would leave float64
            largest = np.abs(d).max(axis=-1, keepdims=True)
            d = d / np.where(largest == 0, 1.0, largest)
        size = self._size(d)
        return np.asarray(d / np.where(size == 0, 1.0, size))

    def sizes(self, box: Interval) -> Interval:
        """Return proved bounds on the size, along the last axis with length one."""
        low, high = box
        m = low.shape[-1]
        trust = 4.0 * gamma(m + 16)
        nearest, farthest = np.clip(0.0, low, high), box.reach
        with np.errstate(over="ignore", invalid="ignore"):
            if self.power == 1:
                return Interval(
                    _total(np.abs(nearest)) * (1.0 - trust), _total(farthest) * (1.0 + trust)
                )
            if self.centred:
                middle = _total(0.5 * low + 0.5 * high) / m
                least = _least_spread(low, high)
                most = _total(np.maximum(np.abs(low - middle), np.abs(high - middle)) ** 2)
            else:
                least, most = _total(nearest**2), _total(farthest**2)
            # Squares that underflow are off by less than TINY each.
            least = np.maximum(self._share(m) * least - m * TINY, 0.0) + self.epsilon
            most = self._share(m) * most + m * TINY + self.epsilon
            least, most = np.sqrt(least) * (1.0 - trust), np.sqrt(most) * (1.0 + trust)
        # What overflows is not known from below.
        return Interval(np.where(np.isfinite(least), least, 0.0), np.where(np.isnan(most), np.inf, most))

    def interval(self, *boxes: Interval) -> Interval:
        """Divide the largest numerator by the smallest size that it allows."""
        d, sizes = self._numerators(boxes[0]), self.sizes(boxes[0])
        high = self._largest(d.upper, sizes)
        return Interval(-self._largest(-d.lower, sizes), high)

    def _numerators(self, box: Interval) -> Interval:
        if not self.centred:
            return box
        if box.lower.shape[-1] == 1:
            return Interval(np.zeros(box.lower.shape), np.zeros(box.lower.shape))
        return Centre().interval(box)

    def _largest(self, d: Array, sizes: Interval) -> Array:
        """Return an upper bound on ``d / s`` where d is the numerators' upper bound."""
        m = d.shape[-1]
        own = self._own(m) if self.power == 2 else 1.0
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            squares = np.maximum(own * d * d - TINY, 0.0)  # below what they are, if they underflow
            alone = np.abs(d) if self.power == 1 else np.sqrt(squares + self.epsilon)
            alone = np.where(np.isfinite(alone), alone, 0.0)
            value = np.where(d > 0, d / np.maximum(sizes.lower, alone), d / sizes.upper)
        value = np.where(d == 0, 0.0, value)
        value = value + _ROUNDING * np.abs(value) + np.where(d == 0, 0.0, TINY)
        return np.fmin(value, (1.0 + _ROUNDING) / math.sqrt(own))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return lines in the numerators: between d over the smallest and d over the largest size."""
        d, sizes, values = self._numerators(boxes[0]), self.sizes(boxes[0]), self.interval(*boxes)
        below = _upper_line(Interval(-d.upper, -d.lower), sizes, -values.lower)
        above = _upper_line(d, sizes, values.upper)
        lines = EntrywiseLines((below[0],), -below[1], (above[0],), above[1], (d,))
        return ChainedForms((), (Centre().relaxation(*boxes), lines)) if self.centred else lines

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Take away what changes the size, and divide by it."""
        (x,) = inputs
        d = Centre().linear(x) if self.centred else x
        size = self._size(d)
        size = np.where(size == 0, 1.0, size)
        z = d / size
        along = _total(form * z)
        direction = np.sign(d) if self.power == 1 else self._share(x.shape[-1]) * z
        back = (form - along * direction) / size
        return (Centre().linear(back) if self.centred else back,)

    def write(self, writer: Writer, *inputs: str) -> str:
        """It is written by the operations that it is a step of."""
        raise NotImplementedError


def _least_spread(low: Array, high: Array) -> Array:
    """Bound the sum of squared deviations from the mean in a box from below.

    Deviations from any m are least where every entry is as near m as the box lets it; what is left is
    convex in m. Its tangent anywhere is a lower bound, and near the minimum a good one.
    """
    left, right = low.min(axis=-1, keepdims=True), high.max(axis=-1, keepdims=True)
    span = add_up(right, -left)
    m = 0.5 * left + 0.5 * right
    for _ in range(_BISECTIONS):
        pull = _total(m - np.clip(m, low, high))
        left, right = np.where(pull < 0, m, left), np.where(pull < 0, right, m)
        m = 0.5 * left + 0.5 * right
    away = m - np.clip(m, low, high)
    trust = gamma(low.shape[-1] + 8)
    slope = np.abs(_total(away))
    slope = slope + 2.0 * trust * _total(np.abs(away))
    value = _total(away * away) * (1.0 - 2.0 * trust)
    return np.maximum(add_down(value, -2.0 * (1.0 + 8.0 * trust) * slope * span), 0.0)


def _upper_line(d: Interval, sizes: Interval, largest: Array) -> tuple[Array, Array]:
    """Return slope and offset of a line in d above d / s: the chord of its larger end, or a constant."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        low, high = (np.where(v > 0, v / sizes.lower, v / sizes.upper) for v in d)
        slope = (high - low) / (d.upper - d.lower)
        offset = np.maximum(low - slope * d.lower, high - slope * d.upper)
        offset = offset + 4.0 * _ROUNDING * (np.abs(low) + np.abs(high) + np.abs(slope) * d.reach) + TINY
        better = 0.5 * (low + high) < largest
    better &= np.isfinite(slope) & np.isfinite(offset)
    return np.where(better, slope, 0.0), np.where(better, offset, largest)


def _total(rows: Array) -> Array:
    """Sum along the last axis, which stays with length one."""
    return np.asarray(rows.sum(axis=-1, keepdims=True))
