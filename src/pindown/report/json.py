"""An audit for machines: JSON with a versioned schema.

Schema 1::

    {"schema": 1, "name": str, "verdict": str, "given": str, "budget": seconds, "seed": int,
     "interrupted": bool,
     "network": {"widths": [int], "parameters": int, "relus": int, "output_activation": str | null,
                 "notes": [str], "fingerprint": str},
     "findings": [{"code": str, "title": str, "group": "which" | "why" | "how far",
                   "status": "answered" | "not applicable" | "not run" | "error",
                   "verdict": str, "reading": str, "scale": str,
                   "number": {"value": float | null, "kind": str, "unit": str, "label": str,
                              "standard_error": float | null, "n": int | null,
                              "delta": float | null} | null,
                   "hypotheses": [{"text": str, "status": str}],
                   "table": {"caption": str, "columns": [str], "rows": [[cell]]} | null,
                   "figure": {"type": str, ...} | null}]}

Numbers that are not finite are null: JSON has no way to write them.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pindown.findings import CATALOGUE, Finding

if TYPE_CHECKING:
    from pindown.audit import Audit

SCHEMA = 1


def render_json(audit: Audit) -> str:
    """Return the audit as indented JSON."""
    return json.dumps(plain(as_dict(audit)), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_dict(audit: Audit) -> dict[str, Any]:
    """Return the audit as dictionaries and lists, as the schema says."""
    net = audit.network
    return {
        "schema": SCHEMA,
        "name": audit.name,
        "verdict": audit.verdict,
        "given": audit.given,
        "budget": audit.budget,
        "seed": audit.seed,
        "interrupted": audit.interrupted,
        "network": {
            "widths": list(net.widths),
            "parameters": net.n_parameters,
            "relus": net.size,
            "output_activation": net.output_activation,
            "notes": list(net.notes),
            "fingerprint": net.fingerprint,
        },
        "findings": [_finding(finding) for finding in audit.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    groups = {question.code: question.group for question in CATALOGUE}
    figure = finding.figure
    return {
        "code": finding.code,
        "title": finding.title,
        "group": groups[finding.code],
        "status": finding.status,
        "verdict": finding.verdict,
        "reading": finding.reading,
        "scale": finding.scale,
        "number": asdict(finding.number) if finding.number else None,
        "hypotheses": [asdict(hypothesis) for hypothesis in finding.hypotheses],
        "table": asdict(finding.table) if finding.table else None,
        "figure": {"type": type(figure).__name__, **asdict(figure)} if figure else None,
    }


def plain(value: Any) -> Any:
    """Replace what JSON cannot hold: tuples become lists, numbers that are not finite null."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
