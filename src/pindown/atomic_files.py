"""Files that are there completely or not at all, alone or together, and folders with one writer."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import signal
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import lru_cache
from glob import escape
from os import PathLike
from pathlib import Path
from typing import BinaryIO

_LOCK = ".lock"
_SHOWN = 50  # characters of a name that its stand-in shows: the system allows 255 bytes in all
_FULL = (errno.ENOSPC, errno.EDQUOT)
_TAKEN = (errno.EWOULDBLOCK, errno.EACCES)
_PATIENT = b"pindown: writing what was found; Ctrl-C again stops at once.\n"
# Files that are written and wait for others: their stand-ins and their names.
_WAITING: ContextVar[list[tuple[Path, Path]] | None] = ContextVar("waiting files", default=None)


class FolderInUseError(OSError):
    """Another run is writing to the folder."""


@contextmanager
def whole_file(path: Path, *, sweep: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing that a reader sees as it was before, or whole, after any accident.

    It is written under another name, flushed to the disk, and renamed; inside :func:`together` later,
    with the others.

    Args:
        path: Where.
        sweep: Whether to remove what a process that died left of the same file. The only writer of a
            folder, which may hold very many files, has done so at once.

    Raises:
        OSError: If it cannot be written there, with the name that was asked for.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "a")) as file:
    ...         _ = file.write(b"all")
    ...     [entry.name for entry in Path(folder).iterdir()]
    ['a']
    """
    begin = f".{path.name[:_SHOWN]}."
    unfinished = path.with_name(f"{begin}{secrets.token_hex(4)}.{_here()}.{os.getpid()}.tmp")
    with _about(path):
        opened = unfinished.open("xb")
    try:
        with opened as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        waiting = _WAITING.get()
        if waiting is None:
            _rename(unfinished, path)
        else:
            waiting.append((unfinished, path))
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    for left in path.parent.glob(f"{escape(begin)}*.tmp") if sweep else ():
        if _writer_is_dead(left):
            left.unlink(missing_ok=True)


@contextmanager
def together() -> Iterator[None]:
    """Let all files that are written inside appear at the end, at once, or none of them.

    The first Ctrl-C waits until they are there; the second ends it, and no file appears. If a group
    inside another fails, its files are left out of both.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with together():
    ...         with whole_file(Path(folder, "a")) as file:
    ...             _ = file.write(b"all")
    ...         Path(folder, "a").exists()
    ...     Path(folder, "a").exists()
    False
    True
    """
    outer = _WAITING.get()
    waiting: list[tuple[Path, Path]] = []
    token = _WAITING.set(waiting)
    try:
        with _interrupt_later() if outer is None else nullcontext():
            yield
            if outer is not None:
                outer += waiting
            else:
                with _no_interrupt():
                    for unfinished, path in waiting:
                        _rename(unfinished, path)
            waiting = []
    finally:
        _WAITING.reset(token)
        for unfinished, _ in waiting:
            unfinished.unlink(missing_ok=True)


def _rename(unfinished: Path, path: Path) -> None:
    with _about(path):
        unfinished.replace(path)


@contextmanager
def _interrupt_later() -> Iterator[None]:
    """Keep the first Ctrl-C until the end, if nobody else takes care of it."""
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    came = False

    def keep(*_: object) -> None:
        nonlocal came
        came = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.write(2, _PATIENT)

    signal.signal(signal.SIGINT, keep)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Let every Ctrl-C wait, for a moment."""
    # A mask holds for one thread: the system would give the signal to another, and Python to this one.
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGINT) is None:  # a handler that is not Python's
        yield
        return
    came: list[object] = []
    before = signal.signal(signal.SIGINT, lambda *_: came.append(1))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        signal.raise_signal(signal.SIGINT)


@lru_cache(maxsize=1)
def _here() -> str:
    """Return a name for where process numbers mean what they mean here."""
    place = socket.gethostname()
    with suppress(OSError):  # not Linux
        place += str(Path("/proc/self/ns/pid").stat().st_ino)
    return hashlib.sha256(place.encode()).hexdigest()[:8]


def _writer_is_dead(unfinished: Path) -> bool:
    """Return whether a stand-in was begun here, by a process that is no more."""
    place, number = unfinished.name.split(".")[-3:-1]
    if os.name != "posix" or place != _here() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it is there, and somebody else's; or no number of a process
        return False
    return False


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
    on (NFS does, with ``lockd``); where there are none, a warning says so. What earlier runs left
    unfinished, there and in its sub-folders, is removed.

    Raises:
        FolderInUseError: If another run has it.
        OSError: In one line, if it cannot be written to.
    """
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        alone = False
        try:
            alone = _lock(descriptor)
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
        if alone:
            for unfinished in (*folder.glob(".*.tmp"), *folder.glob("*/.*.tmp")):
                unfinished.unlink(missing_ok=True)
        yield


def _lock(descriptor: int) -> bool:
    """Lock a file, and return whether that keeps others out."""
    try:
        import fcntl
    except ImportError:  # Windows: runs are not kept apart there
        return False
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return True


def written(text: str, path: str | PathLike[str] | None) -> str:
    """Return the text, written to the path if there is one: whole, or not at all.

    Raises:
        OSError: If it cannot be written there, with the name of the file.
    """
    if path is None:
        return text
    place = Path(path).resolve()  # a link is followed, not replaced
    data = text.encode()
    try:
        if place.exists() and not place.is_file():  # a pipe or a device takes what comes
            place.write_bytes(data)
        else:
            with whole_file(place) as file:
                file.write(data)
    except OSError as error:
        raise OSError(error.errno, reason_of(error), str(path)) from None
    return text
