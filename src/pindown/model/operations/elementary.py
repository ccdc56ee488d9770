"""Elementary functions entry by entry: exp, log, powers, and the trigonometric and hyperbolic ones.

Where a box leaves the domain the interval is infinite; the model's value there is NaN or infinite, and
evaluation says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.errors import UnsupportedModelError
from pindown.model.operations.operation import Numbers, Writer
from pindown.model.operations.smooth_function import Smooth, periodic_hull

_SQRT_HALF = math.sqrt(0.5)


@dataclass(frozen=True, eq=False)
class Exp(Smooth):
    """The exponential function."""

    least = 0.0

    def function(self, x: Numbers) -> Array:
        """Return exp."""
        return np.exp(x)

    def derivative(self, x: Array) -> Array:
        """Return exp."""
        return np.exp(x)

    def second(self, x: Array) -> Array:
        """Return exp."""
        return np.exp(x)

    def warp(self, x: Array) -> Array:
        """Return the root of exp, whose square is the curvature."""
        return np.exp(0.5 * x)

    def unwarp(self, y: Array) -> Array:
        """Undo :meth:`warp`."""
        return 2.0 * np.log(y)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Exp."""
        return writer.node("Exp", inputs)


@dataclass(frozen=True, eq=False)
class Log(Smooth):
    """The natural logarithm."""

    def function(self, x: Numbers) -> Array:
        """Return log."""
        return np.log(x)

    def derivative(self, x: Array) -> Array:
        """Return the reciprocal."""
        return 1.0 / x

    def second(self, x: Array) -> Array:
        """Return minus the squared reciprocal."""
        return -1.0 / (x * x)

    def defined(self, low: Array, high: Array) -> NDArray[np.bool_]:
        """Ask for positive numbers."""
        return low >= 0

    def warp(self, x: Array) -> Array:
        """Return log."""
        return np.log(x)

    def unwarp(self, y: Array) -> Array:
        """Return exp."""
        return np.exp(y)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Log."""
        return writer.node("Log", inputs)


@dataclass(frozen=True, eq=False)
class Power(Smooth):
    r"""A constant power: :math:`x^p`; of negative numbers only for whole p.

    Attributes:
        exponent: The power p.

    >>> Power(3.0)(np.array([[-2.0, 0.5]]))
    array([[-8.   ,  0.125]])
    """

    exponent: float

    def __post_init__(self) -> None:
        p = self.exponent
        if not math.isfinite(p):
            raise UnsupportedModelError(f"Pow needs a finite exponent; got {p}.")
        object.__setattr__(self, "blur", self.blur * (1.0 + p * p))  # what underflows is multiplied
        if p > 0 and p % 2 == 0:
            object.__setattr__(self, "turns", ((0.0, 0.0),))
            object.__setattr__(self, "bends", ((0.0, 2.0 if p == 2 else 0.0),))

    @property
    def name(self) -> str:
        """What users call it."""
        return "Pow"

    def function(self, x: Numbers) -> Array:
        """Return the power."""
        return x * x if self.exponent == 2 else np.power(x, self.exponent)

    def derivative(self, x: Array) -> Array:
        """Return the derivative."""
        return _times_power(self.exponent, x, self.exponent - 1.0)

    def second(self, x: Array) -> Array:
        """Return the second derivative."""
        return _times_power(self.exponent * (self.exponent - 1.0), x, self.exponent - 2.0)

    def defined(self, low: Array, high: Array) -> NDArray[np.bool_]:
        """Ask for positive numbers if the exponent is not whole, and not for zero if it is negative."""
        if self.exponent % 1 != 0:
            return low >= 0 if self.exponent > 0 else low > 0
        return np.ones(low.shape, dtype=bool) if self.exponent >= 0 else (low > 0) | (high < 0)

    def warp(self, x: Array) -> Array:
        """Return the root of the power, with the sign."""
        return np.sign(x) * np.power(np.abs(x), 0.5 * self.exponent)

    def unwarp(self, y: Array) -> Array:
        """Undo :meth:`warp`."""
        return (
            np.sign(y) * np.power(np.abs(y), 2.0 / self.exponent) if self.exponent else np.zeros_like(y)
        )

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Pow."""
        return writer.node("Pow", [*inputs, writer.weight(np.array(self.exponent), "exponent")])


@dataclass(frozen=True, eq=False)
class Sqrt(Power):
    """The square root."""

    exponent: float = field(default=0.5, init=False)

    @property
    def name(self) -> str:
        """What users call it."""
        return "Sqrt"

    def function(self, x: Numbers) -> Array:
        """Return the root."""
        return np.sqrt(x)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Sqrt."""
        return writer.node("Sqrt", inputs)


@dataclass(frozen=True, eq=False)
class Reciprocal(Power):
    """``1 / x``."""

    exponent: float = field(default=-1.0, init=False)

    @property
    def name(self) -> str:
        """What users call it."""
        return "Reciprocal"

    def function(self, x: Numbers) -> Array:
        """Return the reciprocal."""
        return np.asarray(1.0 / x)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Reciprocal."""
        return writer.node("Reciprocal", inputs)


class _Written(Smooth):
    """A function whose ONNX operation has its name."""

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write the node."""
        return writer.node(self.name, inputs)


class _Periodic(_Written):
    """A sine with its maxima at ``top``; multiples of pi are trusted up to 1e6."""

    least, most = -1.0, 1.0
    absolute = 2.0**-44
    blur = 2.0**-44
    top: float

    def warp(self, x: Array) -> Array:
        """Curvature is everywhere."""
        return x

    def unwarp(self, y: Array) -> Array:
        """Undo :meth:`warp`."""
        return y

    def hull(self, low: Array, high: Array, at_low: Array, at_high: Array) -> tuple[Array, Array]:
        """Look for multiples of pi."""
        return periodic_hull(self.top, low, high, at_low, at_high)

    def second(self, x: Array) -> Array:
        """Return minus the function."""
        return -self.function(x)

    def curvature(self, low: Array, high: Array, at_low: Array, at_high: Array) -> tuple[Array, Array]:
        """Look for multiples of pi."""
        return periodic_hull(self.top + math.pi, low, high, at_low, at_high)


@dataclass(frozen=True, eq=False)
class Sin(_Periodic):
    """The sine."""

    top = 0.5 * math.pi

    def function(self, x: Numbers) -> Array:
        """Return the sine."""
        return np.sin(x)

    def derivative(self, x: Array) -> Array:
        """Return the cosine."""
        return np.cos(x)


@dataclass(frozen=True, eq=False)
class Cos(_Periodic):
    """The cosine."""

    top = 0.0

    def function(self, x: Numbers) -> Array:
        """Return the cosine."""
        return np.cos(x)

    def derivative(self, x: Array) -> Array:
        """Return minus the sine."""
        return -np.sin(x)


@dataclass(frozen=True, eq=False)
class Tan(_Written):
    """The tangent; across its poles, and beyond 1e6, nothing is known."""

    absolute = 2.0**-44
    blur = 2.0**-40

    def function(self, x: Numbers) -> Array:
        """Return the tangent."""
        return np.tan(x)

    def derivative(self, x: Array) -> Array:
        """Return one over the squared cosine."""
        return 1.0 + np.tan(x) ** 2

    def second(self, x: Array) -> Array:
        """Return the second derivative."""
        return 2.0 * np.tan(x) * (1.0 + np.tan(x) ** 2)

    def defined(self, low: Array, high: Array) -> NDArray[np.bool_]:
        """Ask for an interval between two poles."""
        first, last = (end / math.pi - 0.5 for end in (low, high))
        near = np.maximum(np.abs(low), np.abs(high)) <= 1e6
        return near & (np.floor(first - 1e-9) == np.floor(last + 1e-9))

    def warp(self, x: Array) -> Array:
        """Cells of one size."""
        return x

    def unwarp(self, y: Array) -> Array:
        """Undo :meth:`warp`."""
        return y


@dataclass(frozen=True, eq=False)
class Atan(_Written):
    """The inverse of the tangent."""

    least, most = -1.5707963267948968, 1.5707963267948968  # half of pi, rounded outwards
    bends = ((-0.5773502691896258, 0.649519052838329), (0.5773502691896258, -0.649519052838329))

    def function(self, x: Numbers) -> Array:
        """Return the inverse tangent."""
        return np.arctan(x)

    def derivative(self, x: Array) -> Array:
        """Return the derivative."""
        return 1.0 / (1.0 + x * x)

    def second(self, x: Array) -> Array:
        """Return the second derivative, its large factor first joined with a small one."""
        return -2.0 * (x * self.derivative(x)) * self.derivative(x)


class _OnUnitInterval(_Written):
    """A function on [-1, 1] whose curvature is at the ends."""

    def defined(self, low: Array, high: Array) -> NDArray[np.bool_]:
        """Ask for numbers from -1 to 1."""
        return (low >= -1) & (high <= 1)

    def warp(self, x: Array) -> Array:
        """Return the inverse sine."""
        return np.arcsin(x)

    def unwarp(self, y: Array) -> Array:
        """Undo :meth:`warp`."""
        return np.sin(y)


@dataclass(frozen=True, eq=False)
class Asin(_OnUnitInterval):
    """The inverse of the sine."""

    def function(self, x: Numbers) -> Array:
        """Return the inverse sine."""
        return np.arcsin(x)

    def derivative(self, x: Array) -> Array:
        """Return the derivative."""
        return 1.0 / np.sqrt((1.0 - x) * (1.0 + x))

    def second(self, x: Array) -> Array:
        """Return the second derivative."""
        return x * self.derivative(x) ** 3


@dataclass(frozen=True, eq=False)
class Acos(_OnUnitInterval):
    """The inverse of the cosine."""

    def function(self, x: Numbers) -> Array:
        """Return the inverse cosine."""
        return np.arccos(x)

    def derivative(self, x: Array) -> Array:
        """Return the derivative."""
        return -1.0 / np.sqrt((1.0 - x) * (1.0 + x))

    def second(self, x: Array) -> Array:
        """Return the second derivative."""
        return x * self.derivative(x) ** 3


@dataclass(frozen=True, eq=False)
class Atanh(_OnUnitInterval):
    """The inverse of the hyperbolic tangent."""

    def function(self, x: Numbers) -> Array:
        """Return the inverse hyperbolic tangent."""
        return np.arctanh(x)

    def derivative(self, x: Array) -> Array:
        """Return the derivative."""
        return 1.0 / ((1.0 - x) * (1.0 + x))

    def second(self, x: Array) -> Array:
        """Return the second derivative."""
        return 2.0 * x * self.derivative(x) ** 2


class _Hyperbolic(_Written):
    """A hyperbolic function, its own second derivative."""

    def second(self, x: Array) -> Array:
        """Return the function."""
        return self.function(x)

    def warp(self, x: Array) -> Array:
        """Return about the root of the curvature."""
        return np.sinh(0.5 * x)

    def unwarp(self, y: Array) -> Array:
        """Undo :meth:`warp`."""
        return 2.0 * np.arcsinh(y)


@dataclass(frozen=True, eq=False)
class Sinh(_Hyperbolic):
    """The hyperbolic sine."""

    def function(self, x: Numbers) -> Array:
        """Return the hyperbolic sine."""
        return np.sinh(x)

    def derivative(self, x: Array) -> Array:
        """Return the hyperbolic cosine."""
        return np.cosh(x)


@dataclass(frozen=True, eq=False)
class Cosh(_Hyperbolic):
    """The hyperbolic cosine."""

    least = 1.0
    turns = ((0.0, 1.0),)
    bends = ((0.0, 1.0),)

    def function(self, x: Numbers) -> Array:
        """Return the hyperbolic cosine."""
        return np.cosh(x)

    def derivative(self, x: Array) -> Array:
        """Return the hyperbolic sine."""
        return np.sinh(x)


@dataclass(frozen=True, eq=False)
class Asinh(_Written):
    """The inverse of the hyperbolic sine."""

    bends = ((-_SQRT_HALF, 0.38490017945975051), (_SQRT_HALF, -0.38490017945975051))

    def function(self, x: Numbers) -> Array:
        """Return the inverse hyperbolic sine."""
        return np.arcsinh(x)

    def derivative(self, x: Array) -> Array:
        """Return the derivative."""
        return 1.0 / np.hypot(1.0, x)

    def second(self, x: Array) -> Array:
        """Return the second derivative, its large factor first joined with a small one."""
        return -(x * self.derivative(x)) * self.derivative(x) ** 2


@dataclass(frozen=True, eq=False)
class Acosh(_Written):
    """The inverse of the hyperbolic cosine."""

    def function(self, x: Numbers) -> Array:
        """Return the inverse hyperbolic cosine."""
        return np.arccosh(x)

    def derivative(self, x: Array) -> Array:
        """Return the derivative."""
        return 1.0 / np.sqrt((x - 1.0) * (x + 1.0))

    def second(self, x: Array) -> Array:
        """Return the second derivative, its large factor first joined with a small one."""
        return -(x * self.derivative(x)) * self.derivative(x) ** 2

    def defined(self, low: Array, high: Array) -> NDArray[np.bool_]:
        """Ask for numbers from 1 on."""
        return low >= 1

    def warp(self, x: Array) -> Array:
        """Return the inverse hyperbolic cosine."""
        return np.arccosh(x)

    def unwarp(self, y: Array) -> Array:
        """Undo :meth:`warp`."""
        return np.cosh(y)


def _times_power(factor: float, x: Array, p: float) -> Array:
    """Return ``factor * x**p``, zero for a factor of zero."""
    return factor * np.power(x, p) if factor else np.zeros(x.shape)
