"""Smooth activations entry by entry: sigmoid, tanh, ELU, softplus and their relatives.

Those with a gate and elementary functions stand in their own modules and can be imported from here.

Numbers for turning points are those of mpmath with 40 digits, rounded to float64; the margins of
:mod:`~pindown.model.operations.smooth_function` are far wider.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its special functions are loaded when they are used

from pindown.affine import Array
from pindown.errors import UnsupportedModelError
from pindown.model.operations.elementary import Exp, Log, Power, Reciprocal, Sqrt
from pindown.model.operations.gated import Gelu, HardSwish, Mish, Silu, bell
from pindown.model.operations.operation import Numbers, Shape, Writer
from pindown.model.operations.smooth_function import Smooth
from pindown.model.operations.trigonometric import Cos, Sin

__all__ = [
    "Celu",
    "Cos",
    "Elu",
    "Erf",
    "Exp",
    "Gelu",
    "HardSwish",
    "Log",
    "Mish",
    "Power",
    "Reciprocal",
    "Selu",
    "Sigmoid",
    "Silu",
    "Sin",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Tanh",
]

_SQRT_HALF = math.sqrt(0.5)
# From here on the normal density is zero in float64; its formula would be infinity times zero.
_FAR = 1e150


@dataclass(frozen=True, eq=False)
class Sigmoid(Smooth):
    r"""The logistic sigmoid :math:`\sigma(x) = 1 / (1 + e^{-x})`."""

    least, most = 0.0, 1.0
    bends = ((-1.3169578969248167, 0.09622504486493763), (1.3169578969248167, -0.09622504486493763))

    def function(self, x: Numbers) -> Array:
        """Return the sigmoid."""
        return np.asarray(scipy.special.expit(x))

    def derivative(self, x: Array) -> Array:
        """Return the bell."""
        return bell(x)

    def second(self, x: Array) -> Array:
        """Return the slope of the bell."""
        return -np.tanh(0.5 * x) * bell(x)

    def as_output_activation(self, shape: Shape) -> str | None:
        """Return its name: it acts on every output alone."""
        return "sigmoid"

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Sigmoid."""
        return writer.node("Sigmoid", inputs)


@dataclass(frozen=True, eq=False)
class Tanh(Smooth):
    """The hyperbolic tangent."""

    least, most = -1.0, 1.0
    bends = ((-0.6584789484624084, 0.769800358919501), (0.6584789484624084, -0.769800358919501))

    def function(self, x: Numbers) -> Array:
        """Return tanh."""
        return np.tanh(x)

    def derivative(self, x: Array) -> Array:
        """Return one over the squared hyperbolic cosine."""
        return 4.0 * bell(2.0 * x)

    def second(self, x: Array) -> Array:
        """Return the second derivative."""
        return -8.0 * np.tanh(x) * bell(2.0 * x)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Tanh."""
        return writer.node("Tanh", inputs)


@dataclass(frozen=True, eq=False)
class Erf(Smooth):
    r"""The error function :math:`\tfrac{2}{\sqrt\pi} \int_0^x e^{-t^2} dt`."""

    least, most = -1.0, 1.0
    bends = ((-_SQRT_HALF, 0.9678828980765734), (_SQRT_HALF, -0.9678828980765734))

    def function(self, x: Numbers) -> Array:
        """Return the error function."""
        return np.asarray(scipy.special.erf(x))

    def derivative(self, x: Array) -> Array:
        """Return the bell."""
        return 2.0 / math.sqrt(math.pi) * np.exp(-x * x)

    def second(self, x: Array) -> Array:
        """Return the slope of the bell."""
        return np.where(np.abs(x) > _FAR, 0.0, -2.0 * x * self.derivative(x))

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Erf."""
        return writer.node("Erf", inputs)


@dataclass(frozen=True, eq=False)
class Elu(Smooth):
    r"""ELU: :math:`x` where it is positive, :math:`\alpha (e^x - 1)` where it is not."""

    alpha: float = 1.0

    kinks = (0.0,)
    turns = ((0.0, 0.0),)

    def __post_init__(self) -> None:
        _require_finite(self.name, alpha=self.alpha, gamma=self._scale)
        object.__setattr__(self, "bends", ((0.0, self._scale * self.alpha),))
        # What underflows may be multiplied.
        object.__setattr__(self, "absolute", self.absolute * max(1.0, abs(self._scale)))
        object.__setattr__(self, "blur", self.blur * max(1.0, abs(self._scale * self.alpha)))

    @property
    def name(self) -> str:
        """What users call it."""
        return "ELU"

    @property
    def _scale(self) -> float:
        return 1.0

    def function(self, x: Numbers) -> Array:
        """Return the value."""
        return self._scale * np.where(x > 0, x, self.alpha * np.expm1(np.minimum(x, 0.0)))

    def derivative(self, x: Array) -> Array:
        """Return the derivative."""
        return self._scale * np.where(x > 0, 1.0, self.alpha * np.exp(np.minimum(x, 0.0)))

    def second(self, x: Array) -> Array:
        """Return the second derivative."""
        return np.where(x > 0, 0.0, self._scale * self.alpha * np.exp(np.minimum(x, 0.0)))

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Elu."""
        return writer.node("Elu", inputs, alpha=self.alpha)


@dataclass(frozen=True, eq=False)
class Selu(Elu):
    r"""SELU: :math:`\gamma x` where x is positive, :math:`\gamma \alpha (e^x - 1)` where it is not.

    Klambauer et al. 2017, "Self-normalizing neural networks"; the numbers are theirs.
    """

    alpha: float = 1.6732632423543772848170429916717
    gamma: float = 1.0507009873554804934193349852946

    @property
    def name(self) -> str:
        """What users call it."""
        return "SELU"

    @property
    def _scale(self) -> float:
        return self.gamma

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Selu."""
        return writer.node("Selu", inputs, alpha=self.alpha, gamma=self.gamma)


@dataclass(frozen=True, eq=False)
class Celu(Smooth):
    r"""CELU: :math:`x` where it is positive, :math:`\alpha (e^{x / \alpha} - 1)` where it is not."""

    alpha: float = 1.0

    def __post_init__(self) -> None:
        _require_finite(self.name, alpha=self.alpha)
        if self.alpha == 0:
            raise UnsupportedModelError("CELU needs an alpha that is not zero; got 0.")
        object.__setattr__(self, "bends", ((0.0, 1.0 / self.alpha),))
        # What underflows may be multiplied.
        object.__setattr__(self, "absolute", self.absolute * max(1.0, abs(self.alpha)))
        object.__setattr__(self, "blur", self.blur * max(1.0, 1.0 / abs(self.alpha)))

    @property
    def name(self) -> str:
        """What users call it."""
        return "CELU"

    def warp(self, x: Array) -> Array:
        """Return a scale on which the curvature is spread evenly."""
        return np.arcsinh(x / self.alpha)

    def unwarp(self, y: Array) -> Array:
        """Undo :meth:`warp`."""
        return self.alpha * np.sinh(y)

    def function(self, x: Numbers) -> Array:
        """Return the value."""
        return np.where(x > 0, x, self.alpha * np.expm1(np.minimum(x, 0.0) / self.alpha))

    def derivative(self, x: Array) -> Array:
        """Return the derivative."""
        return np.where(x > 0, 1.0, np.exp(np.minimum(x, 0.0) / self.alpha))

    def second(self, x: Array) -> Array:
        """Return the second derivative."""
        return np.where(x > 0, 0.0, np.exp(np.minimum(x, 0.0) / self.alpha) / self.alpha)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write it with Elu: ONNX has Celu for float32 only, and its alpha would be rounded to that."""
        alpha = writer.weight(np.array(self.alpha), "alpha")
        return writer.node(
            "Mul", [writer.node("Elu", [writer.node("Div", [*inputs, alpha])], alpha=1.0), alpha]
        )


@dataclass(frozen=True, eq=False)
class Softplus(Smooth):
    r"""Softplus: :math:`\ln(1 + e^x)`."""

    least = 0.0
    bends = ((0.0, 0.25),)

    def function(self, x: Numbers) -> Array:
        """Return the value."""
        return np.logaddexp(0.0, x)

    def derivative(self, x: Array) -> Array:
        """Return the sigmoid."""
        return np.asarray(scipy.special.expit(x))

    def second(self, x: Array) -> Array:
        """Return the bell."""
        return bell(x)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Softplus."""
        return writer.node("Softplus", inputs)


@dataclass(frozen=True, eq=False)
class Softsign(Smooth):
    r"""Softsign: :math:`x / (1 + |x|)`."""

    least, most = -1.0, 1.0
    bends = ((0.0, 2.0), (0.0, -2.0))

    def function(self, x: Numbers) -> Array:
        """Return the value."""
        return np.where(np.isinf(x), np.sign(x), x / (1.0 + np.abs(x)))

    def derivative(self, x: Array) -> Array:
        """Return the derivative."""
        return 1.0 / (1.0 + np.abs(x)) ** 2

    def second(self, x: Array) -> Array:
        """Return the second derivative."""
        return -2.0 * np.sign(x) / (1.0 + np.abs(x)) ** 3

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Softsign."""
        return writer.node("Softsign", inputs)


def _require_finite(name: str, **numbers: float) -> None:
    if not all(map(math.isfinite, numbers.values())):
        given = ", ".join(f"{key}={value}" for key, value in numbers.items())
        raise UnsupportedModelError(f"{name} needs finite numbers; got {given}.")
