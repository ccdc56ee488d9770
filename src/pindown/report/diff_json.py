"""A comparison for machines: JSON with a versioned schema.

Schema 1::

    {"schema": 1, "verdict": "same" | "different" | "undecided", "question": "values" | "labels",
     "kind": "exact", "gap_verdict": "same" | "different" | "undecided", "gap_lower": float,
     "gap_upper": float | null, "tol": float, "proof": str, "assumptions": [str],
     "domain": str, "relative": bool,
     "witness": [float] | null, "outputs": [[float], [float]] | null, "names": [str, str],
     "networks": [{"widths": [int], "parameters": int, "fingerprint": str}, ...],
     "layers": [{"layer": int, "units": int, "moved": int, "rescaled": int, "changed": int,
                 "largest": float}],
     "steps": [str], "history": [{"seconds": float, "lower": float, "upper": float | null,
                                  "method": str}],
     "labels": {"verdict": str, "margin": float, "lower": float, "upper": float | null,
                "witness": [float] | null, "labels": [int, int] | null} | null,
     "seconds": float, "interrupted": bool}

``verdict`` answers the question that was asked, as the exit code does: about labels if those were asked
about, else about the values; ``gap_verdict`` is always about the values. ``assumptions`` is what reading
the two models took for granted, such as the activation that a state dict does not name, and the solver
where it proved something. Numbers that are not finite are null: JSON has no way to write them.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pindown.json_files import document
from pindown.report.json import plain

if TYPE_CHECKING:
    from pindown.equivalence.comparison import Diff

SCHEMA = 1


def render_diff_json(diff: Diff) -> str:
    """Return the comparison as indented JSON."""
    return document(plain(as_dict(diff)))


def as_dict(diff: Diff) -> dict[str, Any]:
    """Return the comparison as dictionaries and lists, as the schema says."""
    point = diff.witness
    return {
        "schema": SCHEMA,
        "verdict": diff.answer,
        "question": "values" if diff.labels is None else "labels",
        "kind": diff.kind,
        "gap_verdict": diff.verdict,
        "gap_lower": diff.gap_lower,
        "gap_upper": diff.gap_upper,
        "tol": diff.tol,
        "proof": diff.proof,
        "assumptions": list(diff.assumptions),
        "domain": diff.domain,
        "relative": diff.box is None,
        "witness": None if point is None else point.tolist(),
        "outputs": None if point is None else [net(point).tolist() for net in (diff.first, diff.second)],
        "names": list(diff.names),
        "networks": [
            {"widths": list(net.widths), "parameters": net.n_parameters, "fingerprint": net.fingerprint}
            for net in (diff.first, diff.second)
        ],
        "layers": [asdict(layer) for layer in diff.layers],
        "steps": list(diff.steps),
        "history": [step._asdict() for step in diff.history],
        "labels": _labels(diff),
        "seconds": diff.seconds,
        "interrupted": diff.interrupted,
    }


def _labels(diff: Diff) -> dict[str, Any] | None:
    answer = diff.labels
    if answer is None:
        return None
    return {
        "verdict": answer.verdict,
        "margin": answer.margin,
        "lower": answer.lower,
        "upper": answer.upper,
        "witness": None if answer.witness is None else answer.witness.tolist(),
        "labels": answer.labels,
    }
