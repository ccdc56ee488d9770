r"""Exact segmented regression for scikit-learn, with the number of pieces chosen by BIC or by folds.

A fit with K pieces has 2K coefficients: K slopes, one level, K - 1 breakpoints. With n points of equal
weight and mean loss m,

.. math:: \mathrm{BIC} = n \log m + 2 K \log n \quad\text{or}\quad 2 n \log m + 2 K \log n

for squared loss (normal errors; used for Huber's loss too) and for absolute and quantile loss (Laplace
errors, symmetric or not). A weight counts as so many points,
so n is the sum of the weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from pindown.affine import Array
from pindown.compiling import time_limit
from pindown.deadline import Deadline, checked_budget
from pindown.extras import require
from pindown.learn._inputs import checked_weights
from pindown.learn.segmented._problem import Function, SegmentedFit, as_network, solve
from pindown.learn.segmented.inference import Breakpoint, breakpoints
from pindown.learn.segmented.losses import LOSSES, Loss
from pindown.validation import choice, integer, number, positive, refuse

SELECTIONS = ("bic", "cv")
# A squared loss below this fraction of that of a constant is rounding: more pieces add nothing.
_EXACT = 1e-22
# Space on both sides of what is drawn, as a fraction of its width.
_MARGIN = 0.05


class SegmentedRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""The best continuous piecewise-linear function of one variable, with a proof that it is the best.

    .. math::

        \min \Bigl\{ \sum_i w_i\, \ell\bigl(f(x_i), y_i\bigr) :
        f \text{ continuous, piecewise linear, at most } K \text{ pieces} \Bigr\}

    Breakpoints are free: they may lie between data points. The minimum is over all of them, not a
    local one.

    Args:
        n_pieces: K, or None to choose it.
        loss: ``"squared"``, ``"absolute"`` (robust to outliers), ``"quantile"`` or ``"huber"`` (squared
            for residuals up to ``threshold``, absolute beyond).
        selection: How K is chosen if it is None: ``"bic"`` or ``"cv"`` (cross-validation).
        max_pieces: Largest K tried.
        cv: Folds of the cross-validation: a number (shuffled), a splitter, or pairs of index arrays.
        feature: Column of X to use. None takes one variable only, of shape (n,) or (n, 1); a number also
            takes an X with more columns and leaves the others out.
        budget: Seconds for the whole fit, None for no limit. When time is up, the best fit so far is
            kept; ``lower_bound_``, ``gap_`` and ``optimal_`` say how good it is.
        random_state: Shuffles the folds.
        quantile: :math:`\tau`, between 0 and 1, which quantile of y to fit with ``"quantile"``.
        threshold: :math:`\delta` of ``"huber"``, in the units of y.

    Attributes:
        breakpoints_: Where the slope changes, ascending.
        values_: The function at the breakpoints.
        slopes_: Slope of each piece.
        intercepts_: Value of each piece's line at 0.
        n_pieces_: Number of pieces, at most K: a breakpoint that does not bend is not counted.
        best_loss_: Sum of the weighted losses.
        lower_bound_: No such function has a smaller sum, by a search in float64 with margins.
        gap_: ``best_loss_ - lower_bound_``.
        optimal_: Whether the search ended with a gap of at most 1e-6 of the loss, or every point is
            fitted up to the rounding error of evaluating the function there. The search is in float64
            with margins, not in directed arithmetic. Where errors are below about 1e-4 of the spread of
            y and above rounding, its sums cannot tell fits apart, and this stays False.
        n_programs_: Exact programs solved to prove it.
        network_: The same function as a :class:`~pindown.network.ReluNetwork` with at most
            ``n_pieces_`` units.
        selection_path_: One :class:`~pindown.learn.segmented.Trial` for each K tried.

    Example:
        The distance to 1:

        >>> x = [-1.0, 0.0, 0.5, 2.0, 3.0]
        >>> model = SegmentedRegressor(n_pieces=2).fit(x, [2.0, 1.0, 0.5, 1.0, 2.0])
        >>> model.breakpoints_.round(6), model.slopes_.round(6), model.optimal_
        (array([1.]), array([-1.,  1.]), True)
        >>> model.network_
        ReluNetwork(1 -> 2 -> 1, 7 parameters)

    Mukherjee 2020, section 2.4, (2.6): the problem, for one input. It is not the same as training a
    network of width K, as is said there; see the guide.
    """

    def __init__(
        self,
        n_pieces: int | None = None,
        *,
        loss: str = "squared",
        selection: str = "bic",
        max_pieces: int = 6,
        cv: Any = 5,
        feature: int | None = None,
        budget: float | None = 60.0,
        random_state: Any = None,
        quantile: float = 0.5,
        threshold: float = 1.35,
    ) -> None:
        self.n_pieces = n_pieces
        self.loss = loss
        self.selection = selection
        self.max_pieces = max_pieces
        self.cv = cv
        self.feature = feature
        self.budget = budget
        self.random_state = random_state
        self.quantile = quantile
        self.threshold = threshold

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = self.feature is None
        tags.input_tags.two_d_array = self.feature is not None
        tags.regressor_tags.poor_score = True  # one column cannot explain what depends on others
        return tags

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> SegmentedRegressor:
        """Find the best function.

        Args:
            X: The variable, of shape (n,) or (n, 1), in any order, values may repeat.
            y: Targets.
            sample_weight: Weights, not negative; a point of weight zero is as good as absent.

        Returns:
            The estimator itself.

        Raises:
            ValueError: If X has several columns, or numbers or parameters are out of range.
        """
        self._check_parameters()
        x = self._one_variable(X, reset=True)
        if y is None:
            raise ValueError("SegmentedRegressor requires y to be passed, but the target y is None.")
        target = column_or_1d(
            check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"), warn=True
        )
        check_consistent_length(x, target)
        w = checked_weights(sample_weight, x)
        fit, path = self._solve(x, target, w)
        if not np.isfinite(fit.loss):
            raise ValueError(
                "the loss of these numbers exceeds the largest float; divide y by its scale."
            )
        self._keep(fit, path)
        return self

    def _solve(self, x: Array, y: Array, w: Array) -> tuple[SegmentedFit, list[Trial]]:
        deadline = Deadline.after(self.budget)
        with time_limit(deadline):
            fit, path = self._solve_until(deadline, x, y, w)
        if fit.interrupted:
            warnings.warn(
                "interrupted: the best fit so far is kept, with the bound proved so far", stacklevel=3
            )
        return fit, path

    def _solve_until(
        self, deadline: Deadline, x: Array, y: Array, w: Array
    ) -> tuple[SegmentedFit, list[Trial]]:
        if self.n_pieces is not None:
            fit = solve(x, y, w, int(self.n_pieces), self._loss(), deadline)
            return fit, [Trial(int(self.n_pieces), fit.loss, fit.lower_bound, fit.loss)]
        # One piece fewer than distinct points interpolates: no more are worth trying.
        largest = min(int(self.max_pieces), max(len(np.unique(x[w > 0])) - 1, 1))
        if self.selection == "bic":
            return by_bic(x, y, w, self._loss(), largest, deadline)
        folds = list(self._folds(x, y))
        return by_cross_validation(x, y, w, self._loss(), largest, deadline, folds)

    def _loss(self) -> Loss:
        """Return the loss with its number, the others left at their defaults."""
        if self.loss == "quantile":
            return Loss("quantile", quantile=float(self.quantile))
        if self.loss == "huber":
            return Loss("huber", threshold=float(self.threshold))
        return Loss(self.loss)

    def _folds(self, x: Array, y: Array) -> Any:
        from sklearn.model_selection import KFold, check_cv

        if not isinstance(self.cv, int):
            return check_cv(self.cv).split(x, y)
        if len(x) < 2:
            return [(np.arange(len(x)), np.arange(len(x)))]
        shuffled = KFold(min(self.cv, len(x)), shuffle=True, random_state=self.random_state)
        return shuffled.split(x, y)

    def _keep(self, fit: SegmentedFit, path: list[Trial]) -> None:
        function = fit.function
        self._function = function
        self.slopes_ = function.slopes
        bends = len(function.slopes) > 1
        self.breakpoints_ = function.knots if bends else np.empty(0)
        self.values_ = function.values if bends else np.empty(0)
        anchors = np.maximum(np.arange(len(function.slopes)) - 1, 0)
        self.intercepts_ = function.values[anchors] - function.slopes * function.knots[anchors]
        self.n_pieces_ = fit.n_pieces
        self.best_loss_, self.lower_bound_ = fit.loss, fit.lower_bound
        self.gap_ = fit.loss - fit.lower_bound
        self.optimal_ = fit.proved
        self.n_programs_ = fit.n_programs
        column = 0 if self.feature is None else self.feature % self.n_features_in_
        self.network_ = as_network(function, column, self.n_features_in_)
        self.selection_path_ = path

    def predict(self, X: ArrayLike) -> Array:
        """Evaluate the function; outside the data its outer pieces go on."""
        check_is_fitted(self, "network_")
        return self._function(self._one_variable(X, reset=False))

    def breakpoint_intervals(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        confidence: float = 0.95,
    ) -> list[Breakpoint]:
        """Return each breakpoint with its standard error, confidence interval and p-value.

        They are asymptotic, for independent errors of one variance around a function with as many pieces
        as the fit has; the p-value is Davies' bound for no change of slope there. Choosing the number of
        pieces on the same data is not accounted for.

        Args:
            X: The variable that was fitted.
            y: The targets that were fitted.
            sample_weight: The weights that were used.
            confidence: Probability of each interval, between 0 and 1.

        Raises:
            ValueError: If the loss is not squared, or the data do not fit the estimator.

        >>> rng = np.random.default_rng(0)
        >>> x = np.linspace(0, 10, 200)
        >>> y = np.abs(x - 4) + 0.1 * rng.normal(size=200)
        >>> (bend,) = SegmentedRegressor(2).fit(x, y).breakpoint_intervals(x, y)
        >>> round(bend.at, 1), bend.lower < 4 < bend.upper, round(bend.change, 1), bend.p_value < 1e-9
        (4.0, True, 2.0, True)
        """
        check_is_fitted(self, "network_")
        confidence = number("confidence", confidence, 0.0, 1.0, above=True, below=True)
        if self.loss != "squared":
            refuse("loss", '"squared" for intervals of breakpoints', self.loss)
        x = self._one_variable(X, reset=False)
        target = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))
        check_consistent_length(x, target)
        return breakpoints(self._function, x, target, checked_weights(sample_weight, x), confidence)

    def plot(self, X: ArrayLike | None = None, y: ArrayLike | None = None, ax: Any = None) -> Any:
        """Draw the function, its breakpoints, and the data if given; return the axes."""
        check_is_fitted(self, "network_")
        x = None if X is None else self._one_variable(X, reset=False)
        return draw(self._function, x, y, ax)

    def _one_variable(self, X: ArrayLike, *, reset: bool) -> Array:
        """Return the variable as floats, and remember (or compare) what X looks like."""
        if self.feature is not None:
            values = validate_data(self, X, dtype=np.float64, reset=reset)
            column = self.feature
            if not -values.shape[1] <= column < values.shape[1]:
                raise ValueError(
                    f"X has {values.shape[1]} columns; there is no column feature={column}."
                )
            return values[:, column]
        if reset:
            self.n_features_in_ = 1
        values = check_array(X, ensure_2d=False, dtype=np.float64, input_name="X")
        if (values.ndim == 2 and values.shape[1] != 1) or values.ndim == 0:
            raise ValueError(
                f"X must hold one variable, of shape (n,) or (n, 1); got {values.shape}. "
                "Say which column with feature=; for several variables see ExactReluRegressor."
            )
        return values.ravel()

    def _check_parameters(self) -> None:
        if self.n_pieces is not None:
            integer("n_pieces", self.n_pieces)
        integer("max_pieces", self.max_pieces)
        if isinstance(self.cv, Real):
            integer("cv", self.cv, least=2)
        choice("loss", self.loss, LOSSES)
        if self.loss == "quantile":
            number("quantile", self.quantile, 0.0, 1.0, above=True, below=True)
        if self.loss == "huber":
            positive("threshold", self.threshold)
        choice("selection", self.selection, SELECTIONS)
        feature: Any = self.feature
        if feature is not None and not isinstance(feature, Integral):
            refuse("feature", "the number of a column, or None", feature)
        if self.budget is not None:
            checked_budget(self.budget, zero=True)


@dataclass(frozen=True)
class Trial:
    """One number of pieces: its fit, a lower bound on its least loss, and its score (less is better)."""

    n_pieces: int
    loss: float
    lower_bound: float
    score: float


def by_bic(
    x: Array, y: Array, w: Array, loss: Loss, max_pieces: int, deadline: Deadline
) -> tuple[SegmentedFit, list[Trial]]:
    """Return the fit with the least BIC; for the others it is enough to prove that theirs is no less."""
    power = 1.0 if loss.is_quadratic else 2.0
    n = scale = float(w.sum())
    level = np.log(max(n, 2.0))
    spread = float(w @ (y - np.average(y, weights=w)) ** 2)
    exact = _EXACT * spread if loss.is_quadratic else np.sqrt(_EXACT * spread * scale)
    tried: list[tuple[SegmentedFit, Trial]] = []
    best = np.inf
    for K in range(1, max_pieces + 1):
        # The loss at which K pieces would win.
        cap = scale * np.exp((best - 2 * K * level) / (power * n)) if tried else np.inf
        fit = solve(x, y, w, K, loss, deadline.share(1 / (max_pieces + 1 - K)), cap)
        score = -np.inf
        if fit.loss > exact:
            score = power * n * np.log(fit.loss / scale) + 2 * K * level
        tried.append((fit, Trial(K, fit.loss, fit.lower_bound, score)))
        best = min(best, score)
        if fit.loss <= exact or fit.interrupted:
            break
    chosen, _ = min(tried, key=lambda pair: pair[1].score)
    return chosen, [trial for _, trial in tried]


def by_cross_validation(
    x: Array,
    y: Array,
    w: Array,
    loss: Loss,
    max_pieces: int,
    deadline: Deadline,
    folds: Sequence[tuple[Any, Any]],
) -> tuple[SegmentedFit, list[Trial]]:
    """Return the fit with the least loss on held-out folds (train, test), refitted on all points."""
    fits = max_pieces * len(folds) + 1  # still to come; they share the time fairly
    trials: list[Trial] = []
    for K in range(1, max_pieces + 1):
        held_out = trained = bound = 0.0
        for train, test in folds:
            if not w[train].any():
                continue
            fit = solve(x[train], y[train], w[train], K, loss, deadline.share(1 / fits))
            if fit.interrupted:  # on a part of the points
                pieces = min(trials, key=lambda trial: trial.score).n_pieces if trials else K
                fit = solve(x, y, w, pieces, loss, Deadline.after(0.0))
                return replace(fit, interrupted=True), trials
            fits -= 1
            held_out += float(w[test] @ loss(y[test] - fit.function(x[test])))
            trained, bound = trained + fit.loss, bound + fit.lower_bound
        trials.append(Trial(K, trained, bound, held_out))
    best = min(trials, key=lambda trial: trial.score)
    return solve(x, y, w, best.n_pieces, loss, deadline.share(1 / fits)), trials


def draw(function: Function, x: Array | None, y: ArrayLike | None, ax: Any) -> Any:
    """Draw a function over the data (or around its breakpoints) on the axes, or on new ones."""
    if ax is None:
        require("matplotlib")
        from matplotlib import pyplot as plt

        _, ax = plt.subplots()
    bends = len(function.slopes) > 1
    shown = function.knots if x is None else np.r_[x, function.knots] if bends else x
    low, high = float(shown.min()), float(shown.max())
    margin = _MARGIN * (high - low) if high > low else 1.0
    ends = np.array([low - margin, *(function.knots if bends else ()), high + margin])
    if x is not None and y is not None:
        ax.plot(x, np.asarray(y, dtype=float), ".", color="0.6", markersize=3, zorder=1, label="data")
    ax.plot(ends, function(ends), color="C0", zorder=2, label=f"{len(function.slopes)} pieces")
    if bends:
        ax.plot(function.knots, function.values, "o", color="C3", zorder=3, label="breakpoints")
    ax.legend()
    return ax
