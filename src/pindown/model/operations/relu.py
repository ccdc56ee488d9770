r"""ReLU, and the triangle between whose sides it stays on an interval.

Where :math:`l \le z \le u` with :math:`l < 0 < u`,

.. math::
    \lambda z \;\le\; \max(0, z) \;\le\; s z + t, \qquad
    s = \frac{u}{u - l}, \quad t = -s l, \quad \lambda \in [0, 1].

The upper line and the ReLU itself are the sides of a triangle, the smallest convex set around its graph.
*Any* slope between 0 and 1 gives a line below, also another one for every linear form that is bounded:
that is what there is to optimise.

Ehlers 2017, "Formal verification of piece-wise linear feed-forward neural networks" (the triangle);
Xu et al. 2021, "Fast and complete" (slopes for each form).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, is_finite
from pindown.model._expression import Expression
from pindown.model._lowering import Lowering
from pindown.model.operations.elementwise import Elementwise, Lines
from pindown.model.operations.operation import (
    Adjustable,
    Interval,
    Numbers,
    Pulled,
    Relaxation,
    Writer,
    charged,
    dot,
    in_float32,
)
from pindown.rounding import TINY, UNIT_ROUNDOFF


def triangle_lines(low: Array, high: Array) -> tuple[Array, Array, Array]:
    r"""Return the triangle relaxation of a ReLU: slopes below, slopes above, and offsets above.

    Where :math:`l < 0 < u`, for every :math:`\lambda \in [0, 1]`

    .. math::
        \lambda x \;\le\; \max(0, x) \;\le\; s x + t, \qquad s = \frac{u}{u - l}, \quad t = -s l .

    Of the slopes below the one with the smaller area is taken, 0 or 1. Where the sign is known both
    lines are the ReLU itself.

    Ehlers 2017, "Formal verification of piece-wise linear feed-forward neural networks".

    >>> triangle_lines(np.array([-1.0, 2.0]), np.array([3.0, 4.0]))[1]
    array([0.75, 1.  ])
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        slope = np.clip(high / (high - low), 0.0, 1.0)
        slope = np.where(np.isfinite(slope), slope, 1.0)
        # A line is above a convex function if it is at both ends, whatever its slope came out as.
        shift = np.fmax(-slope * low, high * (1.0 - slope)) * (1.0 + 8.0 * UNIT_ROUNDOFF) + TINY
    on, off = low >= 0, high <= 0
    slope = np.where(on, 1.0, np.where(off, 0.0, slope))
    shift = np.where(on | off, 0.0, shift)
    return np.where(on | (~off & (high > -low)), 1.0, 0.0), slope, shift


@dataclass(frozen=True, eq=False)
class Relu(Elementwise):
    """``max(0, x)``."""

    least = 0.0

    @property
    def name(self) -> str:
        """What users call it."""
        return "ReLU"

    def function(self, x: Numbers) -> Numbers:
        """Put zero for what is negative."""
        return np.maximum(x, 0)

    def derivative(self, x: Array) -> Array:
        """Return one where x is positive."""
        return np.where(x > 0, 1.0, 0.0)

    def range(self, box: Interval) -> Interval:
        """Apply it to both ends: it is monotone."""
        return Interval(*(np.maximum(end, 0.0) for end in box))

    def lines(self, box: Interval) -> Lines:
        """Return the triangle relaxation."""
        lower, slope, shift = triangle_lines(*box)
        return Lines(lower, np.zeros(lower.shape), slope, shift)

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return the triangle relaxation, whose slopes below may be chosen anew for each form."""
        (box,) = boxes
        if is_finite(box.lower) and is_finite(box.upper):
            return Triangles(*triangle_lines(*box), box)
        return super().relaxation(*boxes)

    def narrowed(self, value: Interval, *boxes: Interval) -> tuple[Interval, ...]:
        """Where the value is positive it is the input; the input is never above it."""
        low, high = boxes[0]
        return (
            Interval(
                np.where(value.lower > 0, np.fmax(low, value.lower), low), np.fmin(high, value.upper)
            ),
        )

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Drop what does not pass."""
        return (np.where(inputs[0] > 0, form, 0.0),)

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Make a new block."""
        return lowering.relu(inputs[0])

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Relu."""
        return writer.node("Relu", inputs)


@dataclass(frozen=True, eq=False)
class Triangles(Adjustable):
    """Entry by entry ``lower * z <= relu(z) <= slope * z + shift``.

    Attributes:
        lower: Slopes below, ``(n, *shape)``, or ``(n, q, *shape)`` for slopes of each form.
        slope: Slopes above, ``(n, *shape)``.
        shift: Offsets above.
        box: Where z lies.
    """

    lower: Array
    slope: Array
    shift: Array
    box: Interval

    @cached_property
    def open_sign(self) -> NDArray[np.bool_]:
        """Where z can be negative and positive."""
        return (self.box.lower < 0) & (self.box.upper > 0)

    def _below(self, form: Array) -> Array:
        return self.lower if self.lower.ndim == form.ndim else self.lower[:, None]

    def slopes(self, n: int, q: int) -> Array | None:
        """Return the slopes below, of each of q forms."""
        if not self.open_sign.any():
            return None
        return np.broadcast_to(self.lower[:, None], (n, q, *self.lower.shape[1:])).copy()

    def with_slopes(self, slopes: Array) -> Triangles:
        """Return other lines below where the sign is open: slopes ``(n, q, *shape)`` cut to [0, 1]."""
        lower = np.where(self.open_sign[:, None], np.clip(slopes, 0.0, 1.0), self.lower[:, None])
        made = Triangles(lower, self.slope, self.shift, self.box)
        vars(made)["open_sign"] = self.open_sign
        return made

    def slope_gradient(self, form: Array, *points: Array) -> Array:
        """Return the derivative in the slopes: what is taken of the line below times its input."""
        gradient = np.minimum(form, 0.0) * points[0]
        gradient *= self.open_sign[:, None]
        return np.asarray(gradient)

    def upper(self, form: Array) -> Pulled:
        """Take the upper line where the coefficient is positive, the lower one where it is negative."""
        entries = np.maximum(form, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            offset = dot(entries, self.shift)
            entries *= self.slope[:, None]
            entries += np.minimum(form, 0.0) * self._below(form)
            reach = self.box.reach
            terms = dot(np.abs(entries), reach) + offset
            lost = (2.0**60 * TINY) * reach.reshape(len(reach), -1).sum(axis=1)  # by underflow
            terms, offset = terms + offset, offset + lost[:, None]
        return Pulled((entries,), charged(offset, terms, form[0, 0].size))

    def estimate(self, form: Array) -> Pulled:
        """Take the same lines, without what rounding can do."""
        entries = np.maximum(form, 0.0)
        offset = dot(entries, self.shift)
        entries *= self.slope[:, None]
        entries += np.minimum(form, 0.0) * self._below(form)
        return Pulled((entries,), offset)

    def single(self) -> Triangles:
        """Round the lines to float32."""
        lower, slope, shift = map(in_float32, (self.lower, self.slope, self.shift))
        return Triangles(lower, slope, shift, Interval(*map(in_float32, self.box)))

    def forward(self, form: Array, *points: Array) -> Array | None:
        """Evaluate the upper line where the coefficient is positive, else the lower one."""
        (z,) = points
        up = form > 0
        return np.where(up, self.slope[:, None], self._below(form)) * z + up * self.shift[:, None]
