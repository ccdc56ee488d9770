"""Running all experiments: side by side, past failures, with an estimate of what is left."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pindown.parallel import each
from pindown_reproduction.experiment import Experiment
from pindown_reproduction.ledger import ERROR, MARK, read_entry
from pindown_reproduction.runner import reproduce

_UNKNOWN = 60.0  # seconds expected of an experiment that was never timed
_RESUMED = 0.2  # a run this much faster than expected was taken from disk, and tells nothing about speed


@dataclass(frozen=True)
class Finished:
    """One experiment of many.

    Attributes:
        id: Which one.
        verdict: What its rule says, or ``"stopped"``; with a mark if on stand-in data.
        words: The outcome in a sentence, or the error.
        seconds: Wall clock of this run.
        done: How many are finished.
        total: How many there are.
        left: Seconds that the rest will take, by what was measured elsewhere and by the speed so far.
    """

    id: str
    verdict: str
    words: str
    seconds: float
    done: int
    total: int
    left: float

    @property
    def failed(self) -> bool:
        """Whether it stopped with an error."""
        return self.verdict == "stopped"

    def __str__(self) -> str:
        left = f"; about {max(1, round(self.left / 60))} min left" if self.done < self.total else ""
        words = f": {self.words}" if self.failed else ""
        return (
            f"[{self.done}/{self.total}] {self.id}: {self.verdict}{words} ({self.seconds:.0f} s){left}"
        )


def reproduce_all(
    experiments: Iterable[Experiment],
    *,
    out: Path,
    scale: str = "quick",
    seed: int = 0,
    n_jobs: int | None = 1,
    cluster: str | None = None,
    resume: bool = False,
    report: Callable[[Finished], None] | None = None,
) -> tuple[Finished, ...]:
    """Run experiments and go on where one fails; its error is kept in ``error.txt`` in its folder.

    Quick experiments run side by side, the longest first; at other scales and on a cluster they run one
    after another with their cells side by side.

    Args:
        experiments: What to run.
        out: Folder for all of them.
        scale: A key of their settings; experiments without it are left out.
        seed: Which repetition, as in :func:`reproduce`.
        n_jobs: Processes.
        cluster: Where cells run, as in :func:`reproduce`.
        resume: Take over cells of earlier runs.
        report: Called with every experiment that is finished.

    Returns:
        What came of each, in the order they finished.
    """
    experiments = [experiment for experiment in experiments if scale in experiment.settings]
    order = sorted(experiments, key=lambda e: -e.seconds.get(scale, _UNKNOWN))
    beside = scale == "quick" and cluster is None
    inner: dict[str, Any] = {"n_jobs": 1 if beside else n_jobs, "seed": seed}
    if cluster is not None:
        inner["cluster"] = cluster
    tasks = [(experiment, scale, str(out), resume, inner) for experiment in order]
    expected = [e.seconds.get(scale, _UNKNOWN) for e in order]
    timed, finished = [0.0, 0.0], list[Finished]()
    waiting = set(range(len(order)))
    processes = (os.cpu_count() or 1) if n_jobs == -1 else n_jobs or 1
    workers = processes if beside else 1
    for index, (verdict, words, seconds) in each(_run_one, tasks, n_jobs=n_jobs if beside else 1):
        waiting.discard(index)
        if seconds > _RESUMED * expected[index]:
            timed = [timed[0] + seconds, timed[1] + expected[index]]
        pace = timed[0] / timed[1] if timed[1] else 1.0
        left = pace * sum(expected[i] for i in waiting) / workers
        one = Finished(order[index].id, verdict, words, seconds, len(finished) + 1, len(order), left)
        finished.append(one)
        if report is not None:
            report(one)
    return tuple(finished)


def _run_one(
    task: tuple[Experiment, str, str, bool, dict[str, Any]],
) -> tuple[str, str, float]:
    experiment, scale, out, resume, inner = task
    began, error = time.monotonic(), Path(out) / experiment.id / ERROR
    try:
        run = reproduce(experiment, scale=scale, out=Path(out), resume=resume, **inner)
    except Exception as failure:  # whatever it is, the others are to run
        error.parent.mkdir(parents=True, exist_ok=True)
        error.write_text(traceback.format_exc(), encoding="utf-8")
        return "stopped", f"{type(failure).__name__}: {failure}", time.monotonic() - began
    error.unlink(missing_ok=True)
    mark = f" {MARK}" if read_entry(Path(out), experiment).stand_in else ""
    words = " ".join([run.outcome.words, *run.notes])
    return f"{run.outcome.verdict}{mark}", words, time.monotonic() - began
