"""ONNX operations that calculate: arithmetic, matrix products, and what makes ReLUs; the whole table."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io.expression import Expression, constant
from pindown.io.limits import MAX_UNITS, check_entries, check_multiplications
from pindown.io.onnx_moves import MOVES, moved, together
from pindown.io.onnx_node import Node, Value
from pindown.io.onnx_spatial import SPATIAL

# A bound this large is how old exporters write "no bound".
_NO_BOUND = float(np.finfo(np.float32).max)

# ---------------------------------------------------------------------- arithmetic


def _plus(a: Value, b: Value) -> Value:
    if isinstance(a, Expression):
        return a.add(b) if isinstance(b, Expression) else a.shift(_real(b))
    return _plus(b, a) if isinstance(b, Expression) else np.asarray(np.add(*together(a, b)))


def _times(a: Value, b: Value) -> Value:
    if isinstance(a, Expression):
        if isinstance(b, Expression):
            raise UnsupportedModelError("a product of two tensors is not piecewise linear.")
        return a.scale(_real(b))
    return _times(b, a) if isinstance(b, Expression) else np.asarray(np.multiply(*together(a, b)))


def _negative(a: Value) -> Value:
    return a.scale(np.array(-1.0)) if isinstance(a, Expression) else -a


def _real(constant: NDArray[Any]) -> Array:
    return np.asarray(constant, dtype=np.float64)


def _add(node: Node) -> Value:
    return reduce(_plus, node.operands())


def _subtract(node: Node) -> Value:
    return _plus(node.operand(0), _negative(node.operand(1)))


def _multiply(node: Node) -> Value:
    return _times(node.operand(0), node.operand(1))


def _divide(node: Node) -> Value:
    a, b = node.operand(0), node.constant(1)
    if not b.all():
        raise ModelFileError("Div divides by zero.")
    if isinstance(a, Expression):
        return a.scale(1.0 / node.weight(1))
    a, b = together(a, b)
    if a.dtype.kind == b.dtype.kind == "i":
        return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))  # ONNX rounds towards zero
    return np.asarray(np.true_divide(a, b))


def _negate(node: Node) -> Value:
    return _negative(node.operand(0))


def _constants_only(function: Callable[..., Array]) -> Callable[[Node], Value]:
    def fold(node: Node) -> Value:
        constants = [node.constant(i) for i in range(len(node.inputs))]
        return np.asarray(function(*together(*constants)))

    return fold


# ---------------------------------------------------------------------- matrix products


def _matmul(node: Node) -> Value:
    return _product(node.operand(0), node.operand(1))


def _product(a: Value, b: Value) -> Value:
    if isinstance(a, Expression):
        if isinstance(b, Expression):
            raise UnsupportedModelError("a product of two tensors is not piecewise linear.")
        return _tensor_times_matrix(a, _real(b))
    if isinstance(b, Expression):
        return _matrix_times_tensor(_real(a), b)
    size = math.prod(a.shape[:-1]) * math.prod(b.shape[:-2]) * math.prod(b.shape[-1:])
    check_entries(size, what="the result", limit=max(a.size, b.size, MAX_UNITS))
    check_multiplications(size, *a.shape[-1:])
    return np.asarray(a @ b)


def _tensor_times_matrix(x: Expression, W: Array) -> Expression:
    if W.ndim == 1:
        column = x.times_matrix(W[:, None])
        return column.reshape(column.shape[:-1])
    product = x.times_matrix(_one_matrix(W))
    extra = W.ndim - max(len(x.shape), 2)
    return product.reshape((1,) * max(extra, 0) + product.shape)


def _matrix_times_tensor(W: Array, x: Expression) -> Expression:
    if W.ndim == 1:
        row = x.matrix_times(W[None, :])
        axis = len(row.shape) - (1 if len(x.shape) == 1 else 2)
        return row.reshape(row.shape[:axis] + row.shape[axis + 1 :])
    product = x.matrix_times(_one_matrix(W))
    extra = W.ndim - max(len(x.shape), 2)
    return product.reshape((1,) * max(extra, 0) + product.shape)


def _one_matrix(W: Array) -> Array:
    if W.ndim < 2 or any(n != 1 for n in W.shape[:-2]):
        raise UnsupportedModelError(f"MatMul is read with one weight matrix, not a stack {W.shape}.")
    return W.reshape(W.shape[-2:])


def _gemm(node: Node) -> Value:
    a, b = node.operand(0), node.operand(1)
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise ModelFileError(f"Gemm needs two matrices; got shapes {a.shape} and {b.shape}.")
    if node.flag("transA", False):
        a = moved(a, np.transpose)
    if node.flag("transB", False):
        b = moved(b, np.transpose)
    result = _scaled(_product(a, b), node.real("alpha", 1.0))
    if node.given(2):
        shape = result.shape
        result = _plus(result, _scaled(node.operand(2), node.real("beta", 1.0)))
        if result.shape != shape:
            raise ModelFileError(f"Gemm cannot add a bias of shape {node.value(2).shape} to {shape}.")
    return result


def _scaled(value: Value, factor: float) -> Value:
    return value if factor == 1.0 else _times(value, np.array(factor))


# ---------------------------------------------------------------------- piecewise linear


def _relu(node: Node) -> Value:
    return node.lowering.relu(node.tensor(0))


def _leaky_relu(node: Node) -> Value:
    slope = node.real("alpha", 0.01)
    if not math.isfinite(slope):
        raise ModelFileError(f"LeakyRelu needs a finite slope; got {slope}.")
    return node.lowering.leaky_relu(node.tensor(0), np.array(slope))


def _prelu(node: Node) -> Value:
    x, slope = node.tensor(0), node.weight(1)
    if np.broadcast_shapes(x.shape, slope.shape) != x.shape:
        raise ModelFileError(f"a slope of shape {slope.shape} does not fit a tensor {x.shape}.")
    return node.lowering.leaky_relu(x, slope)


def _absolute(node: Node) -> Value:
    return node.lowering.leaky_relu(node.tensor(0), np.array(-1.0))


def _clip(node: Node) -> Value:
    low, high = node.scalar(1, "min", -math.inf), node.scalar(2, "max", math.inf)
    low = -math.inf if low <= -_NO_BOUND else low
    high = math.inf if high >= _NO_BOUND else high
    return node.lowering.clip(node.tensor(0), low, high)


def _maximum(node: Node) -> Value:
    return _largest(node, 1.0)


def _minimum(node: Node) -> Value:
    return _largest(node, -1.0)


def _largest(node: Node, sign: float) -> Value:
    """Return the maximum over all inputs, or the minimum for sign -1."""
    values = [_scaled(value, sign) for value in node.operands()]
    # Constants first: max(0, x) is then one ReLU and no residual connection.
    values.sort(key=lambda value: isinstance(value, Expression))

    def larger(a: Value, b: Value) -> Value:
        if not isinstance(a, Expression) and not isinstance(b, Expression):
            return np.maximum(*together(a, b))
        a, b = (v if isinstance(v, Expression) else constant(_real(v)) for v in (a, b))
        return node.lowering.maximum(a, b)

    return _scaled(reduce(larger, values), sign)


OPERATIONS: dict[str, Callable[[Node], Value | list[Value]]] = {
    **MOVES,
    **SPATIAL,
    "Abs": _absolute,
    "Add": _add,
    "Clip": _clip,
    "Div": _divide,
    "Gemm": _gemm,
    "LeakyRelu": _leaky_relu,
    "MatMul": _matmul,
    "Max": _maximum,
    "Min": _minimum,
    "Mul": _multiply,
    "Neg": _negate,
    "PRelu": _prelu,
    "Pow": _constants_only(np.power),
    "Reciprocal": _constants_only(np.reciprocal),
    "Relu": _relu,
    "Sqrt": _constants_only(np.sqrt),
    "Sub": _subtract,
    "Sum": _add,
}

SUPPORTED = (
    "pindown reads affine operations (Gemm, MatMul, Conv, BatchNormalization, AveragePool, ReduceMean, "
    "arithmetic with constants, sums of tensors), rearrangements (Reshape, Transpose, Slice, Concat, "
    "...), Relu, LeakyRelu, PRelu, Clip, Abs, Max, Min, MaxPool, and one last Softmax, LogSoftmax or "
    "Sigmoid"
)
