"""How alike two kernels are, and how well a kernel fits targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.bias.kernel.checks import as_columns, as_gram


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


def _centred(K: Array) -> Array:
    rows = K.mean(axis=0, keepdims=True)
    return K - rows - rows.T + K.mean()
