r"""Kernel logistic regression: a classifier with the kernel trick and with probabilities.

.. math:: \min_{f_c \in H,\, b}\ \tfrac12\sum_c\lVert f_c\rVert_H^2 + C\sum_i -\ln p(y_i \mid x_i),
          \qquad p(c \mid x) \propto e^{f_c(x) + b_c}.

On landmarks Z (Nystroem) :math:`f(x) = \langle w, \Phi(x)\rangle` with

.. math:: \Phi(x) = \Lambda^{-1/2}U^\top k_Z(x), \qquad K_{ZZ} = U\Lambda U^\top, \qquad
          \lVert f\rVert_H = \lVert w\rVert.

The problem in w is ordinary logistic regression, and scikit-learn's Newton solver is used for it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.learn._inputs import checked_weights
from pindown.learn.kernels._kernel_logistic_newton import Task, solve
from pindown.learn.kernels.gram_matrix import gram, square
from pindown.learn.kernels.mercer import is_semidefinite
from pindown.learn.kernels.tuning import AUTO_LANDMARKS, MAX_EXACT_SAMPLES, MAX_NEWTON_WEIGHTS
from pindown.validation import integer, is_integer, is_number, number, refuse

_MAX_SIZE = 1e100  # its square is still a float64
# Eigenvalues of the landmarks' Gram matrix below this share of the largest are rounding.
_RANK = 1e-12


@dataclass(frozen=True)
class Convergence:
    r"""How close a fit is to the one minimiser of its convex objective.

    Attributes:
        objective: Value reached, :math:`\frac12\sum_c\lVert f_c\rVert^2 + C\sum_i\ell_i`.
        gap: The optimum is at most this much lower (a dual value, with the rounding of its sums added;
            None for landmarks).
        residual: Norm of the gradient in function space, in units of independent slopes of size C.
        n_iter: Newton steps.
        landmarks: Samples that carry the expansion, or None for all of them.

    >>> print(Convergence(12.5, 1e-13, 1e-12, 6, None))
    objective 12.5, within 1e-13 of the optimum after 6 Newton steps
    """

    objective: float
    gap: float | None
    residual: float
    n_iter: int
    landmarks: int | None

    @property
    def kind(self) -> Kind:
        """``"estimate"`` for the whole expansion (a proof in float64), ``"heuristic"`` for landmarks."""
        return "estimate" if self.landmarks is None else "heuristic"

    def __str__(self) -> str:
        if self.gap is None:
            return f"objective {self.objective:.6g} on {self.landmarks} landmarks, {self.n_iter} steps"
        return (
            f"objective {self.objective:.6g}, within {self.gap:.2g} of the optimum "
            f"after {self.n_iter} Newton steps"
        )


class KernelLogisticClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Logistic regression in the function space of a kernel, for two or more classes.

    Args:
        kernel: A name that scikit-learn knows (``"rbf"``, ``"linear"``, ``"poly"``, ``"laplacian"``,
            ...), a kernel object of :mod:`sklearn.gaussian_process.kernels` or of this package, a
            function of two sample matrices, or ``"precomputed"``.
        C: Weight of the data, as in :class:`sklearn.svm.SVC`; with the mean loss and
            :math:`\frac\lambda2\lVert f\rVert^2` it is :math:`1/(n\lambda)`.
        gamma: For named kernels: ``"scale"`` for one over features times variance, ``"auto"`` for one
            over features, or a number.
        degree: For ``"poly"``.
        coef0: For ``"poly"`` and ``"sigmoid"``.
        fit_intercept: Whether there is an offset, which is not penalised.
        n_components: Landmarks (Nystroem): None expands over all samples, a number over so many drawn
            at random, ``"auto"`` draws 1000 above 4000 samples.
        class_weight: None, ``"balanced"`` or a dictionary.
        tol: Norm of the gradient at which to stop, in units of independent slopes of size C.
        max_iter: Newton steps.
        random_state: Seed of the landmarks.
        verbose: 1 prints how the fit ended.

    Attributes:
        classes_: The classes.
        dual_coef_: Coefficients, (1, m) for two classes and (k, m) for more, of the kernel at the
            samples or landmarks.
        intercept_: Offsets.
        X_fit_: Samples or landmarks that carry the expansion (None if the kernel is precomputed).
        n_iter_: Newton steps.
        convergence_: A :class:`Convergence`.

    Example:
        >>> X = [[-2.0], [-1.0], [0.0], [1.0], [2.0]]
        >>> model = KernelLogisticClassifier(C=100.0).fit(X, ["out", "in", "in", "in", "out"])
        >>> model.predict([[0.3], [2.5]]).tolist()
        ['in', 'out']
        >>> bool(model.convergence_.gap < 1e-6)
        True

    Lecture course, slides on kernel logistic regression; the Newton step is ours.
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        C: float = 1.0,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        n_components: Any = "auto",
        class_weight: Any = None,
        tol: float = 1e-9,
        max_iter: int = 100,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.n_components = n_components
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelLogisticClassifier:
        """Find the minimiser."""
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        mass = checked_weights(sample_weight, X)
        kept = mass > 0
        if self._precomputed:
            if X.shape[0] != X.shape[1]:
                raise ValueError(
                    f"a precomputed kernel must be a square matrix of all pairs; got shape {X.shape}"
                )
            square(X, "a precomputed kernel")
            self._columns = np.flatnonzero(kept)
            X = X[:, kept]
        X, y, mass = X[kept], y[kept], mass[kept]
        if len(y) == 0:
            raise ValueError("all sample weights are zero; give at least one sample a positive weight")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"The classifier needs samples of two classes, y has one class: {self.classes_[0]!r}"
            )
        mass = (
            mass
            * compute_class_weight(self.class_weight, classes=self.classes_, y=y, sample_weight=mass)[
                codes
            ]
        )
        self._gamma = self._bandwidth(X, mass)
        targets = np.eye(len(self.classes_))[codes]
        if len(self.classes_) == 2:
            targets = targets[:, 1:]
        self._fit(X, targets, float(self.C) * mass)
        self.n_iter_ = self.convergence_.n_iter
        if self.verbose:
            print(self.convergence_)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the outputs: log odds of the second class for two classes, (n, k) scores for more."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        K = X[:, self._columns] if self._precomputed else self._gram(X, self.X_fit_)
        outputs = K @ self.dual_coef_.T + self.intercept_
        return outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of the probability of each class."""
        from scipy.special import log_softmax

        outputs = self.decision_function(X)
        if outputs.ndim == 1:
            outputs = np.c_[np.zeros_like(outputs), outputs]
        return np.asarray(log_softmax(outputs, axis=1))

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each sample."""
        outputs = self.decision_function(X)
        return self.classes_[(outputs > 0).astype(int) if outputs.ndim == 1 else outputs.argmax(axis=1)]

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _gram(self, X: Array, Z: Array) -> Array:
        if isinstance(self.kernel, str):
            return gram(self.kernel, X, Z, gamma=self._gamma, degree=self.degree, coef0=self.coef0)
        return gram(self.kernel, X, Z)

    def _bandwidth(self, X: Array, mass: Array) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.gamma == "auto":
            return 1.0 / X.shape[1]
        # Weights count as repetitions, so that a sample of weight two is two samples.
        mean = np.average(X, weights=mass, axis=0).mean()
        variance = float(np.average(((X - mean) ** 2).mean(axis=1), weights=mass))
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0

    def _fit(self, X: Array, targets: Array, weights: Array) -> None:
        landmarks = self._landmarks(len(X))
        if landmarks is None:
            K = self._definite(X if self._precomputed else self._gram(X, X))
            found = solve(
                Task(K, targets, weights, bool(self.fit_intercept)),
                tolerance=self.tol,
                max_iter=self.max_iter,
            )
            self.X_fit_: Any = None if self._precomputed else X
            self.dual_coef_, self.intercept_ = found.coefficients.T.copy(), found.offset
            self.convergence_ = Convergence(
                found.objective, found.gap, found.residual, found.n_iter, None
            )
            if found.interrupted:
                warnings.warn("interrupted: the last Newton step's function is kept", stacklevel=3)
            elif not found.converged:
                warnings.warn(
                    f"the gradient fell to {found.residual:.2g} only and the objective to within "
                    f"{found.gap:.2g} of its optimum, after {found.n_iter} steps; "
                    "lower C, raise max_iter, or accept it with a larger tol",
                    ConvergenceWarning,
                    stacklevel=3,
                )
            return
        chosen = check_random_state(self.random_state).choice(len(X), landmarks, replace=False)
        self.X_fit_ = X[np.sort(chosen)]
        whiten = landmark_map(self._gram(self.X_fit_, self.X_fit_))
        features = self._gram(X, self.X_fit_) @ whiten
        fitted = fit_on_landmarks(
            features, targets, weights, bool(self.fit_intercept), self.tol, self.max_iter
        )
        self.dual_coef_, self.intercept_ = fitted.coefficients @ whiten.T, fitted.offset
        self.convergence_ = Convergence(
            fitted.objective, None, fitted.residual, fitted.n_iter, landmarks
        )

    def _definite(self, K: Array) -> Array:
        """Return the matrix if the problem is convex with it; else say that it is not."""
        square(K, "the kernel")
        if not is_semidefinite(K):
            raise ValueError(
                "the kernel is not positive semi-definite on these samples, so there is no minimiser; "
                "choose another one, or add a small number to a precomputed diagonal"
            )
        return K

    def _landmarks(self, n: int) -> int | None:
        if self._precomputed or self.n_components is None:
            return None
        if isinstance(self.n_components, str):
            return AUTO_LANDMARKS if n > MAX_EXACT_SAMPLES else None
        return int(self.n_components) if self.n_components < n else None

    def _check_parameters(self) -> None:
        if not (isinstance(self.kernel, str) or callable(self.kernel)):
            raise TypeError(
                f"kernel must be a name, a kernel object or a function; got {type(self.kernel).__name__}"
            )
        for name in ("C", "tol"):
            number(name, getattr(self, name), 1 / _MAX_SIZE, _MAX_SIZE)
        named = isinstance(self.gamma, str) and self.gamma in ("scale", "auto")
        if not named and not (is_number(self.gamma, 0.0) and self.gamma > 0):
            refuse("gamma", "'scale', 'auto' or a positive number", self.gamma)
        integer("max_iter", self.max_iter)
        drawn = isinstance(self.n_components, str) and self.n_components == "auto"
        if self.n_components is not None and not drawn and not is_integer(self.n_components):
            refuse("n_components", "None, 'auto' or a positive integer", self.n_components)


@dataclass(frozen=True)
class Fit:
    """Weights (k, m), offsets (k,) and how they were reached."""

    coefficients: Array
    offset: Array
    objective: float
    residual: float
    n_iter: int


def landmark_map(K: Array) -> Array:
    r"""Return :math:`U\Lambda^{-1/2}`, which turns kernel values at the landmarks into features.

    >>> M = landmark_map(np.array([[4.0, 0.0], [0.0, 1.0]]))
    >>> (M.T @ np.array([[4.0, 0.0], [0.0, 1.0]]) @ M).round(12).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    kept = values > _RANK * max(float(values[-1]), np.finfo(float).tiny)
    if not kept.any():
        raise ValueError(
            "the kernel is zero on all landmarks; scale the samples or choose another kernel"
        )
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def fit_on_landmarks(
    features: Array, targets: Array, weights: Array, intercept: bool, tolerance: float, max_iter: int
) -> Fit:
    """Fit weights on features; targets are (n, 1) of 0 and 1 for two classes, one-hot for more."""
    from sklearn.linear_model import LogisticRegression

    binary = targets.shape[1] == 1
    labels = targets[:, 0].astype(int) if binary else targets.argmax(axis=1)
    size = features.shape[1] * targets.shape[1]
    solver = "newton-cholesky" if size <= MAX_NEWTON_WEIGHTS else "lbfgs"
    scale = float(weights.max())
    model = LogisticRegression(
        C=scale, tol=tolerance if solver == "newton-cholesky" else max(tolerance, 1e-5),
        solver=solver, fit_intercept=intercept,
        max_iter=max_iter if solver == "newton-cholesky" else 10 * max_iter,
    )  # fmt: skip
    model.fit(features, labels, sample_weight=weights / scale)
    offset = np.broadcast_to(model.intercept_, len(model.coef_)).astype(np.float64)
    log_p = model.predict_log_proba(features)
    gradient = _gradient(features, targets, weights, model.coef_, np.exp(log_p))
    losses = -log_p[np.arange(len(labels)), labels]
    objective = float(0.5 * np.sum(model.coef_**2) + weights @ losses)
    return Fit(
        model.coef_, offset, objective, float(np.abs(gradient).max()) / scale, int(model.n_iter_.max())
    )


def _gradient(features: Array, targets: Array, weights: Array, coefficients: Array, p: Array) -> Array:
    p = p[:, 1:] if targets.shape[1] == 1 else p
    return np.asarray(coefficients + (weights[:, None] * (p - targets)).T @ features)
