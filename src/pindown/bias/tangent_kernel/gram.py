"""Gram matrices: how alike two kernels are, how well one fits targets, what kernel functions accept."""

from __future__ import annotations

from typing import Any

import numpy as np

from pindown.affine import Array, is_finite
from pindown.errors import ParameterError

# A kernel computed in float32 is symmetric to about 1e-7; anything worse is another matrix.
_ASYMMETRY = 1e-5


def kernel_alignment(K: Any, other: Any, *, centred: bool = True) -> float:
    r"""Return the cosine of the angle between two kernel matrices.

    .. math:: A(K, K') = \frac{\langle K, K'\rangle_F}{\lVert K\rVert_F \lVert K'\rVert_F}

    Args:
        K: Kernel matrix (n, n).
        other: Kernel matrix of the same inputs.
        centred: Take the means out of rows and columns first, so that a constant added to a kernel
            does not count.

    Returns:
        A number between 0 and 1 for kernels; 1 if they are multiples of each other, and 0 if one of
        them vanishes (centred: is constant).

    Example:
        >>> kernel_alignment(np.eye(3), 2 * np.eye(3)), kernel_alignment(np.eye(2), np.ones((2, 2)))
        (1.0, 0.0)

    Cortes, Mohri and Rostamizadeh 2012.
    """
    A, B = as_gram(K, "K"), as_gram(other, "other")
    if A.shape != B.shape:
        raise ValueError(f"the kernels must be of the same inputs; got {A.shape} and {B.shape}.")
    # Scales are taken out first, so that no square leaves float64.
    A, B = (M / (float(np.abs(M).max()) or 1.0) for M in (A, B))
    if centred:
        A, B = _centred(A), _centred(B)
    sizes = float(np.linalg.norm(A)) * float(np.linalg.norm(B))
    # What centring leaves of a constant kernel is rounding.
    if sizes <= len(A) ** 2 * np.finfo(float).eps:
        return 0.0
    return round(float(np.clip(np.sum(A * B) / sizes, -1.0, 1.0)), 15)


def target_alignment(K: Any, y: Any, *, centred: bool = True) -> float:
    r"""Return the alignment of a kernel with the kernel :math:`y y^\top` of the targets.

    The targets are learned quickly if this is large: then they lie in the directions in which the kernel
    is large.

    Example:
        >>> target_alignment([[1.0, -1.0], [-1.0, 1.0]], [1.0, -1.0])
        1.0

    Cristianini et al. 2001.
    """
    columns = as_columns(y, len(as_gram(K)), "y")
    return kernel_alignment(K, columns @ columns.T, centred=centred)


def kernel_distance(K: Any, other: Any) -> float:
    r"""Return how far the second kernel is from the first, as a share of the first.

    .. math:: \lVert K' - K\rVert_F / \lVert K\rVert_F

    Example:
        >>> kernel_distance(np.eye(2), 3 * np.eye(2))
        2.0
    """
    A, B = as_gram(K, "K"), as_gram(other, "other")
    if A.shape != B.shape:
        raise ValueError(f"the kernels must be of the same inputs; got {A.shape} and {B.shape}.")
    unit = float(np.abs(A).max())
    if unit == 0.0:
        return float("inf") if B.any() else 0.0
    return float(np.linalg.norm((B - A) / unit) / np.linalg.norm(A / unit))


def as_inputs(X: Any, name: str, *, flat: bool = True) -> Array:
    """Return inputs as float64 with one row each.

    Args:
        X: An array, a list or a torch tensor.
        name: What to call it in errors.
        flat: Whether rows must be vectors; otherwise they may have any shape.

    Raises:
        ValueError: If there are no rows, the shape does not fit or an entry is not finite.
        TypeError: If the entries are not real numbers.
    """
    raw = np.asarray(X.detach().cpu().numpy() if hasattr(X, "detach") else X)
    if raw.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers; got dtype {raw.dtype}.")
    if raw.ndim < 2 or (flat and raw.ndim != 2):
        wanted = "(n, d)" if flat else "(n, ...), one row per input"
        hint = "; one input x is x[None]" if raw.ndim == 1 else ""
        raise ValueError(f"{name} must have shape {wanted}; got {raw.shape}{hint}.")
    if 0 in raw.shape:
        raise ValueError(f"{name} is empty, of shape {raw.shape}; give at least one row.")
    rows = raw.astype(np.float64)
    if not is_finite(rows):
        bad = int(np.count_nonzero(~np.isfinite(rows).reshape(len(rows), -1).all(axis=1)))
        raise ValueError(f"{name} must be finite; {bad} of {len(rows)} rows hold NaN or infinity.")
    return rows


def as_pair(X1: Any, X2: Any, *, flat: bool = True) -> tuple[Array, Array | None]:
    """Return both sets of inputs, the second None if it was left out; rows must have one shape."""
    first = as_inputs(X1, "X1", flat=flat)
    if X2 is None:
        return first, None
    second = as_inputs(X2, "X2", flat=flat)
    if first.shape[1:] != second.shape[1:]:
        raise ValueError(
            f"rows of X1 and X2 must have one shape; got {first.shape[1:]} and {second.shape[1:]}."
        )
    return first, second


def as_gram(K: Any, name: str = "K") -> Array:
    """Return a square symmetric kernel matrix as float64.

    Raises:
        ValueError: If it is not square, not finite or not symmetric.
    """
    gram = np.asarray(K.detach().cpu().numpy() if hasattr(K, "detach") else K, dtype=np.float64)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or len(gram) == 0:
        raise ValueError(f"{name} must be a square kernel matrix (n, n); got shape {gram.shape}.")
    if not is_finite(gram):
        raise ParameterError(f"{name} must be finite; it holds NaN or infinity.")
    if float(np.abs(gram - gram.T).max()) > _ASYMMETRY * float(np.abs(gram).max()):
        raise ValueError(f"{name} is not symmetric; give the kernel of inputs with themselves.")
    return (gram + gram.T) / 2


def as_columns(values: Any, n: int, name: str) -> Array:
    """Return targets or outputs as (n, k).

    Raises:
        ValueError: If there are not n rows, or an entry is not finite.
    """
    raw = values.detach().cpu().numpy() if hasattr(values, "detach") else values
    columns = np.asarray(raw, dtype=np.float64)
    if columns.ndim == 1:
        columns = columns[:, None]
    if columns.ndim != 2 or len(columns) != n or columns.shape[1] == 0:
        raise ValueError(f"{name} must have shape ({n},) or ({n}, k); got {np.shape(values)}.")
    if not is_finite(columns):
        raise ValueError(f"{name} must be finite; it holds NaN or infinity.")
    return columns


def _centred(K: Array) -> Array:
    rows = K.mean(axis=0, keepdims=True)
    return K - rows - rows.T + K.mean()
