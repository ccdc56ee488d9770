r"""Early stopping as ridge regression, exactly and to first order, from any start and at any rank.

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
from pindown.bias.least_squares.checks import (
    Reduction,
    count,
    gradient_factor,
    labelled,
    number,
    scaled_squares,
    vector,
)
from pindown.bias.shrinkage.early_stopping import descent_shrinkage, equivalent_penalty, ridge_shrinkage
from pindown.bias.shrinkage.least_norm import least_norm_solution

FLOW_RATIO = 1.2984256075  # largest value of (1 - exp(-x)) (1 + x) / x, reached at x = 1.7932821


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
    kind: str = "exact"

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
    step = number("step", step, 0.0, np.inf, closed=False)
    steps = count("n_steps", n_steps, 1)
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
    values = np.atleast_1d(np.asarray(curvatures, dtype=np.float64))
    time = number("time", time, 0.0, np.inf, closed=False)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(f"curvatures must be finite and not negative; got {curvatures!r}.")
    x = values * time
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return np.asarray(np.where(x == 0, 1.0, x / np.expm1(x)) / time)
