"""Commands about which function a network is: ``diff``, ``shrink`` and ``canonical``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pindown.atomic_files import together, whole_file
from pindown.cli.completion import complete_model, complete_table
from pindown.cli.options import (
    Activation,
    BoxText,
    Budget,
    Html,
    InputName,
    InputNames,
    Json,
    Model,
    OutputName,
    OutputNames,
    Seed,
    check_outputs,
    check_writable,
    name_of_each,
    parse_box,
    reader_may_leave,
    say,
)
from pindown.interrupts import INTERRUPTED
from pindown.text import printable

if TYPE_CHECKING:
    from pindown.equivalence.comparison import Diff
    from pindown.model.graph import Model as Graph
    from pindown.network import ReluNetwork

_MAX_TIES = 10
EXIT_CODES = {"same": 0, "different": 1, "undecided": 2}

New = Annotated[
    Path, typer.Argument(help="The model to compare it with.", autocompletion=complete_model)
]
Tolerance = Annotated[
    str,
    typer.Option(help="The largest gap that counts as the same; 1e-5,1e-3,... for each output its own."),
]
RelativeTolerance = Annotated[
    str,
    typer.Option(help="The part of it that grows with the largest output that is met, or of each."),
]
Rows = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Rows to compare on: .npz, .npy or .csv; the answer begins with them.",
        autocompletion=complete_table,
    ),
]
Radius = Annotated[
    float, typer.Option(help="How far around each row of the data to prove, in any input.")
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="With --data, what makes the exit code 1: flips at rows (the default), gap, or unproved "
        "(a flip near a row; 2 if rows are open); again for several.",
    ),
]
Junit = Annotated[
    Path | None, typer.Option(help="With --data, write the conditions as a test report: .xml.")
]
Labels = Annotated[
    float | None,
    typer.Option(
        metavar="[MARGIN]",
        help="Ask whether the classes ever differ, by more than a margin if given: around each row with "
        "--data, else on the box or everywhere, and then the exit code is about that.",
    ),
]
Precision = Annotated[
    float | None,
    typer.Option(
        help="Once the models are proved different, how near the ends of the interval shall be, as a "
        "share of the upper one; 0.5 if left out: the upper end is at most twice the lower one.",
    ),
]
WitnessFile = Annotated[
    Path | None, typer.Option(help="Write the input with the largest gap found, as .npy.")
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", help="Processes for branch and bound, -1 for all cores.")
]
CertificateFile = Annotated[
    Path | None,
    typer.Option(
        help="Write a proof of the answer that checker/pindown_check.py checks without pindown, in half "
        "of the budget."
    ),
]
Output = Annotated[Path, typer.Option("--out", "-o", help="Where to write: .onnx or .safetensors.")]
Loss = Annotated[float, typer.Option(help="Gap that may be spent; 0 keeps the function exactly.")]
FileType = Annotated[
    Literal["auto", "float16", "float32", "float64"],
    typer.Option(
        "--dtype",
        help="Float type of the file; auto is the type that was read, or float64 where the model needs "
        "it and the file is no larger then.",
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Write it although it is larger than what was read.")
]
Gauge = Annotated[
    Literal["unit", "balanced"],
    typer.Option(help="Rows of length one, or the orbit's smallest weights."),
]


def diff(
    old: Model,
    new: New,
    box: BoxText = None,
    data: Rows = None,
    radius: Radius = 0.0,
    labels: Labels = None,
    fail_on: FailOn = None,
    tol: Tolerance = "1e-5",
    rtol: RelativeTolerance = "1e-5",
    precision: Precision = None,
    budget: Budget = 60.0,
    html: Html = None,
    json: Json = None,
    junit: Junit = None,
    witness: WitnessFile = None,
    certificate: CertificateFile = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    activation: Activation = None,
    input: InputNames = None,
    output: OutputNames = None,
) -> int:
    """Are two model files the same function? A proof, a witness, or a proved interval.

    Without --box the question is about all inputs, the gap taken relative to 1 + |x|.
    Exit codes: 0 same, 1 different, 2 undecided, 3 bad input. With --data the code follows --fail-on:
    1 if a condition is met, 2 if --fail-on unproved was asked and rows are open, else 0. Example:
    pindown diff old.onnx new.onnx --data test.npz --radius 0.02 --labels
    """
    from pindown.datasets import load_table
    from pindown.equivalence.comparison import diff as compare
    from pindown.equivalence.comparison.gates import exit_code
    from pindown.io import load
    from pindown.report.terminal import progress_bar

    check_outputs(html=html, json=json)
    if jobs is not None and (jobs == 0 or jobs < -1):
        raise ValueError(f"--jobs takes a number of processes, or -1 for all cores; got {jobs}.")
    if witness is not None:
        if witness.suffix != ".npy":
            raise ValueError(f"--witness writes a file that ends in .npy; got {str(witness)!r}.")
        check_writable("--witness", witness)
    _check_conditions(data, radius, fail_on, junit)
    if certificate is not None:
        check_writable("--certificate", certificate)
        if input or output or activation:
            raise ValueError(
                "--certificate is about whole model files; leave out --input, --output and --activation."
            )
    inputs, outputs = name_of_each("--input", input), name_of_each("--output", output)
    models = [
        load(path, activation=activation, input=i, output=o)
        for path, i, o in zip((old, new), inputs, outputs, strict=True)
    ]
    domain = parse_box(box, models[0].in_features)
    if fail_on and "unproved" in fail_on and labels is None:
        labels = 0.0
    rows = None if data is None else load_table(data).X
    with progress_bar() as report:
        how: dict[str, Any] = {"labels": labels, "seed": seed, "progress": report, "n_jobs": jobs}
        how |= {"box": domain, "data": rows, "radius": radius}
        how |= {"tol": _numbers("--tol", tol), "rtol": _numbers("--rtol", rtol)}
        how["precision"] = precision
        given = models if certificate is None else (old, new)
        answer = compare(*given, budget=budget, certificate=certificate, **how)
    answer = replace(answer, names=(printable(old.name), printable(new.name)))
    conditions = _conditions(answer, fail_on)
    _deliver(answer, html, json, witness, (junit, conditions))
    if answer.rows is not None:
        code = exit_code(answer, conditions)
        return INTERRUPTED if answer.interrupted and code == 2 else code
    if answer.interrupted and answer.answer == "undecided":  # else the answer is known all the same
        return INTERRUPTED
    return EXIT_CODES[answer.answer]


def _numbers(option: str, text: str) -> float | list[float]:
    """Return a number, or the several that commas part."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"{option} takes a number, or one for each output with commas between; got {text!r}."
        ) from None
    return found[0] if len(found) == 1 else found


def _check_conditions(
    data: Path | None, radius: float, fail_on: list[str] | None, junit: Path | None
) -> None:
    from pindown.equivalence.comparison.gates import CONDITIONS

    for option, given in (("--radius", radius), ("--fail-on", fail_on), ("--junit", junit)):
        if given and data is None:
            raise ValueError(f"{option} is about rows; name them with --data.")
    for condition in fail_on or ():
        if condition not in CONDITIONS:
            raise ValueError(f"--fail-on takes {', '.join(CONDITIONS)}; got {condition!r}.")
    if junit is not None:
        if junit.suffix != ".xml":
            raise ValueError(f"--junit writes a file that ends in .xml; got {str(junit)!r}.")
        check_writable("--junit", junit)


def _conditions(answer: Diff, fail_on: list[str] | None) -> list[str]:
    """Return what makes a comparison on data fail: flips, or gaps where there are no classes."""
    if answer.rows is None:
        return []
    return list(dict.fromkeys(fail_on or ["flips" if answer.rows.classified else "gap"]))


def _deliver(
    answer: Diff,
    html: str | None,
    json: str | None,
    witness: Path | None,
    tests: tuple[Path | None, list[str]],
) -> None:
    import numpy as np

    from pindown.atomic_files import written
    from pindown.report.rows import render_junit

    junit, conditions = tests
    try:
        with together():
            if witness is not None and answer.witness is not None:
                with whole_file(witness) as file:
                    np.save(file, answer.witness)
            if html is not None:
                answer.to_html(html)
            if json not in (None, "-"):
                answer.to_json(json)
            if junit is not None:
                written(render_junit(answer, conditions), junit)
    finally:  # a full disk takes the files, not the answer
        with reader_may_leave():
            if json == "-":
                say(answer.to_json())
            else:
                from pindown.report.equivalence import print_diff

                print_diff(answer)
    for target in (html, json, None if junit is None else str(junit), answer.certificate):
        if target not in (None, "-", ""):
            say(f"wrote {target}", err=True)


def shrink(
    model: Model,
    out: Output,
    box: BoxText = None,
    tol: Loss = 0.0,
    budget: Budget = 60.0,
    json: Json = None,
    activation: Activation = None,
    input: InputName = None,
    output: OutputName = None,
    dtype: FileType = "auto",
) -> int:
    """Write a smaller model with the same function, every step with its reason.

    Without --box only what holds for all inputs is used; with it also what holds on the box.
    Convolutions stay convolutions, and the file is never larger than the one that was read, unless
    --dtype or another ending asks for it.
    """
    from pindown.cli.written_models import shrunk_file
    from pindown.equivalence.shrinking import shrink as reduce
    from pindown.io import load
    from pindown.report.equivalence import render_shrunk_json
    from pindown.report.terminal import progress_bar

    check_outputs(json=json)
    _check_model_output(out, model)
    given = load(model, activation=activation, input=input, output=output)
    domain = parse_box(box, given.in_features)
    with progress_bar() as report:
        report("looking for what can go", 0, 1)
        shrunk = reduce(given, box=domain, tol=tol, budget=budget)
    file = shrunk_file(shrunk, model, out, domain, dtype, whole=not (input or output))
    lines = [str(shrunk), *_noted(given), *(f"  {step}" for step in shrunk.steps)]
    lines += [f"  {remark}" for remark in file.remarks]
    _deliver_file(file.data, out, shrunk.model.n_parameters, lines, json, render_shrunk_json(shrunk))
    return 0


def canonical(
    model: Model,
    out: Output,
    gauge: Gauge = "unit",
    json: Json = None,
    activation: Activation = None,
    input: InputName = None,
    output: OutputName = None,
    dtype: FileType = "auto",
    force: Force = False,
) -> int:
    """Write the one representative of all reorderings and rescalings of a network's units.

    Two symmetric copies become equal up to rounding, so that their files can be compared. Units that
    repeat others, are constant or are read by nothing are merged first. The result
    is a ReLU network with dense layers; where that takes more than 1.1 times the file that was read,
    as with convolutions, it is written only with --force.
    """
    from pindown.cli.written_models import canonical_file, require_canonical_fits
    from pindown.equivalence.gauge_fixing import canonical_form
    from pindown.io import load
    from pindown.report.equivalence import render_canonical_json

    check_outputs(json=json)
    _check_model_output(out, model)
    given = load(model, activation=activation, input=input, output=output)
    require_canonical_fits(given, model, out, dtype, force=force)
    form = canonical_form(given.relu_network(), gauge)
    network, file = canonical_file(form.network, given, model, out, dtype, force=force)
    lines = [f"{network}, gauge {gauge}", *_noted(network)]
    if form.gone:
        units = "unit is" if len(form.gone) == 1 else "units are"
        lines.append(
            f"  {len(form.gone)} {units} merged into others: copies, constant, or read by nothing"
        )
    for layer, i, j in form.near_ties[:_MAX_TIES]:
        lines.append(
            f"  near tie in layer {layer}: the order of units {i} and {j} may depend on rounding"
        )
    if len(form.near_ties) > _MAX_TIES:
        lines.append(f"  and {len(form.near_ties) - _MAX_TIES} near ties more")
    lines += [f"  {remark}" for remark in file.remarks]
    document = render_canonical_json(replace(form, network=network))
    _deliver_file(file.data, out, network.n_parameters, lines, json, document)
    return 0


def _noted(model: Graph | ReluNetwork) -> list[str]:
    return [f"  as read: {printable(note)}" for note in model.notes]


def _deliver_file(
    data: bytes, out: Path, n_parameters: int, lines: list[str], json: str | None, document: str
) -> None:
    """Write a model's file, and say what was done: in words, or as the document."""
    from pindown.atomic_files import written
    from pindown.io.files import write_atomically

    try:
        with together():
            write_atomically(out, data)
            if json not in (None, "-"):
                written(document, json)
    finally:  # a full disk takes the files, not what was found
        with reader_may_leave():
            say(document if json == "-" else "\n".join(lines), nl=json != "-")
    say(f"wrote {out} ({n_parameters:,} parameters, {len(data):,} bytes)", err=True)
    if json not in (None, "-"):
        say(f"wrote {json}", err=True)


def _check_model_output(out: Path, model: Path) -> None:
    if not out.name.endswith((".onnx", ".onnx.gz", ".safetensors")):
        raise ValueError(f"-o writes .onnx, .onnx.gz or .safetensors; got {str(out)!r}.")
    if out.absolute() == model.absolute() or (out.exists() and model.exists() and out.samefile(model)):
        raise ValueError(f"-o would overwrite the model itself: {str(out)!r}; choose another name.")
    check_writable("-o", out)
