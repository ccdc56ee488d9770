r"""Affine operations whose weights are integers in the file.

A product with integer weights, :math:`y = \sum_k w_k x_k + b` with :math:`w = s_w (q_w - z_w)`, is held
with the numbers w, from which the integers follow again: so bounds, norms and counts see an ordinary
convolution or matrix, and files get the integers they had.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array, is_finite
from pindown.errors import ModelFileError
from pindown.model._expression import Expression
from pindown.model._lowering import Lowering
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.chain import Chain
from pindown.model.operations.dense import Add, Dense, Scale
from pindown.model.operations.integers import RANGES, Dequantize
from pindown.model.operations.operation import (
    Interval,
    Numbers,
    Operation,
    Relaxation,
    Shape,
    Writer,
    frozen,
)


def encoded(values: Array, grid: Dequantize) -> Array | None:
    """Return the integers that stand for numbers, or None if there are none.

    >>> encoded(np.array([0.5, -5.0]), Dequantize(0.5, 10))
    array([11.,  0.])
    """
    scale, zero = grid.grid(values.ndim)
    integers = np.rint(values / scale) + zero
    low, high = RANGES[grid.kind]
    near = np.abs((integers - zero) * scale - values) <= 2.0**-20 * np.abs(values)
    return integers if (near & (integers >= low) & (integers <= high)).all() else None


@dataclass(frozen=True, eq=False)
class IntegerWeights(AffineOperation):
    """An affine operation whose weights are integers in the file.

    In every respect it is the operation ``inner``, with numbers as weights; only its file is different.

    Attributes:
        inner: A dense map, a convolution, or a scaling.
        weight: What the weight's integers stand for; its axis is one of the inner weight's.
        bias: What the bias's integers stand for, or None if the bias is kept as numbers.

    >>> grid = Dequantize(0.5, 0, kind="int8")
    >>> IntegerWeights.of(Dense, [[2, -4]], grid)(np.array([[[1.0, 1.0]]]))
    array([[[-1.]]])
    """

    inner: AffineOperation
    weight: Dequantize
    bias: Dequantize | None = None

    def __post_init__(self) -> None:
        arrays = (v for v in vars(self.inner).values() if isinstance(v, np.ndarray))
        if not all(is_finite(v) for v in arrays):
            raise ModelFileError(f"{self.name} holds numbers that are NaN, infinite or overflow.")

    @classmethod
    def of(
        cls,
        make: Callable[[Array, Array | None], AffineOperation],
        integers: ArrayLike,
        weight: Dequantize,
        bias: ArrayLike | None = None,
        bias_grid: Dequantize | None = None,
    ) -> IntegerWeights:
        """Return an operation from integers.

        Args:
            make: Makes the operation from its weight and its bias, for instance :class:`Dense`.
            integers: The weight's.
            weight: What they stand for.
            bias: The bias: integers if ``bias_grid`` says what they stand for, else numbers, or None.
            bias_grid: What the bias's integers stand for.
        """
        given = None if bias is None else np.asarray(bias, dtype=np.float64)
        if given is not None and bias_grid is not None:
            given = bias_grid(given[None])[0]
        numbers = weight(np.asarray(integers, dtype=np.float64)[None])[0]
        return cls(make(frozen(numbers), None if given is None else frozen(given)), weight, bias_grid)

    @property
    def name(self) -> str:
        """What users call the operation."""
        return self.inner.name

    @property
    def numbers(self) -> Array:
        """The inner operation's weight."""
        found = (getattr(self.inner, name, None) for name in ("weight", "kernel", "factor", "shift"))
        return next(array for array in found if array is not None)

    @property
    def integers(self) -> Array:
        """The weight's integers, as float64."""
        found = encoded(self.numbers, self.weight)
        if found is None:
            raise ValueError("the weights have changed: no integers stand for them any more.")
        return found

    @property
    def offset(self) -> Array | None:
        """The inner operation's."""
        return self.inner.offset

    @property
    def n_parameters(self) -> int:
        """The inner operation's."""
        return self.inner.n_parameters

    @property
    def nbytes(self) -> int:
        """Weights and what they stand for."""
        return self.inner.nbytes + self.weight.nbytes + (0 if self.bias is None else self.bias.nbytes)

    def multiply_adds(self, *shapes: Shape) -> int:
        """Return the inner operation's."""
        return self.inner.multiply_adds(*shapes)

    def shape(self, *shapes: Shape) -> Shape:
        """Return the inner operation's."""
        return self.inner.shape(*shapes)

    def linear(self, x: Numbers) -> Numbers:
        """Apply the inner operation without its bias."""
        return self.inner.linear(x)

    def transposed(self, form: Array, shape: Shape) -> Array:
        """Pull back through the inner operation."""
        return self.inner.transposed(form, shape)

    def signed(self) -> tuple[AffineOperation, AffineOperation]:
        """Split the inner operation."""
        return self.inner.signed()

    def n_terms(self, shape: Shape) -> int:
        """Return the inner operation's."""
        return self.inner.n_terms(shape)

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Apply the inner operation."""
        return self.inner(*inputs)

    def interval(self, *boxes: Interval) -> Interval:
        """Bound the inner operation."""
        return self.inner.interval(*boxes)

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Relax the inner operation."""
        return self.inner.relaxation(*boxes)

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Lower the inner operation."""
        return self.inner.lower(lowering, *inputs)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write the inner operation, its weights as integers and DequantizeLinear."""
        return self.inner.write(_IntegerWriter(writer, self), *inputs)


@dataclass(frozen=True, eq=False)
class IntegerProduct(Chain):
    """A product of integers with integer weights: MatMulInteger or ConvInteger.

    It takes the integers and, if ``zero`` is None, their zero point as a second tensor.

    Attributes:
        inner: The product, whose weights are integers less their zero point: those stand for themselves.
        zero: The zero point of the integers that come in, if it is constant.
        kind: The type of the integers that come in.
    """

    inner: IntegerWeights
    zero: float | None = None
    kind: str = "uint8"

    @property
    def name(self) -> str:
        """ONNX's name."""
        return "MatMulInteger" if isinstance(self.inner.inner, Dense) else "ConvInteger"

    def steps(self, *shapes: Shape) -> tuple[Operation, ...]:
        """Take the zero point away, and multiply."""
        if self.zero is None:
            return Add((1, -1)), self.inner
        return (self.inner,) if self.zero == 0 else (Scale(shift=np.array(-self.zero)), self.inner)

    @property
    def n_parameters(self) -> int:
        """The weights."""
        return self.inner.n_parameters

    @property
    def nbytes(self) -> int:
        """The weights'."""
        return self.inner.nbytes

    def multiply_adds(self, *shapes: Shape) -> int:
        """Return the product's."""
        return self.inner.multiply_adds(shapes[0])

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Lower the steps."""
        for step in self.steps():
            inputs = (step.lower(lowering, *inputs),)
        return inputs[0]

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write MatMulInteger or ConvInteger."""
        zero = inputs[1] if self.zero is None else writer.integers(np.array(self.zero), self.kind)
        return write_integer_product(writer, self.inner, inputs[0], zero)


def write_integer_product(writer: Writer, product: IntegerWeights, x: str, zero: str) -> str:
    """Write MatMulInteger or ConvInteger; the weight's scale is not part of it."""
    inner, grid = product.inner, product.weight
    # Runtimes want one number where it serves for all.
    zeros = grid.zero if np.ptp(grid.zero) > 0 else grid.zero.reshape(-1)[0]
    own = writer.integers(zeros, grid.kind)
    if not isinstance(inner, Dense):
        integers = writer.integers(product.integers, grid.kind)
        attributes = attributes_of(inner, writer, [x])
        return writer.node("ConvInteger", [x, integers, zero, own], makes="int32", **attributes)
    if inner.axis == -2:
        integers = writer.integers(product.integers, grid.kind)
        return writer.node("MatMulInteger", [integers, x, own, zero], makes="int32")
    integers = writer.integers(product.integers.T, grid.kind)
    return writer.node("MatMulInteger", [x, integers, zero, own], makes="int32")


class _Forwarding(Writer):
    """A writer that hands everything on."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    @property
    def dtype(self) -> str:
        return self._writer.dtype

    def node(self, kind: str, inputs: Sequence[str], **facts: Any) -> str:
        return self._writer.node(kind, inputs, **facts)

    def weight(self, values: Array, name: str = "weight") -> str:
        return self._writer.weight(values, name)

    def integers(self, values: ArrayLike, kind: str = "int64") -> str:
        return self._writer.integers(values, kind)

    def shape(self, shape: Sequence[int]) -> str:
        return self._writer.shape(shape)

    def shape_of(self, tensor: str) -> Shape:
        return self._writer.shape_of(tensor)

    def kind_of(self, tensor: str) -> str:
        return self._writer.kind_of(tensor)


class _IntegerWriter(_Forwarding):
    """Writes an operation's weights as integers, where they still are what integers stand for."""

    def __init__(self, writer: Writer, operation: IntegerWeights) -> None:
        super().__init__(writer)
        self._operation = operation

    def weight(self, values: Array, name: str = "weight") -> str:
        own, grid = self._operation.numbers, self._operation.weight
        if name == "bias":
            if self._operation.bias is None:
                return self._writer.weight(values, name)
            own, grid = values, self._operation.bias
        integers = encoded(own, grid)
        if integers is None or (values is not own and own.ndim != 2):
            return self._writer.weight(values, name)
        axis = grid.axis
        if values is not own:  # a matrix that is written transposed
            integers, axis = integers.T, None if axis is None else 1 - axis % 2
        turned = Dequantize(grid.scale, grid.zero, axis, grid.kind)
        return turned.write(self._writer, self._writer.integers(integers, grid.kind))


class _Recorder(_Forwarding):
    """Writes nothing, and remembers the attributes of the first node."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.attributes: dict[str, Any] | None = None

    def node(self, kind: str, inputs: Sequence[str], **facts: Any) -> str:
        if self.attributes is None:
            self.attributes = facts
        return kind

    def weight(self, values: Array, name: str = "weight") -> str:
        return name

    def integers(self, values: ArrayLike, kind: str = "int64") -> str:
        return kind


def attributes_of(inner: Operation, writer: Writer, inputs: Sequence[str]) -> dict[str, Any]:
    """Return the attributes of the node that an operation on numbers writes."""
    recorder = _Recorder(writer)
    (inner.inner if isinstance(inner, IntegerWeights) else inner).write(recorder, *inputs)
    return recorder.attributes or {}
