"""Commands about which function a network is: ``diff``, ``shrink`` and ``canonical``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pindown.atomic_files import together, whole_file
from pindown.cli.completion import complete_model
from pindown.cli.options import (
    Activation,
    BoxText,
    Budget,
    Html,
    Json,
    Model,
    Seed,
    check_outputs,
    check_writable,
    parse_box,
    reader_may_leave,
    say,
)
from pindown.interrupts import INTERRUPTED
from pindown.text import printable

if TYPE_CHECKING:
    from pindown.equivalence.comparison import Diff
    from pindown.network import ReluNetwork

_MAX_TIES = 10
EXIT_CODES = {"same": 0, "different": 1, "undecided": 2}

New = Annotated[
    Path, typer.Argument(help="The model to compare it with.", autocompletion=complete_model)
]
Tolerance = Annotated[float, typer.Option(help="The largest gap that counts as the same.")]
Labels = Annotated[
    float | None,
    typer.Option(
        metavar="MARGIN",
        help="Ask whether the classes ever differ by more than this; the exit code is then about that.",
    ),
]
WitnessFile = Annotated[
    Path | None, typer.Option(help="Write the input with the largest gap found, as .npy.")
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", help="Processes for branch and bound, -1 for all cores.")
]
Output = Annotated[Path, typer.Option("--out", "-o", help="Where to write: .onnx or .safetensors.")]
Loss = Annotated[float, typer.Option(help="Gap that may be spent; 0 keeps the function exactly.")]
Gauge = Annotated[
    Literal["unit", "balanced"],
    typer.Option(help="Rows of length one, or the orbit's smallest weights."),
]


def diff(
    old: Model,
    new: New,
    box: BoxText = None,
    tol: Tolerance = 1e-5,
    budget: Budget = 60.0,
    labels: Labels = None,
    html: Html = None,
    json: Json = None,
    witness: WitnessFile = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    activation: Activation = None,
) -> int:
    """Are two model files the same function? A proof, a witness, or a proved interval.

    Without --box the question is about all inputs, the gap taken relative to 1 + |x|.
    Exit codes: 0 same, 1 different, 2 undecided, 3 bad input.
    """
    from pindown.equivalence.comparison import diff as compare
    from pindown.io import load
    from pindown.report.terminal import progress_bar

    check_outputs(html=html, json=json)
    if jobs is not None and (jobs == 0 or jobs < -1):
        raise ValueError(f"--jobs takes a number of processes, or -1 for all cores; got {jobs}.")
    if witness is not None:
        if witness.suffix != ".npy":
            raise ValueError(f"--witness writes a file that ends in .npy; got {str(witness)!r}.")
        check_writable("--witness", witness)
    domain = None if box is None else parse_box(box, load(old, activation=activation).in_features)
    with progress_bar() as report:
        how: dict[str, Any] = {"labels": labels, "seed": seed, "progress": report, "n_jobs": jobs}
        answer = compare(old, new, box=domain, tol=tol, budget=budget, activation=activation, **how)
    _deliver(answer, html, json, witness)
    if answer.interrupted and answer.answer == "undecided":  # else the answer is known all the same
        return INTERRUPTED
    return EXIT_CODES[answer.answer]


def _deliver(answer: Diff, html: str | None, json: str | None, witness: Path | None) -> None:
    import numpy as np

    try:
        with together():
            if witness is not None and answer.witness is not None:
                with whole_file(witness) as file:
                    np.save(file, answer.witness)
            if html is not None:
                answer.to_html(html)
            if json not in (None, "-"):
                answer.to_json(json)
    finally:  # a full disk takes the files, not the answer
        with reader_may_leave():
            if json == "-":
                say(answer.to_json())
            else:
                from pindown.report.equivalence import print_diff

                print_diff(answer)
    for target in (html, json):
        if target not in (None, "-"):
            say(f"wrote {target}", err=True)


def shrink(
    model: Model,
    out: Output,
    box: BoxText = None,
    tol: Loss = 0.0,
    budget: Budget = 60.0,
    json: Json = None,
    activation: Activation = None,
) -> int:
    """Write a smaller network with the same function, every step with its reason.

    Without --box only what holds for all inputs is used; with it also what holds on the box.
    """
    from pindown.equivalence.shrinking import shrink as reduce
    from pindown.io import load
    from pindown.report.terminal import progress_bar

    check_outputs(json=json)
    _check_model_output(out, model)
    net = load(model, activation=activation)
    with progress_bar() as report:
        report("looking for units that can go", 0, 1)
        shrunk = reduce(net, box=parse_box(box, net.in_features), tol=tol, budget=budget)
    from pindown.report.equivalence import render_shrunk_json

    lines = [str(shrunk), *_noted(net), *(f"  {step}" for step in shrunk.steps)]
    _deliver_network(shrunk.network, out, lines, json, render_shrunk_json(shrunk))
    return 0


def canonical(
    model: Model,
    out: Output,
    gauge: Gauge = "unit",
    json: Json = None,
    activation: Activation = None,
) -> int:
    """Write the one representative of all reorderings and rescalings of a network's units.

    Two symmetric copies become equal up to rounding, so that their files can be compared.
    """
    from pindown.equivalence.gauge_fixing import canonical_form
    from pindown.io import load
    from pindown.report.equivalence import render_canonical_json

    check_outputs(json=json)
    _check_model_output(out, model)
    form = canonical_form(load(model, activation=activation), gauge)
    lines = [f"{form.network}, gauge {gauge}", *_noted(form.network)]
    for layer, i, j in form.near_ties[:_MAX_TIES]:
        lines.append(
            f"  near tie in layer {layer}: the order of units {i} and {j} may depend on rounding"
        )
    if len(form.near_ties) > _MAX_TIES:
        lines.append(f"  and {len(form.near_ties) - _MAX_TIES} near ties more")
    _deliver_network(form.network, out, lines, json, render_canonical_json(form))
    return 0


def _noted(net: ReluNetwork) -> list[str]:
    return [f"  as read: {printable(note)}" for note in net.notes]


def _deliver_network(
    net: ReluNetwork, out: Path, lines: list[str], json: str | None, document: str
) -> None:
    """Write a network, and say what was done: in words, or as the document."""
    from pindown.atomic_files import written

    try:
        with together():
            net.save(out)
            if json not in (None, "-"):
                written(document, json)
    finally:  # a full disk takes the files, not what was found
        with reader_may_leave():
            say(document if json == "-" else "\n".join(lines), nl=json != "-")
    say(f"wrote {out} ({net.n_parameters:,} parameters)", err=True)
    if json not in (None, "-"):
        say(f"wrote {json}", err=True)


def _check_model_output(out: Path, model: Path) -> None:
    if not out.name.endswith((".onnx", ".onnx.gz", ".safetensors")):
        raise ValueError(f"-o writes .onnx, .onnx.gz or .safetensors; got {str(out)!r}.")
    if out.absolute() == model.absolute() or (out.exists() and model.exists() and out.samefile(model)):
        raise ValueError(f"-o would overwrite the model itself: {str(out)!r}; choose another name.")
    check_writable("-o", out)
