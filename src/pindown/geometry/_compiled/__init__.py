"""Compiled inner loops: small functions over flat arrays, without Python objects.

The first call of a loop compiles it (seconds) and keeps the machine code in a cache on disk; later
processes load it in milliseconds. Loops release the interpreter lock, so threads share them. An edit of
any file of this folder compiles all of them anew.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pindown.compiling import compiler

# Contraction lets a product and a sum round once instead of twice; error bounds allow for both.
_compiler = partial(compiler, Path(__file__).parent, fastmath={"contract"})

# Loops that allocate nothing need no reference counts, whose atomic updates would cost more than the
# arithmetic. Those called by other loops only compile in half the time without a way in from Python.
allocating = _compiler()  # called from Python, may allocate
entry = _compiler(_nrt=False)  # called from Python, allocates nothing
inner = _compiler(_nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # called by loops only


@inner
def copy(target, source):
    """Copy one-dimensional ``source`` to the beginning of ``target``.

    A loop compiles in a tenth of the time that a slice assignment takes, and runs as fast.
    """
    for i in range(len(source)):
        target[i] = source[i]


@inner
def copy_rows(target, at, source, first, n):
    """Copy rows ``first : first + n`` of ``source`` to the rows of ``target`` from ``at`` on."""
    for i in range(n):
        for j in range(source.shape[1]):
            target[at + i, j] = source[first + i, j]
