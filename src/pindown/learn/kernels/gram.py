r"""Gram matrices :math:`K_{ij} = k(x_i, z_j)` of a named kernel, an object or a function.

Sums, products, positive multiples and pull-backs of kernels are again kernels; the kernel objects of
:mod:`sklearn.gaussian_process.kernels` carry that algebra, so nothing of it is repeated here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array

# A name that scikit-learn knows, or something that maps (n, d) and (m, d) samples to an (n, m) matrix.
Kernel = str | Callable[..., Any]


def samples(X: ArrayLike, name: str = "X") -> Array:
    """Return samples as a finite (n, d) float array; a vector becomes one column.

    >>> samples([1, 2, 3]).shape
    (3, 1)
    """
    if hasattr(X, "toarray"):
        raise TypeError(f"{name} is a sparse matrix, a dense array is needed; pass {name}.toarray()")
    array = np.asarray(X, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            f"{name} must hold samples in rows, (n, d) with n, d >= 1, got shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has NaN or infinite entries; drop or fill them first")
    return array


def gram(kernel: Kernel, X: ArrayLike, Z: ArrayLike | None = None, **parameters: Any) -> Array:
    r"""Return the matrix :math:`K_{ij} = k(x_i, z_j)`.

    Args:
        kernel: A name from :func:`sklearn.metrics.pairwise.pairwise_kernels` (``"linear"``, ``"rbf"``,
            ...), a kernel object of :mod:`sklearn.gaussian_process.kernels` or of this package, or a
            function of two sample matrices that returns the whole matrix, as :class:`sklearn.svm.SVC`
            takes it.
        X: Samples (n, d); a vector is n samples of one feature.
        Z: Samples (m, d), or None for X.
        parameters: ``gamma``, ``degree``, ``coef0`` for names; those that a name does not have are left
            out.

    Returns:
        The (n, m) matrix.

    Raises:
        ValueError: If the name is unknown or the matrix has the wrong shape or entries that are not
            finite.
        TypeError: If the kernel is neither a name nor callable.

    Example:
        >>> gram("linear", [[1.0, 2.0], [0.0, 1.0]]).tolist()
        [[5.0, 2.0], [2.0, 1.0]]
        >>> gram(lambda A, B: (1 + A @ B.T) ** 2, [1.0, 2.0]).tolist()
        [[4.0, 9.0], [9.0, 25.0]]

    Lecture course, slides on feature maps and the kernel trick.
    """
    X = samples(X)
    Z = X if Z is None else samples(Z, "Z")
    if isinstance(kernel, str):
        from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

        if kernel not in PAIRWISE_KERNEL_FUNCTIONS:
            names = ", ".join(sorted(PAIRWISE_KERNEL_FUNCTIONS))
            raise ValueError(
                f"kernel must be one of {names}, a kernel object or a function, got {kernel!r}"
            )
        if kernel == "rbf" and X.shape[1] == Z.shape[1]:
            # It depends on differences only; squares of far-away samples would cancel to noise.
            centre = X.mean(axis=0)
            left, right = X - centre, Z - centre
        else:
            left, right = X, Z
        matrix = pairwise_kernels(left, right, metric=kernel, filter_params=True, **parameters)
    elif callable(kernel):
        matrix = kernel(X, Z)
    else:
        raise TypeError(
            f"kernel must be a name, a kernel object or a function, got {type(kernel).__name__}"
        )
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.shape != (len(X), len(Z)):
        raise ValueError(
            f"the kernel returned shape {matrix.shape} for {len(X)} and {len(Z)} samples; "
            "it must map two sample matrices to the matrix of all pairs"
        )
    if not np.isfinite(matrix).all():
        raise ValueError(
            "the kernel has NaN or infinite values on these samples; scale them or change it"
        )
    return matrix


def diagonal(kernel: Kernel, X: ArrayLike, **parameters: Any) -> Array:
    """Return k(x, x) for each sample, without the whole matrix where the kernel allows it.

    >>> diagonal("linear", [[3.0, 4.0], [0.0, 1.0]]).tolist()
    [25.0, 1.0]
    """
    X = samples(X)
    if hasattr(kernel, "diag"):
        return np.asarray(kernel.diag(X), dtype=np.float64)
    if kernel in ("rbf", "laplacian", "chi2"):
        return np.ones(len(X))
    if kernel == "linear":
        return np.einsum("ij,ij->i", X, X)
    return np.array([gram(kernel, row[None], **parameters)[0, 0] for row in X])


def square(K: ArrayLike, name: str = "K") -> Array:
    """Return a Gram matrix as a finite, symmetric float array, or say what is wrong with it.

    >>> square([[2, 1], [1, 2]]).tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    """
    matrix = np.asarray(K, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(
            f"{name} must be a square matrix of all pairs of samples, got shape {matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} has NaN or infinite entries")
    if np.abs(matrix - matrix.T).max() > _ASYMMETRY * np.abs(matrix).max():
        raise ValueError(
            f"{name} is not symmetric: entries differ by {np.abs(matrix - matrix.T).max():.3g}"
        )
    return matrix


_ASYMMETRY = 1e-8  # of the largest entry: pairs computed in two orders differ by rounding only
