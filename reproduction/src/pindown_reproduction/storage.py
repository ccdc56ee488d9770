"""The files of a run: cells, tables and figures, the same byte by byte however often a run stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pindown.atomic_files import whole_file, writing_to
from pindown.errors import DataFileError
from pindown.json_files import CHECKSUM, read_record
from pindown_reproduction.experiment import Cell

SCHEMA = 1
CELL_SCHEMA = 2
_UNSEALED = 1  # cells of earlier versions have no checksum


def cell_file(folder: Path, cell: Cell) -> Path:
    """Return where a cell's record is kept; its name says what the cell is.

    >>> cell_file(Path("out"), {"n": 1}).name == cell_file(Path("out"), {"n": 2}).name
    False
    """
    name = hashlib.sha256(json.dumps(cell, sort_keys=True).encode()).hexdigest()[:16]
    return folder / "cells" / f"{name}.json"


def run_file(folder: Path, scale: str, seed: int) -> Path:
    """Return where a run is kept for the ledger.

    >>> run_file(Path("out"), "quick", 2).as_posix()
    'out/runs/quick-2.json'
    """
    return folder / "runs" / f"{scale}-{seed}.json"


def read_cell(path: Path, cell: Cell) -> Mapping[str, Any] | None:
    """Return a cell that was finished earlier; None if there is none.

    Raises:
        DataFileError: If its file is damaged, or not as it was written.
    """
    if not path.exists():
        return None
    record = read_record(path)
    schema = _UNSEALED if CHECKSUM not in record else CELL_SCHEMA
    kept = record.get("result"), record.get("seconds")
    # As JSON has it: a tuple in a cell comes back as a list.
    same = record.get("schema") == schema and record.get("cell") == json.loads(json.dumps(cell))
    if not same or not isinstance(kept[0], dict) or not isinstance(kept[1], int | float):
        raise DataFileError(f"{path} does not hold the result of this cell.")
    return record


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it is there completely or, after any accident, as it was before.

    Raises:
        OSError: In one line, if the disk is full or the folder cannot be written to.
    """
    with writing_to(path.parent), whole_file(path, sweep=False) as file:
        file.write(content.encode() if isinstance(content, str) else content)
