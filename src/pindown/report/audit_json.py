"""An audit for machines: JSON with a versioned schema.

The schema is ``audit.schema.json`` beside this module, for any validator of JSON Schema, and in words
in the documentation. Its number rises when a name goes or changes its meaning; new names may come.

Numbers that are not finite are null: JSON has no way to write them.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from pindown.findings import CATALOGUE, Finding
from pindown.findings.asked_model import AskedModel, Function, last_activation
from pindown.findings.comparison import Comparison
from pindown.findings.concerns import Concern
from pindown.io.evaluated import Evaluated
from pindown.json_files import document, plain
from pindown.network import ReluNetwork
from pindown.validation import refuse

if TYPE_CHECKING:
    from pindown._audit import Audit

SCHEMA = 2
_SCHEMAS = {
    "audit": "audit.schema.json",
    "verify": "verification.schema.json",
    "diff": "diff.schema.json",
}


def json_schema(command: Literal["audit", "verify", "diff"] = "audit") -> dict[str, Any]:
    """Return the schema of what a command writes with ``--json``, as JSON Schema (draft 2020-12).

    >>> json_schema("verify")["properties"]["verdict"]["enum"]
    ['holds', 'violated', 'undecided']
    """
    if command not in _SCHEMAS:
        refuse("command", " or ".join(map(repr, _SCHEMAS)), command)
    text = (files("pindown.report") / _SCHEMAS[command]).read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def render_json(audit: Audit) -> str:
    """Return the audit as indented JSON."""
    return document(plain(as_dict(audit)))


def as_dict(audit: Audit) -> dict[str, Any]:
    """Return the audit as dictionaries and lists, as the schema says."""
    return {
        "schema": SCHEMA,
        "name": audit.name,
        "verdict": audit.verdict,
        "concerns": [_concern(concern) for concern in audit.concerns],
        "fine": [{"words": words, "code": code} for words, code in audit.judgement.fine],
        "unchecked": list(audit.judgement.open),
        "limits": dict(audit.limits),
        "description": audit.description,
        "given": audit.given,
        "budget": audit.budget,
        "seed": audit.seed,
        "fingerprint": audit.fingerprint,
        "interrupted": audit.interrupted,
        "box": _box(audit),
        "network": _network(audit.model),
        "findings": [_finding(finding) for finding in audit.findings],
        "comparison": None if audit.comparison is None else _comparison(audit.comparison),
    }


def _network(model: Function) -> dict[str, Any]:
    """Return what is known of the model; widths and ReLUs are those of a network, else null."""
    net = AskedModel(model).values
    layered = net if isinstance(net, ReluNetwork) else None
    known = None if isinstance(model, Evaluated) else model
    return {
        "widths": None if layered is None else list(layered.widths),
        "input_shape": list(model.input_shape),
        "outputs": model.out_features,
        "parameters": None if known is None else known.n_parameters,
        "relus": None if layered is None else layered.size,
        "output_activation": None if known is None else last_activation(known),
        "notes": list(model.notes),
        "fingerprint": model.fingerprint,
    }


def _box(audit: Audit) -> dict[str, Any] | None:
    if audit.box is None:
        return None
    return {
        "name": audit.box_name,
        "lower": _side(audit.box.lower.tolist()),
        "upper": _side(audit.box.upper.tolist()),
    }


def _side(ends: list[float]) -> float | list[float]:
    """Return one number for all inputs if they share it: images have thousands."""
    return ends[0] if len(set(ends)) == 1 else ends


def _comparison(comparison: Comparison) -> dict[str, Any]:
    distance = comparison.distance
    return {
        "before": comparison.before,
        "after": comparison.after,
        "notes": list(comparison.notes),
        "distance": None if distance is None else asdict(distance),
        "changes": [
            {
                "code": change.code,
                "title": change.title,
                "status": change.status,
                "before": change.before,
                "after": change.after,
                "before_number": asdict(change.before_number) if change.before_number else None,
                "after_number": asdict(change.after_number) if change.after_number else None,
                "difference": change.difference,
            }
            for change in comparison.changes
        ],
    }


def _concern(concern: Concern) -> dict[str, Any]:
    return {
        "name": concern.name,
        "title": concern.title,
        "code": concern.code,
        "number": asdict(concern.number),
        "value": concern.value,
        "limit": concern.limit,
        "why": concern.why,
        "todo": concern.todo,
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
        "sentence": finding.sentence,
        "facts": dict(finding.facts),
        "noise": dict(finding.noise),
        "remedy": finding.remedy,
        "next": finding.next,
        "number": asdict(finding.number) if finding.number else None,
        "hypotheses": [asdict(hypothesis) for hypothesis in finding.hypotheses],
        "table": asdict(finding.table) if finding.table else None,
        "figure": {"type": type(figure).__name__, **asdict(figure)} if figure else None,
    }
