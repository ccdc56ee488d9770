"""ONNX operations on integers that stand for numbers, of the standard and onnxruntime's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.arithmetic import plus, times
from pindown.io._onnx.contrib import FLOAT, FLOATS, INT, INTS, STRING, STRINGS, Contract
from pindown.io._onnx.images import kernel_window, pool_window, spatial_axes
from pindown.io._onnx.node import Node, Rule, Value
from pindown.io._onnx.recurrent import DYNAMIC_LSTM
from pindown.model.builder import Tensor
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, Dense, Reduce
from pindown.model.operations.dynamic import DynamicProduct, DynamicQuantize, DynamicScale, DynamicZero
from pindown.model.operations.integer_weights import IntegerProduct, IntegerWeights
from pindown.model.operations.integers import RANGES, Dequantize, Quantize, ToFloat, float32
from pindown.model.operations.moves import Concat
from pindown.model.operations.operation import Operation
from pindown.model.operations.piecewise_linear import LeakyRelu
from pindown.model.operations.pooling import AveragePool
from pindown.model.operations.products import MatrixProduct, Multiply
from pindown.model.operations.quantised import Quantized
from pindown.model.operations.smooth import Sigmoid
from pindown.model.operations.softmax import Softmax

_KINDS = {2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 21: "uint4", 22: "int4"}

# ---------------------------------------------------------------------- scales and zero points


def _scale(node: Node, i: int) -> Array:
    scale = node.weight(i)
    if scale.ndim > 1:
        raise UnsupportedModelError(f"{node.op} with a scale for every block is not read.")
    return scale


def _zero(node: Node, i: int, scale: Array) -> Array:
    """Return the zero point, as many as there are scales."""
    if not node.given(i):
        return np.zeros(scale.shape)
    zero = node.constant(i)
    if zero.ndim > 1 or zero.size != scale.size:
        raise ModelFileError(f"{node.op} has {scale.size} scales and {zero.size} zero points.")
    return zero.reshape(-1) if scale.ndim else zero.reshape(-1)[0]


def _kind(node: Node, *inputs: int, default: str = "uint8") -> str:
    """Return the integer type of the first of these inputs whose type is known."""
    found = next((node.type(i) for i in inputs if node.given(i) and node.type(i)), default)
    if found not in RANGES:
        raise UnsupportedModelError(f"{node.op} with numbers of type {found} is not read.")
    return found


def _axis(node: Node, shape: tuple[int, ...], scale: Array) -> int | None:
    return None if scale.size == 1 else node.axis(node.integer("axis", 1), len(shape))


def _grid(node: Node, x: int, scale: int, zero: int, axis: int | None = None) -> Dequantize:
    """Return what the integers of input ``x`` stand for."""
    numbers = _scale(node, scale)
    kind = _kind(node, x, zero)
    return Dequantize(numbers, _zero(node, zero, numbers), None if numbers.size == 1 else axis, kind)


def _out(node: Node, scale: int, zero: int, like: str = "uint8") -> Quantize:
    """Return how results become integers."""
    numbers = _scale(node, scale)
    return Quantize(numbers, _zero(node, zero, numbers), _kind(node, zero, default=like), None)


# ---------------------------------------------------------------------- to integers and back


def _quantize(node: Node) -> Value:
    x, scale = node.operand(0), _scale(node, 1)
    declared = node.integer("output_dtype", 0)
    if declared and declared not in _KINDS:
        raise UnsupportedModelError(f"QuantizeLinear to the element type number {declared} is not read.")
    kind = _kind(node, 2, default=_KINDS.get(declared, "uint8"))
    if node.integer("block_size", 0):
        raise UnsupportedModelError("QuantizeLinear with a scale for every block is not read.")
    made = node.apply(Quantize(scale, _zero(node, 2, scale), kind, _axis(node, x.shape, scale)), x)
    return made if isinstance(made, Tensor) else made.astype(np.int64)


def _dequantize(node: Node) -> Value:
    x, scale = node.value(0), _scale(node, 1)
    if node.integer("block_size", 0):
        raise UnsupportedModelError("DequantizeLinear with a scale for every block is not read.")
    kind = _kind(node, 0, 2)
    grid = Dequantize(scale, _zero(node, 2, scale), _axis(node, x.shape, scale), kind)
    if isinstance(x, Tensor):
        return node.apply(grid, x)
    grid.shape(x.shape)
    made = grid(np.asarray(x, dtype=np.float64)[None])[0]
    if node.type(1) == "float":  # with another type, integers could not be told from the numbers
        made = float32(made)
    made = np.array(made)
    made.flags.writeable = False
    node.reading.grids[id(made)] = made, grid
    return made


def _dynamic_quantize(node: Node) -> list[Value]:
    x = node.operand(0)
    return [
        node.apply(DynamicQuantize(), x),
        node.apply(DynamicScale(), x),
        node.apply(DynamicZero(), x),
    ]


# ---------------------------------------------------------------------- products of integers


def _whole(node: Node, i: int) -> NDArray[Any]:
    values = node.constant(i)
    if values.dtype.kind not in "iu":
        raise ModelFileError(f"{node.op} needs integers as its input {i + 1}.")
    return values


def _own(node: Node, i: int, zero: int, axis: int) -> Dequantize:
    """Return the grid of weights whose integers, less their zero point, stand for themselves."""
    zeros = node.constant(zero).reshape(-1) if node.given(zero) else np.zeros(1)
    return Dequantize(np.ones(zeros.size), zeros, axis if zeros.size > 1 else None, _kind(node, i, zero))


def _integer_product(node: Node, x: Value, inner: IntegerWeights, i: int, zero: int) -> Value:
    """Multiply integers with weights; their zero point may depend on the input."""
    kind = _kind(node, i, zero)
    if node.given(zero) and isinstance(node.value(zero), Tensor):
        return node.apply(IntegerProduct(inner, None, kind), x, node.value(zero))
    numbers = node.constant(zero).reshape(-1) if node.given(zero) else np.zeros(1)
    if numbers.size != 1:
        raise UnsupportedModelError(f"{node.op} with a zero point for every row is not read.")
    return node.apply(IntegerProduct(inner, float(numbers[0]), kind), x)


def _matmul_integer(node: Node) -> Value:
    a, b = node.value(0), node.value(1)
    if isinstance(a, Tensor) and not isinstance(b, Tensor) and b.ndim == 2:
        inner = IntegerWeights.of(Dense, _whole(node, 1).T, _own(node, 1, 3, 0))
        return _integer_product(node, a, inner, 0, 2)
    if isinstance(b, Tensor) and not isinstance(a, Tensor) and a.ndim == 2:
        inner = IntegerWeights.of(lambda W, c: Dense(W, c, -2), _whole(node, 0), _own(node, 0, 2, 0))
        return _integer_product(node, b, inner, 1, 3)
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        left, right = (_less(node, i, i + 2) for i in (0, 1))
        return node.apply(MatrixProduct(), left, right)
    raise UnsupportedModelError("MatMulInteger is read with one weight matrix, or of two tensors.")


def _less(node: Node, i: int, zero: int) -> Value:
    """Return integers less their zero point."""
    x = node.value(i)
    if not node.given(zero):
        return x
    point = node.value(zero)
    if isinstance(point, Tensor):
        return node.apply(Add((1, -1)), x, point)
    return x if not point.any() else plus(node, x, -np.asarray(point, dtype=np.float64))


def _convolution_of(node: Node, kernel: int, image: tuple[int, ...]) -> Callable[..., AffineOperation]:
    window, groups = kernel_window(node, node.constant(kernel).shape, image)
    return lambda W, b: Convolution(W, b, window=window, groups=groups)


def _conv_integer(node: Node) -> Value:
    x = node.value(0)
    inner = IntegerWeights.of(_convolution_of(node, 1, x.shape), _whole(node, 1), _own(node, 1, 3, 0))
    return _integer_product(node, x, inner, 0, 2)


def _qlinear_conv(node: Node) -> Value:
    x = node.value(0)
    bias = _whole(node, 8) if node.given(8) else None
    operation = Quantized.product(
        "QLinearConv",
        _convolution_of(node, 3, x.shape),
        _whole(node, 3),
        _grid(node, 3, 4, 5, 0),
        bias,
        _grid(node, 0, 1, 2),
        _out(node, 6, 7, _kind(node, 0)),
    )
    return node.apply(operation, x)


def _qlinear_matmul(node: Node) -> Value:
    a, b = node.value(0), node.value(3)
    y = _out(node, 6, 7, _kind(node, 0))
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        grids = (_grid(node, 0, 1, 2), _grid(node, 3, 4, 5))
        return node.apply(Quantized(MatrixProduct(), grids, y, "QLinearMatMul"), a, b)
    first = isinstance(a, Tensor)
    x, i, j = (a, 0, 3) if first else (b, 3, 0)
    W = _whole(node, j)
    if isinstance(x, Tensor) and W.ndim == 2:
        make = Dense if first else lambda W, c: Dense(W, c, -2)
        grids = (_grid(node, j, j + 1, j + 2, 0), _grid(node, i, i + 1, i + 2))
        product = Quantized.product(
            "QLinearMatMul", make, W.T if first else W, grids[0], None, grids[1], y
        )
        return node.apply(product, x)
    raise UnsupportedModelError("QLinearMatMul is read with one weight matrix, or of two tensors.")


# ---------------------------------------------------------------------- onnxruntime's own


def _qgemm(node: Node) -> Value:
    a, b = node.value(0), _whole(node, 3)
    if node.finite("alpha", 1.0) != 1.0 or node.flag("transA", False) or not isinstance(a, Tensor):
        raise UnsupportedModelError("QGemm is read with alpha 1 and weights as its second matrix.")
    weight = b if node.flag("transB", False) else b.T
    bias = _whole(node, 6).reshape(-1) if node.given(6) else None
    if bias is not None and bias.size != len(weight):
        raise ModelFileError(f"a bias of {bias.size} numbers does not fit {len(weight)} outputs.")
    y = _out(node, 7, 8, _kind(node, 0)) if node.given(7) else None
    parts = (Dense, weight, _grid(node, 3, 4, 5, 0), bias, _grid(node, 0, 1, 2))
    return node.apply(Quantized.product("QGemm", *parts, y), a)


def _of_two(make: Callable[[], Operation]) -> Rule:
    def rule(node: Node) -> Value:
        grids = (_grid(node, 0, 1, 2), _grid(node, 3, 4, 5))
        operation = Quantized(make(), grids, _out(node, 6, 7, _kind(node, 0)), node.op)
        return node.apply(operation, *(node.as_tensor(node.value(i), node.trained(i)) for i in (0, 3)))

    return rule


def _of_one(node: Node, inner: Operation) -> Value:
    operation = Quantized(inner, (_grid(node, 0, 1, 2),), _out(node, 3, 4, _kind(node, 0)), node.op)
    return node.apply(operation, node.value(0))


def _qlinear_sigmoid(node: Node) -> Value:
    return _of_one(node, Sigmoid())


def _qlinear_leaky_relu(node: Node) -> Value:
    return _of_one(node, LeakyRelu(np.array(node.finite("alpha", 0.01))))


def _qlinear_softmax(node: Node) -> Value:
    shape = node.value(0).shape
    axis = node.axis(node.integer("axis", -1), len(shape))
    if node.integer("opset", 13) < 13 and math.prod(shape[axis:]) != shape[axis]:
        raise UnsupportedModelError("QLinearSoftmax over several axes is not read.")
    return _of_one(node, Softmax(axis))


def _qlinear_average_pool(node: Node) -> Value:
    if node.flag("channels_last", False):
        raise UnsupportedModelError(f"{node.op} with the channels last is not read.")
    window = pool_window(node, node.value(0).shape)
    return _of_one(node, AveragePool(window, node.flag("count_include_pad", False)))


def _qlinear_global_average_pool(node: Node) -> Value:
    if node.flag("channels_last", False):
        raise UnsupportedModelError(f"{node.op} with the channels last is not read.")
    return _of_one(node, Reduce(spatial_axes(node.value(0)), mean=True))


def _qlinear_concat(node: Node) -> Value:
    places = range(2, len(node.inputs), 3)
    if len(node.inputs) < 5 or (len(node.inputs) - 2) % 3:
        raise ModelFileError("QLinearConcat needs a scale and a zero point for each of its inputs.")
    grids = tuple(_grid(node, i, i + 1, i + 2) for i in places)
    axis = node.axis(node.integer("axis", 1), len(node.value(2).shape))
    operation = Quantized(Concat(axis), grids, _out(node, 0, 1, _kind(node, 2)), node.op)
    return node.apply(operation, *(node.as_tensor(node.value(i), node.trained(i)) for i in places))


def _dynamic_matmul(node: Node) -> Value:
    """Quantise, multiply integers, and return to numbers."""
    x, weight = node.operand(0), _whole(node, 1)
    if weight.ndim != 2:
        raise UnsupportedModelError(f"{node.op} is read with one weight matrix.")
    bias = node.weight(4).reshape(-1) if node.given(4) else None
    if bias is not None and bias.size != weight.shape[1]:
        raise ModelFileError(f"a bias of {bias.size} numbers does not fit {weight.shape[1]} outputs.")
    inner = IntegerWeights.of(Dense, weight.T, _grid(node, 1, 2, 3, 0), bias)
    return node.apply(DynamicProduct(inner), x)


def _matmul_to_float(node: Node) -> Value:
    """Multiply integers, and return to numbers by both scales."""
    a, weight = node.value(0), _whole(node, 1)
    if not isinstance(a, Tensor) or weight.ndim != 2:
        raise UnsupportedModelError(f"{node.op} is read with one weight matrix.")
    inner = IntegerWeights.of(Dense, weight.T, _own(node, 1, 5, 0))
    counted = _integer_product(node, a, inner, 0, 4)
    made = times(node, node.apply(ToFloat(), counted), node.operand(2))
    made = times(node, made, node.weight(3))
    return plus(node, made, node.weight(6), None, 6) if node.given(6) else made


QUANTISED: dict[str, Rule] = {
    "ConvInteger": _conv_integer,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "MatMulInteger": _matmul_integer,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
    "QuantizeLinear": _quantize,
}
_AXIS, _LAST = {"axis": INT}, {"channels_last": INT}
_POOL = {
    "auto_pad": STRING, "ceil_mode": INT, "count_include_pad": INT, "kernel_shape": INTS, "pads": INTS,
    "strides": INTS,
}  # fmt: skip
_LSTM_ATTRIBUTES = {
    "activation_alpha": FLOATS, "activation_beta": FLOATS, "activations": STRINGS, "clip": FLOAT,
    "direction": STRING, "hidden_size": INT, "input_forget": INT,
}  # fmt: skip
_FLOATS = "tensor(float)"
_mixed = partial(Contract, alike=False)
CONTRIB_QUANTISED: dict[str, tuple[Rule, Contract]] = {
    "DequantizeLinear": (_dequantize, _mixed(2, 3, _AXIS, like=None, makes=_FLOATS)),
    "DynamicQuantizeLSTM": (
        DYNAMIC_LSTM,
        _mixed(3, 12, _LSTM_ATTRIBUTES, outputs=3),
    ),
    "DynamicQuantizeMatMul": (_dynamic_matmul, _mixed(3, 5, {}, like=None, makes=_FLOATS)),
    "MatMulIntegerToFloat": (_matmul_to_float, _mixed(4, 7, {}, like=None, makes=_FLOATS)),
    "QGemm": (
        _qgemm,
        _mixed(6, 9, {"alpha": FLOAT, "transA": INT, "transB": INT}, makes=_FLOATS, like=8),
    ),
    "QLinearAdd": (_of_two(Add), _mixed(7, 8, {})),
    "QLinearAveragePool": (_qlinear_average_pool, _mixed(4, 5, {**_POOL, **_LAST})),
    "QLinearConcat": (_qlinear_concat, _mixed(5, 2**10, _AXIS, like=1)),
    "QLinearGlobalAveragePool": (_qlinear_global_average_pool, _mixed(4, 5, _LAST)),
    "QLinearLeakyRelu": (_qlinear_leaky_relu, _mixed(4, 5, {"alpha": FLOAT})),
    "QLinearMul": (_of_two(Multiply), _mixed(7, 8, {})),
    "QLinearSigmoid": (_qlinear_sigmoid, _mixed(4, 5, {})),
    "QLinearSoftmax": (_qlinear_softmax, _mixed(5, 5, {"axis": INT, "opset": INT})),
    "QuantizeLinear": (_quantize, _mixed(2, 3, _AXIS, like=2)),
}
