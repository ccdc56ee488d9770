r"""Integers: numbers rounded to a grid and back, as ONNX defines it. Whole numbers are kept in float64.

An integer q of a type stands for the number :math:`s (q - z)`, with a scale s and a zero point z. From
numbers to integers

.. math::
    q = \min(\max(\mathrm{rint}(x / s) + z, q_{\min}), q_{\max}) ,

where halves go to the even neighbour. Runtimes divide in float32, which decides what is a half; so do
we: x and x / s are rounded to float32 first. That is part of the operation, it is monotone, and bounds
count it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.model._expression import Expression
from pindown.model._lowering import Lowering
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.dense import Scale
from pindown.model.operations.elementwise import Elementwise, Lines
from pindown.model.operations.operation import (
    EntrywiseLines,
    Interval,
    NotPiecewiseLinearError,
    Numbers,
    Operation,
    Relaxation,
    Shape,
    Writer,
    frozen,
    matched,
)
from pindown.rounding import TINY, add_up, two_product
from pindown.validation import choice

RANGES = {
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
}
# As ONNX numbers its types.
_NUMBERS = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "float16": 10,
    "float64": 11,
}
_NEWER_KINDS = ("int4", "uint4", "int16", "uint16")  # since operator set 21
# float32 may round x, x / s, and on the way of a product the multiplier and what it multiplies.
_FLOAT32_STEPS = 2.0**-21
_MIN_FLOAT32 = 2.0**-149


def float32(values: ArrayLike) -> Array:
    """Return what float32 holds of numbers, in float64."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(values, dtype=np.float32).astype(np.float64)


class _Grid(NamedTuple):
    """Scale and zero point for tensors of a rank."""

    scale: Array
    zero: Array


class _OnGrid(Operation):
    """What quantising and dequantising have in common."""

    scale: Array
    zero: Array
    kind: str
    axis: int | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", frozen(float32(self.scale)))
        object.__setattr__(self, "zero", frozen(self.zero))
        choice("kind", self.kind, RANGES)
        low, high = RANGES[self.kind]
        if not ((self.scale > 0) & np.isfinite(self.scale)).all():
            raise ValueError(f"a scale must be positive and finite; got {_shown(self.scale)}.")
        if not ((self.zero >= low) & (self.zero <= high) & (self.zero == np.rint(self.zero))).all():
            raise ValueError(
                f"a zero point must be an integer of type {self.kind}; got {_shown(self.zero)}."
            )
        sizes = {v.size for v in (self.scale, self.zero)} - {1}
        if self.kind == "int32" and self.zero.any():
            raise ValueError(f"the zero point of int32 must be 0; got {_shown(self.zero)}.")
        if len(sizes) > 1 or (sizes and self.axis is None):
            shapes = f"{self.scale.shape} and zero points {self.zero.shape}"
            raise ValueError(f"scales {shapes} need an axis of that length.")

    def shape(self, *shapes: Shape) -> Shape:
        """Keep the shape."""
        (shape,) = shapes
        length = max(self.scale.size, self.zero.size)
        if length > 1:
            axis = self.axis
            if axis is None or not -len(shape) <= axis < len(shape) or shape[axis] != length:
                raise ValueError(
                    f"{length} scales along axis {axis} do not fit a tensor of shape {shape}."
                )
        return shape

    def grid(self, rank: int) -> _Grid:
        """Return scale and zero point, shaped for tensors of a rank."""
        return _Grid(*(along_axis(v, self.axis, rank) for v in (self.scale, self.zero)))

    def attributes(self) -> dict[str, Any]:
        """Return what ONNX's nodes need besides their inputs."""
        wide = max(self.scale.size, self.zero.size) > 1
        since = {"since": 21} if self.kind in _NEWER_KINDS else {}
        return {**({"axis": self.axis} if wide else {}), **since}

    def pair(self, writer: Writer) -> list[str]:
        """Write scale and zero point."""
        size = np.broadcast_shapes(self.scale.shape, self.zero.shape)
        scale, zero = (np.broadcast_to(v, size) for v in (self.scale, self.zero))
        written = [writer.integers(scale, "float32")]
        # The zero point of int32 is zero: runtimes want it left out.
        return written if self.kind == "int32" else [*written, writer.integers(zero, self.kind)]


@dataclass(frozen=True, eq=False)
class Quantize(_OnGrid, Elementwise):
    """Numbers to integers: divide by the scale, round, add the zero point, cut to the type's range.

    Attributes:
        scale: One number, or one for each entry of an axis; float32 holds it.
        zero: The integer that stands for zero, or one for each scale.
        kind: ``"uint8"``, ``"int8"``, ``"int16"``, ``"uint16"``, ``"int4"`` or ``"uint4"``.
        axis: The axis of the scales, if there are several.

    Its derivative is a convention: that of the same map without rounding, because a step's says nothing.

    >>> Quantize(0.5, 10, "uint8")(np.array([[0.6, 1.25, 1.75, 1000.0, -7.0]]))
    array([[ 11.,  12.,  14., 255.,   0.]])
    """

    scale: Array
    zero: Array
    kind: str = "uint8"
    axis: int | None = None

    def function(self, x: Numbers) -> Numbers:
        """Divide in float32, round, shift, saturate."""
        scale, zero = self.grid(x.ndim - 1)
        single = x.astype(np.float32) / scale.astype(np.float32)
        return self.saturated(single, zero)

    def saturated(self, quotient: NDArray[Any], zero: Array) -> Array:
        """Round, add the zero point and cut to the range."""
        return np.clip(np.rint(quotient).astype(np.float64) + zero, *RANGES[self.kind])

    def derivative(self, x: Array) -> Array:
        """Return one over the scale inside the range, zero outside."""
        scale, zero = self.grid(x.ndim - 1)
        low, high = RANGES[self.kind]
        steps = x / scale + zero
        return np.where((steps >= low) & (steps <= high), 1.0 / scale, 0.0)

    def range(self, box: Interval) -> Interval:
        """Apply it to both ends: it is monotone, and its values are exact."""
        return Interval(*(self.function(end) for end in box))

    def lines(self, box: Interval, values: Interval | None = None) -> Lines:
        """Return lines of the clipped map without rounding, half a step farther out; or constants.

        Args:
            box: Where x lies.
            values: What comes out there, if another route than :meth:`range` says so.
        """
        scale, zero = self.grid(box.lower.ndim - 1)
        low, high = self.range(box) if values is None else values
        least, most = (end - zero for end in RANGES[self.kind])
        left, right = np.nextafter(box.lower / scale, -np.inf), np.nextafter(box.upper / scale, np.inf)
        half = 0.5 + _FLOAT32_STEPS * (np.maximum(-least, most) + 1.0)
        half = half + _MIN_FLOAT32 * (1.0 + 1.0 / scale)
        slope, above = _line_above(left, right, least, most, half, high - zero)
        other, below = _line_above(-right, -left, -most, -least, half, zero - low)
        still = high - low <= 1.0  # no line is nearer than the values at the ends
        slope, above = np.where(still, 0.0, slope), np.where(still, high - zero, above)
        other, below = np.where(still, 0.0, other), np.where(still, zero - low, below)
        reach = np.maximum(np.abs(left), np.abs(right))
        lost = np.where(still, 0.0, 2.0**-46 * (reach + np.abs(zero) + 1.0))
        above, below = add_up(above, lost + zero), add_up(below, lost - zero)
        return Lines(other / scale, -below, slope / scale, above)

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Refuse: a ReLU network has no jumps."""
        raise jumps(self.name)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write QuantizeLinear."""
        x = as_kind(writer, inputs[0], "float32")
        return writer.node(
            "QuantizeLinear", [x, *self.pair(writer)], makes=self.kind, **self.attributes()
        )


@dataclass(frozen=True, eq=False)
class Dequantize(_OnGrid, AffineOperation):
    """Integers to numbers: ``scale * (x - zero)``.

    Attributes:
        scale: One number, or one for each entry of an axis; float32 holds it.
        zero: The integer that stands for zero, or one for each scale.
        axis: The axis of the scales, if there are several.
        kind: The integers' type.

    >>> Dequantize(0.5, 10)(np.array([[11.0, 0.0]]))
    array([[ 0.5, -5. ]])
    """

    scale: Array
    zero: Array
    axis: int | None = None
    kind: str = "uint8"

    def as_scale(self, rank: int) -> Scale:
        """Return the same map for tensors of a rank; exact for types of up to 16 bits."""
        scale, zero = self.grid(rank)
        return Scale(scale, -(scale * zero))

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Return the numbers."""
        (x,) = inputs
        scale, zero = (matched(v, x) for v in self.grid(x.ndim - 1))
        return (x - zero) * scale

    def linear(self, x: Numbers) -> Numbers:
        """Multiply by the scale."""
        return self.as_scale(x.ndim - 1).linear(x)

    def transposed(self, form: Array, shape: Shape) -> Array:
        """Multiply by the scale."""
        return self.as_scale(len(shape)).transposed(form, shape)

    def signed(self) -> tuple[AffineOperation, AffineOperation]:
        """Not used: bounds come from the ends, and from the scale it is."""
        raise NotImplementedError

    def n_terms(self, shape: Shape) -> int:
        """One product."""
        return 1

    def interval(self, *boxes: Interval) -> Interval:
        """Dequantise both ends; what is exact stays so."""
        scale, zero = self.grid(boxes[0].lower.ndim - 1)
        low, high = boxes[0]
        return Interval(-_product_up(add_up(-low, zero), scale), _product_up(add_up(high, -zero), scale))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return the scale that it is."""
        return self.as_scale(boxes[0].lower.ndim - 1).relaxation(*boxes)

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Scale and shift the expression."""
        return self.as_scale(len(inputs[0].shape)).lower(lowering, *inputs)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write DequantizeLinear."""
        pair = self.pair(writer)
        made = writer.node("DequantizeLinear", [*inputs, *pair], makes="float32", **self.attributes())
        return as_kind(writer, made, writer.dtype)


@dataclass(frozen=True, eq=False)
class ToFloat(AffineOperation):
    """Integers taken as numbers, without a change: the cast after an integer product."""

    @property
    def name(self) -> str:
        """What users call it."""
        return "Cast"

    def shape(self, *shapes: Shape) -> Shape:
        """Keep the shape."""
        return shapes[0]

    def linear(self, x: Numbers) -> Numbers:
        """Return x."""
        return x

    def transposed(self, form: Array, shape: Shape) -> Array:
        """Return the form."""
        return form

    def signed(self) -> tuple[AffineOperation, AffineOperation]:
        """Not used: nothing changes."""
        raise NotImplementedError

    def n_terms(self, shape: Shape) -> int:
        """Nothing is multiplied."""
        return 0

    def interval(self, *boxes: Interval) -> Interval:
        """Return the box."""
        return boxes[0]

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return x."""
        one = np.ones(boxes[0].lower.shape)
        return EntrywiseLines((one,), 0.0 * one, (one,), 0.0 * one, boxes)

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Return the expression."""
        return inputs[0]

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Cast."""
        return as_kind(writer, inputs[0], writer.dtype)


def along_axis(values: Array, axis: int | None, rank: int) -> Array:
    """Shape one number for each entry of an axis for tensors of a rank."""
    if values.size == 1 or axis is None:
        return values.reshape(())
    shape = [1] * rank
    shape[axis] = values.size
    return values.reshape(shape)


def jumps(name: str) -> NotPiecewiseLinearError:
    """Return what to say of an operation that rounds."""
    return NotPiecewiseLinearError(
        f"{name} rounds to integers: it jumps, which no network of ReLUs does"
    )


def as_kind(writer: Writer, x: str, kind: str) -> str:
    """Write a cast to a type, where a tensor is not of that type."""
    if writer.kind_of(x) == kind:
        return x
    return writer.node("Cast", [x], to=_NUMBERS[kind], makes=kind)


def _line_above(
    left: Array, right: Array, least: Array, most: Array, half: Array, largest: Array
) -> tuple[Array, Array]:
    """Return slope and offset of a line above ``min(max(t + half, least), most)`` on [left, right].

    Where the slope is zero the offset is ``largest``, which bounds the values from above.
    """

    def value(t: Array) -> Array:
        return np.minimum(np.maximum(t + half, least), most)

    knee = np.clip(most - half, left, right)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = (value(knee) - value(left)) / (knee - left)
    # Up to where the top is reached, if that is most of the interval.
    slope = np.where((knee > left) & (knee - left >= right - knee), np.clip(slope, 0.0, 1.0), 0.0)
    points = [left, right, knee, np.clip(least - half, left, right)]
    offset = np.maximum.reduce([value(t) - slope * t for t in points])
    return slope, np.where(slope > 0, offset, largest)


def _product_up(a: Array, b: Array) -> Array:
    """Return the product with a positive number rounded up; what float64 holds exactly stays."""
    with np.errstate(over="ignore", invalid="ignore"):
        product, error = two_product(a, b)
        unsure = ~np.isfinite(error) | ((np.abs(product) < TINY * 2.0**60) & (a != 0))
    return np.where((error > 0) | unsure, np.nextafter(product, np.inf), product)


def _shown(values: Array) -> str:
    return np.array2string(values, threshold=4, edgeitems=2)
