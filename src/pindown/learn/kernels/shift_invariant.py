r"""Two shift-invariant kernels that scikit-learn lacks, with their spectra.

Laplace with a height of one half, and sinc.

.. math:: k(x, z) = \prod_j \varphi(x_j - z_j), \qquad \hat\varphi(\omega) = \int\varphi(t)e^{-i\omega
          t}dt, \qquad \lVert f\rVert_H^2 = \frac1{2\pi}\int\frac{|\hat
          f(\omega)|^2}{\hat\varphi(\omega)}\,d\omega .

The spectrum says which frequencies the kernel allows: those where it is small are expensive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel, StationaryKernelMixin

from pindown.affine import Array
from pindown.learn.kernels.gram import samples


class _ProductKernel(StationaryKernelMixin, Kernel):  # type: ignore[misc]
    """A product over the features of one function of the difference, with one parameter."""

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False) -> Any:
        """Return the matrix of all pairs.

        And its derivative by the logarithm of the parameter if wanted.
        """
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
        value = getattr(self, name)
        if not 0 < value < np.inf:
            raise ValueError(f"{name} must be a positive number, got {value!r}")
        return float(value)

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
