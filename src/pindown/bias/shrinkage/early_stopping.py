r"""Early stopping as ridge regression: how many steps of gradient descent make which penalty.

.. math:: Q^\top w^{(\tau)} = [I - (I - \epsilon\Lambda)^\tau]\,Q^\top w^*, \qquad
          Q^\top\tilde w = [I - \alpha(\Lambda + \alpha I)^{-1}]\,Q^\top w^*, \qquad
          \alpha_i = \lambda_i\frac{q_i}{1 - q_i},\quad q_i = (1 - \epsilon\lambda_i)^\tau.

The two agree in one direction exactly, and in all of them only to first order,
:math:`\tau \approx 1/(\epsilon\alpha)`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array


@dataclass(frozen=True)
class EquivalentPenalty:
    """The ridge penalties that give what early stopping gives.

    Attributes:
        exact: The penalty in each eigendirection.
        common: The one penalty of the first-order rule, 1/(step times number of steps).
        error: Largest relative error of the common penalty.
    """

    exact: Array = field(repr=False)
    common: float
    error: float

    def __str__(self) -> str:
        if not np.isfinite(self.error):
            return f"penalty {self.common:.4g}; some directions are fitted wholly, their penalty is 0"
        return f"penalty {self.common:.4g}, within {self.error:.1%} of the exact one in every direction"


def descent_shrinkage(eigenvalues: ArrayLike, step: float, n_steps: int) -> Array:
    r"""Return the share :math:`1 - (1 - \epsilon\lambda)^\tau` of the minimiser reached from zero.

    >>> descent_shrinkage([1.0, 0.5], 1.0, 2).tolist()
    [1.0, 0.75]
    """
    values = _checked(eigenvalues, step, n_steps)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(n_steps * np.log1p(-step * values)))


def ridge_shrinkage(eigenvalues: ArrayLike, penalty: float) -> Array:
    r"""Return the share :math:`\lambda/(\lambda + \alpha)` of the minimiser that ridge keeps.

    >>> ridge_shrinkage([1.0, 3.0], 1.0).tolist()
    [0.5, 0.75]
    """
    values = np.asarray(eigenvalues, dtype=np.float64)
    if not (np.isfinite(values).all() and (values >= 0).all() and 0 < penalty < np.inf):
        raise ValueError(
            f"eigenvalues must not be negative and the penalty positive, got a penalty of {penalty!r}"
        )
    return np.asarray(values / (values + penalty))


def equivalent_penalty(eigenvalues: ArrayLike, step: float, n_steps: int) -> EquivalentPenalty:
    """Return the ridge penalties that stopping after some steps amounts to.

    Args:
        eigenvalues: Positive eigenvalues of the Hessian.
        step: Step size, below one over the largest eigenvalue.
        n_steps: Steps from zero.

    Returns:
        An :class:`EquivalentPenalty`.

    Raises:
        ValueError: If eigenvalues are not positive, or the step is too large for a penalty to exist.

    Example:
        >>> equivalent_penalty([1e-3, 1e-2, 0.1], 0.01, 1000).exact.round(4).tolist()
        [0.0995, 0.0951, 0.0582]

    Lecture course, slides on early stopping.
    """
    values = _checked(eigenvalues, step, n_steps)
    if n_steps < 1:
        raise ValueError("at least one step is needed: none amounts to an infinite penalty")
    kept = descent_shrinkage(values, step, n_steps)
    with np.errstate(divide="ignore"):  # a step of one over an eigenvalue leaves nothing
        left = np.exp(n_steps * np.log1p(-step * values))
    exact = values * left / kept
    common = 1.0 / (step * n_steps)
    with np.errstate(divide="ignore"):
        error = float(np.abs(common / exact - 1).max())
    return EquivalentPenalty(exact, common, error)


def equivalent_steps(step: float, penalty: float) -> float:
    r"""Return :math:`1/(\epsilon\alpha)`, the steps that amount to a penalty where curvature is small.

    >>> equivalent_steps(0.01, 0.1)
    1000.0
    """
    if not (step > 0 and penalty > 0):
        raise ValueError(f"step and penalty must be positive, got {step!r} and {penalty!r}")
    return float(1.0 / (step * penalty))


def _checked(eigenvalues: ArrayLike, step: float, n_steps: int) -> Array:
    values = np.atleast_1d(np.asarray(eigenvalues, dtype=np.float64))
    if values.size == 0 or not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError("eigenvalues must be positive numbers; flat directions never move")
    if not 0 < step <= 1 / values.max():
        raise ValueError(
            f"step must lie in (0, 1/largest eigenvalue = {1 / values.max():.4g}], got {step!r}"
        )
    if isinstance(n_steps, bool) or not isinstance(n_steps, int | np.integer) or n_steps < 0:
        raise ValueError(f"n_steps must be a whole number, zero or positive, got {n_steps!r}")
    return values
