"""The command that looks at the installation: ``doctor``."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from pindown.cli.options import Json, check_outputs, reader_may_leave, say

if TYPE_CHECKING:
    from rich.console import Console

    from pindown.cli.doctor_checks import Check, Diagnosis

UNHEALTHY = 1  # exit code
_WIDTH = 15  # of the column of names

Compile = Annotated[
    bool,
    typer.Option("--compile", help="First compile all inner loops (once, minutes)."),
]

_TITLES = {
    "required": "What pindown needs",
    "optional": "Optional parts",
    "machine": "This machine",
    "data": "Data of the published experiments",
    "kernels": "Compiled loops",
    "self-test": "A try",
}
_MARKS = {"fine": ("ok", "green"), "note": ("--", "yellow"), "broken": ("!!", "bold red")}


def doctor(compile_now: Compile = False, json: Json = None) -> int:
    """Look at this installation: versions, optional parts, what is missing and how to get it.

    Exit codes: 0 all that is needed is there, 1 something is missing or broken.
    """
    from pindown.cli.doctor_checks import diagnose
    from pindown.report.terminal import progress_bar

    check_outputs(json=json)
    with progress_bar() as report:
        if compile_now:
            from pindown.cli.compiled_loops import compile_all
            from pindown.extras import numba  # noqa: F401 - says how to get it

            compile_all(report)
        report("looking around", 0, 1)
        answer = diagnose()
    with reader_may_leave():
        _deliver(answer, json)
    return 0 if answer.healthy else UNHEALTHY


def _deliver(answer: Diagnosis, json: str | None) -> None:
    if json == "-":
        say(answer.to_json(), nl=False)
        return
    if json is not None:
        from pindown.atomic_files import written

        written(answer.to_json(), json)
    print_diagnosis(answer)
    if json is not None:
        say(f"wrote {json}", err=True)


def print_diagnosis(answer: Diagnosis) -> None:
    """Print one line per check, and below it what to do."""
    from rich.text import Text

    from pindown.report.terminal import Screen

    out = Screen()
    for group, checks in groupby(answer.checks, key=lambda check: check.group):
        out.print(Text(_TITLES.get(group, group), style="bold underline"))
        for check in checks:
            _print_check(out, check)
        out.print()
    style = "green" if answer.healthy else "bold red"
    out.print(Text(f"{str(answer)[0].upper()}{str(answer)[1:]}.", style=style))


def _print_check(out: Console, check: Check) -> None:
    from rich.text import Text

    mark, style = _MARKS[check.status]
    line = Text.assemble((f"{mark}  ", style), (f"{check.name:<{_WIDTH}}", "bold"), check.found)
    if check.remedy:
        line.append(f"\n{'':<{_WIDTH + 4}}to change that: {check.remedy}", style="dim")
    out.print(line, soft_wrap=True)  # a command that is to be copied must stay on one line
