r"""Two models of one structure as one: the second is the first one and what it has more.

With layers :math:`W, b` of the first and :math:`W', b'` of the second, tensors y of the first and
:math:`y + \delta` of the second,

.. math::
    \delta_{out} = W' \delta + (W' - W) y + (b' - b), \qquad
    \delta_{out} = \max(0, z + \delta) - \max(0, z) ,

and the second lies between 0 and :math:`\delta`. What both have in common cancels exactly: bounds on the
gap of two models that hardly differ are of the size of the gap. Units may be paired in another order,
and scaled.

Bounds are those that ``checker/pindown_check.py`` makes, so that what is proved with them is proved to a
stranger; :mod:`~pindown.relaxation.difference_models` has tighter ones, of the difference alone.

Paulsen et al. 2020, "ReluDiff: differential verification of deep neural networks".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.model.builder import Builder, Tensor
from pindown.model.graph import Model
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, Dense, Scale
from pindown.model.operations.moves import Concat, Gather, Move, Reshape
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
from pindown.rounding import UNIT_ROUNDOFF, gamma


@dataclass(frozen=True, eq=False)
class ReluGap(Operation):
    """``max(0, z + d) - max(0, z)`` of the tensors d, z and z + d, entry by entry."""

    def shape(self, *shapes: Shape) -> Shape:
        """Return the shape that all have."""
        if len(set(shapes)) != 1:
            raise ValueError(f"tensors of one shape are needed; got {shapes}.")
        return shapes[0]

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Return the difference of the two ReLUs."""
        return np.maximum(inputs[2], 0) - np.maximum(inputs[1], 0)

    def interval(self, *boxes: Interval) -> Interval:
        """Return an interval between 0 and d, or d or 0 where the signs are known."""
        (low, high), on, off = boxes[0], *_signs(*boxes)
        least = np.where(on, low, np.minimum(low, 0.0))
        most = np.where(on, high, np.maximum(high, 0.0))
        return Interval(np.where(off, 0.0, least), np.where(off, 0.0, most))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return the chords of max(0, d) above and min(0, d) below."""
        n = max(len(box.lower) for box in boxes)  # signs may be chosen of one of them
        boxes = tuple(
            Interval(*(np.broadcast_to(end, (n, *end.shape[1:])) for end in box)) for box in boxes
        )
        (low, high), on, off = boxes[0], *_signs(*boxes)
        _, above, shift = triangle_lines(low, high)
        _, below, drop = triangle_lines(-high, -low)
        above, below = (np.where(on, 1.0, np.where(off, 0.0, slope)) for slope in (above, below))
        shift, drop = (np.where(on | off, 0.0, part) for part in (shift, drop))
        nothing = (np.zeros(low.shape),) * 2
        return EntrywiseLines((below, *nothing), -drop, (above, *nothing), shift, boxes)

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Pass what the two ReLUs pass."""
        passed = (np.where(z > 0, form, 0.0) for z in inputs[1:])
        return np.zeros_like(form), -next(passed), next(passed)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write the difference of two ReLUs."""
        parts = [writer.node("Relu", [each]) for each in (inputs[2], inputs[1])]
        return writer.node("Sub", parts)


def _signs(d: Interval, z: Interval, moved: Interval) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return where both numbers are surely not negative, and where both are surely not positive."""
    return (z.lower >= 0) & (moved.lower >= 0), (z.upper <= 0) & (moved.upper <= 0)


class Pairs(NamedTuple):
    """Units of a layer: unit i of the second model stands for ``scales[i]`` times unit ``places[i]``.

    Attributes:
        places: Units of the first model, (n,): a permutation, or more of them than it has.
        scales: Positive, (n,).
    """

    places: NDArray[np.intp]
    scales: Array

    @classmethod
    def same(cls, n: int) -> Pairs:
        """Pair units with themselves."""
        return cls(np.arange(n), np.ones(n))

    @property
    def plain(self) -> bool:
        """Whether units are paired with themselves."""
        return bool((self.places == np.arange(len(self.places))).all() and (self.scales == 1).all())


def tied(first: Model, second: Model, pairs: Sequence[Pairs] | None = None) -> Model | None:
    """Return the model with the outputs of both, the second as the first and what it has more.

    Args:
        first: A model.
        second: One of the same structure.
        pairs: For every ReLU, which units of the first model the second one's stand for; if None, units
            at the same place.

    Returns:
        The model, or None if the structures differ, or there are operations beside dense layers,
        convolutions, ReLUs and moves. Differences of weights are rounded to float64.

    Both are ``relu(x)``, but for the last bias:

    >>> from pindown import ReluNetwork
    >>> from pindown.model.from_network import model_of_network
    >>> nets = [ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [c])]) for c in (0, 0.125)]
    >>> both = tied(*map(model_of_network, nets))
    >>> both([2.0])
    array([2.   , 2.125])
    """
    if len(first.nodes) != len(second.nodes) or first.literal_shape != second.literal_shape:
        return None
    builder = Builder(first.literal_shape)
    tensors: list[Tensor] = [builder.input]
    for node in first.nodes:
        tensors.append(builder.add(node.operation, *(tensors[j] for j in node.inputs)))
    more: list[Tensor | None] = [None]
    paired: list[Pairs | None] = [None]
    given = iter([] if pairs is None else pairs)
    enters = {node.inputs[0] for node in second.nodes if isinstance(node.operation, Relu)}
    for i, (ours, theirs) in enumerate(zip(second.nodes, first.nodes, strict=True), 1):
        same = pairs is not None or ours.shape == theirs.shape
        if ours.inputs != theirs.inputs or not same or len(ours.inputs) != 1:
            return None
        j = ours.inputs[0]
        own = _own_pairs(given, ours.shape) if i in enters and pairs is not None else None
        made = _Step(builder, tensors[j], more[j], paired[j], own).made(ours.operation, theirs.operation)
        if made is None:
            return None
        more.append(made[0])
        paired.append(made[1])
    if paired[-1] is not None:
        return None
    base, rest = tensors[-1], more[-1]
    other = base if rest is None else builder.add(Add(), base, rest)
    outputs = [
        each if len(each.shape) == 2 else builder.add(Reshape((1, math.prod(each.shape))), each)
        for each in (base, other)
    ]
    return builder.model(builder.add(Concat(axis=1), *outputs), input_shape=first.input_shape)


def growth(model: Model) -> float:
    r"""Return t with :math:`|f_k(x) - g_k(x)| \le t (1 + \|x\|_2)` for all x, of :func:`tied` models.

    Every tensor has :math:`|y(x)| \le m (1 + \|x\|_2)`, with m = 1 for the input, |W| m + |b| behind an
    affine operation, and m again behind a ReLU; and so has what the second model has more.

    >>> from pindown import ReluNetwork
    >>> from pindown.model.from_network import model_of_network
    >>> nets = [ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [c])]) for c in (0, 0.125)]
    >>> round(growth(tied(*map(model_of_network, nets))), 6)
    0.125
    """
    most: list[Array] = [np.ones((1, *model.literal_shape))]
    found = 0.0
    for node in model.nodes:
        given = [most[j] for j in node.inputs]
        operation = node.operation
        if isinstance(operation, AffineOperation):
            positive, negative = (np.asarray(part.linear(given[0])) for part in operation.signed())
            offset = 0.0 if operation.offset is None else np.abs(operation.offset)
            made = (positive + negative + offset) * (
                1.0 + 4.0 * gamma(operation.n_terms(given[0].shape[1:]) + 8)
            )
        elif isinstance(operation, Move):
            made = operation.move(given[0], 1)
        elif isinstance(operation, Add):
            made = (given[0] + given[1]) * (1.0 + 2.0**-50)
            # In the last sum: what the second has more, and what differences of weights are rounded by.
            found = float(given[1].max() + 16.0 * len(model.nodes) * UNIT_ROUNDOFF * given[0].max())
        elif isinstance(operation, Concat):
            made = np.concatenate(given, axis=1 + operation.axis)
        else:
            made = given[0]
        most.append(np.asarray(made))
    return found


def summed_columns(W: Array, places: NDArray[np.intp], n: int) -> Array:
    """Return a matrix of n columns: each the sum of the columns of W that stand for it.

    >>> summed_columns(np.array([[1.0, 2.0, 4.0]]), np.array([1, 0, 1]), 2)
    array([[2., 5.]])
    """
    made = np.zeros((len(W), n))
    np.add.at(made.T, places, W.T)
    return made


def _own_pairs(given: Iterator[Pairs], shape: Shape) -> Pairs | None:
    own = next(given, None)
    return None if own is None or own.plain or shape[-1] != math.prod(shape) else own


class _Step(NamedTuple):
    """One operation of both: what it reads of the first, what the second has more, and pairs."""

    builder: Builder
    base: Tensor
    more: Tensor | None
    before: Pairs | None
    after: Pairs | None

    def made(self, ours: Operation, theirs: Operation) -> tuple[Tensor | None, Pairs | None] | None:
        """Return what the second has more after the operation, and its pairs; None if unknown."""
        if type(ours) is not type(theirs):
            return None
        if isinstance(ours, Relu):
            return self._bent(), self.before
        if isinstance(ours, Move):
            if self.before is not None and not isinstance(ours, Reshape):
                return None
            moved = None if self.more is None else self.builder.add(ours, self.more)
            return moved, self.before
        if isinstance(ours, Dense) and isinstance(theirs, Dense):
            if (ours.axis, theirs.axis) != (-1, -1):
                return None
            made = self._dense(ours, theirs)
            return None if made is None else (made, self.after)
        if isinstance(ours, Convolution) and isinstance(theirs, Convolution):
            if (
                self.before is not None
                or self.after is not None
                or ours.kernel.shape != theirs.kernel.shape
            ):
                return None
            bias = np.zeros(len(ours.kernel))
            b, c = (bias if op.bias is None else op.bias for op in (ours, theirs))
            change = replace(ours, kernel=ours.kernel - theirs.kernel, bias=b - c)
            return self._summed(replace(ours, bias=None), change), None
        return (None, None) if self.more is None and _equal(ours, theirs) else None

    def _dense(self, ours: Dense, theirs: Dense) -> Tensor | None:
        W, V = ours.weight, theirs.weight
        b, c = (np.zeros(len(op.weight)) if op.bias is None else op.bias for op in (ours, theirs))
        if self.before is not None:
            moved = summed_columns(W * self.before.scales, self.before.places, V.shape[1])
        else:
            moved = W
        if self.after is not None:
            V = V[self.after.places] * self.after.scales[:, None]
            c = c[self.after.places] * self.after.scales
        if moved.shape != V.shape:
            return None
        return self._summed(replace(ours, bias=None), replace(ours, weight=moved - V, bias=b - c))

    def _summed(self, ours: Operation, change: Operation) -> Tensor:
        """Return ``ours(more) + change(base)``."""
        rest = self.builder.add(change, self.base)
        if self.more is None:
            return rest
        return self.builder.add(Add(), self.builder.add(ours, self.more), rest)

    def _bent(self) -> Tensor | None:
        if self.more is None:
            return None
        z = self.base
        if self.before is not None:
            z = self.builder.add(Gather(self.before.places, axis=len(z.shape) - 1), z)
            z = self.builder.add(Scale(self.before.scales), z)
        moved = self.builder.add(Add(), z, self.more)
        return self.builder.add(ReluGap(), self.more, z, moved)


def _equal(one: Operation, two: Operation) -> bool:
    """Whether two operations hold the same numbers."""
    a, b = vars(one), vars(two)
    return all(key in b and np.array_equal(value, b[key]) for key, value in a.items())
