"""ONNX operations that calculate: on images, arithmetic, matrix products, and what makes ReLUs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._expression import Expression, constant, per_channel
from pindown.io._limits import MAX_UNITS, check_entries, check_multiplications
from pindown.io._onnx_data_movement import MOVES, moved, together
from pindown.io._onnx_node import Node, Value
from pindown.io._sliding_windows import Window

# A bound this large is how old exporters write "no bound".
_NO_BOUND = float(np.finfo(np.float32).max)
SUPPORTED = (
    "pindown reads affine operations (Gemm, MatMul, Conv, BatchNormalization, AveragePool, ReduceMean, "
    "arithmetic with constants, sums of tensors), rearrangements (Reshape, Transpose, Slice, Concat, "
    "...), Relu, LeakyRelu, PRelu, Clip, Abs, Max, Min, MaxPool, and one last Softmax, LogSoftmax or "
    "Sigmoid"
)


# ---------------------------------------------------------------------- sliding windows


def _window(node: Node, kernel: Sequence[int], image: Sequence[int]) -> Window:
    """Read strides, pads and dilations of a window that slides over an image (1, channels, ...)."""
    rank, spatial = len(kernel), image[2:]
    if len(spatial) != rank or rank == 0:
        raise ModelFileError(f"a kernel {tuple(kernel)} does not fit a tensor of shape {tuple(image)}.")
    strides = node.integers("strides", (1,) * rank)
    dilations = node.integers("dilations", (1,) * rank)
    pads = node.integers("pads", (0,) * (2 * rank))
    auto = node.text("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        if any(n != 1 for n in dilations):
            raise UnsupportedModelError(
                f"auto_pad '{auto}' with dilations is not read, because runtimes disagree on it; "
                "export the model with explicit pads."
            )
        pads = _same_pads(spatial, kernel, strides, upper=auto == "SAME_UPPER")
    elif auto == "VALID":
        pads = (0,) * (2 * rank)
    elif auto != "NOTSET":
        raise ModelFileError(f"auto_pad '{auto}' does not exist in ONNX.")
    if len(pads) != 2 * rank:
        raise ModelFileError(f"{node.op} needs {2 * rank} pads; got {len(pads)}.")
    ceil_mode = node.flag("ceil_mode", False)
    return Window(tuple(kernel), strides, pads[:rank], pads[rank:], dilations, ceil_mode)


def _same_pads(
    spatial: Sequence[int], kernel: Sequence[int], strides: Sequence[int], *, upper: bool
) -> tuple[int, ...]:
    """Return the pads that make the output ``ceil(size / stride)`` long."""
    few, many = [], []
    for size, k, stride in zip(spatial, kernel, strides, strict=True):
        total = (-(-size // stride) - 1) * stride + k - size
        if total < 0:
            raise ModelFileError(
                f"automatic padding with a stride of {stride} beyond a kernel of {k} is not read, "
                "because runtimes disagree on it; export the model with explicit pads."
            )
        few.append(total // 2)
        many.append(total - total // 2)
    return (*few, *many) if upper else (*many, *few)


def _pool_window(node: Node, image: Sequence[int]) -> Window:
    kernel = node.integers("kernel_shape")
    if kernel is None:
        raise ModelFileError(f"{node.op} lacks its kernel_shape.")
    window = _window(node, kernel, image)
    if any(p >= k for p, k in zip(window.before + window.after, window.kernel * 2, strict=True)):
        raise ModelFileError(f"{node.op} pads by a whole kernel {kernel} or more.")
    return window


def _conv(node: Node) -> Value:
    x, kernel = node.tensor(0), node.weight(1)
    declared = node.integers("kernel_shape")
    if kernel.ndim < 3 or (declared is not None and declared != kernel.shape[2:]):
        raise ModelFileError(f"a convolution kernel {kernel.shape} cannot have kernel_shape {declared}.")
    bias = node.weight(2) if node.given(2) else None
    if bias is not None and bias.shape != kernel.shape[:1]:
        raise ModelFileError(f"a bias {bias.shape} does not fit a convolution kernel {kernel.shape}.")
    if node.has("pads") and node.text("auto_pad", "NOTSET") != "NOTSET":
        raise ModelFileError("it has both pads and automatic padding.")
    window = _window(node, kernel.shape[2:], x.shape)
    return x.convolve(kernel, bias, window, node.integer("group", 1))


def _batch_normalization(node: Node) -> Value:
    # Before operator set 14, listing the outputs of training was how to ask for it.
    if node.flag("training_mode", False) or node.n_outputs > 1:
        raise UnsupportedModelError("it is in training mode; export the model in evaluation mode.")
    if not node.flag("spatial", True):
        raise UnsupportedModelError(
            "it normalises every pixel on its own (spatial=0), which is not read."
        )
    x = node.tensor(0)
    scale, shift, mean, variance = (node.weight(i) for i in range(1, 5))
    channels = x.shape[1:2] or (1,)
    if any(numbers.shape != channels for numbers in (scale, shift, mean, variance)):
        raise ModelFileError(f"its parameters do not fit a tensor of shape {x.shape}.")
    spread = variance + node.real("epsilon", 1e-5)
    if (spread <= 0).any():
        raise ModelFileError("it holds a variance that is not positive.")
    factor = scale / np.sqrt(spread)
    rank = max(2, len(x.shape))
    return x.scale(per_channel(factor, rank)).shift(per_channel(shift - mean * factor, rank))


def _average_pool(node: Node) -> Value:
    x = node.tensor(0)
    return x.average_pool(_pool_window(node, x.shape), node.flag("count_include_pad", False))


def _max_pool(node: Node) -> Value:
    x = node.tensor(0)
    return node.lowering.max_pool(x, _pool_window(node, x.shape))


def _spatial(x: Expression) -> tuple[int, ...]:
    if len(x.shape) < 3:
        raise ModelFileError(f"a tensor of shape {x.shape} is no image.")
    return x.shape[2:]


def _global_average_pool(node: Node) -> Value:
    x = node.tensor(0)
    return _mean(x, range(2, 2 + len(_spatial(x))))


def _global_max_pool(node: Node) -> Value:
    x = node.tensor(0)
    spatial = _spatial(x)
    ones, zeros = (1,) * len(spatial), (0,) * len(spatial)
    return node.lowering.max_pool(x, Window(spatial, ones, zeros, zeros, ones))


# ---------------------------------------------------------------------- sums over axes


def _reduce_sum(node: Node) -> Value:
    return _reduced(node, _total)


def _reduce_mean(node: Node) -> Value:
    return _reduced(node, _mean)


def _reduced(node: Node, along: Callable[[Expression, Sequence[int]], Expression]) -> Value:
    x, axes = node.tensor(0), node.numbers(1, "axes")
    rank = len(x.shape)
    if not axes:
        if node.flag("noop_with_empty_axes", False):
            return x
        axes = tuple(range(rank))
    if any(not -rank <= axis < rank for axis in axes):
        raise ModelFileError(f"{node.op} names the axes {axes} of a tensor of rank {rank}.")
    reduced = sorted({axis % rank for axis in axes})
    result = along(x, reduced)
    if node.flag("keepdims", True):
        return result
    return result.reshape(tuple(n for i, n in enumerate(result.shape) if i not in reduced))


def _total(x: Expression, axes: Sequence[int]) -> Expression:
    """Sum over axes, which stay with length one."""
    kept = [i for i in range(len(x.shape)) if i not in axes]
    count = math.prod(x.shape[i] for i in axes)
    size = math.prod(x.shape)
    columns = np.arange(size).reshape(x.shape).transpose(*kept, *axes).ravel()
    starts = np.arange(0, size + 1, count)
    matrix = sp.csr_array((np.ones(size), columns, starts), shape=(size // count, size))
    return x.map(matrix, tuple(1 if i in axes else n for i, n in enumerate(x.shape)))


def _mean(x: Expression, axes: Sequence[int]) -> Expression:
    """Average over axes, which stay with length one."""
    return _total(x, axes).scale(np.array(1.0 / math.prod(x.shape[i] for i in axes)))


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
    "Abs": _absolute,
    "Add": _add,
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_normalization,
    "Clip": _clip,
    "Conv": _conv,
    "Div": _divide,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_average_pool,
    "GlobalMaxPool": _global_max_pool,
    "LeakyRelu": _leaky_relu,
    "MatMul": _matmul,
    "Max": _maximum,
    "MaxPool": _max_pool,
    "Min": _minimum,
    "Mul": _multiply,
    "Neg": _negate,
    "PRelu": _prelu,
    "Pow": _constants_only(np.power),
    "Reciprocal": _constants_only(np.reciprocal),
    "ReduceMean": _reduce_mean,
    "ReduceSum": _reduce_sum,
    "Relu": _relu,
    "Sqrt": _constants_only(np.sqrt),
    "Sub": _subtract,
    "Sum": _add,
}
