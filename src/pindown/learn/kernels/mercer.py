r"""Mercer's expansion: the integral operator of a kernel, its eigenvalues and eigenfunctions.

.. math:: (T_kf)(x) = \int k(x, z)f(z)\,dz, \qquad k(x, z) = \sum_i\lambda_i\psi_i(x)\psi_i(z), \qquad
          \langle f, g\rangle_H = \sum_i\frac{f_ig_i}{\lambda_i},\quad f_i = \langle f,
          \psi_i\rangle_{L_2}.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.kernels.gram import Kernel, gram, samples

_RANK = 1e-12  # eigenvalues below this share of the largest are rounding: nothing may be divided by them


@dataclass(frozen=True)
class MercerSpectrum:
    """Leading eigenvalues and eigenfunctions of a kernel's integral operator, from a quadrature rule.

    Attributes:
        eigenvalues: Largest first (k,).
        at_points: Eigenfunctions at the points of the rule (n, k), orthonormal under its weights.
        points: Points of the rule.
        weights: Its weights.
        kernel: The kernel.
        parameters: Parameters of a named kernel.
    """

    eigenvalues: Array
    at_points: Array = field(repr=False)
    points: Array = field(repr=False)
    weights: Array = field(repr=False)
    kernel: Kernel = field(repr=False)
    parameters: dict[str, Any] = field(default_factory=dict, repr=False)

    def eigenfunctions(self, X: ArrayLike) -> Array:
        r"""Return :math:`\psi_i(x) = \lambda_i^{-1}\sum_jw_jk(x, x_j)\psi_i(x_j)` at samples (n, k)."""
        K = gram(self.kernel, X, self.points, **self.parameters)
        return np.asarray((K * self.weights) @ self.at_points / self.eigenvalues)

    def features(self, X: ArrayLike) -> Array:
        r"""Return the features :math:`\sqrt{\lambda_i}\psi_i(x)` of the truncated kernel."""
        return self.eigenfunctions(X) * np.sqrt(self.eigenvalues)

    def coefficients(self, values: ArrayLike) -> Array:
        r"""Return :math:`f_i = \langle f, \psi_i\rangle_{L_2}` of a function given at the points."""
        return self.at_points.T @ (self.weights * np.asarray(values, dtype=np.float64))

    def norm_squared(self, values: ArrayLike) -> float:
        r"""Return :math:`\sum_if_i^2/\lambda_i`, the squared norm of the part in these functions."""
        return float((self.coefficients(values) ** 2 / self.eigenvalues).sum())

    def apply(self, values: ArrayLike) -> Array:
        """Return the integral operator on a function given at the points.

        It smooths, it does not reproduce.
        """
        K = gram(self.kernel, self.points, **self.parameters)
        return K @ (self.weights * np.asarray(values, dtype=np.float64))

    def __str__(self) -> str:
        shown = ", ".join(f"{value:.4g}" for value in self.eigenvalues[:4])
        return (
            f"{len(self.eigenvalues)} eigenvalues: {shown}{', ...' if len(self.eigenvalues) > 4 else ''}"
        )


def mercer_spectrum(
    kernel: Kernel,
    points: ArrayLike,
    weights: ArrayLike | None = None,
    n_terms: int = 10,
    **parameters: Any,
) -> MercerSpectrum:
    r"""Return the leading part of a kernel's expansion, by a quadrature rule (Nystroem).

    Args:
        kernel: Name, kernel object or function.
        points: Points of the rule, or samples of the measure (n, d).
        weights: Positive weights of the rule; equal ones with sum one by default (the mean over
            samples).
        n_terms: Terms wanted; fewer if the kernel's rank is smaller.
        parameters: Parameters of a named kernel.

    Returns:
        A :class:`MercerSpectrum`.

    Raises:
        ValueError: If weights are not positive, shapes differ or no term is asked for.

    Example:
        The kernel min(s, t) on [0, 1] has the eigenvalues 4/(pi (2i - 1))^2:

        >>> t = (np.arange(500) + 0.5) / 500
        >>> mercer_spectrum(lambda A, B: np.minimum(A, B.T), t, n_terms=3).eigenvalues.round(4).tolist()
        [0.4053, 0.045, 0.0162]

    Lecture course, slides on Mercer's theorem (with the inner product of the space corrected).
    """
    X = samples(points, "points")
    w = np.full(len(X), 1.0 / len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (len(X),) or not (w > 0).all() or not np.isfinite(w).all():
        raise ValueError(f"weights must be {len(X)} positive numbers, one for each point")
    if isinstance(n_terms, bool) or not isinstance(n_terms, int | np.integer) or n_terms < 1:
        raise ValueError(f"n_terms must be a positive integer, got {n_terms!r}")
    from scipy.linalg import eigh

    root = np.sqrt(w)
    K = gram(kernel, X, **parameters)
    first = max(0, len(X) - int(n_terms))
    values, vectors = eigh(root[:, None] * (K + K.T) / 2 * root, subset_by_index=(first, len(X) - 1))
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > _RANK * max(float(values[0]), np.finfo(float).tiny)
    if not kept.any():
        raise ValueError("the kernel has no positive eigenvalue on these points")
    vectors = vectors[:, kept] * np.sign(
        vectors[np.abs(vectors[:, kept]).argmax(axis=0), np.flatnonzero(kept)]
    )
    return MercerSpectrum(values[kept], vectors / root[:, None], X, w, kernel, parameters)
