"""Running an experiment: cell by cell, saved as they finish, taken up again where it stopped."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pindown.experiments.declaration import Cell, Experiment, Outcome
from pindown.parallel import each

SCHEMA = 1


@dataclass(frozen=True)
class Reproduction:
    """A finished run.

    Attributes:
        experiment: What was run.
        scale: ``"quick"`` or ``"paper"``.
        outcome: Published beside measured.
        seconds: How long the cells took, those taken from an earlier run included.
        folder: Where results, table and figure are.
    """

    experiment: Experiment
    scale: str
    outcome: Outcome
    seconds: float
    folder: Path

    def __str__(self) -> str:
        return f"{self.experiment.id} ({self.scale}): {self.outcome.verdict}. {self.outcome.words}"


def reproduce(
    experiment: Experiment,
    *,
    scale: str = "quick",
    out: Path,
    n_jobs: int | None = 1,
    resume: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Reproduction:
    """Run all cells of an experiment and compare with what was published.

    Every finished cell is a file of its own, so Ctrl-C loses nothing that was done: ``resume`` goes on.

    Args:
        experiment: What to run.
        scale: A key of its settings.
        out: Folder for ``results.json``, ``table.md``, the figure and the cells.
        n_jobs: Processes; None leaves it to ``joblib.parallel_config``.
        resume: Take over cells that an earlier run with the same settings finished.
        progress: Called with a message, cells done and cells in all.

    Raises:
        ValueError: If there is no such scale.
    """
    if scale not in experiment.settings:
        known = ", ".join(experiment.settings)
        raise ValueError(f"{experiment.id} has the scales {known}; got {scale!r}.")
    cells = experiment.cells(experiment.settings[scale])
    folder = Path(out) / experiment.id
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    records: dict[int, Mapping[str, Any]] = {}
    for i, cell in enumerate(cells):
        record = _read(_file(folder, cell), cell) if resume else None
        if record is not None:
            records[i] = record
    todo = [i for i in range(len(cells)) if i not in records]
    work = [(experiment.run, cells[i], str(_file(folder, cells[i]))) for i in todo]
    for done, (k, record) in enumerate(each(_run_cell, work, n_jobs=n_jobs), 1):
        records[todo[k]] = record
        if progress is not None:
            progress(experiment.title, len(cells) - len(todo) + done, len(cells))
    results = [(cell, records[i]["result"]) for i, cell in enumerate(cells)]
    outcome = experiment.compare(results)
    seconds = sum(record["seconds"] for record in records.values())
    reproduction = Reproduction(experiment, scale, outcome, seconds, folder)
    _write(reproduction, results)
    return reproduction


def _file(folder: Path, cell: Cell) -> Path:
    name = hashlib.sha256(json.dumps(cell, sort_keys=True).encode()).hexdigest()[:16]
    return folder / "cells" / f"{name}.json"


def _read(path: Path, cell: Cell) -> Mapping[str, Any] | None:
    """Return a cell that was finished earlier; None if there is none, or its file is damaged."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    fits = isinstance(record, dict) and record.get("schema") == SCHEMA and record.get("cell") == cell
    return record if fits else None


def _run_cell(
    task: tuple[Callable[[Cell], Mapping[str, Any]], Cell, str],
) -> Mapping[str, Any]:
    run, cell, path = task
    began = time.monotonic()
    result = dict(run(cell))
    record = {"schema": SCHEMA, "cell": cell, "result": result, "seconds": time.monotonic() - began}
    target = Path(path)
    part = target.with_suffix(".part")  # renamed when complete: a cell is there or it is not
    part.write_text(json.dumps(record, sort_keys=True), encoding="utf-8")
    part.replace(target)
    return record


def _write(run: Reproduction, results: list[tuple[Cell, Mapping[str, Any]]]) -> None:
    outcome, experiment = run.outcome, run.experiment
    content = {
        "schema": SCHEMA,
        "experiment": experiment.id,
        "source": experiment.source,
        "published": experiment.published,
        "rule": experiment.rule,
        "scale": run.scale,
        "verdict": outcome.verdict,
        "words": outcome.words,
        "columns": outcome.columns,
        "rows": outcome.rows,
        "seconds": run.seconds,
        "cells": [{"cell": cell, "result": result} for cell, result in results],
    }
    text = json.dumps(content, indent=2, ensure_ascii=False)
    (run.folder / "results.json").write_text(text + "\n", encoding="utf-8")
    (run.folder / "table.md").write_text(markdown(run), encoding="utf-8")
    if experiment.draw is not None:
        experiment.draw(results).savefig(run.folder / "figure.svg", bbox_inches="tight")


def markdown(run: Reproduction) -> str:
    """Return the outcome as a Markdown section."""
    outcome, experiment = run.outcome, run.experiment
    lines = [
        f"## {experiment.title}",
        "",
        f"*{experiment.source}.* {experiment.published}",
        "",
        f"Rule: {experiment.rule} Scale: {run.scale}, {run.seconds:.0f} s of cells.",
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
