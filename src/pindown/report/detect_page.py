"""What a detector says of a file as one self-contained page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.findings.pictures import Histogram, Mark
from pindown.findings.wording import number_text, percent
from pindown.report.detect_scatter import MOST_POINTS, Points, robust_ends, scatter
from pindown.report.figures import draw
from pindown.report.pages import render, safe
from pindown.report.witness_image import image_of, png_of
from pindown.visible_text import printable

if TYPE_CHECKING:
    from pindown.affine import Array
    from pindown.report.detect_result import Detection

_ROWS = 12  # of the most and of the least typical ones
_BINS = 40
_MOST_NAME = 60  # characters of a column's name
_EDGES = (0.001, 0.999)  # of histograms: what lies beyond is counted in the outermost bars


def render_detection(detection: Detection) -> str:
    """Return the page. Everything that came from a file is escaped; nothing is loaded from elsewhere."""
    order = detection.order.tolist()
    # A short file has no room for both lists: no row stands in two.
    half = min(_ROWS, (len(order) + 1) // 2)
    where = "line" if ".csv" in detection.table.file.lower() else "row"
    return render(
        "detect.html.j2",
        detection=detection,
        verdict=printable(detection.verdict),
        flagged=int(detection.flagged.sum()),
        keys=_keys(detection),
        histogram=safe(
            draw(_histogram(detection.scores, detection.offset, "membership score"), "scores")
        ),
        qualities=safe(draw(_histogram(detection.quality, None, "quality"), "quality")),
        scatter=safe(_scatter(detection, where)),
        thinned=max(detection.flagged.sum(), (~detection.flagged).sum()) > MOST_POINTS,
        correlation=_correlation(detection),
        least=[_row(detection, i) for i in order[:half]],
        most=[_row(detection, i) for i in order[half:][-_ROWS:][::-1]],
        where=where,
        facts=_facts(detection),
    )


def _keys(detection: Detection) -> list[tuple[str, str, str, str | None]]:
    """Return value, words, title and kind of the numbers on top."""
    n, flagged = len(detection.scores), int(detection.flagged.sum())
    found: list[tuple[str, str, str, str | None]] = [
        (f"{n:,}", "rows scored", "Rows", None),
        (f"{flagged:,}", f"{percent(flagged / n)} of all rows", "Outliers", "estimate"),
        (f"{detection.offset:.3g}", "log-odds", "Threshold", "estimate"),
        (_correlation(detection), "quality with membership", "Rank correlation", "estimate"),
    ]
    if detection.auc is not None:
        found.append((percent(detection.auc), "by the labels", "AUC", "estimate"))
    return found


def _facts(detection: Detection) -> list[tuple[str, str]]:
    known = [(name, "–" if value is None else str(value)) for name, value in detection.settings.items()]
    left_out = ", ".join(detection.table.left_out) or "none"
    return [*known, ("columns left out", left_out), ("CPU time", f"{detection.seconds:.1f} s")]


def _histogram(values: Array, threshold: float | None, label: str) -> Histogram:
    low, high = robust_ends(values, _EDGES)
    if threshold is not None:
        low, high = min(low, threshold), max(high, threshold)
        if low == threshold and bool((values < threshold).any()):
            low -= (high - low or 1.0) / (_BINS - 1)  # the few outliers get a bar of their own
    if not low < high:
        low, high = low - 0.5, high + 0.5
    counts, edges = np.histogram(np.clip(values, low, high), bins=_BINS, range=(low, high))
    return Histogram(
        caption=label,
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
        x_label=f"{label}, log-odds",
        y_label="rows",
        marks=() if threshold is None else (Mark(threshold, "threshold"),),
        highlight_below=threshold,
    )


def _scatter(detection: Detection, where: str) -> str:
    return scatter(
        detection.scores,
        detection.quality,
        detection.flagged,
        detection.offset,
        ("membership score", "quality"),
        Points(where, detection.table.lines),
        caption="Quality against membership",
    )


def _correlation(detection: Detection) -> str:
    """Return the rank correlation of the two scores in words."""
    from scipy.stats import spearmanr

    if len(detection.scores) < 3 or np.ptp(detection.scores) == 0 or np.ptp(detection.quality) == 0:
        return "not defined here"
    return f"{float(spearmanr(detection.scores, detection.quality).statistic):+.2f}"


def _row(detection: Detection, i: int) -> dict[str, Any]:
    """Return what the page shows of one row."""
    image = None
    if detection.image_shape:
        picture = image_of(
            np.asarray(detection.table.X[i], dtype=np.float64).ravel(), detection.image_shape
        )
        image = None if picture is None else png_of(picture)
    line, score, quality = (
        f"{int(detection.table.lines[i])}",
        f"{detection.scores[i]:.3g}",
        f"{detection.quality[i]:.3g}",
    )
    why = [] if image else [_feature(*found) for found in detection.stands_out(i)]
    return {
        "line": line,
        "score": score,
        "quality": quality,
        "image": image,
        "cells": (line, score, quality, "; ".join(why) or "nothing"),
        "mark": "outlier" if detection.flagged[i] else "",
    }


def _feature(name: str, value: float, distance: float) -> str:
    short = printable(name if len(name) <= _MOST_NAME else f"{name[:_MOST_NAME]}…")
    return f"{short} {number_text(value)} ({distance:+.1f} sd)"
