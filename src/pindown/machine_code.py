"""Machine code on disk: where it is kept, never misread, never mistaken for that of other sources.

Code lies in a folder named by the sources it was made from, outside the package: an upgrade that leaves
those sources alone finds it again, and two versions keep apart.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

_SEAL_BYTES = 32  # of SHA-256, at the end of every file
_STAMP_LETTERS = 16


@cache
def stamp_of(sources: Path) -> str:
    """Return a name for the content of all Python files of a folder."""
    content = b"".join(path.read_bytes() for path in sorted(sources.glob("*.py")))
    return hashlib.sha256(content).hexdigest()


def base_folder() -> Path | None:
    """Return where machine code is kept, the first that can be written to; None if nothing can.

    That is ``NUMBA_CACHE_DIR`` if it is set, a folder for caches in the home directory, or one of this
    user alone among temporary files: what is read from there is run.
    """
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named:
        return _writable(Path(named) / "pindown")
    homes = [os.environ.get("XDG_CACHE_HOME") or "~/.cache"]
    for place in homes:
        with suppress(RuntimeError):  # nobody knows where this user is at home
            if found := _writable(Path(place).expanduser() / "pindown"):
                return found
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return _writable(Path(tempfile.gettempdir()) / f"pindown-{user}")


def _writable(folder: Path) -> Path | None:
    """Return a folder, made if need be, if it is this user's alone to write to; else None."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.lstat()
    except OSError:
        return None
    if hasattr(os, "getuid") and (about.st_uid != os.getuid() or about.st_mode & 0o022):
        return None
    return folder if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK) else None


def package_of(folder: Path) -> str:
    """Return a folder of sources as the package it is.

    >>> package_of(Path("/somewhere/pindown/geometry/_compiled"))
    'pindown.geometry._compiled'
    """
    parts = folder.parts
    known = "pindown" in parts
    return ".".join(parts[len(parts) - 1 - parts[::-1].index("pindown") :] if known else parts[-1:])


def folder_for(sources: Path) -> Path | None:
    """Return where the machine code of the functions of a folder is kept; None if it is not."""
    base = base_folder()
    if base is None:
        return None
    return base / f"{package_of(sources)}-{stamp_of(sources)[:_STAMP_LETTERS]}-numba{_numba_version()}"


@cache
def _numba_version() -> str:
    try:
        return metadata.version("numba")
    except metadata.PackageNotFoundError:
        return "none"


def dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return a function as Numba compiles it, with its machine code kept on disk if that can be."""
    from numba import njit

    made = njit(nogil=True, error_model="numpy", **options)(function)
    sources = Path(function.__code__.co_filename).parent
    folder = folder_for(sources)
    if folder is not None:
        # What a later Numba has moved: then each process compiles anew.
        with suppress(OSError, ImportError, AttributeError, TypeError):
            folder.mkdir(mode=0o700, exist_ok=True)
            made._cache = _sealed_cache(function, folder, stamp_of(sources))
    return made


def _sealed_cache(function: Callable[..., Any], folder: Path, stamp: str) -> Any:
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

    class Place(_CacheLocator):  # type: ignore[misc]
        """What Numba asks where to keep a function."""

        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> Place:
            return cls()

        def get_cache_path(self) -> str:
            return str(folder)

        def get_source_stamp(self) -> str:
            return stamp

        def get_disambiguator(self) -> str:
            return str(function.__code__.co_firstlineno)

    class Impl(CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (Place,)

    class Kept(FunctionCache):  # type: ignore[misc]
        _impl_class = Impl

    kept = Kept(function)
    kept._cache_file = sealed_files()(kept.cache_path, kept._impl.filename_base, stamp)
    return kept


@cache
def sealed_files() -> Any:
    """Return the class of files below; Numba, on which it rests, is not loaded before."""
    from numba.core.caching import IndexDataCacheFile

    class SealedFiles(IndexDataCacheFile):  # type: ignore[misc]
        """Numba's files of one function, each with a checksum at its end.

        Numba unpickles whatever is there: a file that was cut short or changed raises something, or
        runs. Here it counts as not there, so that the function is compiled again. The code also names
        what it was compiled for: of two processes that number their files alike, one overwrites the
        other's.
        """

        def load(self, key: Any) -> Any:
            """Return what was compiled for a key; None if there is none, or none that is whole."""
            try:
                made_for, data = super().load(key) or (None, None)
            except Exception:  # a whole pickle from another environment can raise anything
                return None
            return data if made_for == key else None

        def save(self, key: Any, data: Any) -> None:
            """Keep what was compiled; what cannot be kept (a full disk) is compiled again next time."""
            with suppress(OSError):
                super().save(key, (key, data))

        def signatures(self) -> list[tuple[Any, ...]]:
            """Return the argument types of what is kept, whole."""
            found = self._load_index().items()
            return [key[0] for key, name in found if is_sealed(self._data_path(name))]

        def _load_index(self) -> dict[Any, str]:
            if not is_sealed(self._index_path):
                return {}
            try:
                return dict(super()._load_index())
            except Exception:  # a whole index of an earlier version names what has moved since
                return {}

        def _load_data(self, name: str) -> Any:
            path = self._data_path(name)
            if not is_sealed(path):
                raise OSError(f"{path} is damaged")  # to Numba, a file that is not there
            return super()._load_data(name)

        @contextmanager
        def _open_for_write(self, filepath: str) -> Iterator[Any]:
            with super()._open_for_write(filepath) as file:
                yield file
                file.flush()
                file.write(seal(Path(file.name).read_bytes()))

    return SealedFiles


def is_sealed(path: str | os.PathLike[str]) -> bool:
    """Return whether a file ends in the checksum of what comes before."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        return False
    return content[-_SEAL_BYTES:] == seal(content[:-_SEAL_BYTES])


def seal(content: bytes) -> bytes:
    """Return the checksum of some content."""
    return hashlib.sha256(content).digest()


def damaged_files() -> list[Path]:
    """Return files of machine code that are damaged; none of them is ever read."""
    base = base_folder()
    kept = sorted(base.glob("*/*.nb[ic]")) if base is not None else []
    return [path for path in kept if not is_sealed(path)]
