"""ONNX operations that normalise: softmax, layer, group, instance and RMS norms."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pindown.affine import Array
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.data_movement import with_shape
from pindown.io._onnx.node import Node, Rule, Value
from pindown.model.builder import Tensor
from pindown.model.operations.dense import Add, Reduce, Scale
from pindown.model.operations.elementary import Reciprocal, Sqrt
from pindown.model.operations.moves import Reshape
from pindown.model.operations.normalisation import GroupNorm, LayerNorm, LpNormalize, RmsNorm
from pindown.model.operations.operation import Operation
from pindown.model.operations.products import Multiply, Square
from pindown.model.operations.softmax import LogSoftmax, Softmax


def _over_classes(make: Callable[[int], Operation]) -> Rule:
    def rule(node: Node) -> Value:
        x = node.operand(0)
        rank = len(x.shape)
        axis = node.axis(node.integer("axis", -1 if node.opset >= 13 else 1), rank)
        after = math.prod(x.shape[axis:])
        if node.opset >= 13 or after == x.shape[axis]:
            return node.apply(make(axis), x)
        # Before operator set 13 all axes from this one on count as one.
        flat = with_shape(node, x, (math.prod(x.shape[:axis]), after))
        return with_shape(node, node.apply(make(1), flat), x.shape)

    return rule


def last_axes(node: Node, x: Value) -> tuple[int, ...]:
    """Return the axes from the one that a node names on."""
    rank = len(x.shape)
    return tuple(range(node.axis(node.integer("axis", -1), rank), rank))


def fitted(node: Node, i: int, shape: tuple[int, ...]) -> Array | None:
    """Return the scale or shift that is input ``i``, for axes of these lengths."""
    if not node.given(i):
        return None
    values = node.weight(i)
    # Axes in front that are all one say nothing.
    plain = (
        values.reshape(values.shape[max(0, values.ndim - len(shape)) :])
        if _leads_with_ones(values, shape)
        else values
    )
    if np.broadcast_shapes(plain.shape, shape) != shape:
        raise ModelFileError(f"a scale of shape {values.shape} does not fit axes of lengths {shape}.")
    return plain if plain.shape == shape else np.broadcast_to(plain, shape)


def _leads_with_ones(values: Array, shape: tuple[int, ...]) -> bool:
    return all(n == 1 for n in values.shape[: max(0, values.ndim - len(shape))])


def positive(node: Node, name: str = "epsilon", default: float = 1e-5) -> float:
    """Return an epsilon that keeps a divisor off zero."""
    epsilon = node.finite(name, default)
    if epsilon < 0:
        raise ModelFileError(f"{node.op} needs an epsilon of at least 0; got {epsilon}.")
    return epsilon


def layer_norm(node: Node, x: Value, axes: tuple[int, ...], scale: int, shift: int | None) -> Value:
    """Return the layer norm whose scale and shift are these inputs of the node."""
    lengths = tuple(x.shape[axis] for axis in axes)
    factor = fitted(node, scale, lengths)
    offset = None if shift is None else fitted(node, shift, lengths)
    return node.apply(LayerNorm(axes, factor, offset, positive(node)), x)


def _layer_normalization(node: Node) -> Value:
    if node.integer("stash_type", 1) not in (1, 11, 10, 16):
        raise ModelFileError("LayerNormalization needs a float type as its stash_type.")
    x = node.operand(0)
    return layer_norm(node, x, last_axes(node, x), 1, 2)


def _rms_normalization(node: Node) -> Value:
    x = node.operand(0)
    axes = last_axes(node, x)
    scale = fitted(node, 1, tuple(x.shape[axis] for axis in axes))
    return node.apply(RmsNorm(axes, scale, positive(node)), x)


def _channels(node: Node, x: Value, count: int) -> list[Array]:
    values = [node.weight(1), node.weight(2)]
    if len(x.shape) < 2 or any(v.shape != (count,) for v in values):
        raise ModelFileError(f"its scale and shift do not fit a tensor of shape {x.shape}.")
    return values


def _instance_normalization(node: Node) -> Value:
    x = node.operand(0)
    if len(x.shape) < 3:
        raise ModelFileError(f"a tensor of shape {x.shape} is no image.")
    scale, shift = _channels(node, x, x.shape[1])
    if (scale == 1).all() and not shift.any():
        done = _of_groups(node, x)
        if done is not None:
            return done
    return node.apply(GroupNorm(x.shape[1], scale, shift, positive(node)), x)


def _of_groups(node: Node, x: Value) -> Value | None:
    """Return a group norm where channels were put together to groups before an instance norm."""
    made = node.builder.node(x) if isinstance(x, Tensor) else None
    if made is None or not isinstance(made.operation, Reshape):
        return None
    image, groups = node.builder.tensor(made.inputs[0]), x.shape[1]
    if len(image.shape) < 3 or image.shape[0] != x.shape[0] or image.shape[1] % groups:
        return None
    node.named("GroupNorm")
    return with_shape(node, node.apply(GroupNorm(groups, None, None, positive(node)), image), x.shape)


def _group_normalization(node: Node) -> Value:
    x, groups = node.operand(0), node.integer("num_groups", 1)
    if len(x.shape) < 2 or groups < 1 or x.shape[1] % groups:
        raise ModelFileError(f"{groups} groups do not fit a tensor of shape {x.shape}.")
    if node.opset >= 21:
        scale, shift = _channels(node, x, x.shape[1])
    else:  # one number for each group
        scale, shift = (np.repeat(v, x.shape[1] // groups) for v in _channels(node, x, groups))
    return node.apply(GroupNorm(groups, scale, shift, positive(node)), x)


def _lp_normalization(node: Node) -> Value:
    x, p = node.operand(0), node.integer("p", 2)
    if p not in (1, 2):
        raise ModelFileError(f"LpNormalization divides by the norm with p 1 or 2; got {p}.")
    return node.apply(LpNormalize(node.axis(node.integer("axis", -1), len(x.shape)), p), x)


def _mean_variance(node: Node) -> Value:
    x = node.operand(0)
    axes = tuple(sorted(node.axis(a, len(x.shape)) for a in node.integers("axes", (0, 2, 3))))
    if not axes:
        raise UnsupportedModelError("MeanVarianceNormalization over no axes is not read.")
    centred = node.apply(Add((1, -1)), x, node.apply(Reduce(axes, mean=True), x))
    spread = node.chain(centred, Square(), Reduce(axes, mean=True), Sqrt(), Scale(None, np.array(1e-9)))
    return node.apply(Multiply(), centred, node.apply(Reciprocal(), spread))


NORMALISATIONS: dict[str, Rule] = {
    "GroupNormalization": _group_normalization,
    "InstanceNormalization": _instance_normalization,
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": _over_classes(LogSoftmax),
    "LpNormalization": _lp_normalization,
    "MeanVarianceNormalization": _mean_variance,
    "RMSNormalization": _rms_normalization,
    "Softmax": _over_classes(Softmax),
}
