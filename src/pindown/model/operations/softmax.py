r"""Softmax and log-softmax along an axis.

With :math:`L_i = \log \sum_{j \ne i} e^{x_j}` softmax is the sigmoid of :math:`x_i - L_i`, and
log-softmax its logarithm. Both rise in :math:`x_i` and fall in all others: bounds on a box are values at
corners.

Linear bounds rest on two of the log-sum-exp :math:`\Lambda`, which is convex. For weights p >= 0 that
sum to one, and for any s > 0 with S(x) the sum of the chords of the exponentials on the box,

.. math::
    p \cdot x - \sum_j p_j \log p_j \;\le\; \Lambda(x) \;\le\; \log s + S(x) / s - 1 .

Assumed of NumPy's exp, log, log1p and logaddexp: a relative error of at most 2**-45 (NumPy says 2**-51).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.model.operations.operation import (
    Interval,
    Numbers,
    Operation,
    Pulled,
    Relaxation,
    Shape,
    Writer,
    charged,
    dot,
)
from pindown.model.operations.smooth import Sigmoid
from pindown.rounding import TINY, add_down, add_up, gamma

MARGIN = 2.0**-45  # what exp, log and the like are trusted to


class _AlongAxis(Operation):
    """What both have in common."""

    axis: int

    def shape(self, *shapes: Shape) -> Shape:
        """Keep the shape."""
        (shape,) = shapes
        if not -len(shape) <= self.axis < len(shape):
            raise ValueError(f"axis {self.axis} does not exist in a tensor of shape {shape}.")
        return shape

    @property
    def _place(self) -> int:
        """The axis in an array (n, *shape)."""
        return self.axis + 1 if self.axis >= 0 else self.axis

    def _holds_all(self, shape: Shape) -> bool:
        return bool(shape) and shape[self.axis] == math.prod(shape)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Softmax or LogSoftmax."""
        return writer.node(self.name, inputs, axis=self.axis)


@dataclass(frozen=True, eq=False)
class Softmax(_AlongAxis):
    r""":math:`e^{x_i} / \sum_j e^{x_j}` along an axis of the literal shape.

    >>> Softmax(1)(np.array([[[0.0, 0.0]]]))
    array([[[0.5, 0.5]]])
    """

    axis: int = -1

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Return the shares; the largest exponent is taken out first."""
        (x,) = inputs
        powers = np.exp(x - x.max(axis=self._place, keepdims=True))
        return np.asarray(powers / powers.sum(axis=self._place, keepdims=True))

    def interval(self, *boxes: Interval) -> Interval:
        """Evaluate at the two corners that are worst for each entry."""
        odds = _log_odds(boxes[0], self._place)
        with np.errstate(over="ignore"):
            low, high = (1.0 / (1.0 + np.exp(-end)) for end in odds)
        low = np.maximum(low * (1.0 - 4.0 * MARGIN) - TINY, 0.0)
        return Interval(low, np.minimum(high * (1.0 + 4.0 * MARGIN) + TINY, 1.0))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return lines of the sigmoid, of x less linear bounds on the log-sum-exp of the others."""
        (box,) = boxes
        if not (np.isfinite(box.lower).all() and np.isfinite(box.upper).all()):
            return super().relaxation(*boxes)
        return _softmax_forms(box, self._place, self.interval(box))

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Return ``y (form - form . y)``."""
        y = self(*inputs)
        return (y * (form - (form * y).sum(axis=self._place, keepdims=True)),)

    def as_output_activation(self, shape: Shape) -> str | None:
        """It is the softmax of the output if its axis holds all of it."""
        return "softmax" if self._holds_all(shape) else None


@dataclass(frozen=True, eq=False)
class LogSoftmax(_AlongAxis):
    r""":math:`x_i - \log \sum_j e^{x_j}` along an axis of the literal shape.

    >>> LogSoftmax(1)(np.array([[[0.0, 0.0]]])).round(4)
    array([[[-0.6931, -0.6931]]])
    """

    axis: int = -1

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Return the logarithms; the largest exponent is taken out first."""
        (x,) = inputs
        x = x - x.max(axis=self._place, keepdims=True)
        powers = np.exp(x)
        # The largest power is one: log1p of the others keeps digits that are far below one.
        np.put_along_axis(powers, x.argmax(axis=self._place, keepdims=True), 0.0, axis=self._place)
        return np.asarray(x - np.log1p(powers.sum(axis=self._place, keepdims=True)))

    def interval(self, *boxes: Interval) -> Interval:
        """Evaluate at the two corners that are worst for each entry."""
        low, high = (-np.logaddexp(0.0, -end) for end in _log_odds(boxes[0], self._place))
        low, high = low * (1.0 + 4.0 * MARGIN) - TINY, high * (1.0 - 4.0 * MARGIN) + TINY
        return Interval(low, np.minimum(high, 0.0))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return x minus linear bounds on the log-sum-exp."""
        (box,) = boxes
        if not (np.isfinite(box.lower).all() and np.isfinite(box.upper).all()):
            return super().relaxation(*boxes)
        total = lambda v: v.sum(axis=self._place, keepdims=True)  # noqa: E731
        return LogSoftmaxForms(
            box, self._place, _Below.of(box, self._place, total), _Above.of(box, self._place, total)
        )

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Take away the softmax times the form's sum."""
        return (form - Softmax(self.axis)(*inputs) * form.sum(axis=self._place, keepdims=True),)

    def as_output_activation(self, shape: Shape) -> str | None:
        """It is the log-softmax of the output if its axis holds all of it."""
        return "log_softmax" if self._holds_all(shape) else None


# Along the axis: of all entries (length one), or of all but one (full length).
Sum = Callable[[Array], Array]


class _Below(NamedTuple):
    """``sum(slopes * x) / divisor + offset <= log(sum(exp(x)))``, the tangent at the box's centre.

    Attributes:
        slopes: Powers at the centre; the divisor is their sum.
        divisor: See above.
        offset: The weights' entropy, less what rounding can do.
        centre: The log-sum-exp at the centre.
        size: What rounding of the linear part is relative to.
    """

    slopes: Array
    divisor: Array
    offset: Array
    centre: Array
    size: Array

    @classmethod
    def of(cls, box: Interval, axis: int, total: Sum) -> _Below:
        centre = np.clip(0.5 * box.lower + 0.5 * box.upper, *box)
        top = centre.max(axis=axis, keepdims=True)
        powers = np.exp(centre - top)
        divisor = total(powers)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = np.log(divisor) + total(powers * (top - centre)) / divisor
            reach = total(powers * (box.reach + (top - centre))) / divisor
            size = reach + np.abs(np.log(divisor)) + 1.0
            at_centre = top + np.log(divisor)
        # The weights sum to one up to rounding.
        return cls(powers, divisor, entropy - _trust(box, axis) * size, at_centre, size)


class _Above(NamedTuple):
    """``log(sum(exp(x))) <= sum(slopes * x) / divisor + offset``, from chords of the exponentials.

    Attributes:
        slopes: Slopes of the chords, of x less the largest upper end.
        divisor: The chords' sum at the box's centre.
        offset: With what rounding can do.
        centre: The bound at the centre.
        size: What rounding of the linear part is relative to.
    """

    slopes: Array
    divisor: Array
    offset: Array
    centre: Array
    size: Array

    @classmethod
    def of(cls, box: Interval, axis: int, total: Sum) -> _Above:
        low, high = box
        top = high.max(axis=axis, keepdims=True)
        left, right = add_down(low, -top), add_up(high, -top)
        ends = np.exp(left), np.exp(right)
        with np.errstate(invalid="ignore", divide="ignore"):
            slopes = (ends[1] - ends[0]) / (right - left)
        slopes = np.clip(np.where(right > left, slopes, ends[0]), *ends)
        heights = np.maximum(ends[0] - slopes * left, ends[1] - slopes * right)
        middle = np.clip(0.5 * left + 0.5 * right, left, right)
        divisor = total(slopes * middle + heights)
        reach = np.maximum(np.abs(left), np.abs(right))
        with np.errstate(invalid="ignore", divide="ignore"):
            centre = top + np.log(divisor)
            offset = centre - 1.0 + total(heights) / divisor - top * (total(slopes) / divisor)
            size = total(ends[1] + slopes * (reach + box.reach + np.abs(top))) / divisor
            size = size + np.abs(top) + np.abs(np.log(divisor)) + 1.0
        return cls(slopes, divisor, offset + _trust(box, axis) * size, centre, size)


def _trust(box: Interval, axis: int) -> float:
    return 8.0 * (MARGIN + gamma(box.lower.shape[axis] + 16))


@dataclass(frozen=True, eq=False)
class LogSoftmaxForms(Relaxation):
    """A form of log-softmax is that form of x minus the sum of its coefficients times the log-sum-exp.

    So it is exact where the coefficients sum to zero, as those of a margin do.
    """

    box: Interval
    axis: int
    below: _Below
    above: _Above

    def upper(self, form: Array) -> Pulled:
        """Bound the log-sum-exp from below where the sum is positive, from above where negative."""
        n, q = form.shape[:2]
        total = form.sum(axis=_behind(self.axis), keepdims=True)
        forms, offset = form, np.zeros((n, q))
        for part, line in ((np.maximum(total, 0.0), self.below), (np.minimum(total, 0.0), self.above)):
            forms = forms - part / line.divisor[:, None] * line.slopes[:, None]
            offset = offset - (part * line.offset[:, None]).reshape(n, q, -1).sum(axis=2)
        count = form.shape[_behind(self.axis)]
        largest = self.box.reach.max(axis=self.axis, keepdims=True) + math.log(count)
        sizes = self.box.reach + largest + self.below.size + self.above.size
        sizes = sizes + np.abs(self.below.offset) + np.abs(self.above.offset)
        terms = 4.0 * dot(np.abs(form), np.broadcast_to(sizes, (n, *form.shape[2:])))
        return Pulled((forms,), charged(offset, terms, form[0, 0].size + count))


@dataclass(frozen=True, eq=False)
class SoftmaxForms(Relaxation):
    """Entry by entry ``slope * (x_i - sum_j!=i powers_j x_j / divisor_i) + offset``, above and below.

    Attributes:
        axis: Along which softmax is taken.
        rise: Slopes above and below.
        share: Slopes over divisors.
        powers: What is the same for all entries.
        offset: Offsets above and below.
        size: What rounding is relative to.
    """

    axis: int
    rise: tuple[Array, Array]
    share: tuple[Array, Array]
    powers: tuple[Array, Array]
    offset: tuple[Array, Array]
    size: tuple[Array, Array]

    def upper(self, form: Array) -> Pulled:
        """Take the one above where the coefficient is positive, the one below where it is negative."""
        n, q = form.shape[:2]
        forms, offset, terms = np.zeros(form.shape), np.zeros((n, q)), np.zeros((n, q))
        for i, part in enumerate((np.maximum(form, 0.0), np.minimum(form, 0.0))):
            others = sum_of_others(part * self.share[i][:, None], _behind(self.axis))
            forms = forms + part * self.rise[i][:, None] - self.powers[i][:, None] * others
            offset = offset + dot(part, self.offset[i])
            terms = terms + dot(np.abs(part), self.size[i])
        return Pulled((forms,), charged(offset, 4.0 * terms, 2 * form[0, 0].size))


def _softmax_forms(box: Interval, axis: int, values: Interval) -> SoftmaxForms:
    """Return linear bounds; constants where they are better at the centre, or all that is known."""
    with np.errstate(all="ignore"):
        lines = Sigmoid().lines(_log_odds(box, axis))
    total = lambda v: sum_of_others(v, axis)  # noqa: E731
    # The sigmoid rises: it is largest where the others are smallest.
    routes = (
        (lines.upper, lines.above, _Below.of(box, axis, total), values.upper, 1.0),
        (lines.lower, lines.below, _Above.of(box, axis, total), values.lower, -1.0),
    )
    centre = np.clip(0.5 * box.lower + 0.5 * box.upper, *box)
    lost = TINY * 2.0**60 * box.reach.sum(axis=axis, keepdims=True)  # what underflow can take
    rises, shares, offsets, sizes = [], [], [], []
    for rise, start, others, constant, sign in routes:
        with np.errstate(all="ignore"):
            share, offset = rise / others.divisor, start - rise * others.offset
            at_centre = start + rise * (centre - others.centre)
            used = (rise > 0) & (others.divisor > 2.0**-900) & (sign * at_centre < sign * constant)
            used &= np.isfinite(share) & np.isfinite(offset) & np.isfinite(others.size)
            size = np.abs(start) + rise * (box.reach + others.size + np.abs(others.offset)) + lost
        rises.append(np.where(used, rise, 0.0))
        shares.append(np.where(used, share, 0.0))
        offsets.append(np.where(used, offset, constant))
        sizes.append(np.where(used, size, np.abs(constant)))
    powers = tuple(route[2].slopes for route in routes)
    return SoftmaxForms(axis, tuple(rises), tuple(shares), powers, tuple(offsets), tuple(sizes))  # type: ignore[arg-type]


def _behind(axis: int) -> int:
    """Return the place of an axis of (n, *shape) in (n, q, *shape)."""
    return axis + 1 if axis > 0 else axis


def _log_odds(box: Interval, axis: int) -> Interval:
    r"""Return bounds on :math:`x_i - L_i`, where L is the log-sum-exp of all others along the axis."""
    low, high = box
    # Taken off: it does not change softmax, and keeps numbers small.
    top = high.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    low, high = add_down(low, -top), add_up(high, -top)
    n = low.shape[axis]
    ends = []
    for others, own, sign in ((high, low, -1.0), (low, high, 1.0)):
        with np.errstate(invalid="ignore"):
            logs = log_sum_of_others(others, axis)
            # Each of the n additions is off by its result's margin or less; errors shrink on the way.
            error = (n + 4) * 4.0 * MARGIN * (np.abs(logs) + 1.0)
            odds = add_up(sign * own, -sign * logs)
            ends.append(sign * add_up(odds, np.where(np.isfinite(error), error, 0.0)))
    low, high = ends
    # The difference of two infinite numbers may be anything.
    return Interval(np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))


def sum_of_others(x: Array, axis: int = -1) -> Array:
    """Return for every entry the sum of all the others along an axis, without cancellation.

    >>> sum_of_others(np.array([1e20, 1.0, 2.0]))
    array([3.e+00, 1.e+20, 1.e+20])
    """
    return _of_others(x, axis, np.add, 0.0)


def log_sum_of_others(x: Array, axis: int = -1) -> Array:
    """Return for every entry the log-sum-exp of all the others, minus infinity if there are none."""
    return _of_others(x, axis, np.logaddexp, -np.inf)


def _of_others(x: Array, axis: int, add: np.ufunc, nothing: float) -> Array:
    x = np.moveaxis(x, axis, -1)
    before, after = np.full(x.shape, nothing), np.full(x.shape, nothing)
    add.accumulate(x[..., :-1], axis=-1, out=before[..., 1:])
    after[..., :-1] = add.accumulate(x[..., :0:-1], axis=-1)[..., ::-1]
    return np.moveaxis(np.asarray(add(before, after)), -1, axis)
