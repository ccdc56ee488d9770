"""The command that asks a network: ``audit``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pindown.atomic_files import together
from pindown.cli.completion import complete_codes, complete_model, complete_table
from pindown.cli.options import (
    OWN_FAULT,
    Activation,
    BoxText,
    Budget,
    Html,
    InputName,
    Json,
    Model,
    OutputName,
    Seed,
    check_outputs,
    parse_box,
    reader_may_leave,
    say,
)
from pindown.interrupts import INTERRUPTED
from pindown.text import printable

if TYPE_CHECKING:
    from pindown._audit import Audit
    from pindown.datasets import Table

Data = Annotated[
    Path | None,
    typer.Option(
        help="Inputs, with labels if there are any: .npz, .npy or .csv.", autocompletion=complete_table
    ),
]
Test = Annotated[
    Path | None,
    typer.Option(help="Inputs and labels that training did not see.", autocompletion=complete_table),
]
Initial = Annotated[
    Path | None,
    typer.Option(
        help="The model before training; tells whether training was lazy or rich.",
        autocompletion=complete_model,
    ),
]
Before = Annotated[
    Path | None,
    typer.Option(
        help="Another checkpoint of the model, to compare with: what changed, and by how much.",
        autocompletion=complete_model,
    ),
]
Target = Annotated[str | None, typer.Option(help="Name of the array or column with the labels.")]
Markdown = Annotated[str | None, typer.Option(metavar="[FILE]", help="Write Markdown; likewise.")]
Only = Annotated[
    str | None,
    typer.Option(
        help="Findings wanted: codes or families such as GEO, with commas.",
        autocompletion=complete_codes,
    ),
]
Ignore = Annotated[
    str | None, typer.Option(help="Findings to leave out; likewise.", autocompletion=complete_codes)
]


def audit(
    model: Model,
    data: Data = None,
    test: Test = None,
    target: Target = None,
    box: BoxText = None,
    budget: Budget = 60.0,
    html: Html = None,
    json: Json = None,
    markdown: Markdown = None,
    only: Only = None,
    ignore: Ignore = None,
    seed: Seed = 0,
    initial: Initial = None,
    before: Before = None,
    activation: Activation = None,
    input: InputName = None,
    output: OutputName = None,
) -> int:
    """Ask a network everything pindown can answer, within a time budget."""
    from pindown._audit import audit as run_audit
    from pindown.datasets import load_table, numbered_alike
    from pindown.io import load

    check_outputs(html=html, json=json, markdown=markdown)
    how: dict[str, Any] = {"activation": activation, "input": input, "output": output}
    net = load(model, **how)
    start, earlier = (None if path is None else load(path, **how) for path in (initial, before))
    table = load_table(data, target) if data else None
    held_out = load_table(test, target) if test else None
    _check_columns(table or held_out, net.in_features, target)
    table, held_out = numbered_alike(table, held_out, n_classes=max(2, net.out_features))
    _say_numbering(table or held_out)
    streams = sys.stdout is not None and sys.stdout.isatty() and "-" not in (json, markdown)
    with _shown(model.name, streams) as (report, found):
        result = run_audit(
            net,
            None if table is None else table.X,
            None if table is None else table.y,
            test=None if held_out is None else (held_out.X, held_out.y),
            box=parse_box(box, net.in_features),
            initial=start,
            before=earlier,
            budget=budget,
            seed=seed,
            only=_codes(only),
            ignore=_codes(ignore),
            name=model.name,
            before_name=_other_name(before, model),
            progress=report,
            found=found,
        )
    _deliver(result, html=html, json=json, markdown=markdown, streamed=streams)
    if result.failed:
        say(
            f"pindown: an error in pindown itself, at {', '.join(result.failed)}; all else is answered. "
            "Please report it.",
            err=True,
        )
    return INTERRUPTED if result.interrupted else OWN_FAULT if result.failed else 0


def _check_columns(table: Table | None, n_inputs: int, target: str | None) -> None:
    """Say what to do about the likeliest misfit: one column too many is a column of labels."""
    if table is None or table.y is not None or target is not None or table.X.ndim != 2:
        return
    if table.X.shape[1] == n_inputs + 1:
        raise ValueError(
            f"the network takes {n_inputs} inputs and the data have {n_inputs + 1} columns; "
            "if one of them holds the labels, name it with --target."
        )


def _say_numbering(table: Table | None) -> None:
    if table is not None and table.classes:
        listed = ", ".join(f"{i} {name}" for i, name in enumerate(table.classes[:20]))
        say(f"labels are words, numbered by the alphabet: {printable(listed)}", err=True)


@contextmanager
def _shown(name: str, streams: bool) -> Iterator[tuple[Any, Any]]:
    """Show findings as they come on a terminal, else progress alone."""
    from pindown.report.audit_text import streaming
    from pindown.report.terminal import progress_bar

    if streams:
        with streaming(printable(name)) as both:
            yield both
        return
    with progress_bar() as report:
        yield report, None


def _other_name(before: Path | None, model: Path) -> str:
    """Return what to call the other checkpoint: its file, with its folder if both are called alike."""
    if before is None:
        return ""
    return str(before) if before.name == model.name else before.name


def _deliver(
    result: Audit,
    *,
    html: str | None,
    json: str | None,
    markdown: str | None,
    streamed: bool = False,
) -> None:
    """Write what was asked for; the terminal gets the summary unless stdout carries a document."""
    documents = ((json, result.to_json), (markdown, result.to_markdown), (html, result.to_html))
    files = [(target, render) for target, render in documents if target not in (None, "-")]
    try:
        with together():
            for target, render in files:
                render(target)
    finally:  # a full disk takes the files, not what was found
        with reader_may_leave():
            for where, render in documents:
                if where == "-":
                    say(render())
            if "-" not in (json, markdown):
                from pindown.report.audit_text import print_audit

                print_audit(result, streamed=streamed)
    for target, _ in files:
        say(f"wrote {target}", err=True)


def _codes(text: str | None) -> list[str] | None:
    return None if text is None else [code.strip() for code in text.split(",") if code.strip()]
