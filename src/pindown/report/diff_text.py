"""A comparison in the terminal, and in the words that the page shares with it."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from pindown.bound_text import rounded_down, rounded_up
from pindown.findings.wording import count
from pindown.visible_text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from pindown.equivalence.comparison import Diff, LabelDiff, LayerDifference

_COLOURS = {"same": "green", "different": "red", "undecided": "yellow"}
_MOST_STEPS = 8
_SHOWN_NUMBERS = 6


def answer(diff: Diff) -> str:
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
        f"Not decided at tolerance {diff.tol:g}: the largest difference found is "
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


def plain_text(diff: Diff) -> list[str]:
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
        shown = ", ".join(f"{v:.4g}" for v in diff.witness[:_SHOWN_NUMBERS])
        more = f", ... ({diff.witness.size} numbers)" if diff.witness.size > _SHOWN_NUMBERS else ""
        lines.append(f"witness       [{shown}{more}]")
    for layer in diff.layers:
        words = layer_words(layer)
        if words:
            lines.append(f"layer {layer.layer:<8}{words}")
    for step in diff.steps[:_MOST_STEPS]:
        lines.append(f"simplified    {step}")
    if len(diff.steps) > _MOST_STEPS:
        lines.append(f"              and {len(diff.steps) - _MOST_STEPS} steps more")
    if diff.interrupted:
        lines.append("interrupted: this is what was proved until then")
    return lines


def print_diff(diff: Diff, console: Console | None = None) -> None:
    """Print the verdict and what is behind it, with colours if the terminal has them."""
    from rich.text import Text

    from pindown.report.terminal import Screen

    out = console or Screen()
    out.print(Text.assemble((diff.answer.upper(), f"bold {_COLOURS[diff.answer]}"), f"  {answer(diff)}"))
    for line in plain_text(diff):
        out.print(Text(line[:14], style="dim") + Text(line[14:]), soft_wrap=True)
