"""One way to compile inner loops: cached on disk, and stale when any neighbour changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any


def compiler(folder: Path, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function with Numba and keeps the machine code on disk.

    Numba drops a cached function when its own file changes. Compiled functions call those of other
    files, so they are stamped with all Python files of their folder.

    Args:
        folder: Where the compiled functions that call each other live.
        options: Further options of ``numba.njit``.
    """
    import numba

    sources = b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    stamp = hashlib.sha256(sources).hexdigest()

    def compiled(function: Callable[..., Any]) -> Any:
        settings = {"nogil": True, "error_model": "numpy", **options}
        try:
            dispatcher = numba.njit(cache=True, **settings)(function)
        except RuntimeError:  # neither the package nor the home directory can be written to
            return numba.njit(**settings)(function)
        with suppress(AttributeError):
            dispatcher._cache._cache_file._source_stamp = stamp
        return dispatcher

    return compiled
