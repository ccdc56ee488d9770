r"""What the channels of a model can be: bounds for every channel, the same at all places of a picture.

A channel whose two bounds are one number is a constant. On a box the bounds are the intervals of all
entries. Without one they follow from signs alone: with inputs :math:`a \ge 0`,

.. math:: W_i \le 0 \;\Longrightarrow\; W_i a + b_i \le b_i ,

and a row without weights is its bias. What is exact stays exact: zeros, biases of rows without weights,
what a ReLU or a clip cuts off, a batch norm whose scale is zero.
"""

from __future__ import annotations

import math

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.equivalence.shrinking._channel_graph import (
    Axis,
    ChannelGraph,
    Layer,
    biases,
    is_layer,
    weights,
)
from pindown.equivalence.shrinking._rounded_matrices import Mask, add, multiply
from pindown.model.graph import Node, interval_walk
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, BatchNorm, Reduce, Scale
from pindown.model.operations.elementwise import Elementwise
from pindown.model.operations.moves import Concat, Fill
from pindown.model.operations.operation import Interval
from pindown.model.operations.pooling import AveragePool
from pindown.model.operations.resize import Resize
from pindown.model.operations.smooth import Celu, Elu, Erf, Gelu, HardSwish, Mish, Silu, Softsign, Tanh
from pindown.rounding import add_down, add_up

# f(0) = 0, but for rounding outwards.
_FIXES_ZERO = (Celu, Elu, Erf, Gelu, HardSwish, Mish, Silu, Softsign, Tanh)
_CHUNK = 2**22  # numbers of a weight that are looked at together


def channel_bounds(graph: ChannelGraph, box: Box | None) -> list[Interval | None]:
    """Bound every tensor at every index of the axis along which it holds channels.

    Args:
        graph: The model and its channels.
        box: The inputs that count; None for all.

    Returns:
        For the input and what every node makes: arrays of the axis' length; None where there are no
        channels.
    """
    found: list[Interval | None] = [None]
    whole = (
        iter(())
        if box is None
        else interval_walk(graph.model, Interval(box.lower[None], box.upper[None]))
    )
    next(whole, None)
    for i, axis in enumerate(graph.axes[1:], 1):
        entries = next(whole, None)
        if axis is None:
            found.append(None)
            continue
        here = _bounds(graph, i, axis, found)
        found.append(here if entries is None else _both(here, _hull(entries, 1 + axis.axis)))
    return found


def _both(first: Interval, second: Interval) -> Interval:
    """Return what both say; a value that is known exactly stands."""
    known = first.lower == first.upper
    lower = np.where(known, first.lower, np.maximum(first.lower, second.lower))
    return Interval(lower, np.where(known, first.upper, np.minimum(first.upper, second.upper)))


def _hull(entries: Interval, axis: int) -> Interval:
    """Return bounds that hold at all entries with the same index along an axis."""
    others = tuple(k for k in range(entries.lower.ndim) if k != axis)
    return Interval(entries.lower.min(axis=others), entries.upper.max(axis=others))


def _unknown(n: int) -> Interval:
    return Interval(np.full(n, -np.inf), np.full(n, np.inf))


def _with(bounds: Interval, value: float) -> Interval:
    """Return bounds on what is a channel's, or a fixed value."""
    return Interval(np.minimum(bounds.lower, value), np.maximum(bounds.upper, value))


def _bounds(graph: ChannelGraph, i: int, axis: Axis, found: list[Interval | None]) -> Interval:
    node = graph.model.nodes[i - 1]
    operation, inputs = node.operation, [found[j] for j in node.inputs]
    if is_layer(operation):
        return _of_layer(operation, inputs[0] if (graph.read[i] >= 0).any() else None)
    if isinstance(operation, (Add, Concat)):
        return _joined(graph, i, node, axis, inputs)
    (way,) = graph.ways[i]
    assert inputs[0] is not None
    before = inputs[0]
    x = Interval(*(end[way.source] for end in before))
    match operation:
        case Elementwise():
            made = _hull(operation.interval(_probe(x, axis, node)), 1 + axis.axis)
            zero = (x.lower == 0.0) & (x.upper == 0.0) & isinstance(operation, _FIXES_ZERO)
            return Interval(*(np.where(zero, 0.0, end) for end in made))
        case BatchNorm():
            return _scaled(operation.as_scale(len(node.shape)), x, axis, node)
        case Scale():
            return _scaled(operation, x, axis, node)
        case Convolution():  # depthwise: no weights, or nothing to weigh
            idle = ~operation.kernel.any(axis=tuple(range(1, operation.kernel.ndim)))
            idle |= (x.lower == 0.0) & (x.upper == 0.0)
            return _known(idle, np.zeros(len(idle)) if operation.bias is None else operation.bias)
        case Reduce(mean=False):
            (shape,) = graph.model.shapes_into(node)
            return _summed(x, math.prod(shape[k] for k in operation.axes))
        case AveragePool() if operation.count_padding:
            padded = any((*operation.window.before, *operation.window.after))
            return _with(x, 0.0) if padded else x
        case Resize():
            return _known((x.lower == 0.0) & (x.upper == 0.0), np.zeros(len(x.lower)))
        case Fill() if any(operation.before) or any(operation.after):
            return _with(x, operation.value)
    return x


def _summed(x: Interval, count: int) -> Interval:
    """Bound a sum of so many numbers; zeros stay exact."""
    if count == 1:
        return x
    ends = zip(x, (-np.inf, np.inf), strict=True)
    return Interval(*(np.where(end == 0.0, 0.0, np.nextafter(end * count, side)) for end, side in ends))


def _known(where: Mask, values: Array) -> Interval:
    return Interval(np.where(where, values, -np.inf), np.where(where, values, np.inf))


def _probe(x: Interval, axis: Axis, node: Node) -> Interval:
    """Return bounds as a tensor with one entry for every index along the axis."""
    shape = [1] * (1 + len(node.shape))
    shape[1 + axis.axis] = -1
    return Interval(*(end.reshape(shape) for end in x))


def _of_layer(operation: Layer, x: Interval | None) -> Interval:
    """Bound what a layer makes by its biases and the signs of its weights."""
    W, b = weights(operation), biases(operation)
    live = np.ones(W.shape[1], dtype=bool) if x is None else ~((x.lower == 0.0) & (x.upper == 0.0))
    positive, negative = np.zeros(len(W), dtype=bool), np.zeros(len(W), dtype=bool)
    step = max(1, _CHUNK // max(1, W[0].size))
    for start in range(0, len(W), step):
        part = slice(start, start + step)
        rows = W[part] if live.all() else W[part][:, live]
        positive[part], negative[part] = (rows > 0.0).any(axis=(1, 2)), (rows < 0.0).any(axis=(1, 2))
    if x is None or not (x.lower[live] >= 0.0).all():
        return _known(~positive & ~negative, b)
    return Interval(np.where(negative, -np.inf, b), np.where(positive, np.inf, b))


def _scaled(scale: Scale, x: Interval, axis: Axis, node: Node) -> Interval:
    """Bound ``factor * x + shift``, exactly where x is known or the factor is zero."""
    probe = _probe(x, axis, node)
    with np.errstate(invalid="ignore"):
        entries = scale.interval(probe)
        f = np.ones(()) if scale.factor is None else scale.factor
        h = np.zeros(()) if scale.shift is None else scale.shift
        product = multiply(np.where(f == 0.0, 0.0, probe.lower), np.where(f == 0.0, 0.0, f))
        total = add(product.value, h)
    exact = ((f == 0.0) | (probe.lower == probe.upper)) & (product.error == 0.0) & (total.error == 0.0)
    exact &= np.isfinite(total.value)
    return _hull(Interval(*(np.where(exact, total.value, end) for end in entries)), 1 + axis.axis)


def _joined(
    graph: ChannelGraph, i: int, node: Node, axis: Axis, inputs: list[Interval | None]
) -> Interval:
    """Bound a sum or a concatenation."""
    lengths = [len(way.source) for way in graph.ways[i]]
    known = [_unknown(n) if x is None else x for x, n in zip(inputs, lengths, strict=True)]
    if isinstance(node.operation, Concat):
        ends = list(zip(*known, strict=True))
        if node.operation.axis == axis.axis:
            return Interval(np.concatenate(ends[0]), np.concatenate(ends[1]))
        return Interval(np.min(ends[0], axis=0), np.max(ends[1], axis=0))
    low, high = np.zeros(lengths[0]), np.zeros(lengths[0])
    assert isinstance(node.operation, Add)
    for sign, x in zip(node.operation.signs, known, strict=True):
        a, b = (x.lower, x.upper) if sign == 1 else (-x.upper, -x.lower)
        low, high = add_down(low, a), add_up(high, b)
    return Interval(low, high)
