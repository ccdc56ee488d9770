r"""Which least-squares solution gradient descent chooses, and where it is after any number of steps.

.. math:: w_\infty = \Pi_{\ker X}\,w_0 + X^+y, \qquad
          w_k = w_\infty + V(I - \mu\Sigma^2)^kV^\top(w_0 - w_\infty).

The part of the start that the data do not see never moves: among all minimisers the limit is the
nearest to the start, and from zero it is the one of least norm.
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
from pindown.bias.shrinkage.least_norm import descent_iterate, descent_limit, least_norm_solution


@dataclass(frozen=True)
class DescentPrediction:
    """Where gradient descent on a squared error goes.

    Attributes:
        limit: The limit, if the step is small enough for one.
        least_norm: The minimiser of least norm; the limit from zero.
        iterate: The weights after ``n_steps`` steps.
        hidden: The part of the start that the data do not see; it stays for ever.
        rank: Rank of the inputs.
        step_limit: Steps below this converge, larger ones do not; infinite if the inputs are all zero.
        rate: Factor by which the slowest part of the error shrinks in each step.
        residual: Norm of X w - y at the limit: zero if the data can be fitted.
        converges: Whether the step is small enough: every part of the error shrinks.
        kind: ``"exact"``: an identity for a squared error, up to rounding.
    """

    limit: Array = field(repr=False)
    least_norm: Array = field(repr=False)
    iterate: Array = field(repr=False)
    hidden: Array = field(repr=False)
    rank: int
    step_limit: float
    rate: float
    residual: float
    converges: bool
    kind: str = "exact"

    def __str__(self) -> str:
        if not self.converges:
            return f"diverges: the step must be below {self.step_limit:.4g}"
        excess = float(np.linalg.norm(self.hidden))
        return (
            f"limit of norm {np.linalg.norm(self.limit):.4g} "
            f"(least {np.linalg.norm(self.least_norm):.4g}, {excess:.4g} "
            f"left from the start), rank {self.rank}, error times {self.rate:.4g} a step"
        )


def predict_descent(
    X: ArrayLike,
    y: ArrayLike,
    *,
    step: float,
    n_steps: int = 0,
    start: ArrayLike | None = None,
    reduction: Reduction = "half_sum",
) -> DescentPrediction:
    r"""Predict gradient descent on a squared error: its limit from any start, and any of its iterates.

    The loss is :math:`c\lVert Xw - y\rVert^2` with c = 1/2 (``"half_sum"``), 1 (``"sum"``), 1/n
    (``"mean"``) or 1/2n (``"half_mean"``). Momentum, and minibatches of any kind, keep the hidden part
    too, so that they have the same limit if they fit the data; Adam does not.

    Args:
        X: Inputs (n, d) of any rank.
        y: Targets (n,).
        step: Step size.
        n_steps: Steps of the iterate.
        start: Initial weights (d,); zero if left out.
        reduction: Which multiple of the squared error is the loss.

    Returns:
        A :class:`DescentPrediction`.

    Raises:
        ValueError: If values are not finite, shapes differ, or a step too large has left float range.

    Example:
        The data see the first weight only; the second stays where it was.

        >>> predict_descent([[1.0, 0.0]], [3.0], step=0.5, n_steps=1, start=[1.0, 7.0]).iterate.tolist()
        [2.0, 7.0]

    Lecture course, slides on gradient descent and the least norm.
    """
    X, y = labelled(X, y)
    begin = np.zeros(X.shape[1]) if start is None else vector("start", start, X.shape[1])
    scaled = number("step", step, 0.0, np.inf, closed=False) * gradient_factor(reduction, len(X))
    steps = count("n_steps", n_steps, 0)
    least = least_norm_solution(X, y)
    limit = descent_limit(X, y, begin)
    squares = scaled_squares(np.asarray(np.linalg.svd(X, compute_uv=False)[: least.rank], float), scaled)
    rate = float(np.abs(1 - squares).max()) if least.rank else 0.0
    bend = float(squares[0]) if least.rank else 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        iterate = descent_iterate(X, y, begin, scaled, steps)
    if not np.isfinite(iterate).all():
        raise ValueError(
            f"after {steps} steps the weights are beyond float range: a step below "
            f"{step * 2 / bend:.4g} is needed; got {step!r}."
        )
    return DescentPrediction(
        limit=limit,
        least_norm=least.x,
        iterate=iterate,
        hidden=limit - least.x,
        rank=least.rank,
        step_limit=step * 2 / bend if bend > 0 else float("inf"),
        rate=rate,
        residual=least.residual,
        converges=bend < 2,
    )
