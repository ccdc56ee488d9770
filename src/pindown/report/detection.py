"""What a detector says of a table of rows, as one value that the page, the text and the JSON read.

:func:`detection` scores the rows of a file, chunk by chunk.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.datasets.feature_files import FeatureTable
from pindown.deadline import Stopwatch
from pindown.evidence import Kind
from pindown.findings.wording import count, number_text
from pindown.learn.conformal.detector import judged
from pindown.report.tuning import MAX_COLUMNS_EXPLAINED, ROWS_AT_EACH_END, ROWS_SCORED_AT_ONCE

if TYPE_CHECKING:
    from pindown.learn.one_class import LocalMaximaDetector


# Half of all rows lie within 0.6745 standard deviations of the middle if they are normal.
_NORMAL_QUARTILE = 0.6745
_MAX_DEVIATIONS = 1e30  # standard deviations worth telling apart


@dataclass(frozen=True, eq=False)
class Rule:
    """An error rate by which rows are called outliers.

    Attributes:
        name: ``"fdr"`` (share of members among the outliers, in expectation) or ``"false_alarms"``
            (share of outliers among new members).
        rate: The rate.
        outliers: Which rows are called outliers.
        n_calibration: Held-out rows that the p-values rest on.
        kind: How the rate is known.
    """

    name: str
    rate: float
    outliers: NDArray[np.bool_]
    n_calibration: int
    kind: Kind

    def __str__(self) -> str:
        words = "false discoveries" if self.name == "fdr" else "false alarms"
        return f"{words} at most {self.rate:g} ({self.kind}; {self.n_calibration:,} held-out rows)"


@dataclass(frozen=True, eq=False)
class Detection:
    """Scores of the rows of one file.

    The scores order rows; they are no probabilities (kind: estimate). ``flagged`` are the rows below the
    threshold that the training rows and the contamination set.

    Attributes:
        purpose: ``"fit"`` if the rows are the training rows, else ``"score"``.
        model: Name of the model file.
        settings: Facts about the model, in the order in which they are shown.
        table: The rows.
        scores: Log-odds of membership, higher is more typical.
        offset: The threshold.
        quality: Log-odds that a row is as good as what is near it, higher is better.
        seconds: CPU seconds of the fit, or of the scoring.
        interrupted: Whether training was stopped early.
        image_shape: Shape of a row that is an image, else empty.
        p_values: Conformal p-values; None for training rows, and where the model has no calibration.
        rule: What calls rows outliers instead of the threshold, or None.
        gains: For rows that are shown: name, value and gain of the columns that made the score.
        reference: Means and standard deviations of the training rows; None to take the file's own.
    """

    purpose: Literal["fit", "score"]
    model: str
    settings: dict[str, Any]
    table: FeatureTable
    scores: Array
    offset: float
    quality: Array
    seconds: float
    interrupted: bool = False
    image_shape: tuple[int, ...] = ()
    reference: tuple[Array, Array] | None = None
    p_values: Array | None = None
    rule: Rule | None = None
    gains: Mapping[int, list[tuple[str, str, float]]] | None = None

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """Which rows are below the threshold, or are outliers by the rule of error rates."""
        return self.scores < self.offset if self.rule is None else self.rule.outliers

    @property
    def order(self) -> NDArray[np.int64]:
        """Row numbers, the least typical first; ties in the order of the file."""
        return np.argsort(self.scores, kind="stable")

    @property
    def auc(self) -> float | None:
        """Probability that a row labelled 0 scores above one labelled 1; None without such labels."""
        anomaly = anomalies(self.table.labels)
        if anomaly is None:
            return None
        from sklearn.metrics import roc_auc_score

        return float(roc_auc_score(anomaly, -self.scores))

    @property
    def verdict(self) -> str:
        """The answer in one sentence."""
        n, flagged = len(self.scores), int(self.flagged.sum())
        kind = "training row" if self.purpose == "fit" else "row"
        share = f" ({flagged / n:.1%})" if flagged else ""
        of = f" of {n:,}" if flagged else f" among {n:,}"
        return f"{count(flagged, 'outlier')}{share}{of} {kind}{'s' * (n != 1)} of {self.table.file}."

    def stands_out(self, row: int, most: int = 3) -> list[tuple[str, float, float]]:
        """Return the features in which a row is farthest from the middle: name, value, distance.

        The middle is that of the training rows. While these are the rows of the file themselves,
        distances are in robust standard deviations: the median and the quartiles of the column.
        """
        X = self.table.X.reshape(len(self.scores), -1)
        middle, scale = self._middle if self.reference is None else self.reference
        with np.errstate(over="ignore"):
            distance = np.clip((X[row] / 2 - middle / 2) / scale * 2, -_MAX_DEVIATIONS, _MAX_DEVIATIONS)
        first = np.argsort(-np.abs(distance), kind="stable")[:most]
        names = self.table.names
        return [
            (names[j] if names else f"#{j + 1}", float(X[row, j]), float(distance[j]))
            for j in first.tolist()
            if distance[j] != 0
        ]

    @cached_property
    def _middle(self) -> tuple[Array, Array]:
        X = self.table.X.reshape(len(self.scores), -1).astype(np.float64)
        low, middle, high = np.quantile(X, (0.25, 0.5, 0.75), axis=0)
        scale = high / (2 * _NORMAL_QUARTILE) - low / (2 * _NORMAL_QUARTILE)
        largest = np.maximum(np.abs(X).max(axis=0), np.finfo(np.float64).tiny)
        spread = (X / largest).std(axis=0) * largest  # squares of huge numbers overflow
        return middle, np.where(scale > 0, scale, np.where(spread > 0, spread, 1.0))

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return the page, written to the path if there is one."""
        from pindown.atomic_files import written
        from pindown.report.detection_formats import render_detection

        return written(render_detection(self), path)

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return JSON, written to the path if there is one."""
        from pindown.atomic_files import written
        from pindown.report.detection_formats import render_detection_json

        return written(render_detection_json(self), path)

    def __str__(self) -> str:
        return f"{self.verdict} Threshold {self.offset:.3g}, kind: estimate."


def anomalies(labels: NDArray[Any] | None) -> NDArray[np.int64] | None:
    """Return labels as 0 and 1 if they are that and both occur, else None.

    >>> anomalies(np.array(["0", "1.0", "1"])).tolist(), anomalies(np.array(["a", "b"])) is None
    ([0, 1, 1], True)
    """
    if labels is None:
        return None
    try:
        numbers = np.asarray(labels).ravel().astype(np.float64)
    except ValueError:
        return None
    return numbers.astype(np.int64) if set(numbers.tolist()) == {0.0, 1.0} else None


def detection(
    purpose: Literal["fit", "score"],
    detector: LocalMaximaDetector,
    table: FeatureTable,
    model: str,
    *,
    seconds: float | None = None,
    interrupted: bool = False,
    fdr: float | None = None,
    false_alarms: float | None = None,
) -> Detection:
    """Return what a fitted detector says of the rows of a table.

    Args:
        purpose: ``"fit"`` if they are the rows it was fitted on, else ``"score"``.
        detector: The detector.
        table: The rows.
        model: What to call the model.
        seconds: CPU seconds to report; None for those of the scoring.
        interrupted: Whether training was stopped early.
        fdr: False discovery rate by which rows are called outliers, or None.
        false_alarms: Rate of false alarms instead, or None; with neither the threshold decides.
    """
    from pindown.report.terminal import progress_bar

    rows = table.X  # not flattened: the detector checks the shape of images
    parts: list[tuple[Any, Any]] = []
    asked = {"fdr": fdr, "false_alarms": false_alarms}
    wanted = next(((name, rate) for name, rate in asked.items() if rate is not None), None)
    calibrated = purpose == "score" and (detector.calibration_ is not None or wanted is not None)
    p_parts: list[Array] = []
    work = Stopwatch(cpu=True)
    with progress_bar() as report:
        for start in range(0, len(rows), ROWS_SCORED_AT_ONCE):
            report(f"scoring {table.file}", start, len(rows))
            chunk = rows[start : start + ROWS_SCORED_AT_ONCE]
            parts.append((detector.score_samples(chunk), detector.quality(chunk)))
            if calibrated:
                p_parts.append(detector.p_values(chunk))
    p_values, rule = np.concatenate(p_parts) if calibrated else None, None
    if wanted is not None and p_values is not None and detector.calibration_ is not None:
        held_out = detector.calibration_.held_out
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outliers = judged(p_values, held_out, fdr, false_alarms)
        rule = Rule(*wanted, outliers, held_out.n, held_out.kind)
        said = tuple(str(warning.message).rstrip(".") for warning in caught)
        table = replace(table, notes=(*table.notes, *said))
    return Detection(
        purpose=purpose,
        model=model,
        settings=settings_of(detector),
        table=table,
        scores=np.concatenate([scores for scores, _ in parts]),
        offset=float(detector.offset_),
        quality=np.concatenate([quality for _, quality in parts]),
        seconds=work.seconds if seconds is None else seconds,
        interrupted=interrupted,
        image_shape=_drawn_shape(detector),
        reference=_training_scales(detector) if purpose == "score" else None,
        p_values=p_values,
        rule=rule,
        gains=_gains(detector, table, np.concatenate([scores for scores, _ in parts])),
    )


def _gains(
    detector: LocalMaximaDetector, table: FeatureTable, scores: Array
) -> dict[int, list[tuple[str, str, float]]] | None:
    """Return what made the scores of the least and the most typical rows, column by column."""
    X, encoding = table.X, getattr(detector, "encoding_", None)
    if detector.scaling_.is_image or X.shape[1] > MAX_COLUMNS_EXPLAINED:
        return None
    order = np.argsort(scores, kind="stable")
    shown = np.unique(np.concatenate([order[:ROWS_AT_EACH_END], order[-ROWS_AT_EACH_END:]]))
    if encoding is None:
        groups = [[j] for j in range(X.shape[1])]
        names = [table.names[j] if table.names else f"#{j + 1}" for j in range(X.shape[1])]
        texts = [[number_text(value) for value in row] for row in X[shown].tolist()]
    else:
        groups = [places for _, places in encoding.groups]
        names = [column.name for column, _ in encoding.groups]
        texts = [[column.shown(row[at]) for column, at in encoding.groups] for row in X[shown]]
    found = detector.reasons(X[shown], groups)
    made = {}
    for i, row in enumerate(shown.tolist()):
        first = np.argsort(-found[i], kind="stable")[:3].tolist()
        made[row] = [(names[j], texts[i][j], float(found[i, j])) for j in first if found[i, j] > 0]
    return made


def _training_scales(detector: LocalMaximaDetector) -> tuple[Any, Any] | None:
    """Return means and standard deviations of the training features; images have none."""
    frame = detector.scaling_
    return None if frame.is_image else (frame.centre, frame.scale)


def settings_of(detector: LocalMaximaDetector) -> dict[str, Any]:
    """Return the facts about a fitted detector that reports show."""
    shape, share = detector.scaling_.image_shape, detector.contamination
    return {
        "preset": detector.preset,
        "features": int(detector.n_features_in_),
        "images": "x".join(map(str, shape)) if shape else None,
        "networks": len(detector.networks_["c"]),
        "epochs": len(detector.history_),
        "contamination": share if isinstance(share, str) else float(share),
        "held-out rows": None if detector.calibration_ is None else detector.calibration_.held_out.n,
    }


def _drawn_shape(detector: LocalMaximaDetector) -> tuple[int, ...]:
    """Return the shape of a row that is an image as the page draws it: one channel has no axis."""
    shape = tuple(int(n) for n in detector.scaling_.image_shape)
    if not shape:
        return ()
    height, width, channels = shape
    if channels == 1:
        return (height, width)
    return (channels, height, width) if detector.scaling_.channels_first else shape
