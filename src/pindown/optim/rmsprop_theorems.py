"""Theorems on RMSProp: step sizes and horizons that reach a critical point.

Deterministic, with a shift; deterministic without one, for bounded functions with diminishing steps (a
slower promise); and stochastic, where all terms of the loss agree on the sign of every partial
derivative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.evidence import Kind
from pindown.optim.problems import Constants
from pindown.optim.reference import RMSPropRule, Trace
from pindown.validation import choice, integer, number, positive

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
    check_ranges(gap, epsilon, decay)
    positive("shift", shift)
    L, root = constants.smoothness, math.sqrt(constants.gradient_bound**2 + shift)
    lr = (1 - decay) * shift / (L * root)
    descent = lr / (2 * root)
    horizon = steps_up(ratio(gap, descent * epsilon**2))
    return RMSPropPlan(lr, decay, shift, epsilon, horizon, descent, constants.kind)


def check_ranges(gap: float, epsilon: float, decay: float) -> None:
    """Refuse what no theorem of the family covers."""
    positive("gap", gap, zero=True)
    positive("epsilon", epsilon)
    number("decay", decay, 0.0, 1.0, below=True)


def ratio(a: float, b: float) -> float:
    """Divide, to infinity where the divisor vanished by underflow."""
    return a / b if b > 0 else math.inf


def steps_up(steps: float) -> int:
    """Round a number of steps up, at least to one; what is a whole number up to rounding stays.

    >>> steps_up(15.999999999999998), steps_up(16.000000000000004), steps_up(16.1), steps_up(0.0)
    (16, 16, 17, 1)
    """
    if not math.isfinite(steps):
        raise ValueError(f"epsilon, shift or gap must be larger or smaller: the horizon is {steps!r}.")
    nearest = round(steps)
    return max(1, nearest if abs(steps - nearest) <= ROUNDING * abs(steps) else math.ceil(steps))


@dataclass(frozen=True)
class UnshiftedPlan:
    r"""Steps :math:`\alpha / \sqrt t` with their promise.

    Attributes:
        lr: :math:`\alpha`.
        decay: :math:`\beta_2`.
        epsilon: The gradient norm that is reached.
        horizon: It is reached at an iterate t not beyond this.
        values: First part of the bound: ``sigma (B_u - B_l) / alpha``.
        moves: Second part: ``sigma L alpha d / (2 (1 - decay))``.
        variant: ``"corrected"`` or ``"as_printed"``.
        kind: As good as the constants.
    """

    lr: float
    decay: float
    epsilon: float
    horizon: int
    values: float
    moves: float
    variant: str
    kind: Kind

    def __str__(self) -> str:
        return (
            f"RMSProp without shift, steps {self.lr:.4g} / sqrt(t): some iterate t <= {self.horizon:,} "
            f"has gradient norm <= {self.epsilon:g} ({self.kind})"
        )

    @property
    def rule(self) -> RMSPropRule:
        """The method with these settings."""
        return RMSPropRule(self.lr, self.decay, 0.0, diminishing=True)

    def bound(self, steps: int) -> float:
        """Return what the smallest squared gradient norm of this many iterates is at most.

        As printed, this can be far too small; the corrected value always holds.
        """
        integer("steps", steps)
        return (self.values * math.sqrt(steps + 1) + self.moves * step_sum(steps, self.variant)) / steps


def step_sum(steps: int, variant: str = "corrected") -> float:
    r"""Bound :math:`\sum_{t=1}^T t^{-1/2}` by :math:`2 \sqrt T - 1`.

    Printed is :math:`1 + (\sqrt T - 2)/2`, which is too small for every T from 2 on.

    >>> 1 + 1 / 2**0.5 + 1 / 3**0.5 + 1 / 2 <= step_sum(4)
    True
    """
    if variant == "as_printed":
        return 1 + (math.sqrt(steps) - 2) / 2
    return 2 * math.sqrt(steps) - 1


def rmsprop_unshifted_plan(
    constants: Constants,
    dimension: int,
    epsilon: float,
    *,
    decay: float = 0.9,
    lr: float | None = None,
    variant: Literal["corrected", "as_printed"] = "corrected",
) -> UnshiftedPlan:
    r"""Return steps with which RMSProp without a shift reaches a small gradient, and how soon.

    For :math:`B_l \le f \le B_u` in d variables and steps :math:`\alpha / \sqrt t`,

    .. math::
        \min_{t \le T} \|\nabla f(x_t)\|^2 \le \frac{\sigma}{T}
        \Big[ \frac{(B_u - B_l) \sqrt{T + 1}}{\alpha}
        + \frac{L \alpha d}{2 (1 - \beta_2)} (2 \sqrt T - 1) \Big].

    Coordinates in which no gradient was seen yet stay where they are.

    Args:
        constants: L, :math:`\sigma` and both bounds on the function.
        dimension: d.
        epsilon: The gradient norm to reach.
        decay: :math:`\beta_2`, in [0, 1).
        lr: :math:`\alpha`; by default the one that makes the bound least for large T.
        variant: ``"as_printed"`` bounds the sum of :math:`t^{-1/2}` as the source does, which is wrong.

    Raises:
        ValueError: If a number is out of range or the function has no upper bound.

    Example:
        >>> plan = rmsprop_unshifted_plan(Constants(1.0, 1.0, 0.0, 1.0), 1, 0.5, decay=0.0, lr=1.0)
        >>> plan.bound(3)  # (2 + (2 sqrt 3 - 1) / 2) / 3
        1.0773502691896257
        >>> plan.bound(plan.horizon) <= 0.25 < plan.bound(plan.horizon - 1)
        True

    Mukherjee 2020, Theorem 5.4.2 and section 5.C, with the sum corrected.
    """
    choice("variant", variant, ("corrected", "as_printed"))
    if not math.isfinite(constants.upper):
        raise ValueError("without a shift the function must be bounded above; set constants.upper.")
    spread = constants.upper - constants.lower
    check_ranges(spread, epsilon, decay)
    integer("dimension", dimension)
    if lr is None:  # for large T the two parts are spread / alpha and L alpha d / (1 - decay)
        lr = math.sqrt(spread * (1 - decay) / (constants.smoothness * dimension))
    positive("lr", lr)
    values = constants.gradient_bound * spread / lr
    moves = constants.gradient_bound * constants.smoothness * lr * dimension / (2 * (1 - decay))

    def plan(horizon: int) -> UnshiftedPlan:
        return UnshiftedPlan(lr, decay, epsilon, horizon, values, moves, variant, constants.kind)

    # sqrt(T + 1) <= sqrt T + 1/(2 sqrt T): T solves a quadratic up to a lower-order term; then search.
    root = ratio(values * math.sqrt(2) + 2 * moves, epsilon**2)
    low, high = 0, steps_up(root * root)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if plan(1).bound(middle) <= epsilon**2 else (middle, high)
    return plan(high)


@dataclass(frozen=True)
class SignConstrainedPlan:
    r"""A step size with its promise in expectation.

    Attributes:
        lr: The constant step size :math:`\alpha` for this horizon.
        decay: :math:`\beta_2`.
        shift: :math:`\xi`.
        epsilon: :math:`\min_t \mathbb{E} \|\nabla f(x_t)\|^2 \le \epsilon^2` within the horizon.
        horizon: How many iterates.
        kind: As good as the constants; the expectation is over the draws of the oracle.
    """

    lr: float
    decay: float
    shift: float
    epsilon: float
    horizon: int
    kind: Kind

    def __str__(self) -> str:
        return (
            f"stochastic RMSProp with step {self.lr:.4g}: over {self.horizon:,} iterates the least "
            f"expected squared gradient norm is <= {self.epsilon**2:.4g} ({self.kind})"
        )

    @property
    def rule(self) -> RMSPropRule:
        """The method with these settings."""
        return RMSPropRule(self.lr, self.decay, self.shift)


def sign_constrained_plan(
    constants: Constants,
    gap: float,
    *,
    epsilon: float | None = None,
    horizon: int | None = None,
    decay: float = 0.9,
    shift: float = 1.0,
) -> SignConstrainedPlan:
    r"""Return the step size of stochastic RMSProp for a precision, or for a number of steps.

    .. math::
        \alpha = \sqrt{\frac{2 \xi (1 - \beta_2)(f(x_1) - f_*)}{\sigma_f^2 L T}}, \qquad
        \min_{t \le T} \mathbb{E} \|\nabla f(x_t)\|^2 \le
        \sqrt{\frac{2 L \sigma_f^2 (\sigma_f^2 + \xi)(f(x_1) - f_*)}{(1 - \beta_2)\, \xi\, T}}.

    It assumes that the gradients of all terms have the same signs at every point visited.

    Args:
        constants: L of the mean; ``gradient_bound`` bounds the gradients of all terms.
        gap: :math:`f(x_1) - f_*`, positive.
        epsilon: The root of the bound to reach; or
        horizon: the number of steps T.
        decay: :math:`\beta_2`, in [0, 1).
        shift: :math:`\xi`, positive.

    Raises:
        ValueError: If a number is out of range, or both or none of epsilon and horizon are given.

    Example:
        All numbers one: T = 2 * 2 / epsilon^4.

        >>> sign_constrained_plan(Constants(1.0, 1.0), 1.0, epsilon=0.5, decay=0.0).horizon
        64

    Mukherjee 2020, Theorem 5.3.3.
    """
    if (epsilon is None) == (horizon is None):
        raise ValueError(f"give epsilon or horizon, one of them; got {epsilon!r} and {horizon!r}.")
    positive("gap", gap)
    positive("shift", shift)
    check_ranges(gap, 1.0 if epsilon is None else epsilon, decay)
    L, bound = constants.smoothness, constants.gradient_bound
    weight = 2 * L * bound**2 * (bound**2 + shift) * gap / ((1 - decay) * shift)
    if epsilon is not None:
        horizon = steps_up(ratio(weight, epsilon**4))
    assert horizon is not None
    integer("horizon", horizon)
    lr = math.sqrt(2 * shift * (1 - decay) * gap / (bound**2 * L * horizon))
    reached = (weight / horizon) ** 0.25
    return SignConstrainedPlan(lr, decay, shift, reached, horizon, constants.kind)


@dataclass(frozen=True)
class PreconditionedDescent:
    """The expected slope along a step, beside what the lemma promises.

    Attributes:
        slope: Expectation over the terms of the gradient times the preconditioned gradient.
        promised: The squared gradient norm over the root of bound squared plus shift.
        same_signs: Whether the terms agree in sign in every coordinate: the lemma's assumption.
    """

    slope: float
    promised: float
    same_signs: bool

    @property
    def holds(self) -> bool:
        """Whether the slope is at least what was promised."""
        return self.slope >= self.promised - ROUNDING * abs(self.promised)


def preconditioned_descent(
    terms: ArrayLike, average: ArrayLike, *, gradient_bound: float, decay: float, shift: float
) -> PreconditionedDescent:
    r"""Compute exactly how far a random RMSProp step points downhill.

    .. math::
        \mathbb{E}_p \langle \nabla f, V^{-1/2} \nabla f_p \rangle \ge
        \frac{\|\nabla f\|^2}{\sqrt{\sigma_f^2 + \xi}}, \qquad
        V = \mathrm{diag}(\beta_2 v + (1 - \beta_2)(\nabla f_p^2 + \xi)).

    Args:
        terms: Gradients of all terms at the point, shape (k, d).
        average: :math:`v` before the step, shape (d,).
        gradient_bound: :math:`\sigma_f`.
        decay: :math:`\beta_2`.
        shift: :math:`\xi`.

    Raises:
        ValueError: If the shapes do not fit or a number is out of range.

    Example:
        Two terms that pull apart, the rarer one harder, point uphill:

        >>> found = preconditioned_descent([[4.0], [-1.0], [-1.0]], [0.0], gradient_bound=4, decay=0.0,
        ...                                shift=0.01)
        >>> found.same_signs, found.holds
        (False, False)

    Mukherjee 2020, Lemma 5.A.1.
    """
    A, v = np.asarray(terms, dtype=float), np.asarray(average, dtype=float)
    if A.ndim != 2 or A.size == 0 or v.shape != (A.shape[1],):
        raise ValueError(f"terms (k, d) and average (d,) do not fit; got {A.shape} and {v.shape}.")
    if not np.isfinite(A).all() or not np.isfinite(v).all() or (v < 0).any():
        raise ValueError("terms must be finite, and averages of squares finite and not negative.")
    positive("gradient_bound", gradient_bound)
    positive("shift", shift)
    check_ranges(0.0, 1.0, decay)
    mean = A.mean(axis=0)
    V = decay * v + (1 - decay) * (A**2 + shift)
    slope = float(((A / np.sqrt(V)).mean(axis=0) * mean).sum())
    same = bool(np.all(np.all(A >= 0, axis=0) | np.all(A <= 0, axis=0)))
    return PreconditionedDescent(
        slope, float(mean @ mean) / math.hypot(gradient_bound, math.sqrt(shift)), same
    )
