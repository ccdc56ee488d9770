"""Affine operations on whole tensors: dense layers, scalings, shifts, sums, batch norm."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from pindown.affine import Array
from pindown.model._expression import Expression, per_channel
from pindown.model._lowering import Lowering
from pindown.model.operations.affine_operation import AffineOperation, Nothing
from pindown.model.operations.narrowing import LinearRows
from pindown.model.operations.operation import (
    EntrywiseLines,
    Interval,
    Numbers,
    Operation,
    Relaxation,
    Shape,
    Writer,
    aligned,
    frozen,
    matched,
    unbroadcast,
)
from pindown.rounding import add_down, add_up


@dataclass(frozen=True, eq=False)
class Dense(AffineOperation):
    """``y = W x + b`` along the last axis, or along the one before with ``axis=-2``.

    Attributes:
        weight: W, of shape (out, in).
        bias: b, of shape (out,), or None.
        axis: The axis that W acts on: -1 for ``x @ W.T``, -2 for ``W @ x``.
        trained: How many of its numbers a framework counts as parameters; None for all.
    """

    weight: Array
    bias: Array | None = None
    axis: int = -1
    trained: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", frozen(self.weight))
        if self.bias is not None:
            object.__setattr__(self, "bias", frozen(self.bias))

    def shape(self, *shapes: Shape) -> Shape:
        """Replace the length of the axis."""
        (shape,) = shapes
        if len(shape) < -self.axis or shape[self.axis] != self.weight.shape[1]:
            raise ValueError(f"a weight {self.weight.shape} does not fit a tensor of shape {shape}.")
        out = list(shape)
        out[self.axis] = len(self.weight)
        return tuple(out)

    @property
    def offset(self) -> Array | None:
        """The bias, along the axis."""
        if self.bias is None or self.axis == -1:
            return self.bias
        return self.bias[:, None]

    def linear(self, x: Numbers) -> Numbers:
        """Return ``W x``; a tensor of any rank goes through one matrix product."""
        W = matched(self.weight, x)
        if self.axis == -2 and x.shape[-1] > 1:
            return np.matmul(W, x)
        # Columns of one number are rows: one matrix product for all instead of one for each.
        rows = x.reshape(-1, W.shape[1])
        product = np.matmul(rows, W.T)
        if self.axis == -2:
            return product.reshape(*x.shape[:-2], len(self.weight), 1)
        return product.reshape(*x.shape[:-1], len(self.weight))

    def transposed(self, form: Array, shape: Shape) -> Array:
        """Return ``form W``."""
        if self.axis == -2 and shape[-1] > 1:
            return np.matmul(self.weight.T, form)
        return np.matmul(form.reshape(-1, len(self.weight)), self.weight).reshape(len(form), *shape)

    def signed(self) -> tuple[Dense, Dense]:
        """Split the weight."""
        W = self.weight
        return tuple(replace(self, weight=np.maximum(part, 0.0), bias=None) for part in (W, -W))  # type: ignore[return-value]

    @cached_property
    def linear_rows(self) -> LinearRows | None:
        """The weight by columns."""
        return LinearRows.of(self.weight) if self.axis == -1 else None

    def n_terms(self, shape: Shape) -> int:
        """One product for each input of a row."""
        return int(self.weight.shape[1])

    @property
    def n_parameters(self) -> int:
        """Weights and biases, or what the reader counted."""
        if self.trained is not None:
            return self.trained
        return self.weight.size + (0 if self.bias is None else self.bias.size)

    def multiply_adds(self, *shapes: Shape) -> int:
        """One for each weight and each vector it acts on."""
        return self.weight.size * (math.prod(shapes[0]) // self.weight.shape[1])

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Multiply the expression by the weight."""
        x = inputs[0]
        product = x.times_matrix(self.weight.T) if self.axis == -1 else x.matrix_times(self.weight)
        return product if self.offset is None else product.shift(self.offset)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Gemm for a matrix, MatMul and Add for other tensors."""
        (x,) = inputs
        if self.axis == -1 and len(writer.shape_of(x)) == 2:
            weights = [writer.weight(self.weight)]
            weights += [] if self.bias is None else [writer.weight(self.bias, "bias")]
            return writer.node("Gemm", [x, *weights], transB=1)
        if self.axis == -1:
            product = writer.node("MatMul", [x, writer.weight(self.weight.T)])
        else:
            product = writer.node("MatMul", [writer.weight(self.weight), x])
        return (
            product
            if self.offset is None
            else writer.node("Add", [product, writer.weight(self.offset, "bias")])
        )


@dataclass(frozen=True, eq=False)
class Scale(AffineOperation):
    """``y = factor * x + shift``, entry by entry, both broadcast against the tensor.

    Attributes:
        factor: Factors of a shape that broadcasts with the tensor's, or None for one.
        shift: Likewise, or None for zero.
        kind: What the author wrote, for messages and for counting: ``"Mul"``, ``"Add"``, ...
        trained: How many of its numbers a framework counts as parameters.
    """

    factor: Array | None = None
    shift: Array | None = None
    kind: str = "Scale"
    trained: int = 0

    def __post_init__(self) -> None:
        for name in ("factor", "shift"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def name(self) -> str:
        """What the author wrote."""
        return self.kind

    @property
    def n_parameters(self) -> int:
        """What the reader counted."""
        return self.trained

    @property
    def offset(self) -> Array | None:
        """The shift."""
        return self.shift

    def shape(self, *shapes: Shape) -> Shape:
        """Broadcast."""
        own = [np.shape(v) for v in (self.factor, self.shift) if v is not None]
        return np.broadcast_shapes(shapes[0], *own)

    @property
    def _rank(self) -> int:
        return max(v.ndim for v in (self.factor, self.shift, np.zeros(())) if v is not None)

    def linear(self, x: Numbers) -> Numbers:
        """Multiply by the factor."""
        wide = aligned(x, self._rank)
        if self.factor is not None:
            wide = wide * matched(self.factor, x)
        shape = self.shape(x.shape[1:])
        return (
            wide.copy()
            if wide.shape[1:] == shape and self.factor is None
            else np.array(np.broadcast_to(wide, (len(x), *shape)))
        )

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Return ``factor * x + shift``."""
        (x,) = inputs
        y = aligned(x, self._rank)
        if self.factor is not None:
            y = y * matched(self.factor, x)
            if (
                self.shift is not None
                and y.dtype == np.float64
                and self.shape(x.shape[1:]) == y.shape[1:]
            ):
                y += self.shift  # no second array
                return y
        if self.shift is not None:
            y = y + matched(self.shift, x)
        return y

    def transposed(self, form: Array, shape: Shape) -> Array:
        """Multiply by the factor, and sum over copies."""
        return unbroadcast(form if self.factor is None else form * self.factor, shape)

    def signed(self) -> tuple[Scale, Scale]:
        """Split the factor."""
        own = np.ones(()) if self.factor is None else self.factor
        # The shift's shape stays, for it may widen the tensor.
        zero = None if self.shift is None else np.zeros(self.shift.shape)
        return Scale(np.maximum(own, 0.0), zero), Scale(np.maximum(-own, 0.0), zero)

    def n_terms(self, shape: Shape) -> int:
        """One product."""
        return 1

    def interval(self, *boxes: Interval) -> Interval:
        """Bound a pure shift by one rounding."""
        if self.factor is not None:
            return super().interval(*boxes)
        if self.shift is None:
            return boxes[0]
        low, high = (aligned(end, self._rank) for end in boxes[0])
        return Interval(add_down(low, self.shift), add_up(high, self.shift))

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Scale and shift the expression."""
        x = inputs[0] if self.factor is None else inputs[0].scale(self.factor)
        return x if self.shift is None else x.shift(self.shift)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Mul and Add, or Div where the author wrote that: its numbers are the file's own."""
        (x,) = inputs
        if self.kind == "Div" and self.factor is not None and self.factor.all():
            x = writer.node("Div", [x, writer.weight(1.0 / self.factor, "divisor")])
        elif self.factor is not None:
            x = writer.node("Mul", [x, writer.weight(self.factor, "factor")])
        return x if self.shift is None else writer.node("Add", [x, writer.weight(self.shift, "shift")])


@dataclass(frozen=True, eq=False)
class BatchNorm(AffineOperation):
    r"""``y = (x - mean) / sqrt(variance + epsilon) * scale + shift`` for every channel, axis 1.

    The statistics are constants: this is evaluation mode.
    """

    scale: Array
    shift: Array
    mean: Array
    variance: Array
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        for name in ("scale", "shift", "mean", "variance"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        if not (self.variance + self.epsilon > 0).all():
            raise ValueError("a variance plus epsilon is not positive.")

    @property
    def factor(self) -> Array:
        """What every channel is multiplied by, (channels,)."""
        return np.asarray(self.scale / np.sqrt(self.variance + self.epsilon))

    def as_scale(self, rank: int) -> Scale:
        """Return the same map for tensors of a rank, with float64 factors and shifts."""
        factor = self.factor
        factors, shifts = (
            per_channel(v, max(2, rank)) for v in (factor, self.shift - self.mean * factor)
        )
        return Scale(factors, shifts, "BatchNorm")

    def shape(self, *shapes: Shape) -> Shape:
        """Keep the shape."""
        (shape,) = shapes
        if (shape[1:2] or (1,)) != self.scale.shape:
            raise ValueError(
                f"the parameters of {self.scale.size} channels do not fit a tensor of shape {shape}."
            )
        return shape

    def linear(self, x: Numbers) -> Numbers:
        """Multiply every channel."""
        return self.as_scale(x.ndim - 1).linear(x)

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Scale and shift every channel."""
        return self.as_scale(inputs[0].ndim - 1)(inputs[0])

    def transposed(self, form: Array, shape: Shape) -> Array:
        """Multiply every channel."""
        return self.as_scale(len(shape)).transposed(form, shape)

    def signed(self) -> tuple[AffineOperation, AffineOperation]:
        """Not used: bounds come from the scale it is."""
        raise NotImplementedError

    def n_terms(self, shape: Shape) -> int:
        """One product."""
        return 1

    def interval(self, *boxes: Interval) -> Interval:
        """Bound the scale that it is; its factors are float64 numbers, as in the ReLU form."""
        return self.as_scale(boxes[0].lower.ndim - 1).interval(*boxes)

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return the scale that it is."""
        return self.as_scale(boxes[0].lower.ndim - 1).relaxation(*boxes)

    @property
    def n_parameters(self) -> int:
        """Scale and shift; the statistics are not trained."""
        return 2 * self.scale.size

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Scale and shift every channel of the expression."""
        return self.as_scale(len(inputs[0].shape)).lower(lowering, *inputs)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write BatchNormalization."""
        names = ("scale", "shift", "mean", "variance")
        weights = [writer.weight(getattr(self, name), name) for name in names]
        return writer.node("BatchNormalization", [*inputs, *weights], epsilon=self.epsilon)


@dataclass(frozen=True, eq=False)
class Add(Operation):
    """The sum of tensors, or with ``signs`` their differences: ``sum_i signs_i x_i``, broadcast."""

    signs: tuple[int, ...] = (1, 1)

    def shape(self, *shapes: Shape) -> Shape:
        """Broadcast."""
        if len(shapes) != len(self.signs):
            raise ValueError(f"a sum of {len(self.signs)} tensors got {len(shapes)}.")
        return np.broadcast_shapes(*shapes)

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Add."""
        rank = max(x.ndim for x in inputs) - 1
        terms = [aligned(x, rank) for x in inputs]
        total = terms[0] if self.signs[0] == 1 else -terms[0]
        for sign, term in zip(self.signs[1:], terms[1:], strict=True):
            total = total + term if sign == 1 else total - term
        return np.asarray(total)

    def interval(self, *boxes: Interval) -> Interval:
        """Add the ends, each rounded outwards."""
        rank = max(box.lower.ndim for box in boxes) - 1
        low = high = None
        for sign, box in zip(self.signs, boxes, strict=True):
            a, b = (aligned(end, rank) for end in box)
            a, b = (a, b) if sign == 1 else (-b, -a)
            low, high = (a, b) if low is None else (add_down(low, a), add_up(high, b))  # type: ignore[arg-type]
        shape = np.broadcast_shapes(*(aligned(box.lower, rank).shape for box in boxes))
        return Interval(np.broadcast_to(low, shape), np.broadcast_to(high, shape))  # type: ignore[arg-type]

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return the operation itself."""
        rank = max(box.lower.ndim for box in boxes) - 1
        shape = np.broadcast_shapes(*(aligned(box.lower, rank).shape for box in boxes))
        slopes = tuple(np.broadcast_to(np.float64(sign), shape) for sign in self.signs)
        zero = np.broadcast_to(np.float64(0.0), shape)
        return EntrywiseLines(slopes, zero, slopes, zero, boxes)

    def narrowed(self, value: Interval, *boxes: Interval) -> tuple[Interval, ...]:
        """Take from the sum what the other terms can be; terms that are repeated stay as they are."""
        shape = value.lower.shape
        if any(box.lower.shape != shape for box in boxes):
            return boxes
        found = []
        for k, (sign, box) in enumerate(zip(self.signs, boxes, strict=True)):
            low, high = value
            for j, (other, term) in enumerate(zip(self.signs, boxes, strict=True)):
                if j != k:
                    a, b = term if other == 1 else (-term.upper, -term.lower)
                    low, high = add_down(low, -b), add_up(high, -a)
            low, high = (low, high) if sign == 1 else (-high, -low)
            found.append(Interval(np.fmax(box.lower, low), np.fmin(box.upper, high)))
        return tuple(found)

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Hand the form to every term."""
        return tuple(
            unbroadcast(form if sign == 1 else -form, x.shape[1:])
            for sign, x in zip(self.signs, inputs, strict=True)
        )

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Add the expressions."""
        terms = [
            x if s == 1 else x.scale(np.array(-1.0)) for s, x in zip(self.signs, inputs, strict=True)
        ]
        total = terms[0]
        for term in terms[1:]:
            total = total.add(term)
        return total

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Add, Sub or Sum."""
        if all(sign == 1 for sign in self.signs) and len(inputs) != 2:
            return writer.node("Sum", inputs)
        total = inputs[0] if self.signs[0] == 1 else writer.node("Neg", inputs[:1])
        for sign, x in zip(self.signs[1:], inputs[1:], strict=True):
            total = writer.node("Add" if sign == 1 else "Sub", [total, x])
        return total


@dataclass(frozen=True, eq=False)
class Reduce(AffineOperation):
    """The sum or the mean over axes, which stay with length one.

    Attributes:
        axes: The axes, counted from the front of the literal shape.
        mean: Whether to divide by the number of entries.
    """

    axes: tuple[int, ...]
    mean: bool = False

    @property
    def name(self) -> str:
        """What users call it."""
        return "Mean" if self.mean else "Sum"

    def shape(self, *shapes: Shape) -> Shape:
        """Put one for the lengths of the axes."""
        if any(not 0 <= axis < len(shapes[0]) for axis in self.axes):
            raise ValueError(f"axes {self.axes} do not exist in a tensor of shape {shapes[0]}.")
        return tuple(1 if i in self.axes else n for i, n in enumerate(shapes[0]))

    def _factor(self, shape: Shape) -> float:
        return 1.0 / math.prod(shape[axis] for axis in self.axes) if self.mean else 1.0

    def linear(self, x: Numbers) -> Numbers:
        """Sum, and divide."""
        total = np.asarray(x.sum(axis=tuple(1 + axis for axis in self.axes), keepdims=True))
        if not self.mean:
            return total
        count = math.prod(x.shape[1 + axis] for axis in self.axes)
        return total * Fraction(1, count) if total.dtype == object else total / count

    def transposed(self, form: Array, shape: Shape) -> Array:
        """Hand the coefficient to every entry."""
        return np.broadcast_to(form * self._factor(shape), (len(form), *shape)).copy()

    def signed(self) -> tuple[AffineOperation, AffineOperation]:
        """All weights are positive."""
        return self, Nothing(self)

    def n_terms(self, shape: Shape) -> int:
        """One for each entry that is summed."""
        return math.prod(shape[axis] for axis in self.axes) + 1

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Sum the expressions."""
        return inputs[0].total(self.axes).scale(np.array(self._factor(inputs[0].shape)))

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write ReduceSum or ReduceMean."""
        kind = "ReduceMean" if self.mean else "ReduceSum"
        return writer.node(kind, [*inputs, writer.integers(self.axes)], keepdims=1)
