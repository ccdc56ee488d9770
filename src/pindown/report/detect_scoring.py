"""Scoring the rows of a file with a detector, chunk by chunk."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pindown.report.detect_result import Detection
from pindown.report.text import progress_bar

if TYPE_CHECKING:
    from pindown.datasets.feature_table import FeatureTable
    from pindown.learn.one_class import LocalMaximaDetector

_CHUNK = 20_000  # rows scored at once


def detection(
    purpose: Literal["fit", "score"],
    detector: LocalMaximaDetector,
    table: FeatureTable,
    model: str,
    *,
    seconds: float | None = None,
    interrupted: bool = False,
) -> Detection:
    """Return what a fitted detector says of the rows of a table.

    Args:
        purpose: ``"fit"`` if they are the rows it was fitted on, else ``"score"``.
        detector: The detector.
        table: The rows.
        model: What to call the model.
        seconds: CPU seconds to report; None for those of the scoring.
        interrupted: Whether training was stopped early.
    """
    rows = table.X  # not flattened: the detector checks the shape of images
    parts: list[tuple[Any, Any]] = []
    began = time.process_time()
    with progress_bar() as report:
        for start in range(0, len(rows), _CHUNK):
            report(f"scoring {table.file}", start, len(rows))
            chunk = rows[start : start + _CHUNK]
            parts.append((detector.score_samples(chunk), detector.quality(chunk)))
    return Detection(
        purpose=purpose,
        model=model,
        settings=settings_of(detector),
        table=table,
        scores=np.concatenate([scores for scores, _ in parts]),
        offset=float(detector.offset_),
        quality=np.concatenate([quality for _, quality in parts]),
        seconds=time.process_time() - began if seconds is None else seconds,
        interrupted=interrupted,
        image_shape=_drawn_shape(detector),
        reference=_training_scales(detector) if purpose == "score" else None,
    )


def _training_scales(detector: LocalMaximaDetector) -> tuple[Any, Any] | None:
    """Return means and standard deviations of the training features; images have none."""
    frame = detector.frame_
    return None if frame.is_image else (frame.centre, frame.scale)


def settings_of(detector: LocalMaximaDetector) -> dict[str, Any]:
    """Return the facts about a fitted detector that reports show."""
    shape, share = detector.frame_.image_shape, detector.contamination
    return {
        "preset": detector.preset,
        "features": int(detector.n_features_in_),
        "images": "x".join(map(str, shape)) if shape else None,
        "networks": len(detector.networks_["c"]),
        "epochs": len(detector.history_),
        "contamination": share if isinstance(share, str) else float(share),
    }


def _drawn_shape(detector: LocalMaximaDetector) -> tuple[int, ...]:
    """Return the shape of a row that is an image as the page draws it: one channel has no axis."""
    shape = tuple(int(n) for n in detector.frame_.image_shape)
    if not shape:
        return ()
    height, width, channels = shape
    if channels == 1:
        return (height, width)
    return (channels, height, width) if detector.frame_.channels_first else shape
