r"""Affine operations: :math:`y = \sum_i L_i x_i + b`, bounded, relaxed and pulled back by one rule each.

An operation says what :math:`L` does and what its transpose does; the bounds follow. With
:math:`L = L^+ - L^-`, both non-negative, and :math:`l \le x \le u`,

.. math::
    L^+ l - L^- u + b \;\le\; y \;\le\; L^+ u - L^- l + b ,

and what float64 rounding can add is bounded and put on the outside (Higham 2002, section 3.1).
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from pindown.affine import Array
from pindown.model.operations.narrowing import LinearRows
from pindown.model.operations.operation import (
    Interval,
    Numbers,
    Operation,
    Pulled,
    Relaxation,
    Shape,
    Writer,
    applied,
    charged,
    dot,
    in_float32,
    matched,
)
from pindown.rounding import SAFE_PRODUCT, TINY, add_down, add_up, gamma, smallest_nonzero


class AffineOperation(Operation):
    """An operation ``y = L x + b`` of one tensor (those of several overwrite :meth:`interval`)."""

    @abstractmethod
    def linear(self, x: Numbers) -> Numbers:
        """Return ``L x``."""

    @abstractmethod
    def transposed(self, form: Array, shape: Shape) -> Array:
        """Return ``form L`` for a form (n, *output shape) and an input of a literal shape."""

    @abstractmethod
    def signed(self) -> tuple[AffineOperation, AffineOperation]:
        r"""Return the linear operations :math:`L^+` and :math:`L^-`, both with weights >= 0."""

    @abstractmethod
    def n_terms(self, shape: Shape) -> int:
        """Return how many products at most are summed for one entry, of an input of this shape."""

    @property
    def offset(self) -> Array | None:
        """The vector b, of a shape that broadcasts to the output's literal shape."""
        return None

    @cached_property
    def smallest_weight(self) -> float:
        """The smallest absolute weight that is not zero, 1 if there is none smaller."""
        arrays = [v for v in vars(self).values() if isinstance(v, np.ndarray) and v.dtype == np.float64]
        return smallest_nonzero(*arrays)

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Return ``L x + b``."""
        y = self.linear(inputs[0])
        if self.offset is None:
            return y
        if y.dtype == object:
            return y + matched(self.offset, y)
        y += self.offset
        return y

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Return ``form L``."""
        return (self.transposed(form, inputs[0].shape[1:]),)

    def interval(self, *boxes: Interval) -> Interval:
        """Bound the value, from the signed parts of L."""
        (box,) = boxes
        n = self.n_terms(box.lower.shape[1:])
        b = np.zeros(()) if self.offset is None else self.offset
        with np.errstate(over="ignore", invalid="ignore"):
            P, N = self._images(box)
            rounding = 2.0 * gamma(n + 8)
            low_slack = rounding * (P[2] + N[3] + np.abs(b))
            high_slack = rounding * (P[3] + N[2] + np.abs(b))
            if self.smallest_weight * smallest_nonzero(*box) < SAFE_PRODUCT:
                low_slack, high_slack = low_slack + (n + 1) * TINY, high_slack + (n + 1) * TINY
            low = add_down(P[0] - N[1] + b, -low_slack)
            high = add_up(P[1] - N[0] + b, high_slack)
            unknown = ~(np.isfinite(low) & np.isfinite(high))
        low[unknown], high[unknown] = -np.inf, np.inf
        return Interval(low + 0.0, high + 0.0)  # no negative zeros

    @cached_property
    def linear_rows(self) -> LinearRows | None:
        """The matrix that L is along the last axis, or None if it is another map."""
        return None

    def narrowed(self, value: Interval, *boxes: Interval) -> tuple[Interval, ...]:
        """Solve every row for each of its entries."""
        rows, (box,) = self.linear_rows, boxes
        if rows is None:
            return boxes
        m, d = rows.shape
        lengths = ((box, d), (self.interval(box), m), (value, m))
        flat = (Interval(*(end.reshape(-1, k) for end in at)) for at, k in lengths)
        return (Interval(*(end.reshape(box.lower.shape) for end in rows.narrowed(*flat))),)

    def _images(self, box: Interval) -> tuple[Array, Array]:
        r"""Return :math:`L^\pm` of l, u, \|l\| and \|u\|, stacked."""
        ends = [box.lower, box.upper]
        if box.lower.size and box.lower.min() < 0:  # after a ReLU it is not
            ends += [np.abs(box.lower), np.abs(box.upper)]
        flat = np.concatenate(ends)
        positive, negative = (part.linear(flat) for part in self.signed())
        images = []
        for part in (positive, negative):
            image = part.reshape(len(ends), len(box.lower), *part.shape[1:])
            images.append(image if len(ends) == 4 else np.concatenate([image, image]))
        return images[0], images[1]

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return the operation itself."""
        return AffineForms(self, boxes[0])

    @cached_property
    def single(self) -> AffineOperation:
        """The operation with its numbers in float32, to estimate with."""
        made = copy(self)
        own = {field.name for field in fields(self)}  # type: ignore[arg-type]
        for name, value in vars(self).items():
            if name not in own:
                del vars(made)[name]  # what was derived from its numbers
            elif isinstance(value, np.ndarray) and value.dtype == np.float64:
                vars(made)[name] = in_float32(value)
        return made


@dataclass(frozen=True, eq=False)
class Nothing(AffineOperation):
    """The zero map with the shapes of another operation: its negative part, if it has none."""

    like: AffineOperation

    def shape(self, *shapes: Shape) -> Shape:
        """Return the other's."""
        return self.like.shape(*shapes)

    def linear(self, x: Numbers) -> Numbers:
        """Return zeros."""
        return np.zeros((len(x), *self.like.shape(x.shape[1:])))

    def transposed(self, form: Array, shape: Shape) -> Array:
        """Return zeros."""
        return np.zeros((len(form), *shape))

    def signed(self) -> tuple[AffineOperation, AffineOperation]:
        """Return itself."""
        return self, self

    def n_terms(self, shape: Shape) -> int:
        """Nothing is summed."""
        return 0

    def write(self, writer: Writer, *inputs: str) -> str:
        """It is never part of a model."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class AffineForms(Relaxation):
    """An affine operation as its own relaxation; rounding is charged against the box."""

    operation: AffineOperation
    box: Interval

    @cached_property
    def sizes(self) -> Array:
        r"""About :math:`|L| |x| + |b|`, what the rounding of one step is relative to."""
        reach = self.box.reach
        P, N = (part.linear(reach) for part in self.operation.signed())
        b = np.zeros(()) if self.operation.offset is None else np.abs(self.operation.offset)
        return np.asarray(P + N + b + TINY)

    def upper(self, form: Array) -> Pulled:
        """Return ``form L`` and ``form b``."""
        n, q = form.shape[:2]
        shape = self.box.lower.shape[1:]
        with np.errstate(over="ignore", invalid="ignore"):
            flat = self.operation.transposed(form.reshape(n * q, *form.shape[2:]), shape)
            b = self.operation.offset
            offset = np.zeros((n, q))
            if b is not None:
                offset = dot(form, np.broadcast_to(b, (1, *form.shape[2:])))
            terms = dot(np.abs(form), self.sizes)
            reach = self.box.reach
            lost = TINY * reach.reshape(len(reach), -1).sum(axis=1)[:, None]  # what underflow can take
        steps = form[0, 0].size + self.operation.n_terms(shape)
        return Pulled((flat.reshape(n, q, *shape),), charged(add_up(offset, lost), terms, steps))

    def estimate(self, form: Array) -> Pulled:
        """Return ``form L`` and ``form b``, without what rounding can do."""
        n, q = form.shape[:2]
        shape = self.box.lower.shape[1:]
        flat = self.operation.transposed(form.reshape(n * q, *form.shape[2:]), shape)
        b = self.operation.offset
        if b is None:
            offset = np.zeros((n, q))
        else:
            offset = form.reshape(n, q, -1) @ np.broadcast_to(b, form.shape[2:]).ravel()
        return Pulled((flat.reshape(n, q, *shape),), offset)

    def single(self) -> AffineForms:
        """Round the operation's numbers to float32."""
        return AffineForms(self.operation.single, self.box)

    def forward(self, form: Array, *points: Array) -> Array | None:
        """Apply the operation."""
        return applied(self.operation, *points)
