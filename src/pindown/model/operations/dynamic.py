r"""Numbers quantised with the scale that fits them: ONNX's DynamicQuantizeLinear, and products after it.

With :math:`M = \max(0, \max_i x_i)` and :math:`m = \max(0, \max_i -x_i)`

.. math::
    s = \frac{M + m}{255}, \qquad z = \mathrm{rint}(m / s), \qquad q_i = \mathrm{rint}(x_i / s) + z ,

cut to the range of uint8, all in float32; of a tensor of zeros the scale is one. So
:math:`s (q_i - z)` is :math:`x_i` up to half a step.

Derivatives are those of the same maps without rounding, because those of steps say nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.model._expression import Expression
from pindown.model._lowering import Lowering
from pindown.model.builder import Builder, Tensor
from pindown.model.operations.chain import Chain
from pindown.model.operations.dense import Dense, Scale
from pindown.model.operations.integer_weights import (
    IntegerProduct,
    IntegerWeights,
    write_integer_product,
)
from pindown.model.operations.integers import Dequantize, ToFloat, as_kind, jumps
from pindown.model.operations.operation import (
    EntrywiseLines,
    Interval,
    Numbers,
    Operation,
    Relaxation,
    Shape,
    Writer,
    frozen,
)
from pindown.rounding import add_down, add_up

_STEPS = 255.0
_FLOAT32 = 2.0**-20  # far above what a handful of float32 operations loses


class _Ends(NamedTuple):
    """M and m, one of each for every tensor."""

    top: Array
    bottom: Array


class _Dynamic(Operation):
    """What the outputs of DynamicQuantizeLinear have in common."""

    def shape(self, *shapes: Shape) -> Shape:
        """One number for the whole tensor."""
        return ()

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Refuse: a ReLU network has no jumps."""
        raise jumps("DynamicQuantizeLinear")

    def _write(self, writer: Writer, x: str, which: int, makes: str) -> str:
        x = as_kind(writer, x, "float32")
        return writer.node("DynamicQuantizeLinear", [x], part=(which, 3), makes=makes)


@dataclass(frozen=True, eq=False)
class DynamicScale(_Dynamic):
    """The scale that fits a tensor, the second output of DynamicQuantizeLinear.

    >>> DynamicScale()(np.array([[-51.0, 204.0]]))
    array([1.])
    """

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Divide the range by the number of steps."""
        return _parameters(inputs[0])[0].astype(np.float64)

    def interval(self, *boxes: Interval) -> Interval:
        """Take the smallest and the largest range; one is possible if the range may vanish."""
        least, most = _end_bounds(boxes[0])
        low, high = (
            _scale(end.top.astype(np.float32) + end.bottom.astype(np.float32)) for end in (least, most)
        )
        return Interval(
            np.where((low == 0) & (high > 0), 0.0, np.where(low == 0, 1.0, low)).astype(np.float64),
            np.where(low == 0, np.maximum(high, 1.0), high).astype(np.float64),
        )

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Hand it to the largest and the smallest entry."""
        return (_to_ends(inputs[0], form / _STEPS, form / _STEPS),)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write DynamicQuantizeLinear."""
        return as_kind(writer, self._write(writer, inputs[0], 1, "float32"), writer.dtype)


@dataclass(frozen=True, eq=False)
class DynamicZero(_Dynamic):
    """The zero point that fits a tensor, the third output of DynamicQuantizeLinear.

    >>> DynamicZero()(np.array([[-51.0, 204.0]]))
    array([51.])
    """

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Count the steps from the smallest entry to zero."""
        return _parameters(inputs[0])[1].astype(np.float64)

    def interval(self, *boxes: Interval) -> Interval:
        """Count with the ends that make it smallest and largest."""
        least, most = _end_bounds(boxes[0])
        low = _share(least.bottom, most.top) * (1.0 - _FLOAT32)
        high = _share(most.bottom, least.top) * (1.0 + _FLOAT32)
        return Interval(np.rint(low), np.minimum(np.rint(high), _STEPS))

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Return the derivative of ``m / s``."""
        scale, zero = (v.astype(np.float64) for v in _parameters(inputs[0]))
        shrink = form * zero / (_STEPS * scale)
        return (_to_ends(inputs[0], -shrink, form / scale - shrink),)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write DynamicQuantizeLinear."""
        return self._write(writer, inputs[0], 2, "uint8")


@dataclass(frozen=True, eq=False)
class DynamicQuantize(_Dynamic):
    """A tensor as uint8 with the scale that fits it, the first output of DynamicQuantizeLinear.

    >>> DynamicQuantize()(np.array([[-51.0, 0.4, 204.0]]))
    array([[  0.,  51., 255.]])
    """

    def shape(self, *shapes: Shape) -> Shape:
        """Keep the shape."""
        return shapes[0]

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Divide by the scale, round, add the zero point, saturate."""
        (x,) = inputs
        scale, zero = (_wide(v, x.ndim) for v in _parameters(x))
        with np.errstate(over="ignore"):
            steps = np.rint(x.astype(np.float32) / scale) + zero
        return np.clip(steps, 0.0, _STEPS).astype(np.float64)

    def interval(self, *boxes: Interval) -> Interval:
        """Count steps to the smallest and the largest place in the range, give or take one."""
        least, most = (
            _Ends(*(_wide(v, boxes[0].lower.ndim) for v in ends)) for ends in _end_bounds(boxes[0])
        )
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            low = _STEPS * (boxes[0].lower + least.bottom) / (most.top + least.bottom)
            high = _STEPS * (boxes[0].upper + most.bottom) / (least.top + most.bottom)
        slack = 1.0 + _STEPS * _FLOAT32
        low, high = np.ceil(low - slack), np.floor(high * (1.0 + _FLOAT32) + slack)
        empty = least.top + least.bottom == 0
        low = np.where(np.isnan(low) | empty, 0.0, np.clip(low, 0.0, _STEPS))
        return Interval(low, np.where(np.isnan(high), _STEPS, np.clip(high, 0.0, _STEPS)))

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Return the derivative of ``(x + m) / s``."""
        (x,) = inputs
        scale = _parameters(x)[0].astype(np.float64)
        steps = _wide(1.0 / scale, x.ndim) * form
        total = steps.reshape(len(x), -1).sum(axis=1)
        shrink = (steps * self(x)).reshape(len(x), -1).sum(axis=1) / _STEPS
        return (steps + _to_ends(x, -shrink, total - shrink),)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write DynamicQuantizeLinear."""
        return self._write(writer, inputs[0], 0, "uint8")


@dataclass(frozen=True, eq=False)
class DynamicRound(DynamicQuantize):
    """A tensor rounded to the grid that fits it: quantised and dequantised again."""

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Return ``s (q - z)``."""
        (x,) = inputs
        scale, zero = (_wide(v, x.ndim) for v in _parameters(x))
        return np.asarray((super().__call__(x) - zero) * scale.astype(np.float64))

    def _error(self, box: Interval) -> Array:
        """Return half a step of the largest scale, for each tensor."""
        _, most = _end_bounds(box)
        half = (0.5 + 2.0**-10) / _STEPS * (most.top + most.bottom) * (1.0 + 8 * _FLOAT32) + 2.0**-130
        return _wide(half, box.lower.ndim)

    def interval(self, *boxes: Interval) -> Interval:
        """Widen the box by half a step."""
        error = self._error(boxes[0])
        return Interval(add_down(boxes[0].lower, -error), add_up(boxes[0].upper, error))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return x, half a step farther out."""
        one = np.ones(boxes[0].lower.shape)
        error = self._error(boxes[0]) * one
        return EntrywiseLines((one,), -error, (one,), error, boxes)

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Return the form: without rounding, nothing changes."""
        return (form,)

    def write(self, writer: Writer, *inputs: str) -> str:
        """It is written by the product that it is a step of."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class DynamicProduct(Chain):
    """A product with integer weights of a tensor that is quantised with the scale that fits it.

    It is what onnxruntime's dynamic quantisation writes as DynamicQuantizeLinear, MatMulInteger or
    ConvInteger, Cast and Mul. As one operation its bounds are those of the product and half a step.

    Attributes:
        inner: The product, its weights as numbers.
    """

    inner: IntegerWeights

    @property
    def name(self) -> str:
        """What users call the product."""
        return f"dynamic {self.inner.name}"

    def steps(self, *shapes: Shape) -> tuple[Operation, ...]:
        """Round, and multiply."""
        return DynamicRound(), self.inner

    @property
    def n_parameters(self) -> int:
        """The product's."""
        return self.inner.n_parameters

    @property
    def nbytes(self) -> int:
        """The product's."""
        return self.inner.nbytes

    def multiply_adds(self, *shapes: Shape) -> int:
        """Return the product's."""
        return self.inner.multiply_adds(*shapes)

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Refuse: a ReLU network has no jumps."""
        raise jumps(self.name)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write the five operations."""
        x = as_kind(writer, inputs[0], "float32")
        q, scale, zero = (
            writer.node("DynamicQuantizeLinear", [x], part=(i, 3), makes=kind)
            for i, kind in enumerate(("uint8", "float32", "uint8"))
        )
        product, inner = write_integer_product(writer, self.inner, q, zero), self.inner.inner
        number = as_kind(writer, product, "float32")
        own = self.inner.weight.scale
        if own.size > 1:
            own = _along_outputs(own, inner, len(inner.shape(writer.shape_of(inputs[0]))))
        factor = writer.node("Mul", [scale, writer.integers(own, "float32")], makes="float32")
        made = as_kind(writer, writer.node("Mul", [number, factor]), writer.dtype)
        return (
            made
            if inner.offset is None
            else writer.node("Add", [made, writer.weight(inner.offset, "bias")])
        )


def as_dynamic_product(
    graph: Builder, product: Tensor, factor: Tensor
) -> tuple[DynamicProduct, Tensor] | None:
    """Return the dynamic product that two tensors' product is, and the tensor it is applied to; or None.

    Args:
        graph: The graph in the making.
        product: A tensor that may be the cast of an integer product of a tensor's dynamic integers.
        factor: A tensor that may be the same tensor's dynamic scale, times that of the weights.
    """
    cast, scaled = graph.node(product), graph.node(factor)
    if cast is None or scaled is None or not isinstance(cast.operation, ToFloat):
        return None
    own: Array = np.ones(())
    if isinstance(scaled.operation, Scale) and scaled.operation.shift is None:
        own = np.ones(()) if scaled.operation.factor is None else scaled.operation.factor
        scaled = graph.node(Tensor(scaled.inputs[0], ()))
    counted = graph.node(Tensor(cast.inputs[0], ()))
    if counted is None or scaled is None or not isinstance(counted.operation, IntegerProduct):
        return None
    made = [graph.node(Tensor(i, ())) for i in counted.inputs]
    kinds = (DynamicQuantize, DynamicZero)
    if len(made) != 2 or not all(
        m is not None and type(m.operation) is kind for m, kind in zip(made, kinds, strict=True)
    ):
        return None
    source = {node.inputs[0] for node in (*made, scaled) if node is not None}
    if type(scaled.operation) is not DynamicScale or len(source) != 1:
        return None
    inner = _with_scale(counted.operation.inner, own, len(product.shape))
    if inner is None:
        return None
    (index,) = source
    node = graph.node(Tensor(index, ()))
    return DynamicProduct(inner), Tensor(index, graph.input.shape if node is None else node.shape)


def _with_scale(product: IntegerWeights, own: Array, rank: int) -> IntegerWeights | None:
    """Let a product's integers stand for numbers; None if the scales are not its outputs'."""
    inner, grid = product.inner, product.weight
    flat = own.reshape(-1)
    if flat.size > 1 and own.shape != _along_outputs(flat, inner, rank).shape[-own.ndim :]:
        return None
    new = Dequantize(flat if flat.size > 1 else flat.reshape(()), grid.zero, 0, grid.kind)
    name = "weight" if isinstance(inner, Dense) else "kernel"
    numbers = frozen(product.numbers * new.grid(product.numbers.ndim).scale)
    return IntegerWeights(replace(inner, **{name: numbers}), new)  # type: ignore[type-var]


def _along_outputs(values: Array, inner: Operation, rank: int) -> Array:
    """Shape one number for each output of a product for its result."""
    axis = inner.axis if isinstance(inner, Dense) else 1 - rank
    shape = [1] * -axis
    shape[0] = values.size
    return values.reshape(shape)


def _parameters(x: Numbers) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return scale and zero point of n tensors, in float32 as runtimes compute them."""
    with np.errstate(over="ignore"):
        flat = x.reshape(len(x), -1).astype(np.float32)
        low, high = np.minimum(flat.min(axis=1), 0), np.maximum(flat.max(axis=1), 0)
        scale = _scale(high - low)
        scale = np.where(scale == 0, np.float32(1), scale)
        return scale, np.rint(np.clip(-(low / scale), 0, 255))


def _scale(width: NDArray[np.float32]) -> NDArray[np.float32]:
    return width / np.float32(_STEPS)


def _end_bounds(box: Interval) -> tuple[_Ends, _Ends]:
    """Return the smallest and the largest M and m of n boxes."""
    low, high = (end.reshape(len(end), -1) for end in box)
    least = _Ends(np.maximum(low.max(axis=1), 0.0), np.maximum(-high.min(axis=1), 0.0))
    return least, _Ends(np.maximum(high.max(axis=1), 0.0), np.maximum(-low.min(axis=1), 0.0))


def _share(bottom: Array, top: Array) -> Array:
    """Return ``255 m / (M + m)``, zero of nothing."""
    total = bottom + top
    return _STEPS * bottom / np.where(total == 0, 1.0, total)


def _to_ends(x: Array, to_top: Array, to_bottom: Array) -> Array:
    """Return forms of x from forms of M and m, each (n,)."""
    flat = x.reshape(len(x), -1)
    back = np.zeros(flat.shape)
    rows = np.arange(len(x))
    highest, lowest = flat.argmax(axis=1), flat.argmin(axis=1)
    back[rows, highest] += np.where(flat[rows, highest] > 0, to_top, 0.0)
    back[rows, lowest] -= np.where(flat[rows, lowest] < 0, to_bottom, 0.0)
    return back.reshape(x.shape)


def _wide(values: NDArray[Any], ndim: int) -> NDArray[Any]:
    """Shape one number for each of n tensors so that it broadcasts."""
    return values.reshape(-1, *(1,) * (ndim - 1))
