r"""What a shift-invariant kernel does to each frequency: its spectrum, its norm and its smoothness.

.. math:: \lVert f\rVert_H^2 = \frac1{2\pi}\int\frac{|\hat f(\omega)|^2}{\hat\varphi(\omega)}\,d\omega

Ridge regression with the kernel multiplies frequency :math:`\omega` by
:math:`\hat\varphi(\omega)/(\hat\varphi(\omega) + \lambda)`: a low-pass filter.

Lecture course, slides on shift-invariant kernels.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.extras import require
from pindown.validation import positive

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Share of a function's energy outside a kernel's band that is put down to sampling.
_LEAK = 1e-10
# Energies below this share of the largest are within reach of rounding; their terms must not matter.
_FAINT = 1e-24
_FADED = 1e-6


def spectrum(kernel: Any, omega: ArrayLike) -> Array:
    r"""Return the Fourier transform :math:`\hat\varphi(\omega)` of a shift-invariant kernel.

    Args:
        kernel: ``Laplace`` or ``Sinc`` of this package, ``RBF`` or ``Matern`` of scikit-learn, a
            positive multiple (``ConstantKernel(c) * kernel``) or a sum of such.
        omega: Angular frequencies.

    Returns:
        The transform at each frequency.

    Raises:
        TypeError: If no closed form is known.

    Example:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> float(round(spectrum(RBF(1.0), 0.0)[()], 6)), round(float(np.sqrt(2 * np.pi)), 6)
        (2.506628, 2.506628)

    Lecture course, slides on shift-invariant kernels (with the constant of the Gaussian).
    """
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, Product, Sum

    omega = np.asarray(omega, dtype=np.float64)
    if hasattr(kernel, "spectrum"):
        return np.asarray(kernel.spectrum(omega))
    if isinstance(kernel, Matern):
        return _matern(kernel.nu, _length(kernel), omega)
    if isinstance(kernel, RBF):
        sigma = _length(kernel)
        return np.asarray(sigma * np.sqrt(2 * np.pi) * np.exp(-((sigma * omega) ** 2) / 2))
    if isinstance(kernel, Sum):
        return spectrum(kernel.k1, omega) + spectrum(kernel.k2, omega)
    if isinstance(kernel, Product):
        for factor, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if isinstance(factor, ConstantKernel):
                return factor.constant_value * spectrum(other, omega)
    raise TypeError(
        f"no spectrum is known for {kernel!r}; Laplace, Sinc, RBF, Matern, multiples and sums have one"
    )


def spectral_norm_squared(kernel: Any, values: ArrayLike, grid: ArrayLike) -> float:
    r"""Return :math:`\lVert f\rVert_H^2` of a function from its values on an even grid, by its spectrum.

    The function should fade at both ends of the grid, and the grid be fine enough for its frequencies.

    Args:
        kernel: A kernel that :func:`spectrum` knows.
        values: Values of the function.
        grid: Evenly spaced points.

    Returns:
        The squared norm; infinite if the kernel does not allow a frequency that the function has. A
        warning says where only rounding ends the sum, so that the norm is larger or infinite.

    Raises:
        ValueError: If the grid is not even, or shapes differ.

    Example:
        >>> from pindown.learn.kernels import Sinc
        >>> t = np.linspace(-20, 20, 2001)
        >>> f = np.exp(-t**2 / 2)
        >>> float(round(spectral_norm_squared(Sinc(10.0), f, t), 6)), round(float(np.sqrt(np.pi)), 6)
        (1.772454, 1.772454)

    Lecture course, slides on the norm as a penalty on frequencies.
    """
    values, grid = np.asarray(values, dtype=np.float64), np.asarray(grid, dtype=np.float64)
    if values.shape != grid.shape or grid.ndim != 1 or len(grid) < 2:
        raise ValueError(
            f"values and grid must be vectors of one length; got {values.shape} and {grid.shape}"
        )
    step = (grid[-1] - grid[0]) / (len(grid) - 1)
    if not np.isfinite(values).all():
        raise ValueError("the values must be finite; got NaN or infinity")
    if not step > 0 or not np.allclose(np.diff(grid), step, rtol=1e-6):
        raise ValueError("the grid must be evenly spaced and increasing")
    energy = np.abs(np.fft.fft(values)) ** 2 * step / len(grid)  # sums to the squared L2 norm
    phi = spectrum(kernel, 2 * np.pi * np.fft.fftfreq(len(grid), step))
    # Below rounding of the transform there is nothing to divide.
    present = energy > np.finfo(float).eps ** 2 * len(grid) * energy.sum()
    if energy[present & (phi == 0)].sum() > _LEAK * energy.sum():
        return float("inf")
    allowed = present & (phi > 0)
    terms = energy[allowed] / phi[allowed]
    # At the smallest energies that are still above rounding the terms must have faded.
    faint = energy[allowed] < _FAINT * energy.max()
    if terms[faint].sum() > _FADED * terms.sum():
        warnings.warn(
            "frequencies near rounding make up the norm: it is larger than this, perhaps infinite",
            stacklevel=2,
        )
    return float(terms.sum())


@dataclass(frozen=True)
class Smoothness:
    """How fast a kernel's spectrum falls, and what that makes of the functions in its space.

    Attributes:
        decay: ``"band-limited"``, ``"exponential"`` or ``"algebraic"``.
        order: Power of the frequency for algebraic decay, else infinite.
        derivatives: Square-integrable derivatives of every function in the space.
    """

    decay: str
    order: float
    derivatives: float

    def __str__(self) -> str:
        if self.decay == "algebraic":
            return (
                f"spectrum falls like frequency^-{self.order:g}: {self.derivatives:g} derivatives in L2"
            )
        return f"spectrum is {self.decay}: all derivatives in L2"


def smoothness(kernel: Any) -> Smoothness:
    """Return how smooth the functions of a kernel's space are, from how its spectrum ends.

    Kernels are those of :func:`spectrum`; of a sum the slower decay counts.

    Example:
        >>> from pindown.learn.kernels import Laplace, Sinc
        >>> print(smoothness(Laplace(3.0)))
        spectrum falls like frequency^-2: 1 derivatives in L2
        >>> print(smoothness(Sinc(1.0)))
        spectrum is band-limited: all derivatives in L2

    Lecture course, slides on shift-invariant kernels.
    """
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, Product, Sum

    from pindown.learn.kernels.kernel_objects import Laplace, Sinc

    if isinstance(kernel, Matern) and np.isfinite(kernel.nu):
        _length(kernel)
        return Smoothness("algebraic", 2 * kernel.nu + 1, kernel.nu + 0.5)
    if isinstance(kernel, RBF):
        _length(kernel)
        return Smoothness("exponential", float("inf"), float("inf"))
    if isinstance(kernel, Laplace):
        return Smoothness("algebraic", 2.0, 1.0)
    if isinstance(kernel, Sinc):
        return Smoothness("band-limited", float("inf"), float("inf"))
    if isinstance(kernel, Sum):  # the slower decay stays; a band is the fastest
        return min((smoothness(k) for k in (kernel.k1, kernel.k2)), key=_roughness)
    if isinstance(kernel, Product):
        for factor, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if isinstance(factor, ConstantKernel):
                return smoothness(other)
    raise TypeError(
        f"no spectrum is known for {kernel!r}; Laplace, Sinc, RBF, Matern, multiples and sums have one"
    )


def ridge_filter(kernel: Any, omega: ArrayLike, penalty: float) -> Array:
    r"""Return the filter :math:`\hat\varphi/(\hat\varphi + \lambda)` of ridge regression.

    It is the limit of ridge regression on dense, even samples, with the penalty per unit of length.

    Example:
        >>> from pindown.learn.kernels import Laplace
        >>> ridge_filter(Laplace(1.0), [0.0, 3.0], 0.1).round(6).tolist()
        [0.909091, 0.5]

    Lecture course, slides on the norm as a penalty on frequencies.
    """
    penalty = positive("penalty", penalty)
    phi = spectrum(kernel, omega)
    return phi / (phi + penalty)


def plot_filters(
    kernels: Sequence[Any], *, penalty: float = 0.01, span: float = 6.0, axes: Any = None
) -> Figure:
    """Draw kernels as filters: profile, spectrum, and what ridge regression keeps of each frequency.

    Args:
        kernels: Kernels that :func:`spectrum` knows.
        penalty: Ridge penalty for the third panel.
        span: Largest lag and a quarter of the largest frequency shown.
        axes: Three axes to draw on, or None for a new figure.

    Returns:
        The figure.

    Lecture course, slides on shift-invariant kernels.
    """
    if axes is None:
        require("matplotlib")
        import matplotlib.pyplot as plt

        _, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    lags, omega = np.linspace(-span, span, 601), np.linspace(0, 4 * span, 801)
    for kernel in kernels:
        phi = spectrum(kernel, omega)
        axes[0].plot(lags, kernel(lags[:, None], np.zeros((1, 1)))[:, 0], label=repr(kernel))
        axes[1].semilogy(omega, np.where(phi > 1e-12, phi, np.nan), label=repr(kernel))
        axes[2].plot(omega, ridge_filter(kernel, omega, penalty), label=repr(kernel))
    _label(axes[0], "difference x - z", "kernel")
    _label(axes[1], "frequency (radians per unit)", "spectrum")
    _label(axes[2], "frequency (radians per unit)", f"kept by ridge, penalty {penalty:g}")
    axes[0].legend(fontsize="small")
    return axes[0].figure


def _roughness(found: Smoothness) -> tuple[float, bool]:
    return found.order, found.decay == "band-limited"


def _label(ax: Axes, across: str, up: str) -> None:
    ax.set(xlabel=across, ylabel=up)


def _length(kernel: Any) -> float:
    length = np.asarray(kernel.length_scale, dtype=np.float64)
    if length.size != 1:
        raise TypeError("the spectrum is that of one variable: give the kernel a single length scale")
    return float(length.item())


def _matern(nu: float, length: float, omega: Array) -> Array:
    from scipy.special import gammaln

    if np.isinf(nu):
        return np.asarray(length * np.sqrt(2 * np.pi) * np.exp(-((length * omega) ** 2) / 2))
    rate = 2 * nu / length**2
    height = 0.5 * np.log(4 * np.pi) + gammaln(nu + 0.5) - gammaln(nu) + nu * np.log(rate)
    return np.asarray(np.exp(height - (nu + 0.5) * np.log(rate + omega**2)))
