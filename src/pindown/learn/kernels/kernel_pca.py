r"""Kernel PCA: features centred, and their principal components with scores and variances.

.. math:: \tilde K = (I - U)K(I - U), \qquad \tilde K u = \mu u, \qquad a = u/\sqrt\mu, \qquad
          \text{scores } \tilde Ka = \sqrt\mu\,u, \qquad \text{variance } \mu/n.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.kernels.gram_matrix import square
from pindown.validation import integer

_RANK = 1e-12  # directions with less than this share of the largest variance are rounding


@dataclass(frozen=True)
class KernelComponents:
    """Principal components of samples in feature space.

    Attributes:
        scores: Coordinates of the samples (n, k).
        coefficients: Weights of the centred features that make each unit vector (n, k).
        variances: Variance of each score (k,).
    """

    scores: Array = field(repr=False)
    coefficients: Array = field(repr=False)
    variances: Array
    K: Array = field(repr=False)

    def transform(self, K_new: ArrayLike) -> Array:
        """Return the scores of new samples from their kernel values (m, n) against the old ones."""
        return center_cross(K_new, self.K) @ self.coefficients

    def __str__(self) -> str:
        shown = np.array2string(self.variances[:4], precision=4)
        return f"{len(self.variances)} components, variances {shown}"


def kernel_components(K: ArrayLike, n_components: int | None = None) -> KernelComponents:
    """Return principal components in feature space, through scikit-learn's ``KernelPCA``.

    Args:
        K: Gram matrix (n, n), not centred.
        n_components: How many; by default all that are not rounding.

    Returns:
        :class:`KernelComponents`; the largest coefficient of each component is positive.

    Example:
        Three points on a line have one component, with the line's variance:

        >>> kernel_components(np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])).variances.round(6).tolist()
        [0.666667]

    Lecture course, slides on kernel principal components (with the normalisation that they leave out).
    """
    from sklearn.decomposition import KernelPCA

    K = square(K)
    if n_components is not None:
        integer("n_components", n_components, most=len(K))
    model = KernelPCA(n_components, kernel="precomputed", eigen_solver="dense").fit(K)
    mu, u = model.eigenvalues_, model.eigenvectors_
    kept = mu > _RANK * max(float(mu.max(initial=0.0)), np.finfo(float).tiny)
    mu, u = mu[kept], u[:, kept]
    u = u * np.sign(u[np.abs(u).argmax(axis=0), np.arange(len(mu))])
    return KernelComponents(u * np.sqrt(mu), u / np.sqrt(mu), mu / len(K), K)


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
