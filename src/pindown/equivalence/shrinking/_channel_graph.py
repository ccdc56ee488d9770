"""The channels of a model: which entries of which tensors belong together.

A layer (dense, convolution) makes channels along one axis. Operations that treat channels apart (entry
by entry, pooling, batch norm, depthwise convolution, moves) pass them on, and the next layer reads
them. Channels that are added, as in a residual connection, are one and can only go together. What any
other operation reads, or the model returns, has to stay.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.equivalence.shrinking._rounded_matrices import Mask
from pindown.model.builder import Builder
from pindown.model.graph import Model, Node
from pindown.model.operations.convolution import Convolution, TransposedConvolution
from pindown.model.operations.dense import Add, BatchNorm, Dense, Reduce, Scale
from pindown.model.operations.elementwise import Elementwise
from pindown.model.operations.maxima import ReduceMax, ReduceMin
from pindown.model.operations.moves import (
    Concat,
    Constant,
    Expand,
    Fill,
    Gather,
    Pad,
    Reshape,
    Slice,
    Tile,
    Transpose,
)
from pindown.model.operations.operation import Operation, Shape
from pindown.model.operations.pooling import AveragePool, MaxPool
from pindown.model.operations.resize import Resize

Indices = NDArray[np.int64]
Layer = Dense | Convolution | TransposedConvolution


class Axis(NamedTuple):
    """Where a tensor holds channels.

    Attributes:
        axis: The axis, counted in the literal shape.
        channels: For every index along it, the number of the channel; -1 if it is none.
    """

    axis: int
    channels: Indices


class Way(NamedTuple):
    """How an operation passes channels on.

    Attributes:
        axis: The axis of its output.
        source: For every index along that axis, the index along the input's axis from which it comes.
    """

    axis: int
    source: Indices


class ChannelGraph:
    """The channels of every tensor of a model.

    Attributes:
        model: The model.
        axes: For every tensor (0 is the input, i what node i makes), where it holds channels, or None.
        made: For every layer, by the number of its node, the channels that it makes.
        read: For every layer the channels that it reads, -1 for what is no channel.
        ways: For operations that pass channels on, how each input gets to the output.
        free: For every channel, whether all ways from it are understood.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.axes: list[Axis | None] = [None]
        self.made: dict[int, Indices] = {}
        self.read: dict[int, Indices] = {}
        self.ways: dict[int, tuple[Way, ...]] = {}
        self._parent: list[int] = []
        self._stay: set[int] = set()
        shared = Counter(id(operation) for operation in model.operations if _has_channels(operation))
        for i, node in enumerate(model.nodes, 1):
            axis = self._follow(i, node)
            self.axes.append(axis)
            if shared[id(node.operation)] > 1:  # numbers used twice have to serve both
                self._pin(axis, *(self.axes[j] for j in node.inputs))
        self._pin(self.axes[-1])
        self._settle()

    # ------------------------------------------------------------------ following channels

    def _follow(self, i: int, node: Node) -> Axis | None:
        operation, inputs = node.operation, [self.axes[j] for j in node.inputs]
        shapes = self.model.shapes_into(node)
        if is_layer(operation):
            place = reading_axis(operation, shapes[0])
            if inputs[0] is not None and inputs[0].axis == place:
                self.read[i] = inputs[0].channels
            else:
                self._pin(*inputs)
                self.read[i] = np.full(shapes[0][place], -1)
            return self._new(i, node.shape, place)
        if isinstance(operation, Constant):
            return None
        if isinstance(operation, (Add, Concat)):
            return self._join(i, node, shapes)
        way = None if inputs[0] is None else passed_on(operation, inputs[0].axis, shapes[0], node.shape)
        if way is None or inputs[0] is None or len(inputs) > 1:
            self._pin(*inputs)
            return None
        self.ways[i] = (way,)
        return Axis(way.axis, inputs[0].channels[way.source])

    def _new(self, i: int, shape: Shape, place: int) -> Axis:
        start, n = len(self._parent), shape[place]
        self._parent.extend(range(start, start + n))
        self.made[i] = np.arange(start, start + n)
        return Axis(place, self.made[i])

    def _join(self, i: int, node: Node, shapes: Sequence[Shape]) -> Axis | None:
        """Follow channels through a sum or a concatenation."""
        inputs = [self.axes[j] for j in node.inputs]
        places = {axis.axis for axis in inputs if axis is not None}
        along = node.operation.axis if isinstance(node.operation, Concat) else None
        fits = len(places) == 1 and (along is not None or len({*shapes, node.shape}) == 1)
        if not fits or (along not in places and None in inputs):
            self._pin(*inputs)
            return None
        (place,) = places
        lists = [
            np.full(shape[place], -1) if axis is None else axis.channels
            for axis, shape in zip(inputs, shapes, strict=True)
        ]
        self.ways[i] = tuple(Way(place, np.arange(len(channels))) for channels in lists)
        if along == place:
            return Axis(place, np.concatenate(lists))
        for others in lists[1:]:
            self._unite(lists[0], others)
        return Axis(place, lists[0])

    def _pin(self, *axes: Axis | None) -> None:
        for axis in axes:
            if axis is not None:
                self._stay.update(axis.channels[axis.channels >= 0].tolist())

    def _unite(self, first: Indices, second: Indices) -> None:
        for a, b in zip(first.tolist(), second.tolist(), strict=True):
            if min(a, b) < 0:
                self._stay.update({a, b} - {-1})
            else:
                self._parent[self._root(a)] = self._root(b)

    def _root(self, channel: int) -> int:
        while self._parent[channel] != channel:
            self._parent[channel] = self._parent[self._parent[channel]]
            channel = self._parent[channel]
        return channel

    def _settle(self) -> None:
        """Give channels that were united one number, in every list."""
        roots = np.array([*map(self._root, range(len(self._parent))), -1])
        self.axes = [None if a is None else Axis(a.axis, roots[a.channels]) for a in self.axes]
        self.made = {i: roots[channels] for i, channels in self.made.items()}
        self.read = {i: roots[channels] for i, channels in self.read.items()}
        self.free = roots[:-1] == np.arange(len(self._parent))  # others have no number any more
        self.free[[int(roots[channel]) for channel in self._stay]] = False

    # ------------------------------------------------------------------ what there is

    def layer(self, i: int) -> Layer:
        """Return the operation of a layer, by the number of its node."""
        operation = self.model.nodes[i - 1].operation
        assert is_layer(operation)
        return operation

    def readers(self, gone: Mask) -> Iterator[tuple[int, Indices]]:
        """Yield the layers that read some channels, and where along their inputs."""
        for i, channels in self.read.items():
            places = np.flatnonzero(_chosen(channels, gone))
            if len(places):
                yield i, places

    def some_stay(self, gone: Mask) -> Mask:
        """Return the channels to remove, less those without which a tensor would be empty."""
        gone = gone & self.free
        for channels in (axis.channels for axis in self.axes if axis is not None):
            if _chosen(channels, gone).all():
                gone[channels[0]] = False
        return gone

    def without(self, gone: Mask, changed: Mapping[int, Operation]) -> Model:
        """Return the model without some channels.

        Args:
            gone: The channels.
            changed: Layers that take over their work, by the number of the node; what they say about the
                channels that go is ignored.
        """
        graph = Builder(self.model.literal_shape)
        tensors = [graph.input]
        for i, node in enumerate(self.model.nodes, 1):
            graph.place = node.name
            operation = self._cut(i, changed.get(i, node.operation), gone)
            tensors.append(graph.add(operation, *(tensors[j] for j in node.inputs)))
        facts = {"dtype": self.model.dtype, "notes": self.model.notes}
        return graph.model(tensors[-1], input_shape=self.model.input_shape, **facts)

    def _cut(self, i: int, operation: Operation, gone: Mask) -> Operation:
        node, axis = self.model.nodes[i - 1], self.axes[i]
        if is_layer(operation):
            rows, columns = (~_chosen(channels[i], gone) for channels in (self.made, self.read))
            return operation if rows.all() and columns.all() else cut_layer(operation, rows, columns)
        if axis is None or not _chosen(axis.channels, gone).any():
            return operation
        kept = np.flatnonzero(~_chosen(axis.channels, gone))
        if isinstance(operation, (Reshape, Expand)):
            to = tuple(len(kept) if k == axis.axis else n for k, n in enumerate(operation.to))
            return replace(operation, to=to)
        if isinstance(operation, Convolution):  # depthwise
            inside = self.axes[node.inputs[0]]
            assert inside is not None
            groups = int(np.count_nonzero(~_chosen(inside.channels, gone)))
            bias = None if operation.bias is None else operation.bias[kept]
            return replace(operation, kernel=operation.kernel[kept], bias=bias, groups=groups)
        if isinstance(operation, BatchNorm):
            parts = {
                name: getattr(operation, name)[kept] for name in ("scale", "shift", "mean", "variance")
            }
            return replace(operation, **parts)
        if isinstance(operation, (Scale, Elementwise)):
            return _cut_arrays(operation, axis.axis - len(node.shape), len(axis.channels), kept)
        return operation


def _has_channels(operation: Operation) -> bool:
    """Return whether an operation holds several numbers, of which some may belong to one channel."""
    return any(isinstance(v, np.ndarray) and v.size > 1 for v in vars(operation).values())


def _chosen(channels: Indices, gone: Mask) -> Mask:
    """Return which entries of a list of channels are among some channels."""
    return np.append(gone, False)[channels]  # -1 is none


def _cut_arrays(operation: Operation, axis: int, n: int, kept: Indices) -> Operation:
    """Cut the arrays of an operation entry by entry; the axis is counted from the end."""
    parts = {}
    for field in fields(operation):  # type: ignore[arg-type]
        value = getattr(operation, field.name)
        if isinstance(value, np.ndarray) and value.ndim >= -axis and value.shape[axis] == n > 1:
            parts[field.name] = np.take(value, kept, axis=axis)
    return replace(operation, **parts) if parts else operation  # type: ignore[type-var]


# ---------------------------------------------------------------------- layers


def is_layer(operation: Operation) -> TypeGuard[Layer]:
    """Return whether an operation makes channels: every one is a sum over all that it reads."""
    if isinstance(operation, Dense):
        return True
    return isinstance(operation, (Convolution, TransposedConvolution)) and operation.groups == 1


def reading_axis(operation: Layer, shape: Shape) -> int:
    """Return the axis along which a layer reads channels, and makes them."""
    return len(shape) + operation.axis if isinstance(operation, Dense) else 1


def weights(operation: Layer) -> Array:
    """Return the weights of a layer as (made, read, points), a view of its own."""
    if isinstance(operation, Dense):
        return operation.weight[:, :, None]
    kernel = operation.kernel
    if isinstance(operation, TransposedConvolution):
        kernel = kernel.swapaxes(0, 1)
    return kernel.reshape(*kernel.shape[:2], -1)


def with_weights(operation: Layer, new: Array, bias: Array | None) -> Layer:
    """Return a layer with other weights (made, read, points) and biases."""
    if isinstance(operation, Dense):
        return replace(operation, weight=new[:, :, 0], bias=bias)
    kernel = new.reshape(*new.shape[:2], *operation.kernel.shape[2:])
    if isinstance(operation, TransposedConvolution):
        return replace(operation, kernel=np.ascontiguousarray(kernel.swapaxes(0, 1)), bias=bias)
    return replace(operation, kernel=kernel, bias=bias)


def cut_layer(operation: Layer, rows: Mask, columns: Mask) -> Layer:
    """Return a layer that makes and reads fewer channels."""
    bias = None if operation.bias is None else operation.bias[rows]
    return with_weights(operation, weights(operation)[rows][:, columns], bias)


def biases(operation: Layer) -> Array:
    """Return what a layer adds to every channel."""
    return np.zeros(len(weights(operation))) if operation.bias is None else operation.bias


# ---------------------------------------------------------------------- passing channels on


def passed_on(operation: Operation, axis: int, shape: Shape, to: Shape) -> Way | None:
    """Return how an operation of one tensor passes channels on; None if it mixes or loses them."""
    same = Way(axis, np.arange(shape[axis]))
    match operation:
        case Elementwise():
            return same
        case BatchNorm() | MaxPool() | AveragePool():
            return same if axis == 1 else None
        case Scale():
            return same if to == shape else None
        case Reduce() | ReduceMax() | ReduceMin() | Resize():
            return None if axis in operation.axes else same
        case Convolution():
            n = shape[axis]
            depthwise = axis == 1 and operation.groups == n
            return Way(1, np.repeat(np.arange(n), to[1] // n)) if depthwise else None
        case Fill() | Pad():
            return None if operation.before[axis] or operation.after[axis] else same
        case _:
            return _moved(operation, same, shape, to)


def _moved(operation: Operation, same: Way, shape: Shape, to: Shape) -> Way | None:
    axis = same.axis
    match operation:
        case Transpose():
            return same._replace(axis=operation.order.index(axis))
        case Slice():
            span = operation.spans[axis] if axis < len(operation.spans) else slice(None)
            return same if span.indices(shape[axis]) == (0, shape[axis], 1) else None
        case Tile():
            return same if operation.repeats[axis] == 1 else None
        case Gather():
            if operation.axis == axis:
                return None
            return same._replace(axis=axis + (len(to) - len(shape) if operation.axis < axis else 0))
        case Expand():
            place = axis + len(to) - len(shape)
            return same._replace(axis=place) if to[place] == shape[axis] > 1 else None
        case Reshape():
            return _reshaped(axis, shape, to)
    return None


def _reshaped(axis: int, shape: Shape, to: Shape) -> Way | None:
    """Find the axis on which every channel is a run of neighbours, as after flattening a picture."""
    before, n = math.prod(shape[:axis]), shape[axis]
    for place, length in enumerate(to):
        if math.prod(to[:place]) == before and length % n == 0 and length > 1:
            return Way(place, np.repeat(np.arange(n), length // n))
    return None
