r"""Positive definite kernels: refuted by samples, or expanded by their integral operator (Mercer).

.. math:: (T_kf)(x) = \int k(x, z)f(z)\,dz, \qquad k(x, z) = \sum_i\lambda_i\psi_i(x)\psi_i(z), \qquad
          \langle f, g\rangle_H = \sum_i\frac{f_ig_i}{\lambda_i},\quad f_i = \langle f,
          \psi_i\rangle_{L_2}.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.kernels.gram_matrix import Kernel, gram, samples, square
from pindown.validation import integer, refuse

# Eigenvalues below this share of the largest are rounding: nothing may be divided by them.
_RANK_TOLERANCE = 1e-12
# Negative eigenvalues down to this share of the largest one, times the number of samples, are rounding.
_ROUNDING = 1e-13
_ASYMMETRY = 1e-9
# Times the change of a matrix when samples move in their last place: what its entries may be off.
_LAST_PLACES = 10.0
# Of the mean diagonal entry, times the root of n: added before elimination, far above what kernels and
# eliminations round, far below a negative eigenvalue that would matter.
_SHIFT = 1e-9


@dataclass(frozen=True)
class MercerSpectrum:
    """Leading eigenvalues and eigenfunctions of a kernel's integral operator, from a quadrature rule.

    Attributes:
        eigenvalues: Largest first (k,).
        at_points: Eigenfunctions at the points of the rule (n, k), orthonormal under its weights.
        points: Points of the rule.
        weights: Its weights.
        kernel: The kernel.
        parameters: Parameters of a named kernel.
    """

    eigenvalues: Array
    at_points: Array = field(repr=False)
    points: Array = field(repr=False)
    weights: Array = field(repr=False)
    kernel: Kernel = field(repr=False)
    parameters: dict[str, Any] = field(default_factory=dict, repr=False)

    def eigenfunctions(self, X: ArrayLike) -> Array:
        r"""Return :math:`\psi_i(x) = \lambda_i^{-1}\sum_jw_jk(x, x_j)\psi_i(x_j)` at samples (n, k)."""
        K = gram(self.kernel, X, self.points, **self.parameters)
        return np.asarray((K * self.weights) @ self.at_points / self.eigenvalues)

    def features(self, X: ArrayLike) -> Array:
        r"""Return the features :math:`\sqrt{\lambda_i}\psi_i(x)` of the truncated kernel."""
        return self.eigenfunctions(X) * np.sqrt(self.eigenvalues)

    def coefficients(self, values: ArrayLike) -> Array:
        r"""Return :math:`f_i = \langle f, \psi_i\rangle_{L_2}` of a function given at the points."""
        return self.at_points.T @ (self.weights * np.asarray(values, dtype=np.float64))

    def norm_squared(self, values: ArrayLike) -> float:
        r"""Return :math:`\sum_if_i^2/\lambda_i`, the squared norm of the part in these functions."""
        return float((self.coefficients(values) ** 2 / self.eigenvalues).sum())

    def apply(self, values: ArrayLike) -> Array:
        """Return the integral operator on a function given at the points.

        It smooths, it does not reproduce.
        """
        K = gram(self.kernel, self.points, **self.parameters)
        return K @ (self.weights * np.asarray(values, dtype=np.float64))

    def __str__(self) -> str:
        shown = ", ".join(f"{value:.4g}" for value in self.eigenvalues[:4])
        return (
            f"{len(self.eigenvalues)} eigenvalues: {shown}{', ...' if len(self.eigenvalues) > 4 else ''}"
        )


def mercer_spectrum(
    kernel: Kernel,
    points: ArrayLike,
    weights: ArrayLike | None = None,
    n_terms: int = 10,
    **parameters: Any,
) -> MercerSpectrum:
    r"""Return the leading part of a kernel's expansion, by a quadrature rule (Nystroem).

    Args:
        kernel: Name, kernel object or function.
        points: Points of the rule, or samples of the measure (n, d).
        weights: Positive weights of the rule; equal ones with sum one by default (the mean over
            samples).
        n_terms: Terms wanted; fewer if the kernel's rank is smaller.
        parameters: Parameters of a named kernel.

    Returns:
        A :class:`MercerSpectrum`.

    Raises:
        ValueError: If weights are not positive, shapes differ or no term is asked for.

    Example:
        The kernel min(s, t) on [0, 1] has the eigenvalues 4/(pi (2i - 1))^2:

        >>> t = (np.arange(500) + 0.5) / 500
        >>> mercer_spectrum(lambda A, B: np.minimum(A, B.T), t, n_terms=3).eigenvalues.round(4).tolist()
        [0.4053, 0.045, 0.0162]

    Lecture course, slides on Mercer's theorem (with the inner product of the space corrected).
    """
    X = samples(points, "points")
    w = np.full(len(X), 1.0 / len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (len(X),) or not (w > 0).all() or not np.isfinite(w).all():
        refuse("weights", f"{len(X)} positive numbers, one for each point", weights)
    integer("n_terms", n_terms)
    from scipy.linalg import eigh

    root = np.sqrt(w)
    K = gram(kernel, X, **parameters)
    first = max(0, len(X) - int(n_terms))
    values, vectors = eigh(root[:, None] * (K + K.T) / 2 * root, subset_by_index=(first, len(X) - 1))
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > _RANK_TOLERANCE * max(float(values[0]), np.finfo(float).tiny)
    if not kept.any():
        raise ValueError("the kernel has no positive eigenvalue on these points")
    vectors = vectors[:, kept] * np.sign(
        vectors[np.abs(vectors[:, kept]).argmax(axis=0), np.flatnonzero(kept)]
    )
    return MercerSpectrum(values[kept], vectors / root[:, None], X, w, kernel, parameters)


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
