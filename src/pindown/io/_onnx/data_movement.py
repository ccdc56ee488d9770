"""ONNX operations that only move entries, on tensors and constants alike."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.node import Node, Rule, Value
from pindown.io._onnx.tensors import BOOL_TYPE, FLOAT_TYPES, HALF_TYPES, INTEGER_TYPES, narrowed
from pindown.model.builder import Tensor
from pindown.model.limits import MAX_TENSOR_ENTRIES, check_entries, check_rank
from pindown.model.operations.integers import ToFloat
from pindown.model.operations.moves import (
    Concat,
    Expand,
    Fill,
    Pad,
    Reshape,
    Slice,
    Tile,
    Transpose,
    pad_parts,
)

_TYPES = {"float": 1, "double": 11, "float16": 10, "bfloat16": 16, "int64": 7, "int32": 6, "bool": 9}
_WHOLE = frozenset({"uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64"})


def bearable(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a result that may be larger than the operation's input."""
    dims = check_rank(shape, "the result")
    if any(n < 0 for n in dims):
        raise ModelFileError(f"the result has the impossible shape {dims}.")
    check_entries(*dims, what="the result", limit=MAX_TENSOR_ENTRIES)
    return dims


# ---------------------------------------------------------------------- same entries, another shape


def with_shape(node: Node, value: Value, shape: Sequence[int]) -> Value:
    """Return the same entries in another shape."""
    to = tuple(int(n) for n in shape)
    if isinstance(value, Tensor):
        made = node.builder.node(value)
        if made is not None and isinstance(made.operation, Reshape):  # two in a row are one
            value = node.builder.tensor(made.inputs[0])
    return value if value.shape == to else node.apply(Reshape(to), value)


def transposed(node: Node, value: Value, order: Sequence[int]) -> Value:
    """Return the axes in another order."""
    to = tuple(int(n) for n in order)
    return value if to == tuple(range(len(to))) else node.apply(Transpose(to), value)


def expanded(node: Node, value: Value, shape: Sequence[int]) -> Value:
    """Return entries repeated to a shape."""
    to = bearable(shape)
    return value if value.shape == to else node.apply(Expand(to), value)


def sliced(node: Node, value: Value, axis: int, start: int, stop: int) -> Value:
    """Return the entries from ``start`` to ``stop`` along an axis."""
    if (start, stop) == (0, value.shape[axis]):
        return value
    return node.apply(Slice((*(slice(None),) * axis, slice(start, stop))), value)


def _identity(node: Node) -> Value:
    return node.value(0)


def _dropout(node: Node) -> Value:
    if node.given(1) and not 0 <= node.single(1).item() < 1:
        raise ModelFileError("Dropout needs a ratio of at least 0 and below 1.")
    if node.given(2) and node.single(2).any():
        raise UnsupportedModelError("Dropout is in training mode; export the model in evaluation mode.")
    return node.value(0)


def _cast(node: Node) -> Value:
    return _as_type(node, node.integer("to", 0))


def _cast_like(node: Node) -> Value:
    value, like = node.value(0), node.value(1)
    target = _TYPES.get(node.type(1))
    if target is None:  # inside a definition only the kind of numbers is known
        kind = "f" if isinstance(like, Tensor) else like.dtype.kind
        if kind == "f" and not isinstance(value, Tensor):
            return value.astype(np.float64)
        target = {"f": 1, "b": BOOL_TYPE}.get(kind, 7)
    return _as_type(node, target)


def _as_type(node: Node, target: int) -> Value:
    value = node.value(0)
    if target not in FLOAT_TYPES | INTEGER_TYPES | {BOOL_TYPE}:
        raise UnsupportedModelError(f"Cast to the element type number {target} is not read.")
    if not isinstance(value, Tensor):
        if target in FLOAT_TYPES:
            return narrowed(value.astype(np.float64), target)
        return value.astype(bool if target == BOOL_TYPE else np.int64)
    if node.type(0) == "bool":
        node.jumps()
        return value  # ones and zeros
    if target not in FLOAT_TYPES:
        if node.type(0) in _WHOLE and target in (6, 7):
            return value  # whole numbers stay what they are
        raise UnsupportedModelError(
            "Cast of a tensor to integers rounds; it is read only inside quantised operations."
        )
    if node.type(0) in _WHOLE:
        return node.apply(ToFloat(), value)
    if target in HALF_TYPES:
        node.notes.append("A cast to 16-bit floats was read as if it did not round.")
    return value


def _reshape(node: Node) -> Value:
    value, wanted = node.value(0), node.numbers(1, "shape")
    return with_shape(
        node, value, reshaped(value.shape, wanted or (), copy_zeros=not node.flag("allowzero", False))
    )


def reshaped(shape: Sequence[int], wanted: Sequence[int], *, copy_zeros: bool = True) -> tuple[int, ...]:
    """Return the shape that an ONNX Reshape asks for: 0 copies a length, -1 infers one.

    >>> reshaped((1, 8, 5, 5), (0, -1))
    (1, 200)
    """
    dims = list(check_rank(wanted, "the result"))
    if copy_zeros:
        dims = [shape[i] if n == 0 else n for i, n in enumerate(dims)]
    total = math.prod(shape)
    if dims.count(-1) == 1:
        rest = -math.prod(dims)
        dims[dims.index(-1)] = total // rest if rest > 0 else 0
    if any(n < 0 for n in dims) or math.prod(dims) != total:
        raise ModelFileError(
            f"a tensor of shape {tuple(shape)} cannot be given the shape {tuple(wanted)}."
        )
    return tuple(dims)


def _flatten(node: Node) -> Value:
    value, axis = node.value(0), node.integer("axis", 1)
    rank = len(value.shape)
    axis = rank if axis == rank else node.axis(axis, rank)
    return with_shape(node, value, (math.prod(value.shape[:axis]), math.prod(value.shape[axis:])))


def _squeeze(node: Node) -> Value:
    value, axes = node.value(0), node.numbers(1, "axes")
    rank = len(value.shape)
    if axes is None:
        axes = tuple(i for i, n in enumerate(value.shape) if n == 1)
    dropped = {node.axis(axis, rank) for axis in axes}
    if any(value.shape[i] != 1 for i in dropped):
        raise ModelFileError(f"Squeeze cannot drop the axes {axes} of a tensor of shape {value.shape}.")
    return with_shape(node, value, tuple(n for i, n in enumerate(value.shape) if i not in dropped))


def _unsqueeze(node: Node) -> Value:
    value, axes = node.value(0), node.numbers(1, "axes") or ()
    rank = len(check_rank((*value.shape, *axes), "the result"))
    new = {node.axis(axis, rank) for axis in axes}
    if len(new) != len(axes):
        raise ModelFileError(f"Unsqueeze names an axis twice: {axes}.")
    lengths = iter(value.shape)
    return with_shape(node, value, tuple(1 if i in new else next(lengths) for i in range(rank)))


def _depth_to_space(node: Node) -> Value:
    x, size, mode = node.value(0), node.integer("blocksize", 1), node.text("mode", "DCR")
    _, channels, height, width = _image(x, size)
    inner = channels // size**2
    if mode not in ("DCR", "CRD") or channels % size**2:
        raise ModelFileError(
            f"DepthToSpace cannot cut {channels} channels into blocks of {size} ({mode})."
        )
    parts = (size, size, inner) if mode == "DCR" else (inner, size, size)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    cut = with_shape(node, x, (x.shape[0], *parts, height, width))
    moved = transposed(node, cut, order)
    return with_shape(node, moved, (x.shape[0], inner, height * size, width * size))


def _space_to_depth(node: Node) -> Value:
    x, size = node.value(0), node.integer("blocksize", 1)
    _, channels, height, width = _image(x, size)
    if height % size or width % size:
        raise ModelFileError(
            f"SpaceToDepth cannot cut an image {height} x {width} into blocks of {size}."
        )
    cut = with_shape(node, x, (x.shape[0], channels, height // size, size, width // size, size))
    moved = transposed(node, cut, (0, 3, 5, 1, 2, 4))
    return with_shape(node, moved, (x.shape[0], channels * size**2, height // size, width // size))


def _image(x: Value, size: int) -> tuple[int, ...]:
    if len(x.shape) != 4 or size < 1:
        raise ModelFileError(f"blocks of {size} do not fit a tensor of shape {x.shape}.")
    return x.shape


# ---------------------------------------------------------------------- entries moved, picked, repeated


def _transpose(node: Node) -> Value:
    value = node.value(0)
    order = node.integers("perm", tuple(reversed(range(len(value.shape)))))
    if sorted(order) != list(range(len(value.shape))):
        raise ModelFileError(f"{order} is no order of the axes of a tensor of shape {value.shape}.")
    return transposed(node, value, order)


def _slice(node: Node) -> Value:
    value = node.value(0)
    starts, ends = node.numbers(1, "starts") or (), node.numbers(2, "ends") or ()
    axes, steps = node.numbers(3, "axes"), node.numbers(4, "steps")
    if any(node.given(i) and node.constant(i).ndim != 1 for i in range(1, 5)):
        raise ModelFileError("Slice needs lists for where it starts and ends; got a single number.")
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    spans = [slice(None)] * len(value.shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        at = node.axis(axis, len(spans))
        spans[at] = _span(start, end, step, value.shape[at])
    return node.apply(Slice(tuple(spans)), value)


def _span(start: int, end: int, step: int, n: int) -> slice:
    """Return an ONNX slice as Python means it; far positions are cut as the standard says."""
    if step == 0:
        raise ModelFileError("Slice cannot go on in steps of zero.")
    start, end = start + n * (start < 0), end + n * (end < 0)
    low, high = (0, n) if step > 0 else (-1, n - 1)
    start, end = min(max(start, 0), high), min(max(end, low), high)
    if not range(start, end, step):
        return slice(0, 0)
    return slice(start, None if end < 0 else end, step)


def _split(node: Node) -> list[Value]:
    value = node.value(0)
    axis = node.axis(node.integer("axis", 0), len(value.shape))
    sizes, length = node.numbers(1, "split"), value.shape[axis]
    if sizes is None:
        parts = node.integer("num_outputs", node.n_outputs)
        size = -(-length // max(1, parts))
        sizes = tuple(min(size, length - size * k) for k in range(parts if parts <= length else 0))
    if sum(sizes) != length or min(sizes) < 0 or len(sizes) != node.n_outputs:
        raise ModelFileError(f"Split cannot cut an axis of length {length} into {sizes}.")
    stops = [int(stop) for stop in np.cumsum(sizes)]
    return [sliced(node, value, axis, stop - n, stop) for stop, n in zip(stops, sizes, strict=True)]


def _expand(node: Node) -> Value:
    value, wanted = node.value(0), node.numbers(1, "shape") or ()
    return expanded(node, value, np.broadcast_shapes(value.shape, check_rank(wanted, "the result")))


def _tile(node: Node) -> Value:
    value, repeats = node.value(0), node.numbers(1, "repeats") or ()
    bearable([n * times for n, times in zip(value.shape, repeats, strict=True)])
    return node.apply(Tile(repeats), value)


def _concat(node: Node) -> Value:
    values = node.operands()
    axis = node.axis(node.integer("axis", 1), len(values[0].shape))
    check_entries(sum(math.prod(v.shape) for v in values), what="the result", limit=MAX_TENSOR_ENTRIES)
    if len(values) == 1:
        return values[0]
    if any(isinstance(value, Tensor) for value in values):
        values = [node.as_tensor(value, node.trained(i)) for i, value in enumerate(values)]
    return node.apply(Concat(axis), *values)


def _pad(node: Node) -> Value:
    value, pads = node.value(0), node.numbers(1, "pads") or ()
    rank = len(value.shape)
    axes = node.numbers(3, "axes")
    axes = tuple(range(rank)) if axes is None else axes
    if len(pads) != 2 * len(axes):
        raise ModelFileError(f"Pad needs {2 * len(axes)} lengths for {len(axes)} axes; got {len(pads)}.")
    before, after = [0] * rank, [0] * rank
    for axis, low, high in zip(axes, pads, pads[len(axes) :], strict=False):
        before[node.axis(axis, rank)], after[node.axis(axis, rank)] = low, high
    for n, low, high in zip(value.shape, before, after, strict=True):
        if max(0, -low) + max(0, -high) > n:
            raise ModelFileError(f"Pad cuts {low} and {high} off an axis of length {n}.")
    bearable([n + max(0, a) + max(0, b) for n, a, b in zip(value.shape, before, after, strict=True)])
    if not any(before) and not any(after):
        return value

    mode = node.text("mode", "constant")
    if mode in ("edge", "reflect", "wrap"):
        return node.apply(Pad(tuple(before), tuple(after), mode), value)
    if mode != "constant":
        raise UnsupportedModelError(f"Pad in the mode '{mode}' is not read.")
    fill = node.scalar(2, "value", 0.0)
    if not math.isfinite(fill):
        raise UnsupportedModelError(f"Pad with {fill} is not read; fill with a finite number.")
    if isinstance(value, Tensor):
        return node.apply(Fill(tuple(before), tuple(after), fill), value)
    cut, widths = pad_parts(value.shape, before, after, 0)
    return np.pad(value[cut], widths, constant_values=value.dtype.type(fill))


MOVES: dict[str, Rule] = {
    "Cast": _cast,
    "CastLike": _cast_like,
    "Concat": _concat,
    "DepthToSpace": _depth_to_space,
    "Dropout": _dropout,
    "Expand": _expand,
    "Flatten": _flatten,
    "Identity": _identity,
    "Pad": _pad,
    "Reshape": _reshape,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
