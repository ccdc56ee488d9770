"""What ``verify`` found: in words, in the terminal and as JSON; its page is in ``verification_page``."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pindown.findings.wording import count
from pindown.json_files import document, plain
from pindown.report.certificates import certificate_as_dict, certificate_words
from pindown.report.tuning import MAX_NUMBERS_PRINTED
from pindown.text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from pindown.affine import Array
    from pindown.model.graph import Model
    from pindown.verification.properties import Property
    from pindown.verification.verdicts import Verification
    from pindown.verification.witnesses import Witness

VERIFICATION_SCHEMA = 1
_MAX_CONDITIONS = 4  # in a sentence
_COLOURS = {"holds": "green", "violated": "red", "undecided": "yellow"}


class Asked(NamedTuple):
    """What the question was about, as far as it is known.

    Attributes:
        models: The models, in the order of the property.
        names: What they are called.
        property_name: What the property is called.
        budget: Seconds that were allowed; None if nobody said, or without a limit.
    """

    models: tuple[Model, ...] = ()
    names: tuple[str, ...] = ()
    property_name: str = ""
    budget: float | None = None

    @property
    def who(self) -> str:
        """The models in words."""
        return " and ".join(map(printable, self.names)) or "the model"


# ---------------------------------------------------------------------- words


def verification_answer(answer: Verification, asked: Asked) -> str:
    """Return the answer in one sentence."""
    several, who = len(asked.names) > 1, asked.who
    what = f"the property {printable(asked.property_name)}" if asked.property_name else "the property"
    if answer.verdict == "holds":
        return f"Proved: {who} {'keep' if several else 'keeps'} {what} for every input it speaks about."
    if answer.verdict == "violated":
        verb = "violate" if several else "violates"
        return f"Proved: {who} {verb} {what}{_shown_by(answer)}."
    n = len(answer.prop.unsafe)
    ended = "until it was interrupted" if answer.interrupted else f"within {answer.seconds:.1f} s"
    return (
        f"Not decided {ended}: {answer.open_sets:,} of {count(n, 'way')} to violate {what} "
        f"{'is' if answer.open_sets == 1 else 'are'} not excluded."
    )


def _shown_by(answer: Verification) -> str:
    """Return what is so at the witness, if that is short."""
    example = answer.example
    rows = [] if example is None else answer.prop.conditions(example.index)
    if not 0 < len(rows) <= _MAX_CONDITIONS:
        return "; the witness below shows it"
    return f": at the witness below {' and '.join(rows)}"


def margins(example: Witness) -> str:
    """Return what a witness is worth, in both precisions."""
    known = f"proved by {example.proof}" if example.proved else "not proved: rounding may decide it"
    seen = "" if example.float32_violates else ", where it is no violation"
    return (
        f"margin {example.margin:.4g} in float64, {example.float32_margin:.4g} in float32 "
        f"({example.runtime}{seen}); {known}"
    )


def verification_lines(answer: Verification, asked: Asked) -> list[str]:
    """Return what there is to say after the competition's word, line by line."""
    n, example = len(answer.prop.unsafe), answer.example
    lines = [
        f"{answer.verdict:<12}{asked.who}: {answer.prop}",
        f"{'method':<12}{answer.method}, {count(answer.n_parts, 'part')}, {answer.seconds:.1f} s",
    ]
    if answer.verdict == "undecided":
        lines.append(f"{'open':<12}{answer.open_sets:,} of {count(n, 'unsafe set')}")
    if example is not None:
        lines.append(f"{'witness':<12}{margins(example)}")
        x, y = (shortened(values) for values in (example.x, example.outputs))
        lines.append(f"{'':<12}x = {x}, y = {y}")
    lines += [f"{'certificate':<12}{words}" for words in certificate_words(answer, asked.names)]
    lines += [f"{'as read':<12}{printable(note)}" for model in asked.models for note in model.notes]
    if answer.interrupted:
        lines.append("interrupted: this is what was proved until then")
    return lines


def shortened(values: Array) -> str:
    """Return the first numbers of an array.

    >>> shortened(np.arange(9.0))
    '[0, 1, 2, 3, 4, 5, ... (9 numbers)]'
    """
    shown = ", ".join(f"{value:.4g}" for value in values[:MAX_NUMBERS_PRINTED])
    more = f", ... ({values.size:,} numbers)" if values.size > MAX_NUMBERS_PRINTED else ""
    return f"[{shown}{more}]"


def print_verification(answer: Verification, asked: Asked, console: Console | None = None) -> None:
    """Print the competition's word, and below it what it rests on."""
    from rich.text import Text

    from pindown.report.terminal import Screen

    out = console or Screen()
    out.print(Text(answer.word, style=f"bold {_COLOURS[answer.verdict]}"))
    for line in verification_lines(answer, asked):
        out.print(Text(line[:12], style="dim") + Text(line[12:]), soft_wrap=True)


# ---------------------------------------------------------------------- JSON


def render_verification_json(answer: Verification, asked: Asked | None = None) -> str:
    """Return the answer as indented JSON; ``verification.schema.json`` beside this module says how.

    Numbers that are not finite are null: JSON has no way to write them.
    """
    return document(plain(verification_as_dict(answer, asked or Asked())))


def verification_as_dict(answer: Verification, asked: Asked) -> dict[str, Any]:
    """Return the answer as dictionaries and lists, as the schema says."""
    prop = answer.prop
    return {
        "schema": VERIFICATION_SCHEMA,
        "verdict": answer.verdict,
        "word": answer.word,
        "kind": answer.kind,
        "method": answer.method,
        "names": list(asked.names),
        "property": {
            "name": asked.property_name,
            "words": str(prop),
            "inputs": list(prop.n_inputs),
            "outputs": list(prop.n_outputs),
            "unsafe_sets": len(prop.unsafe),
        },
        "parts": answer.n_parts,
        "open_sets": answer.open_sets,
        "bound": answer.bound if answer.verdict == "undecided" else None,
        "witness": None if answer.example is None else _witness(prop, answer.example),
        "assumptions": [note for model in asked.models for note in model.notes],
        "history": [
            {"seconds": seconds, "parts": parts, "open_sets": left}
            for seconds, parts, left in answer.history
        ],
        "budget": None if asked.budget is None or not isfinite(asked.budget) else asked.budget,
        "certificate": certificate_as_dict(answer, asked.names),
        "seconds": answer.seconds,
        "interrupted": answer.interrupted,
    }


def _witness(prop: Property, example: Witness) -> dict[str, Any]:
    return {
        "inputs": [each.tolist() for each in inputs_of_networks(prop, example.x)],
        "outputs": [each.tolist() for each in outputs_of_networks(prop, example.outputs)],
        "float32_outputs": [
            each.tolist() for each in outputs_of_networks(prop, example.float32_outputs)
        ],
        "unsafe_set": example.index,
        "margin": example.margin,
        "float32_margin": example.float32_margin,
        "float32_violates": example.float32_violates,
        "float32_by": example.runtime,
        "proof": example.proof,
        "found_by": example.by,
    }


def inputs_of_networks(prop: Property, x: Array) -> list[Array]:
    """Return what each network of a property is given where its free inputs are x."""
    return [x] if prop.reads is None else [x[read] for read in prop.reads]


def outputs_of_networks(prop: Property, outputs: Array) -> list[Array]:
    """Return the outputs of all networks, network by network."""
    return np.split(outputs, np.cumsum(prop.n_outputs)[:-1])
