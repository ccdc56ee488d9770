"""Operations on integers that stand for numbers, with integers as results: ONNX's QLinear family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.model._expression import Expression
from pindown.model._lowering import Lowering
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.chain import Chain, ChainedForms
from pindown.model.operations.dense import Dense
from pindown.model.operations.integer_weights import IntegerWeights, attributes_of
from pindown.model.operations.integers import Dequantize, Quantize, along_axis, as_kind, float32, jumps
from pindown.model.operations.operation import (
    EntrywiseLines,
    Interval,
    Numbers,
    Operation,
    Relaxation,
    Shape,
    Writer,
)

_PRODUCTS = ("QLinearConv", "QLinearMatMul", "QGemm")
_MICROSOFT = "com.microsoft"
_STANDARD = ("QLinearConv", "QLinearMatMul")  # the others are onnxruntime's own
_NO_ATTRIBUTES = ("QLinearGlobalAveragePool", "QLinearMatMul")


@dataclass(frozen=True, eq=False)
class Quantized(Chain):
    r"""An operation on numbers that integers stand for, its result an integer: ONNX's QLinear family.

    Products with integer weights count in integers, which is exact, and multiply the count by
    :math:`s_x s_w / s_y`, which is rounded to float32, as is the product. All others are evaluated in
    float64 between dequantising and quantising. The integers are onnxruntime's, but for QLinearAdd and
    QLinearMul near halves: there that adds the zero point before it rounds, and differently on different
    processors.

    Attributes:
        inner: What is done to the numbers; :class:`IntegerWeights` for products with weights.
        inputs: What the integers of each input stand for.
        output: How the result becomes an integer, or None if it stays a number (QGemm).
        operator: ONNX's name: ``"QLinearConv"``, ``"QLinearAdd"``, ``"QGemm"``, ...

    >>> from pindown.model.operations.dense import Add
    >>> grid = Dequantize(0.1, 0)
    >>> add = Quantized(Add(), (grid, grid), Quantize(0.2, 0), "QLinearAdd")
    >>> add(np.array([[10.0, 10.0]]), np.array([[20.0, 255.0]]))
    array([[ 15., 132.]])
    """

    inner: Operation
    inputs: tuple[Dequantize, ...]
    output: Quantize | None
    operator: str

    @classmethod
    def product(
        cls,
        operator: str,
        make: Callable[[Array, Array | None], AffineOperation],
        integers: ArrayLike,
        weight: Dequantize,
        bias: ArrayLike | None,
        x: Dequantize,
        y: Quantize | None,
    ) -> Quantized:
        """Return a product with integer weights.

        Args:
            operator: ``"QLinearConv"``, ``"QLinearMatMul"`` or ``"QGemm"``.
            make: Makes the operation from its weight and its bias: :class:`Dense`, or a convolution.
            integers: The weight's, as ``make`` takes it: (out, in) for :class:`Dense`.
            weight: What they stand for; several scales lie along the axis of outputs, 0.
            bias: Integers that count steps of the input's scale times the weight's, or None.
            x: What the integers that come in stand for.
            y: How the result becomes an integer.
        """
        numbers = None if bias is None else np.asarray(bias, dtype=np.float64) * (x.scale * weight.scale)
        return cls(IntegerWeights.of(make, integers, weight, numbers), (x,), y, operator)

    @property
    def name(self) -> str:
        """ONNX's name."""
        return self.operator

    def fronts(self) -> tuple[Operation, ...]:
        """Dequantise every input."""
        return self.inputs

    def steps(self, *shapes: Shape) -> tuple[Operation, ...]:
        """Carry out the operation, then quantise its result."""
        return (self.inner,) if self.output is None else (self.inner, self.output)

    @property
    def n_parameters(self) -> int:
        """The inner operation's."""
        return self.inner.n_parameters

    @property
    def nbytes(self) -> int:
        """Weights, scales and zero points."""
        parts = (self.inner, *self.inputs, *(() if self.output is None else (self.output,)))
        return sum(part.nbytes for part in parts)

    def multiply_adds(self, *shapes: Shape) -> int:
        """Return the inner operation's."""
        return self.inner.multiply_adds(*shapes)

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Dequantise, do it, quantise; products count in integers."""
        made = self.inner(*(grid(x) for grid, x in zip(self.inputs, inputs, strict=True)))
        if self.output is None:
            return made
        if not self._counts:
            return self.output(made)
        unit, _ = self._unit(made.ndim - 1)
        return self._from_counts(np.rint(made / unit))

    def interval(self, *boxes: Interval) -> Interval:
        """Bound the steps; of a product, count at both ends."""
        between = self._boxes(*boxes)
        if self.output is None or not self._counts:
            return between[-1][0]
        return self._from_count_box(between[1][0])

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Chain the linear bounds of the steps."""
        if self.output is None:
            return super().relaxation(*boxes)
        first, (made,), _ = self._boxes(*boxes)
        values = self._from_count_box(made) if self._counts else None
        lower, below, upper, above = self.output.lines(made, values)
        last = EntrywiseLines((lower,), below, (upper,), above, (made,))
        fronts = tuple(grid.relaxation(box) for grid, box in zip(self.inputs, boxes, strict=True))
        return ChainedForms(fronts, (self.inner.relaxation(*first), last))

    @property
    def _counts(self) -> bool:
        return self.operator in _PRODUCTS and isinstance(self.inner, IntegerWeights)

    def _unit(self, rank: int) -> tuple[Array, Array]:
        """Return what one step of a product's count stands for, and by what it is multiplied."""
        assert isinstance(self.inner, IntegerWeights) and self.output is not None
        inner = self.inner.inner
        axis = inner.axis if isinstance(inner, Dense) else 1
        scale = along_axis(self.inner.weight.scale, axis, rank)
        unit = self.inputs[0].scale.reshape(()) * scale
        return unit, float32(float32(unit) / self.output.scale.reshape(()))

    def _from_counts(self, counts: Array) -> Array:
        assert self.output is not None
        rank = counts.ndim - 1
        _, factor = self._unit(rank)
        product = counts.astype(np.float32) * factor.astype(np.float32)
        return self.output.saturated(product, self.output.grid(rank).zero)

    def _from_count_box(self, made: Interval) -> Interval:
        """Return what counts become whose numbers lie in a box: it is monotone in them."""
        unit, _ = self._unit(made.lower.ndim - 1)
        low, high = made.lower / unit, made.upper / unit
        low, high = np.ceil(low - 2.0**-50 * np.abs(low)), np.floor(high + 2.0**-50 * np.abs(high))
        return Interval(self._from_counts(low), self._from_counts(high))

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Refuse: a ReLU network has no jumps."""
        raise jumps(self.name)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write the operator it came from."""
        operands = [
            [as_kind(writer, x, grid.kind), *grid.pair(writer)]
            for x, grid in zip(inputs, self.inputs, strict=True)
        ]
        bias: list[str] = []
        if isinstance(self.inner, IntegerWeights):
            weight, bias = self._written_weights(writer)
            turned = isinstance(self.inner.inner, Dense) and self.inner.inner.axis == -2
            operands = [weight, *operands] if turned else [*operands, weight]
        flat = [name for operand in operands for name in operand]
        last = [] if self.output is None else self.output.pair(writer)
        order = {
            "QLinearConcat": [*last, *flat],
            "QGemm": [*flat, *(bias or [""]), *last],
        }.get(self.operator, [*flat, *last, *bias])
        attributes = {} if self.operator in _NO_ATTRIBUTES else attributes_of(self.inner, writer, inputs)
        if self.operator == "QLinearSoftmax":
            attributes["opset"] = 13
        domain = "" if self.operator in _STANDARD else _MICROSOFT
        kind = writer.dtype if self.output is None else self.output.kind
        return writer.node(self.operator, order, domain=domain, makes=kind, **attributes)

    def _written_weights(self, writer: Writer) -> tuple[list[str], list[str]]:
        """Write the weight with what it stands for, and the bias if there is one."""
        assert isinstance(self.inner, IntegerWeights)
        inner, grid = self.inner.inner, self.inner.weight
        integers = self.inner.integers
        if self.operator == "QLinearMatMul" and isinstance(inner, Dense) and inner.axis == -1:
            integers = integers.T
        weight = [writer.integers(integers, grid.kind), *grid.pair(writer)]
        bias = getattr(inner, "bias", None)
        if bias is None:
            return weight, []
        steps = self.inputs[0].scale.reshape(()) * grid.scale
        return weight, [writer.integers(np.rint(bias / steps), "int32")]
