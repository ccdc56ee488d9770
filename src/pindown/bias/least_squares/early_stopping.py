r"""Early stopping as ridge regression: how many steps of gradient descent make which penalty.

In the eigendirection of curvature :math:`\lambda`, :math:`\tau` steps of size :math:`\epsilon` go the
share :math:`1 - (1 - \epsilon\lambda)^\tau` of the way from the start to the minimiser, and a ridge
penalty :math:`\alpha` on the distance from the start allows :math:`\lambda/(\lambda + \alpha)`. So
stopping is a ridge penalty for each direction,

.. math:: \alpha(\lambda) = \lambda\,\frac{(1 - \epsilon\lambda)^\tau}{1 - (1 - \epsilon\lambda)^\tau},
          \qquad \alpha(\lambda) \to \frac{1}{\epsilon\tau} \text{ as } \lambda \to 0,

and with the one penalty :math:`1/(\epsilon\tau)` the two shares are never further apart than a factor
two:

.. math:: 1 \le \frac{1 - (1 - \epsilon\lambda)^\tau}{\lambda/(\lambda + 1/(\epsilon\tau))} \le 2
          \qquad (0 < \epsilon\lambda \le 1),

in the limit of small steps at most 1.2985. With :math:`x = \epsilon\tau\lambda`, below:
:math:`1 - u \le 1/(1 + u)` and :math:`(1 + u)^\tau \ge 1 + \tau u`. Above: the share is at most
:math:`\min(1, x)`, and :math:`\min(1, x)(1 + 1/x) \le 2`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.least_squares.gradient_descent import (
    Reduction,
    gradient_factor,
    least_norm_solution,
    scaled_squares,
)
from pindown.evidence import Kind
from pindown.validation import array, integer, labelled, number, positive, refuse, vector

FLOW_RATIO = 1.2984256075  # largest value of (1 - exp(-x)) (1 + x) / x, reached at x = 1.7932821


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
    penalty = positive("penalty", penalty)
    values = array("eigenvalues", eigenvalues)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        refuse("eigenvalues", "finite and not negative", eigenvalues)
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
        raise ValueError("n_steps must be at least 1: no step amounts to an infinite penalty; got 0.")
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
    return 1.0 / (positive("step", step) * positive("penalty", penalty))


def _checked(eigenvalues: ArrayLike, step: float, n_steps: int) -> Array:
    values = np.atleast_1d(array("eigenvalues", eigenvalues))
    if values.size == 0 or not (np.isfinite(values).all() and (values > 0).all()):
        refuse("eigenvalues", "positive numbers (flat directions never move)", eigenvalues)
    if not 0 < number("step", step) <= 1 / values.max():
        refuse("step", f"in (0, 1/largest eigenvalue = {1 / values.max():.4g}]", step)
    integer("n_steps", n_steps, least=0)
    return values


@dataclass(frozen=True)
class StoppedDescent:
    """Gradient descent that was stopped, and the ridge regressions it amounts to.

    Attributes:
        stopped: Weights at the last step.
        ridge: Weights of the ridge regression with the one penalty ``penalty``.
        penalty: One over step times number of steps.
        exact: Penalty in each direction with curvature, largest curvature first; zero where descent has
            arrived.
        curvatures: Eigenvalues of the loss's Hessian, the positive ones, largest first.
        ratio: Largest ratio of the way gone to the way that ridge goes, over directions; 1 to 2.
        distance: Norm of the difference of both weights, over the distance gone from the start.
        kind: ``"exact"``: an identity for a squared error, up to rounding.
    """

    stopped: Array = field(repr=False)
    ridge: Array = field(repr=False)
    penalty: float
    exact: Array = field(repr=False)
    curvatures: Array = field(repr=False)
    ratio: float
    distance: float
    kind: Kind = "exact"

    def __str__(self) -> str:
        return (
            f"ridge penalty {self.penalty:.4g}, within {self.distance:.2%} of the stopped weights; "
            f"descent goes up to {self.ratio:.4g} times as far in a direction"
        )


def stopping_as_ridge(
    X: ArrayLike,
    y: ArrayLike,
    *,
    step: float,
    n_steps: int,
    start: ArrayLike | None = None,
    reduction: Reduction = "half_mean",
) -> StoppedDescent:
    r"""Return what stopping gradient descent amounts to, as a penalty on the distance from the start.

    Ridge here is :math:`\min_w\,\mathrm{loss}(w) + \frac\alpha2\lVert w - w_0\rVert^2`.

    Args:
        X: Inputs (n, d) of any rank.
        y: Targets (n,).
        step: Step size, at most one over the largest curvature: beyond it the iterates swing around the
            minimiser and no positive penalty does the same.
        n_steps: Steps, at least one.
        start: Initial weights (d,); zero if left out.
        reduction: Which multiple of the squared error is the loss.

    Returns:
        A :class:`StoppedDescent`.

    Raises:
        ValueError: If values are not finite, shapes differ, or the step is too large.

    Example:
        One weight, curvature one: two steps of a half go three quarters of the way, ridge a half.

        >>> found = stopping_as_ridge([[1.0]], [1.0], step=0.5, n_steps=2)
        >>> found.stopped.round(9).tolist(), found.ridge.round(9).tolist(), found.exact.round(6).tolist()
        ([0.75], [0.5], [0.333333])

    Lecture course, slides on early stopping; the factor two is ours.
    """
    X, y = labelled(X, y)
    begin = np.zeros(X.shape[1]) if start is None else vector("start", start, X.shape[1])
    step = positive("step", step)
    steps = integer("n_steps", n_steps)
    least = least_norm_solution(X, y)
    _, singular, V = np.linalg.svd(X, full_matrices=False)
    V = V[: least.rank]
    curvatures = scaled_squares(singular[: least.rank], gradient_factor(reduction, len(X)))
    penalty = 1.0 / (step * steps)
    if not least.rank:  # nothing to fit: both stay at the start
        none = np.zeros(0)
        return StoppedDescent(begin, begin, penalty, none, none, 1.0, 0.0)
    way = V @ (least.x - begin)
    gone = descent_shrinkage(curvatures, step, steps)
    kept = ridge_shrinkage(curvatures, penalty)
    stopped, ridge = begin + V.T @ (gone * way), begin + V.T @ (kept * way)
    length = float(np.linalg.norm(stopped - begin))
    return StoppedDescent(
        stopped=stopped,
        ridge=ridge,
        penalty=penalty,
        exact=equivalent_penalty(curvatures, step, steps).exact,
        curvatures=curvatures,
        ratio=float((gone / kept).max()),
        distance=float(np.linalg.norm(stopped - ridge)) / length if length else 0.0,
    )


def flow_penalty(curvatures: ArrayLike, time: float) -> Array:
    r"""Return :math:`\lambda/(e^{\lambda t} - 1)`, the penalties that flow for a time amounts to.

    Args:
        curvatures: Eigenvalues of the Hessian, zero or positive; at zero it is 1/t.
        time: Time t, positive.

    >>> flow_penalty([0.0, 1.0], 1.0).round(4).tolist()
    [1.0, 0.582]

    Lecture course, slides on early stopping, in the limit of small steps.
    """
    values = np.atleast_1d(array("curvatures", curvatures))
    time = positive("time", time)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        refuse("curvatures", "finite and not negative", curvatures)
    x = values * time
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return np.asarray(np.where(x == 0, 1.0, x / np.expm1(x)) / time)
