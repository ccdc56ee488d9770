r"""Layers whose ReLUs do nothing, merged with the next one.

A pair of channels with :math:`(K_j, b_j) = -t\,(K_i, b_i)` that the next layer weighs with
:math:`t\,W_j = -W_i` is linear, because :math:`\rho(u) - \rho(-u) = u`; so is a channel that is never
negative. If all channels of a layer are, and the next layer reads one point at a time, the two are one
layer with the weights :math:`W K`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pindown.affine import Affine, Array
from pindown.equivalence.related_units import unit_relations
from pindown.equivalence.shrinking._channel_graph import (
    ChannelGraph,
    Layer,
    biases,
    weights,
    with_weights,
)
from pindown.equivalence.shrinking._rounded_matrices import Mask, affine_image, matmul, same_products
from pindown.model.builder import Builder
from pindown.model.graph import Model
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Dense
from pindown.model.operations.operation import Interval
from pindown.model.operations.piecewise_linear import Relu
from pindown.network import ReluNetwork


class MergedLayers(NamedTuple):
    """Two layers as one.

    Attributes:
        first: The number of the node of the first of them.
        second: That of the other, in whose place the merged one stands.
        operation: The merged layer.
        weight_error: Bounds on what rounding did to its weights (made, read, points).
        bias_error: Bounds on what rounding did to its biases.
    """

    first: int
    second: int
    operation: Layer
    weight_error: Array
    bias_error: Array


def linear_layers(graph: ChannelGraph, bounds: list[Interval | None]) -> Iterator[MergedLayers]:
    """Yield layers all of whose channels are linear where they are read, merged with what reads them."""
    uses = Counter(j for node in graph.model.nodes for j in node.inputs)
    for second in graph.read:
        (between,) = graph.model.nodes[second - 1].inputs
        if between == 0 or uses[between] > 1:
            continue
        bend = graph.model.nodes[between - 1]
        if (
            not isinstance(bend.operation, Relu)
            or bend.inputs[0] not in graph.made
            or uses[bend.inputs[0]] > 1
        ):
            continue
        first = bend.inputs[0]
        x = bounds[first]
        A, B = graph.layer(first), graph.layer(second)
        if x is None or not (_at_one_point(A, B) and graph.free[graph.made[first]].all()):
            continue
        read = _linear_weights(A, weights(B)[:, :, 0], x.lower >= 0.0)
        if read is not None and read.size + weights(A).size > len(read) * weights(A)[0].size:
            yield _merged(first, second, A, B, read)


def _at_one_point(A: Layer, B: Layer) -> bool:
    """Return whether the second layer reads what the first makes point by point."""
    if isinstance(A, Dense) or isinstance(B, Dense):
        return isinstance(A, Dense) and isinstance(B, Dense) and A.axis == B.axis
    if not (isinstance(A, Convolution) and isinstance(B, Convolution)):
        return False
    window = B.window
    return {*window.kernel, *window.strides} == {1} and not any((*window.before, *window.after))


def _linear_weights(A: Layer, read: Array, on: Mask) -> Array | None:
    """Return how the second layer weighs what enters the ReLUs of the first; None if they bend it."""
    rows = Affine(weights(A).reshape(len(on), -1), biases(A))
    every = Affine(np.ones((1, len(on))), np.zeros(1))
    linear, read = on.copy(), read.copy()
    (relations,) = unit_relations(ReluNetwork((rows, every)), relative=0.0)
    for group in relations.parallel:
        members = [
            (u, t) for u, t, same in zip(group.units, group.factors, group.exact, strict=True) if same
        ]
        positive, negative = ([u for u, t in members if sign * t > 0.0] for sign in (1, -1))
        for i, j in zip(positive, negative, strict=False):
            pivot = int(np.argmax(np.abs(rows.weight[i])))
            a, b = (np.full(len(read), rows.weight[k, pivot]) for k in (i, j))
            if not linear[i] and not linear[j] and same_products(read[:, i], a, read[:, j], b).all():
                linear[[i, j]] = True
                read[:, j] = 0.0
    return read if linear.all() else None


def _merged(first: int, second: int, A: Layer, B: Layer, read: Array) -> MergedLayers:
    W = weights(A)
    product = matmul(read, np.ascontiguousarray(W.reshape(len(W), -1)))
    bias = affine_image(read, biases(A), biases(B))
    shape = (len(read), *W.shape[1:])
    value, error = (np.asarray(part).reshape(shape) for part in product)
    return MergedLayers(first, second, with_weights(A, value, bias.value), error, bias.error)


def with_merged(model: Model, merged: MergedLayers) -> tuple[Model, int]:
    """Return the model with two layers as one, and the number of its node."""
    graph = Builder(model.literal_shape)
    tensors = [graph.input]
    for i, node in enumerate(model.nodes, 1):
        graph.place = node.name
        operation, inputs = node.operation, node.inputs
        if i == merged.second:
            operation, inputs = merged.operation, model.nodes[merged.first - 1].inputs
        tensors.append(graph.add(operation, *(tensors[j] for j in inputs)))
    facts = {"dtype": model.dtype, "notes": model.notes}
    made = graph.model(tensors[-1], input_shape=model.input_shape, **facts)
    return made, next(i for i, node in enumerate(made.nodes, 1) if node.operation is merged.operation)
