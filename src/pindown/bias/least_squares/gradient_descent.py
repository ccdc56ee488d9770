r"""Which least-squares solution gradient descent chooses, and where it is after any number of steps.

.. math:: w_{k+1} = w_k - \mu X^\top(Xw_k - y), \qquad w_\infty = \Pi_{\ker X}\,w_0 + X^+y, \qquad
          w_k = w_\infty + V(I - \mu\Sigma^2)^kV^\top(w_0 - w_\infty),
          \qquad 0 < \mu < 2/\sigma_{\max}^2.

The part of the start that the data do not see never moves: among all minimisers the limit is the
nearest to the start, and from zero it is the one of least norm, :math:`X^+y`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.tuning import RANK_TOLERANCE
from pindown.evidence import Kind
from pindown.validation import choice, integer, labelled, number, positive, table, vector

Reduction: TypeAlias = Literal["mean", "sum", "half_sum", "half_mean"]


@dataclass(frozen=True)
class LeastNorm:
    """The least-squares solution of least norm.

    Attributes:
        x: The solution.
        rank: Rank of the matrix.
        residual: Norm of A x - y; zero if the equations can be solved.
    """

    x: Array
    rank: int
    residual: float

    def __str__(self) -> str:
        return f"norm {np.linalg.norm(self.x):.6g}, rank {self.rank}, residual {self.residual:.2g}"


def least_norm_solution(A: ArrayLike, y: ArrayLike) -> LeastNorm:
    r"""Return :math:`A^+y`, which is :math:`A^\top(AA^\top)^{-1}y` for fewer equations than unknowns.

    Every other solution x satisfies
    :math:`\lVert x\rVert^2 = \lVert A^+y\rVert^2 + \lVert x - A^+y\rVert^2`.

    Example:
        >>> least_norm_solution([[1.0, 1.0]], [2.0]).x.round(12).tolist()
        [1.0, 1.0]

    Lecture course, slides on the least-norm solution (few equations, many unknowns).
    """
    A, y = _system(A, y)
    x, _, rank, _ = np.linalg.lstsq(A, y, rcond=RANK_TOLERANCE)
    return LeastNorm(np.asarray(x, dtype=np.float64), int(rank), float(np.linalg.norm(A @ x - y)))


def null_projector(A: ArrayLike) -> Array:
    """Return the orthogonal projector on the null space of a matrix.

    >>> null_projector([[1.0, 0.0]]).round(12).tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """
    _, V = _right_vectors(table(A, "A"))
    return np.eye(V.shape[1]) - V.T @ V


def descent_limit(A: ArrayLike, b: ArrayLike, start: ArrayLike) -> Array:
    """Return where gradient descent on half the squared residual ends, for any step size that converges.

    Args:
        A: Matrix (m, n) of any rank.
        b: Right-hand side (m,).
        start: Starting point (n,); its part in the null space of A never moves.

    Returns:
        The limit (n,).

    Example:
        >>> descent_limit([[1.0, 0.0]], [3.0], [5.0, 7.0]).round(12).tolist()
        [3.0, 7.0]

    Lecture course, slides on gradient descent and the least norm.
    """
    A, b = _system(A, b)
    return null_projector(A) @ vector("start", start, A.shape[1]) + least_norm_solution(A, b).x


def descent_iterate(A: ArrayLike, b: ArrayLike, start: ArrayLike, step: float, n_steps: int) -> Array:
    r"""Return the iterate after some steps in closed form.

    By :math:`(I - \mu\Sigma^2)^k` in singular coordinates.

    Args:
        A: Matrix (m, n).
        b: Right-hand side (m,).
        start: Starting point (n,).
        step: Step size.
        n_steps: Number of steps.

    Returns:
        The iterate (n,).

    Raises:
        ValueError: If the number of steps is negative.

    Example:
        >>> descent_iterate([[1.0]], [1.0], [0.0], 0.5, 2).tolist()
        [0.75]

    Lecture course, slides on gradient descent and the least norm.
    """
    n_steps, step = integer("n_steps", n_steps, least=0), number("step", step)
    A, b = _system(A, b)
    start = vector("start", start, A.shape[1])
    singular, V = _right_vectors(A)
    limit = descent_limit(A, b, start)
    shrunk = (1 - step * singular**2) ** n_steps
    return np.asarray(limit + V.T @ (shrunk * (V @ (start - limit))))


def largest_step(A: ArrayLike) -> float:
    r"""Return :math:`2/\sigma_{\max}^2`: gradient descent converges for smaller steps only.

    >>> largest_step([[2.0, 0.0], [0.0, 1.0]])
    0.5
    """
    size = np.float64(np.linalg.norm(table(A, "A"), 2))
    with np.errstate(over="ignore", divide="ignore", under="ignore"):
        return float(2.0 / size / size)  # infinite for a matrix of zeros, and past the largest float


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
    kind: Kind = "exact"

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

    Lecture course, slides on gradient descent and the least norm, its implicit bias.
    """
    X, y = labelled(X, y)
    begin = np.zeros(X.shape[1]) if start is None else vector("start", start, X.shape[1])
    scaled = positive("step", step) * gradient_factor(reduction, len(X))
    steps = integer("n_steps", n_steps, least=0)
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


def gradient_factor(reduction: str, n: int) -> float:
    r"""Return c where the loss's gradient is :math:`c X^\top(Xw - y)`.

    >>> [gradient_factor(r, 4) for r in ("half_sum", "sum", "mean", "half_mean")]
    [1.0, 2.0, 0.5, 0.25]
    """
    factors = {"half_sum": 1.0, "sum": 2.0, "mean": 2.0 / n, "half_mean": 1.0 / n}
    return factors[choice("reduction", reduction, factors)]


def scaled_squares(values: Array, factor: float) -> Array:
    """Return factor times squares, refusing what leaves the floats.

    >>> scaled_squares(np.array([3.0]), 2.0).tolist()
    [18.0]
    """
    with np.errstate(over="ignore", under="ignore"):
        found = factor * values**2
    if not np.isfinite(found).all() or (found[values > 0] < np.finfo(float).tiny).any():
        raise ValueError(
            f"X must be scaled: squares of its singular values, up to {values.max():.2g}, leave the "
            "range of floats; divide it by its largest entry."
        )
    return np.asarray(found)


def _right_vectors(A: Array) -> tuple[Array, Array]:
    _, singular, V = np.linalg.svd(A, full_matrices=False)
    kept = singular > RANK_TOLERANCE * max(float(singular[0]), np.finfo(float).tiny)
    return singular[kept], V[kept]


def _system(A: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    matrix = table(A, "A")
    return matrix, vector("the right-hand side", y, len(matrix))
