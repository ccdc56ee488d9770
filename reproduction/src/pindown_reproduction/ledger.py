"""The ledger: what every experiment gave, read from the folders of finished runs.

Nothing is run here. An experiment is shown at the largest scale that was run, with the verdict that
today's rule gives the results of then; runs with other seeds have to agree. A result that is not there
is said not to be there, one that stopped with an error is said to have stopped, and an outcome on other
data than the source's carries a mark.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pindown.json_files import read_record
from pindown_reproduction.experiment import SCALES, Cell, Declared, Experiment, Outcome
from pindown_reproduction.judgement import judge

ERROR = "error.txt"  # the last words of a run that stopped, beside its cells
MARK = "◇"  # an outcome on other data than the source's


@dataclass(frozen=True)
class Entry:
    """One experiment in the ledger.

    Attributes:
        experiment: What was declared.
        status: The verdict of the run, ``"not run"`` or ``"stopped"``.
        words: The outcome in a sentence, or why there is none.
        scale: At which scale it ran, the largest if there are several; empty if it did not.
        columns: Header of its table.
        rows: Rows of its table.
        seconds: CPU seconds of its cells, wall clock where those were not kept; NaN if unknown.
        stand_in: What stood in for the source's data; empty if nothing did.
        results: The cells with their results, for a figure.
        date: When it ran; empty if that was not kept.
        draws: How many draws there are: seeds, or repetitions in a cell; 0 where nothing is drawn.
        seeds: Which repetitions of the run there are at this scale.
    """

    experiment: Experiment
    status: str
    words: str
    scale: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    seconds: float = math.nan
    stand_in: str = ""
    results: tuple[tuple[Cell, Mapping[str, Any]], ...] = field(default=(), repr=False)
    date: str = ""
    draws: int = 0
    seeds: tuple[int, ...] = ()

    @property
    def verdict(self) -> str:
        """The status, with a mark if it is about other data than the source's."""
        return f"{self.status} {MARK}" if self.stand_in else self.status

    def __str__(self) -> str:
        other = f" On {self.stand_in}." if self.stand_in else ""
        return f"{self.experiment.id}: {self.status}. {self.words}{other}"


@dataclass(frozen=True)
class Ledger:
    """All experiments, run or declared.

    Attributes:
        entries: One for each registered experiment.
        declared: Published results that are not run here.
    """

    entries: tuple[Entry, ...]
    declared: tuple[Declared, ...] = ()

    def count(self, status: str, *, stand_in: bool | None = None) -> int:
        """Return how many entries have a status; only those on stand-in data (or not) if asked for."""
        return sum(
            entry.status == status and stand_in in (None, bool(entry.stand_in)) for entry in self.entries
        )

    @property
    def decided(self) -> int:
        """How many entries have an answer."""
        return self.count("reproduced") + self.count("not reproduced")

    @property
    def seconds(self) -> float:
        """CPU seconds of all runs together."""
        return sum(entry.seconds for entry in self.entries if not math.isnan(entry.seconds))

    def __str__(self) -> str:
        parts = [f"{len(self.entries)} experiments: {self.count('reproduced')} reproduced"]
        if on_others := self.count("reproduced", stand_in=True):
            parts[0] += f" ({on_others} of them on stand-in data)"
        for status in (
            "not reproduced", "underpowered", "no published number", "stopped", "not run",
        ):  # fmt: skip
            if number := self.count(status):
                parts.append(f"{number} {status}")
        return ", ".join(parts) + f"; {len(self.declared)} declared only"


def read_ledger(
    folder: Path | str, experiments: Iterable[Experiment], declared: Iterable[Declared] = ()
) -> Ledger:
    """Read the results of all experiments from the folder that ``reproduce`` wrote to.

    Args:
        folder: Its ``out``.
        experiments: What to look for.
        declared: What is declared only, to be listed as well.

    Raises:
        ValueError: If there is no such folder.
    """
    place = Path(folder)
    if not place.is_dir():
        raise ValueError(
            f"there is no folder {str(folder)!r}; run experiments with --out {folder} first."
        )
    return Ledger(tuple(read_entry(place, experiment) for experiment in experiments), tuple(declared))


def read_entry(folder: Path, experiment: Experiment) -> Entry:
    """Read one experiment's results; an entry says so if there are none."""
    place = folder / experiment.id
    error, last = place / ERROR, place / "results.json"
    runs = [*sorted((place / "runs").glob("*.json")), *([last] if last.is_file() else [])]
    if error.is_file() and not any(p.stat().st_mtime_ns > error.stat().st_mtime_ns for p in runs):
        said = error.read_text(encoding="utf-8").strip().splitlines()
        return Entry(experiment, "stopped", said[-1] if said else "An error without words.")
    if not runs:
        return Entry(experiment, "not run", "There are no results in this folder.")
    try:
        found: dict[tuple[str, tuple[int, ...]], Entry] = {}
        for path in runs:  # the last run counts for its scale and seed
            entry = _read_run(place, path, experiment)
            key = entry.scale, entry.seeds
            found[key] = replace(entry, date=entry.date or (found[key].date if key in found else ""))
    except (OSError, ValueError, KeyError, TypeError) as fault:
        words = str(fault).rstrip(".")
        return Entry(experiment, "stopped", f"its results cannot be read ({words}); run it again.")
    largest = max(_rank(scale) for scale, _ in found)
    return _agreed([entry for (scale, _), entry in found.items() if _rank(scale) == largest])


def _rank(scale: str) -> int:
    return SCALES.index(scale) if scale in SCALES else -1


def _read_run(place: Path, path: Path, experiment: Experiment) -> Entry:
    content = read_record(path)
    results = tuple((part["cell"], part["result"]) for part in content["cells"])
    kept = Outcome(
        content["verdict"],
        str(content["words"]),
        tuple(map(str, content["columns"])),
        tuple(tuple(row) for row in content["rows"]),
    )
    # Of runs of earlier versions only the tables were kept.
    outcome = _judged(experiment, results, kept) if results else kept
    power, cells = experiment.power, [cell for cell, _ in results]
    draws = power.draws(cells) if results else int(content.get("draws", 0))
    return Entry(
        experiment,
        outcome.verdict,
        outcome.words,
        str(content["scale"]),
        outcome.columns,
        outcome.rows,
        _seconds(place, content),
        experiment.stand_in(results) if results else str(content.get("stand_in", "")),
        results,
        str(content.get("date", "")),
        draws if power.seeds else 0,
        (int(content.get("seed", 0)),),
    )


def _judged(
    experiment: Experiment, results: tuple[tuple[Cell, Mapping[str, Any]], ...], kept: Outcome
) -> Outcome:
    """Return what today's rule says of results; what was kept if they lack what it asks for."""
    try:
        return judge(experiment, results)
    except (ArithmeticError, AttributeError, LookupError, ValueError, TypeError):
        return kept


def _agreed(runs: list[Entry]) -> Entry:
    """Return the first of the runs of one scale; underpowered if another says otherwise."""
    first = min(runs, key=lambda entry: entry.seeds)
    verdicts = [entry.status for entry in runs]
    merged = replace(first, seeds=tuple(sorted(entry.seeds[0] for entry in runs)))
    if len(set(verdicts)) == 1:
        return merged
    told = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
    words = f"{first.words} Runs with other seeds disagree: {told}."
    return replace(merged, status="underpowered", words=words)


def _seconds(place: Path, content: Mapping[str, Any]) -> float:
    """Return the CPU seconds of a run's own cells; what is kept about time differs by version."""
    if content.get("cpu_seconds") is not None:
        return float(content["cpu_seconds"])
    own = {json.dumps(part["cell"], sort_keys=True) for part in content["cells"]}
    total = 0.0
    for path in (place / "cells").glob("*.json"):
        try:
            record = read_record(path)
            if json.dumps(record["cell"], sort_keys=True) in own:
                total += float(record.get("cpu_seconds") or record["seconds"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a damaged cell has no time; the result has been read already
    return total or float(content.get("seconds", math.nan))
