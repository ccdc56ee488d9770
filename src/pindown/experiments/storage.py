"""The files of a run: written whole or not at all, by one run at a time, readable after any accident."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import socket
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pindown.experiments.declaration import Cell

SCHEMA = 1
_LOCK = ".lock"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_TAKEN = (errno.EWOULDBLOCK, errno.EACCES)


class FolderInUseError(OSError):
    """Another run is writing to the folder."""


def cell_file(folder: Path, cell: Cell) -> Path:
    """Return where a cell's record is kept; its name says what the cell is.

    >>> cell_file(Path("out"), {"n": 1}).name == cell_file(Path("out"), {"n": 2}).name
    False
    """
    name = hashlib.sha256(json.dumps(cell, sort_keys=True).encode()).hexdigest()[:16]
    return folder / "cells" / f"{name}.json"


def read_cell(path: Path, cell: Cell) -> Mapping[str, Any] | None:
    """Return a cell that was finished earlier; None if there is none, or its file is damaged."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA or "seconds" not in record:
        return None
    # As JSON has it: a tuple in a cell comes back as a list.
    same = record.get("cell") == json.loads(json.dumps(cell)) and "result" in record
    return record if same else None


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it is there completely or, after any accident, as it was before.

    Raises:
        OSError: In one line, if the disk is full or the folder cannot be written to.
    """
    part = path.with_suffix(".part")
    with writing_to(path.parent):
        try:
            part.write_bytes(content.encode() if isinstance(content, str) else content)
            part.replace(path)
        except OSError:
            with suppress(OSError):
                part.unlink()
            raise


def svg_of(figure: Any, salt: str) -> bytes:
    """Return a figure as an SVG that is the same, byte by byte, whenever it is drawn."""
    import matplotlib as mpl

    target = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": salt}):
        figure.savefig(target, format="svg", bbox_inches="tight", metadata={"Date": None})
    return target.getvalue()


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Say in one line what is wrong when a folder cannot be written to."""
    try:
        yield
    except FolderInUseError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            words = f"no space left in {folder}; what was finished is kept: make room, then resume"
        else:
            words = f"cannot write to {folder} ({error.strerror or error}); give another folder"
        raise OSError(f"{words}.") from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder.

    The system lets go of the lock when the process ends, however it ends, so that no lock is ever stale.
    It holds among all processes of a machine, and among machines if the network file system passes locks
    on (NFS does, with ``lockd``); where there are none, a warning says so.

    Raises:
        FolderInUseError: If another run has it.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    path = folder / _LOCK
    with writing_to(folder):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _TAKEN:
                raise FolderInUseError(
                    f"another run ({file.read().strip() or 'just begun'}) is writing to {folder}; "
                    "wait for it, stop it, or give another folder."
                ) from None
            warnings.warn(
                f"{folder} is on a file system without locks; start only one run in it.", stacklevel=3
            )
        with writing_to(folder):
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            file.flush()
        yield
