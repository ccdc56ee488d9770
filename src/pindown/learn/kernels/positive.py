"""Positive definite kernels.

A test that can refute one, and the feature map that proves a matrix to be one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.kernels.gram import Kernel, gram, samples, square

# Negative eigenvalues down to this share of the largest one, times the number of samples, are rounding.
_ROUNDING = 1e-13
_ASYMMETRY = 1e-9
# Times the change of a matrix when samples move in their last place: what its entries may be off.
_LAST_PLACES = 10.0
# Of the mean diagonal entry, times the root of n: added before elimination, far above what kernels and
# eliminations round, far below a negative eigenvalue that would matter.
_SHIFT = 1e-9


@dataclass(frozen=True)
class Definiteness:
    r"""The outcome of a search for samples on which a kernel is not positive semi-definite.

    Attributes:
        refuted: Whether a witness was found; False proves nothing.
        smallest: Smallest eigenvalue met, relative to the largest of its matrix.
        points: Samples of the witness, or None.
        weights: Weights c with :math:`\sum_{ij}c_ic_jk(x_i, x_j) < 0`, or None.
        form: The value of that sum, or None.
        reason: ``"negative form"``, ``"not symmetric"`` or ``"not refuted"``.
    """

    refuted: bool
    smallest: float
    points: Array | None = field(repr=False)
    weights: Array | None = field(repr=False)
    form: float | None
    reason: str

    def __str__(self) -> str:
        if not self.refuted:
            return f"not refuted: least relative eigenvalue {self.smallest:.2g} (which proves nothing)"
        if self.reason == "not symmetric":
            return "not a kernel: k(x, z) and k(z, x) differ"
        count = 0 if self.points is None else len(self.points)
        return f"not positive definite: a weighted sum over {count} samples is {self.form:.3g} < 0"


def refute_definiteness(
    kernel: Kernel,
    *point_sets: ArrayLike,
    random_state: int = 0,
    in_features: int = 2,
    **parameters: Any,
) -> Definiteness:
    """Search for samples on which a kernel is not positive semi-definite.

    Args:
        kernel: Name, kernel object or function.
        point_sets: Sample matrices to try; random ones of several sizes and scales if none is given.
        random_state: Seed of the random samples.
        in_features: Features of the random samples.
        parameters: Parameters of a named kernel.

    Returns:
        A :class:`Definiteness`, with the witness if there is one.

    Example:
        >>> print(refute_definiteness(lambda A, B: np.maximum(A, B.T), [0.0, 1.0]))
        not positive definite: a weighted sum over 2 samples is -0.618 < 0
        >>> refute_definiteness("rbf").refuted
        False

    Lecture course, slides on positive definite kernels.
    """
    worst = np.inf
    for points in point_sets or _random_sets(random_state, in_features):
        X = samples(points)
        K = gram(kernel, X, **parameters)
        size = float(np.abs(K).max())
        if np.abs(K - K.T).max() > _ASYMMETRY * size:
            return Definiteness(True, float("nan"), X, None, None, "not symmetric")
        values, vectors = np.linalg.eigh((K + K.T) / 2)
        largest = max(float(np.abs(values).max()), np.finfo(float).tiny)
        worst = min(worst, float(values[0]) / largest)
        c = vectors[:, 0]
        form = float(c @ K @ c)
        if form < -_ROUNDING * len(X) * largest - _noise(kernel, X, K, c, parameters):
            return Definiteness(True, worst, X, c, form, "negative form")
    return Definiteness(False, worst, None, None, None, "not refuted")


def finite_feature_map(K: ArrayLike) -> Array:
    r"""Return features whose inner products are a Gram matrix.

    :math:`\Phi = U\Lambda^{1/2}`, :math:`\Phi\Phi^\top = K`.

    Features are not unique: any rotation of them, or copies of them with the weights split, do as well.

    Args:
        K: Symmetric positive semi-definite matrix (n, n).

    Returns:
        Features (n, rank).

    Raises:
        ValueError: If the matrix has a negative eigenvalue.

    Example:
        >>> Phi = finite_feature_map([[4.0, 2.0], [2.0, 1.0]])
        >>> Phi.shape, (Phi @ Phi.T).round(12).tolist()
        ((2, 1), [[4.0, 2.0], [2.0, 1.0]])

    Lecture course, slides on Aronszajn's theorem.
    """
    K = square(K)
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    rounding = _ROUNDING * len(K) * max(float(np.abs(values).max()), np.finfo(float).tiny)
    if values[0] < -rounding:
        raise ValueError(
            f"the matrix is not positive semi-definite: it has the eigenvalue {values[0]:.4g}"
        )
    kept = values > rounding
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def is_semidefinite(K: Array) -> bool:
    """Whether elimination finds no negative direction in a symmetric matrix, up to rounding.

    >>> is_semidefinite(np.ones((3, 3))), is_semidefinite(np.array([[0.0, 1.0], [1.0, 0.0]]))
    (True, False)
    """
    from scipy.linalg import LinAlgError, cholesky

    shift = _SHIFT * len(K) ** 0.5 * float(np.abs(K.diagonal()).mean())
    shifted = K + (shift + float(np.finfo(float).tiny)) * np.eye(len(K))
    try:
        cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def _noise(kernel: Kernel, X: Array, K: Array, c: Array, parameters: dict[str, Any]) -> float:
    """Return how much the form changes when samples move in their last place: no witness below that."""
    moved = gram(kernel, np.nextafter(X, np.where(np.indices(X.shape).sum(axis=0) % 2, np.inf, -np.inf)),
                 **parameters)  # fmt: skip
    return _LAST_PLACES * float(np.abs(c) @ np.abs(moved - K) @ np.abs(c))


def _random_sets(seed: int, d: int) -> Iterable[Array]:
    rng = np.random.default_rng(seed)
    for n in (3, 10, 40):
        for scale in (0.1, 1.0, 5.0):
            yield scale * rng.normal(size=(n, d))
