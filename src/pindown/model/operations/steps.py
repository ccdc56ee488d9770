"""Steps, entry by entry: the sign, and rounding to whole numbers; evaluated and bounded, not lowered."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.model._expression import Expression
from pindown.model._lowering import Lowering
from pindown.model.operations.elementwise import Elementwise, Lines
from pindown.model.operations.operation import Interval, NotPiecewiseLinearError, Numbers, Writer
from pindown.validation import choice

_KINDS: dict[str, tuple[Callable[[Array], Array], Callable[[Fraction], int]]] = {
    "floor": (np.floor, math.floor),
    "ceil": (np.ceil, math.ceil),
    "round": (np.rint, round),
    "trunc": (np.trunc, math.trunc),
}
# How far below and above x its rounded value can be.
_AWAY = {"floor": (-1.0, 0.0), "ceil": (0.0, 1.0), "round": (-0.5, 0.5), "trunc": (-1.0, 1.0)}


class Step(Elementwise):
    """A monotone function of numbers that is constant between its jumps."""

    def derivative(self, x: Array) -> Array:
        """Return zero."""
        return np.zeros(x.shape)

    def range(self, box: Interval) -> Interval:
        """Apply it to both ends: it is monotone, and its values are exact."""
        return Interval(*(self.function(end) for end in box))

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Refuse: a ReLU network has no jumps."""
        raise NotPiecewiseLinearError(f"{self.name} jumps, which no network of ReLUs does")


@dataclass(frozen=True, eq=False)
class Sign(Step):
    """1, 0 or -1, as x is positive, zero or negative."""

    least, most = -1.0, 1.0

    def function(self, x: Numbers) -> Numbers:
        """Compare with zero."""
        return np.where(x > 0, 1, np.where(x < 0, -1, 0)).astype(x.dtype)

    def lines(self, box: Interval) -> Lines:
        r"""Take the values at the ends, or a line through the jump where that encloses less area.

        On :math:`[l, u]` with :math:`l < 0 < u` the sign is at least :math:`2 x / u - 1` and at most
        :math:`1 - 2 x / l`.
        """
        low, high = box
        below, above = self.range(box)
        # Rounded towards zero, a slope keeps the line on its side.
        rise, fall = (np.nextafter(2.0 / end, 0.0) for end in (high, -low))
        crosses = (low < 0) & (high > 0)
        lower = np.where(crosses & (high > -low), rise, 0.0)
        upper = np.where(crosses & (-low > high), fall, 0.0)
        return Lines(lower, below, upper, above)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Sign."""
        return writer.node("Sign", inputs)


@dataclass(frozen=True, eq=False)
class Round(Step):
    """The nearest whole number (``round``: halves go to even ones), or the next one in a direction.

    Attributes:
        kind: ``"floor"`` (downwards), ``"ceil"`` (upwards), ``"trunc"`` (towards zero) or ``"round"``.

    >>> Round("round")(np.array([[0.5, 1.5, -2.7]]))
    array([[ 0.,  2., -3.]])
    """

    kind: str

    def __post_init__(self) -> None:
        choice("kind", self.kind, _KINDS)

    @property
    def name(self) -> str:
        """What users call it."""
        return self.kind.capitalize()

    def function(self, x: Numbers) -> Numbers:
        """Round."""
        floats, rationals = _KINDS[self.kind]
        if x.dtype == object:
            exact: Any = np.vectorize(rationals, otypes=[object])
            return np.asarray(exact(x)) + Fraction(0)
        return floats(x)

    def lines(self, box: Interval) -> Lines:
        """Take x less and more what rounding can change, or the values at the ends if as near."""
        down, up = _AWAY[self.kind]
        low, high = self.range(box)
        slope = np.where(high - low > 1.0, 1.0, 0.0)
        return Lines(slope, np.where(slope > 0, down, low), slope, np.where(slope > 0, up, high))

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Floor, Ceil or Round; of whole numbers, which are cut off as they are made, nothing."""
        if "int" in writer.kind_of(inputs[0]):
            return inputs[0]
        if self.kind != "trunc":
            return writer.node(self.name, inputs)
        size = writer.node("Floor", [writer.node("Abs", inputs)])
        return writer.node("Mul", [writer.node("Sign", inputs), size])
