"""What each torch operation does to an expression.

Three tables, from a module's class, a function, or a tensor method's name to a rule. The rules
have the argument names of the torch functions, so that traced calls fit as they stand.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from pindown.affine import Array
from pindown.errors import UnsupportedModelError
from pindown.io._expression import Expression, concatenate, constant, per_channel
from pindown.io._lowering import Lowering
from pindown.io._sliding_windows import Window

OUTPUT_ACTIVATIONS: dict[Any, str] = {
    nn.Softmax: "softmax",
    nn.LogSoftmax: "log_softmax",
    nn.Sigmoid: "sigmoid",
    F.softmax: "softmax",
    torch.softmax: "softmax",
    F.log_softmax: "log_softmax",
    torch.log_softmax: "log_softmax",
    torch.sigmoid: "sigmoid",
    F.sigmoid: "sigmoid",
    "softmax": "softmax",
    "log_softmax": "log_softmax",
    "sigmoid": "sigmoid",
}


def array(tensor: Any) -> Array:
    """Return a parameter as a float64 array."""
    return tensor.detach().to("cpu", torch.float64).numpy()


# ---------------------------------------------------------------------- piecewise linear rules


def _relu(low: Lowering, x: Expression, inplace: bool = False) -> Expression:
    return low.relu(x)


def _leaky_relu(
    low: Lowering, x: Expression, negative_slope: float = 0.01, inplace: bool = False
) -> Expression:
    return low.leaky_relu(x, np.array(negative_slope))


def _prelu(low: Lowering, x: Expression, weight: Array) -> Expression:
    return low.leaky_relu(x, per_channel(weight, len(x.shape)) if weight.size > 1 else weight)


def _clamp(low: Lowering, x: Expression, min: Any = None, max: Any = None) -> Expression:
    return low.clip(x, -math.inf if min is None else float(min), math.inf if max is None else float(max))


def _hardtanh(
    low: Lowering, x: Expression, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Expression:
    return low.clip(x, min_val, max_val)


def _relu6(low: Lowering, x: Expression, inplace: bool = False) -> Expression:
    return low.clip(x, 0.0, 6.0)


def _abs(low: Lowering, x: Expression) -> Expression:
    return low.leaky_relu(x, np.array(-1.0))


def _maximum(low: Lowering, x: Any, other: Any) -> Expression:
    return low.maximum(*_constant_first(x, other))


def _minimum(low: Lowering, x: Any, other: Any) -> Expression:
    return _neg(low, low.maximum(*(_neg(low, value) for value in _constant_first(x, other))))


def _constant_first(*values: Any) -> list[Expression]:
    """Return both as tensors; a maximum with a constant is then one ReLU and no residual connection."""
    tensors = [v if isinstance(v, Expression) else constant(np.asarray(v, float)) for v in values]
    return sorted(tensors, key=lambda tensor: bool(tensor.terms))


# ---------------------------------------------------------------------- affine rules


def _add(low: Lowering, x: Any, other: Any, alpha: float = 1.0) -> Expression:
    if isinstance(x, Expression) and isinstance(other, Expression):
        return x.add(other.scale(np.array(alpha)))
    if isinstance(x, Expression):
        return x.shift(alpha * np.asarray(other, dtype=float))
    return other.scale(np.array(alpha)).shift(np.asarray(x, dtype=float))


def _sub(low: Lowering, x: Any, other: Any, alpha: float = 1.0) -> Expression:
    return _add(low, x, other, alpha=-alpha)


def _mul(low: Lowering, x: Any, other: Any) -> Expression:
    if isinstance(x, Expression) and isinstance(other, Expression):
        raise UnsupportedModelError("a product of two computed tensors is not piecewise linear.")
    variable, factor = (x, other) if isinstance(x, Expression) else (other, x)
    return variable.scale(np.asarray(factor, dtype=float))


def _div(low: Lowering, x: Any, other: Any) -> Expression:
    if isinstance(other, Expression):
        raise UnsupportedModelError("dividing by a computed tensor is not piecewise linear.")
    return x.scale(1.0 / np.asarray(other, dtype=float))


def _neg(low: Lowering, x: Expression) -> Expression:
    return x.scale(np.array(-1.0))


def _linear(low: Lowering, x: Expression, weight: Array, bias: Array | None = None) -> Expression:
    product = x.times_matrix(weight.T)
    return product if bias is None else product.shift(bias)


def _matmul(low: Lowering, x: Any, other: Any) -> Expression:
    if isinstance(x, Expression) and isinstance(other, Expression):
        raise UnsupportedModelError("a product of two computed tensors is not piecewise linear.")
    return x.times_matrix(other) if isinstance(x, Expression) else other.matrix_times(x)


def _conv(
    low: Lowering,
    x: Expression,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Expression:
    kernel = weight.shape[2:]
    dilations = _tuple(dilation, len(kernel))
    if padding == "same":  # torch puts the odd one after
        total = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
        before = tuple(t // 2 for t in total)
        after = tuple(t - b for t, b in zip(total, before, strict=True))
    else:
        before = after = _tuple(0 if padding == "valid" else padding, len(kernel))
    window = Window(tuple(kernel), _tuple(stride, len(kernel)), before, after, dilations)
    return x.convolve(weight, bias, window, groups)


def _max_pool(
    low: Lowering,
    x: Expression,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Expression:
    if return_indices:
        raise UnsupportedModelError("the indices of max pooling are not piecewise linear.")
    return low.max_pool(x, _pool_window(x, kernel_size, stride, padding, dilation, ceil_mode))


def _avg_pool(
    low: Lowering,
    x: Expression,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Expression:
    if divisor_override is not None:
        raise UnsupportedModelError("average pooling with divisor_override is not read.")
    window = _pool_window(x, kernel_size, stride, padding, 1, ceil_mode)
    return x.average_pool(window, count_include_pad)


def _adaptive_avg_pool(low: Lowering, x: Expression, output_size: Any) -> Expression:
    spatial = x.shape[2:]
    wanted = [
        n if w is None else w for n, w in zip(spatial, _tuple(output_size, len(spatial)), strict=True)
    ]
    if any(n % w for n, w in zip(spatial, wanted, strict=True)):
        raise UnsupportedModelError(f"adaptive pooling from {spatial} to {tuple(wanted)} is uneven.")
    kernel = tuple(n // w for n, w in zip(spatial, wanted, strict=True))
    return _avg_pool(low, x, kernel)


def _batch_norm(low: Lowering, x: Expression, part: Any) -> Expression:
    if part.running_mean is None:
        raise UnsupportedModelError("it has no running statistics, so its output depends on the batch.")
    scale = 1.0 / np.sqrt(array(part.running_var) + part.eps)
    offset = -array(part.running_mean) * scale
    if part.affine:
        scale, offset = scale * array(part.weight), offset * array(part.weight) + array(part.bias)
    rank = len(x.shape)
    return x.scale(per_channel(scale, rank)).shift(per_channel(offset, rank))


def _mean(low: Lowering, x: Expression, dim: Any = None, keepdim: bool = False) -> Expression:
    rank = len(x.shape)
    axes = range(rank) if dim is None else [d % rank for d in np.atleast_1d(dim)]
    kept = [axis for axis in range(rank) if axis not in axes]
    count = math.prod(x.shape[axis] for axis in axes)
    moved = x.rearrange(lambda i: i.transpose(*kept, *axes))
    flat = moved.reshape((*(x.shape[axis] for axis in kept), count))
    averaged = flat.times_matrix(np.full((count, 1), 1.0 / count))
    shape = [1 if axis in axes else x.shape[axis] for axis in range(rank) if keepdim or axis in kept]
    return averaged.reshape(shape)


# ---------------------------------------------------------------------- rules that only move entries


def _same(low: Lowering, x: Expression, *_: Any, **__: Any) -> Expression:
    return x


def _copied(low: Lowering, x: Expression) -> Expression:
    return replace(x)


def _size(low: Lowering, x: Expression, dim: int | None = None) -> Any:
    return x.shape if dim is None else x.shape[dim]


def _attribute(low: Lowering, x: Expression, name: str) -> Any:
    if name == "shape":
        return x.shape
    raise UnsupportedModelError(f"the attribute {name!r} of a tensor is not read.")


def _reshape(low: Lowering, x: Expression, *shape: Any) -> Expression:
    wanted = list(shape[0] if isinstance(shape[0], Sequence) else shape)
    if -1 in wanted:
        known = -math.prod(wanted)
        wanted[wanted.index(-1)] = math.prod(x.shape) // max(1, known)
    if math.prod(wanted) != math.prod(x.shape):
        raise UnsupportedModelError(f"a tensor of shape {x.shape} cannot take shape {tuple(wanted)}.")
    return x.reshape(wanted)


def _flatten(low: Lowering, x: Expression, start_dim: int = 0, end_dim: int = -1) -> Expression:
    start, stop = start_dim % len(x.shape), end_dim % len(x.shape) + 1
    return x.reshape((*x.shape[:start], math.prod(x.shape[start:stop]), *x.shape[stop:]))


def _unflatten(low: Lowering, x: Expression, dim: int, sizes: Any) -> Expression:
    axis = dim % len(x.shape)
    return _reshape(low, x, (*x.shape[:axis], *sizes, *x.shape[axis + 1 :]))


def _squeeze(low: Lowering, x: Expression, dim: Any = None) -> Expression:
    axes = range(len(x.shape)) if dim is None else [d % len(x.shape) for d in np.atleast_1d(dim)]
    return x.reshape([n for axis, n in enumerate(x.shape) if n != 1 or axis not in axes])


def _unsqueeze(low: Lowering, x: Expression, dim: int) -> Expression:
    return x.rearrange(lambda i: np.expand_dims(i, dim))


def _transpose(low: Lowering, x: Expression, dim0: int, dim1: int) -> Expression:
    return x.rearrange(lambda i: i.swapaxes(dim0, dim1))


def _permute(low: Lowering, x: Expression, *dims: Any) -> Expression:
    order = dims[0] if isinstance(dims[0], Sequence) else dims
    return x.rearrange(lambda i: i.transpose(order))


def _getitem(low: Lowering, x: Expression, index: Any) -> Expression:
    return x.rearrange(lambda i: np.asarray(i[index]))


def _cat(low: Lowering, tensors: Sequence[Expression], dim: int = 0) -> Expression:
    return concatenate(tensors, dim)


# ---------------------------------------------------------------------- helpers


def _tuple(value: Any, rank: int) -> tuple[int, ...]:
    return (value,) * rank if isinstance(value, int) else tuple(value)


def _pool_window(
    x: Expression, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Window:
    rank = len(x.shape) - 2
    kernel, pads = _tuple(kernel_size, rank), _tuple(padding, rank)
    strides = kernel if stride in (None, [], ()) else _tuple(stride, rank)
    return Window(kernel, strides, pads, pads, _tuple(dilation, rank), ceil_mode)


def _conv_module(low: Lowering, x: Expression, m: Any) -> Expression:
    if m.padding_mode != "zeros":
        raise UnsupportedModelError(f"padding_mode {m.padding_mode!r} is not read; use 'zeros'.")
    bias = None if m.bias is None else array(m.bias)
    return _conv(low, x, array(m.weight), bias, m.stride, m.padding, m.dilation, m.groups)


def _linear_module(low: Lowering, x: Expression, m: Any) -> Expression:
    return _linear(low, x, array(m.weight), None if m.bias is None else array(m.bias))


def _max_pool_module(low: Lowering, x: Expression, m: Any) -> Expression:
    return _max_pool(
        low, x, m.kernel_size, m.stride, m.padding, m.dilation, m.ceil_mode, m.return_indices
    )


def _avg_pool_module(low: Lowering, x: Expression, m: Any) -> Expression:
    divisor = getattr(m, "divisor_override", None)
    return _avg_pool(
        low, x, m.kernel_size, m.stride, m.padding, m.ceil_mode, m.count_include_pad, divisor
    )


MODULES: dict[type, Any] = {
    nn.Linear: _linear_module,
    nn.Conv1d: _conv_module,
    nn.Conv2d: _conv_module,
    nn.Conv3d: _conv_module,
    nn.BatchNorm1d: _batch_norm,
    nn.BatchNorm2d: _batch_norm,
    nn.BatchNorm3d: _batch_norm,
    nn.MaxPool1d: _max_pool_module,
    nn.MaxPool2d: _max_pool_module,
    nn.MaxPool3d: _max_pool_module,
    nn.AvgPool1d: _avg_pool_module,
    nn.AvgPool2d: _avg_pool_module,
    nn.AvgPool3d: _avg_pool_module,
    nn.AdaptiveAvgPool1d: lambda low, x, m: _adaptive_avg_pool(low, x, m.output_size),
    nn.AdaptiveAvgPool2d: lambda low, x, m: _adaptive_avg_pool(low, x, m.output_size),
    nn.ReLU: lambda low, x, m: low.relu(x),
    nn.ReLU6: lambda low, x, m: _relu6(low, x),
    nn.LeakyReLU: lambda low, x, m: _leaky_relu(low, x, m.negative_slope),
    nn.PReLU: lambda low, x, m: _prelu(low, x, array(m.weight)),
    nn.Hardtanh: lambda low, x, m: low.clip(x, m.min_val, m.max_val),
    nn.Flatten: lambda low, x, m: _flatten(low, x, m.start_dim, m.end_dim),
    nn.Unflatten: lambda low, x, m: _unflatten(low, x, m.dim, m.unflattened_size),
    **dict.fromkeys((nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d), _same),
}

FUNCTIONS: dict[Any, Any] = {
    **dict.fromkeys((torch.relu, F.relu), _relu),
    F.relu6: _relu6,
    F.leaky_relu: _leaky_relu,
    F.hardtanh: _hardtanh,
    **dict.fromkeys((torch.clamp, torch.clip), _clamp),
    **dict.fromkeys((torch.abs, operator.abs), _abs),
    torch.maximum: _maximum,
    torch.minimum: _minimum,
    **dict.fromkeys((operator.add, operator.iadd, torch.add), _add),
    **dict.fromkeys((operator.sub, operator.isub, torch.sub), _sub),
    **dict.fromkeys((operator.mul, operator.imul, torch.mul), _mul),
    **dict.fromkeys((operator.truediv, operator.itruediv, torch.div), _div),
    **dict.fromkeys((operator.neg, torch.neg), _neg),
    F.linear: _linear,
    **dict.fromkeys((torch.matmul, operator.matmul, torch.mm), _matmul),
    **dict.fromkeys((F.conv1d, F.conv2d, F.conv3d), _conv),
    **dict.fromkeys((F.max_pool1d, F.max_pool2d, F.max_pool3d), _max_pool),
    **dict.fromkeys((F.avg_pool1d, F.avg_pool2d, F.avg_pool3d), _avg_pool),
    **dict.fromkeys((F.adaptive_avg_pool1d, F.adaptive_avg_pool2d), _adaptive_avg_pool),
    torch.mean: _mean,
    torch.flatten: _flatten,
    torch.reshape: _reshape,
    torch.squeeze: _squeeze,
    torch.unsqueeze: _unsqueeze,
    torch.transpose: _transpose,
    torch.permute: _permute,
    **dict.fromkeys((torch.cat, torch.concat), _cat),
    operator.getitem: _getitem,
    getattr: _attribute,
    **dict.fromkeys((F.dropout, F.dropout2d), _same),
}

# Operations whose result shares (or may share) memory with their input, so that a later change in
# place shows in both.
VIEWS = {
    *(nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, F.dropout, F.dropout2d),
    *("contiguous", "detach", "double", "float"),
    *(nn.Flatten, nn.Unflatten, torch.flatten, torch.reshape, torch.squeeze, torch.unsqueeze),
    *(torch.transpose, torch.permute, operator.getitem),
    *("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "transpose", "permute"),
}

METHODS: dict[str, Any] = {
    **dict.fromkeys(("relu", "relu_"), _relu),
    **dict.fromkeys(("clamp", "clip"), _clamp),
    "abs": _abs,
    **dict.fromkeys(("add", "add_"), _add),
    **dict.fromkeys(("sub", "sub_"), _sub),
    **dict.fromkeys(("mul", "mul_"), _mul),
    **dict.fromkeys(("div", "div_"), _div),
    "neg": _neg,
    "matmul": _matmul,
    "mean": _mean,
    **dict.fromkeys(("view", "reshape"), _reshape),
    "flatten": _flatten,
    "unflatten": _unflatten,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "transpose": _transpose,
    "permute": _permute,
    "size": _size,
    "detach": _same,
    # Another object, because a change in place reaches all names of one and the same object.
    **dict.fromkeys(("clone", "contiguous", "double", "float"), _copied),
}
