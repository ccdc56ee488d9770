"""In which precision weights are written, and that nothing is lost on the way unnoticed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.errors import ModelFileError
from pindown.network import ReluNetwork

_CHOICES = ("auto", "float32", "float64")


def choose_dtype(net: ReluNetwork, dtype: str) -> np.dtype[Any]:
    """Return the float type to write; ``"auto"`` is float32 if that holds every weight exactly.

    >>> tenth = ReluNetwork.from_layers([([[0.1]], [0.0])])
    >>> half = ReluNetwork.from_layers([([[0.5]], [0.0])])
    >>> choose_dtype(tenth, "auto"), choose_dtype(half, "auto")
    (dtype('float64'), dtype('float32'))
    """
    if dtype not in _CHOICES:
        raise ValueError(f"dtype must be one of {', '.join(_CHOICES)}; got {dtype!r}.")
    if dtype != "auto":
        return np.dtype(dtype)
    arrays = [part for W, b in net.layers for part in (W.data if sp.issparse(W) else W, b)]
    return np.dtype(np.float32 if all(map(_fits_float32, arrays)) else np.float64)


def narrowed(values: NDArray[Any], dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    """Return the values in the type to write, or refuse if one becomes infinite."""
    with np.errstate(over="ignore"):
        written = values.astype(dtype)
    if not np.isfinite(written).all():
        raise ModelFileError(
            f"{name} holds numbers up to {np.abs(values).max():.3g}, beyond {dtype}; "
            "save with dtype='float64'."
        )
    return written


def _fits_float32(values: NDArray[np.float64]) -> bool:
    with np.errstate(over="ignore"):
        return bool((values.astype(np.float32) == values).all())
