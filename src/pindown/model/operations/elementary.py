"""Elementary functions entry by entry: exp, log and powers.

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
from pindown.model.operations.smooth_function import Smooth


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


def _times_power(factor: float, x: Array, p: float) -> Array:
    """Return ``factor * x**p``, zero for a factor of zero."""
    return factor * np.power(x, p) if factor else np.zeros(x.shape)
