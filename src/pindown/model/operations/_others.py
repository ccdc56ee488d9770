"""Sums without one of their terms."""

from __future__ import annotations

import numpy as np

from pindown.affine import Array


def sum_of_others(x: Array, axis: int = -1) -> Array:
    """Return for every entry the sum of all the others along an axis, without cancellation.

    >>> sum_of_others(np.array([1e20, 1.0, 2.0]))
    array([3.e+00, 1.e+20, 1.e+20])
    """
    return _of_others(x, axis, np.add, 0.0)


def log_sum_of_others(x: Array, axis: int = -1) -> Array:
    """Return for every entry the log-sum-exp of all the others, minus infinity if there are none."""
    return _of_others(x, axis, np.logaddexp, -np.inf)


def _of_others(x: Array, axis: int, add: np.ufunc, nothing: float) -> Array:
    x = np.moveaxis(x, axis, -1)
    before, after = np.full(x.shape, nothing), np.full(x.shape, nothing)
    add.accumulate(x[..., :-1], axis=-1, out=before[..., 1:])
    after[..., :-1] = add.accumulate(x[..., :0:-1], axis=-1)[..., ::-1]
    return np.moveaxis(np.asarray(add(before, after)), -1, axis)
