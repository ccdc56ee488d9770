r"""Gram matrices :math:`K_{ij} = k(x_i, z_j)` and distances in the feature space of a kernel.

.. math:: d_k(x, z)^2 = k(x, x) + k(z, z) - 2k(x, z)

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
# Relative: a few dozen roundings of products, sums and one exponential in a kernel's value.
_ROUNDING = 1e-14
# Of the largest entry: pairs computed in two orders differ by rounding only.
_ASYMMETRY = 1e-8


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
            f"{name} must hold samples in rows, (n, d) with n, d >= 1; got shape {array.shape}"
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
                f"kernel must be one of {names}, a kernel object or a function; got {kernel!r}"
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
            f"kernel must be a name, a kernel object or a function; got {type(kernel).__name__}"
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
            f"{name} must be a square matrix of all pairs of samples; got shape {matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} has NaN or infinite entries")
    if np.abs(matrix - matrix.T).max() > _ASYMMETRY * np.abs(matrix).max():
        raise ValueError(
            f"{name} is not symmetric: entries differ by {np.abs(matrix - matrix.T).max():.3g}"
        )
    return matrix


def kernel_distance(
    kernel: Kernel, X: ArrayLike, Z: ArrayLike | None = None, **parameters: Any
) -> Array:
    """Return the distances of all pairs of samples in feature space.

    Args:
        kernel: Name, kernel object or function.
        X: Samples (n, d).
        Z: Samples (m, d), or None for X.
        parameters: Parameters of a named kernel.

    Returns:
        Distances (n, m).

    Example:
        >>> kernel_distance("linear", [[0.0, 0.0]], [[3.0, 4.0]]).tolist()
        [[5.0]]

    Lecture course, slides on the distance of a kernel.
    """
    squares, _ = squared_distances(kernel, X, Z, **parameters)
    return np.sqrt(squares)


def squared_distances(
    kernel: Kernel, X: ArrayLike, Z: ArrayLike | None = None, **parameters: Any
) -> tuple[Array, Array]:
    """Return squared distances of all pairs in feature space, and how far rounding may have moved them.

    Kernels of which a difference is known in closed form lose nothing to cancellation.

    >>> squares, rounding = squared_distances("rbf", [0.0], [1e-9], gamma=0.5)
    >>> bool(abs(squares[0, 0] / 1e-18 - 1) < 1e-9)
    True
    """
    X = samples(X)
    other = X if Z is None else samples(Z, "Z")
    direct = _without_cancellation(kernel, X, other, parameters)
    if direct is not None:
        return direct, _ROUNDING * direct
    K = gram(kernel, X, other, **parameters)
    left = diagonal(kernel, X, **parameters)
    right = left if Z is None else diagonal(kernel, other, **parameters)
    squares = np.maximum(0.0, left[:, None] + right - 2 * K)
    rounding = _ROUNDING * (np.abs(left)[:, None] + np.abs(right) + 2 * np.abs(K))
    if Z is None:
        np.fill_diagonal(squares, 0.0)
        np.fill_diagonal(rounding, 0.0)
    return squares, rounding


def distance_to_mean(kernel: Kernel, X: ArrayLike, Z: ArrayLike, **parameters: Any) -> Array:
    """Return the distance in feature space of each sample of X to the mean of the samples Z.

    >>> distance_to_mean("linear", [[0.0], [4.0]], [[1.0], [3.0]]).tolist()
    [2.0, 2.0]
    """
    cross, within = gram(kernel, X, Z, **parameters), gram(kernel, Z, **parameters)
    squares = diagonal(kernel, X, **parameters) - 2 * cross.mean(axis=1) + within.mean()
    return np.sqrt(np.maximum(0.0, squares))


def mean_distance_squared(
    kernel: Kernel, X: ArrayLike, Z: ArrayLike, *, unbiased: bool = False, **parameters: Any
) -> float:
    r"""Return the squared distance of the means of two samples in feature space.

    Args:
        kernel: Name, kernel object or function.
        X: Samples (n, d).
        Z: Samples (m, d).
        unbiased: Whether pairs of a sample with itself are left out, which makes the expectation that
            of the distributions; the value may then be negative.
        parameters: Parameters of a named kernel.

    Returns:
        :math:`\lVert\frac1n\sum\varphi(x_i) - \frac1m\sum\varphi(z_j)\rVert^2`.

    Example:
        >>> mean_distance_squared("linear", [[0.0], [2.0]], [[4.0]])
        9.0

    Lecture course, slides on the distance of a kernel.
    """
    X, Z = samples(X), samples(Z, "Z")
    if unbiased and min(len(X), len(Z)) < 2:
        raise ValueError("the unbiased value needs two samples of each kind")
    within = [_mean_of_pairs(gram(kernel, A, **parameters), unbiased) for A in (X, Z)]
    value = sum(within) - 2 * float(gram(kernel, X, Z, **parameters).mean())
    return value if unbiased else max(0.0, value)


def _without_cancellation(
    kernel: Kernel, X: Array, Z: Array, parameters: dict[str, Any]
) -> Array | None:
    """Return the squares for kernels with a closed form of the difference, else None."""
    from scipy.spatial.distance import cdist
    from sklearn.gaussian_process.kernels import RBF, Matern

    if X.shape[1] != Z.shape[1]:
        return None
    gamma = parameters.get("gamma")
    gamma = 1.0 / X.shape[1] if gamma is None else gamma
    if isinstance(kernel, RBF) and not isinstance(kernel, Matern):
        scale = kernel.length_scale
        return np.asarray(-2 * np.expm1(-0.5 * cdist(X / scale, Z / scale, "sqeuclidean")))
    if not isinstance(kernel, str):
        return None
    if kernel == "linear":
        return np.asarray(cdist(X, Z, "sqeuclidean"))
    if kernel == "rbf":
        return np.asarray(-2 * np.expm1(-gamma * cdist(X, Z, "sqeuclidean")))
    if kernel == "laplacian":
        return np.asarray(-2 * np.expm1(-gamma * cdist(X, Z, "cityblock")))
    return None


def _mean_of_pairs(K: Array, distinct: bool) -> float:
    n = len(K)
    return float((K.sum() - K.trace()) / (n * (n - 1))) if distinct else float(K.mean())
