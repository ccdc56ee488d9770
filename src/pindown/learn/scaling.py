"""Where columns of numbers lie and how far they spread, for numbers of any size."""

from __future__ import annotations

import numpy as np

from pindown.affine import Array


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
