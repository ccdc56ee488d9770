"""Arrays on their way to networks: axes, channels, and where columns of numbers lie."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from pindown.affine import Array

# Of images with three axes, the one that is this short is the channels.
MAX_CHANNELS = 4


def n_axes(X: Any) -> int:
    """Return how many axes X has; sparse matrices, which NumPy takes for numbers, know it themselves.

    >>> n_axes([[1, 2]])
    2
    """
    return int(X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim)


def mean_and_deviation(X: Array, *, rounding: float = 1e-12) -> tuple[Array, Array]:
    """Return mean and standard deviation of each column; a deviation that is rounding is zero.

    Squares of huge numbers overflow and those of tiny ones vanish, so columns are measured in their
    largest number first.

    Args:
        X: Finite numbers, (n, d).
        rounding: Share of a column's largest number below which its deviation is rounding.

    >>> [part.tolist() for part in mean_and_deviation(np.array([[1e300, 7.0], [4e300, 7.0]]))]
    [[2.5e+300, 7.0], [1.5e+300, 0.0]]
    """
    largest = np.abs(X).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    mean, spread = (X / unit).mean(axis=0), (X / unit).std(axis=0)
    return mean * unit, np.where(spread > rounding, spread * unit, 0.0)


def checked_weights(sample_weight: Any, X: Any) -> Array:
    """Return weights of samples as scikit-learn checks them: finite, not negative, not all zero.

    >>> checked_weights(None, np.zeros((2, 1)))
    array([1., 1.])
    """
    mass = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not mass.any():  # older releases let this pass
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return np.asarray(mass)
