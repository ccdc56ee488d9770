"""What ``diff`` found, in the terminal, as a page and as JSON; ``shrink`` and ``canonical`` as JSON."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.findings.pictures import Narrowing
from pindown.findings.wording import at_least, at_most, count, shape
from pindown.json_files import document, plain
from pindown.network import ReluNetwork
from pindown.report.certificates import certificate_as_dict, certificate_words
from pindown.report.figures import draw
from pindown.report.pages import image_of, png_of, render, safe
from pindown.report.rows import rows_answer, rows_as_dict, rows_lines, rows_page, rows_word
from pindown.report.tuning import (
    MAX_INPUTS_SHOWN,
    MAX_NUMBERS_PRINTED,
    MAX_OUTPUTS_SHOWN,
    MAX_STEPS_PRINTED,
    MAX_TABLE_ROWS,
)
from pindown.text import printable, rounded_down, rounded_up

if TYPE_CHECKING:
    from rich.console import Console

    from pindown.affine import Array
    from pindown.equivalence.comparison import Diff, LabelDiff, LayerDifference
    from pindown.equivalence.gauge_fixing import CanonicalForm
    from pindown.equivalence.shrinking import Shrunk
    from pindown.model.graph import Model


_COLOURS = {"same": "green", "different": "red", "undecided": "yellow"}
DIFF_SCHEMA = 1
SHRUNK_SCHEMA = 1
CANONICAL_SCHEMA = 1


def diff_answer(diff: Diff) -> str:
    """Return the answer to the question that was asked, and what the readers took for granted."""
    said = values_answer(diff) if diff.labels is None else _labels_answer(diff, diff.labels)
    return " ".join([said, *map(printable, diff.assumptions)])


def values_answer(diff: Diff) -> str:
    """Return the verdict on the outputs as one sentence."""
    a, b = diff.names
    where, scale = _where(diff)
    bounded = isfinite(diff.gap_upper)
    upper = f"at most {rounded_up(diff.gap_upper)}{scale}" if bounded else "not bounded yet"
    if diff.verdict == "same":
        if diff.gap_upper == 0.0:
            return f"Proved: {a} and {b} are the same function {where}."
        return f"Proved: the outputs of {a} and {b} differ by {upper} {where}."
    if diff.verdict == "different":
        return (
            f"{a} and {b} are different functions: at the witness an output differs by at least "
            f"{rounded_down(diff.gap_lower, 4)}{scale}."
        )
    return (
        f"Not decided at tolerance {diff.allowed:g}: the largest difference found is "
        f"{rounded_down(diff.gap_lower)}{scale}, the largest possible one is {upper}."
    )


def _labels_answer(diff: Diff, labels: LabelDiff) -> str:
    """Return the verdict on the classes as one sentence."""
    a, b = diff.names
    where, scale = _where(diff)
    if labels.verdict == "same":
        return (
            f"Proved: {a} and {b} never choose different classes with both surer than "
            f"{labels.margin:g}{scale}, {where}."
        )
    if labels.verdict == "different" and labels.labels is not None:
        i, j = labels.labels
        return (
            f"{a} and {b} choose different classes: at an input that was found {i} and {j}, both surer "
            f"than {labels.margin:g}{scale}."
        )
    upper = f"at most {rounded_up(labels.upper)}{scale}" if isfinite(labels.upper) else "not bounded yet"
    return (
        f"Not decided at margin {labels.margin:g}: the largest disagreement about classes found is "
        f"{rounded_down(labels.lower)}{scale}, the largest possible one is {upper}."
    )


def _where(diff: Diff) -> tuple[str, str]:
    """Return the inputs in words, and what a gap is relative to."""
    if diff.box is None:
        return "for every input", " x (1 + |x|)"
    return f"for every input in {diff.domain}", ""


def layer_words(layer: LayerDifference) -> str:
    """Return what differs in one layer, or an empty string."""
    parts = [f"{count(layer.moved, 'unit')} moved"] if layer.moved else []
    parts += [f"{layer.rescaled:,} rescaled"] if layer.rescaled else []
    if layer.changed:
        parts.append(
            f"{layer.changed:,} of {layer.units:,} changed, by up to {layer.largest:.2g} of a row"
        )
    return ", ".join(parts)


def diff_lines(diff: Diff) -> list[str]:
    """Return what there is to say after the verdict, line by line."""
    upper = rounded_up(diff.gap_upper, 6) if isfinite(diff.gap_upper) else "unknown"
    lines = []
    if diff.labels is not None:
        lines.append(f"labels        {diff.labels}")
        lines.append(f"values        {diff.verdict}: {values_answer(diff)}")
    lines += [
        f"largest gap   between {rounded_down(diff.gap_lower, 6)} and {upper} on {diff.domain}",
        f"proof         {diff.proof} ({diff.seconds:.1f} s)",
    ]
    if diff.witness is not None and diff.verdict != "same":
        shown = ", ".join(f"{v:.4g}" for v in diff.witness[:MAX_NUMBERS_PRINTED])
        more = f", ... ({diff.witness.size} numbers)" if diff.witness.size > MAX_NUMBERS_PRINTED else ""
        lines.append(f"witness       [{shown}{more}]")
    for layer in diff.layers:
        words = layer_words(layer)
        if words:
            lines.append(f"layer {layer.layer:<8}{words}")
    if diff.pairs is not None and diff.pairs.pairs and diff.gap_upper > 0.0:
        lines.append(f"layers        {diff.pairs}")
    lines += [f"graph         {printable(change)}" for change in diff.graph[:MAX_STEPS_PRINTED]]
    for step in diff.steps[:MAX_STEPS_PRINTED]:
        lines.append(f"simplified    {step}")
    if len(diff.steps) > MAX_STEPS_PRINTED:
        lines.append(f"              and {len(diff.steps) - MAX_STEPS_PRINTED} steps more")
    lines += [f"certificate   {words}" for words in certificate_words(diff, diff.names)]
    if diff.interrupted:
        lines.append("interrupted: this is what was proved until then")
    return lines


def print_diff(diff: Diff, console: Console | None = None) -> None:
    """Print the verdict and what is behind it, with colours if the terminal has them."""
    from rich.text import Text

    from pindown.report.terminal import Screen

    out = console or Screen()
    lines = diff_lines(diff)
    verdict, said = (diff.answer.upper(), f"bold {_COLOURS[diff.answer]}"), diff_answer(diff)
    if diff.rows is not None:
        word, state = rows_word(diff.rows)
        place = "all inputs" if diff.box is None else "the box"
        lines = [*rows_lines(diff, diff.rows), f"on {place}".ljust(14) + f"{verdict[0]}: {said}", *lines]
        verdict, said = (word, f"bold {_COLOURS[state]}"), rows_answer(diff, diff.rows)
    out.print(Text.assemble(verdict, f"  {said}"))
    for line in lines:
        out.print(Text(line[:14], style="dim") + Text(line[14:]), soft_wrap=True)


def render_diff(diff: Diff) -> str:
    """Return the page. Everything that came from a file is escaped; nothing is loaded from elsewhere."""
    bounded = isfinite(diff.gap_upper)
    return render(
        "diff.html.j2",
        diff=diff,
        answer=diff_answer(diff),
        rows=None if diff.rows is None else rows_page(diff, diff.rows),
        values=None if diff.labels is None else values_answer(diff),
        shapes=[_shape_of(net) for net in (diff.first, diff.second)],
        same_widths=_widths_of(diff.first) == _widths_of(diff.second),
        lower=rounded_down(diff.gap_lower, 6),
        upper=rounded_up(diff.gap_upper, 6) if bounded else "not bounded",
        lower_short=at_least(diff.gap_lower),
        upper_short=at_most(diff.gap_upper) if bounded else "not bounded",
        history=_history_picture(diff),
        witness=None if diff.witness is None else _witness(diff, diff.witness),
        label_witness=_label_image(diff),
        layers=[_layer_row(layer) for layer in diff.layers[:MAX_TABLE_ROWS]],
        steps=[("checked", "proved", step) for step in diff.steps[:MAX_TABLE_ROWS]],
        certificate=certificate_as_dict(diff, diff.names),
    )


def _widths_of(net: Model | ReluNetwork) -> list[int] | None:
    return list(net.widths) if isinstance(net, ReluNetwork) else None


def _shape_of(net: Model | ReluNetwork) -> str:
    """Return a network's widths, or what a graph of operations takes and gives."""
    if isinstance(net, ReluNetwork):
        return shape(net.widths)
    return f"{net.in_features:,} → {net.out_features:,}, {count(len(net.nodes), 'operation')}"


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
        mark=diff.allowed,
        mark_label="tolerance",
        y_label="largest gap",
    )
    return safe(draw(picture, "history"))


def _witness(diff: Diff, x: Array) -> dict[str, Any]:
    """Return what the page shows of the witness: an image or numbers, and the outputs."""
    outputs = np.stack([net(x) for net in (diff.first, diff.second)], axis=1)
    gaps = np.abs(outputs[:, 0] - outputs[:, 1])
    first = np.sort(np.argsort(-gaps, kind="stable")[:MAX_OUTPUTS_SHOWN])
    return {
        "image": _image(diff, x),
        "numbers": [f"{value:.6g}" for value in x[:MAX_INPUTS_SHOWN]],
        "inputs": x.size,
        "outputs": [
            (k, f"{outputs[k, 0]:.6g}", f"{outputs[k, 1]:.6g}", f"{gaps[k]:.3g}") for k in first.tolist()
        ],
        "classes": ["largest" if k == gaps.argmax() else "" for k in first.tolist()],
        "n_outputs": len(gaps),
    }


def _label_image(diff: Diff) -> str | None:
    if diff.labels is None or diff.labels.witness is None or diff.labels.labels is None:
        return None
    return _image(diff, diff.labels.witness)


def _image(diff: Diff, x: Array) -> str | None:
    picture = image_of(x, diff.first.input_shape)
    return None if picture is None else png_of(picture)


def render_diff_json(diff: Diff) -> str:
    """Return the comparison as indented JSON with a versioned schema.

    ``diff.schema.json`` beside this module says what stands where; ``json_schema("diff")`` reads it.
    ``verdict`` answers the question that was asked, as the exit code does: about labels if those were
    asked about, else about the values; ``gap_verdict`` is always about the values. ``assumptions`` is
    what reading the two models took for granted, such as the activation that a state dict does not
    name, and the solver where it proved something. Numbers that are not finite are null: JSON has no
    way to write them.
    """
    return document(plain(diff_as_dict(diff)))


def diff_as_dict(diff: Diff) -> dict[str, Any]:
    """Return the comparison as dictionaries and lists, as the schema says."""
    point = diff.witness
    return {
        "schema": DIFF_SCHEMA,
        "verdict": diff.answer,
        "question": "values" if diff.labels is None else "labels",
        "kind": diff.kind,
        "gap_verdict": diff.verdict,
        "gap_lower": diff.gap_lower,
        "gap_upper": diff.gap_upper,
        "tol": diff.tol,
        "rtol": diff.rtol,
        "scale": diff.scale,
        "allowed": diff.allowed,
        "tolerances": list(diff.tolerances),
        "proof": diff.proof,
        "assumptions": list(diff.assumptions),
        "domain": diff.domain,
        "relative": diff.box is None,
        "witness": None if point is None else point.tolist(),
        "outputs": None if point is None else [net(point).tolist() for net in (diff.first, diff.second)],
        "names": list(diff.names),
        "networks": [
            {
                "widths": _widths_of(net),
                "parameters": net.n_parameters,
                "fingerprint": net.fingerprint,
            }
            for net in (diff.first, diff.second)
        ],
        "layers": [asdict(layer) for layer in diff.layers],
        "steps": list(diff.steps),
        "history": [step._asdict() for step in diff.history],
        "labels": _labels(diff),
        "blame": [asdict(layer) for layer in diff.blame],
        "graph": list(diff.graph),
        "layer_pairs": _layer_pairs(diff),
        "rows": None if diff.rows is None else rows_as_dict(diff.rows),
        "certificate": certificate_as_dict(diff, diff.names),
        "seconds": diff.seconds,
        "interrupted": diff.interrupted,
    }


def _layer_pairs(diff: Diff) -> dict[str, Any] | None:
    found = diff.pairs
    if found is None:
        return None
    pairs = [pair._asdict() for pair in found.pairs]
    return {
        "complete": found.complete,
        "equal": found.equal,
        "allowed": found.allowed,
        "pairs": pairs,
        "open": list(found.open),
    }


def _labels(diff: Diff) -> dict[str, Any] | None:
    diff_answer = diff.labels
    if diff_answer is None:
        return None
    return {
        "verdict": diff_answer.verdict,
        "margin": diff_answer.margin,
        "lower": diff_answer.lower,
        "upper": diff_answer.upper,
        "witness": None if diff_answer.witness is None else diff_answer.witness.tolist(),
        "labels": diff_answer.labels,
    }


def render_shrunk_json(shrunk: Shrunk) -> str:
    """Return the reduction as indented JSON with a versioned schema.

    Schema 1::

        {"schema": 1, "before": {"widths": [int], "relus": int, "parameters": int},
         "after": {...}, "gap_upper": float, "complete": bool, "assumptions": [str],
         "steps": [{"rule": str, "layer": int, "units": [int], "reason": str, "saved": int,
                    "gap": float, "place": str, "counted": "unit" | "channel"}]}

    A model whose channels were looked at is described by "parameters" and "multiply_adds" instead.
    """
    before, after = shrunk.sides
    content = {
        "schema": SHRUNK_SCHEMA,
        "before": _size(before),
        "after": _size(after),
        "gap_upper": shrunk.gap_upper,
        "complete": shrunk.complete,
        "assumptions": list(shrunk.assumptions),
        "steps": [asdict(step) for step in shrunk.steps],
    }
    return document(plain(content))


def _size(net: Model | ReluNetwork) -> dict[str, Any]:
    if not isinstance(net, ReluNetwork):
        return {"parameters": net.n_parameters, "multiply_adds": net.multiply_adds}
    return {"widths": list(net.widths), "relus": net.size, "parameters": net.n_parameters}


def render_canonical_json(form: CanonicalForm) -> str:
    """Return the canonical form as indented JSON; the weights are in the file that was written.

    Schema 1::

        {"schema": 1, "gauge": "unit" | "balanced", "widths": [int], "relus": int, "parameters": int,
         "fingerprint": str, "assumptions": [str], "near_ties": [{"layer": int, "units": [int, int]}],
         "merged": [{"layer": int, "unit": int}]}
    """
    net = form.network
    content = {
        "schema": CANONICAL_SCHEMA,
        "gauge": form.gauge,
        "widths": list(net.widths),
        "relus": net.size,
        "parameters": net.n_parameters,
        "fingerprint": net.fingerprint,
        "assumptions": list(net.notes),
        "near_ties": [{"layer": layer, "units": [i, j]} for layer, i, j in form.near_ties],
        "merged": [{"layer": layer, "unit": unit} for layer, unit in form.gone],
    }
    return document(content)
