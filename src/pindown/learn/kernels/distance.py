r"""Distances in the feature space of a kernel, without features.

.. math:: d_k(x, z)^2 = k(x, x) + k(z, z) - 2k(x, z)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.kernels.gram import Kernel, diagonal, gram, samples, square

# Relative: a few dozen roundings of products, sums and one exponential in a kernel's value.
_ROUNDING = 1e-14


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


def center_gram(K: ArrayLike) -> Array:
    r"""Return the Gram matrix of features with their mean removed.

    .. math:: (I - U)K(I - U), \qquad U = \mathbf{11}^\top/n

    Example:
        >>> center_gram([[1.0, 0.0], [0.0, 1.0]]).tolist()
        [[0.5, -0.5], [-0.5, 0.5]]

    Lecture course, slides on centring in feature space.
    """
    from sklearn.preprocessing import KernelCenterer

    return np.asarray(KernelCenterer().fit_transform(square(K)))


def center_cross(K_new: ArrayLike, K: ArrayLike) -> Array:
    """Return kernel values of new samples against old ones, with the mean of the old features removed.

    Args:
        K_new: Values (m, n) of new samples against the old ones.
        K: Gram matrix (n, n) of the old ones.

    Returns:
        The centred values (m, n).

    Example:
        >>> center_cross([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]).tolist()
        [[0.5, -0.5]]

    Lecture course, slides on centring in feature space (there for the training samples).
    """
    from sklearn.preprocessing import KernelCenterer

    K, K_new = square(K), np.atleast_2d(np.asarray(K_new, dtype=np.float64))
    if K_new.shape[1] != len(K):
        raise ValueError(
            f"new samples have {K_new.shape[1]} kernel values, there are {len(K)} old samples"
        )
    return np.asarray(KernelCenterer().fit(K).transform(K_new))


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
