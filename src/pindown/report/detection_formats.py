"""What a detector says of a file: as one self-contained page, in the terminal, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.findings.pictures import Histogram, Mark
from pindown.findings.wording import number_text, percent
from pindown.json_files import document, plain
from pindown.report.figures import draw
from pindown.report.pages import image_of, png_of, render, safe
from pindown.report.planes import Points, robust_ends, scatter
from pindown.report.tuning import (
    HISTOGRAM_BINS,
    HISTOGRAM_ENDS,
    MAX_NAME_LETTERS,
    MAX_POINTS,
    MAX_ROWS_PRINTED,
    ROWS_AT_EACH_END,
)
from pindown.text import printable

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import Console

    from pindown.affine import Array
    from pindown.report.detection import Detection


SCHEMA = 1
_RULES = {
    "fdr": ("of the outliers are members, at most", "False discoveries"),
    "false_alarms": ("of new members are called outliers, at most", "False alarms"),
}


def render_detection(detection: Detection) -> str:
    """Return the page. Everything that came from a file is escaped; nothing is loaded from elsewhere."""
    order = detection.order.tolist()
    # A short file has no room for both lists: no row stands in two.
    half = min(ROWS_AT_EACH_END, (len(order) + 1) // 2)
    where = "line" if ".csv" in detection.table.file.lower() else "row"
    return render(
        "detect.html.j2",
        detection=detection,
        verdict=printable(detection.verdict),
        flagged=int(detection.flagged.sum()),
        keys=_keys(detection),
        histogram=safe(
            draw(_histogram(detection.scores, _threshold(detection), "membership score"), "scores")
        ),
        qualities=safe(draw(_histogram(detection.quality, None, "quality"), "quality")),
        scatter=safe(_scatter(detection, where)),
        rule=None if detection.rule is None else str(detection.rule),
        thinned=max(detection.flagged.sum(), (~detection.flagged).sum()) > MAX_POINTS,
        correlation=_correlation(detection),
        least=[_row(detection, i) for i in order[:half]],
        most=[_row(detection, i) for i in order[half:][-ROWS_AT_EACH_END:][::-1]],
        where=where,
        facts=_facts(detection),
    )


def _keys(detection: Detection) -> list[tuple[str, str, str, str | None]]:
    """Return value, words, title and kind of the numbers on top."""
    n, flagged = len(detection.scores), int(detection.flagged.sum())
    found: list[tuple[str, str, str, str | None]] = [
        (f"{n:,}", "rows scored", "Rows", None),
        (f"{flagged:,}", f"{percent(flagged / n)} of all rows", "Outliers", "estimate"),
        (f"{detection.offset:.3g}", "log-odds", "Threshold", "estimate")
        if detection.rule is None
        else (f"{detection.rule.rate:g}", *_RULES[detection.rule.name], detection.rule.kind),
        (_correlation(detection), "quality with membership", "Rank correlation", "estimate"),
    ]
    if detection.auc is not None:
        found.append((percent(detection.auc), "by the labels", "AUC", "estimate"))
    return found


def _threshold(detection: Detection) -> float | None:
    return detection.offset if detection.rule is None else None


def _facts(detection: Detection) -> list[tuple[str, str]]:
    known = [(name, "–" if value is None else str(value)) for name, value in detection.settings.items()]
    left_out = ", ".join(detection.table.left_out) or "none"
    return [*known, ("columns left out", left_out), ("CPU time", f"{detection.seconds:.1f} s")]


def _histogram(values: Array, threshold: float | None, label: str) -> Histogram:
    low, high = robust_ends(values, HISTOGRAM_ENDS)
    if threshold is not None:
        low, high = min(low, threshold), max(high, threshold)
        if low == threshold and bool((values < threshold).any()):
            low -= (high - low or 1.0) / (HISTOGRAM_BINS - 1)  # the few outliers get a bar of their own
    if not low < high:
        low, high = low - 0.5, high + 0.5
    counts, edges = np.histogram(np.clip(values, low, high), bins=HISTOGRAM_BINS, range=(low, high))
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
    why = [] if image else _why(detection, i)
    return {
        "line": line,
        "score": score,
        "quality": quality,
        "image": image,
        "cells": (line, score, quality, "; ".join(why) or "nothing"),
        "mark": "outlier" if detection.flagged[i] else "",
    }


def _short(name: str) -> str:
    return printable(name if len(name) <= MAX_NAME_LETTERS else f"{name[:MAX_NAME_LETTERS]}…")


def print_detection(detection: Detection, console: Console | None = None) -> None:
    """Print the answer, with colours if the terminal has them."""
    from rich.text import Text

    from pindown.report.terminal import Screen

    out = console or Screen()
    flagged = int(detection.flagged.sum())
    style = "bold green" if flagged == 0 else "bold red" if detection.purpose == "score" else "bold"
    word = "FITTED" if detection.purpose == "fit" else "OUTLIERS" if flagged else "NO OUTLIERS"
    out.print(Text.assemble((word, style), f"  {printable(detection.verdict)}"), soft_wrap=True)
    for line in plain_lines(detection):
        out.print(Text(line[:14], style="dim") + Text(line[14:]), soft_wrap=True)


def plain_lines(detection: Detection) -> list[str]:
    """Return what there is to say after the verdict, line by line."""
    lines = [f"threshold     {detection.offset:.4g} (scores are log-odds; below it a row is an outlier)"]
    if detection.rule is not None:
        lines = [f"error rate    {detection.rule}"]
    lines += [f"{name:<14}{value}" for name, value in detection.settings.items() if value is not None]
    if detection.auc is not None:
        lines.append(f"AUROC         {100 * detection.auc:.1f} % by the 0/1 labels of the file")
    if detection.table.left_out:
        lines.append(f"left out      {printable(', '.join(map(repr, detection.table.left_out)))}")
    lines += [f"note          {printable(note)}" for note in detection.table.notes]
    lines.append(f"took          {detection.seconds:.1f} s of CPU")
    for row in detection.order[:MAX_ROWS_PRINTED].tolist():
        where = (
            f"{'line' if '.csv' in detection.table.file.lower() else 'row'} {detection.table.lines[row]}"
        )
        lines.append(f"{where:<14}score {detection.scores[row]:.3g}, {reasons(detection, row)}")
    if detection.interrupted:
        lines.append("interrupted   training was stopped: this is what was learned until then")
    return lines


def reasons(detection: Detection, row: int) -> str:
    """Return which columns made the score of a row; where that was not asked, in which it is unusual."""
    if detection.image_shape:
        return f"quality {detection.quality[row]:.3g}"
    return "; ".join(_why(detection, row)) or "no column that stands out"


def _why(detection: Detection, row: int) -> list[str]:
    if detection.gains is not None and row in detection.gains:
        return [
            f"{_short(name)} {_short(value)} ({gain:+.2g})" for name, value, gain in detection.gains[row]
        ]
    return [
        f"{_short(name)} {number_text(value)} ({distance:+.1f} sd)"
        for name, value, distance in detection.stands_out(row)
    ]


def render_detection_json(detection: Detection) -> str:
    """Return the scores as indented JSON with a versioned schema, one line for each row.

    Schema 1::

        {"schema": 1, "purpose": "fit" | "score", "model": str, "file": str, "rows": int,
         "features": int, "names": [str], "left_out": [str], "notes": [str], "settings": {str: ...},
         "offset": float, "rule": null | {"name": "fdr" | "false_alarms", "rate": float, "kind": str,
         "held_out_rows": int}, "flagged": int, "auc": float | null, "seconds": float,
         "interrupted": bool, "scores": [{"line": int, "score": float, "quality": float, "p_value": float
         | null, "outlier": bool}]}

    Numbers that are not finite are null: JSON has no way to write them. Rows are in the order of
    the file.
    """
    content = plain(as_dict(detection))
    rows = ",\n".join(f"    {json.dumps(row, allow_nan=False)}" for row in content.pop("scores"))
    head = document(content).rstrip()
    return f'{head[:-2]},\n  "scores": [\n{rows}\n  ]\n}}\n'


def as_dict(detection: Detection) -> dict[str, Any]:
    """Return the scores as dictionaries and lists, as the schema says."""
    table, flagged, rule = detection.table, detection.flagged, detection.rule
    p_values = [None] * len(flagged) if detection.p_values is None else detection.p_values.tolist()
    return {
        "schema": SCHEMA,
        "purpose": detection.purpose,
        "model": detection.model,
        "file": table.file,
        "rows": len(table.X),
        "features": table.n_features,
        "names": list(table.names),
        "left_out": list(table.left_out),
        "notes": list(table.notes),
        "settings": detection.settings,
        "offset": detection.offset,
        "rule": None
        if rule is None
        else {
            "name": rule.name,
            "rate": rule.rate,
            "kind": rule.kind,
            "held_out_rows": rule.n_calibration,
        },
        "flagged": int(flagged.sum()),
        "auc": detection.auc,
        "seconds": detection.seconds,
        "interrupted": detection.interrupted,
        "scores": [
            {"line": line, "score": score, "quality": quality, "p_value": p_value, "outlier": outlier}
            for line, score, quality, p_value, outlier in zip(
                table.lines.tolist(),
                detection.scores.tolist(),
                detection.quality.tolist(),
                p_values,
                flagged.tolist(),
                strict=True,
            )
        ],
    }


def render_detection_csv(detection: Detection) -> str:
    """Return line, score, quality, p-value (if there are) and outlier (1 or 0) of every row as CSV."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    columns: dict[str, NDArray[Any]] = {
        "line": detection.table.lines,
        "score": detection.scores,
        "quality": detection.quality,
    }
    if detection.p_values is not None:
        columns["p_value"] = detection.p_values
    columns["outlier"] = detection.flagged.astype(int)
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return buffer.getvalue()
