"""Deterministic RMSProp with a shift: the step size and the horizon that reach a critical point."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pindown.optim.problems import Constants, Kind, positive
from pindown.optim.reference import RMSPropRule, Trace

# f is a sum of rounded terms: two values can differ by this times their size without any descent.
ROUNDING = 64 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class RMSPropPlan:
    r"""A step size with its promise.

    Attributes:
        lr: The constant step size :math:`\alpha`.
        decay: :math:`\beta_2`.
        shift: :math:`\xi`.
        epsilon: The gradient norm that is reached.
        horizon: It is reached at an iterate t not beyond this.
        descent: Every step lowers f by this times :math:`\|\nabla f(x_t)\|^2`, or more.
        kind: As good as the constants.
    """

    lr: float
    decay: float
    shift: float
    epsilon: float
    horizon: int
    descent: float
    kind: Kind

    def __str__(self) -> str:
        return (
            f"RMSProp with step {self.lr:.4g}: some iterate t <= {self.horizon:,} has gradient norm "
            f"<= {self.epsilon:g} ({self.kind})"
        )

    @property
    def rule(self) -> RMSPropRule:
        """The method with these settings."""
        return RMSPropRule(self.lr, self.decay, self.shift)

    def broken_steps(self, trace: Trace) -> tuple[int, ...]:
        """Return the steps t at which f fell by less than promised; empty if the proof's steps hold."""
        fall = trace.values[:-1] - trace.values[1:]
        promised = self.descent * trace.gradient_norms[:-1] ** 2
        short = fall < promised - ROUNDING * np.abs(trace.values[:-1])
        return tuple(map(int, 1 + np.flatnonzero(short)))


def rmsprop_plan(
    constants: Constants, gap: float, epsilon: float, *, decay: float = 0.9, shift: float = 1.0
) -> RMSPropPlan:
    r"""Return the step size with which RMSProp provably reaches a small gradient, and how soon.

    .. math::
        \alpha = \frac{(1 - \beta_2)\, \xi}{L \sqrt{\sigma^2 + \xi}}, \qquad
        t \le \frac{2 L (\sigma^2 + \xi)(f(x_1) - f_*)}{(1 - \beta_2)\, \xi\, \epsilon^2},

    because then :math:`f(x_{t+1}) \le f(x_t) - \alpha \|\nabla f(x_t)\|^2 / (2 \sqrt{\sigma^2 + \xi})`.

    Args:
        constants: L and :math:`\sigma` of the function.
        gap: :math:`f(x_1) - f_*`, or an upper bound.
        epsilon: The gradient norm to reach.
        decay: :math:`\beta_2`, in [0, 1).
        shift: :math:`\xi`, positive.

    Raises:
        ValueError: If a number is out of range.

    Example:
        With L = sigma = shift = gap = 1, no memory and epsilon = 1/2, the horizon is 2 * 2 * 4.

        >>> plan = rmsprop_plan(Constants(1.0, 1.0), gap=1.0, epsilon=0.5, decay=0.0)
        >>> plan.horizon, round(plan.lr, 4)
        (16, 0.7071)

    Mukherjee 2020, Theorem 5.4.1.
    """
    check_common(gap, epsilon, decay)
    positive("shift", shift)
    L, root = constants.smoothness, math.sqrt(constants.gradient_bound**2 + shift)
    lr = (1 - decay) * shift / (L * root)
    descent = lr / (2 * root)
    horizon = whole(ratio(gap, descent * epsilon**2))
    return RMSPropPlan(lr, decay, shift, epsilon, horizon, descent, constants.kind)


def check_common(gap: float, epsilon: float, decay: float) -> None:
    """Refuse what no theorem of the family covers."""
    for name, value in (("gap", gap), ("decay", decay)):
        if not isinstance(value, int | float | np.floating | np.integer) or isinstance(value, bool):
            raise ValueError(f"{name} must be a number; got {value!r}.")
    if not 0 <= gap < math.inf:
        raise ValueError(f"gap must be a finite number, zero or more; got {gap!r}.")
    positive("epsilon", epsilon)
    if not 0 <= decay < 1:
        raise ValueError(f"decay must be in [0, 1); got {decay!r}.")


def ratio(a: float, b: float) -> float:
    """Divide, to infinity where the divisor vanished by underflow."""
    return a / b if b > 0 else math.inf


def whole(steps: float) -> int:
    """Round a number of steps up, at least to one; what is a whole number up to rounding stays.

    >>> whole(15.999999999999998), whole(16.000000000000004), whole(16.1), whole(0.0)
    (16, 16, 17, 1)
    """
    if not math.isfinite(steps):
        raise ValueError(f"epsilon, shift or gap must be larger or smaller: the horizon got {steps!r}.")
    nearest = round(steps)
    return max(1, nearest if abs(steps - nearest) <= ROUNDING * abs(steps) else math.ceil(steps))
