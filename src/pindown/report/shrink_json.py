"""A reduction for machines: JSON with a versioned schema.

Schema 1::

    {"schema": 1, "before": {"widths": [int], "relus": int, "parameters": int},
     "after": {...}, "gap_upper": float, "complete": bool, "assumptions": [str],
     "steps": [{"rule": str, "layer": int, "units": [int], "reason": str, "saved": int, "gap": float}]}
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pindown.json_files import document
from pindown.report.json import plain

if TYPE_CHECKING:
    from pindown.equivalence.shrinking import Shrunk
    from pindown.network import ReluNetwork

SCHEMA = 1


def render_shrunk_json(shrunk: Shrunk) -> str:
    """Return the reduction as indented JSON."""
    content = {
        "schema": SCHEMA,
        "before": _size(shrunk.original),
        "after": _size(shrunk.network),
        "gap_upper": shrunk.gap_upper,
        "complete": shrunk.complete,
        "assumptions": list(shrunk.assumptions),
        "steps": [asdict(step) for step in shrunk.steps],
    }
    return document(plain(content))


def _size(net: ReluNetwork) -> dict[str, Any]:
    return {"widths": list(net.widths), "relus": net.size, "parameters": net.n_parameters}
