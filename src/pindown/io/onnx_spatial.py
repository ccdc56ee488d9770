"""ONNX operations on images and over axes: convolution, normalisation, pooling, sums and means."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io.expression import Expression, per_channel
from pindown.io.onnx_node import Node, Value
from pindown.io.windows import Window

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


SPATIAL: dict[str, Callable[[Node], Value]] = {
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_normalization,
    "Conv": _conv,
    "GlobalAveragePool": _global_average_pool,
    "GlobalMaxPool": _global_max_pool,
    "MaxPool": _max_pool,
    "ReduceMean": _reduce_mean,
    "ReduceSum": _reduce_sum,
}
