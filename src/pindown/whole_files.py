"""Files that are there completely or not at all, and folders that have one writer at a time."""

from __future__ import annotations

import errno
import os
import secrets
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_LOCK = ".lock"
_SHOWN = 50  # characters of a name that its stand-in shows: the system allows 255 bytes in all
_FULL = (errno.ENOSPC, errno.EDQUOT)
_TAKEN = (errno.EWOULDBLOCK, errno.EACCES)


class FolderInUseError(OSError):
    """Another run is writing to the folder."""


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that a reader sees as it was before, or whole, after any accident.

    It is written under another name, flushed to the disk, and renamed.

    Raises:
        OSError: If it cannot be written there, with the name that was asked for.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "a")) as file:
    ...         _ = file.write(b"all")
    ...     [entry.name for entry in Path(folder).iterdir()]
    ['a']
    """
    unfinished = path.with_name(f".{path.name[:_SHOWN]}.{secrets.token_hex(4)}.tmp")
    with _about(path):
        opened = unfinished.open("xb")
    try:
        with opened as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with _about(path):
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """Let errors name the file that was asked for, not the one that stands in for it."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def reason_of(error: OSError) -> str:
    """Return what the system says was wrong, without its number and without a file's name.

    >>> reason_of(FileNotFoundError(2, "No such file or directory", "/there/a.onnx"))
    'No such file or directory'
    """
    return error.strerror or str(error) or type(error).__name__


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
            words = f"cannot write to {folder} ({reason_of(error)}); give another folder"
        raise OSError(f"{words}.") from error


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Make a folder if need be, and keep other runs out of it.

    The system lets go of the lock when the process ends, however it ends, so that no lock is ever stale.
    It holds among all processes of a machine, and among machines if the network file system passes locks
    on (NFS does, with ``lockd``); where there are none, a warning says so.

    Raises:
        FolderInUseError: If another run has it.
        OSError: In one line, if it cannot be written to.
    """
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        try:
            _lock(descriptor)
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


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: runs are not kept apart there
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
