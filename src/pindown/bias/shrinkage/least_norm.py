r"""Which solution of a linear system gradient descent finds: the nearest to its start.

.. math:: x_{k+1} = x_k - \mu A^\top(Ax_k - b), \qquad x_\infty = V_2V_2^\top x_0 + A^+b, \qquad 0 < \mu
          < 2/\sigma_{\max}^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array

_RANK = 1e-12  # singular values below this share of the largest are zero


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
    x, _, rank, _ = np.linalg.lstsq(A, y, rcond=_RANK)
    return LeastNorm(np.asarray(x, dtype=np.float64), int(rank), float(np.linalg.norm(A @ x - y)))


def null_projector(A: ArrayLike) -> Array:
    """Return the orthogonal projector on the null space of a matrix.

    >>> null_projector([[1.0, 0.0]]).round(12).tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """
    _, V = _right_vectors(_matrix(A))
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
    return null_projector(A) @ _start(start, A.shape[1]) + least_norm_solution(A, b).x


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
    if isinstance(n_steps, bool) or not isinstance(n_steps, int | np.integer) or n_steps < 0:
        raise ValueError(f"n_steps must be a whole number, zero or positive, got {n_steps!r}")
    given: object = step
    if not isinstance(given, Real) or not np.isfinite(step):
        raise ValueError(f"step must be a finite number, got {step!r}")
    A, b = _system(A, b)
    start = _start(start, A.shape[1])
    singular, V = _right_vectors(A)
    limit = descent_limit(A, b, start)
    shrunk = (1 - step * singular**2) ** n_steps
    return np.asarray(limit + V.T @ (shrunk * (V @ (start - limit))))


def largest_step(A: ArrayLike) -> float:
    r"""Return :math:`2/\sigma_{\max}^2`: gradient descent converges for smaller steps only.

    >>> largest_step([[2.0, 0.0], [0.0, 1.0]])
    0.5
    """
    size = np.float64(np.linalg.norm(_matrix(A), 2))
    with np.errstate(over="ignore", divide="ignore", under="ignore"):
        return float(2.0 / size / size)  # infinite for a matrix of zeros, and past the largest float


def _right_vectors(A: Array) -> tuple[Array, Array]:
    _, singular, V = np.linalg.svd(A, full_matrices=False)
    kept = singular > _RANK * max(float(singular[0]), np.finfo(float).tiny)
    return singular[kept], V[kept]


def _matrix(A: ArrayLike) -> Array:
    A = np.asarray(A, dtype=np.float64)
    if A.ndim != 2 or A.size == 0 or not np.isfinite(A).all():
        raise ValueError(
            f"A must be a finite matrix with at least one row and column, got shape {A.shape}"
        )
    return A


def _start(start: ArrayLike, n: int) -> Array:
    x = np.asarray(start, dtype=np.float64)
    if x.shape != (n,) or not np.isfinite(x).all():
        raise ValueError(f"the start must be {n} finite numbers, got shape {x.shape}")
    return x


def _system(A: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    A, y = _matrix(A), np.asarray(y, dtype=np.float64)
    if y.shape != (len(A),) or not np.isfinite(y).all():
        raise ValueError(f"the right-hand side must be {len(A)} finite numbers, got shape {y.shape}")
    return A, y
