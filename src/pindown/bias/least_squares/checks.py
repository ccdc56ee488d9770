"""What the closed forms of least squares accept, and what they refuse."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array

Reduction: TypeAlias = Literal["mean", "sum", "half_sum", "half_mean"]


def table(X: ArrayLike) -> Array:
    """Return inputs as a finite matrix (n, d) with at least one row and column.

    >>> table([[1, 2]]).shape
    (1, 2)
    """
    found = _array("X", X)
    if found.ndim != 2 or found.size == 0 or not np.isfinite(found).all():
        raise ValueError(
            f"X must be a finite table of samples by features, at least one of each; got shape "
            f"{found.shape}{_where(found)}."
        )
    return found


def labelled(X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Return inputs (n, d) and one finite target for each.

    >>> [part.shape for part in labelled([[1.0, 2.0]], [3.0])]
    [(1, 2), (1,)]
    """
    X = table(X)
    return X, vector("y", y, len(X))


def vector(name: str, values: ArrayLike, length: int) -> Array:
    """Return finite numbers of a given length.

    >>> vector("start", [1, 2], 2).tolist()
    [1.0, 2.0]
    """
    found = _array(name, values)
    if found.shape != (length,) or not np.isfinite(found).all():
        raise ValueError(
            f"{name} must be {length} finite numbers; got shape {found.shape}{_where(found)}."
        )
    return found


def number(name: str, value: Any, low: float, high: float, *, closed: bool = True) -> float:
    """Return a number of [low, high], or of (low, high] where ``closed`` is false.

    >>> number("step", 0.5, 0.0, 1.0)
    0.5
    """
    try:
        found = float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number; got {value!r}.") from error
    if not (low <= found <= high) or (found == low and not closed) or math.isinf(found):
        raise ValueError(
            f"{name} must lie in {'[' if closed else '('}{low:g}, {high:g}]; got {value!r}."
        )
    return found


def count(name: str, value: Any, least: int) -> int:
    """Return a whole number that is large enough.

    >>> count("n_steps", 3, 0)
    3
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be a whole number; got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {value!r}.")
    return int(value)


def gradient_factor(reduction: str, n: int) -> float:
    r"""Return c where the loss's gradient is :math:`c X^\top(Xw - y)`.

    >>> [gradient_factor(r, 4) for r in ("half_sum", "sum", "mean", "half_mean")]
    [1.0, 2.0, 0.5, 0.25]
    """
    factors = {"half_sum": 1.0, "sum": 2.0, "mean": 2.0 / n, "half_mean": 1.0 / n}
    if reduction not in factors:
        raise ValueError(f"reduction must be one of {', '.join(factors)}; got {reduction!r}.")
    return factors[reduction]


def scaled_squares(values: Array, factor: float) -> Array:
    """Return factor times squares, refusing what leaves the floats.

    >>> scaled_squares(np.array([3.0]), 2.0).tolist()
    [18.0]
    """
    with np.errstate(over="ignore", under="ignore"):
        found = factor * values**2
    if not np.isfinite(found).all() or (found[values > 0] < np.finfo(float).tiny).any():
        raise ValueError(
            f"X must be scaled: squares of its singular values, up to {values.max():.2g}, leave the "
            "range of floats; divide it by its largest entry."
        )
    return np.asarray(found)


def _array(name: str, values: Any) -> Array:
    """Return numbers as float64, of tensors too."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold real numbers: {error}.") from error


def _where(values: Array) -> str:
    return "" if np.isfinite(values).all() else " with values that are not finite"
