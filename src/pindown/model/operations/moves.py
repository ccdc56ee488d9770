"""Operations that only move, repeat or drop entries: reshape, transpose, slice, gather, pad, join."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.model._expression import Expression, concatenate, constant
from pindown.model._lowering import Lowering
from pindown.model.operations.operation import (
    Interval,
    Numbers,
    Operation,
    Pulled,
    Relaxation,
    Shape,
    Writer,
    applied,
    charged,
    frozen,
)

_PAD_MODES = ("edge", "reflect", "wrap")


class Move(Operation):
    """An operation of one tensor whose every entry is an entry of its input."""

    @abstractmethod
    def move(self, values: NDArray[Any], lead: int) -> NDArray[Any]:
        """Move the entries of an array of any type, whose first ``lead`` axes are not the tensor's."""

    def shape(self, *shapes: Shape) -> Shape:
        """Move an array without memory, and look at its shape."""
        return self.move(np.broadcast_to(np.int8(0), shapes[0]), 0).shape

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Move the entries of every input."""
        return self.move(inputs[0], 1)

    def interval(self, *boxes: Interval) -> Interval:
        """Move both ends."""
        return Interval(*(self.move(end, 1) for end in boxes[0]))

    def narrowed(self, value: Interval, *boxes: Interval) -> tuple[Interval, ...]:
        """Give every entry what its copies are known to be."""
        shape = boxes[0].lower.shape
        table = self.move(np.arange(math.prod(shape[1:])).reshape(shape[1:]), 0).ravel()
        low, high = (end.reshape(len(end), -1).copy() for end in boxes[0])
        at: Any = (slice(None), table)
        np.fmax.at(low, at, value.lower.reshape(len(low), -1))
        np.fmin.at(high, at, value.upper.reshape(len(low), -1))
        return (Interval(low.reshape(shape), high.reshape(shape)),)

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return the operation itself."""
        return MovedForms(self, boxes[0])

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Give every entry the sum of the coefficients of its copies."""
        shape = inputs[0].shape[1:]
        size = math.prod(shape)
        table = self.move(np.arange(size).reshape(shape), 0).ravel()
        flat = form.reshape(len(form), -1)
        if len(np.unique(table)) == len(table):  # no entry twice
            back = np.zeros((len(form), size), dtype=form.dtype)
            back[:, table] = flat
        else:
            back = np.stack([np.bincount(table, weights=row, minlength=size) for row in flat])
        return (back.reshape(len(form), *shape),)

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Move the entries of the expression."""
        return inputs[0].rearrange(lambda i: self.move(i, 0))


@dataclass(frozen=True, eq=False)
class MovedForms(Relaxation):
    """A move as its own relaxation: only sums of coefficients round."""

    operation: Operation
    box: Interval

    def upper(self, form: Array) -> Pulled:
        """Move the coefficients back."""
        n, q = form.shape[:2]
        box = self.box.lower
        flat = form.reshape(n * q, *form.shape[2:])
        like = np.broadcast_to(box[:1], (n * q, *box.shape[1:]))
        (back,) = self.operation.pull_back(flat, like)
        copies = form[0, 0].size
        if copies <= box[0].size and isinstance(self.operation, (Reshape, Transpose, Slice)):
            return Pulled((back.reshape(n, q, *box.shape[1:]),), np.zeros((n, q)))
        (sizes,) = self.operation.pull_back(np.abs(flat), like)
        with np.errstate(over="ignore", invalid="ignore"):
            reach = self.box.reach.reshape(len(box), 1, -1)
            sizes = sizes.reshape(n, q, -1)
            terms = np.where(sizes == 0, 0.0, sizes * reach).sum(axis=2)
        offset = charged(np.zeros((n, q)), terms, copies)
        return Pulled((back.reshape(n, q, *box.shape[1:]),), offset)

    def estimate(self, form: Array) -> Pulled:
        """Move the coefficients back."""
        n, q = form.shape[:2]
        shape = self.box.lower.shape[1:]
        like = np.broadcast_to(np.float64(0), (n * q, *shape))
        (back,) = self.operation.pull_back(form.reshape(n * q, *form.shape[2:]), like)
        return Pulled((back.reshape(n, q, *shape),), np.zeros((n, q)))

    def forward(self, form: Array, *points: Array) -> Array | None:
        """Move the points."""
        return applied(self.operation, *points)


@dataclass(frozen=True, eq=False)
class Reshape(Move):
    """The same entries in the same order, in another literal shape."""

    to: Shape

    def move(self, values: NDArray[Any], lead: int) -> NDArray[Any]:
        """Reshape."""
        return values.reshape((*values.shape[:lead], *self.to))

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Reshape back."""
        return (form.reshape(len(form), *inputs[0].shape[1:]),)

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Reshape the expression."""
        return inputs[0].reshape(self.to)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Reshape."""
        return writer.node("Reshape", [*inputs, writer.shape(self.to)])


@dataclass(frozen=True, eq=False)
class Transpose(Move):
    """The axes in another order."""

    order: tuple[int, ...]

    def move(self, values: NDArray[Any], lead: int) -> NDArray[Any]:
        """Transpose."""
        return values.transpose(*range(lead), *(lead + axis for axis in self.order))

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Transpose back."""
        return (form.transpose(0, *(1 + int(axis) for axis in np.argsort(self.order))),)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Transpose."""
        return writer.node("Transpose", inputs, perm=self.order)


@dataclass(frozen=True, eq=False)
class Slice(Move):
    """Every ``step``-th entry from ``start`` to ``stop`` along each axis, as Python slices mean it."""

    spans: tuple[slice, ...]

    def move(self, values: NDArray[Any], lead: int) -> NDArray[Any]:
        """Slice."""
        return values[(*(slice(None),) * lead, *self.spans)]

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Put the coefficients where they came from."""
        back = np.zeros((len(form), *inputs[0].shape[1:]), dtype=form.dtype)
        back[(slice(None), *self.spans)] = form
        return (back,)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Slice, with the axes that are cut."""
        axes = [axis for axis, span in enumerate(self.spans) if span != slice(None)]
        spans = [self.spans[axis] for axis in axes]
        steps = [1 if span.step is None else span.step for span in spans]
        last = np.iinfo(np.int64).max
        ends = [(0, last) if step > 0 else (last, -last) for step in steps]
        starts = [end[0] if s.start is None else s.start for s, end in zip(spans, ends, strict=True)]
        stops = [end[1] if s.stop is None else s.stop for s, end in zip(spans, ends, strict=True)]
        return writer.node("Slice", [*inputs, *map(writer.integers, (starts, stops, axes, steps))])


@dataclass(frozen=True, eq=False)
class Gather(Move):
    """Entries at constant positions along an axis."""

    positions: NDArray[np.int64]
    axis: int

    def move(self, values: NDArray[Any], lead: int) -> NDArray[Any]:
        """Take the entries."""
        return np.take(values, self.positions, axis=lead + self.axis)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Gather."""
        return writer.node("Gather", [*inputs, writer.integers(self.positions)], axis=self.axis)


@dataclass(frozen=True, eq=False)
class Expand(Move):
    """Entries repeated along new axes and axes of length one, to a literal shape."""

    to: Shape

    def move(self, values: NDArray[Any], lead: int) -> NDArray[Any]:
        """Broadcast."""
        missing = len(self.to) - (values.ndim - lead)
        wide = values.reshape((*values.shape[:lead], *(1,) * missing, *values.shape[lead:]))
        return np.broadcast_to(wide, (*values.shape[:lead], *self.to))

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Expand."""
        return writer.node("Expand", [*inputs, writer.integers(self.to)])


@dataclass(frozen=True, eq=False)
class Tile(Move):
    """The whole tensor repeated along each axis."""

    repeats: tuple[int, ...]

    def move(self, values: NDArray[Any], lead: int) -> NDArray[Any]:
        """Tile."""
        return np.tile(values, (*(1,) * lead, *self.repeats))

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Tile."""
        return writer.node("Tile", [*inputs, writer.integers(self.repeats)])


@dataclass(frozen=True, eq=False)
class Pad(Move):
    """Entries of the tensor itself around it: ``edge``, ``reflect`` or ``wrap``."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    mode: str = "edge"

    def move(self, values: NDArray[Any], lead: int) -> NDArray[Any]:
        """Pad."""
        cut, widths = pad_parts(values.shape, self.before, self.after, lead)
        return np.pad(values[cut], widths, mode=self.mode)  # type: ignore[call-overload]

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Pad."""
        return writer.node(
            "Pad", [*inputs, writer.integers((*self.before, *self.after))], mode=self.mode
        )


@dataclass(frozen=True, eq=False)
class Fill(Operation):
    """A constant around the tensor; negative lengths cut."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    value: float = 0.0

    def shape(self, *shapes: Shape) -> Shape:
        """Return the lengths with what is added."""
        return tuple(n + a + b for n, a, b in zip(shapes[0], self.before, self.after, strict=True))

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Pad with the constant."""
        cut, widths = pad_parts(inputs[0].shape, self.before, self.after, 1)
        value: Any = Fraction(self.value) if inputs[0].dtype == object else self.value
        return np.pad(inputs[0][cut], widths, constant_values=value)

    def interval(self, *boxes: Interval) -> Interval:
        """Pad both ends."""
        return Interval(*(self(end) for end in boxes[0]))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return the operation itself."""
        return JoinedForms(self, boxes)

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Cut off what was added."""
        shape = inputs[0].shape[1:]
        back = np.zeros((len(form), *shape))
        cut, widths = pad_parts((0, *shape), self.before, self.after, 1)
        kept = tuple(
            slice(low, n - high) for (low, high), n in zip(widths[1:], form.shape[1:], strict=True)
        )
        back[cut] = form[(slice(None), *kept)]
        return (back,)

    def constant_part(self, shape: Shape) -> Array:
        """Return the value where the input of this shape is zero, (1, *output shape)."""
        return self(np.zeros((1, *shape)))

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Take the entries, and the constant where there is none."""
        x = inputs[0]
        size = math.prod(x.shape)
        cut, widths = pad_parts(x.shape, self.before, self.after, 0)
        index = np.pad(np.arange(size).reshape(x.shape)[cut], widths, constant_values=size)
        return concatenate([x.reshape((size,)), constant(np.array([self.value]))], axis=0).take(index)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Pad."""
        pads, value = writer.integers((*self.before, *self.after)), np.array(self.value)
        kind = writer.kind_of(inputs[0])
        own = writer.weight(value, "value") if kind == writer.dtype else writer.integers(value, kind)
        return writer.node("Pad", [*inputs, pads, own])


@dataclass(frozen=True, eq=False)
class Concat(Operation):
    """Several tensors one after the other along an axis."""

    axis: int

    def shape(self, *shapes: Shape) -> Shape:
        """Add the lengths along the axis."""
        rest = {(len(shape), *shape[: self.axis], *shape[self.axis + 1 :]) for shape in shapes}
        if len(rest) != 1 or not 0 <= self.axis < len(shapes[0]):
            raise ValueError(
                f"tensors of shapes {list(shapes)} cannot be joined along axis {self.axis}."
            )
        total = sum(shape[self.axis] for shape in shapes)
        return (*shapes[0][: self.axis], total, *shapes[0][self.axis + 1 :])

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Join."""
        return np.concatenate(inputs, axis=1 + self.axis)

    def interval(self, *boxes: Interval) -> Interval:
        """Join the ends."""
        return Interval(self(*(box.lower for box in boxes)), self(*(box.upper for box in boxes)))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return the operation itself."""
        return JoinedForms(self, boxes)

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Cut the form into the inputs' parts."""
        ends = np.cumsum([x.shape[1 + self.axis] for x in inputs])
        return tuple(np.split(form, ends[:-1], axis=1 + self.axis))

    def constant_part(self, shape: Shape) -> None:
        """There is none."""

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Join the expressions."""
        return concatenate(inputs, self.axis)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Concat."""
        return writer.node("Concat", inputs, axis=self.axis)


@dataclass(frozen=True, eq=False)
class JoinedForms(Relaxation):
    """A pad or a concatenation as its own relaxation: nothing rounds but the constant part."""

    operation: Fill | Concat
    boxes: tuple[Interval, ...]

    def upper(self, form: Array) -> Pulled:
        """Cut the form into the inputs' parts."""
        n, q = form.shape[:2]
        flat = form.reshape(n * q, *form.shape[2:])
        shapes = [box.lower.shape[1:] for box in self.boxes]
        inputs = [np.broadcast_to(np.float64(0), (n * q, *shape)) for shape in shapes]
        parts = self.operation.pull_back(flat, *inputs)
        forms = tuple(part.reshape(n, q, *shape) for part, shape in zip(parts, shapes, strict=True))
        constants = self.operation.constant_part(shapes[0])
        if constants is None:
            return Pulled(forms, np.zeros((n, q)))
        products = flat.reshape(n * q, -1) * constants.reshape(1, -1)
        offset, terms = (p.sum(axis=1).reshape(n, q) for p in (products, np.abs(products)))
        return Pulled(forms, charged(offset, terms, products.shape[1]))

    def forward(self, form: Array, *points: Array) -> Array | None:
        """Join the points."""
        return applied(self.operation, *points)


@dataclass(frozen=True, eq=False)
class Constant(Operation):
    """A tensor that does not depend on the input, which it takes only to know how many rows there are.

    Attributes:
        values: The tensor.
        trained: How many of its numbers a framework counts as parameters.
    """

    values: Array
    trained: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(self.values))

    @property
    def n_parameters(self) -> int:
        """What the reader counted."""
        return self.trained

    def shape(self, *shapes: Shape) -> Shape:
        """Return the constant's own shape."""
        return self.values.shape

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Return the constant, once for every input."""
        return np.broadcast_to(self.values, (len(inputs[0]), *self.values.shape))

    def interval(self, *boxes: Interval) -> Interval:
        """Return the constant twice."""
        values = self(boxes[0].lower)
        return Interval(values, values)

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Return zero."""
        return (np.zeros(inputs[0].shape),)

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Return the constant."""
        return constant(self.values)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write an initialiser."""
        return writer.weight(self.values, "constant")


def pad_parts(
    shape: Shape, before: Sequence[int], after: Sequence[int], lead: int
) -> tuple[tuple[slice, ...], list[tuple[int, int]]]:
    """Return what of an array is kept where lengths are negative, and what is added elsewhere."""
    cut = tuple(
        slice(max(0, -low), n - max(0, -high))
        for n, low, high in zip(shape[lead:], before, after, strict=True)
    )
    widths = [(max(0, low), max(0, high)) for low, high in zip(before, after, strict=True)]
    return (*(slice(None),) * lead, *cut), [(0, 0)] * lead + widths
