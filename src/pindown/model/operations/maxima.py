r"""Maxima and minima: of several tensors, and along axes of one.

With :math:`l_i \le x_i \le u_i`, the index :math:`j` of the largest :math:`u_j` and the largest
:math:`m` of the other :math:`u_i`,

.. math::
    x_i \;\le\; \max_i x_i \;\le\; \max(x_j, m) \;\le\; s x_j + t ,

where the last line is the chord of the convex function :math:`\max(\cdot, m)` on :math:`[l_j, u_j]`.
It is the maximum itself where :math:`x_j` is always the largest, and never above :math:`u_j`. Below, any
:math:`x_i` will do; the one that is largest in the middle of the box encloses the least volume.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.model._expression import Expression, concatenate
from pindown.model._lowering import Lowering
from pindown.model.operations.operation import (
    EntrywiseLines,
    Interval,
    Numbers,
    Operation,
    Pulled,
    Relaxation,
    Shape,
    Writer,
    aligned,
    charged,
    dot,
    unbroadcast,
)
from pindown.rounding import TINY

_ROUNDING = 2.0**-48


class LargestLines(NamedTuple):
    """``x_first <= max_i x_i <= slope * x_second + offset``; ``first`` and ``second`` are indices."""

    first: NDArray[Any]
    second: NDArray[Any]
    slope: Array
    offset: Array


def largest_lines(low: Array, high: Array) -> LargestLines:
    """Bound the maximum over axis 0 of numbers in boxes, (k, ...), by one of them from each side.

    >>> lines = largest_lines(np.array([[0.0], [-1.0]]), np.array([[4.0], [2.0]]))
    >>> lines.first, lines.second, lines.slope
    (array([0]), array([0]), array([0.5]))
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        first = np.argmax(np.where(np.isfinite(low + high), 0.5 * low + 0.5 * high, -np.inf), axis=0)
        second = np.argmax(high, axis=0)
        others = np.where(
            np.arange(len(high)).reshape(-1, *(1,) * (high.ndim - 1)) == second, -np.inf, high
        )
        rival = others.max(axis=0)
        bottom, top = (np.take_along_axis(end, second[None], axis=0)[0] for end in (low, high))
        slope = np.clip((top - rival) / (top - bottom), 0.0, 1.0)
        # A line is above a convex function if it is at both ends, whatever its slope came out as.
        offset = np.maximum(rival - slope * bottom, top * (1.0 - slope))
        offset = offset + _ROUNDING * (np.abs(rival) + np.abs(bottom) + np.abs(top)) + TINY
    largest, level = bottom >= rival, ~np.isfinite(slope + offset) | (top <= rival)
    slope = np.where(largest, 1.0, np.where(level, 0.0, slope))
    offset = np.where(largest, 0.0, np.where(level, top, offset))
    return LargestLines(first, second, slope, offset)


def _outwards(sign: float, box: Interval) -> Interval:
    """Return the box of ``sign * x``."""
    return box if sign > 0 else Interval(-box.upper, -box.lower)


class _Extreme(Operation):
    """The maximum, or with sign -1 the minimum, of several tensors."""

    sign: ClassVar[float]

    def shape(self, *shapes: Shape) -> Shape:
        """Broadcast the shapes."""
        return np.broadcast_shapes(*shapes)

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Compare entry by entry."""
        rank = max(x.ndim for x in inputs) - 1
        return reduce(np.maximum if self.sign > 0 else np.minimum, (aligned(x, rank) for x in inputs))

    def interval(self, *boxes: Interval) -> Interval:
        """Compare the lower ends and the upper ends."""
        return Interval(self(*(box.lower for box in boxes)), self(*(box.upper for box in boxes)))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Take one tensor from each side, entry by entry."""
        stacked = Interval(*(_stacked(ends) for ends in zip(*boxes, strict=True)))
        first, second, slope, offset = largest_lines(*_outwards(self.sign, stacked))
        ones = [np.where(first == i, 1.0, 0.0) for i in range(len(boxes))]
        chords = [np.where(second == i, slope, 0.0) for i in range(len(boxes))]
        none = np.zeros(offset.shape)
        if self.sign > 0:
            return EntrywiseLines(tuple(ones), none, tuple(chords), offset, boxes)
        return EntrywiseLines(tuple(chords), -offset, tuple(ones), none, boxes)

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Hand the form to the first tensor that is largest."""
        first = np.argmax(self.sign * _stacked(inputs), axis=0)
        return tuple(
            unbroadcast(np.where(first == i, form, 0.0), x.shape[1:]) for i, x in enumerate(inputs)
        )

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Join pairs; constants come first: max(0, x) is then one ReLU and no residual connection."""
        signed = [x.scale(np.array(self.sign)) if self.sign < 0 else x for x in inputs]
        signed.sort(key=lambda x: bool(x.terms))
        largest = reduce(lowering.maximum, signed)
        return largest.scale(np.array(self.sign)) if self.sign < 0 else largest


@dataclass(frozen=True, eq=False)
class Maximum(_Extreme):
    """The largest of two or more tensors, entry by entry, broadcast against each other."""

    sign = 1.0

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Max."""
        return writer.node("Max", inputs)


@dataclass(frozen=True, eq=False)
class Minimum(_Extreme):
    """The smallest of two or more tensors, entry by entry, broadcast against each other."""

    sign = -1.0

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Min."""
        return writer.node("Min", inputs)


@dataclass(frozen=True, eq=False)
class _ReducedExtreme(Operation):
    """The maximum, or with sign -1 the minimum, over axes, which stay with length one."""

    axes: tuple[int, ...]
    sign: ClassVar[float]

    def shape(self, *shapes: Shape) -> Shape:
        """Put one for the lengths of the axes."""
        if any(not 0 <= axis < len(shapes[0]) for axis in self.axes):
            raise ValueError(f"axes {self.axes} do not exist in a tensor of shape {shapes[0]}.")
        return tuple(1 if i in self.axes else n for i, n in enumerate(shapes[0]))

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Compare along the axes."""
        axes = tuple(1 + axis for axis in self.axes)
        extreme = np.max if self.sign > 0 else np.min
        return np.asarray(extreme(inputs[0], axis=axes, keepdims=True))

    def interval(self, *boxes: Interval) -> Interval:
        """Compare the lower ends and the upper ends."""
        return Interval(*(self(end) for end in boxes[0]))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Take one entry from each side."""
        (box,) = boxes
        slots = Interval(*(self._slots(end) for end in box))
        return ReducedLines(self, largest_lines(*_outwards(self.sign, slots)), box)

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Hand the form to the first entry that is largest."""
        slots = self._slots(inputs[0])
        first = np.argmax(self.sign * slots, axis=0)
        return (self.spread([(first, form.reshape(first.shape))], inputs[0].shape),)

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Join pairs in a balanced tree."""
        (x,) = inputs
        shape = self.shape(x.shape)
        x = x.scale(np.array(self.sign)) if self.sign < 0 else x
        x = x.rearrange(lambda i: self._slots(i[None]))
        while x.shape[0] > 1:
            half = x.shape[0] // 2
            parts = [x.rearrange(lambda i, h=half, k=k: i[k::2][:h]) for k in (0, 1)]  # type: ignore[misc]
            joined = lowering.maximum(*parts)
            alone = [x.rearrange(lambda i: i[-1:])] if x.shape[0] % 2 else []
            x = concatenate([joined, *alone], axis=0)
        return (x.scale(np.array(self.sign)) if self.sign < 0 else x).reshape(shape)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write ReduceMax or ReduceMin; without axes it would be over all of them."""
        if not self.axes:
            return writer.node("Identity", inputs)
        return writer.node(type(self).__name__, [*inputs, writer.integers(self.axes)], keepdims=1)

    def _slots(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return (k, n, kept entries): what is compared lies along axis 0."""
        kept = [i for i in range(1, x.ndim) if i - 1 not in self.axes]
        moved = x.transpose(*(1 + axis for axis in self.axes), 0, *kept)
        return moved.reshape(-1, len(x), int(np.prod([x.shape[i] for i in kept])))

    def spread(self, parts: list[tuple[NDArray[Any], Array]], shape: Shape) -> Array:
        """Put values (n, kept entries) at indices of slots, into zeros of a shape (n, *input shape)."""
        table = self._slots(np.arange(int(np.prod(shape))).reshape(shape))
        made = np.zeros(int(np.prod(shape)))
        for index, values in parts:
            made[np.take_along_axis(table, index[None], axis=0)[0]] += values
        return made.reshape(shape)


@dataclass(frozen=True, eq=False)
class ReduceMax(_ReducedExtreme):
    """The largest entry over axes, which stay with length one."""

    sign = 1.0

    @property
    def name(self) -> str:
        """What users call it."""
        return "Max"


@dataclass(frozen=True, eq=False)
class ReduceMin(_ReducedExtreme):
    """The smallest entry over axes, which stay with length one."""

    sign = -1.0

    @property
    def name(self) -> str:
        """What users call it."""
        return "Min"


@dataclass(frozen=True, eq=False)
class ReducedLines(Relaxation):
    """A maximum over axes between one of its entries and a line of another."""

    operation: _ReducedExtreme
    lines: LargestLines
    box: Interval

    def upper(self, form: Array) -> Pulled:
        """Hand positive coefficients to the entry above, negative ones below; for minima the reverse."""
        n, q = form.shape[:2]
        first, second, slope, offset = self.lines
        sign = self.operation.sign
        flat = form.reshape(n, q, -1)
        chord, plain = np.maximum(sign * flat, 0.0) * sign, np.minimum(sign * flat, 0.0) * sign
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = chord * slope[:, None]
            parts = [(first, plain), (second, scaled)]
            wide = [(np.repeat(i, q, axis=0), values.reshape(n * q, -1)) for i, values in parts]
            back = self.operation.spread(wide, (n * q, *self.box.lower.shape[1:]))
            back = back.reshape(n, q, *self.box.lower.shape[1:])
            total = dot(chord, sign * offset)
            terms = dot(np.abs(chord), np.abs(offset)) + dot(np.abs(back), self.box.reach)
            # What underflow can take.
            finite = np.where(np.isfinite(self.box.reach), self.box.reach, 0.0)
            terms += 2.0**60 * TINY * finite.reshape(n, -1).sum(axis=1)[:, None]
        return Pulled((back,), charged(total, terms, back[0, 0].size))


def _stacked(tensors: tuple[Numbers, ...]) -> Numbers:
    """Broadcast tensors against each other and stack them, (k, n, *shape)."""
    rank = max(x.ndim for x in tensors) - 1
    return np.stack(np.broadcast_arrays(*(aligned(x, rank) for x in tensors)))
