"""Averaging over a window of shifts is a low-pass filter."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def window_multiplier(k: ArrayLike, a: float) -> NDArray[np.float64]:
    r"""Return by what integrating over shifts in [-a, a] multiplies the frequency k.

    .. math:: \int_{-a}^{a} e^{ikt}\,dt = \frac{2 \sin(k a)}{k} = 2a\,\mathrm{sinc}(ka/\pi),

    with :math:`\mathrm{sinc}(u) = \sin(\pi u)/(\pi u)`. Divided by 2a it multiplies the average.
    The whole line leaves only k = 0. The source prints :math:`2a\,\mathrm{sinc}(2ka)`, which belongs to
    frequencies in cycles.

    Args:
        k: Angular frequencies, any shape.
        a: Half the width of the window, from 0.

    >>> window_multiplier([0.0, np.pi], 1.0).round(12).tolist()
    [2.0, 0.0]

    Lecture course, slides on augmentation, with the constant corrected.
    """
    if not 0.0 <= a < np.inf:
        raise ValueError(f"a is half the width of a window, a finite number from 0; got {a!r}.")
    return np.asarray(2.0 * a * np.sinc(np.asarray(k, dtype=float) * a / np.pi))


def grid_window_multiplier(k: ArrayLike, half_width: int, n: int) -> NDArray[np.float64]:
    r"""Return the multiplier of a window on a periodic grid of n points, the Dirichlet kernel.

    .. math:: \sum_{|s| \le m} e^{2\pi i k s/n} = \frac{\sin(\pi k (2m+1)/n)}{\sin(\pi k/n)}

    Args:
        k: Whole frequencies, cycles over the grid.
        half_width: m, how many shifts to each side.
        n: Points of the grid.

    >>> grid_window_multiplier([0, 1], 1, 4).round(12).tolist()
    [3.0, 1.0]
    """
    if half_width < 0 or n < 1:
        raise ValueError(f"half_width is from 0 and n from 1; got {half_width!r} and {n!r}.")
    shifts = np.arange(1, half_width + 1)
    waves = np.cos(2.0 * np.pi * np.multiply.outer(np.asarray(k, dtype=float), shifts) / n)
    return np.asarray(1.0 + 2.0 * waves.sum(axis=-1))


def box_average(signal: ArrayLike, half_width: int) -> NDArray[np.float64]:
    """Return the mean of the circular shifts of a signal by at most so many steps, along the last axis.

    >>> box_average([3.0, 0.0, 0.0, 0.0], 1).tolist()
    [1.0, 1.0, 0.0, 1.0]
    """
    values = np.asarray(signal, dtype=float)
    if values.ndim == 0 or isinstance(half_width, bool) or half_width < 0:
        raise ValueError(f"a signal has an axis and half_width is from 0; got {half_width!r}.")
    shifts = range(-half_width, half_width + 1)
    return np.asarray(np.mean([np.roll(values, s, axis=-1) for s in shifts], axis=0))
