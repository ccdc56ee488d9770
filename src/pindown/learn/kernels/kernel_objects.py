r"""Kernel objects that scikit-learn lacks: power series of inner products, and shift-invariant ones.

Power series, with the features that the series lists:

.. math:: \frac{1}{1 - \alpha^2\langle x, z\rangle} = \sum_{s\ge0}\alpha^{2s}\langle x, z\rangle^s,
          \qquad e^{-\lVert x - z\rVert^2/2\sigma^2} = e^{-\lVert u\rVert^2}e^{-\lVert
          v\rVert^2}\sum_{s\ge0} \frac{2^s}{s!}\langle u, v\rangle^s, \quad u =
          \tfrac{x}{\sigma\sqrt2},\ v = \tfrac{z}{\sigma\sqrt2}.

Shift-invariant kernels, Laplace with a height of one half and sinc, with their spectra:

.. math:: k(x, z) = \prod_j \varphi(x_j - z_j), \qquad \hat\varphi(\omega) = \int\varphi(t)e^{-i\omega
          t}dt, \qquad \lVert f\rVert_H^2 = \frac1{2\pi}\int\frac{|\hat
          f(\omega)|^2}{\hat\varphi(\omega)}\,d\omega .

The spectrum says which frequencies the kernel allows: those where it is small are expensive.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb, factorial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel, StationaryKernelMixin

from pindown.affine import Array
from pindown.learn.kernels.gram_matrix import samples
from pindown.learn.kernels.tuning import MAX_FEATURES
from pindown.validation import integer, positive, probability


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
        probability("alpha", self.alpha)
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
    sigma = positive("sigma", sigma)
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
    integer("the number of terms", n_terms)
    columns = comb(X.shape[1] + n_terms - 1, n_terms - 1)
    if columns > MAX_FEATURES:
        raise ValueError(f"{columns} features are too many; use fewer terms, or the kernel itself")
    return int(n_terms)


class _ProductKernel(StationaryKernelMixin, Kernel):  # type: ignore[misc]
    """A product over the features of one function of the difference, with one parameter."""

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False) -> Any:
        """Return the matrix of all pairs, and its derivative by the parameter's logarithm if wanted."""
        X = samples(X)
        if Y is not None and eval_gradient:
            raise ValueError("Gradient can only be evaluated when Y is None.")
        Z = X if Y is None else samples(Y, "Y")
        if X.shape[1] != Z.shape[1]:
            raise ValueError(f"samples have {X.shape[1]} and {Z.shape[1]} features")
        self._parameter()
        K = np.ones((len(X), len(Z)))
        for j in range(X.shape[1]):
            K *= self.profile(X[:, j, None] - Z[:, j])
        if not eval_gradient:
            return K
        if self.hyperparameters[0].fixed:
            return K, np.empty((*K.shape, 0))
        return K, self._gradient(X)[:, :, None]

    def diag(self, X: ArrayLike) -> Array:
        """Return k(x, x)."""
        X = samples(X)
        return np.full(len(X), float(self.profile(np.zeros(1))[0]) ** X.shape[1])

    def _gradient(self, X: Array) -> Array:
        total = np.zeros((len(X), len(X)))
        for j in range(X.shape[1]):  # the product rule, without dividing by factors that may be zero
            term = self._slope(X[:, j, None] - X[:, j])
            for other in range(X.shape[1]):
                if other != j:
                    term = term * self.profile(X[:, other, None] - X[:, other])
            total += term
        return total

    def profile(self, t: ArrayLike) -> Array:
        """Return the kernel as a function of a difference in one feature."""
        raise NotImplementedError

    def spectrum(self, omega: ArrayLike) -> Array:
        """Return the Fourier transform of the profile."""
        raise NotImplementedError

    def _slope(self, t: Array) -> Array:
        raise NotImplementedError

    def _parameter(self) -> float:
        name = self.hyperparameters[0].name
        return positive(name, getattr(self, name))

    def __repr__(self) -> str:
        name = self.hyperparameters[0].name
        return f"{type(self).__name__}({name}={getattr(self, name):.3g})"


class Laplace(_ProductKernel):
    r"""The Laplace kernel :math:`\prod_j\frac12e^{-\gamma|x_j - z_j|}`, with a Sobolev norm.

    .. math:: \hat\varphi(\omega) = \frac{\gamma}{\gamma^2 + \omega^2}, \qquad
              \lVert f\rVert_H^2 = \gamma\lVert f\rVert_{L_2}^2 + \lVert f'\rVert_{L_2}^2/\gamma
              \quad\text{(one feature)}.

    Args:
        gamma: Frequency at which the spectrum has fallen by half.
        gamma_bounds: Range for a search over gamma, or ``"fixed"``.

    Example:
        >>> Laplace(1.0)(np.array([0.0, np.log(2.0)])).tolist()
        [[0.5, 0.25], [0.25, 0.5]]

    ``laplacian_kernel`` of scikit-learn has no half; ``Matern(nu=0.5)`` measures several features by
    their Euclidean distance, which has another spectrum.

    Lecture course, slides on shift-invariant kernels.
    """

    def __init__(self, gamma: float = 1.0, gamma_bounds: Any = (1e-5, 1e5)) -> None:
        self.gamma = gamma
        self.gamma_bounds = gamma_bounds

    @property
    def hyperparameter_gamma(self) -> Hyperparameter:
        """The rate as a searchable parameter."""
        return Hyperparameter("gamma", "numeric", self.gamma_bounds)

    def profile(self, t: ArrayLike) -> Array:
        """Return half of ``exp(-gamma |t|)``."""
        return np.asarray(0.5 * np.exp(-self.gamma * np.abs(np.asarray(t, dtype=np.float64))))

    def spectrum(self, omega: ArrayLike) -> Array:
        """Return gamma / (gamma^2 + omega^2)."""
        return np.asarray(self.gamma / (self.gamma**2 + np.asarray(omega, dtype=np.float64) ** 2))

    def _slope(self, t: Array) -> Array:
        return -self.gamma * np.abs(t) * self.profile(t)


class Sinc(_ProductKernel):
    r"""The band-limiting kernel :math:`\prod_j\frac{\sin\Omega(x_j - z_j)}{\pi(x_j - z_j)}`.

    .. math:: \hat\varphi(\omega) = [\,|\omega| \le \Omega\,], \qquad \lVert f\rVert_H = \lVert
              f\rVert_{L_2}.

    Args:
        cutoff: The largest frequency, :math:`\Omega`, in radians per unit.
        cutoff_bounds: Range for a search over the cutoff, or ``"fixed"``.

    Example:
        >>> Sinc(np.pi)(np.array([0.0, 0.5, 1.0])).round(6).tolist()[0]
        [1.0, 0.63662, 0.0]

    Lecture course, slides on shift-invariant kernels.
    """

    def __init__(self, cutoff: float = 1.0, cutoff_bounds: Any = (1e-5, 1e5)) -> None:
        self.cutoff = cutoff
        self.cutoff_bounds = cutoff_bounds

    @property
    def hyperparameter_cutoff(self) -> Hyperparameter:
        """The largest frequency as a searchable parameter."""
        return Hyperparameter("cutoff", "numeric", self.cutoff_bounds)

    def profile(self, t: ArrayLike) -> Array:
        """Return sin(cutoff t) / (pi t), which is cutoff / pi at zero."""
        t = np.asarray(t, dtype=np.float64)
        return np.asarray(self.cutoff / np.pi * np.sinc(self.cutoff * t / np.pi))

    def spectrum(self, omega: ArrayLike) -> Array:
        """Return one up to the cutoff and zero beyond."""
        return (np.abs(np.asarray(omega, dtype=np.float64)) <= self.cutoff).astype(np.float64)

    def _slope(self, t: Array) -> Array:
        return np.asarray(self.cutoff / np.pi * np.cos(self.cutoff * t))
