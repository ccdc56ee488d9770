"""A detector that states its error rate, around any detector of scikit-learn's or PyOD's kind."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, OutlierMixin, clone
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from pindown.affine import Array
from pindown.learn.conformal.drift import DriftWarning, batch_drift, order_drift
from pindown.learn.conformal.p_values import METHODS, HeldOutScores, called_outliers, held_out_parts
from pindown.validation import choice, integer, number, probability

CALIBRATIONS = (*METHODS, "prefit")
_HIGHER = ("auto", "normal", "abnormal")


class ConformalDetector(MetaEstimatorMixin, OutlierMixin, BaseEstimator):  # type: ignore[misc]
    r"""P-values and error rates around a detector that only has scores.

    .. math:: p(x) = \frac{1 + \#\{i : s_i \le s(x)\}}{n + 1}

    with the scores :math:`s_i` of n training rows that the detector has not seen. For a new row that is
    exchangeable with them, :math:`P[p(x) \le \alpha] \le \alpha`, whatever the detector and the
    distribution; see :mod:`pindown.learn.conformal.p_values` for what is proved for which calibration.

    Args:
        detector: Anything with ``fit`` and ``score_samples`` (scikit-learn: higher for members), or with
            ``decision_function`` alone (PyOD: higher for outliers).
        calibration: ``"split"`` holds out a part of the rows; ``"cross"`` holds out each of ``n_folds``
            parts in turn, and fits as many detectors; ``"prefit"`` takes a fitted detector, and the rows
            of ``fit`` to calibrate it.
        share: Share of the rows that a split holds out. No p-value is below 1 / (n + 1): 1 % needs 99 of
            them.
        n_folds: Number of parts of ``"cross"``.
        false_alarms: Rate at which ``predict`` calls members outliers if nothing else is asked for.
        higher: What higher scores of the detector mean, ``"normal"`` or ``"abnormal"``; ``"auto"`` goes
            by what the detector offers.
        random_state: Seed of what is held out.

    Attributes:
        detectors_: The fitted detectors.
        held_out_: Their scores of the rows that they have not seen.
        n_calibration_: Number of these rows, n.
        offset_: Threshold of ``score_samples`` at ``false_alarms``.

    Example:
        >>> from sklearn.ensemble import IsolationForest
        >>> X = np.random.default_rng(0).normal(size=(400, 2))
        >>> sure = ConformalDetector(IsolationForest(random_state=0), random_state=0).fit(X)
        >>> sure.p_values([[9.0, 9.0]]).tolist() == [1 / (sure.n_calibration_ + 1)]
        True
        >>> sure.predict([[0.0, 0.1], [9.0, 9.0], [0.3, 0.0]], fdr=0.05).tolist()
        [1, -1, 1]

    Vovk, Gammerman and Shafer 2005; Bates, Candes, Lei, Romano and Sesia 2023.
    """

    def __init__(
        self,
        detector: Any,
        *,
        calibration: str = "split",
        share: float = 0.5,
        n_folds: int = 5,
        false_alarms: float = 0.05,
        higher: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.detector = detector
        self.calibration = calibration
        self.share = share
        self.n_folds = n_folds
        self.false_alarms = false_alarms
        self.higher = higher
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.detector, "__sklearn_tags__"):
            tags.input_tags = get_tags(self.detector).input_tags
        return tags

    def fit(self, X: Any, y: Any = None) -> ConformalDetector:
        """Fit the detector on a part of the rows, all of them members, and score the others.

        Args:
            X: Whatever the detector takes: an array, a frame, a sparse matrix.
            y: Not used.

        Warns:
            DriftWarning: If held-out scores change with the order of the rows.
        """
        choice("calibration", self.calibration, CALIBRATIONS)
        choice("higher", self.higher, _HIGHER)
        number("share", self.share, 0.0, 1.0, above=True, below=True)
        integer("n_folds", self.n_folds, least=2)
        probability("false_alarms", self.false_alarms)
        random = check_random_state(self.random_state)
        X, n = self._checked(X, reset=True), _num_samples(X)
        if self.calibration == "prefit":
            parts, self.detectors_ = [np.arange(n)], [self.detector]
        else:
            if n < 2:
                raise ValueError(f"a calibration needs at least 2 rows; got n_samples = {n}.")
            rng = np.random.default_rng(random.randint(2**31 - 1))
            parts = held_out_parts(n, self.calibration, self.share, self.n_folds, rng)
            self.detectors_ = [self._fitted(X, np.setdiff1d(np.arange(n), part)) for part in parts]
        scores = [
            self._scores(detector, _safe_indexing(X, part))
            for detector, part in zip(self.detectors_, parts, strict=True)
        ]
        self.held_out_ = HeldOutScores(tuple(scores), tuple(parts))
        self.n_calibration_ = self.held_out_.n
        self.offset_ = self.held_out_.threshold(self.false_alarms)
        if words := order_drift(self.held_out_):
            warnings.warn(words, DriftWarning, stacklevel=2)
        return self

    def _checked(self, X: Any, reset: bool) -> Any:
        """Return rows that can be chosen from; what is in them the detector checks."""
        if issparse(X):
            X = X.tocsr()
        elif not hasattr(X, "iloc"):
            X = np.asarray(X)
        if X.ndim > 1:
            validate_data(self, X, skip_check_array=True, reset=reset)
        return X

    def _fitted(self, X: Any, rows: NDArray[np.int64]) -> Any:
        try:
            made = clone(self.detector)
        except (
            TypeError,
            RuntimeError,
        ):  # its constructor changes parameters
            made = copy.deepcopy(self.detector)
        return made.fit(_safe_indexing(X, rows))

    def _scores(self, detector: Any, X: Any) -> Array:
        """Return the detector's scores of rows, higher for members."""
        if hasattr(detector, "score_samples"):
            scores, abnormal = detector.score_samples(X), False
        elif hasattr(detector, "decision_function"):
            scores = detector.decision_function(X)
            abnormal = not isinstance(detector, OutlierMixin)
        else:
            raise TypeError(
                f"{type(detector).__name__} scores no new rows: score_samples or decision_function is "
                "needed (LocalOutlierFactor has it with novelty=True)."
            )
        if self.higher != "auto":
            abnormal = self.higher == "abnormal"
        values = np.asarray(scores, dtype=float).ravel()
        if np.isnan(values).any():
            raise ValueError(f"{type(detector).__name__} scores some rows as NaN.")
        return -values if abnormal else values

    def _all_scores(self, X: Any) -> list[Array]:
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        return [self._scores(detector, X) for detector in self.detectors_]

    def p_values(self, X: Any) -> Array:
        """Return conformal p-values, (n,), in (0, 1]: small for outliers."""
        scores = self._all_scores(X)
        return self.held_out_.p_values(scores)

    def score_samples(self, X: Any) -> Array:
        """Return the p-values, refined below the least held-out score so that far rows differ."""
        scores = self._all_scores(X)
        return self.held_out_.ranks(scores)

    def decision_function(self, X: Any) -> Array:
        """Return ``score_samples(X) - offset_``: negative where ``p_values(X) <= false_alarms``."""
        return self.score_samples(X) - self.offset_

    def predict(
        self, X: Any, *, fdr: float | None = None, false_alarms: float | None = None
    ) -> NDArray[np.int64]:
        """Return 1 for members and -1 for outliers.

        Args:
            X: The rows; with ``fdr`` they are judged together.
            fdr: Share of members among those called outliers, in expectation (Benjamini and Hochberg).
            false_alarms: Rate at which members are called outliers; its own if both are None.

        Warns:
            DriftWarning: If the bulk of the rows does not look like the held-out ones.
        """
        if fdr is None and false_alarms is None:
            return np.where(self.decision_function(X) >= 0, 1, -1)
        return np.where(judged(self.p_values(X), self.held_out_, fdr, false_alarms), -1, 1)


def judged(
    p_values: Array, held_out: HeldOutScores, fdr: float | None, false_alarms: float | None
) -> NDArray[np.bool_]:
    """Return which rows are outliers, with a warning if they or the calibration cannot say.

    Args:
        p_values: p-values of the rows.
        held_out: What they were calibrated on.
        fdr: False discovery rate of the batch, or None.
        false_alarms: Rate of false alarms, or None; one of both is given.
    """
    outliers = called_outliers(p_values, fdr, false_alarms)
    asked = fdr if false_alarms is None else false_alarms
    if asked is not None and asked < 1 / (held_out.n + 1):
        warnings.warn(
            f"{held_out.n:,} held-out rows tell rates from {1 / (held_out.n + 1):.2g} on; at {asked:g} "
            "few rows or none can be called outliers.",
            UserWarning,
            stacklevel=3,
        )
    if words := batch_drift(p_values, held_out):
        warnings.warn(words, DriftWarning, stacklevel=3)
    return outliers
