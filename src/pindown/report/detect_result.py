"""What a detector says of a table of rows, as one value that the page, the text and the JSON read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.datasets.feature_table import FeatureTable
from pindown.findings.wording import count

# Half of all rows lie within 0.6745 standard deviations of the middle if they are normal.
_NORMAL_QUARTILE = 0.6745
_FARTHEST = 1e30  # standard deviations worth telling apart


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

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """Which rows are below the threshold."""
        return self.scores < self.offset

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
            distance = np.clip((X[row] / 2 - middle / 2) / scale * 2, -_FARTHEST, _FARTHEST)
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
        from pindown.report.detect_page import render_detection
        from pindown.report.writing import written

        return written(render_detection(self), path)

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return JSON, written to the path if there is one."""
        from pindown.report.detect_json import render_detection_json
        from pindown.report.writing import written

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
