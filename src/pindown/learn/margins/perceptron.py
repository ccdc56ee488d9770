r"""The perceptron, with its mistake bound checked while it runs.

.. math:: \hat y = 1 \text{ iff } \langle w, x\rangle > 0, \qquad w \leftarrow w + y x \text{ on a
          mistake}.

After t mistakes :math:`w/t` lies in the convex hull of the signed samples :math:`y_i x_i`. Hence, for
every unit vector u with margin :math:`\gamma`,
:math:`\gamma t \le \langle u, w\rangle \le \lVert w\rVert \le R\sqrt t`: at most :math:`(R/\gamma)^2`
mistakes, in any order of the samples, and no separator has a margin above :math:`\lVert w\rVert/t`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.learn.margins.tuning import PERCEPTRON_BLOCK
from pindown.text import rounded_up
from pindown.validation import integer, positive

_MAX_SIZE = 1e100  # a sample's products with sums of samples are still floats
_SLACK = 1e-9  # relative rounding of norms and margins that were summed over many samples


@dataclass(frozen=True)
class MistakeGuarantee:
    r"""What the perceptron's theorem says about the samples seen so far.

    Attributes:
        mistakes: Mistakes made, which are the updates.
        radius: Largest norm of a sample, in the coordinates of the algorithm.
        margin_lower: A margin that some separator has (the given one, or that of the fitted vector); 0
            if none is known.
        margin_upper: No separator has a larger margin, :math:`\lVert w\rVert/t`; infinite before a
            mistake.
        assumed: Whether ``margin_lower`` was given by the caller rather than found on the data.

    >>> print(MistakeGuarantee(14, 1.0, 0.1, 0.2, False))
    14 mistakes <= (R/gamma)^2 = 100, as proved for a margin of 0.1; no separator has more than 0.2
    """

    mistakes: int
    radius: float
    margin_lower: float
    margin_upper: float
    assumed: bool

    @property
    def bound(self) -> float:
        """The most mistakes possible, whole, in any order of the samples."""
        if self.margin_lower <= 0:
            return math.inf
        with np.errstate(over="ignore"):
            return float(np.floor((np.float64(self.radius) / self.margin_lower) ** 2 * (1 + _SLACK)))

    @property
    def holds(self) -> bool:
        """Whether the samples seen so far agree with the margin; False refutes it, not the theorem."""
        return self.mistakes <= self.bound and self.margin_lower <= self.margin_upper * (1 + _SLACK)

    @property
    def kind(self) -> Kind:
        """``"exact"``, a theorem on these samples; ``"heuristic"`` without a margin that holds."""
        return "exact" if self.holds and self.margin_lower > 0 else "heuristic"

    def __str__(self) -> str:
        above = f"no separator has more than {rounded_up(self.margin_upper, 6)}"
        if not self.margin_lower > 0:
            return f"{self.mistakes} mistakes; no separator is known; {above}"
        if not self.holds:
            return f"{self.mistakes} mistakes refute the margin {self.margin_lower:.6g}: {above}"
        source = "if the margin is" if self.assumed else "as proved for a margin of"
        known = f"{source} {self.margin_lower:.6g}"
        return f"{self.mistakes} mistakes <= (R/gamma)^2 = {self.bound:.6g}, {known}; {above}"


class MarginPerceptron(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Perceptron for two classes that knows how many mistakes it can make.

    Args:
        max_epochs: Passes over the samples; a pass without a mistake ends the fit.
        fit_intercept: Whether a constant feature is added (before samples are scaled).
        normalize: Whether samples are scaled to length one, which changes no sample's side.
        margin: A margin the data is known to have, in the scaled coordinates; the mistakes are then held
            against :math:`(R/\gamma)^2` as they are made. None measures it after the fit.
        verbose: 1 prints the guarantee after a fit.

    Attributes:
        coef_: Weights (1, d).
        intercept_: Offset (1,).
        classes_: The two classes; the second one is the positive one.
        n_mistakes_: Updates made.
        separated_: Whether the last pass was without a mistake.
        n_iter_: Passes made.
        guarantee_: A :class:`MistakeGuarantee`.
        refuted_at_: The mistake at which the given ``margin`` turned out to be wrong, or None.

    Example:
        >>> X = [[2.0, 1.0], [1.0, 2.0], [-1.0, -1.0], [-2.0, 0.0]]
        >>> model = MarginPerceptron(fit_intercept=False).fit(X, [1, 1, 0, 0])
        >>> model.separated_, model.n_mistakes_, model.guarantee_.holds
        (True, 1, True)

    A score of exactly zero is predicted negative. scikit-learn's ``Perceptron`` is another estimator:
    it shuffles, scales nothing and has another rule for ties.

    Lecture course, slides on the perceptron; the bound is Novikoff's (1962).
    """

    def __init__(
        self,
        max_epochs: int = 100,
        *,
        fit_intercept: bool = True,
        normalize: bool = True,
        margin: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_epochs = max_epochs
        self.fit_intercept = fit_intercept
        self.normalize = normalize
        self.margin = margin
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any) -> MarginPerceptron:
        """Pass over the samples until one pass has no mistake."""
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self._start(np.unique(y), X.shape[1])
        points, signs = self._points(X), self._signs(y)
        self._largest = float(np.linalg.norm(points, axis=1).max())
        clean, interrupted = False, False
        try:
            for _ in range(self.max_epochs):
                clean = self._one_pass(points, signs) == 0
                self.n_iter_ += 1
                if clean:
                    break
        except KeyboardInterrupt:
            interrupted = True
            warnings.warn("interrupted: the mistakes so far are kept", stacklevel=2)
        self.separated_ = clean
        if not self.separated_ and not interrupted:
            warnings.warn(
                f"{self.max_epochs} passes did not separate the classes: they cannot be separated, or "
                "their margin is small; raise max_epochs, or use a soft margin",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._report(points, signs)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> MarginPerceptron:
        """Make one pass over more samples; ``classes`` must name both classes in the first call."""
        self._check_parameters()
        first = not hasattr(self, "classes_")
        X, y = validate_data(self, X, y, dtype=np.float64, reset=first)
        check_classification_targets(y)
        if first:
            self._start(np.unique(y if classes is None else classes), X.shape[1])
        points, signs = self._points(X), self._signs(y)
        self._largest = max(self._largest, float(np.linalg.norm(points, axis=1).max()))
        self.separated_ = self._one_pass(points, signs) == 0
        self.n_iter_ += 1
        self._report(None, None)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the scores, positive for the second class."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return X @ self.coef_[0] + self.intercept_[0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each sample."""
        above = self.decision_function(X) > 0
        return self.classes_[above.astype(int)]

    def _start(self, classes: npt.NDArray[Any], n_features: int) -> None:
        if len(classes) != 2:
            found = "one class" if len(classes) == 1 else f"{len(classes)} classes"
            raise ValueError(
                f"Only binary classification is supported: two classes are needed, y has {found}. "
                "The classifier needs samples of two classes."
            )
        self.classes_ = classes
        self._w = np.zeros(n_features + bool(self.fit_intercept))
        self._largest = 0.0
        self.n_mistakes_, self.n_iter_ = 0, 0
        self.separated_ = False
        self.refuted_at_: int | None = None

    def _points(self, X: Array) -> Array:
        points = np.hstack([X, np.ones((len(X), 1))]) if self.fit_intercept else X
        if not self.normalize:
            if np.abs(points).max() > _MAX_SIZE:
                raise ValueError(
                    f"samples up to {np.abs(points).max():.3g} leave the range of floats in products; "
                    "pass normalize=True or scale them"
                )
            return points
        largest = np.abs(points).max(axis=1, keepdims=True)  # first, so that no square overflows
        points = points / np.where(largest > 0, largest, 1.0)
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        return points / np.where(lengths > 0, lengths, 1.0)

    def _signs(self, y: npt.NDArray[Any]) -> Array:
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y has the label {unknown[0]!r}, the classes are {self.classes_.tolist()}")
        return np.where(y == self.classes_[1], 1.0, -1.0)

    def _one_pass(self, points: Array, signs: Array) -> int:
        """Visit the samples in order; return the number of mistakes."""
        before, n, i = self.n_mistakes_, len(points), 0
        while i < n:
            block = slice(i, min(i + PERCEPTRON_BLOCK, n))
            wrong = (points[block] @ self._w > 0) != (signs[block] > 0)
            if not wrong.any():
                i = block.stop
                continue
            i += int(wrong.argmax())
            self._w = self._w + signs[i] * points[i]
            self.n_mistakes_ += 1
            self._check_step()
            i += 1
        return self.n_mistakes_ - before

    def _check_step(self) -> None:
        """Hold the given margin against the mistakes made so far."""
        if self.margin is None or self.refuted_at_ is not None:
            return
        if not self._guarantee(float(self.margin), assumed=True).holds:
            self.refuted_at_ = self.n_mistakes_

    def _guarantee(self, margin: float, assumed: bool) -> MistakeGuarantee:
        upper = float(np.linalg.norm(self._w)) / self.n_mistakes_ if self.n_mistakes_ else math.inf
        return MistakeGuarantee(self.n_mistakes_, self._largest, margin, upper, assumed)

    def _report(self, points: Array | None, signs: Array | None) -> None:
        lower, assumed = 0.0, self.margin is not None
        if self.margin is not None:
            lower = float(self.margin)
        elif points is not None and signs is not None and self.separated_ and self._w.any():
            lower = max(0.0, float((signs * (points @ self._w)).min() / np.linalg.norm(self._w)))
        self.guarantee_ = self._guarantee(lower, assumed)
        n = len(self._w) - bool(self.fit_intercept)
        self.coef_ = self._w[None, :n].copy()
        self.intercept_ = self._w[n:].copy() if self.fit_intercept else np.zeros(1)
        if self.verbose:
            print(self.guarantee_)

    def _check_parameters(self) -> None:
        integer("max_epochs", self.max_epochs)
        if self.margin is not None:
            positive("margin", self.margin)
