r"""Penalties on the weights: what weight decay does to a minimum, and polynomials fitted under one.

Weight decay shrinks each eigendirection of the Hessian by its own factor,

.. math:: \hat J(w) = J(w^*) + \tfrac12(w - w^*)^\top H(w - w^*), \qquad
          \operatorname*{argmin}_w \hat J(w) + \tfrac\alpha2\lVert w\rVert^2
          = Q\,(\Lambda + \alpha I)^{-1}\Lambda\,Q^\top w^*.

The quadratic model :math:`\hat J` is the loss itself for a squared error and a linear model; for
networks it is an approximation, and the result says so. Polynomials in Chebyshev's :math:`T_k` on the
range of x are fitted under a penalty on the p-norm (p = 2 is ridge regression, p = 1 the lasso),

.. math:: \min_a\ \sum_i\Big(y_i - \sum_ka_kT_k(x_i)\Big)^2 + \lambda\lVert a\rVert_p^p.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.tuning import MAX_HESSIAN_PARAMETERS, STATIONARY_SHARE
from pindown.errors import ParameterError
from pindown.evidence import Kind
from pindown.validation import array, integer, labelled, number, positive, refuse, vector

# Eigenvalues above minus this share of the largest count as zero: rounding of a Hessian product.
_NEGATIVE = 1e-9
_ROUND = 1e-10  # |a| is smoothed to sqrt(a^2 + this^2) where 1 < p < 2 has a kink in its slope


@dataclass(frozen=True)
class WeightDecay:
    """What a penalty on the squared norm does to a minimiser.

    Attributes:
        predicted: The new minimiser.
        curvatures: Eigenvalues of the Hessian, smallest first.
        shrinkage: Factor in each eigendirection, in [0, 1].
        effective: Sum of the factors: how many parameters are left.
        penalty: The penalty alpha.
        kind: ``"exact"`` for a quadratic loss, ``"heuristic"`` for the quadratic model of another one.
        violated: Assumptions of the quadratic model that do not hold.
    """

    predicted: Array = field(repr=False)
    curvatures: Array = field(repr=False)
    shrinkage: Array = field(repr=False)
    effective: float
    penalty: float
    kind: Kind = "exact"
    violated: tuple[str, ...] = ()

    def __str__(self) -> str:
        note = f"; {', '.join(self.violated)}" if self.violated else ""
        return (
            f"penalty {self.penalty:.4g} leaves {self.effective:.4g} of {len(self.shrinkage)} "
            f"parameters ({self.kind}{note})"
        )


def weight_decay(hessian: ArrayLike, minimiser: ArrayLike, penalty: float) -> WeightDecay:
    r"""Return the minimiser of a quadratic loss with :math:`\frac\alpha2\lVert w\rVert^2` added.

    Args:
        hessian: Hessian (d, d), symmetric and positive semidefinite.
        minimiser: Minimiser (d,) without the penalty.
        penalty: The penalty alpha, zero or positive. With zero and a singular Hessian it is the limit of
            small penalties, which drops what lies in flat directions.

    Returns:
        A :class:`WeightDecay`.

    Raises:
        ValueError: If the matrix is not symmetric and positive semidefinite.

    Example:
        Curvatures 3 and 1, penalty 1: three quarters and a half are left.

        >>> weight_decay([[3.0, 0.0], [0.0, 1.0]], [4.0, 4.0], 1.0).predicted.round(9).tolist()
        [3.0, 2.0]

    Lecture course, slides on weight decay and the Hessian.
    """
    H = np.asarray(hessian, dtype=np.float64)
    if H.ndim != 2 or H.shape[0] != H.shape[1] or H.size == 0 or not np.isfinite(H).all():
        raise ValueError(f"hessian must be a finite square matrix; got shape {H.shape}.")
    w = vector("minimiser", minimiser, len(H))
    penalty = positive("penalty", penalty, zero=True)
    scale = float(np.abs(H).max())
    if float(np.abs(H - H.T).max()) > _NEGATIVE * scale:
        raise ValueError("hessian must be symmetric; give (H + H.T) / 2 if the difference is rounding.")
    values, Q = np.linalg.eigh((H + H.T) / 2)
    if values[0] < -_NEGATIVE * len(H) * max(scale, np.finfo(float).tiny):
        raise ValueError(
            f"hessian must be positive semidefinite, as at a minimum; its smallest eigenvalue is "
            f"{values[0]:.4g}."
        )
    values = np.where(values < np.finfo(float).eps * len(H) * scale, 0.0, values)
    with np.errstate(invalid="ignore"):
        shrinkage = np.where(values > 0, values / (values + penalty), 0.0)
    predicted = Q @ (shrinkage * (Q.T @ w))
    return WeightDecay(predicted, values, shrinkage, float(shrinkage.sum()), penalty)


def weight_decay_of_module(
    loss: Callable[[], Any], parameters: Iterable[Any], penalty: float
) -> WeightDecay:
    """Predict what weight decay does to a trained torch model, before it is trained again.

    The quadratic model of the loss at the present weights is used; ``predicted`` is the flat vector of
    the parameters in their order. Decay in the loss and decay of the weights are one thing for plain
    gradient descent only.

    Args:
        loss: Evaluates the loss without the penalty.
        parameters: The parameters that decay, a few thousand numbers at most.
        penalty: The penalty alpha; torch's ``weight_decay`` is the same number.

    Returns:
        A :class:`WeightDecay` of kind ``"heuristic"``, with what the quadratic model violates: a
        gradient that is not zero, or negative curvature (its directions are left as they are).

    Raises:
        ValueError: If there are too many parameters, or the loss is not one finite number.

    >>> import torch
    >>> w = torch.nn.Parameter(torch.tensor([2.0]))
    >>> weight_decay_of_module(lambda: ((w - 2) ** 2).sum() / 2, [w], penalty=1.0).predicted
    array([1.])

    Lecture course, slides on weight decay and the Hessian.
    """
    from pindown.extras import torch
    from pindown.optim.hessian import hessian_operator

    params = [p for p in parameters if p.requires_grad]
    size = sum(p.numel() for p in params)
    if size > MAX_HESSIAN_PARAMETERS:
        raise ValueError(
            f"the Hessian of {size} parameters is not written out, {MAX_HESSIAN_PARAMETERS} at most: "
            "pass the parameters of one layer."
        )
    H = np.asarray(hessian_operator(loss, params) @ np.eye(size))
    gradients = torch.autograd.grad(loss(), params, allow_unused=True)
    gradient = np.concatenate(
        [
            np.zeros(p.numel()) if g is None else g.double().numpy().ravel()
            for g, p in zip(gradients, params, strict=True)
        ]
    )
    w = np.concatenate([p.detach().double().numpy().ravel() for p in params])
    values, Q = np.linalg.eigh((H + H.T) / 2)
    scale = max(float(np.abs(values).max()), np.finfo(float).tiny)
    violated = []
    if np.linalg.norm(gradient) > STATIONARY_SHARE * np.linalg.norm(H @ w):
        violated.append(f"the gradient is not zero (norm {np.linalg.norm(gradient):.2g})")
    if values[0] < -_NEGATIVE * scale:
        violated.append(f"there is negative curvature ({values[0]:.2g}), left as it is")
    penalty = positive("penalty", penalty, zero=True)
    flat = np.where(np.abs(values) < np.finfo(float).eps * size * scale, 0.0, values)
    with np.errstate(invalid="ignore", divide="ignore"):
        shrinkage = np.where(flat > 0, flat / (flat + penalty), np.where(flat < 0, 1.0, 0.0))
    predicted = Q @ (shrinkage * (Q.T @ w))
    return WeightDecay(
        predicted, values, shrinkage, float(shrinkage.sum()), penalty, "heuristic", tuple(violated)
    )


@dataclass(frozen=True)
class PolynomialFit:
    """A penalised polynomial.

    Attributes:
        coefficients: Coefficients of the Chebyshev polynomials, constant first.
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
    y = array("y", y)
    x, y = vector("x", x, y.size), vector("y", y, y.size)
    if len(x) < 2 or x.min() == x.max():
        refuse("x", "at least two different points", x)
    degree = integer("degree", degree, least=0)
    p, penalty = number("p", p, 1.0), positive("penalty", penalty, zero=True)
    domain = (float(x.min()), float(x.max()))
    D = design(x, degree, domain)
    a = _coefficients(D, y, penalty, p)
    objective = float(np.sum((D @ a - y) ** 2) + penalty * np.sum(np.abs(a) ** p))
    return PolynomialFit(a, domain, objective, penalty, p)


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
    D, y = labelled(D, y)
    if D.shape[1] != 2:
        raise ParameterError(f"D must be a design (n, 2), of two coefficients; got {D.shape}.")
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
