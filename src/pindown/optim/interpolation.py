"""Interpolation: how stochastic gradients shrink with the true one, and the fast rate claimed for it.

The diagnosis is no certificate. The published fast rate of stochastic RMSProp is kept for reference,
with why it promises nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.validation import choice, number, positive


@dataclass(frozen=True)
class Interpolation:
    r"""Stochastic gradients at one point beside their mean.

    Attributes:
        strong_growth: :math:`\mathbb{E}\|g\|^2 / \|\nabla f\|^2`; infinite at a critical point of the
            mean that is not one of every term. Bounded along training where the terms can all be fitted.
        constant: The least c with :math:`\mathbb{E}[\|g\|^2 + \sqrt{d \xi} \|g\|] \le c \|\nabla f\|^2`.
        floor: Where :math:`\|\nabla f\|` is below this, no oracle has that c.
        gradient_norm: :math:`\|\nabla f\|`.
    """

    strong_growth: float
    constant: float
    floor: float
    gradient_norm: float

    def __str__(self) -> str:
        return (
            f"strong growth {self.strong_growth:.4g} at gradient norm {self.gradient_norm:.4g}; "
            f"c = {self.constant:.4g} (a diagnosis: no convergence follows)"
        )


def interpolation_diagnostic(gradient_samples: ArrayLike, shift: float) -> Interpolation:
    r"""Measure how much larger single gradients are than their mean.

    Args:
        gradient_samples: Gradients of all terms (or a sample of them) at a point, shape (k, d).
        shift: :math:`\xi` of RMSProp.

    Raises:
        ValueError: If the table is empty or not finite, or the shift is not positive.

    Example:
        Gradients 1 and 3 have mean 2 and mean square 5:

        >>> found = interpolation_diagnostic([[1.0], [3.0]], shift=1.0)
        >>> found.strong_growth, found.constant
        (1.25, 1.75)

    Mukherjee 2020, Definition 19 and section 5.7.1: what the proof needs of the oracle.
    """
    G = _table(gradient_samples)
    positive("shift", shift)
    norms = np.linalg.norm(G, axis=1)
    square = float(np.linalg.norm(G.mean(axis=0))) ** 2
    root = math.sqrt(G.shape[1] * shift)
    second, with_shift = float((norms**2).mean()), float((norms**2 + root * norms).mean())
    if square == 0:
        growth = constant = math.inf if second > 0 else math.nan
    else:
        growth, constant = second / square, with_shift / square
    floor = root / (constant - 1) if constant > 1 and math.isfinite(constant) else 0.0
    return Interpolation(growth, constant, floor, math.sqrt(square))


def interpolating_oracle_holds(gradient_samples: ArrayLike, shift: float, c: float) -> bool:
    r"""Tell whether the oracle condition holds at a point, as it is defined.

    .. math::
        \mathbb{E}\big(\|g\| + \tfrac12 \sqrt{d \xi}\big)^2 \le
        \big(\sqrt c\, \|\nabla f\| - \tfrac12 \sqrt{d \xi}\big)^2.

    Args:
        gradient_samples: Gradients of all terms at the point, shape (k, d).
        shift: :math:`\xi`.
        c: The constant of the condition.

    Example:
        >>> interpolating_oracle_holds([[10.0], [10.0]], shift=1.0, c=4.0)
        True
        >>> interpolating_oracle_holds([[0.1], [0.1]], shift=1.0, c=4.0)
        False

    Mukherjee 2020, Definition 19.
    """
    G = _table(gradient_samples)
    positive("shift", shift)
    positive("c", c)
    half = math.sqrt(G.shape[1] * shift) / 2
    left = float(((np.linalg.norm(G, axis=1) + half) ** 2).mean())
    return left <= (math.sqrt(c) * float(np.linalg.norm(G.mean(axis=0))) - half) ** 2


def interpolating_oracle_floor(dimension: int, shift: float, c: float) -> float:
    r"""Return the gradient norm below which no oracle meets the condition, noise or not.

    By Jensen's inequality the condition forces :math:`\|\nabla f\| \ge \sqrt{d \xi} / (\sqrt c - 1)` at
    every point that is not critical; for :math:`c \le 1` it never holds there. So with a fixed shift it
    cannot hold on the way to a critical point.

    Example:
        >>> interpolating_oracle_floor(4, shift=1.0, c=9.0)
        1.0

    Our own, about Mukherjee 2020, Definition 19.
    """
    positive("dimension", dimension)
    positive("shift", shift)
    positive("c", c)
    return math.sqrt(dimension * shift) / (math.sqrt(c) - 1) if c > 1 else math.inf


def _table(samples: ArrayLike) -> Array:
    G = np.asarray(samples, dtype=float)
    if G.ndim != 2 or G.size == 0 or not np.all(np.isfinite(G)):
        raise ValueError(f"gradient_samples must be a finite table (k, d); got shape {G.shape}.")
    return G


@dataclass(frozen=True)
class StochasticRMSPropConditions:
    r"""The conditions of the theorem for given numbers.

    Attributes:
        conditions_hold: Whether the conditions on :math:`c, \sigma, \xi, \beta_2` hold.
        lr: The step size of the proof; nan if they do not hold.
        factor: The bound on the expected least squared gradient norm is this over T; nan likewise.
        reachable: Whether a point that is not critical can exist at all under the conditions and the
            oracle's: the gradient norm must be at least :math:`\sqrt{d \xi} / (\sqrt c - 1)`.
        variant: ``"as_printed"`` or ``"corrected"``.
    """

    conditions_hold: bool
    lr: float
    factor: float
    reachable: bool
    variant: str

    def __str__(self) -> str:
        if not self.conditions_hold:
            return f"fast RMSProp ({self.variant}): the conditions fail"
        end = (
            "" if self.reachable else "; but no point that is not critical meets the oracle's condition"
        )
        return f"fast RMSProp ({self.variant}): the conditions hold{end}"


def stochastic_rmsprop_conditions(
    *,
    c: float,
    gradient_bound: float,
    shift: float,
    decay: float,
    smoothness: float = 1.0,
    gap: float = 1.0,
    sample_bound: float | None = None,
    variant: Literal["corrected", "as_printed"] = "corrected",
) -> StochasticRMSPropConditions:
    r"""Evaluate the theorem on stochastic RMSProp with an interpolating oracle.

    Its proof needs an upper bound on :math:`v_t`. Printed is :math:`v_t \le \sigma`, which has not even
    the right dimension; true is :math:`v_t \le G^2 + \xi` with G a bound on single stochastic partial
    derivatives. So the printed condition :math:`c \sigma^{3/2} / \xi < \sqrt{\beta_2 (1 - \beta_2)}`
    becomes

    .. math:: c\, \sigma \sqrt{G^2 + \xi} / \xi < \sqrt{\beta_2 (1 - \beta_2)} \le \tfrac12,

    hence :math:`\sigma < \sqrt\xi / (2 c)`, while the oracle's condition needs
    :math:`\sigma \ge \sqrt\xi / (\sqrt c - 1)`. No c satisfies both: the corrected theorem says
    nothing about any point that is not critical already. It is not a certificate.

    Args:
        c: Constant of the oracle.
        gradient_bound: :math:`\sigma`, a bound on every partial derivative.
        shift: :math:`\xi`.
        decay: :math:`\beta_2`, in (0, 1).
        smoothness: L.
        gap: :math:`f(x_1) - f_*`.
        sample_bound: G; by default :math:`\sigma`, its least possible value.
        variant: ``"as_printed"`` with :math:`\sigma` for :math:`G^2 + \xi`.

    Raises:
        ValueError: If a number is out of range.

    Example:
        >>> print(stochastic_rmsprop_conditions(c=4.0, gradient_bound=0.05, shift=1.0, decay=0.5))
        fast RMSProp (corrected): the conditions hold; but no point that is not critical meets the
        oracle's condition

    Mukherjee 2020, Theorem 5.3.1 and section 5.7.1.
    """
    for name, value in (("c", c), ("gradient_bound", gradient_bound), ("shift", shift)):
        positive(name, value)
    positive("smoothness", smoothness)
    number("decay", decay, 0.0, 1.0, above=True, below=True)
    choice("variant", variant, ("corrected", "as_printed"))
    G = gradient_bound if sample_bound is None else sample_bound
    positive("sample_bound", G)
    top = gradient_bound if variant == "as_printed" else G**2 + shift  # of the averages v
    holds = c * gradient_bound * math.sqrt(top) / shift < math.sqrt(decay * (1 - decay))
    if variant == "as_printed":
        holds = holds and gradient_bound < (shift / (2 * c)) ** (2 / 3)
    down = 1 / math.sqrt(decay * top) - c * gradient_bound / (shift * decay * math.sqrt(1 - decay))
    lr = shift * decay * (1 - decay) / (c * smoothness) * down if holds else math.nan
    # A step lowers f by lr down / 2 times the squared gradient norm, in expectation.
    factor = 2 * gap / (lr * down) if holds else math.nan
    reachable = c > 1 and gradient_bound >= math.sqrt(shift) / (math.sqrt(c) - 1)
    return StochasticRMSPropConditions(holds, lr, factor, reachable, variant)


def dynamic_shift_holds(local_shift: float, shift: float, dimension: int, gradient_norm: float) -> bool:
    r"""Evaluate the printed condition on a shift that varies from point to point.

    .. math:: (\xi_x - \xi) / \sqrt{\xi_x} \le 2 \sqrt{\xi / d}\; \|\nabla f(x)\|.

    If f is multiplied by s and shifts by :math:`s^2`, RMSProp takes the same steps, but the left side
    grows with s and the right side with :math:`s^2`: whether it holds depends on the unit
    in which the loss is measured. It is kept to show that; nothing here relies on it.

    Example:
        >>> dynamic_shift_holds(4.0, 1.0, 1, 1.0)  # 3/2 <= 2
        True
        >>> dynamic_shift_holds(4.0 / 4, 1.0 / 4, 1, 0.5)  # the same, f halved: 3/4 <= 1/2
        False

    Mukherjee 2020, Corollary 5.3.2, as printed.
    """
    for name, value in (("local_shift", local_shift), ("shift", shift), ("dimension", dimension)):
        positive(name, value)
    return (local_shift - shift) / math.sqrt(local_shift) <= 2 * math.sqrt(
        shift / dimension
    ) * gradient_norm
