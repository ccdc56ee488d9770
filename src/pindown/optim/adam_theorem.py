"""Deterministic ADAM: betas, shift, steps and horizon that reach a critical point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pindown.evidence import Kind
from pindown.optim.problems import Constants
from pindown.optim.reference import AdamRule, Trace
from pindown.optim.rmsprop_theorems import ROUNDING, check_ranges, ratio, steps_up
from pindown.validation import choice, positive


@dataclass(frozen=True)
class AdamPlan:
    r"""Settings of ADAM with their promise.

    Attributes:
        lr: :math:`\alpha` of the schedule.
        betas: :math:`\beta_1`, small, and :math:`\beta_2`, free.
        shift: :math:`\xi`.
        schedule: ``"theorem"``, steps :math:`\alpha \|g_t\|^2 / (1 - \beta_1^t)^2`; or ``"optimal"``.
        epsilon: The gradient norm that is reached.
        horizon: It is reached at an iterate t not beyond this.
        descent: While the norm is above epsilon, step t >= 2 lowers f by this times
            :math:`\|g_t\|^4 / (1 - \beta_1^t)^2`, or more.
        variant: ``"corrected"`` or ``"as_printed"``.
        kind: As good as the constants.
    """

    lr: float
    betas: tuple[float, float]
    shift: float
    schedule: str
    epsilon: float
    horizon: int
    descent: float
    variant: str
    kind: Kind

    def __str__(self) -> str:
        said = "as printed, not true" if self.variant == "as_printed" else self.kind
        return (
            f"ADAM with beta1 = {self.betas[0]:.4g} and shift {self.shift:.4g}: some iterate "
            f"t <= {self.horizon:,} has gradient norm <= {self.epsilon:g} ({said})"
        )

    @property
    def rule(self) -> AdamRule:
        """The method with these settings."""
        return AdamRule(self.lr, self.betas, self.shift, self.schedule)

    def broken_steps(self, trace: Trace) -> tuple[int, ...]:
        """Return the steps t >= 2 above epsilon at which f fell by less than promised."""
        t = np.arange(1, len(trace.values))
        norms = trace.gradient_norms[:-1]
        fall = trace.values[:-1] - trace.values[1:]
        promised = self.descent * norms**4 / (1 - self.betas[0] ** t) ** 2
        short = fall < promised - ROUNDING * np.abs(trace.values[:-1])
        return tuple(map(int, t[short & (norms > self.epsilon) & (t >= 2)]))


def adam_plan(
    constants: Constants,
    gap: float,
    epsilon: float,
    *,
    beta1: float | None = None,
    shift: float | None = None,
    beta2: float = 0.999,
    variant: Literal["corrected", "as_printed"] = "corrected",
) -> AdamPlan:
    r"""Return settings with which ADAM provably reaches a small gradient, and how soon.

    By default :math:`\beta_1 = \epsilon / (\epsilon + 2 \sigma)`, :math:`\xi = 2 \sigma`,

    .. math::
        \alpha_t = \frac{\|g_t\|^2}{L (1 - \beta_1^t)^2} \frac{4 \epsilon}{3 (\epsilon + 2 \sigma)^2},
        \qquad T = 1 + \frac{9 L (\epsilon + 2 \sigma)^4 (f(x_2) - f_*)}{2 \epsilon^6}.

    Other :math:`\beta_1 < \epsilon / (\epsilon + \sigma)` and :math:`\xi > \sigma / \theta_1` take the
    steps that are best for an L-smooth function, and with
    :math:`\theta_1 = \epsilon (1 - \beta_1) / (\beta_1 \sigma) - 1` and
    :math:`\theta_2 = \xi - \sigma / \theta_1`

    .. math:: T = 1 + \frac{2 L \sigma^2 (\xi + \sigma)^2 (f(x_2) - f_*)}
        {\epsilon^4 (\beta_1 - \beta_1^2)^2 \theta_1^2 \theta_2^2}.

    Betas near one, as used in practice, are outside of the theorem.

    Args:
        constants: L and :math:`\sigma` of the function.
        gap: :math:`f(x_2) - f_*` or an upper bound: :math:`f(x_1) - f_*` is one.
        epsilon: The gradient norm to reach.
        beta1: :math:`\beta_1`, small.
        shift: :math:`\xi`, large.
        beta2: :math:`\beta_2`, any number in [0, 1).
        variant: ``"as_printed"`` gives the horizon as printed, which is too short for large functions.

    Raises:
        ValueError: If a number is out of range or the conditions of the theorem fail.

    Example:
        With L = sigma = gap = 1 and epsilon = 1 the horizon is 1 + 4.5 * 81.

        >>> adam_plan(Constants(1.0, 1.0), 1.0, 1.0).horizon
        366

    Mukherjee 2020, Theorem 5.4.3, with the horizon corrected.
    """
    choice("variant", variant, ("corrected", "as_printed"))
    check_ranges(gap, epsilon, beta2)
    L, sigma = constants.smoothness, constants.gradient_bound
    explicit = beta1 is None and shift is None
    beta1 = epsilon / (epsilon + 2 * sigma) if beta1 is None else beta1
    positive("beta1", beta1)
    if not beta1 < epsilon / (epsilon + sigma):
        limit = epsilon / (epsilon + sigma)
        raise ValueError(
            f"beta1 must be between 0 and epsilon/(epsilon + sigma) = {limit:.4g}; got {beta1!r}."
        )
    theta1 = 1.0 if explicit else epsilon * (1 - beta1) / (beta1 * sigma) - 1
    shift = 2 * sigma if shift is None else shift
    positive("shift", shift)
    if not shift > sigma / theta1:
        raise ValueError(
            f"shift must be above sigma/theta1 = {sigma / theta1:.4g} for this beta1; got {shift!r}."
        )
    theta2 = shift - sigma / theta1
    descent = ((beta1 - beta1**2) * theta1 * theta2 / ((shift + sigma) * sigma)) ** 2 / (2 * L)
    horizon = steps_up(1 + ratio(gap, descent * epsilon**4))
    if variant == "as_printed":
        half = ratio(gap, 2 * descent * epsilon**4)
        horizon = steps_up(ratio(9 * L * sigma**2 * gap, epsilon**6) if explicit else half)
    lr = 4 * epsilon / (3 * L * (epsilon + 2 * sigma) ** 2) if explicit else 1 / L
    schedule = "theorem" if explicit else "optimal"
    return AdamPlan(
        lr, (beta1, beta2), shift, schedule, epsilon, horizon, descent, variant, constants.kind
    )
