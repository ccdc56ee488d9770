"""Scores for machines: JSON with a versioned schema.

Schema 1::

    {"schema": 1, "purpose": "fit" | "score", "model": str, "file": str, "rows": int, "features": int,
     "names": [str], "left_out": [str], "notes": [str], "settings": {str: ...}, "offset": float,
     "flagged": int, "auc": float | null, "seconds": float, "interrupted": bool,
     "scores": [{"line": int, "score": float, "quality": float, "outlier": bool}]}

Numbers that are not finite are null: JSON has no way to write them. Rows are in the order of the file.
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from pindown.json_files import document
from pindown.report.json import plain

if TYPE_CHECKING:
    from pindown.report.detect_result import Detection

SCHEMA = 1


def render_detection_json(detection: Detection) -> str:
    """Return the scores as indented JSON, one line for each row."""
    content = plain(as_dict(detection))
    rows = ",\n".join(f"    {json.dumps(row, allow_nan=False)}" for row in content.pop("scores"))
    head = document(content).rstrip()
    return f'{head[:-2]},\n  "scores": [\n{rows}\n  ]\n}}\n'


def as_dict(detection: Detection) -> dict[str, Any]:
    """Return the scores as dictionaries and lists, as the schema says."""
    table, flagged = detection.table, detection.flagged
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
        "flagged": int(flagged.sum()),
        "auc": detection.auc,
        "seconds": detection.seconds,
        "interrupted": detection.interrupted,
        "scores": [
            {"line": line, "score": score, "quality": quality, "outlier": outlier}
            for line, score, quality, outlier in zip(
                table.lines.tolist(),
                detection.scores.tolist(),
                detection.quality.tolist(),
                flagged.tolist(),
                strict=True,
            )
        ],
    }


def render_detection_csv(detection: Detection) -> str:
    """Return line, score, quality and outlier (1 or 0) of every row as CSV with a header."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("line", "score", "quality", "outlier"))
    columns = (detection.table.lines, detection.scores, detection.quality, detection.flagged.astype(int))
    writer.writerows(zip(*(column.tolist() for column in columns), strict=True))
    return buffer.getvalue()
