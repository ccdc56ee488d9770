"""Inner loops: small functions over flat arrays, without Python objects.

They run as Python at once, and as machine code where there is more to do (:mod:`pindown.compiling`):
compiled in seconds, kept on disk, loaded in milliseconds, without the interpreter lock. An edit of any
file of this folder compiles all of them anew. Nothing is contracted or reordered: both routes round
alike.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pindown.compiling import compiler

_compiler = partial(compiler, Path(__file__).parent)

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
