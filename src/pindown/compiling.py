"""One way to compile inner loops: cached on disk, stale when any neighbour changes, never misread."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import IndexDataCacheFile

_SEAL_BYTES = 32  # of SHA-256, at the end of every file
_FOLDERS: set[Path] = set()  # of files that were or can be read


def compiler(folder: Path, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function with Numba and keeps the machine code on disk.

    Numba drops a cached function when its own file changes. Compiled functions call those of other
    files, so they are stamped with all Python files of their folder.

    Args:
        folder: Where the compiled functions that call each other live.
        options: Further options of ``numba.njit``.
    """
    sources = b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    stamp = hashlib.sha256(sources).hexdigest()

    def compiled(function: Callable[..., Any]) -> Any:
        settings = {"nogil": True, "error_model": "numpy", **options}
        try:
            dispatcher = njit(cache=True, **settings)(function)
        except RuntimeError:  # neither the package nor the home directory can be written to
            return njit(**settings)(function)
        with suppress(AttributeError):  # of a later Numba, which then keeps its own files
            cache = dispatcher._cache
            cache._cache_file = SealedFiles(cache.cache_path, cache._impl.filename_base, stamp)
            _FOLDERS.add(Path(cache.cache_path))
        return dispatcher

    return compiled


class SealedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's files of one function, each with a checksum at its end.

    Numba unpickles whatever is there: a file that was cut short or changed raises something, or runs.
    Here it counts as not there, so that the function is compiled again. The code also names what it was
    compiled for: of two processes that number their files alike, one overwrites the other's.
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
            file.write(_seal(Path(file.name).read_bytes()))


def is_sealed(path: str | os.PathLike[str]) -> bool:
    """Return whether a file ends in the checksum of what comes before."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        return False
    return content[-_SEAL_BYTES:] == _seal(content[:-_SEAL_BYTES])


def _seal(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def damaged_files() -> list[Path]:
    """Return files of machine code that are damaged or of an earlier version; none of them is read.

    It looks where the functions that were imported so far, and those beside them, are kept.
    """
    kept = [path for folder in sorted(_FOLDERS) for path in sorted(folder.glob("*.nb[ic]"))]
    return [path for path in kept if not is_sealed(path)]
