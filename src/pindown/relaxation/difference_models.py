r"""The difference of two models of one structure, as a model of its own.

Bounding each model alone loses nearly everything: the difference of two nearly equal models is small,
their ranges are not. So every tensor :math:`z` of the first model f stands beside the *difference*
:math:`\delta = z_f - z_g` to that of the second model g. Operation by operation,

.. math::
    \delta' = (L_f - L_g)\, z_f + L_g\, \delta + (b_f - b_g) \quad \text{(affine)}, \qquad
    \delta' = \rho(z_f) - \rho(z_f - \delta) \quad \text{(ReLU)},

and what only moves or adds entries moves and adds differences. Any other operation is applied to
:math:`z_f` and to :math:`z_f - \delta`. The
result is a :class:`~pindown.model.graph.Model`, so that all bounds on models bound the difference: on
any graph, convolutions as convolutions.

Weights of :math:`L_f - L_g` are rounded once, relatively to themselves; bounds of affine operations
charge twice what the rounding of their sums can do, and at least sixteen times that.

Paulsen, Wang and Wang 2020, "ReluDiff: differential verification of deep neural networks".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pindown.affine import Array
from pindown.model.builder import Builder, Tensor
from pindown.model.graph import Model
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, BatchNorm, Dense, Scale
from pindown.model.operations.moves import Concat, Move
from pindown.model.operations.operation import Operation
from pindown.model.operations.relu import Relu
from pindown.relaxation.paired_graphs import (
    NOTHING,
    Rounded,
    changed_fields,
    paired_graphs,
    plain,
)
from pindown.relaxation.relu_difference import ReluDifference


def difference_model(first: Model, second: Model) -> Model | None:
    """Return the model ``x -> first(x) - second(x)``, like operations tied; None if some are not alike.

    Args:
        first: A model.
        second: One with the same operations in the same places; their numbers may differ, and one of
            the two may add a bias by itself.

    Example:
        Two outputs of size 100 that differ by a thousandth:

        >>> from pindown import ReluNetwork
        >>> from pindown.model.from_network import model_of_network
        >>> from pindown.relaxation import bounds
        >>> nets = [ReluNetwork.from_layers([([[1.0]], [b]), ([[1.0]], [0])]) for b in (0.0, 0.001)]
        >>> apart = difference_model(*map(model_of_network, nets))
        >>> [float(end[0].round(9)) for end in bounds(apart, [-100.0], [100.0])]
        [-0.001, 0.0]

    Paulsen, Wang and Wang 2020, section 4.
    """
    pair = paired_graphs(first, second)
    # What rounding takes away depends on where an input lies: bounds of each alone are better there.
    if pair is None or any(
        isinstance(node.operation, Rounded) for graph in pair for node in graph.nodes
    ):
        return None
    graph = Builder(first.literal_shape)
    own: list[Tensor] = [graph.input]
    apart: list[Tensor | None] = [None]  # None: no difference
    for p, q in zip(*(model.nodes for model in pair), strict=True):
        graph.place = p.name
        ends = [own[j] for j in p.inputs], [apart[j] for j in p.inputs]
        own.append(ends[0][0] if p.operation is NOTHING else graph.add(plain(p.operation), *ends[0]))
        apart.append(_difference(graph, own[-1], plain(p.operation), plain(q.operation), *ends))
    last = apart[-1]
    if last is None:
        return None
    return graph.model(last, input_shape=first.input_shape, dtype="float64")


# ---------------------------------------------------------------------- differences of one operation


def _difference(
    graph: Builder,
    made: Tensor,
    p: Operation,
    q: Operation,
    own: list[Tensor],
    apart: list[Tensor | None],
) -> Tensor | None:
    """Add what makes the difference of what two operations make; None if there is none."""
    changed = changed_fields(p, q)
    if not changed and all(delta is None for delta in apart):
        return None
    delta = apart[0]
    if isinstance(p, AffineOperation) and isinstance(q, AffineOperation) and len(apart) == 1:
        change = _change(p, q, set(changed)) if changed else None
        linear = _linear(q)
        if linear is not None and (change is not None or not changed):
            parts = [] if change is None else [graph.add(change, own[0])]
            parts += [] if delta is None else [graph.add(linear, delta)]
            return parts[0] if len(parts) == 1 else graph.add(Add((1, 1)), *parts)
    if isinstance(p, Move) and delta is not None:
        return graph.add(p, delta)
    if isinstance(p, Add):
        kept = [(sign, part) for sign, part in zip(p.signs, apart, strict=True) if part is not None]
        if all(part.shape == made.shape for _, part in kept):
            return graph.add(Add(tuple(sign for sign, _ in kept)), *(part for _, part in kept))
    if isinstance(p, Concat) and all(part is not None for part in apart):
        return graph.add(p, *(part for part in apart if part is not None))
    if isinstance(p, Relu) and delta is not None:
        return graph.add(ReluDifference(), own[0], delta)
    other = [x if d is None else graph.add(Add((1, -1)), x, d) for x, d in zip(own, apart, strict=True)]
    return graph.add(Add((1, -1)), made, graph.add(q, *other))


def _change(p: Operation, q: Operation, changed: set[str]) -> AffineOperation | None:
    """Return the affine operation of the difference; None if more than weights and offsets differs."""
    if isinstance(p, Dense) and isinstance(q, Dense) and changed <= {"weight", "bias", "trained"}:
        return replace(p, weight=p.weight - q.weight, bias=_minus(p.bias, q.bias))
    if isinstance(p, Convolution) and isinstance(q, Convolution) and changed <= {"kernel", "bias"}:
        return replace(p, kernel=p.kernel - q.kernel, bias=_minus(p.bias, q.bias))
    named = {"factor", "shift", "kind", "trained"}
    if isinstance(p, Scale) and isinstance(q, Scale) and changed <= named:
        one = np.ones(1)
        factors = [one if op.factor is None else op.factor for op in (p, q)]
        return replace(p, factor=factors[0] - factors[1], shift=_minus(p.shift, q.shift))
    return None


def _minus(x: Array | None, y: Array | None) -> Array | None:
    if x is None and y is None:
        return None
    return np.asarray((0.0 if x is None else x) - (np.zeros(1) if y is None else y))


def _linear(q: AffineOperation) -> AffineOperation | None:
    """Return the operation without its offset; None if that is not known."""
    if isinstance(q, Scale):
        return replace(q, shift=None)
    if isinstance(q, (Dense, Convolution)):
        return replace(q, bias=None)
    if isinstance(q, BatchNorm):
        zero = np.zeros_like(q.shift)
        return replace(q, shift=zero, mean=zero)
    return q if q.offset is None else None
