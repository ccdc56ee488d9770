"""Compiled inner loops: small functions over flat arrays, without Python objects.

The first call of a kernel compiles it (seconds) and keeps the machine code in a cache on disk;
later processes load it in milliseconds. Kernels release the interpreter lock, so threads share them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba

# Contraction lets a product and a sum round once instead of twice; error bounds allow for both.
_OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
}

# Kernels that allocate nothing need no reference counts, whose atomic updates would cost more than
# the arithmetic. Those called by kernels only compile in half the time without a way in from Python.
_LEAN = {"_nrt": False}
_INNER = {**_LEAN, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

_SOURCES = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
_STAMP = hashlib.sha256(_SOURCES).hexdigest()


def _compiler(options: dict[str, Any]) -> Callable[[Callable[..., Any]], Any]:
    def compiled(function: Callable[..., Any]) -> Any:
        try:
            dispatcher = numba.njit(**_OPTIONS, **options)(function)
        except RuntimeError:  # neither the package nor the home directory can be written to
            return numba.njit(**{**_OPTIONS, **options, "cache": False})(function)
        with suppress(AttributeError):
            # Numba drops a cached kernel when its own file changes. Ours call kernels of other
            # files, so they are stamped with all of them.
            dispatcher._cache._cache_file._source_stamp = _STAMP
        return dispatcher

    return compiled


kernel = _compiler({})  # called from Python, may allocate
entry = _compiler(_LEAN)  # called from Python, allocates nothing
inner = _compiler(_INNER)  # called by kernels only, allocates nothing


@inner
def copy(target, source):  # type: ignore[no-untyped-def]
    """Copy one-dimensional ``source`` to the beginning of ``target``.

    A loop compiles in a tenth of the time that a slice assignment takes, and runs as fast.
    """
    for i in range(len(source)):
        target[i] = source[i]


@inner
def copy_rows(target, at, source, first, n):  # type: ignore[no-untyped-def]
    """Copy rows ``first : first + n`` of ``source`` to the rows of ``target`` from ``at`` on."""
    for i in range(n):
        for j in range(source.shape[1]):
            target[at + i, j] = source[first + i, j]
