"""ONNX operations on constants alone: the arithmetic that shapes, masks and tables are made with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.data_movement import bearable
from pindown.io._onnx.node import Node, Rule, Value
from pindown.model.builder import Tensor
from pindown.model.limits import MAX_TENSOR_ENTRIES, check_entries
from pindown.model.operations.dense import Add, Scale
from pindown.model.operations.maxima import Maximum
from pindown.model.operations.piecewise_linear import Clip
from pindown.model.operations.products import Multiply
from pindown.model.operations.steps import Round


def together(*constants: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return constants that are about to be combined if broadcasting them is no blow-up."""
    shape = np.broadcast_shapes(*(constant.shape for constant in constants))
    largest = max(constant.size for constant in constants)
    check_entries(*shape, what="the result", limit=max(largest, MAX_TENSOR_ENTRIES))
    return constants


def _elementwise(function: Callable[..., Any]) -> Rule:
    def fold(node: Node) -> Value:
        return np.asarray(function(*together(*node.constants())))

    return fold


# ---------------------------------------------------------------------- constants and shapes


def _constant(node: Node) -> Value:
    tensor = node.array("value")
    if tensor is not None:
        return tensor
    if node.has("value_float"):
        return np.array(node.real("value_float", 0.0))
    if node.has("value_int"):
        return np.array(node.integer("value_int", 0))
    integers, reals = node.integers("value_ints"), node.reals("value_floats")
    if integers is not None:
        return np.array(integers, dtype=np.int64)
    if reals is not None:
        return np.array(reals, dtype=np.float64)
    raise UnsupportedModelError("Constant holds no numeric tensor; sparse and text values are not read.")


def _constant_of_shape(node: Node) -> Value:
    shape = bearable(node.numbers(0, "shape") or ())
    fill = node.array("value")
    if fill is not None and fill.size != 1:
        raise ModelFileError(f"ConstantOfShape needs one number to repeat; got {fill.shape}.")
    return np.full(shape, 0.0 if fill is None else fill.item())


def _shape(node: Node) -> Value:
    lengths = node.value(0).shape
    start, end = node.integer("start", 0), node.integer("end", len(lengths))
    return np.array(lengths[start:end], dtype=np.int64)


def _size(node: Node) -> Value:
    return np.array(math.prod(node.value(0).shape), dtype=np.int64)


def _range(node: Node) -> Value:
    start, limit, step = (node.single(i).item() for i in range(3))
    if not all(math.isfinite(number) for number in (start, limit, step)):
        raise ModelFileError(f"Range needs finite numbers; got {start}, {limit} and {step}.")
    bearable([max(0, math.ceil((limit - start) / step))])
    return np.arange(start, limit, step)


def _eye_like(node: Node) -> Value:
    shape = node.value(0).shape
    if len(shape) != 2:
        raise ModelFileError(f"EyeLike needs a matrix; got a tensor of shape {shape}.")
    n, m = bearable(shape)
    return np.eye(n, m, k=max(-n, min(m, node.integer("k", 0))))


def _one_hot(node: Node) -> Value:
    index, depth, ends = node.constant(0), int(node.constant(1).item()), node.constant(2)
    rank = index.ndim + 1
    axis = node.axis(node.integer("axis", -1), rank)
    bearable((*index.shape, max(depth, 0)))
    hot = np.moveaxis((index % max(depth, 1))[..., None] == np.arange(depth), -1, axis)
    inside = np.expand_dims((index >= -depth) & (index < depth), axis)
    return np.where(hot & inside, ends[1], ends[0])


def _trilu(node: Node) -> Value:
    x = node.constant(0)
    k = int(node.single(1).item()) if node.given(1) else 0
    if x.ndim < 2:
        raise ModelFileError(f"Trilu needs a matrix; got a tensor of shape {x.shape}.")
    k = max(-x.shape[-2] - 1, min(x.shape[-1] + 1, k))
    return np.triu(x, k) if node.flag("upper", True) else np.tril(x, k)


def _cumulative_sum(node: Node) -> Value:
    x, axis = node.constant(0), node.axis(int(node.constant(1).item()), node.constant(0).ndim)
    x = np.flip(x, axis) if node.flag("reverse", False) else x
    total = np.cumsum(x, axis, dtype=x.dtype)
    total = total - x if node.flag("exclusive", False) else total
    return np.flip(total, axis) if node.flag("reverse", False) else total


def _mod(node: Node) -> Value:
    a, b = together(node.constant(0), node.constant(1))
    if not b.all():
        raise ModelFileError("Mod divides by zero.")
    return np.asarray(np.fmod(a, b) if node.flag("fmod", False) else np.mod(a, b))


def _compared(function: Callable[..., Any], make: Callable[[Node, Value, Value], Value]) -> Rule:
    """Return the rule of a comparison: a truth value of constants, one or zero of tensors."""

    def rule(node: Node) -> Value:
        a, b = node.value(0), node.value(1)
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            return make(node, a, b)
        return np.asarray(function(*together(a, b)))

    return rule


def _above(node: Node, a: Value, b: Value) -> Value:
    """Return one where ``a > b``, else zero: the difference, rounded up and clipped."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        away = node.apply(Add((1, -1)), a, b)
    elif isinstance(a, Tensor):
        away = node.apply(Scale(None, -np.asarray(node.operand(1), dtype=np.float64)), a)
    else:
        away = node.apply(Scale(np.array(-1.0), np.asarray(node.operand(0), dtype=np.float64)), b)
    return node.chain(away, Round("ceil"), Clip(0.0, 1.0))


def _turned(node: Node, value: Value) -> Value:
    return node.apply(Scale(np.array(-1.0), np.array(1.0)), value)


def _below(node: Node, a: Value, b: Value) -> Value:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return _above(node, b, a)
    if isinstance(a, Tensor):
        away = node.apply(Scale(np.array(-1.0), np.asarray(node.operand(1), dtype=np.float64)), a)
    else:
        away = node.apply(Scale(None, -np.asarray(node.operand(0), dtype=np.float64)), b)
    return node.chain(away, Round("ceil"), Clip(0.0, 1.0))


def _not(node: Node) -> Value:
    value = node.value(0)
    return _turned(node, value) if isinstance(value, Tensor) else np.logical_not(value)


def _both(node: Node, a: Value, b: Value) -> Value:
    return node.apply(
        Multiply(), *(v if isinstance(v, Tensor) else v.astype(np.float64) for v in (a, b))
    )


def _either(node: Node, a: Value, b: Value) -> Value:
    return node.apply(Maximum(), *(v if isinstance(v, Tensor) else v.astype(np.float64) for v in (a, b)))


def _arg(function: Callable[..., Any]) -> Rule:
    def fold(node: Node) -> Value:
        x = node.value(0)
        if isinstance(x, Tensor):
            raise UnsupportedModelError(
                f"{node.op} returns positions, which jump; choose an output with scores: output=NAME or "
                "--output NAME."
            )
        axis = node.axis(node.integer("axis", 0), x.ndim)
        if node.flag("select_last_index", False):
            x = np.flip(x, axis)
        found = function(x, axis=axis)
        found = x.shape[axis] - 1 - found if node.flag("select_last_index", False) else found
        return np.asarray(np.expand_dims(found, axis) if node.flag("keepdims", True) else found)

    return fold


def _non_zero(node: Node) -> Value:
    return np.asarray(np.nonzero(node.constant(0)), dtype=np.int64)


CONSTANTS: dict[str, Rule] = {
    "And": _compared(np.logical_and, _both),
    "ArgMax": _arg(np.argmax),
    "ArgMin": _arg(np.argmin),
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "CumSum": _cumulative_sum,
    "Equal": _elementwise(np.equal),
    "EyeLike": _eye_like,
    "Greater": _compared(np.greater, _above),
    "GreaterOrEqual": _compared(np.greater_equal, lambda node, a, b: _turned(node, _below(node, a, b))),
    "IsNaN": _elementwise(np.isnan),
    "Less": _compared(np.less, _below),
    "LessOrEqual": _compared(np.less_equal, lambda node, a, b: _turned(node, _above(node, a, b))),
    "Mod": _mod,
    "NonZero": _non_zero,
    "Not": _not,
    "OneHot": _one_hot,
    "Or": _compared(np.logical_or, _either),
    "Range": _range,
    "Shape": _shape,
    "Size": _size,
    "Trilu": _trilu,
    "Xor": _elementwise(np.logical_xor),
}
