r"""A scikit-learn estimator of linear distillation: fit a teacher's logits, know what was learnt."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.learn.distillation.deep_linear import (
    DeepLimit,
    balanced_factors,
    deep_limit,
    deep_linear_flow,
    deep_start,
)
from pindown.learn.distillation.loss import distillation_descent
from pindown.learn.distillation.student import (
    Labels,
    Student,
    answers,
    as_logits,
    log_probabilities,
    minimum_norm,
    probabilities,
)
from pindown.learn.distillation.tuning import MAX_MISS_AFTER_DESCENT
from pindown.network import ReluNetwork
from pindown.validation import choice, integer, number


class LinearDistiller(BaseEstimator):  # type: ignore[misc]
    r"""Distil a teacher's logits into a linear student.

    With one layer from zero, gradient flow on the distillation loss ends at :math:`\hat w = X^+ z`, the
    interpolant of the teacher's logits z of least norm; :class:`LinearDistiller` takes it at once. For
    a linear teacher it is the teacher's projection on the span of the inputs, and the teacher itself
    when they span the space.

    It learns from logits and answers with classes: ``decision_function`` returns logits,
    ``predict_proba`` probabilities, ``predict`` the number of the likeliest class. ``score`` is the
    share of inputs on which it answers as the teacher does: one minus the transfer risk.

    Args:
        labels: What y holds: ``"logit"``, or ``"probability"`` (their log-odds are cut at 30).
        solver: ``"closed"``, or ``"gradient"``: descend on the cross-entropy from zero. Where the logits
            cannot be met, the first has least squared error of logits, the second least cross-entropy.
        depth: Layers of the student. From 2 on the exact limit of a deep linear student is returned,
            for one column of logits that can be met.
        start_norm: Norm of the deep student's weights at the start; their direction is random.
        fit_intercept: Whether there is an intercept, as the weight of an input that is always one.
        rcond: The closed form ignores singular values of X below this share of the largest; None is
            rounding. A larger value steadies a student with about as many inputs as dimensions.
        tol: The solver ``"gradient"`` stops when the gradient is this share of the first.
        max_iter: Its most steps.
        random_state: Seed of the deep student's start.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal.

    Attributes:
        coef_: Weights, (d,), or (k, d) for k columns of logits (rows of logits are centred).
        intercept_: The intercept, or k of them.
        rank_: Rank of the inputs (with the constant one, if there is an intercept).
        residual_: Largest distance of a logit from the teacher's, as a share of the teacher's largest.
        interpolates_: Whether the closed form meets the teacher's logits.
        n_iter_: Steps of the gradient solver; 0 for the closed form.
        limit_: :class:`DeepLimit` of a deep student, else None.

    >>> X = np.random.default_rng(0).standard_normal((5, 3))
    >>> LinearDistiller().fit(X, X @ [1.0, -2.0, 0.5]).coef_.round(9)
    array([ 1. , -2. ,  0.5])

    Phuong 2021, Theorems 5.1 and 5.2.
    """

    def __init__(
        self,
        *,
        labels: Labels = "logit",
        solver: Literal["closed", "gradient"] = "closed",
        depth: int = 1,
        start_norm: float = 1e-3,
        fit_intercept: bool = False,
        rcond: float | None = None,
        tol: float = 1e-13,
        max_iter: int = 100_000,
        random_state: Any = None,
        verbose: int = 1,
    ) -> None:
        self.labels = labels
        self.solver = solver
        self.depth = depth
        self.start_norm = start_norm
        self.fit_intercept = fit_intercept
        self.rcond = rcond
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> LinearDistiller:
        """Distil.

        Args:
            X: Inputs, (n, d); they need no labels but the teacher's answers.
            y: The teacher's logits or probabilities, (n,) for class 1 of two, or (n, k).
        """
        choice("solver", self.solver, ("closed", "gradient"))
        depth = integer("depth", self.depth)
        if self.rcond is not None:
            number("rcond", self.rcond, 0.0, 1.0, below=True)
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        z, rows = as_logits(y, self.labels), self._extended(X)
        student = minimum_norm(rows, z, rcond=self.rcond)
        self.limit_: DeepLimit | None = None
        self.n_iter_ = 0
        weights = self._deep(rows, z, depth) if depth > 1 else self._shallow(rows, z, student)
        self.rank_, self.interpolates_ = student.rank, student.interpolates
        largest = float(np.abs(z).max())
        off = float(np.abs(rows @ weights - z).max())
        self.residual_ = off / largest if largest else off
        # Whoever gave a tolerance this large asked for no more; steps that ran out were named above.
        strict = (
            self.solver == "gradient"
            and self.tol < MAX_MISS_AFTER_DESCENT
            and self.n_iter_ < self.max_iter
        )
        if strict and student.interpolates and self.residual_ > MAX_MISS_AFTER_DESCENT:
            warnings.warn(
                f"descent ended early: logits that can be met are missed by {self.residual_:.2g} of "
                "the largest, for the loss is flat where answers are sure; lower tol, or use "
                "solver='closed'.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.coef_ = weights[: X.shape[1]].T.copy()
        constant = weights[X.shape[1]] if self.fit_intercept else np.zeros(z.shape[1:])
        self.intercept_ = float(constant) if z.ndim == 1 else np.array(constant)
        return self

    def _extended(self, X: Array) -> Array:
        return np.column_stack([X, np.ones(len(X))]) if self.fit_intercept else X

    def _shallow(self, rows: Array, z: Array, student: Student) -> Array:
        if self.solver == "closed":
            return student.weights
        done = distillation_descent(
            rows, z, whitened=True, tol=self.tol, max_iter=self.max_iter, verbose=self.verbose
        )
        self.n_iter_ = done.n_iter
        if not done.converged:
            warnings.warn(
                f"the gradient is still {done.gradient:.2g} of the first after {done.n_iter:,} steps; "
                "scale the inputs, raise max_iter or tol, or use solver='closed'.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return done.weights

    def _deep(self, rows: Array, z: Array, depth: int) -> Array:
        if z.ndim != 1:
            raise ValueError(
                f"a deep student takes one column of logits, (n,); got shape {z.shape}; fit one student "
                "for each column, or depth=1."
            )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        start = deep_start(rows, z, self.start_norm, seed)
        self.limit_ = deep_limit(rows, z, start, depth)
        if self.solver == "closed":
            return self.limit_.weights
        return deep_linear_flow(rows, z, balanced_factors(start, depth)).weights

    def decision_function(self, X: Any) -> Array:
        """Return the student's logits, (n,) or (n, k)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(rows @ self.coef_.T + self.intercept_)

    def predict(self, X: Any) -> Array:
        """Return the number of the likeliest class; of two, 1 where the logit is not negative."""
        return answers(self.decision_function(X))

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, (n, 2) or (n, k)."""
        return probabilities(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities."""
        return log_probabilities(self.decision_function(X))

    def score(self, X: Any, y: Any) -> float:
        """Return the share of inputs on which student and teacher have the same answer.

        Args:
            X: Inputs, (n, d).
            y: The teacher's logits or probabilities, as in ``fit``.
        """
        own, z = self.decision_function(X), as_logits(y, self.labels)
        # Of two classes one column says it all, as (n,) or as (n, 1).
        if len(z) != len(own) or z.reshape(len(z), -1).shape != own.reshape(len(own), -1).shape:
            raise ValueError(
                f"y must hold the teacher's answers of shape {own.shape}, one row for each of "
                f"{len(own)} inputs; got {z.shape}."
            )
        return float(np.mean(answers(own) == answers(z)))

    @property
    def network_(self) -> ReluNetwork:
        """The student as a :class:`pindown.ReluNetwork` of one affine layer."""
        check_is_fitted(self)
        return ReluNetwork.from_layers([(np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_))])
