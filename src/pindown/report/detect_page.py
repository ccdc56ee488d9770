"""What a detector says of a file as one self-contained page."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.findings.pictures import Histogram, Mark
from pindown.findings.wording import number_text, printable
from pindown.report.detect_scatter import scatter
from pindown.report.figures import draw
from pindown.report.html import safe
from pindown.report.witness_image import image_of, png_of

if TYPE_CHECKING:
    from pindown.affine import Array
    from pindown.report.detect_result import Detection

_ROWS = 12  # of the most and of the least typical ones
_IMAGES = 12
_BINS = 40
_MOST_NAME = 60  # characters of a column's name
_EDGES = (0.001, 0.999)  # of histograms: what lies beyond is counted in the outermost bars


def render_detection(detection: Detection) -> str:
    """Return the page. Everything that came from a file is escaped; nothing is loaded from elsewhere."""
    from jinja2 import Environment, StrictUndefined

    folder = files("pindown.report")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string((folder / "detect.html.j2").read_text("utf-8"))
    order = detection.order.tolist()
    # A short file has no room for both lists: no row stands in two.
    half = min(_ROWS, (len(order) + 1) // 2)
    page = template.render(
        detection=detection,
        verdict=printable(detection.verdict),
        flagged=int(detection.flagged.sum()),
        style=safe((folder / "page.css").read_text("utf-8")),
        histogram=safe(
            draw(_histogram(detection.scores, detection.offset, "membership score"), "scores")
        ),
        qualities=safe(draw(_histogram(detection.quality, None, "quality"), "quality")),
        scatter=safe(_scatter(detection)),
        correlation=_correlation(detection),
        least=[_row(detection, i) for i in order[:half]],
        most=[_row(detection, i) for i in order[half:][-_ROWS:][::-1]],
        where="line" if ".csv" in detection.table.file.lower() else "row",
    )
    return str(page).lstrip() + "\n"


def _histogram(values: Array, threshold: float | None, label: str) -> Histogram:
    low, high = (float(v) for v in np.quantile(values, _EDGES))
    if threshold is not None:
        low, high = min(low, threshold), max(high, threshold)
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


def _scatter(detection: Detection) -> str:
    labels = ("membership score", "quality")
    return scatter(detection.scores, detection.quality, detection.flagged, detection.offset, labels)


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
    return {
        "line": int(detection.table.lines[i]),
        "score": f"{detection.scores[i]:.3g}",
        "quality": f"{detection.quality[i]:.3g}",
        "outlier": bool(detection.flagged[i]),
        "image": image,
        "why": [] if image else [_feature(*found) for found in detection.stands_out(i)],
    }


def _feature(name: str, value: float, distance: float) -> str:
    short = printable(name if len(name) <= _MOST_NAME else f"{name[:_MOST_NAME]}…")
    return f"{short} {number_text(value)} ({distance:+.1f} sd)"
