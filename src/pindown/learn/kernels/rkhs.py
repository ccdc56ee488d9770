r"""Functions of a reproducing kernel Hilbert space: :math:`f = \sum_i c_i k(x_i, \cdot)`.

.. math:: \langle f, g\rangle = \sum_{ij}c_id_jk(x_i, z_j), \qquad \langle f, k_x\rangle = f(x), \qquad
          |f(x)| \le \lVert f\rVert\sqrt{k(x, x)}, \qquad |f(x) - f(z)| \le \lVert f\rVert\,d_k(x, z).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.kernels.gram_matrix import (
    Kernel,
    diagonal,
    gram,
    kernel_distance,
    samples,
    squared_distances,
)

# Singular values below this share of the largest are rounding in the system of a projection.
_RANK = 1e-12
_VALUE_ROUNDING = 1e-15  # relative, of one value of a kernel; sums add one for each term


@dataclass(frozen=True)
class KernelExpansion:
    """A function that is a weighted sum of kernels at centres.

    Attributes:
        kernel: Name, kernel object or function.
        centers: Samples (n, d).
        coefficients: Weights (n,).
        parameters: Parameters of a named kernel.

    Example:
        >>> f = KernelExpansion("linear", [[1.0], [2.0]], [1.0, 1.0])
        >>> f([[5.0]]).tolist(), f.norm
        ([15.0], 3.0)

    Lecture course, slides on reproducing kernel Hilbert spaces and on bounded point evaluation.
    """

    kernel: Kernel
    centers: Array = field(repr=False)
    coefficients: Array = field(repr=False)
    parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "centers", samples(self.centers, "centers"))
        coefficients = np.asarray(self.coefficients, dtype=np.float64)
        if coefficients.shape != (len(self.centers),) or not np.isfinite(coefficients).all():
            raise ValueError(
                f"one finite coefficient is needed for each of the {len(self.centers)} centres"
            )
        object.__setattr__(self, "coefficients", coefficients)

    def __call__(self, X: ArrayLike) -> Array:
        """Return the values at samples."""
        return gram(self.kernel, X, self.centers, **self.parameters) @ self.coefficients

    def __add__(self, other: KernelExpansion) -> KernelExpansion:
        self._same_space(other)
        return self._with(
            np.vstack([self.centers, other.centers]), np.r_[self.coefficients, other.coefficients]
        )

    def __sub__(self, other: KernelExpansion) -> KernelExpansion:
        return self + (-1.0) * other

    def __mul__(self, factor: float) -> KernelExpansion:
        return self._with(self.centers, factor * self.coefficients)

    __rmul__ = __mul__

    def inner(self, other: KernelExpansion) -> float:
        """Return the inner product of the space, which is not an integral over x."""
        self._same_space(other)
        K = gram(self.kernel, self.centers, other.centers, **self.parameters)
        return float(self.coefficients @ K @ other.coefficients)

    @property
    def norm(self) -> float:
        """The norm, the root of the inner product with itself."""
        return float(np.sqrt(max(0.0, self.inner(self))))

    def project(self, centers: ArrayLike) -> KernelExpansion:
        """Return the nearest expansion over other centres, the least that agrees with f there."""
        Z = samples(centers, "centers")
        K = gram(self.kernel, Z, **self.parameters)
        coefficients, *_ = np.linalg.lstsq(K, self(Z), rcond=_RANK)
        return self._with(Z, np.asarray(coefficients, dtype=np.float64))

    def largest(self, X: ArrayLike) -> Array:
        r"""Return the bound :math:`\lVert f\rVert\sqrt{k(x, x)}` of :math:`|f(x)|` for each sample."""
        heights = np.maximum(0.0, diagonal(self.kernel, X, **self.parameters))
        return self._norm_above() * np.sqrt(heights)

    def largest_change(self, X: ArrayLike, Z: ArrayLike) -> Array:
        r"""Return the bound :math:`\lVert f\rVert d_k(x, z)` of :math:`|f(x) - f(z)|` for all pairs."""
        squares, rounding = squared_distances(self.kernel, X, Z, **self.parameters)
        return self._norm_above() * np.sqrt(squares + rounding)

    def _norm_above(self) -> float:
        """Return the norm with the rounding of its sum added, which cancellation can make all of it."""
        K = np.abs(gram(self.kernel, self.centers, **self.parameters))
        terms = float(np.abs(self.coefficients) @ K @ np.abs(self.coefficients))
        rounding = _VALUE_ROUNDING * (len(self.centers) + 1) * terms
        return float(np.sqrt(max(0.0, self.inner(self)) + rounding))

    def _with(self, centers: Array, coefficients: Array) -> KernelExpansion:
        return KernelExpansion(self.kernel, centers, coefficients, self.parameters)

    def _same_space(self, other: KernelExpansion) -> None:
        if self.kernel != other.kernel or self.parameters != other.parameters:
            raise ValueError(f"functions of different spaces: {self.kernel!r} and {other.kernel!r}")


@dataclass(frozen=True)
class LipschitzReport:
    """How steep an expansion can be, in the kernel's distance and in Euclidean distance.

    Attributes:
        norm: Norm of the function, with the rounding of its sum added: its Lipschitz constant in the
            kernel's distance.
        observed: Largest ratio of a change to the kernel's distance, over the pairs of samples.
        euclidean: Lipschitz constant in Euclidean distance where one is known for the kernel, else None.
        observed_euclidean: Largest ratio over the pairs of samples.

    >>> print(LipschitzReport(2.0, 1.5, None, 1.2))
    Lipschitz constant 2 in the kernel's distance (proved), 1.5 seen; no Euclidean constant is known
    """

    norm: float
    observed: float
    euclidean: float | None
    observed_euclidean: float

    def __str__(self) -> str:
        tail = (
            "no Euclidean constant is known"
            if self.euclidean is None
            else f"{self.euclidean:.4g} in Euclidean distance, {self.observed_euclidean:.4g} seen"
        )
        head = f"Lipschitz constant {self.norm:.4g} in the kernel's distance (proved)"
        return f"{head}, {self.observed:.4g} seen; {tail}"


def lipschitz_report(f: KernelExpansion, X: ArrayLike) -> LipschitzReport:
    r"""Return what the norm of a function says about its steepness, beside what is seen on samples.

    For the Gaussian kernel :math:`d_k(x, z) \le \lVert x - z\rVert/\sigma` and for the linear one they
    are equal, so the norm bounds the Euclidean Lipschitz constant as well.

    Example:
        >>> f = KernelExpansion("linear", [[3.0, 4.0]], [1.0])
        >>> round(lipschitz_report(f, [[0.0, 0.0], [3.0, 4.0]]).euclidean, 9)
        5.0

    Lecture course, slides on the norm as a bound of smoothness.
    """
    X = samples(X)
    values = f(X)
    changes = np.abs(values[:, None] - values)
    apart = np.linalg.norm(X[:, None] - X, axis=2)
    distances = kernel_distance(f.kernel, X, **f.parameters)
    slope = _euclidean_slope(f.kernel, X.shape[1], f.parameters)
    norm = f._norm_above()
    return LipschitzReport(
        norm,
        _largest_ratio(changes, distances),
        None if slope is None else slope * norm,
        _largest_ratio(changes, apart),
    )


def _largest_ratio(changes: Array, distances: Array) -> float:
    # Distances whose square is all cancellation have no ratio.
    apart = distances > np.sqrt(np.finfo(float).eps) * max(float(distances.max()), np.finfo(float).tiny)
    return float((changes[apart] / distances[apart]).max(initial=0.0))


def _euclidean_slope(kernel: Kernel, d: int, parameters: dict[str, Any]) -> float | None:
    """Return the largest ratio of the kernel's distance to the Euclidean one, if known."""
    from sklearn.gaussian_process.kernels import RBF, Matern

    if isinstance(kernel, RBF) and not isinstance(kernel, Matern):
        return float(1.0 / np.min(kernel.length_scale))
    if kernel == "rbf":
        gamma = parameters.get("gamma")
        return float(np.sqrt(2 * (1.0 / d if gamma is None else gamma)))
    return 1.0 if kernel == "linear" else None
