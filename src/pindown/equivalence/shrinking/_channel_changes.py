r"""How far a model moves when its layers are rounded: sizes of changes, operation by operation.

Let two models differ by :math:`E_l, e_l` in the weights and biases of layer l, entry by entry, let
:math:`m` bound what goes into that layer of the first, and let :math:`\delta` be the difference so far.
Then behind the layer

.. math:: \delta' = |W|\,\delta + E\,m + e ,

and an operation that moves no two numbers apart by more than the factor L makes :math:`L \delta` of it.
On a box :math:`m` comes from intervals. Without one every size is a pair :math:`(\alpha, \beta)` that
stands for
:math:`\alpha + \beta \|x\|`, and :math:`\max(\alpha, \beta)` bounds the gap relative to :math:`1 +
\|x\|`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.equivalence.shrinking._channel_graph import Layer, is_layer, with_weights
from pindown.model.graph import Model, interval_walk
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.dense import Add, BatchNorm
from pindown.model.operations.elementwise import Elementwise
from pindown.model.operations.maxima import ReduceMax, ReduceMin
from pindown.model.operations.moves import Concat, Constant, Fill, Move
from pindown.model.operations.operation import Interval, Operation, Shape, aligned
from pindown.model.operations.piecewise_linear import PiecewiseLinear
from pindown.model.operations.pooling import MaxPool
from pindown.model.operations.smooth import Elu
from pindown.model.operations.softmax import LogSoftmax, Softmax
from pindown.rounding import SMALLEST, gamma

# The largest derivatives of smooth functions, rounded up.
_STEEPEST = {
    "Celu": 1.0,
    "Cos": 1.0,
    "Erf": 1.129,
    "Gelu": 1.13,
    "HardSwish": 1.5,
    "Mish": 1.1,
    "Relu": 1.0,
    "Sigmoid": 0.25,
    "Silu": 1.1,
    "Sin": 1.0,
    "Softplus": 1.0,
    "Softsign": 1.0,
    "Tanh": 1.0,
}


class Error(NamedTuple):
    """Bounds on what rounding changed in a layer.

    Attributes:
        weight: For every weight (made, read, points), or None if none changed.
        bias: For every bias.
    """

    weight: Array | None
    bias: Array


def change_bound(
    model: Model,
    errors: Mapping[int, Error],
    box: Box | None,
    changed: Mapping[int, Operation] | None = None,
) -> float:
    """Bound the gap between a model and one whose layers differ from it by at most the errors.

    Args:
        model: The first model.
        errors: For layers, by the numbers of their nodes from 1.
        box: The inputs; None for all, the gap then relative to ``1 + ||x||``.
        changed: The layers of the second model; those of the first if they are left out.

    Returns:
        The bound; infinite if an operation on the way may move numbers apart by any factor.
    """
    n = 2 if box is None else 1
    weighted = any(error.weight is not None for error in errors.values())
    reaches = _reaches(model, box) if weighted else None
    inside: dict[int, Array] = {} if reaches is None else {0: next(reaches)}
    change: dict[int, Array | None] = {0: None}
    with np.errstate(over="ignore", invalid="ignore"):
        for i, node in enumerate(model.nodes, 1):
            operation = (changed or {}).get(i, node.operation)
            before = [change[j] for j in node.inputs]
            made: Array | None = None
            if any(part is not None for part in before):
                shapes = model.shapes_into(node)
                full = [
                    np.zeros((n, *s)) if p is None else p for p, s in zip(before, shapes, strict=True)
                ]
                made = spread(operation, node.shape, *full)
            if i in errors:
                assert is_layer(operation)
                new = _fresh(operation, errors[i], inside.get(node.inputs[0]), (n, *node.shape))
                made = new if made is None else (made + new) * (1.0 + gamma(4))
            change[i] = None if made is None else np.where(np.isnan(made), np.inf, made)
            if reaches is not None:
                inside[i] = next(reaches)
            for j in node.inputs:
                if model.last_use[j] <= i:
                    change.pop(j, None)
                    inside.pop(j, None)
    last = change[len(model.nodes)]
    return 0.0 if last is None else float(last.max())


def _fresh(operation: Layer, error: Error, reach: Array | None, shape: Shape) -> Array:
    """Return what the errors of a layer change behind it."""
    off = np.zeros(shape)
    place = len(shape) - 1 + operation.axis if hasattr(operation, "axis") else 1
    along = [1] * (len(shape) - 1)
    along[place] = -1
    off[0] = error.bias.reshape(along)
    if error.weight is None:
        return off
    assert reach is not None
    layer = with_weights(operation, error.weight, None)
    terms = layer.linear(reach)
    n = layer.n_terms(reach.shape[1:])
    return (off + terms * (1.0 + 2.0 * gamma(n + 8)) + n * SMALLEST) * (1.0 + gamma(4))


def spread(operation: Operation, shape: Shape, *sizes: Array) -> Array:
    """Bound how far apart an operation's values are where its inputs are at most so far apart.

    >>> spread(Add((1, -1)), (2,), np.array([[1.0, 2.0]]), np.array([[3.0, 0.0]])).round(9)
    array([[4., 2.]])
    """
    x = sizes[0]
    unknown = np.full((len(x), *shape), np.inf)
    match operation:
        case BatchNorm():
            return spread(operation.as_scale(x.ndim - 1), shape, x)
        case AffineOperation():
            positive, negative = operation.signed()
            total = positive.linear(x) + negative.linear(x)
            n = operation.n_terms(x.shape[1:])
            return (
                np.asarray(np.where(total == 0.0, 0.0, total * (1.0 + 2.0 * gamma(n + 8))))
                + n * SMALLEST
            )
        case Elementwise():
            return np.nextafter(steepest(operation) * x, np.inf) if x.any() else x
        case MaxPool() | ReduceMax() | Move() | Concat():
            return np.asarray(operation(*sizes))
        case ReduceMin():
            return np.asarray(ReduceMax(operation.axes)(x))
        case Fill():
            return replace(operation, value=0.0)(x)
        case Add():
            total = np.sum(np.broadcast_arrays(*(aligned(part, len(shape)) for part in sizes)), axis=0)
            return np.asarray(total * (1.0 + gamma(len(sizes) + 2)))
        case Constant():
            return np.zeros(unknown.shape)
        case Softmax() | LogSoftmax():
            # A row of the derivative has absolute values that sum to at most one half, or two.
            factor = 0.5 if isinstance(operation, Softmax) else 2.0
            return np.broadcast_to(
                factor * x.max(axis=1 + operation.axis % len(shape), keepdims=True), x.shape
            )
    return unknown


def steepest(operation: Elementwise) -> float:
    """Return how far a function moves numbers apart at most, as a factor; infinite if not known."""
    if isinstance(operation, PiecewiseLinear):
        return max(float(np.max(np.abs(slope))) for slope in operation.slopes)
    if isinstance(operation, Elu):  # Selu is one
        return float(getattr(operation, "gamma", 1.0)) * max(1.0, abs(float(operation.alpha)))
    return _STEEPEST.get(type(operation).__name__, np.inf)


def _reaches(model: Model, box: Box | None) -> Iterator[Array]:
    """Yield bounds on the sizes of the input and of what every node makes of it."""
    if box is not None:
        for interval in interval_walk(model, Interval(box.lower[None], box.upper[None])):
            yield interval.reach
        return
    start = np.zeros((2, *model.literal_shape))
    start[1] = 1.0
    sizes = {0: start}
    yield start
    for i, node in enumerate(model.nodes, 1):
        sizes[i] = _grown(node.operation, node.shape, *(sizes[j] for j in node.inputs))
        for j in node.inputs:
            if model.last_use[j] <= i:
                sizes.pop(j, None)
        yield sizes[i]


def _grown(operation: Operation, shape: Shape, *sizes: Array) -> Array:
    """Bound an operation's values: by what it makes of zero, and by how far its inputs are from that."""
    grown = np.array(spread(operation, shape, *sizes))
    zeros = [np.zeros((1, *x.shape[1:])) for x in sizes]
    grown[0] += operation.interval(*(Interval(zero, zero) for zero in zeros)).reach[0]
    grown[0] *= 1.0 + gamma(2)
    grown = np.where(np.isnan(grown), np.inf, grown)
    if isinstance(operation, Elementwise):
        most = max(abs(operation.least), abs(operation.most))
        if np.isfinite(most):
            grown[0], grown[1] = np.where(grown[1] > 0.0, most, np.minimum(grown[0], most)), 0.0
    return grown
