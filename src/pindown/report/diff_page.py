"""A comparison of two networks as one self-contained page."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.bound_text import rounded_down, rounded_up
from pindown.findings.pictures import Narrowing
from pindown.findings.wording import at_least, at_most, shape
from pindown.report.diff_text import answer, values_answer
from pindown.report.figures import draw
from pindown.report.pages import MOST_ROWS, render, safe
from pindown.report.witness_image import image_of, png_of

if TYPE_CHECKING:
    from pindown.affine import Array
    from pindown.equivalence.comparison import Diff, LayerDifference

_MOST_OUTPUTS = 12
_MOST_INPUTS = 24


def render_diff(diff: Diff) -> str:
    """Return the page. Everything that came from a file is escaped; nothing is loaded from elsewhere."""
    bounded = isfinite(diff.gap_upper)
    return render(
        "diff.html.j2",
        diff=diff,
        answer=answer(diff),
        values=None if diff.labels is None else values_answer(diff),
        shapes=[shape(net.widths) for net in (diff.first, diff.second)],
        lower=rounded_down(diff.gap_lower, 6),
        upper=rounded_up(diff.gap_upper, 6) if bounded else "not bounded",
        lower_short=at_least(diff.gap_lower),
        upper_short=at_most(diff.gap_upper) if bounded else "not bounded",
        history=_history_picture(diff),
        witness=None if diff.witness is None else _witness(diff, diff.witness),
        label_witness=_label_image(diff),
        layers=[_layer_row(layer) for layer in diff.layers[:MOST_ROWS]],
        steps=[("checked", "proved", step) for step in diff.steps[:MOST_ROWS]],
    )


def _layer_row(layer: LayerDifference) -> tuple[str, ...]:
    counts = (layer.layer, layer.units, layer.moved, layer.rescaled, layer.changed)
    return (*(f"{count:,}" for count in counts), f"{layer.largest:.2g}")


def _history_picture(diff: Diff) -> Any:
    if not diff.history:
        return ""
    picture = Narrowing(
        caption="The proved interval over time",
        seconds=tuple(step.seconds for step in diff.history),
        lower=tuple(step.lower for step in diff.history),
        upper=tuple(step.upper for step in diff.history),
        mark=diff.tol,
        mark_label="tolerance",
        y_label="largest gap",
    )
    return safe(draw(picture, "history"))


def _witness(diff: Diff, x: Array) -> dict[str, Any]:
    """Return what the page shows of the witness: an image or numbers, and the outputs."""
    outputs = np.stack([net(x) for net in (diff.first, diff.second)], axis=1)
    gaps = np.abs(outputs[:, 0] - outputs[:, 1])
    first = np.sort(np.argsort(-gaps, kind="stable")[:_MOST_OUTPUTS])
    return {
        "image": _image(diff, x),
        "numbers": [f"{value:.6g}" for value in x[:_MOST_INPUTS]],
        "inputs": x.size,
        "outputs": [
            (k, f"{outputs[k, 0]:.6g}", f"{outputs[k, 1]:.6g}", f"{gaps[k]:.3g}") for k in first.tolist()
        ],
        "classes": ["largest" if k == gaps.argmax() else "" for k in first.tolist()],
        "n_outputs": len(gaps),
    }


def _label_image(diff: Diff) -> str | None:
    if diff.labels is None or diff.labels.witness is None:
        return None
    return _image(diff, diff.labels.witness)


def _image(diff: Diff, x: Array) -> str | None:
    picture = image_of(x, diff.first.input_shape)
    return None if picture is None else png_of(picture)
