"""Smooth functions with the constants that convergence theorems ask for: exact where known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.validation import integer, positive

# The largest |d/dx| of x^2 / (1 + x^2) is at x = 1 / sqrt 3.
_WELL_SLOPE = 9 / (8 * math.sqrt(3))
_POWER_STEPS = 30  # the growth of a power iteration is settled to a few percent long before
_DIFFERENCE = 1e-5  # near the cube root of a rounding error: best for central differences


@dataclass(frozen=True)
class Constants:
    r"""What the theorems know of a function.

    Attributes:
        smoothness: L, with :math:`\|\nabla f(x) - \nabla f(y)\| \le L \|x - y\|`.
        gradient_bound: :math:`\sigma`, an upper bound on :math:`\|\nabla f\|`.
        lower: A lower bound on f (its minimum where that is known).
        upper: An upper bound on f; infinite if there is none.
        kind: Whether they are proved or estimated from samples.
    """

    smoothness: float
    gradient_bound: float
    lower: float = 0.0
    upper: float = math.inf
    kind: Kind = "exact"

    def __post_init__(self) -> None:
        for name in ("smoothness", "gradient_bound"):
            positive(name, getattr(self, name))
        if not self.lower < self.upper:
            raise ValueError(f"lower must be below upper; got {self.lower!r} and {self.upper!r}.")


@dataclass(frozen=True)
class Problem:
    """A function of d variables to minimise.

    Attributes:
        name: How it prints.
        dimension: d.
        value: The function.
        gradient: Its gradient.
        constants: What is known of it.
        terms: For a mean of k functions, their gradients at a point, shape (k, d); else None.
    """

    name: str
    dimension: int
    value: Callable[[Array], float]
    gradient: Callable[[Array], Array]
    constants: Constants
    terms: Callable[[Array], Array] | None = None

    def __str__(self) -> str:
        c = self.constants
        return (
            f"{self.name} in {self.dimension} variables: L = {c.smoothness:.4g}, gradients up to "
            f"{c.gradient_bound:.4g} ({c.kind})"
        )


def log_cosh(dimension: int, *, scale: float = 1.0) -> Problem:
    r"""Return :math:`s \sum_i \log\cosh x_i`: convex, L = s, gradients below :math:`s \sqrt d`.

    >>> print(log_cosh(4, scale=2.0))
    log cosh in 4 variables: L = 2, gradients up to 4 (exact)
    """
    integer("dimension", dimension)
    positive("scale", scale)
    constants = Constants(scale, scale * math.sqrt(dimension))
    return Problem(
        "log cosh",
        dimension,
        # log cosh x = |x| + log(1 + exp(-2 |x|)) - log 2 does not overflow
        lambda x: scale * float(np.sum(np.abs(x) + np.log1p(np.exp(-2 * np.abs(x))) - math.log(2))),
        lambda x: scale * np.tanh(x),
        constants,
    )


def bounded_well(dimension: int, *, scale: float = 1.0) -> Problem:
    r"""Return :math:`s \sum_i x_i^2 / (1 + x_i^2)`: not convex, between 0 and s d, L = 2 s.

    >>> bounded_well(3).constants.upper
    3.0
    """
    integer("dimension", dimension)
    positive("scale", scale)
    bound = scale * math.sqrt(dimension) * _WELL_SLOPE
    constants = Constants(2 * scale, bound, 0.0, scale * dimension)
    return Problem(
        "x^2 / (1 + x^2)",
        dimension,
        lambda x: scale * float(np.sum(x**2 / (1 + x**2))),
        lambda x: scale * 2 * x / (1 + x**2) ** 2,
        constants,
    )


def finite_sum(coefficients: ArrayLike, *, convex: bool = True) -> Problem:
    r"""Return the mean of :math:`f_p(x) = \sum_i c_{pi}\, \phi(x_i)` with gradients of common signs.

    :math:`\phi` is log cosh, or :math:`x^2 / (1 + x^2)` if not ``convex``. Since all coefficients are
    positive, the gradients of all terms lie in one orthant at every point. Then ``gradient_bound``
    bounds the gradient of every single term.

    Args:
        coefficients: c, shape (k, d), positive.
        convex: Which function of one variable.

    Raises:
        ValueError: If a coefficient is not positive.

    Example:
        >>> problem = finite_sum([[1.0, 2.0], [3.0, 2.0]])
        >>> problem.constants.smoothness  # the largest of the mean coefficients 2 and 2
        2.0
    """
    C = np.array(coefficients, dtype=float)
    if C.ndim != 2 or C.size == 0 or not np.all(np.isfinite(C)) or not np.all(C > 0):
        raise ValueError(f"coefficients must be a table of positive numbers; got shape {C.shape}.")
    one = log_cosh(1) if convex else bounded_well(1)
    mean, d = C.mean(axis=0), C.shape[1]
    rows = float(np.linalg.norm(C, axis=1).max())
    constants = Constants(
        one.constants.smoothness * float(mean.max()),
        one.constants.gradient_bound * rows,
        0.0,
        one.constants.upper * float(mean.sum()),
    )

    def slope(x: Array) -> Array:
        return one.gradient(x)

    return Problem(
        f"mean of {len(C)} functions",
        d,
        lambda x: float(sum(m * one.value(x[i : i + 1]) for i, m in enumerate(mean))),
        lambda x: mean * slope(x),
        constants,
        lambda x: C * slope(x),
    )


def estimate_constants(
    gradient: Callable[[Array], Array],
    points: ArrayLike,
    *,
    lower: float = 0.0,
    upper: float = math.inf,
    seed: int = 0,
) -> Constants:
    r"""Estimate L and :math:`\sigma` from a sample of points: what the theorems need, not proved.

    At each point, power iteration on central differences of the gradient finds the largest absolute
    eigenvalue of the Hessian. Both numbers are lower bounds on the true ones.

    Args:
        gradient: The gradient of the function.
        points: Where to look, shape (n, d).
        lower: A lower bound on the function.
        upper: An upper bound on the function.
        seed: Seed of the random starts.

    Raises:
        ValueError: If there are no points, or a gradient is not finite.

    Example:
        >>> found = estimate_constants(lambda x: np.array([1.0, 3.0]) * x, [[1.0, 0.0], [0.0, 1.0]])
        >>> round(found.smoothness, 6), found.gradient_bound, found.kind
        (3.0, 3.0, 'estimate')
    """
    X = np.atleast_2d(np.asarray(points, dtype=float))
    if X.ndim != 2 or X.size == 0:
        raise ValueError(f"points must be a table with at least one row; got shape {X.shape}.")
    rng = np.random.default_rng(seed)
    slopes = [float(np.linalg.norm(gradient(x))) for x in X]
    curvatures = [_curvature(gradient, x, rng) for x in X]
    found = max(curvatures), max(slopes)
    if not all(math.isfinite(v) and v > 0 for v in found):
        raise ValueError(f"gradients at the points give L = {found[0]!r} and sigma = {found[1]!r}.")
    return Constants(*found, lower, upper, "estimate")


def _curvature(gradient: Callable[[Array], Array], x: Array, rng: np.random.Generator) -> float:
    v, size = rng.normal(size=x.shape), 0.0
    step = _DIFFERENCE * max(1.0, float(np.linalg.norm(x)))
    for _ in range(_POWER_STEPS):
        v /= np.linalg.norm(v)
        v = (gradient(x + step * v) - gradient(x - step * v)) / (2 * step)
        size = float(np.linalg.norm(v))
        if not size > 0:
            break
    return size
