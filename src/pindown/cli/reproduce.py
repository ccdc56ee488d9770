"""The command that reruns published results."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pindown.cli.completion import complete_experiment
from pindown.cli.options import Json, check_outputs, say

if TYPE_CHECKING:
    from pindown_reproduction import Finished

Id = Annotated[
    str | None,
    typer.Argument(
        help="Which experiment; with --list, a word to look for.", autocompletion=complete_experiment
    ),
]
ShowList = Annotated[bool, typer.Option("--list", help="List all experiments, run or declared.")]
All = Annotated[bool, typer.Option("--all", help="Run all, and go on where one fails.")]
Scale = Annotated[
    Literal["quick", "decisive", "paper"],
    typer.Option(
        help="quick: minutes on two cores; decisive: large enough for a no, at most about an hour; "
        "paper: as published."
    ),
]
Seed = Annotated[
    int, typer.Option(help="0: the seeds as declared; any other number draws everything anew.")
]
Folder = Annotated[Path, typer.Option("--out", help="Folder for results, table and figure.")]
Jobs = Annotated[
    int | None, typer.Option(help="Processes; -1 for all cores. Default: one, or all of the cluster.")
]
Cluster = Annotated[
    str | None,
    typer.Option(help="Where to run cells: local (Dask), tcp://host:8786 (a Dask scheduler), or ray."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where an earlier run stopped.")]
Page = Annotated[
    Path | None, typer.Option("--ledger", help="Write all results in --out to this page of Markdown.")
]

FAILED = 1  # some of all stopped with an error
_WIDE = 220  # columns of a list that is not on a screen
_NARROW = 140  # columns below which a table would fold into splinters
_TIMED = ("quick", "decisive", "paper")
_MINUTES, _HOURS = 100.0, 100.0 * 60  # seconds from which a time is told in minutes, in hours


def reproduce(
    experiment: Id = None,
    show_list: ShowList = False,
    run_all: All = False,
    scale: Scale = "quick",
    seed: Seed = 0,
    out: Folder = Path("pindown-experiments"),
    jobs: Jobs = None,
    cluster: Cluster = None,
    resume: Resume = False,
    ledger: Page = None,
    json: Json = None,
) -> int:
    """Rerun a published result and compare: published beside measured, by a rule fixed beforehand."""
    require_experiments()
    check_outputs(json=json)
    if show_list or (experiment is None and not run_all and ledger is None):
        return _list(experiment, json)
    if jobs is not None and (jobs == 0 or jobs < -1):
        raise ValueError(f"--jobs takes a number of processes, or -1 for all cores; got {jobs}.")
    if run_all and experiment is not None:
        raise ValueError(f"--all runs all of them; leave out {experiment!r}, or leave out --all.")
    if seed < 0:
        raise ValueError(f"--seed takes a whole number from 0 on; got {seed}.")
    how: dict[str, Any] = {
        "scale": scale, "seed": seed, "out": out, "n_jobs": jobs or 1, "resume": resume,
    }  # fmt: skip
    if cluster is not None:
        how |= {"n_jobs": jobs, "cluster": cluster}
    code = 0
    if run_all:
        code = _run_all(how, json)
    elif experiment is not None:
        _run_one(experiment, how, json)
    if ledger is not None:
        from pindown_reproduction import write_ledger

        say(f"{write_ledger(out, ledger)}.")
        say(f"wrote {ledger}", err=True)
    return code


def require_experiments() -> None:
    """Go on if the experiments are installed.

    Raises:
        ValueError: If they are not, with the command that gets them.
    """
    if find_spec("pindown_reproduction") is None:
        raise ValueError(
            "the experiments come in a distribution of their own: pip install pindown-reproduction, "
            "or pip install -e reproduction in a checkout."
        )


def _run_one(name: str, how: dict[str, Any], json: str | None) -> None:
    from pindown.report.terminal import progress_bar
    from pindown_reproduction import DECLARED, EXPERIMENTS
    from pindown_reproduction import reproduce as run
    from pindown_reproduction.ledger import MARK, read_entry
    from pindown_reproduction.runner import markdown

    if name in DECLARED:
        raise ValueError(str(DECLARED[name]))
    if name not in EXPERIMENTS:
        raise ValueError(
            f"no experiment {name!r}{_alike(name)}; pindown reproduce --list names them all."
        )
    out = how["out"]
    try:
        with progress_bar() as report:
            result = run(EXPERIMENTS[name], progress=report, **how)
    except KeyboardInterrupt:
        say(f"stopped; finished cells are in {out / name}, --resume goes on.", err=True)
        raise
    if json != "-":
        say(markdown(result))
    for note in result.notes:
        say(f"note: {note}", err=True)
    if stand_in := read_entry(out, EXPERIMENTS[name]).stand_in:
        say(f"{MARK} on stand-in data: {stand_in}.", err=json == "-")
    say(f"wrote {result.folder}", err=True)
    if json is not None:
        _deliver((result.folder / "results.json").read_text(encoding="utf-8"), json)


def _alike(name: str) -> str:
    from difflib import get_close_matches

    from pindown_reproduction import DECLARED, EXPERIMENTS

    near = get_close_matches(name, [*EXPERIMENTS, *DECLARED], n=3)
    return f", did you mean {' or '.join(near)}" if near else ""


def _run_all(how: dict[str, Any], json: str | None) -> int:
    from collections import Counter

    from pindown_reproduction import EXPERIMENTS, reproduce_all

    finished: list[Finished] = []

    def report(one: Finished) -> None:
        finished.append(one)
        say(str(one), err=True)

    try:
        reproduce_all(EXPERIMENTS.values(), report=report, **how)
    except KeyboardInterrupt:
        done = f"{len(finished)} of {len(EXPERIMENTS)}"
        say(f"stopped after {done}; --resume goes on with what is in {how['out']}.", err=True)
        raise
    counts = Counter(one.verdict for one in finished).most_common()
    told = ", ".join(f"{n} {verdict}" for verdict, n in counts)
    say(f"{len(finished)} experiments: {told}", err=json == "-")
    stopped = [one for one in finished if one.failed]
    for one in stopped:
        say(f"stopped: {one.id}: {one.words}", err=json == "-")
    if json is not None:
        keys = ("id", "verdict", "words", "seconds")
        _deliver(_as_json([{key: getattr(one, key) for key in keys} for one in finished]), json)
    return FAILED if stopped else 0


def _list(words: str | None, target: str | None) -> int:
    """Print what there is: as a table, or as JSON."""
    listed = _catalogue((words or "").lower().split())
    if not listed:
        raise ValueError(f"no experiment speaks of {words!r}{_alike(words or '')}.")
    if target is None:
        _print_table(listed)
    else:
        _deliver(_as_json(listed), target)
    return 0


def _as_json(content: list[dict[str, Any]]) -> str:
    from pindown.json_files import document

    return document(content)


def _deliver(text: str, target: str) -> None:
    """Write a document, or print it."""
    from pindown.atomic_files import written

    if target == "-":
        say(text, nl=False)
    else:
        written(text, target)
        say(f"wrote {target}", err=True)


def _catalogue(words: list[str]) -> list[dict[str, Any]]:
    """Return experiments and declarations in whose description all words occur."""
    from pindown_reproduction import DECLARED, EXPERIMENTS

    found: list[dict[str, Any]] = []
    for one in EXPERIMENTS.values():
        seconds = {scale: one.seconds.get(scale) for scale in one.settings}
        cells = {scale: len(one.cells(settings)) for scale, settings in one.settings.items()}
        about = {"id": one.id, "title": one.title, "source": one.source, "status": "run"}
        found.append({**about, "published": one.published, "rule": one.rule, "cells": cells,
                      "expected_cpu_seconds": seconds, "decides_at": one.decides_at()})  # fmt: skip
    for other in DECLARED.values():
        about = {"id": other.id, "title": other.title, "source": other.source, "status": "declared"}
        found.append({**about, "published": other.published, "why": other.why, "needs": other.needs,
                      "nearest": [name for name in other.instead.split(", ") if name]})  # fmt: skip
    keys = ("id", "title", "source", "status", "published")
    return [one for one in found if all(w in " ".join(one[k] for k in keys).lower() for w in words)]


def _print_table(listed: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from pindown.report.terminal import Screen

    screen = Screen(markup=False)
    if not screen.is_terminal:  # a file or a pipe has no width to fit
        screen = Screen(markup=False, width=_WIDE, color_system=None)
    entries = [_entry(one) for one in listed]
    columns = ("id", "title", "source", *_TIMED, "decides", "status")
    names = [name for name in columns if any(entry[name] for entry in entries)]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, no_wrap=name not in ("title", "source"), overflow="fold")
    for entry in entries:
        if screen.width < _NARROW:
            screen.print(f"{entry['id']}: {entry['title']} ({entry['source']})")
            screen.print(f"    {_numbers(entry)}", style="dim")
        else:
            table.add_row(*(entry[name] for name in names))
    if table.row_count:
        screen.print(table)
    quick, decisive = (
        sum(one.get("expected_cpu_seconds", {}).get(scale) or 0.0 for one in listed)
        for scale in ("quick", "decisive")
    )
    run = sum(one["status"] == "run" for one in listed)
    declared = len(listed) - run
    screen.print(
        f"{run} run, {declared} declared; all quick ones take {_duration(quick)} of one core, "
        f"all decisive ones {_duration(decisive) or 'nothing'}."
    )


def _entry(one: dict[str, Any]) -> dict[str, str]:
    """Return what the table shows of an experiment, by column."""
    seconds, runs = one.get("expected_cpu_seconds", {}), one["status"] == "run"
    # A scale that is there but was never measured is told apart from one that is not there.
    times = dict.fromkeys(_TIMED, "")
    times |= {scale: _duration(seconds[scale]) or "not timed" for scale in one.get("cells", ())}
    about = {name: str(one[name]) for name in ("id", "title", "source", "status")}
    return {**about, **times, "decides": (one["decides_at"] or "none") if runs else ""}


def _numbers(entry: dict[str, str]) -> str:
    times = [f"{scale} {entry[scale]}" for scale in _TIMED if entry[scale]]
    return "; ".join([entry["status"], *([", ".join(times)] if times else [])])


def _duration(seconds: float | None) -> str:
    """Return a time in its natural unit.

    >>> [_duration(t) for t in (0.2, 42.0, 600.0, 90_000.0, None)]
    ['1 s', '42 s', '10 min', '25 h', '']
    """
    if seconds is None:  # never measured
        return ""
    if seconds < _MINUTES:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < _HOURS else f"{seconds / 3600:.0f} h"
