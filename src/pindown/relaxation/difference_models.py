r"""The difference of two models of one structure, as a model of its own.

Bounding each model alone loses nearly everything: the difference of two nearly equal models is small,
their ranges are not. So every tensor :math:`z` of the first model f stands beside the *difference*
:math:`\delta = z_f - z_g` to that of the second model g. Operation by operation,

.. math::
    \delta' = (L_f - L_g)\, z_f + L_g\, \delta + (b_f - b_g) \quad \text{(affine)}, \qquad
    \delta' = \rho(z_f) - \rho(z_f - \delta) \quad \text{(ReLU)},

and what only moves or adds entries moves and adds differences. Any other operation is applied to
:math:`z_f` and to :math:`z_f - \delta`. The result is a :class:`~pindown.model.graph.Model`, so that
all bounds on models bound the difference: on any graph, convolutions as convolutions.

Weights of :math:`L_f - L_g` are rounded once, relatively to themselves; bounds of affine operations
charge twice what the rounding of their sums can do, and at least sixteen times that.

Paulsen, Wang and Wang 2020, "ReluDiff: differential verification of deep neural networks".
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.model.builder import Builder, Tensor
from pindown.model.graph import Model, Node
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, BatchNorm, Dense, Scale
from pindown.model.operations.integer_weights import IntegerWeights
from pindown.model.operations.moves import Concat, Move
from pindown.model.operations.operation import (
    EntrywiseLines,
    Interval,
    Numbers,
    Operation,
    Relaxation,
    Shape,
    Writer,
)
from pindown.model.operations.relu import Relu, triangle_lines
from pindown.rounding import TINY, UNIT_ROUNDOFF, add_down, add_up

_ROUNDED = 1.0 + 8.0 * UNIT_ROUNDOFF


def difference_model(first: Model, second: Model) -> Model | None:
    """Return the model ``x -> first(x) - second(x)``, like operations tied; None if some are not alike.

    Args:
        first: A model.
        second: One with the same operations in the same places; their numbers may differ.

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
    if first.literal_shape != second.literal_shape or len(first.nodes) != len(second.nodes):
        return None
    pairs = [tuple(map(_plain, both)) for both in zip(first.nodes, second.nodes, strict=True)]
    if not all(_alike(p, q) for p, q in pairs):
        return None
    graph = Builder(first.literal_shape)
    own: list[Tensor] = [graph.input]
    apart: list[Tensor | None] = [None]  # None: no difference
    for p, q in pairs:
        graph.place = p.name
        own.append(graph.add(p.operation, *(own[j] for j in p.inputs)))
        ends = [own[j] for j in p.inputs], [apart[j] for j in p.inputs]
        apart.append(_difference(graph, own[-1], p.operation, q.operation, *ends))
    last = apart[-1]
    if last is None:
        return None
    return graph.model(last, input_shape=first.input_shape, dtype="float64")


def _plain(node: Node) -> Node:
    """Return a node whose weights are stored as integers with these as the numbers that they are."""
    operation = node.operation
    return node._replace(operation=operation.inner) if isinstance(operation, IntegerWeights) else node


def _alike(p: Node, q: Node) -> bool:
    same = type(p.operation) is type(q.operation) and p.inputs == q.inputs and p.shape == q.shape
    return same and (
        isinstance(p.operation, AffineOperation) or not changed_fields(p.operation, q.operation)
    )


def changed_fields(p: Operation, q: Operation) -> dict[str, tuple[Any, Any]]:
    """Return the fields in which two operations of one kind differ."""
    both = {entry.name: (getattr(p, entry.name), getattr(q, entry.name)) for entry in fields(p)}  # type: ignore[arg-type]
    return {name: pair for name, pair in both.items() if not _equal(*pair)}


def _equal(x: Any, y: Any) -> bool:
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return x is y or np.array_equal(x, y)
    if isinstance(x, Operation) and isinstance(y, Operation):
        return type(x) is type(y) and not changed_fields(x, y)
    return bool(x == y)


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


# ---------------------------------------------------------------------- ReLU


class Plane(NamedTuple):
    """``own * z + apart * delta + offset`` above a function of both, each ``(n, *shape)``."""

    own: Array
    apart: Array
    offset: Array

    def at(self, z: Array, delta: Array) -> Array:
        """Return its height at a point of each box."""
        return self.own * z + self.apart * delta + self.offset


@dataclass(frozen=True, eq=False)
class ReluDifference(Operation):
    r"""The difference of a ReLU at two places, :math:`\Delta = \rho(z) - \rho(z - \delta)`.

    On a box, :math:`l \le z \le u` and :math:`d \le \delta \le e` with :math:`d < 0 < e`, three planes
    lie above it: with :math:`m = \max(l, d)` and :math:`M = \min(u, e)`

    .. math::
        \Delta \le \frac{e\,(\delta - d)}{e - d}, \qquad
        \Delta \le \delta + \frac{-m}{u - m}\,(u - z), \qquad
        \Delta \le \frac{M}{M - l}\,(z - l).

    The first is the chord of :math:`\max(0, \delta)`; the second is :math:`\delta` where both are on,
    the third 0 where the first is off. Below, the same holds with both exchanged, for :math:`-\Delta` of
    :math:`z - \delta` and :math:`-\delta`. Of the three the one is taken that is lowest at the middle.
    """

    def shape(self, *shapes: Shape) -> Shape:
        """Return that of both."""
        if shapes[0] != shapes[1]:
            raise ValueError(f"values and differences need one shape; got {shapes[0]} and {shapes[1]}.")
        return shapes[0]

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Evaluate."""
        z, delta = inputs
        return np.asarray(np.maximum(z, 0) - np.maximum(z - delta, 0))

    def interval(self, *boxes: Interval) -> Interval:
        """Bound it by the differences, and by what each ReLU can be."""
        z, delta = boxes
        other = _other(z, delta)
        low = np.maximum(np.minimum(delta.lower, 0.0), -np.maximum(other.upper, 0.0))
        high = np.minimum(np.maximum(delta.upper, 0.0), np.maximum(z.upper, 0.0))
        on = (z.lower >= 0) & (other.lower >= 0)
        return Interval(np.where(on, delta.lower, low), np.where(on, delta.upper, high))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return planes above and below."""
        z, delta = boxes
        if not all(np.isfinite(end).all() for box in boxes for end in box):
            return super().relaxation(*boxes)
        above = _lowest(_planes(z, delta), z, delta)
        other, back = _other(z, delta), Interval(-delta.upper, -delta.lower)
        under = _lowest(_planes(other, back), other, back)
        # -Delta <= p (z - delta) - r delta + t, so Delta >= -p z + (p + r) delta - t.
        slope = under.own + under.apart
        rounding = 4.0 * UNIT_ROUNDOFF * np.abs(slope) * delta.reach + TINY
        below = add_down(-under.offset, -rounding)
        return EntrywiseLines(
            (-under.own, slope), below, (above.own, above.apart), above.offset, (z, delta)
        )

    def bends(self, z: Interval, delta: Interval) -> NDArray[np.bool_]:
        """Return where it is not linear on boxes of values and differences."""
        other = _other(z, delta)
        on, off = (z.lower >= 0) & (other.lower >= 0), (z.upper <= 0) & (other.upper <= 0)
        return np.asarray(~(on | off))

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Return the slopes in both."""
        z, delta = inputs
        here, there = np.where(z > 0, form, 0.0), np.where(z - delta > 0, form, 0.0)
        return here - there, there

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write the difference of two ReLUs."""
        other = writer.node("Sub", [*inputs])
        return writer.node("Sub", [writer.node("Relu", [each]) for each in (inputs[0], other)])


def _other(z: Interval, delta: Interval) -> Interval:
    """Return where z - delta lies."""
    return Interval(add_down(z.lower, -delta.upper), add_up(z.upper, -delta.lower))


def _planes(z: Interval, delta: Interval) -> tuple[Plane, Plane, Plane]:
    """Return three planes above the difference of ReLUs, each rounded to the safe side."""
    low, u = z
    d, e = delta
    zero, one = np.zeros(low.shape), np.ones(low.shape)
    _, chord, shift = triangle_lines(d, e)
    u = np.maximum(u, 0.0)
    with np.errstate(all="ignore"):
        m = np.minimum(np.maximum(low, d), 0.0)
        fall = np.where(m < 0, -m / (u - m), 0.0) * _ROUNDED  # a steeper one is above, too
        top = np.maximum(np.minimum(u, e), 0.0)
        rise = np.where(low < 0, np.where(top > 0, top / (top - low), 0.0) * _ROUNDED, 1.0)
        start = np.where(low < 0, -rise * low * _ROUNDED + TINY, 0.0)
    return (
        Plane(zero, chord, shift),
        Plane(-fall, one, fall * u * _ROUNDED + np.where(fall > 0, TINY, 0.0)),
        Plane(rise, zero, start),
    )


def _lowest(planes: tuple[Plane, ...], z: Interval, delta: Interval) -> Plane:
    """Return of each entry the plane that is lowest in the middle of its box."""
    middle = [box.lower / 2 + box.upper / 2 for box in (z, delta)]
    best = np.argmin([plane.at(*middle) for plane in planes], axis=0)
    return Plane(*(np.choose(best, column) for column in zip(*planes, strict=True)))
