"""Deterministic RMSProp without a shift: bounded functions, diminishing steps, a slower promise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pindown.optim.problems import Constants, Kind, positive
from pindown.optim.reference import RMSPropRule
from pindown.optim.rmsprop_theorems import check_common, ratio, whole
from pindown.validation import integer


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
        if steps < 1:
            raise ValueError(f"steps must be at least 1; got {steps!r}.")
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
    if variant not in ("corrected", "as_printed"):
        raise ValueError(f"variant must be corrected or as_printed; got {variant!r}.")
    if not math.isfinite(constants.upper):
        raise ValueError("without a shift the function must be bounded above; set constants.upper.")
    spread = constants.upper - constants.lower
    check_common(spread, epsilon, decay)
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
    low, high = 0, whole(root * root)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if plan(1).bound(middle) <= epsilon**2 else (middle, high)
    return plan(high)
