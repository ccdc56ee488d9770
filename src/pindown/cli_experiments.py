"""The command that reruns published results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Id = Annotated[str | None, typer.Argument(help="Which experiment; see --list.")]
ShowList = Annotated[bool, typer.Option("--list", help="List all experiments.")]
Scale = Annotated[
    Literal["quick", "paper"], typer.Option(help="quick: minutes on two cores; paper: as published.")
]
Folder = Annotated[Path, typer.Option("--out", help="Folder for results, table and figure.")]
Jobs = Annotated[int, typer.Option(help="Processes.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where an earlier run stopped.")]


def reproduce(
    experiment: Id = None,
    show_list: ShowList = False,
    scale: Scale = "quick",
    out: Folder = Path("pindown-experiments"),
    jobs: Jobs = 1,
    resume: Resume = False,
) -> int:
    """Rerun a published result and compare: published beside measured, by a rule fixed beforehand."""
    from pindown.experiments import EXPERIMENTS
    from pindown.experiments import reproduce as run
    from pindown.experiments.runner import markdown
    from pindown.report.text import progress_bar

    if show_list or experiment is None:
        for known in EXPERIMENTS.values():
            typer.echo(f"{known.id:<20} {known.title} ({known.source})")
        return 0
    if experiment not in EXPERIMENTS:
        raise ValueError(f"no experiment {experiment!r}; there are {', '.join(EXPERIMENTS)}.")
    if jobs == 0 or jobs < -1:
        raise ValueError(f"--jobs takes a number of processes, or -1 for all cores; got {jobs}.")
    try:
        with progress_bar() as report:
            result = run(
                EXPERIMENTS[experiment],
                scale=scale,
                out=out,
                n_jobs=jobs,
                resume=resume,
                progress=report,
            )
    except KeyboardInterrupt:
        typer.echo(f"stopped; finished cells are in {out / experiment}, --resume goes on.", err=True)
        raise
    typer.echo(markdown(result))
    typer.echo(f"wrote {result.folder}", err=True)
    return 0
