"""What every ONNX operation computes, on arrays, straight from the operator specification.

This is the reader's second opinion (:mod:`pindown.io._agreement`) and knows nothing of the first: not
one line is shared with the rules that turn a graph into ReLUs. The functions take float64 arrays or
object arrays of ``Fraction``, so that a graph can also be evaluated without rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from onnx import TensorProto

Numbers: TypeAlias = NDArray[Any]

FLOATS = {
    TensorProto.FLOAT: "float32",
    TensorProto.DOUBLE: "float64",
    TensorProto.FLOAT16: "float16",
}
INTEGERS = {
    TensorProto.UINT8: "uint8",
    TensorProto.INT8: "int8",
    TensorProto.UINT16: "uint16",
    TensorProto.INT16: "int16",
    TensorProto.INT32: "int32",
    TensorProto.INT64: "int64",
    TensorProto.UINT32: "uint32",
    TensorProto.UINT64: "uint64",
    TensorProto.BOOL: "bool",
}


@dataclass(frozen=True)
class Call:
    """One node about to be evaluated.

    Attributes:
        inputs: The arrays, None where an optional input is left out.
        attributes: Plain numbers, texts, lists and arrays by name.
        opset: The version of the operator set.
        n_outputs: How many outputs the node lists.
        constant: Whether no input depends on the model's input.
    """

    inputs: Sequence[Any]
    attributes: dict[str, Any]
    opset: int
    n_outputs: int = 1
    constant: bool = False

    def get(self, name: str, default: Any) -> Any:
        """Return an attribute."""
        return self.attributes.get(name, default)

    def has(self, i: int) -> bool:
        """Return whether input ``i`` is given."""
        return i < len(self.inputs) and self.inputs[i] is not None

    def either(self, i: int, name: str) -> Any:
        """Return what is an input in new operator sets and an attribute in old ones, or None."""
        return self.inputs[i] if self.has(i) else self.get(name, None)


# ---------------------------------------------------------------------- arithmetic


def _divide(call: Call) -> Numbers:
    a, b = call.inputs
    if np.result_type(a, b).kind in "iu":  # rounds towards zero
        quotients = [int(Fraction(int(m), int(n))) for m, n in np.broadcast(a, b)]
        return np.array(quotients, a.dtype).reshape(np.broadcast_shapes(a.shape, b.shape))
    return np.asarray(a / b)


def _gemm(call: Call) -> Numbers:
    a, b = call.inputs[:2]
    a = a.T if call.get("transA", 0) else a
    b = b.T if call.get("transB", 0) else b
    product = like(call.get("alpha", 1.0), a, b) * np.matmul(a, b)
    return product + like(call.get("beta", 1.0), a, b) * call.inputs[2] if call.has(2) else product


def like(number: float, *arrays: Numbers) -> Any:
    """Return a number that does not round rationals it is multiplied with."""
    return Fraction(number) if any(a.dtype == object for a in arrays) else number


def _roots(values: Numbers) -> Numbers:
    roots = np.sqrt(np.asarray(values, dtype=np.float64))
    return as_fractions(roots) if values.dtype == object else roots


def as_fractions(values: Numbers) -> Numbers:
    """Return float numbers as an object array of the rationals they are."""
    flat = [Fraction(float(v)) for v in values.ravel()]
    made = np.empty(len(flat), dtype=object)
    made[:] = flat
    return made.reshape(values.shape)


def _power(call: Call) -> Numbers:
    base, exponent = (np.asarray(a, float) if a.dtype == object else a for a in call.inputs)
    powers = np.power(base, exponent).astype(base.dtype)
    return as_fractions(powers) if call.inputs[0].dtype == object else powers


# ---------------------------------------------------------------------- piecewise linear


def _clip(call: Call) -> Numbers:
    x, low, high = call.inputs[0], call.either(1, "min"), call.either(2, "max")
    if low is not None:
        x = np.maximum(x, low if isinstance(low, np.ndarray) else like(low, x))
    if high is not None:
        x = np.minimum(x, high if isinstance(high, np.ndarray) else like(high, x))
    return x


def _leaky_relu(call: Call) -> Numbers:
    x = call.inputs[0]
    return np.where(x < 0, like(call.get("alpha", 0.01), x) * x, x)


def _prelu(call: Call) -> Numbers:
    x, slope = call.inputs
    return np.where(x < 0, slope * x, x)


# ---------------------------------------------------------------------- images


def _geometry(call: Call, size: Sequence[int], kernel: Sequence[int]) -> tuple[Any, ...]:
    """Return strides, dilations, pads before and after, and output lengths of a sliding window."""
    rank = len(kernel)
    strides = call.get("strides", [1] * rank)
    dilations = call.get("dilations", [1] * rank)
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    auto = call.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        lengths = [-(-n // s) for n, s in zip(size, strides, strict=True)]
        total = [
            max((m - 1) * s + r - n, 0) for m, s, r, n in zip(lengths, strides, reach, size, strict=True)
        ]
        smaller, larger = [t // 2 for t in total], [t - t // 2 for t in total]
        before, after = (smaller, larger) if auto == "SAME_UPPER" else (larger, smaller)
        return strides, dilations, before, after, lengths
    pads = [0] * (2 * rank) if auto == "VALID" else call.get("pads", [0] * (2 * rank))
    before, after = pads[:rank], pads[rank:]
    lengths = []
    for n, p, q, r, s in zip(size, before, after, reach, strides, strict=True):
        if call.get("ceil_mode", 0):
            steps = math.ceil((n + p + q - r) / s) + 1
            steps -= (steps - 1) * s >= n + p  # a window that starts in the padding behind is left out
        else:
            steps = (n + p + q - r) // s + 1
        lengths.append(steps)
    return strides, dilations, before, after, lengths


def _windows(x: Numbers, kernel: Sequence[int], geometry: tuple[Any, ...], fill: Any) -> Numbers:
    """Return the view (batch, channels, *output, *kernel) of an image padded with ``fill``."""
    strides, dilations, before, after, lengths = geometry
    rank = len(kernel)
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    # In ceil mode the last window may reach beyond the padding.
    beyond = [
        max(q, (m - 1) * s + r - n - p)
        for m, s, r, n, p, q in zip(lengths, strides, reach, x.shape[2:], before, after, strict=True)
    ]
    widths = [(0, 0), (0, 0), *zip(before, beyond, strict=True)]
    padded = np.pad(x, widths, constant_values=fill)
    views = sliding_window_view(padded, reach, axis=tuple(range(2, 2 + rank)))
    steps = tuple(slice(0, (m - 1) * s + 1, s) for m, s in zip(lengths, strides, strict=True))
    points = tuple(slice(None, None, d) for d in dilations)
    return views[(slice(None), slice(None), *steps, *points)]


def _conv(call: Call) -> Numbers:
    x, W = call.inputs[:2]
    kernel, groups = W.shape[2:], call.get("group", 1)
    rank = len(kernel)
    windows = _windows(x, kernel, _geometry(call, x.shape[2:], kernel), 0)
    inside = W.shape[1]
    axes = [1, *range(2 + rank, 2 + 2 * rank)]
    parts = []
    for g in range(groups):
        K = W[g * (len(W) // groups) : (g + 1) * (len(W) // groups)]
        part = np.tensordot(
            windows[:, g * inside : (g + 1) * inside], K, (axes, [1, *range(2, 2 + rank)])
        )
        parts.append(np.moveaxis(part, -1, 1))
    y = np.concatenate(parts, axis=1)
    return y + call.inputs[2].reshape(-1, *[1] * rank) if call.has(2) else y


def _max_pool(call: Call) -> Numbers:
    x, kernel = call.inputs[0], call.get("kernel_shape", None)
    x = x.astype(np.float64) if x.dtype.kind in "iu" else x
    windows = _windows(x, kernel, _geometry(call, x.shape[2:], kernel), -math.inf)
    return windows.max(axis=tuple(range(-len(kernel), 0)))


def _average_pool(call: Call) -> Numbers:
    x, kernel = call.inputs[0], call.get("kernel_shape", None)
    geometry = _geometry(call, x.shape[2:], kernel)
    inside, seen = np.ones((1, 1, *x.shape[2:]), dtype=np.int64), geometry
    if call.get("count_include_pad", 0):
        strides, dilations, before, after, lengths = geometry
        inside = np.pad(inside, [(0, 0), (0, 0), *zip(before, after, strict=True)], constant_values=1)
        nothing = [0] * len(kernel)
        seen = (strides, dilations, nothing, nothing, lengths)
    axes = tuple(range(-len(kernel), 0))
    counts = _windows(inside, kernel, seen, 0).sum(axis=axes).astype(x.dtype)
    return _windows(x, kernel, geometry, 0).sum(axis=axes) / counts


def _batch_normalization(call: Call) -> Numbers:
    x = call.inputs[0]
    scale, shift, mean, variance = (p.reshape(-1, *[1] * max(0, x.ndim - 2)) for p in call.inputs[1:5])
    return (x - mean) / _roots(variance + like(call.get("epsilon", 1e-5), x)) * scale + shift


def _global(call: Call, along: Callable[..., Any]) -> Numbers:
    x = call.inputs[0]
    return np.asarray(along(x, tuple(range(2, x.ndim))))


def _average(x: Numbers, axes: tuple[int, ...]) -> Numbers:
    return np.asarray(x.sum(axis=axes, keepdims=True)) / math.prod(x.shape[a] for a in axes)


def _total(x: Numbers, axes: tuple[int, ...]) -> Numbers:
    return np.asarray(x.sum(axis=axes, keepdims=True))


def _reduce(call: Call, along: Callable[..., Numbers]) -> Numbers:
    x, axes = call.inputs[0], call.either(1, "axes")
    if axes is None or len(axes) == 0:
        if call.get("noop_with_empty_axes", 0):
            return np.asarray(x)
        axes = range(x.ndim)
    chosen = tuple(int(a) % x.ndim for a in axes)
    y = along(x, chosen)
    return (
        y
        if call.get("keepdims", 1)
        else y.reshape([n for i, n in enumerate(y.shape) if i not in chosen])
    )


# ---------------------------------------------------------------------- moves


def _cast(call: Call) -> Numbers:
    x, to = call.inputs[0], call.get("to", None)
    if to in INTEGERS:
        return x.astype(INTEGERS[to])
    if x.dtype.kind in "iub":
        return x.astype(np.float64)
    if not call.constant or x.dtype == object:
        return np.asarray(x)  # a change of precision; what depends on the input is not rounded here
    return rounded(x, to)


def rounded(x: Numbers, element_type: int) -> Numbers:
    """Return numbers as a smaller float type holds them, in float64 again.

    >>> rounded(np.array([0.1, 1.0]), TensorProto.FLOAT16)
    array([0.09997559, 1.        ])
    """
    if element_type != TensorProto.BFLOAT16:
        return x.astype(FLOATS[element_type]).astype(np.float64)
    bits = x.astype(np.float32).view(np.uint32)
    even = bits + 0x7FFF + ((bits >> 16) & 1)  # bfloat16 is the upper half of a float32
    return np.where(np.isfinite(x), (even & 0xFFFF0000).view(np.float32), x).astype(np.float64)


def _reshape(call: Call) -> Numbers:
    x, shape = call.inputs[0], [int(n) for n in call.either(1, "shape")]
    if not call.get("allowzero", 0):
        shape = [x.shape[i] if n == 0 else n for i, n in enumerate(shape)]
    return np.asarray(x.reshape(shape))


def _flatten(call: Call) -> Numbers:
    x, axis = call.inputs[0], call.get("axis", 1)
    axis += x.ndim if axis < 0 else 0
    return np.asarray(x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def _squeeze(call: Call) -> Numbers:
    axes = call.either(1, "axes")
    return np.squeeze(call.inputs[0], axis=None if axes is None else tuple(int(a) for a in axes))


def _unsqueeze(call: Call) -> Numbers:
    return np.expand_dims(call.inputs[0], tuple(int(a) for a in call.either(1, "axes")))


def _expand(call: Call) -> Numbers:
    x, shape = call.inputs[0], tuple(int(n) for n in call.inputs[1])
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, shape))


def _slice(call: Call) -> Numbers:
    x, starts, ends = call.inputs[0], call.either(1, "starts"), call.either(2, "ends")
    axes, steps = call.either(3, "axes"), call.either(4, "steps")
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        index[int(axis)] = slice(int(start), int(end), int(step))
    return np.asarray(x[tuple(index)])


def _split(call: Call) -> tuple[Numbers, ...]:
    x, axis, sizes = call.inputs[0], call.get("axis", 0), call.either(1, "split")
    if sizes is None:
        part = -(-x.shape[axis] // call.n_outputs)
        cuts = [part * k for k in range(1, call.n_outputs)]
    else:
        cuts = [int(n) for n in np.cumsum(sizes)[:-1]]
    return tuple(np.split(x, cuts, axis))


def _pad(call: Call) -> Numbers:
    x, pads, value = call.inputs[0], call.either(1, "pads"), call.either(2, "value")
    axes = [int(a) % x.ndim for a in call.inputs[3]] if call.has(3) else list(range(x.ndim))
    pads = [int(p) for p in pads]
    lows = dict(zip(axes, pads[: len(axes)], strict=True))
    highs = dict(zip(axes, pads[len(axes) :], strict=True))
    kept = tuple(
        slice(max(0, -lows.get(i, 0)), x.shape[i] - max(0, -highs.get(i, 0))) for i in range(x.ndim)
    )
    widths = [(max(0, lows.get(i, 0)), max(0, highs.get(i, 0))) for i in range(x.ndim)]
    mode = call.get("mode", "constant")
    if mode != "constant":
        return np.pad(x[kept], widths, mode=mode)
    fill = 0 if value is None else np.asarray(value).item()
    return np.pad(x[kept], widths, constant_values=fill)


def _constant(call: Call) -> Numbers:
    ((name, value),) = call.attributes.items()
    dtype = np.float64 if "float" in name else np.int64
    return np.asarray(value if name == "value" else np.array(value, dtype))


def _constant_of_shape(call: Call) -> Numbers:
    fill = call.get("value", None)
    return np.full([int(n) for n in call.inputs[0]], 0.0 if fill is None else fill.item())


def _range(call: Call) -> Numbers:
    start, limit, step = (a.item() for a in call.inputs)
    values = [start + i * step for i in range(max(0, math.ceil((limit - start) / step)))]
    return np.array(values, call.inputs[0].dtype)


def _shape(call: Call) -> Numbers:
    x = call.inputs[0]
    return np.array(x.shape[call.get("start", 0) : call.get("end", None)], np.int64)


EVALUATE: dict[str, Callable[[Call], Numbers | tuple[Numbers, ...]]] = {
    "Abs": lambda c: np.abs(c.inputs[0]),
    "Add": lambda c: np.asarray(c.inputs[0] + c.inputs[1]),
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_normalization,
    "Cast": _cast,
    "Clip": _clip,
    "Concat": lambda c: np.concatenate(c.inputs, c.get("axis", None)),
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Conv": _conv,
    "Div": _divide,
    "Dropout": lambda c: c.inputs[0],
    "Equal": lambda c: np.asarray(c.inputs[0] == c.inputs[1]),
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": lambda c: np.take(c.inputs[0], c.inputs[1], c.get("axis", 0)),
    "Gemm": _gemm,
    "GlobalAveragePool": lambda c: _global(c, _average),
    "GlobalMaxPool": lambda c: _global(c, lambda x, axes: x.max(axis=axes, keepdims=True)),
    "Identity": lambda c: c.inputs[0],
    "LeakyRelu": _leaky_relu,
    "MatMul": lambda c: np.asarray(np.matmul(*c.inputs)),
    "Max": lambda c: reduce(np.maximum, c.inputs),
    "MaxPool": _max_pool,
    "Min": lambda c: reduce(np.minimum, c.inputs),
    "Mul": lambda c: np.asarray(c.inputs[0] * c.inputs[1]),
    "Neg": lambda c: np.asarray(-c.inputs[0]),
    "PRelu": _prelu,
    "Pad": _pad,
    "Pow": _power,
    "Range": _range,
    "Reciprocal": lambda c: np.asarray(1 / c.inputs[0]),
    "ReduceMean": lambda c: _reduce(c, _average),
    "ReduceSum": lambda c: _reduce(c, _total),
    "Relu": lambda c: np.maximum(c.inputs[0], 0),
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": lambda c: np.array(c.inputs[0].size, np.int64),
    "Slice": _slice,
    "Split": _split,
    "Sqrt": lambda c: _roots(c.inputs[0]),
    "Squeeze": _squeeze,
    "Sub": lambda c: np.asarray(c.inputs[0] - c.inputs[1]),
    "Sum": lambda c: reduce(np.add, c.inputs),
    "Tile": lambda c: np.tile(c.inputs[0], [int(n) for n in c.inputs[1]]),
    "Transpose": lambda c: np.transpose(c.inputs[0], c.get("perm", None)),
    "Unsqueeze": _unsqueeze,
    "Where": lambda c: np.where(*c.inputs),
}
