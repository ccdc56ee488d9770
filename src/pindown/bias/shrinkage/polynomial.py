r"""Polynomial regression with a penalty on the p-norm of the coefficients.

.. math:: \min_a\ \sum_i\Big(y_i - \sum_ka_kT_k(x_i)\Big)^2 + \lambda\lVert a\rVert_p^p

in Chebyshev polynomials :math:`T_k` on the range of x. p = 2 is ridge regression, p = 1 the lasso.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array

_ROUND = 1e-10  # |a| is smoothed to sqrt(a^2 + this^2) where 1 < p < 2 has a kink in its slope


@dataclass(frozen=True)
class PolynomialFit:
    """A penalised polynomial.

    Attributes:
        coefficients: In Chebyshev polynomials, constant first.
        domain: Range of x that is mapped to [-1, 1].
        objective: Sum of squares plus penalty.
        penalty: Factor of the penalty.
        p: Its power.
    """

    coefficients: Array
    domain: tuple[float, float]
    objective: float
    penalty: float
    p: float

    def __call__(self, x: ArrayLike) -> Array:
        """Return the polynomial's values."""
        return design(x, len(self.coefficients) - 1, self.domain) @ self.coefficients

    def __str__(self) -> str:
        nonzero = np.count_nonzero(np.abs(self.coefficients) > 1e-8)
        return f"degree {len(self.coefficients) - 1}, {nonzero} terms, objective {self.objective:.6g}"


def design(x: ArrayLike, degree: int, domain: tuple[float, float]) -> Array:
    """Return the Chebyshev polynomials up to a degree at points, the domain mapped to [-1, 1].

    >>> design([0.0, 2.0], 2, (0.0, 2.0)).tolist()
    [[1.0, -1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    low, high = domain
    scaled = (2 * np.asarray(x, dtype=np.float64) - low - high) / (high - low)
    return np.asarray(np.polynomial.chebyshev.chebvander(scaled, degree), dtype=np.float64)


def fit_polynomial(
    x: ArrayLike, y: ArrayLike, degree: int, penalty: float, p: float = 2.0
) -> PolynomialFit:
    """Fit a polynomial with a penalty on the p-norm of its coefficients, to the power p.

    Args:
        x: Points (n,), at least two different ones.
        y: Values (n,).
        degree: Degree.
        penalty: Factor of the penalty, zero or positive.
        p: Power, at least 1; 1 goes through scikit-learn's ``Lasso``, 2 through ``Ridge``.

    Returns:
        A :class:`PolynomialFit`.

    Raises:
        ValueError: If the points coincide, shapes differ, or p is below 1.

    Example:
        >>> fit_polynomial([-1.0, 0.0, 1.0], [1.0, 0.0, 1.0], 2, 0.0).coefficients.round(9).tolist()
        [0.5, 0.0, 0.5]

    Lecture course, slides on penalised polynomial regression. The slides do not raise the norm to the
    power p; for p = 2 the path of solutions is the same, at other factors.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError(
            f"x and y must be finite vectors of one length, got shapes {x.shape} and {y.shape}"
        )
    whole = isinstance(degree, int | np.integer) and not isinstance(degree, bool)
    if len(x) < 2 or x.min() == x.max() or not whole or degree < 0:
        raise ValueError(
            f"two different points and a whole degree of zero or more are needed, got {degree!r}"
        )
    if not (1 <= p < np.inf and 0 <= penalty < np.inf):
        raise ValueError(
            f"p must be finite, at least 1, and the penalty zero or positive, got {p!r} and {penalty!r}"
        )
    domain = (float(x.min()), float(x.max()))
    D = design(x, degree, domain)
    a = _coefficients(D, y, float(penalty), float(p))
    objective = float(np.sum((D @ a - y) ** 2) + penalty * np.sum(np.abs(a) ** p))
    return PolynomialFit(a, domain, objective, float(penalty), float(p))


def loss_surface(
    D: ArrayLike, y: ArrayLike, first: ArrayLike, second: ArrayLike, penalty: float, p: float
) -> Array:
    """Return the objective over a grid of two coefficients, for a contour plot.

    Args:
        D: Design (n, 2).
        y: Values (n,).
        first: Grid of the first coefficient.
        second: Grid of the second one.
        penalty: Factor of the penalty.
        p: Its power.

    Returns:
        Values (len(second), len(first)).

    Example:
        >>> loss_surface([[1.0, 0.0]], [1.0], [0.0, 1.0], [0.0], 0.5, 1).tolist()
        [[1.0, 0.5]]

    Lecture course, slides on penalised polynomial regression.
    """
    D, y = np.asarray(D, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if D.ndim != 2 or D.shape != (len(y), 2):
        raise ValueError(
            f"the surface is over two coefficients: a design (n, 2) is needed, got {D.shape}"
        )
    grid = np.stack(np.meshgrid(first, second), axis=-1).astype(np.float64)
    errors = np.sum((grid @ D.T - y) ** 2, axis=-1)
    return np.asarray(errors + penalty * np.sum(np.abs(grid) ** p, axis=-1))


def _coefficients(D: Array, y: Array, penalty: float, p: float) -> Array:
    if penalty == 0.0:
        return np.asarray(np.linalg.lstsq(D, y, rcond=None)[0], dtype=np.float64)
    if p == 2.0:
        from sklearn.linear_model import Ridge

        return np.asarray(Ridge(alpha=penalty, fit_intercept=False).fit(D, y).coef_)
    if p == 1.0:
        from sklearn.linear_model import Lasso

        # Lasso halves the mean of squares: its factor is ours over twice the number of points.
        lasso = Lasso(alpha=penalty / (2 * len(y)), fit_intercept=False, tol=1e-12, max_iter=200_000)
        return np.asarray(lasso.fit(D, y).coef_)
    from scipy.optimize import minimize

    def objective(a: Array) -> tuple[float, Array]:
        residual, size = D @ a - y, np.sqrt(a**2 + _ROUND**2)
        slope = 2 * D.T @ residual + penalty * p * a * size ** (p - 2)
        return float(residual @ residual + penalty * np.sum(size**p)), slope

    start = np.linalg.solve(D.T @ D + penalty * np.eye(D.shape[1]), D.T @ y)
    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-10}
    return np.asarray(minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x)
