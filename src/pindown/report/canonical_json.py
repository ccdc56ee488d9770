"""A canonical form for machines: JSON with a versioned schema.

Schema 1::

    {"schema": 1, "gauge": "unit" | "balanced", "widths": [int], "relus": int, "parameters": int,
     "fingerprint": str, "assumptions": [str], "near_ties": [{"layer": int, "units": [int, int]}]}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pindown.json_files import document

if TYPE_CHECKING:
    from pindown.equivalence.gauge_fixing import CanonicalForm

SCHEMA = 1


def render_canonical_json(form: CanonicalForm) -> str:
    """Return the canonical form as indented JSON; the weights are in the file that was written."""
    net = form.network
    content = {
        "schema": SCHEMA,
        "gauge": form.gauge,
        "widths": list(net.widths),
        "relus": net.size,
        "parameters": net.n_parameters,
        "fingerprint": net.fingerprint,
        "assumptions": list(net.notes),
        "near_ties": [{"layer": layer, "units": [i, j]} for layer, i, j in form.near_ties],
    }
    return document(content)
