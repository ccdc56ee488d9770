"""The page of a verdict: the answer, the witness beside the middle of its box, how the search went.

Inputs that are images are drawn as images, with the difference made visible; of others those that moved
most are listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pindown.findings.pictures import Curves
from pindown.findings.wording import count, number_text
from pindown.report.certificates import check_command
from pindown.report.figures import draw
from pindown.report.pages import image_of, png_of, render, safe
from pindown.report.tuning import (
    MAX_HISTORY_STEPS,
    MAX_IMAGE_SIDE,
    MAX_INPUTS_SHOWN,
    MAX_OUTPUTS_SHOWN,
    MAX_TABLE_ROWS,
)
from pindown.report.verification import (
    Asked,
    inputs_of_networks,
    verification_answer,
)
from pindown.text import printable

if TYPE_CHECKING:
    from pindown.affine import Array
    from pindown.model.graph import Model
    from pindown.verification.properties import Property
    from pindown.verification.verdicts import Verification
    from pindown.verification.witnesses import Witness


def render_verification(answer: Verification, asked: Asked | None = None) -> str:
    """Return the page. Everything that came from a file is escaped; nothing is loaded from elsewhere."""
    asked = asked or Asked()
    example, prop = answer.example, answer.prop
    return render(
        "verify.html.j2",
        answer=answer,
        asked=asked,
        sentence=verification_answer(answer, asked),
        facts=list(_facts(answer, asked)),
        shown=None if example is None else _shown(answer, asked, example),
        pictures=list(_history(answer)),
        words=str(prop),
        sizes=_sizes(prop),
        conditions=_conditions(prop),
        notes=[printable(note) for model in asked.models for note in model.notes],
        prints=[model.fingerprint[:16] for model in asked.models],
        number=number_text,
    )


def _facts(answer: Verification, asked: Asked) -> Iterator[tuple[str, str]]:
    for i, name in enumerate(asked.names):
        size = f": {asked.models[i]!r}" if i < len(asked.models) else ""
        yield ("Model" if len(asked.names) == 1 else f"Model {i + 1}"), f"{printable(name)}{size}"
    if asked.property_name:
        yield "Property", printable(asked.property_name)
    yield "Verdict", f"{answer.word} in the words of the competition"
    if answer.certificate:
        command = check_command(answer.certificate, asked.names)
        yield "Certificate", f"{printable(answer.certificate)}; checked by: {command}"
    if answer.certificate_note:
        yield "Certificate", printable(answer.certificate_note)


def _sizes(prop: Property) -> str:
    networks = "" if prop.reads is None else f" of {len(prop.reads)} networks"
    return (
        f"{count(prop.n_free, 'input')}, {count(sum(prop.n_outputs), 'output')}{networks}, "
        f"{count(len(prop.unsafe), 'unsafe set')}"
    )


def _conditions(prop: Property) -> list[tuple[str, ...]]:
    """Return the first unsafe sets as rows of a table."""
    few = range(min(len(prop.unsafe), MAX_TABLE_ROWS))
    return [(str(s + 1), _joined(prop.conditions(s))) for s in few]


def _joined(conditions: list[str]) -> str:
    more = len(conditions) - MAX_OUTPUTS_SHOWN
    shown = conditions[:MAX_OUTPUTS_SHOWN] + ([f"{more:,} more"] if more > 0 else [])
    return " and ".join(shown) or "any outputs"


# ---------------------------------------------------------------------- the witness


class _Point(NamedTuple):
    """An input that the page shows, with the outputs of all networks there, one after the other."""

    place: str
    x: Array
    outputs: Array


def _shown(answer: Verification, asked: Asked, example: Witness) -> dict[str, Any]:
    """Return what the page shows of the witness, beside the middle of the box it lies in."""
    prop, unsafe = answer.prop, answer.prop.unsafe[example.index]
    middle = unsafe.lower / 2 + unsafe.upper / 2
    points = [_Point("at the witness", example.x, example.outputs)]
    made = _outputs(prop, asked.models, middle)
    if made is not None:
        points.insert(0, _Point("in the middle", middle, made))
    places = [point.place for point in points]
    return {
        "images": _images(asked.models, middle, example.x),
        "inputs": _moved(prop, example, middle),
        "n_moved": int(np.count_nonzero(example.x != middle)),
        "n_inputs": example.x.size,
        "outputs": _output_rows(prop, example, points),
        "output_columns": ("output", *places, "in float32"),
        "n_outputs": example.outputs.size,
        "conditions": _condition_rows(prop, example, points),
        "condition_columns": ("condition", *places),
        "n_conditions": len(unsafe.limits),
        "best": _largest(prop, points),
    }


def _outputs(prop: Property, models: tuple[Model, ...], x: Array) -> Array | None:
    """Return the outputs of all networks of a property at its free inputs."""
    if len(models) != prop.n_models:
        return None
    which = (0,) if prop.models is None else prop.models
    given = inputs_of_networks(prop, x)
    with np.errstate(all="ignore"):
        made = [models[m].evaluate(own[None]).ravel() for m, own in zip(which, given, strict=True)]
    return np.concatenate(made)


def _images(models: tuple[Model, ...], nominal: Array, found: Array) -> dict[str, Any] | None:
    """Return both inputs and what is between them as images, None if they are none."""
    if not models or models[0].in_features != found.size:
        return None
    shape = models[0].input_shape
    both = np.concatenate([nominal, found])
    ends = min(0.0, float(both.min())), max(1.0, float(both.max()))
    change = found - nominal
    size = float(np.abs(change).max(initial=0.0))
    grey = 0.5 + change / (2.0 * size) if size > 0 else np.full(found.shape, 0.5)
    given = ("The middle of the box", nominal), ("The witness", found), ("What was added", grey)
    images = [(image_of(x, shape, (0.0, 1.0) if x is grey else ends), name) for name, x in given]
    drawn = [(image, name) for image, name in images if image is not None]
    if not drawn:
        return None
    step = -(-max(drawn[0][0].shape[:2]) // MAX_IMAGE_SIDE)
    return {
        "drawn": [(png_of(image[::step, ::step]), name) for image, name in drawn],
        "size": f"{size:.3g}",
        "times": number_text(float(f"{(ends[1] - ends[0]) / (2.0 * size):.2g}")) if size > 0 else "",
        "step": step,
    }


def _moved(prop: Property, example: Witness, nominal: Array) -> list[tuple[str, ...]]:
    """Return the inputs that moved most, as a part of their interval."""
    unsafe, names = prop.unsafe[example.index], prop.names[0]
    width = unsafe.upper - unsafe.lower
    share = np.abs(example.x - nominal) / np.where(width > 0, width, 1.0)
    order = np.lexsort((-np.abs(example.x - nominal), -share))[:MAX_INPUTS_SHOWN]
    return [
        (
            names[i],
            f"{unsafe.lower[i]:.6g}",
            f"{nominal[i]:.6g}",
            f"{example.x[i]:.6g}",
            f"{unsafe.upper[i]:.6g}",
        )
        for i in np.sort(order).tolist()
    ]


def _output_rows(prop: Property, example: Witness, points: list[_Point]) -> list[tuple[str, ...]]:
    """Return the outputs that the violation is about first, then those that moved most."""
    names, unsafe = prop.names[1], prop.unsafe[example.index]
    unused = np.abs(unsafe.rows).sum(axis=0) == 0
    size = np.abs(points[-1].outputs - points[0].outputs)
    order = np.lexsort((-np.nan_to_num(size), unused))[:MAX_OUTPUTS_SHOWN]
    columns = [*(point.outputs for point in points), example.float32_outputs]
    return [(names[k], *(f"{column[k]:.6g}" for column in columns)) for k in np.sort(order).tolist()]


def _largest(prop: Property, points: list[_Point]) -> str:
    """Return which output is the largest at either point, where one network changes its mind."""
    if len(points) < 2 or prop.reads is not None:
        return ""
    i, j = (int(np.argmax(point.outputs)) for point in points)
    if i == j:
        return ""
    names = prop.names[1]
    return f"The largest output is {names[i]} in the middle of the box and {names[j]} at the witness."


def _condition_rows(prop: Property, example: Witness, points: list[_Point]) -> list[tuple[str, ...]]:
    """Return every condition of the unsafe set with how far it is above its limit at the points."""
    unsafe = prop.unsafe[example.index].inside
    columns = []
    for point in points:
        residuals = unsafe.rows @ point.outputs - unsafe.limits
        if unsafe.input_rows is not None:
            residuals = residuals + unsafe.input_rows @ point.x
        columns.append(residuals)
    words = prop.conditions(example.index)[:MAX_TABLE_ROWS]
    return [(text, *(f"{column[i]:.4g}" for column in columns)) for i, text in enumerate(words)]


# ---------------------------------------------------------------------- the search


def _history(answer: Verification) -> Iterator[tuple[Any, str]]:
    """Yield pictures of how the search went, each with its caption."""
    if len(answer.history) < 2:
        return
    end = max(answer.seconds, answer.history[-1][0])
    start = float(len(answer.prop.unsafe))
    left = [(seconds, float(left)) for seconds, _, left in answer.history]
    if answer.verdict == "holds":
        left.append((end, 0.0))
    if start > 1 and left[-1][1] < start:
        what = "Unsafe sets that were not yet proved to be out of reach"
        yield safe(draw(_staircase(left, start, end, "unsafe sets open", what), "open")), what
    parts = [(seconds, float(n)) for seconds, n, _ in answer.history]
    what = "Boxes and choices of signs that were bounded"
    yield safe(draw(_staircase(parts, 0.0, end, "parts", what), "parts")), what


def _staircase(
    steps: list[tuple[float, float]], start: float, end: float, y_label: str, caption: str
) -> Curves:
    """Return a quantity that stays as it is until it changes."""
    x, y = [0.0], [start]
    every = -(-len(steps) // MAX_HISTORY_STEPS)
    for seconds, value in [*steps[:-1:every], steps[-1]]:
        if value != y[-1]:
            x += [seconds, seconds]
            y += [y[-1], value]
    return Curves(caption, (*x, end), (y_label,), ((*y, y[-1]),), "seconds", y_label, counts=True)
