r"""Channels that are multiples of others: found by their weights, followed to where they are read.

Channel j repeats channel i if :math:`(K_j, b_j) = t\,(K_i, b_i)` with :math:`t > 0`, exactly. On the
way the factor t stays what it is (ReLU and its relatives, pooling, moves), changes (batch norm,
depthwise convolution), or has to be one (every other function). All of it is decided in rational
arithmetic.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from pindown.affine import Affine, Array
from pindown.deadline import Deadline
from pindown.equivalence.related_units import _are_multiples, unit_relations
from pindown.equivalence.shrinking._channel_graph import (
    ChannelGraph,
    Indices,
    Layer,
    biases,
    is_layer,
    weights,
)
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, BatchNorm, Scale
from pindown.model.operations.elementwise import Elementwise
from pindown.model.operations.moves import Concat, Fill
from pindown.model.operations.operation import Interval, Operation
from pindown.model.operations.piecewise_linear import Abs, LeakyRelu, Relu
from pindown.network import ReluNetwork

_HOMOGENEOUS = (Relu, LeakyRelu, Abs)  # f(t x) = t f(x) for t > 0


class Reading(NamedTuple):
    """Where a layer reads a copy and what it copies: ``x[gone] = factor * x[kept]``."""

    layer: int
    gone: int
    kept: int
    factor: Fraction


class ChannelCopy(NamedTuple):
    """A channel that is a multiple of another wherever it is read."""

    gone: int
    kept: int
    readings: tuple[Reading, ...]


class _Pair(NamedTuple):
    """Where a tensor holds the two channels, index by index, and the factors between them."""

    kept: Indices
    gone: Indices
    factors: list[Fraction]


def find_copies(
    graph: ChannelGraph, bounds: list[Interval | None], deadline: Deadline
) -> list[ChannelCopy]:
    """Return channels that are multiples of others, none of which is one itself.

    Args:
        graph: The model and its channels.
        bounds: What the channels of every tensor can be.
        deadline: When to stop looking.
    """
    found = _followed_copies(graph, deadline)
    taken = {channel for copy in found for channel in (copy.gone, copy.kept)}
    return found + [copy for copy in _constants(graph, bounds) if not {copy.gone, copy.kept} & taken]


def _constants(graph: ChannelGraph, bounds: list[Interval | None]) -> Iterator[ChannelCopy]:
    """Yield constants other than zero as multiples of one of them, for all that reads them."""
    places: dict[int, list[tuple[int, int, float]]] = defaultdict(list)
    for i, channels in graph.read.items():
        x = bounds[graph.model.nodes[i - 1].inputs[0]]
        if x is None:
            continue
        values = np.where(x.lower == x.upper, x.lower, np.nan)
        for place in np.flatnonzero(channels >= 0).tolist():
            places[int(channels[place])].append((i, place, float(values[place])))
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for channel, readings in places.items():
        if graph.free[channel] and all(np.isfinite(value) and value != 0.0 for *_, value in readings):
            alike[tuple(i for i, *_ in readings)].append(channel)
    for kept, *others in alike.values():
        for gone in others:
            both = zip(places[kept], places[gone], strict=True)
            factors = [Reading(i, q, p, Fraction(b) / Fraction(a)) for (i, p, a), (_, q, b) in both]
            yield ChannelCopy(gone, kept, tuple(factors))


def _followed_copies(graph: ChannelGraph, deadline: Deadline) -> list[ChannelCopy]:
    """Return channels whose weights are multiples of others' and that stay so wherever they are read."""
    touched = defaultdict(list)
    for i, axis in enumerate(graph.axes):
        if axis is not None:
            for channel in np.unique(axis.channels).tolist():
                touched[channel].append(i)
    found: dict[int, ChannelCopy] = {}
    kept: set[int] = set()
    for first, other in _candidates(graph, deadline):
        if {first, other} & found.keys() or other in kept:
            continue
        if touched[first] == touched[other]:
            copy = _followed(graph, first, other, touched[first])
            if copy is not None:
                found[other] = copy
                kept.add(first)
    return list(found.values())


def _candidates(graph: ChannelGraph, deadline: Deadline) -> Iterator[tuple[int, int]]:
    """Yield pairs of channels that one layer makes as positive multiples, the smaller first."""
    for i, channels in graph.made.items():
        operation = graph.layer(i)
        free = np.flatnonzero(graph.free[channels])
        if len(free) < 2 or deadline.passed:
            continue
        W = weights(operation).reshape(len(channels), -1)
        layer = Affine(W, biases(operation))
        if len(free) < len(channels):
            layer = Affine(W[free], layer.bias[free])
        every = Affine(np.ones((1, len(free))), np.zeros(1))
        (relations,) = unit_relations(ReluNetwork((layer, every)), relative=0.0)
        for group in relations.parallel:
            exact = [
                (t, u)
                for t, u, same in zip(group.factors, group.units, group.exact, strict=True)
                if same
            ]
            for sign in (1.0, -1.0):
                # Small ones take over: factors are then above one, and whole numbers stay whole.
                units = [
                    int(free[u]) for _, u in sorted((abs(t), u) for t, u in exact if sign * t > 0.0)
                ]
                yield from ((int(channels[units[0]]), int(channels[u])) for u in units[1:])


def _followed(graph: ChannelGraph, kept: int, gone: int, tensors: list[int]) -> ChannelCopy | None:
    """Follow two channels to all that reads them; None if one does not stay a multiple of the other."""
    pairs: dict[int, _Pair] = {}
    for i in tensors:
        axis = graph.axes[i]
        assert axis is not None
        a, b = (np.flatnonzero(axis.channels == channel) for channel in (kept, gone))
        if len(a) != len(b):
            return None
        found = [_factor(graph, i, int(p), int(q), pairs) for p, q in zip(a, b, strict=True)]
        factors = [factor for factor in found if factor is not None and factor > 0]
        if len(factors) < len(found):
            return None
        pairs[i] = _Pair(a, b, factors)
    readings = []
    for i, channels in graph.read.items():
        if (channels == gone).any() or (channels == kept).any():
            a, b, factors = pairs[graph.model.nodes[i - 1].inputs[0]]
            readings += [Reading(i, int(q), int(p), t) for p, q, t in zip(a, b, factors, strict=True)]
    return ChannelCopy(gone, kept, tuple(readings))


def _factor(graph: ChannelGraph, i: int, p: int, q: int, pairs: dict[int, _Pair]) -> Fraction | None:
    """Return t with ``x[q] = t x[p]`` for what node i makes at two indices, or None."""
    node = graph.model.nodes[i - 1]
    operation = node.operation
    if is_layer(operation):
        return _of_rows(operation, p, q)
    factors = []
    for tensor, a, b in _sources(graph, i, p, q):
        pair = pairs.get(tensor)
        place = -1 if pair is None else int(np.searchsorted(pair.gone, b))
        if pair is None or place >= len(pair.gone) or pair.gone[place] != b or pair.kept[place] != a:
            return None
        factors.append(pair.factors[place])
    if len(set(factors)) != 1:
        return None
    axis = graph.axes[i]
    assert axis is not None
    return _after(operation, factors[0], p, q, axis.axis - len(node.shape))


def _sources(graph: ChannelGraph, i: int, p: int, q: int) -> Iterator[tuple[int, int, int]]:
    """Yield the tensors that two indices of what node i makes come from, and the indices there."""
    node, axis = graph.model.nodes[i - 1], graph.axes[i]
    assert axis is not None
    if isinstance(node.operation, Concat) and node.operation.axis == axis.axis:
        start = 0
        for tensor, way in zip(node.inputs, graph.ways[i], strict=True):
            if start <= p < start + len(way.source):
                yield tensor, p - start, q - start
            start += len(way.source)
        return
    for tensor, way in zip(node.inputs, graph.ways[i], strict=True):
        yield tensor, int(way.source[p]), int(way.source[q])


def _of_rows(operation: Layer, p: int, q: int) -> Fraction | None:
    W, b = weights(operation), biases(operation)
    return _multiple(np.append(W[p], b[p]), np.append(W[q], b[q]))


def _multiple(first: Array, second: Array) -> Fraction | None:
    """Return t with ``second = t first`` exactly, or None."""
    pivot = int(np.argmax(np.abs(first)))
    if first[pivot] == 0.0 or not _are_multiples(first, second):
        return None
    return Fraction(float(second[pivot])) / Fraction(float(first[pivot]))


def _after(operation: Operation, t: Fraction, p: int, q: int, axis: int) -> Fraction | None:
    """Return what becomes of ``x[q] = t x[p]`` after an operation; the axis is counted from the end."""
    match operation:
        case Elementwise():
            fits = t == 1 or isinstance(operation, _HOMOGENEOUS)
            return t if fits and _same_numbers(operation, p, q, axis) else None
        case BatchNorm() | Scale():
            return _scaled(operation, t, p, q, axis)
        case Convolution():  # depthwise
            return _scaled_rows(operation, t, p, q)
        case Fill():
            padded = any(operation.before) or any(operation.after)
            return None if padded and operation.value != 0.0 and t != 1 else t
        case Add():
            return t
    return t


def _same_numbers(operation: Operation, p: int, q: int, axis: int) -> bool:
    """Return whether an operation entry by entry has the same numbers at two indices."""
    arrays = (getattr(operation, field.name) for field in fields(operation))  # type: ignore[arg-type]
    return all(
        np.array_equal(np.take(v, p, axis), np.take(v, q, axis))
        for v in arrays
        if isinstance(v, np.ndarray) and v.ndim >= -axis and v.shape[axis] > 1
    )


def _scaled(operation: BatchNorm | Scale, t: Fraction, p: int, q: int, axis: int) -> Fraction | None:
    r"""Follow :math:`f_q t x + h_q = s (f_p x + h_p)`, with :math:`s = f_q t / f_p`."""
    scale = operation.as_scale(-axis + 1) if isinstance(operation, BatchNorm) else operation
    f, h = (
        [_at(numbers, index, axis, default) for index in (p, q)]
        for numbers, default in ((scale.factor, 1.0), (scale.shift, 0.0))
    )
    ratio = _multiple(f[0], f[1])
    if ratio is None:
        return None
    s = ratio * t
    pairs = zip(h[0].tolist(), h[1].tolist(), strict=True)
    return s if all(Fraction(b) == s * Fraction(a) for a, b in pairs) else None


def _at(numbers: Array | None, index: int, axis: int, default: float) -> Array:
    if numbers is None:
        return np.array([default])
    if numbers.ndim < -axis or numbers.shape[axis] == 1:
        return numbers.ravel()
    return np.take(numbers, index, axis).ravel()


def _scaled_rows(operation: Convolution, t: Fraction, p: int, q: int) -> Fraction | None:
    ratio = _multiple(operation.kernel[p].ravel(), operation.kernel[q].ravel())
    if ratio is None:
        return None
    a, b = (Fraction(0 if operation.bias is None else float(operation.bias[k])) for k in (p, q))
    return ratio * t if b == ratio * t * a else None
