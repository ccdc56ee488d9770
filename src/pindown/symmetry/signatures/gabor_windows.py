"""Shifts and scales of signals within a window, and the templates that lose least at its edge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.symmetry.signatures.projections import as_samples
from pindown.validation import positive

Response = Callable[[Any], Any]
Template = Callable[[Array], NDArray[Any]]


def gabor(p: ArrayLike, width: float, frequency: float) -> NDArray[np.complex128]:
    r"""A wave under a Gaussian window: as local in space and frequency together as can be.

    .. math:: t(p) = e^{-p^2 / 2 s^2} e^{i \omega p}

    Args:
        p: Positions.
        width: Width s of the window, positive.
        frequency: :math:`\omega`; zero is a Gaussian bump.

    >>> gabor([0.0, 1.0], 1.0, 0.0).real.round(4).tolist()
    [1.0, 0.6065]

    Lecture course, section on partial groups.
    """
    positive("width", width)
    positions = np.asarray(p, dtype=float)
    return np.exp(-(positions**2) / (2 * width**2)) * np.exp(1j * frequency * positions)


def windowed_signature(
    X: ArrayLike,
    template: Template,
    *,
    shifts: ArrayLike,
    scales: ArrayLike = (1.0,),
    eta: Response = np.abs,
    positions: ArrayLike | None = None,
) -> Array:
    r"""Pool the responses to a template that is shifted and scaled within a window.

    .. math:: \mu(x) = \sum_{\lambda, y} \eta\left(\left\langle x,
              \lambda^{-1/2} t\left(\tfrac{\cdot - y}{\lambda}\right) \right\rangle\right)

    Scaling comes before shifting, so that shifts are in pixels at every scale.

    Args:
        X: Signals, (n, d) or (d,).
        template: A function of positions, real or complex; see :func:`gabor`.
        shifts: Shifts y of the window, in the unit of the positions.
        scales: Scales of the window, positive.
        eta: The response to a projection (its modulus by default).
        positions: Where the signals are sampled, (d,); None centres integers on zero.

    Returns:
        One number per signal, (n,).

    >>> signal = np.zeros(41)
    >>> signal[20] = 1.0
    >>> bump = lambda p: gabor(p, 2.0, 0.0)
    >>> here, there = windowed_signature([signal, np.roll(signal, 3)], bump, shifts=range(-18, 19))
    >>> bool(abs(here - there) < 1e-9)
    True

    Lecture course, section on partial groups.
    """
    signals = as_samples(X)
    d = signals.shape[1]
    p = np.arange(d) - d // 2 if positions is None else np.asarray(positions, dtype=float)
    if p.shape != (d,):
        raise ValueError(
            f"positions must be {d} numbers, one per entry of a signal; got shape {p.shape}."
        )
    y, sizes = np.atleast_1d(np.asarray(shifts, float)), np.atleast_1d(np.asarray(scales, float))
    if y.size == 0 or sizes.size == 0 or not (sizes > 0).all() or not np.isfinite(y).all():
        raise ValueError("a window needs finite shifts and positive scales, at least one of each.")
    total = np.zeros(len(signals))
    for size in sizes:
        atoms = np.asarray(template((p[:, None] - y) / size)) / np.sqrt(size)
        total += np.asarray(eta(signals @ atoms.conj()), dtype=float).sum(axis=1)
    return total
