"""ONNX operations that pick entries by positions or conditions, or put others in their place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.data_movement import bearable, expanded, with_shape
from pindown.io._onnx.node import Node, Rule, Value
from pindown.io._onnx.patterns import recognised_choice
from pindown.model.builder import Tensor
from pindown.model.operations.dense import Add
from pindown.model.operations.moves import Concat, Gather
from pindown.model.operations.products import Multiply


def _gather(node: Node) -> Value:
    value, index = node.value(0), node.constant(1).astype(np.int64)
    axis = node.axis(node.integer("axis", 0), len(value.shape))
    bearable((*value.shape[:axis], *index.shape, *value.shape[axis + 1 :]))
    return node.apply(Gather(_positions(index, value.shape[axis]), axis), value)


def _positions(index: NDArray[Any], length: int) -> NDArray[np.int64]:
    """Return positions counted from the front, all inside."""
    if ((index < -length) | (index >= length)).any():
        raise ModelFileError(f"it picks entries beyond an axis of length {length}.")
    return np.where(index < 0, index + length, index).astype(np.int64)


def picked(node: Node, value: Value, flat: NDArray[Any]) -> Value:
    """Return the entries at positions of the flattened tensor, in the shape of ``flat``."""
    bearable(flat.shape)
    return node.apply(
        Gather(flat.astype(np.int64), 0), with_shape(node, value, (math.prod(value.shape),))
    )


def _gather_elements(node: Node) -> Value:
    value, index = node.value(0), node.constant(1)
    axis = node.axis(node.integer("axis", 0), len(value.shape))
    index = _positions(index, value.shape[axis])
    if index.ndim != len(value.shape):
        raise ModelFileError(f"positions of shape {index.shape} do not fit a tensor {value.shape}.")
    places: list[NDArray[Any]] = list(np.indices(index.shape, sparse=True))
    places[axis] = index
    return picked(node, value, np.ravel_multi_index(np.broadcast_arrays(*places), value.shape))


def _gather_nd(node: Node) -> Value:
    value, index = node.value(0), node.constant(1)
    batch = node.integer("batch_dims", 0)
    rank, depth = len(value.shape), index.shape[-1] if index.ndim else 0
    if not 0 <= batch < min(rank, index.ndim) or not 1 <= depth <= rank - batch:
        raise ModelFileError(f"positions of shape {index.shape} do not fit a tensor {value.shape}.")
    if value.shape[:batch] != index.shape[:batch]:
        raise ModelFileError(f"positions of shape {index.shape} do not fit a tensor {value.shape}.")
    bearable((*index.shape[:-1], *value.shape[batch + depth :]))
    table = np.arange(math.prod(value.shape)).reshape(value.shape)
    grids: list[NDArray[Any]] = list(np.indices(index.shape[:batch], sparse=True))
    lead = [part.reshape(*part.shape, *(1,) * (index.ndim - 1 - batch)) for part in grids]
    at = [_positions(index[..., k], value.shape[batch + k]) for k in range(depth)]
    return picked(node, value, table[(*lead, *at)])


def _scatter_nd(node: Node) -> Value:
    """Put entries of one tensor in the place of others, at constant positions."""
    value, index, updates = node.value(0), node.constant(1), node.value(2)
    if node.text("reduction", "none") != "none":
        raise UnsupportedModelError("ScatterND that adds or multiplies is not read.")
    depth = index.shape[-1] if index.ndim else 0
    shape = (*index.shape[:-1], *value.shape[depth:])
    if not 1 <= depth <= len(value.shape) or tuple(updates.shape) != shape:
        raise ModelFileError(f"updates of shape {updates.shape} do not fit; {shape} would.")
    table = np.arange(math.prod(value.shape)).reshape(value.shape)
    at = [_positions(index[..., k], value.shape[k]) for k in range(depth)]
    return _scattered(node, value, updates, table[tuple(at)])


def _scatter_elements(node: Node) -> Value:
    value, index, updates = node.value(0), node.constant(1), node.value(2)
    if node.text("reduction", "none") != "none":
        raise UnsupportedModelError(f"{node.op} that adds or multiplies is not read.")
    axis = node.axis(node.integer("axis", 0), len(value.shape))
    if index.ndim != len(value.shape) or tuple(updates.shape) != index.shape:
        raise ModelFileError(f"updates of shape {updates.shape} do not fit positions {index.shape}.")
    places: list[NDArray[Any]] = list(np.indices(index.shape, sparse=True))
    places[axis] = _positions(index, value.shape[axis])
    return _scattered(
        node, value, updates, np.ravel_multi_index(np.broadcast_arrays(*places), value.shape)
    )


def _scattered(node: Node, value: Value, updates: Value, at: NDArray[Any]) -> Value:
    """Return ``value`` with ``updates`` in the flat places ``at``."""
    size = math.prod(value.shape)
    if len(np.unique(at)) < at.size:
        raise UnsupportedModelError(f"{node.op} writes twice to one place, which is not read.")
    flat = [with_shape(node, part, (math.prod(part.shape),)) for part in (value, updates)]
    if updates.shape and 0 in updates.shape:
        return value
    both = node.apply(Concat(0), *flat)
    source = np.arange(size)
    source[at.ravel()] = size + np.arange(at.size)
    return node.apply(Gather(source.reshape(value.shape), 0), both)


def _where(node: Node) -> Value:
    """Choose between tensors and constants."""
    if isinstance(node.value(0), Tensor):
        return _where_varying(node)
    condition = node.constant(0).astype(bool)
    a, b = values = [node.value(i) for i in (1, 2)]
    shape = bearable(np.broadcast_shapes(condition.shape, a.shape, b.shape))
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        return np.where(condition, a, b)
    chosen = np.broadcast_to(condition, shape)
    if chosen.all() or not chosen.any():
        return expanded(node, values[0 if chosen.all() else 1], shape)
    values = [_masking(node, value, i) for i, value in enumerate(values, 1)]
    flat = [with_shape(node, value, (math.prod(value.shape),)) for value in values]
    first = flat[0].shape[0]
    places = [np.broadcast_to(np.arange(math.prod(v.shape)).reshape(v.shape), shape) for v in values]
    both = node.apply(Concat(0), *flat)
    return node.apply(Gather(np.where(chosen, places[0], first + places[1]), 0), both)


def _where_varying(node: Node) -> Value:
    """Choose by a comparison, which is one or zero: ``b + c (a - b)``."""
    condition, a, b = node.value(0), node.operand(1), node.operand(2)
    known = recognised_choice(node, condition, a, b)
    if known is not None:
        return known
    node.jumps()
    bearable(np.broadcast_shapes(condition.shape, a.shape, b.shape))
    chosen = node.apply(Multiply(), condition, node.apply(Add((1, -1)), a, b))
    return node.apply(Add(), b, chosen)


def _masking(node: Node, value: Value, i: int) -> Value:
    """Return what a masked entry is set to; minus infinity as in a mask that is added."""
    if isinstance(value, Tensor) or not np.isneginf(value).all():
        return node.operand(i)
    return node._finite(i, value.reshape(*(1,) * max(0, 2 - value.ndim), *value.shape)).reshape(
        value.shape
    )


PICKS: dict[str, Rule] = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Where": _where,
}
