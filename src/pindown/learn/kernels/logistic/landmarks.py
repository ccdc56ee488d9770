r"""Kernel logistic regression on landmarks.

:math:`f(x) = \langle w, \Phi(x)\rangle` with Nystroem's features.

.. math:: \Phi(x) = \Lambda^{-1/2}U^\top k_Z(x), \qquad K_{ZZ} = U\Lambda U^\top, \qquad \lVert
          f\rVert_H = \lVert w\rVert.

The problem in w is ordinary logistic regression, and scikit-learn's Newton solver is used for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pindown.affine import Array

# Eigenvalues of the landmarks' Gram matrix below this share of the largest are rounding.
_RANK = 1e-12
# Features times classes up to which a Newton step, with its whole Hessian, beats quasi-Newton steps.
_NEWTON_UP_TO = 2000


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
    solver = "newton-cholesky" if size <= _NEWTON_UP_TO else "lbfgs"
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
