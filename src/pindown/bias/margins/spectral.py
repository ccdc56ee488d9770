r"""The frequency domain: spectra, their norms, and perturbations that are small in every frequency.

With the unitary transform :math:`(Fw)_k = d^{-1/2}\sum_nw_ne^{-2\pi ikn/d}`,
:math:`\lVert Fw\rVert_1 = \max_{|(F\delta)_k|\le1}\langle w, \delta\rangle`: the dual of the Fourier
:math:`\ell_1` norm is the largest frequency.

Lecture course, section on robustness in the Fourier domain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.bias.margins.signed import labelled

Spectrum = NDArray[np.complex128]


def spectrum(w: ArrayLike, shape: tuple[int, ...] | None = None) -> Spectrum:
    """Return the unitary discrete Fourier transform of each row, over ``shape`` if the rows are images.

    >>> spectrum([1.0, 1.0, 1.0, 1.0]).real.tolist()
    [2.0, 0.0, 0.0, 0.0]
    """
    array = np.asarray(w, dtype=np.float64)
    grid = (array.shape[-1],) if shape is None else shape
    if int(np.prod(grid)) != array.shape[-1]:
        raise ValueError(f"shape {grid} does not have the {array.shape[-1]} entries of w")
    axes = tuple(range(-len(grid), 0))
    image = np.fft.fftn(array.reshape(*array.shape[:-1], *grid), axes=axes, norm="ortho")
    return np.asarray(image.reshape(array.shape))


def fourier_norm(w: ArrayLike, exponent: float = 1.0, shape: tuple[int, ...] | None = None) -> float:
    r"""Return :math:`(\sum_k|(Fw)_k|^p)^{1/p}`; for p below 1 a quasi-norm.

    >>> fourier_norm([1.0, 0.0, 0.0, 0.0]), fourier_norm([0.5, 0.5, 0.5, 0.5])
    (2.0, 1.0)
    """
    if not 0 < exponent < np.inf:
        raise ValueError(f"exponent must be a positive number, got {exponent!r}")
    sizes = np.abs(spectrum(w, shape))
    return float((sizes**exponent).sum() ** (1.0 / exponent))


def fourier_radius(
    w: ArrayLike, X: ArrayLike, y: ArrayLike, *, shape: tuple[int, ...] | None = None
) -> float:
    r"""Return the radius :math:`\min_iy_i\langle w, x_i\rangle/\lVert Fw\rVert_1` of a classifier.

    It is negative if a sample is misclassified. No perturbation with all :math:`|(F\delta)_k|`
    below it changes a sample's side.

    >>> fourier_radius([1.0, 1.0, 1.0, 1.0], [[2.0, 1.0, 1.0, 0.0]], [1])
    2.0
    """
    points, labels = labelled(X, y)
    v = np.asarray(w, dtype=np.float64)
    if v.shape != (points.shape[1],) or not v.any() or not np.isfinite(v).all():
        raise ValueError(f"w must be a vector of {points.shape[1]} finite numbers, not all zero")
    return float((labels * (points @ v)).min()) / fourier_norm(v, 1.0, shape)


def worst_fourier_perturbation(
    gradient: ArrayLike, radius: float, shape: tuple[int, ...] | None = None
) -> Array:
    r"""Return the perturbation, small in every frequency, that lowers a linear score most.

    .. math:: \delta = -\epsilon\,F^{-1}\frac{Fg}{|Fg|}, \qquad
              \langle g, \delta\rangle = -\epsilon\lVert Fg\rVert_1.

    Args:
        gradient: g: the label times w for a linear classifier, the label times the gradient of the
            score at a sample for a one-step attack on any model.
        radius: :math:`\epsilon`.
        shape: Shape of a sample.

    Example:
        >>> (worst_fourier_perturbation([1.0, 0.0], 1.0).round(6) + 0.0).tolist()
        [-1.414214, 0.0]
    """
    image = spectrum(gradient, shape)
    sizes = np.abs(image)
    flat = np.where(sizes > 0, image / np.where(sizes > 0, sizes, 1.0), 0.0)
    grid = flat.shape if shape is None else shape
    back = np.fft.ifftn(flat.reshape(grid), norm="ortho").real
    return np.asarray(-radius * back.reshape(flat.shape))
