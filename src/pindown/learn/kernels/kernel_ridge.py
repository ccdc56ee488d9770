r"""Kernel ridge regression whose leave-one-out errors cost one eigendecomposition.

For all penalties together.

.. math:: \alpha = (K + \rho I)^{-1}y, \qquad H = K(K + \rho I)^{-1}, \qquad
          y_i - f^{(-i)}(x_i) = \frac{y_i - f(x_i)}{1 - H_{ii}} = \frac{\alpha_i}{[(K + \rho
          I)^{-1}]_{ii}}.

With the mean of squares and :math:`\lambda\lVert f\rVert^2` the penalty is :math:`\rho = n\lambda`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.learn.kernels.gram_matrix import Kernel, gram, square
from pindown.validation import positive

_RANK = 1e-12  # eigenvalues below this share of the largest are rounding of zero
_NEGATIVE = 1e-10  # one this far below zero, as a share of the largest, is not
_OUTSIDE = 1e-8  # share of the values in directions of eigenvalue zero that is put down to rounding
_ALPHAS = tuple(float(a) for a in np.logspace(-6, 3, 19))


def leave_one_out_residuals(K: ArrayLike, y: ArrayLike, alpha: float) -> Array:
    """Return the error on each sample of the fit to all the others, without refitting.

    Args:
        K: Gram matrix (n, n).
        y: Targets (n,) or (n, m).
        alpha: Ridge penalty, added to the diagonal.

    Returns:
        Residuals, shaped like y.

    Example:
        With two orthogonal samples each says nothing about the other, so its prediction is zero:

        >>> leave_one_out_residuals([[1.0, 0.0], [0.0, 1.0]], [3.0, 5.0], 0.1).round(9).tolist()
        [3.0, 5.0]

    Lecture course, slides on kernel ridge regression; the shortcut is standard.
    """
    K = square(K)
    y = _targets(y, len(K))
    positive("alpha", alpha)
    inverse = np.linalg.inv(K + alpha * np.eye(len(K)))
    return np.asarray(((inverse @ y).T / inverse.diagonal()).T)


def effective_dimension(K: ArrayLike, alpha: float) -> float:
    r"""Return :math:`\operatorname{tr}K(K + \rho I)^{-1}`, how many directions ridge keeps.

    >>> effective_dimension([[3.0, 0.0], [0.0, 1.0]], 1.0)
    1.25
    """
    _, _, factors = spectral_filter(K, alpha)
    return float(factors.sum())


def spectral_filter(K: ArrayLike, alpha: float) -> tuple[Array, Array, Array]:
    r"""Return eigenvalues, eigenvectors and the share :math:`\lambda_i/(\lambda_i + \rho)` kept of each.

    >>> values, vectors, factors = spectral_filter([[3.0, 0.0], [0.0, 1.0]], 1.0)
    >>> factors.tolist()
    [0.5, 0.75]
    """
    positive("alpha", alpha)
    values, vectors = np.linalg.eigh(square(K))
    values = np.maximum(values, 0.0)
    return values, vectors, values / (values + alpha)


def norm_squared_from_values(K: ArrayLike, values: ArrayLike) -> float:
    r"""Return :math:`\sum_i(u_i^\top f)^2/\lambda_i`, the least squared norm for these values.

    Directions with a small eigenvalue are the expensive ones; values outside the range of K cost
    infinity.

    >>> norm_squared_from_values([[4.0, 0.0], [0.0, 1.0]], [2.0, 1.0])
    2.0
    """
    K = square(K)
    eigenvalues, vectors = np.linalg.eigh(K)
    largest = max(float(np.abs(eigenvalues).max()), np.finfo(float).tiny)
    if eigenvalues[0] < -_NEGATIVE * largest:
        raise ValueError(
            f"the matrix has the negative eigenvalue {eigenvalues[0]:.4g}: no kernel has it"
        )
    parts = vectors.T @ _targets(values, len(K))
    there = eigenvalues > _RANK * largest
    size = max(float(np.abs(parts).max()), np.finfo(float).tiny)
    if np.abs(parts[~there]).max(initial=0.0) > _OUTSIDE * size:
        return float("inf")
    return float((parts[there] ** 2 / eigenvalues[there]).sum())


class LeaveOneOutKernelRidge(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel ridge regression that chooses its penalty by the exact leave-one-out error.

    Args:
        alphas: Penalties to try.
        kernel: Name, kernel object or function of two sample matrices.
        gamma: For named kernels; None leaves scikit-learn's default.
        degree: For ``"poly"``.
        coef0: For ``"poly"`` and ``"sigmoid"``.

    Attributes:
        alpha_: The penalty chosen.
        loo_errors_: Mean squared leave-one-out error for each penalty.
        loo_residuals_: Leave-one-out residuals at the chosen penalty.
        effective_dimension_: Trace of the smoother.
        model_: The fitted :class:`sklearn.kernel_ridge.KernelRidge`.

    Example:
        >>> X = np.linspace(0, 6, 40)[:, None]
        >>> model = LeaveOneOutKernelRidge(kernel="rbf").fit(X, np.sin(X[:, 0]))
        >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 1e-3)
        True

    Lecture course, slides on kernel ridge regression.
    """

    def __init__(
        self,
        alphas: Any = _ALPHAS,
        *,
        kernel: Kernel = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1.0,
    ) -> None:
        self.alphas = alphas
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    def fit(self, X: Any, y: Any) -> LeaveOneOutKernelRidge:
        """Choose the penalty and fit."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        alphas = np.atleast_1d(np.asarray(self.alphas, dtype=np.float64))
        if not alphas.size or alphas.ndim != 1:
            raise ValueError(f"alphas must be a number or a list of at least one; got {self.alphas!r}")
        for alpha in alphas:
            positive("alphas", float(alpha))
        K = self._gram(X, X)
        targets = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        values, vectors = np.linalg.eigh((K + K.T) / 2)
        values, rotated, squares = np.maximum(values, 0.0), vectors.T @ targets, vectors**2
        residuals = [
            vectors @ (rotated / (values + a)[:, None]) / (squares @ (1 / (values + a)))[:, None]
            for a in alphas
        ]
        self.loo_errors_ = np.array([np.mean(r**2) for r in residuals])
        best = int(self.loo_errors_.argmin())
        self.alpha_ = float(alphas[best])
        self.loo_residuals_ = residuals[best].reshape(np.shape(y))
        self.effective_dimension_ = float((values / (values + self.alpha_)).sum())
        self.X_fit_ = X
        self.model_ = KernelRidge(alpha=self.alpha_, kernel="precomputed").fit(K, y)
        return self

    def predict(self, X: Any) -> Array:
        """Return the fitted function at samples."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(self.model_.predict(self._gram(X, self.X_fit_)))

    def _gram(self, X: Array, Z: Array) -> Array:
        if not isinstance(self.kernel, str):
            return gram(self.kernel, X, Z)
        return gram(self.kernel, X, Z, gamma=self.gamma, degree=self.degree, coef0=self.coef0)


def _targets(y: ArrayLike, n: int) -> Array:
    array = np.asarray(y, dtype=np.float64)
    if array.ndim not in (1, 2) or len(array) != n or not np.isfinite(array).all():
        raise ValueError(f"one finite target is needed for each of the {n} samples; got {array.shape}")
    return array
