r"""Kernels that are power series of inner products, with the features that the series lists.

.. math:: \frac{1}{1 - \alpha^2\langle x, z\rangle} = \sum_{s\ge0}\alpha^{2s}\langle x, z\rangle^s,
          \qquad e^{-\lVert x - z\rVert^2/2\sigma^2} = e^{-\lVert u\rVert^2}e^{-\lVert
          v\rVert^2}\sum_{s\ge0} \frac{2^s}{s!}\langle u, v\rangle^s, \quad u =
          \tfrac{x}{\sigma\sqrt2},\ v = \tfrac{z}{\sigma\sqrt2}.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from pindown.affine import Array
from pindown.learn.kernels.gram import samples

_MOST_FEATURES = (
    200_000  # columns of an explicit feature map; beyond this memory runs out before patience
)


class GeometricSeries(Kernel):  # type: ignore[misc]
    r"""The geometric-series (Szegő) kernel :math:`1/(1 - \alpha^2\langle x, z\rangle)` on the unit ball.

    Args:
        alpha: Ratio, between 0 and 1.
        alpha_bounds: Range for a search over alpha, or ``"fixed"``.

    Example:
        >>> GeometricSeries(0.5)(np.array([[1.0], [0.0]])).round(6).tolist()
        [[1.333333, 1.0], [1.0, 1.0]]

    It has every degree at once, each weighted by a power of alpha; the polynomial kernel
    :math:`(\langle x, z\rangle + c)^p` is another one. All samples must lie in the unit ball.

    Lecture course, slides on kernels (there under the name of the polynomial kernel).
    """

    def __init__(self, alpha: float = 0.5, alpha_bounds: Any = (1e-3, 0.999)) -> None:
        self.alpha = alpha
        self.alpha_bounds = alpha_bounds

    @property
    def hyperparameter_alpha(self) -> Hyperparameter:
        """The ratio as a searchable parameter."""
        return Hyperparameter("alpha", "numeric", self.alpha_bounds)

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False) -> Any:
        """Return the matrix of all pairs, and its derivative by the logarithm of alpha if wanted."""
        X = self._checked(X)
        if Y is not None and eval_gradient:
            raise ValueError("Gradient can only be evaluated when Y is None.")
        inner = X @ (X if Y is None else self._checked(Y)).T
        K = 1.0 / (1.0 - self.alpha**2 * inner)
        if not eval_gradient:
            return K
        if self.hyperparameter_alpha.fixed:
            return K, np.empty((*K.shape, 0))
        return K, (2 * self.alpha**2 * inner * K**2)[:, :, None]

    def diag(self, X: ArrayLike) -> Array:
        """Return k(x, x)."""
        X = self._checked(X)
        return np.asarray(1.0 / (1.0 - self.alpha**2 * np.einsum("ij,ij->i", X, X)))

    def is_stationary(self) -> bool:
        """Say that the kernel depends on more than differences."""
        return False

    def __repr__(self) -> str:
        return f"GeometricSeries(alpha={self.alpha:.3g})"

    def _checked(self, X: ArrayLike) -> Array:
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha must lie between 0 and 1, got {self.alpha!r}")
        X = samples(X)
        longest = float(np.sqrt(np.einsum("ij,ij->i", X, X).max()))
        if longest * self.alpha >= 1 - 1e-12:
            raise ValueError(
                f"the series diverges: a sample has length {longest:.4g}, scale samples to 1 or less"
            )
        return X


def geometric_features(X: ArrayLike, alpha: float, n_terms: int) -> Array:
    r"""Return the first features :math:`(\alpha^s\Phi^s(x))_{s < S}` of the geometric-series kernel.

    Their inner products miss the kernel by exactly :math:`q^S/(1 - q)`,
    :math:`q = \alpha^2\langle x, z\rangle`.

    Example:
        >>> geometric_features([0.5], 0.8, 3).round(6).tolist()
        [[1.0, 0.4, 0.16]]

    Lecture course, slides on kernels.
    """
    X = samples(X)
    return np.hstack([alpha**s * monomials(X, s) for s in range(_terms(X, n_terms))])


def gaussian_power_features(X: ArrayLike, sigma: float, degree: int) -> Array:
    r"""Return the features of the Gaussian kernel up to a degree.

    .. math:: \varphi(x) = e^{-\lVert u\rVert^2}\big(\sqrt{2^s/s!}\,\Phi^s(u)\big)_{0 \le s \le N}, \quad
              u = x/(\sigma\sqrt2)

    Their inner products miss the kernel by at most
    :math:`e^{-\lVert u\rVert^2-\lVert v\rVert^2}\sum_{s>N}(2|\langle u, v\rangle|)^s/s!`.

    Example:
        >>> F = gaussian_power_features([0.3, -0.2], 1.0, 10)
        >>> bool(abs(F[0] @ F[1] - np.exp(-0.5**2 / 2)) < 1e-12)
        True

    Lecture course, slides on the Gaussian kernel (with its missing weights and constant feature).
    """
    if not sigma > 0:
        raise ValueError(f"sigma must be positive, got {sigma!r}")
    U = samples(X) / (sigma * np.sqrt(2.0))
    blocks = [np.sqrt(2.0**s / factorial(s)) * monomials(U, s) for s in range(_terms(U, degree + 1))]
    return np.exp(-np.einsum("ij,ij->i", U, U))[:, None] * np.hstack(blocks)


def monomials(X: ArrayLike, degree: int) -> Array:
    r"""Return the weighted monomials of a degree, whose inner products are powers.

    .. math:: \langle\Phi^s(x), \Phi^s(z)\rangle = \langle x, z\rangle^s

    Each is weighted by the root of its multinomial coefficient.

    Example:
        >>> monomials([[1.0, 2.0]], 2).round(6).tolist()
        [[1.0, 2.828427, 4.0]]

    Lecture course, slides on feature maps.
    """
    X = samples(X)
    d = X.shape[1]
    columns = []
    for chosen in combinations_with_replacement(range(d), degree):
        counts = np.bincount(chosen, minlength=d) if chosen else np.zeros(d, dtype=int)
        weight = factorial(degree) / np.prod([float(factorial(c)) for c in counts])
        columns.append(np.sqrt(weight) * np.prod(X**counts, axis=1))
    return np.stack(columns, axis=1)


def _terms(X: Array, n_terms: int) -> int:
    from math import comb

    if isinstance(n_terms, bool) or not isinstance(n_terms, int | np.integer) or n_terms < 1:
        raise ValueError(f"the number of terms must be a positive integer, got {n_terms!r}")
    columns = comb(X.shape[1] + n_terms - 1, n_terms - 1)
    if columns > _MOST_FEATURES:
        raise ValueError(f"{columns} features are too many; use fewer terms, or the kernel itself")
    return int(n_terms)
