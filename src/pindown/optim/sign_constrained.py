"""Stochastic RMSProp when all terms of the loss agree on the sign of every partial derivative."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.optim.problems import Constants, Kind, positive
from pindown.optim.reference import RMSPropRule
from pindown.optim.rmsprop_theorems import ROUNDING, check_common, ratio, whole
from pindown.validation import integer


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
    check_common(gap, 1.0 if epsilon is None else epsilon, decay)
    L, bound = constants.smoothness, constants.gradient_bound
    weight = 2 * L * bound**2 * (bound**2 + shift) * gap / ((1 - decay) * shift)
    if epsilon is not None:
        horizon = whole(ratio(weight, epsilon**4))
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
    check_common(0.0, 1.0, decay)
    mean = A.mean(axis=0)
    V = decay * v + (1 - decay) * (A**2 + shift)
    slope = float(((A / np.sqrt(V)).mean(axis=0) * mean).sum())
    same = bool(np.all(np.all(A >= 0, axis=0) | np.all(A <= 0, axis=0)))
    return PreconditionedDescent(
        slope, float(mean @ mean) / math.hypot(gradient_bound, math.sqrt(shift)), same
    )
