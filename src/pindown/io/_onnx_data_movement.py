"""ONNX operations that only move entries, and the integer arithmetic that shapes are made with.

Every operation works on tensors and on constants alike: what a reshape or slice does to a constant
array says, applied to an array of positions, what it does to a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._expression import Expression, concatenate, constant
from pindown.io._limits import MAX_UNITS, check_entries, check_rank
from pindown.io._onnx_node import Node, Value
from pindown.io._onnx_tensors import BOOL_TYPE, FLOAT_TYPES, HALF_TYPES, INTEGER_TYPES, narrowed

Move = Callable[[NDArray[Any]], NDArray[Any]]


def moved(value: Value, move: Move) -> Value:
    """Apply a function that only moves, repeats or drops entries."""
    return value.rearrange(move) if isinstance(value, Expression) else move(value)


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ModelFileError(f"axis {axis} does not exist in a tensor of rank {rank}.")
    return axis % rank


def together(*constants: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return constants that are about to be combined if broadcasting them is no blow-up."""
    shape = np.broadcast_shapes(*(constant.shape for constant in constants))
    largest = max(constant.size for constant in constants)
    check_entries(*shape, what="the result", limit=max(largest, MAX_UNITS))
    return constants


def _bearable(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a result that may be larger than the operation's input."""
    dims = check_rank(shape, "the result")
    if any(n < 0 for n in dims):
        raise ModelFileError(f"the result has the impossible shape {dims}.")
    check_entries(*dims, what="the result", limit=MAX_UNITS)
    return dims


# ---------------------------------------------------------------------- same entries, another shape


def _identity(node: Node) -> Value:
    return node.value(0)


def _dropout(node: Node) -> Value:
    if node.given(1):
        node.single(1)
    if node.given(2) and node.single(2).any():
        raise UnsupportedModelError("Dropout is in training mode; export the model in evaluation mode.")
    return node.value(0)


def _cast(node: Node) -> Value:
    value, target = node.value(0), node.integer("to", 0)
    if target not in FLOAT_TYPES | INTEGER_TYPES | {BOOL_TYPE}:
        raise UnsupportedModelError(f"Cast to the element type number {target} is not read.")
    if not isinstance(value, Expression):
        if target in FLOAT_TYPES:
            return narrowed(value.astype(np.float64), target)
        return value.astype(bool if target == BOOL_TYPE else np.int64)
    if target not in FLOAT_TYPES:
        raise UnsupportedModelError("Cast of a tensor to integers rounds; that is not piecewise linear.")
    if target in HALF_TYPES:
        node.notes.append("A cast to 16-bit floats was read as if it did not round.")
    return value


def _reshape(node: Node) -> Value:
    value, wanted = node.value(0), node.numbers(1, "shape")
    shape = reshaped(value.shape, wanted or (), copy_zeros=not node.flag("allowzero", False))
    return value.reshape(shape)


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
    axis = rank if axis == rank else _axis(axis, rank)
    return value.reshape((math.prod(value.shape[:axis]), math.prod(value.shape[axis:])))


def _squeeze(node: Node) -> Value:
    value, axes = node.value(0), node.numbers(1, "axes")
    rank = len(value.shape)
    if axes is None:
        axes = tuple(i for i, n in enumerate(value.shape) if n == 1)
    dropped = {_axis(axis, rank) for axis in axes}
    if any(value.shape[i] != 1 for i in dropped):
        raise ModelFileError(f"Squeeze cannot drop the axes {axes} of a tensor of shape {value.shape}.")
    return value.reshape(tuple(n for i, n in enumerate(value.shape) if i not in dropped))


def _unsqueeze(node: Node) -> Value:
    value, axes = node.value(0), node.numbers(1, "axes") or ()
    rank = len(check_rank((*value.shape, *axes), "the result"))
    new = {_axis(axis, rank) for axis in axes}
    if len(new) != len(axes):
        raise ModelFileError(f"Unsqueeze names an axis twice: {axes}.")
    lengths = iter(value.shape)
    return value.reshape(tuple(1 if i in new else next(lengths) for i in range(rank)))


# ---------------------------------------------------------------------- entries moved, picked, repeated


def _transpose(node: Node) -> Value:
    value = node.value(0)
    order = node.integers("perm", tuple(reversed(range(len(value.shape)))))
    if sorted(order) != list(range(len(value.shape))):
        raise ModelFileError(f"{order} is no order of the axes of a tensor of shape {value.shape}.")
    return moved(value, lambda i: np.transpose(i, order))


def _slice(node: Node) -> Value:
    value = node.value(0)
    starts, ends = node.numbers(1, "starts") or (), node.numbers(2, "ends") or ()
    axes, steps = node.numbers(3, "axes"), node.numbers(4, "steps")
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    spans = [slice(None)] * len(value.shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        spans[_axis(axis, len(spans))] = slice(start, end, step)
    return moved(value, lambda i: i[tuple(spans)])


def _split(node: Node) -> list[Value]:
    value = node.value(0)
    axis = _axis(node.integer("axis", 0), len(value.shape))
    sizes, length = node.numbers(1, "split"), value.shape[axis]
    if sizes is None:
        size = -(-length // node.n_outputs)
        sizes = tuple(min(size, length - size * k) for k in range(node.n_outputs))
    if sum(sizes) != length or min(sizes) < 0 or len(sizes) != node.n_outputs:
        raise ModelFileError(f"Split cannot cut an axis of length {length} into {sizes}.")
    stops = np.cumsum(sizes)
    lead = (slice(None),) * axis
    spans = [slice(stop - size, stop) for stop, size in zip(stops, sizes, strict=True)]
    return [moved(value, lambda i, span=span: i[(*lead, span)]) for span in spans]  # type: ignore[misc]


def _gather(node: Node) -> Value:
    value, index = node.value(0), node.constant(1)
    axis = _axis(node.integer("axis", 0), len(value.shape))
    _bearable((*value.shape[:axis], *index.shape, *value.shape[axis + 1 :]))
    return moved(value, lambda i: np.take(i, index.astype(np.int64), axis))


def _expand(node: Node) -> Value:
    value, wanted = node.value(0), node.numbers(1, "shape") or ()
    shape = _bearable(np.broadcast_shapes(value.shape, check_rank(wanted, "the result")))
    return moved(value, lambda i: np.broadcast_to(i, shape))


def _tile(node: Node) -> Value:
    value, repeats = node.value(0), node.numbers(1, "repeats") or ()
    _bearable([n * times for n, times in zip(value.shape, repeats, strict=True)])
    return moved(value, lambda i: np.tile(i, repeats))


def _concat(node: Node) -> Value:
    values = node.operands()
    axis = _axis(node.integer("axis", 1), len(values[0].shape))
    constants = [value for value in values if not isinstance(value, Expression)]
    if len(constants) < len(values):
        return concatenate([node.tensor(i) for i in range(len(values))], axis)
    check_entries(sum(constant.size for constant in constants), what="the result", limit=MAX_UNITS)
    return np.concatenate(constants, axis)


def _pad(node: Node) -> Value:
    value, pads = node.value(0), node.numbers(1, "pads") or ()
    rank = len(value.shape)
    axes = node.numbers(3, "axes")
    axes = tuple(range(rank)) if axes is None else axes
    if len(pads) != 2 * len(axes):
        raise ModelFileError(f"Pad needs {2 * len(axes)} lengths for {len(axes)} axes; got {len(pads)}.")
    ends = [(0, 0)] * rank
    for axis, before, after in zip(axes, pads, pads[len(axes) :], strict=False):
        ends[_axis(axis, rank)] = (before, after)
    _bearable([n + before + after for n, (before, after) in zip(value.shape, ends, strict=True)])

    mode, fill = node.text("mode", "constant"), np.array([node.scalar(2, "value", 0.0)])
    if mode in ("edge", "reflect", "wrap"):
        return moved(value, lambda i: _padded(i, ends, mode=mode))
    if mode != "constant":
        raise UnsupportedModelError(f"Pad in the mode '{mode}' is not read.")
    if not np.isfinite(fill).all():
        raise UnsupportedModelError(f"Pad with {fill.item()} is not read; fill with a finite number.")
    if not isinstance(value, Expression):
        return _padded(value, ends, constant_values=fill.item())
    size = math.prod(value.shape)
    with_fill = concatenate([value.reshape((size,)), constant(fill)], axis=0)
    return with_fill.take(_padded(np.arange(size).reshape(value.shape), ends, constant_values=size))


def _padded(array: NDArray[Any], ends: list[tuple[int, int]], **how: Any) -> NDArray[Any]:
    """Pad, where a negative length cuts."""
    keep = tuple(
        slice(max(0, -before), n - max(0, -after))
        for n, (before, after) in zip(array.shape, ends, strict=True)
    )
    how.setdefault("mode", "constant")
    return np.pad(array[keep], [(max(0, before), max(0, after)) for before, after in ends], **how)


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
    shape = _bearable(node.numbers(0, "shape") or ())
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
    _bearable([max(0, math.ceil((limit - start) / step))])
    return np.arange(start, limit, step)


def _equal(node: Node) -> Value:
    return np.asarray(np.equal(*together(node.constant(0), node.constant(1))))


def _where(node: Node) -> Value:
    condition, a, b = together(*(node.constant(i) for i in range(3)))
    return np.where(condition.astype(bool), a, b)


MOVES: dict[str, Callable[[Node], Value | list[Value]]] = {
    "Cast": _cast,
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Dropout": _dropout,
    "Equal": _equal,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Identity": _identity,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
