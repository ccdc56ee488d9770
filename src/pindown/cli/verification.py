"""``verify``: does a model keep a property?"""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from pindown.atomic_files import together, written
from pindown.cli.completion import MODEL_ENDINGS, complete_question, complete_table
from pindown.cli.options import (
    Activation,
    Budget,
    Html,
    InputNames,
    Json,
    OutputNames,
    Seed,
    check_outputs,
    check_writable,
    name_of_each,
    reader_may_leave,
    say,
)
from pindown.interrupts import INTERRUPTED
from pindown.text import printable

if TYPE_CHECKING:
    from os import PathLike

    from pindown.report.verification import Asked
    from pindown.verification.properties import Property
    from pindown.verification.verdicts import Verification

EXIT_CODES = {"holds": 0, "violated": 1, "undecided": 2}
_ACAS_XU = re.compile(r"acas[-_]?xu[-_]?(\d+)", re.IGNORECASE)

Question = Annotated[
    list[Path],
    typer.Argument(
        metavar="MODEL [MODEL2] [PROPERTY]",
        help="The model, or two for a property of two networks; then the property: .vnnlib, .vnnlib.gz, "
        "or acas-xu-1 to acas-xu-10. With --row, the model alone.",
        autocompletion=complete_question,
    ),
]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Threads, -1 for all cores.")]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Where to bound choices of signs: local (Dask), tcp://host:8786 (a Dask scheduler), or ray."
    ),
]
WitnessFile = Annotated[
    Path | None,
    typer.Option(
        help="Write an input that violates the property, with its outputs, as the competition has it; "
        "as .json, .csv, .npz or .npy if it ends so."
    ),
]
CertificateFile = Annotated[
    Path | None,
    typer.Option(
        help="Write a proof that checker/pindown_check.py checks without pindown. If the file holds an "
        "unfinished proof of the same claim, go on from it."
    ),
]
Rows = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Inputs, with classes if there are any; then the property is that the class of --row stays "
        "the same within --radius.",
        autocompletion=complete_table,
    ),
]
Row = Annotated[int | None, typer.Option(help="Which row of --data, counted from 0.")]
Radius = Annotated[float | None, typer.Option(help="How far any input may move from the row.")]


def verify(
    question: Question,
    data: Rows = None,
    row: Row = None,
    radius: Radius = None,
    budget: Budget = 60.0,
    witness: WitnessFile = None,
    certificate: CertificateFile = None,
    html: Html = None,
    json: Json = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    cluster: Cluster = None,
    activation: Activation = None,
    input: InputNames = None,
    output: OutputNames = None,
) -> int:
    """Does a model keep a property on all its inputs? A proof, an input that violates it, or neither.

    The first line is the competition's word: unsat (it holds), sat (it is violated), unknown.
    Exit codes: 0 holds, 1 violated, 2 undecided, 3 bad input. Around a row of data:
    pindown verify model.onnx --data test.npz --row 3 --radius 0.01
    """
    from pindown.io import load
    from pindown.parallel import workers
    from pindown.report.terminal import progress_bar
    from pindown.report.verification import Asked
    from pindown.verification import verify as decide

    near = None if (data, row, radius) == (None, None, None) else _Near.of(data, row, radius)
    paths, stated = _split(question) if near is None else _alone(question, near)
    check_outputs(html=html, json=json)
    if jobs is not None and (jobs == 0 or jobs < -1):
        raise ValueError(f"--jobs takes a number of threads, or -1 for all cores; got {jobs}.")
    if witness is not None:
        check_writable("--witness", witness)
    if certificate is not None:
        check_writable("--certificate", certificate)
        if input or output or activation:
            raise ValueError(
                "--certificate is about whole model files; leave out --input, --output and --activation."
            )
    inputs, outputs = name_of_each("--input", input), name_of_each("--output", output)
    if len(paths) == 1 and max(len(input or ()), len(output or ())) > 1:
        raise ValueError("--input and --output may be given once, if there is one model.")
    prop = None if near is not None else _property(stated)
    if prop is not None and not (input or output):
        paths = list(prop.one_of_each(paths))
    models = tuple(
        load(path, activation=activation, input=i, output=o)
        for path, i, o in zip(paths, inputs, outputs, strict=False)
    )
    if prop is None:
        assert near is not None
        prop = near.property_of(models[0])
    names = tuple(printable(path.name) for path in paths)
    asked = Asked(models, names, printable(stated.name), budget)
    # A path lets the file itself be run in float32.
    whole = not (input or output or activation) and len(paths) == 1
    given: str | PathLike[str] | tuple[object, ...] = paths[0] if whole else models
    if certificate is not None:
        given = tuple(paths)
    where = nullcontext() if cluster is None else workers(jobs, cluster=cluster)
    with where, progress_bar() as report:
        answer = decide(
            given,
            prop,
            budget=budget,
            seed=seed,
            n_jobs=jobs,
            certificate=certificate,
            progress=report,
        )
    _deliver(answer, asked, html, json, witness)
    if answer.interrupted and answer.verdict == "undecided":  # else the answer is known all the same
        return INTERRUPTED
    return EXIT_CODES[answer.verdict]


class _Near(NamedTuple):
    """A row of a file, and how far around it the class is to stay."""

    data: Path
    row: int
    radius: float

    @classmethod
    def of(cls, data: Path | None, row: int | None, radius: float | None) -> _Near:
        if data is None or row is None or radius is None:
            raise ValueError("--data, --row and --radius belong together; give all three.")
        return cls(data, row, radius)

    def property_of(self, model: Any) -> Property:
        """Return that the row's class, or without classes that given to it, is the largest around it."""
        from pindown.datasets import load_table, numbered_alike
        from pindown.verification import Property

        k = model.out_features
        if k < 2:
            raise ValueError("--row is about the largest of several outputs, and the model has one.")
        table, _ = numbered_alike(load_table(self.data, None), None, n_classes=k)
        assert table is not None
        if not 0 <= self.row < len(table.X):
            raise ValueError(f"--row must be from 0 to {len(table.X) - 1}; got {self.row}.")
        x = table.X[self.row]
        label = model(x[None]).argmax() if table.y is None else table.y[self.row]
        if label != int(label) or not 0 <= label < k:
            raise ValueError(f"{self.data}: the class of row {self.row} is no output; got {label}.")
        return Property.robust(x, int(label), self.radius, n_outputs=k)


def _alone(question: list[Path], near: _Near) -> tuple[list[Path], Path]:
    """Return the model, and what to call the property around a row."""
    if len(question) != 1:
        raise ValueError(f"with --row verify takes one model alone; got {len(question)} files.")
    return question, Path(f"row {near.row} of {near.data.name} within {near.radius:g}")


def _split(question: list[Path]) -> tuple[list[Path], Path]:
    """Return the models and the property."""
    if not 2 <= len(question) <= 3:
        raise ValueError(
            "verify takes one or two models and then a property; got "
            f"{len(question)} file{'s' * (len(question) != 1)}."
        )
    *models, stated = question
    if stated.name.lower().endswith(MODEL_ENDINGS):
        raise ValueError(f"the property comes last; {str(stated)!r} looks like a model.")
    return models, stated


def _property(stated: Path) -> Property:
    """Return the property that a path or a name stands for.

    >>> _property(Path("acas-xu-3")).text
    'COC has not the smallest score (ACAS Xu 3)'
    """
    from pindown.verification import Property

    found = _ACAS_XU.fullmatch(str(stated))
    if found and not stated.exists():
        if not 1 <= int(found[1]) <= 10:
            raise ValueError(f"the properties of ACAS Xu are acas-xu-1 to acas-xu-10; got {stated}.")
        return Property.acas_xu(int(found[1]))
    return Property.from_vnnlib(stated)


def _deliver(
    answer: Verification, asked: Asked, html: str | None, json: str | None, witness: Path | None
) -> None:
    from pindown.report.verification import print_verification, render_verification_json
    from pindown.report.witness_files import write_witness

    wrote = []
    try:
        with together():
            if witness is not None and answer.verdict == "violated" and answer.example is not None:
                write_witness(answer.prop, answer.example, witness)
                wrote.append(str(witness))
            if html is not None:
                from pindown.report.verification_page import render_verification

                written(render_verification(answer, asked), html)
                wrote.append(html)
            if json is not None and json != "-":
                written(render_verification_json(answer, asked), json)
                wrote.append(json)
    finally:  # a full disk takes the files, not the answer
        with reader_may_leave():
            if json == "-":
                say(render_verification_json(answer, asked), nl=False)
            else:
                print_verification(answer, asked)
    if answer.certificate:
        wrote.append(answer.certificate)
    for target in wrote:
        say(f"wrote {target}", err=True)
    if witness is not None and str(witness) not in wrote:
        say(f"no violation is proved: {witness} was not written", err=True)
