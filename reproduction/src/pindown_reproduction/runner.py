"""Running an experiment: cell by cell, saved as they finish, taken up again where it stopped."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pindown.atomic_files import only_writer, together, writing_to
from pindown.errors import DataFileError
from pindown.json_files import CHECKSUM, sealed
from pindown.parallel import each, workers
from pindown_reproduction.experiment import Cell, Experiment, Outcome
from pindown_reproduction.figures import figure_of, svg_of
from pindown_reproduction.judgement import judge
from pindown_reproduction.storage import (
    CELL_SCHEMA,
    SCHEMA,
    cell_file,
    read_cell,
    run_file,
    write_whole,
)

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Reproduction:
    """A finished run.

    Attributes:
        experiment: What was run.
        scale: ``"quick"``, ``"decisive"`` or ``"paper"``.
        outcome: Published beside measured.
        seconds: How long the cells took, those taken from an earlier run included.
        folder: Where results, table and figure are.
        cpu_seconds: Processor time of the cells; None if an earlier run did not note it.
        notes: What was found about cells of an earlier run: damaged ones, and those without a checksum.
        seed: Which repetition of the run it is.
    """

    experiment: Experiment
    scale: str
    outcome: Outcome
    seconds: float
    folder: Path
    cpu_seconds: float | None = None
    notes: tuple[str, ...] = ()
    seed: int = 0

    def __str__(self) -> str:
        said = f"{self.experiment.id} ({self.scale}): {self.outcome.verdict}. {self.outcome.words}"
        return " ".join([said, *self.notes])


def reproduce(
    experiment: Experiment,
    *,
    scale: str = "quick",
    out: Path,
    seed: int = 0,
    n_jobs: int | None = None,
    cluster: Any = None,
    resume: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Reproduction:
    """Run all cells of an experiment and compare with what was published.

    Every finished cell is a file of its own, so that Ctrl-C, a crash or a full disk loses nothing that
    was done: ``resume`` goes on, and ``results.json``, ``table.md`` and the figure come out as if
    nothing had happened. How long it took is in ``timing.json``. A run of another scale or seed takes
    their place; what the ledger needs of each run stays in ``runs``.

    Args:
        experiment: What to run.
        scale: A key of its settings.
        out: Folder for the results and the cells.
        seed: 0 for the seeds as declared; any other number draws everything anew that is drawn.
        n_jobs: Processes, -1 for all cores; None: as an enclosing ``pindown.parallel.workers`` says,
            else one, or all of the cluster.
        cluster: Where cells run: ``"local"``, a Dask scheduler's address, ``"ray"``; None: here.
        resume: Take over cells that an earlier run with the same settings finished.
        progress: Called with a message, cells done and cells in all.

    Raises:
        ValueError: If there is no such scale, or the seed is negative.
        OSError: If another run is writing to the folder, or it is full or cannot be written to.
    """
    if seed < 0:
        raise ValueError(f"a seed is a whole number from 0 on; got {seed}.")
    cells = experiment.cells_of(scale, seed)
    folder = Path(out) / experiment.id
    with writing_to(folder):
        for name in ("cells", "runs"):
            (folder / name).mkdir(parents=True, exist_ok=True)
    with only_writer(folder):
        records, notes = _finished(cells, folder) if resume else ({}, ())
        with nullcontext() if cluster is None else workers(n_jobs, cluster=cluster):
            _run_cells(experiment, cells, records, folder, n_jobs if cluster is None else None, progress)
        results = [(cell, records[i]["result"]) for i, cell in enumerate(cells)]
        outcome = judge(experiment, results)
        used: list[Any] = [record.get("cpu_seconds") for record in records.values()]
        run = Reproduction(
            experiment,
            scale,
            outcome,
            seconds=sum(record["seconds"] for record in records.values()),
            folder=folder,
            cpu_seconds=None if None in used else sum(used),
            notes=notes,
            seed=seed,
        )
        with writing_to(folder), together():
            _write(run, results)
            _write_timing(run, [records[i] for i in range(len(cells))])
            _write_run(run, results)
    return run


def _finished(cells: list[Cell], folder: Path) -> tuple[dict[int, Record], tuple[str, ...]]:
    """Return the cells that an earlier run finished, and what is to be said about them."""
    records: dict[int, Record] = {}
    damaged: list[str] = []
    for i, cell in enumerate(cells):
        try:
            record = read_cell(cell_file(folder, cell), cell)
        except DataFileError as error:
            damaged.append(str(error))
        else:
            records |= {} if record is None else {i: record}
    notes = [f"Damaged, so run again: {damaged[0]}"] if len(damaged) == 1 else []
    if len(damaged) > 1:
        notes = [f"{len(damaged)} cells were damaged, so run again; the first: {damaged[0]}"]
    if old := sum(CHECKSUM not in record for record in records.values()):
        notes.append(f"{old} cells of an earlier version have no checksum; they are taken as they are.")
    return records, tuple(notes)


def _run_cells(
    experiment: Experiment,
    cells: list[Cell],
    records: dict[int, Record],
    folder: Path,
    n_jobs: int | None,
    progress: Callable[[str, int, int], None] | None,
) -> None:
    """Run the cells that have no record; each is saved here when it is done, wherever it ran."""
    todo = [i for i in range(len(cells)) if i not in records]
    tasks = [cells[i] for i in todo]
    work = each(partial(_run_cell, experiment.run), tasks, n_jobs=n_jobs, batch=1)
    with closing(work):  # when a cell cannot be saved, the workers stop
        for k, text in work:
            write_whole(cell_file(folder, tasks[k]), text)
            # What is read again later is what counts now: a resumed run sees the same.
            records[todo[k]] = json.loads(text)
            if progress is not None:
                progress(experiment.title, len(records), len(cells))


def _run_cell(run: Callable[[Cell], Mapping[str, Any]], cell: Cell) -> str:
    """Return the record of a cell, as it is written."""
    began, cpu_began = time.monotonic(), time.process_time()
    result = dict(run(cell))
    record = {
        "schema": CELL_SCHEMA,
        "cell": cell,
        "result": result,
        "seconds": time.monotonic() - began,
        "cpu_seconds": time.process_time() - cpu_began,
    }
    return json.dumps(sealed(record), sort_keys=True)


def _write(run: Reproduction, results: list[tuple[Cell, Mapping[str, Any]]]) -> None:
    """Write what does not depend on how long it took, nor on where it ran."""
    experiment = run.experiment
    content = _content(run, results)
    text = json.dumps(sealed(content), indent=2, ensure_ascii=False)
    write_whole(run.folder / "results.json", text + "\n")
    write_whole(run.folder / "table.md", markdown(run))
    if experiment.draw is not None:
        write_whole(run.folder / "figure.svg", svg_of(figure_of(experiment, results), experiment.id))


def _content(run: Reproduction, results: list[tuple[Cell, Mapping[str, Any]]]) -> dict[str, Any]:
    outcome, experiment = run.outcome, run.experiment
    return {
        "schema": SCHEMA,
        "experiment": experiment.id,
        "source": experiment.source,
        "published": experiment.published,
        "rule": experiment.rule,
        "scale": run.scale,
        "seed": run.seed,
        "verdict": outcome.verdict,
        "words": outcome.words,
        "columns": outcome.columns,
        "rows": outcome.rows,
        "cells": [{"cell": cell, "result": result} for cell, result in results],
    }


def _write_run(run: Reproduction, results: list[tuple[Cell, Mapping[str, Any]]]) -> None:
    """Write what the ledger reads: the results, and when and how long it was run."""
    when = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "seconds": run.seconds,
        "cpu_seconds": run.cpu_seconds,
    }
    record = sealed({**_content(run, results), **when})
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    write_whole(run_file(run.folder, run.scale, run.seed), text + "\n")


def _write_timing(run: Reproduction, records: list[Record]) -> None:
    content = {
        "schema": SCHEMA,
        "experiment": run.experiment.id,
        "scale": run.scale,
        "seed": run.seed,
        "seconds": run.seconds,
        "cpu_seconds": run.cpu_seconds,
        "cells": [
            {"cell": r["cell"], "seconds": r["seconds"], "cpu_seconds": r.get("cpu_seconds")}
            for r in records
        ],
    }
    write_whole(run.folder / "timing.json", json.dumps(content, indent=2) + "\n")


def markdown(run: Reproduction) -> str:
    """Return the outcome as a Markdown section."""
    outcome, experiment = run.outcome, run.experiment
    lines = [
        f"## {experiment.title}",
        "",
        f"*{experiment.source}.* {experiment.published}",
        "",
        f"Rule: {experiment.rule} Scale: {run.scale}.",
        "",
        f"**{outcome.verdict}**: {outcome.words}",
        "",
        "| " + " | ".join(outcome.columns) + " |",
        "|" + "---|" * len(outcome.columns),
    ]
    lines += ["| " + " | ".join(_shown(value) for value in row) + " |" for row in outcome.rows]
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
