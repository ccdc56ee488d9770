"""The ledger: what every experiment gave, read from the folders of finished runs.

Nothing is run here. A result that is not there is said not to be there, one that stopped with an error
is said to have stopped, and an outcome on other data than the source's carries a mark.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pindown.json_files import read_record
from pindown_reproduction.experiment import Cell, Declared, Experiment

ERROR = "error.txt"  # the last words of a run that stopped, beside its cells
MARK = "◇"  # an outcome on other data than the source's


@dataclass(frozen=True)
class Entry:
    """One experiment in the ledger.

    Attributes:
        experiment: What was declared.
        status: The verdict of the run, ``"not run"`` or ``"stopped"``.
        words: The outcome in a sentence, or why there is none.
        scale: At which scale it ran; empty if it did not.
        columns: Header of its table.
        rows: Rows of its table.
        seconds: CPU seconds of its cells, wall clock where those were not kept; NaN if unknown.
        stand_in: What stood in for the source's data; empty if nothing did.
        results: The cells with their results, for a figure.
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
    def seconds(self) -> float:
        """CPU seconds of all runs together."""
        return sum(entry.seconds for entry in self.entries if not math.isnan(entry.seconds))

    def __str__(self) -> str:
        parts = [f"{len(self.entries)} experiments: {self.count('reproduced')} reproduced"]
        if on_others := self.count("reproduced", stand_in=True):
            parts[0] += f" ({on_others} of them on stand-in data)"
        for status in ("not reproduced", "no published number", "stopped", "not run"):
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
    error, done = place / ERROR, place / "results.json"
    if error.is_file() and not (done.is_file() and done.stat().st_mtime_ns > error.stat().st_mtime_ns):
        said = error.read_text(encoding="utf-8").strip().splitlines()
        return Entry(experiment, "stopped", said[-1] if said else "An error without words.")
    try:
        if not done.is_file():
            return Entry(experiment, "not run", "There are no results in this folder.")
        content = read_record(done)
        results = tuple((part["cell"], part["result"]) for part in content["cells"])
        rows = tuple(tuple(row) for row in content["rows"])
        verdict, words, scale = (str(content[name]) for name in ("verdict", "words", "scale"))
        columns = tuple(map(str, content["columns"]))
    except (OSError, ValueError, KeyError, TypeError) as fault:
        words = str(fault).rstrip(".")
        return Entry(experiment, "stopped", f"results.json cannot be read ({words}); run it again.")
    seconds = _seconds(place, content)
    stand_in = experiment.stand_in(results)
    return Entry(experiment, verdict, words, scale, columns, rows, seconds, stand_in, results)


def _seconds(place: Path, content: Mapping[str, Any]) -> float:
    """Return the CPU seconds of a run's own cells; what is kept about time differs by version."""
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
