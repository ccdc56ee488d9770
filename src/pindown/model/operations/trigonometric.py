"""Trigonometric and hyperbolic functions entry by entry, and their inverses.

Where a box leaves the domain the interval is infinite; the model's value there is NaN or infinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.model.operations.operation import Numbers, Writer
from pindown.model.operations.smooth_function import Smooth, periodic_hull

_SQRT_HALF = math.sqrt(0.5)


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
