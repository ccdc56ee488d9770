"""Piecewise-linear functions entry by entry: relatives of ReLU, clip, hard sigmoid, absolute value.

ReLU, steps and maxima stand in their own modules and can be imported from here.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from pindown.affine import Array
from pindown.errors import UnsupportedModelError
from pindown.model._expression import Expression
from pindown.model._lowering import Lowering
from pindown.model.operations.elementwise import Elementwise, Lines, proved_lines
from pindown.model.operations.maxima import Maximum, Minimum, ReduceMax, ReduceMin
from pindown.model.operations.operation import (
    Interval,
    Numbers,
    Shape,
    Writer,
    frozen,
    matched,
)
from pindown.model.operations.relu import Relu, triangle_lines
from pindown.model.operations.steps import Round, Sign

__all__ = [
    "Abs",
    "Clip",
    "HardSigmoid",
    "LeakyRelu",
    "Maximum",
    "Minimum",
    "PiecewiseLinear",
    "ReduceMax",
    "ReduceMin",
    "Relu",
    "Round",
    "Sign",
    "triangle_lines",
]

# A bound this large is how exporters write "no bound".
_NO_BOUND = float(np.finfo(np.float32).max)
_ROUNDING = 2.0**-48


class PiecewiseLinear(Elementwise):
    """A continuous function of numbers that is affine between its kinks."""

    @property
    @abstractmethod
    def kinks(self) -> tuple[float, ...]:
        """Where it bends, ascending."""

    @property
    def kink_error(self) -> float:
        """How far the kinks can be from the float64 numbers that stand for them."""
        return 0.0

    @property
    @abstractmethod
    def slopes(self) -> tuple[Array, Array]:
        """The least and the largest slope."""

    @abstractmethod
    def piece(self, x: Array) -> tuple[Array, Array]:
        """Return slope and offset of the piece that each entry lies in."""

    def bracket(self, x: Array) -> tuple[Array, Array]:
        """Return proved bounds on the value at points, and at the kinks that some of them stand for."""
        value = self.function(x)
        return value, value

    def derivative(self, x: Array) -> Array:
        """Return the slope of the piece."""
        return self.piece(x)[0]

    def range(self, box: Interval) -> Interval:
        """Look at the ends and at the kinks between them."""
        low, high = self.bracket(self._points(box))
        return Interval(low.min(axis=0), high.max(axis=0))

    def lines(self, box: Interval) -> Lines:
        """Take the piece itself where there is one, else the lines with the least area."""
        points = self._points(box)
        proved = proved_lines(points, *self.bracket(points), self.slopes)
        low, high = box
        middle = 0.5 * low + 0.5 * high
        # An interval without a number inside has no middle: what is rounded to one may be a kink.
        one = (low == high) & (low == middle) | (low < middle) & (middle < high)
        for kink in self.kinks:
            one &= (high <= kink - self.kink_error) | (low >= kink + self.kink_error)
        slope, offset = self.piece(middle)
        pieces = slope, offset, slope, offset
        return Lines(*(np.where(one, p, line) for p, line in zip(pieces, proved, strict=True)))

    def _points(self, box: Interval) -> Array:
        """Return the ends and the kinks between them, (k, n, *shape)."""
        low, high = box
        return np.stack([low, *(np.clip(kink, low, high) for kink in self.kinks), high])


@dataclass(frozen=True, eq=False)
class LeakyRelu(PiecewiseLinear):
    """``x`` where x is positive, ``slope * x`` where it is negative.

    Attributes:
        slope: A number, or an array that broadcasts against the tensor's literal shape; of any sign.
        trained: How many of its numbers a framework counts as parameters: those of PReLU.

    >>> LeakyRelu(0.5)(np.array([[-2.0, 3.0]]))
    array([[-1.,  3.]])
    """

    slope: Array
    trained: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "slope", frozen(self.slope))

    @property
    def name(self) -> str:
        """What users call it."""
        return "PReLU" if self.trained or self.slope.size > 1 else "LeakyReLU"

    @property
    def kinks(self) -> tuple[float, ...]:
        """Zero."""
        return (0.0,)

    @property
    def slopes(self) -> tuple[Array, Array]:
        """One and the slope."""
        return np.minimum(self.slope, 1.0), np.maximum(self.slope, 1.0)

    @property
    def n_parameters(self) -> int:
        """The slopes of PReLU."""
        return self.trained

    def shape(self, *shapes: Shape) -> Shape:
        """Keep the shape, if the slopes fit it."""
        (shape,) = shapes
        missing = len(shape) - self.slope.ndim
        if missing < 0 or any(
            n not in (1, m) for n, m in zip(self.slope.shape, shape[missing:], strict=True)
        ):
            raise ValueError(f"slopes of shape {self.slope.shape} do not fit a tensor of shape {shape}.")
        return shape

    def function(self, x: Numbers) -> Numbers:
        """Scale what is negative."""
        return np.where(x > 0, x, matched(self.slope, x) * x)

    def piece(self, x: Array) -> tuple[Array, Array]:
        """Return one or the slope, and zero."""
        return np.where(x > 0, 1.0, self.slope), np.zeros(x.shape)

    def bracket(self, x: Array) -> tuple[Array, Array]:
        """Round the product both ways, where it can round."""
        value = self.function(x)
        rounds = (x < 0) & (np.abs(self.slope) != 1) & (self.slope != 0)
        return tuple(np.where(rounds, np.nextafter(value, end), value) for end in (-np.inf, np.inf))  # type: ignore[return-value]

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Take two ReLUs for each entry."""
        return lowering.leaky_relu(inputs[0], self.slope)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write LeakyRelu, or PRelu if the slopes are trained or several."""
        if self.name == "LeakyReLU":
            return writer.node("LeakyRelu", inputs, alpha=float(self.slope.item()))
        return writer.node("PRelu", [*inputs, writer.weight(self.slope, "slope")])


@dataclass(frozen=True, eq=False)
class Clip(PiecewiseLinear):
    """``min(max(x, low), high)``, as ONNX and NumPy define it: ``high`` everywhere, if low is larger.

    Bounds beyond the largest float32 are how exporters write "no bound", and are read as none.

    >>> Clip(0.0, 6.0)(np.array([[-2.0, 3.0, 9.0]]))
    array([[0., 3., 6.]])
    """

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        low = -math.inf if self.low <= -_NO_BOUND else float(self.low)
        high = math.inf if self.high >= _NO_BOUND else float(self.high)
        if math.isnan(low) or math.isnan(high) or low == math.inf or high == -math.inf:
            raise UnsupportedModelError(f"Clip needs min <= max; got {self.low} and {self.high}.")
        object.__setattr__(self, "low", min(low, high))
        object.__setattr__(self, "high", high)

    @property
    def kinks(self) -> tuple[float, ...]:
        """The bounds that there are."""
        return tuple(bound for bound in (self.low, self.high) if math.isfinite(bound))

    @property
    def slopes(self) -> tuple[Array, Array]:
        """Zero and one."""
        return np.array(0.0), np.array(1.0)

    def function(self, x: Numbers) -> Numbers:
        """Put the nearer bound for what is outside."""
        if math.isfinite(self.low):
            x = np.maximum(x, matched(np.array(self.low), x))
        if math.isfinite(self.high):
            x = np.minimum(x, matched(np.array(self.high), x))
        return x

    def piece(self, x: Array) -> tuple[Array, Array]:
        """Return zero and the bound, or one and zero."""
        offset = np.where(x <= self.low, self.low, np.where(x >= self.high, self.high, 0.0))
        return np.where((x > self.low) & (x < self.high), 1.0, 0.0), offset

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Take a ReLU for each bound."""
        return lowering.clip(inputs[0], self.low, self.high)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Clip."""
        ends = [
            writer.weight(np.array(bound), name) if math.isfinite(bound) else ""
            for bound, name in ((self.low, "min"), (self.high, "max"))
        ]
        return writer.node("Clip", [*inputs, *ends])


@dataclass(frozen=True, eq=False)
class HardSigmoid(PiecewiseLinear):
    """``max(0, min(1, alpha x + beta))``: alpha is 1/6 in torch and 0.2 in ONNX, beta 1/2.

    >>> HardSigmoid(0.25, 0.5)(np.array([[-3.0, 0.0, 1.0]]))
    array([[0.  , 0.5 , 0.75]])
    """

    alpha: float = 0.2
    beta: float = 0.5

    least, most = 0.0, 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.alpha) and math.isfinite(self.beta)):
            raise UnsupportedModelError(
                f"HardSigmoid needs finite numbers; got alpha={self.alpha} and beta={self.beta}."
            )

    @property
    def kinks(self) -> tuple[float, ...]:
        """Where the line meets 0 and 1."""
        if self.alpha == 0:
            return ()
        return tuple(sorted((end - self.beta) / self.alpha for end in (0.0, 1.0)))

    @property
    def kink_error(self) -> float:
        """What rounding can do to the kinks, and to the line beside them."""
        return _ROUNDING * (1.0 + abs(self.beta)) / abs(self.alpha) if self.alpha else 0.0

    @property
    def slopes(self) -> tuple[Array, Array]:
        """Zero and alpha."""
        return np.array(min(self.alpha, 0.0)), np.array(max(self.alpha, 0.0))

    def function(self, x: Numbers) -> Numbers:
        """Clip the line."""
        line = matched(np.array(self.alpha), x) * x + matched(np.array(self.beta), x)
        return np.minimum(np.maximum(line, 0), 1)

    def piece(self, x: Array) -> tuple[Array, Array]:
        """Return alpha and beta, or zero and the bound."""
        line = self.alpha * x + self.beta
        inside = (line > 0) & (line < 1)
        return np.where(inside, self.alpha, 0.0), np.where(
            inside, self.beta, np.where(line >= 1, 1.0, 0.0)
        )

    def bracket(self, x: Array) -> tuple[Array, Array]:
        """Allow for rounding on the line, and for that of the kinks."""
        value = self.function(x)
        line = np.abs(self.alpha * x)
        margin = np.where(line <= 2.0 + abs(self.beta), _ROUNDING * (line + abs(self.beta) + 1.0), 0.0)
        return value - margin, value + margin

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Clip the line."""
        line = inputs[0].scale(np.array(self.alpha)).shift(np.array(self.beta))
        return lowering.clip(line, 0.0, 1.0)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write HardSigmoid."""
        return writer.node("HardSigmoid", inputs, alpha=self.alpha, beta=self.beta)


@dataclass(frozen=True, eq=False)
class Abs(PiecewiseLinear):
    """The absolute value."""

    least = 0.0

    @property
    def kinks(self) -> tuple[float, ...]:
        """Zero."""
        return (0.0,)

    @property
    def slopes(self) -> tuple[Array, Array]:
        """Minus one and one."""
        return np.array(-1.0), np.array(1.0)

    def function(self, x: Numbers) -> Numbers:
        """Drop the signs."""
        return np.abs(x)

    def piece(self, x: Array) -> tuple[Array, Array]:
        """Return the sign, and zero."""
        return np.where(x > 0, 1.0, -1.0), np.zeros(x.shape)

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Take two ReLUs for each entry."""
        return lowering.leaky_relu(inputs[0], np.array(-1.0))

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Abs."""
        return writer.node("Abs", inputs)
