"""Activations that are x times a gate between zero and one: GELU, SiLU, Mish and hard swish.

Numbers for turning points are those of mpmath with 40 digits, rounded to float64; the margins of
:mod:`~pindown.model.operations.smooth_function` are far wider.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its special functions are loaded when they are used

from pindown.affine import Array
from pindown.model.operations.operation import Numbers, Writer
from pindown.model.operations.smooth_function import Smooth

_SQRT_TWO = math.sqrt(2.0)
_SQRT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)
_CUBIC = 0.044715
# From here on the normal density is zero in float64; its formula would be infinity times zero.
_FAR = 1e150


@dataclass(frozen=True, eq=False)
class Gelu(Smooth):
    r"""GELU, :math:`x \Phi(x)` with the normal distribution function, or its approximation with tanh.

    The approximation is

    .. math::
        \tfrac12 x \bigl(1 + \tanh(\sqrt{2 / \pi} (x + 0.044715 x^3))\bigr) .

    Attributes:
        approximate: Whether it is the one with tanh.
        root: What stands for the root of two in :math:`2 \Phi(x) = 1 + \mathrm{erf}(x / \sqrt2)`, in
            files of 16 bits 1.4140625. With :math:`k = \sqrt2 / \text{root}` the function is
            :math:`g(k x) / k`, where g is GELU.

    Hendrycks and Gimpel 2016, "Gaussian Error Linear Units (GELUs)".
    """

    approximate: bool = False
    root: float = _SQRT_TWO

    tail = 0.0
    # Far below zero exponents cost digits, where values are tiny.
    relative, absolute = 2.0**-40, 2.0**-64
    blur = 2.0**-44

    def __post_init__(self) -> None:
        if self.approximate and self.root != _SQRT_TWO:
            raise ValueError("the approximation of GELU has no root of two.")
        k = self._stretch
        exact = (-0.7517915246935645, -0.16997120747990366)
        with_tanh = (-0.7524614220710163, -0.17004075057125405)
        x, value = with_tanh if self.approximate else exact
        object.__setattr__(self, "turns", ((x / k, value / k),))
        object.__setattr__(self, "least", -0.1701 / k)
        x, value = (
            (2.013480724624258, -0.10791351589036792) if self.approximate else (2.0, -0.1079819330263761)
        )
        bends = ((-x, value), (0.0, _SQRT_TWO_OVER_PI), (x, value))
        object.__setattr__(self, "bends", tuple((x / k, k * value) for x, value in bends))

    @property
    def name(self) -> str:
        """What users call it."""
        return "GELU"

    @property
    def _stretch(self) -> float:
        return 1.0 if self.root == _SQRT_TWO else _SQRT_TWO / self.root

    def _inner(self, x: Array) -> Array:
        return 2.0 * _SQRT_TWO_OVER_PI * (x + _CUBIC * x**3)

    def function(self, x: Numbers) -> Array:
        """Return the value."""
        share = (
            scipy.special.expit(self._inner(x))
            if self.approximate
            else 0.5 * scipy.special.erfc(-x / self.root)
        )
        return np.asarray(x * share)

    def derivative(self, x: Array) -> Array:
        """Return the derivative."""
        if not self.approximate:
            t = self._stretch * x
            return np.where(
                np.abs(x) > _FAR, x > 0, 0.5 * scipy.special.erfc(-x / self.root) + t * _density(t)
            )
        inner = self._inner(x)
        slope = 2.0 * _SQRT_TWO_OVER_PI * (1.0 + 3.0 * _CUBIC * x * x)
        return np.where(
            np.abs(x) > _FAR**0.5, x > 0, scipy.special.expit(inner) + x * slope * bell(inner)
        )

    def second(self, x: Array) -> Array:
        """Return the second derivative."""
        if not self.approximate:
            t = self._stretch * x
            return np.where(np.abs(x) > _FAR, 0.0, self._stretch * _density(t) * (2.0 - t * t))
        inner = self._inner(x)
        slope = 2.0 * _SQRT_TWO_OVER_PI * (1.0 + 3.0 * _CUBIC * x * x)
        curve = 12.0 * _SQRT_TWO_OVER_PI * _CUBIC * x
        made = bell(inner) * (2.0 * slope + x * (curve - np.tanh(0.5 * inner) * slope * slope))
        return np.where(np.abs(x) > _FAR**0.5, 0.0, made)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write what it consists of, as exporters do: operator sets before 20 have no Gelu."""
        (x,) = inputs
        half, one = writer.weight(np.array(0.5), "half"), writer.weight(np.array(1.0), "one")
        if not self.approximate:
            scaled = writer.node("Div", [x, writer.weight(np.array(self.root), "sqrt_2")])
            share = writer.node("Add", [writer.node("Erf", [scaled]), one])
            return writer.node("Mul", [writer.node("Mul", [x, share]), half])
        cube = writer.node("Mul", [x, writer.node("Mul", [x, x])])
        small = writer.node("Mul", [writer.weight(np.array(_CUBIC), "cubic"), cube])
        factor = writer.weight(np.array(_SQRT_TWO_OVER_PI), "sqrt_2_over_pi")
        inner = writer.node("Mul", [factor, writer.node("Add", [x, small])])
        share = writer.node("Add", [one, writer.node("Tanh", [inner])])
        return writer.node("Mul", [half, writer.node("Mul", [x, share])])


@dataclass(frozen=True, eq=False)
class Silu(Smooth):
    r"""SiLU, also called swish: :math:`x \sigma(x)`."""

    least = -0.2785
    tail = 0.0
    blur = 2.0**-44
    turns = ((-1.2784645427610738, -0.27846454276107380),)
    bends = (
        (-3.4358409935351107, -0.03691437319989319),
        (0.0, 0.5),
        (3.4358409935351107, -0.03691437319989319),
    )

    @property
    def name(self) -> str:
        """What users call it."""
        return "SiLU"

    def function(self, x: Numbers) -> Array:
        """Return the value."""
        return np.asarray(x * scipy.special.expit(x))

    def derivative(self, x: Array) -> Array:
        """Return the derivative."""
        return np.asarray(scipy.special.expit(x) + x * bell(x))

    def second(self, x: Array) -> Array:
        """Return the second derivative."""
        return bell(x) * (2.0 - x * np.tanh(0.5 * x))

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write the product with Sigmoid."""
        return writer.node("Mul", [*inputs, writer.node("Sigmoid", inputs)])


@dataclass(frozen=True, eq=False)
class Mish(Smooth):
    r"""Mish: :math:`x \tanh(\ln(1 + e^x))`.

    Misra 2019, "Mish: A self regularized non-monotonic activation function".
    """

    least = -0.3089
    tail = 0.0
    blur = 2.0**-44
    turns = ((-1.1924312145154952, -0.30884341301725041),)
    bends = (
        (-3.2673378465204046, -0.041732070706611025),
        (-0.08793443131491421, 0.6442046372369724),
        (2.114842563020877, -0.05903335695393629),
    )

    def function(self, x: Numbers) -> Array:
        """Return the value."""
        return np.asarray(x * np.tanh(np.logaddexp(0.0, x)))

    def _share(self, x: Array) -> tuple[Array, Array, Array]:
        """Return tanh of softplus and its two derivatives."""
        plus, sigma = np.logaddexp(0.0, x), scipy.special.expit(x)
        t, q = np.tanh(plus), 4.0 * bell(2.0 * plus)
        return t, q * sigma, q * (bell(x) - 2.0 * t * sigma * sigma)

    def derivative(self, x: Array) -> Array:
        """Return the derivative."""
        t, slope, _ = self._share(x)
        return t + x * slope

    def second(self, x: Array) -> Array:
        """Return the second derivative."""
        _, slope, curve = self._share(x)
        return 2.0 * slope + x * curve

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Mish."""
        return writer.node("Mish", inputs)


@dataclass(frozen=True, eq=False)
class HardSwish(Smooth):
    r"""Hard swish: :math:`x \max(0, \min(1, x / 6 + 1 / 2))`, a parabola between two lines."""

    least = -0.375
    tail = 0.0
    turns = ((-1.5, -0.375),)
    kinks = (-3.0, 3.0)

    @property
    def name(self) -> str:
        """What users call it."""
        return "Hardswish"

    def function(self, x: Numbers) -> Array:
        """Return the value."""
        return np.where(x >= 3.0, x, x * np.clip(x + 3.0, 0.0, 6.0) / 6.0)

    def derivative(self, x: Array) -> Array:
        """Return the derivative."""
        return np.where(np.abs(x) < 3.0, x / 3.0 + 0.5, np.where(x > 0, 1.0, 0.0))

    def second(self, x: Array) -> Array:
        """Return the second derivative, at the kinks that of the parabola."""
        return np.where(np.abs(x) <= 3.0, 1.0 / 3.0, 0.0)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write HardSwish."""
        return writer.node("HardSwish", inputs)


def bell(x: Array) -> Array:
    r"""Return :math:`\sigma(x) \sigma(-x)`, the derivative of the sigmoid."""
    return np.asarray(scipy.special.expit(x) * scipy.special.expit(-x))


def _density(x: Array) -> Array:
    """Return the standard normal density."""
    return 0.5 * _SQRT_TWO_OVER_PI * np.exp(-0.5 * x * x)
