"""How long the first use of a compiled loop would take, so that nobody waits for a compiler by surprise.

Loops are compiled once per machine and kept on disk. Whoever has little time asks here first.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal

import numpy as np

from pindown.network import ReluNetwork

Work = Literal["segments", "plane", "plane count", "space", "space count"]

# Seconds on one busy core, measured and rounded up.
_SECONDS: dict[Work, float] = {
    "segments": 4.0,
    "plane": 18.0,
    "plane count": 18.0,
    "space": 30.0,
    "space count": 26.0,
}


def compile_seconds(work: Work) -> float:
    """Return about how many seconds of compiling some work needs first; 0 if that was done before.

    Args:
        work: ``"segments"`` (:func:`along_segment`), ``"plane"`` (:func:`polyhedral_complex` with two
            inputs), ``"plane count"`` (:func:`count_regions` there), ``"space"`` and ``"space count"``
            (three inputs or more).

    Returns:
        An estimate for one core, not a bound.
    """
    return 0.0 if _is_compiled(work) else _SECONDS[work]


def compile_folder() -> str | None:
    """Return where machine code is kept; None if it is not."""
    from pindown.geometry._compiled.segments import find_crossings

    return getattr(getattr(find_crossings, "_cache", None), "cache_path", None)


def compile_now(work: Work) -> None:
    """Compile what some work needs, by doing it once on a tiny network."""
    from pindown.geometry.complex.counting import region_count
    from pindown.geometry.complex.polyhedral import polyhedral_complex
    from pindown.geometry.slices.segment import along_segment

    dim = 2 if work.startswith("plane") else 3
    tiny = ReluNetwork.from_layers([(np.eye(dim), np.zeros(dim)), (np.ones((1, dim)), [0.0])])
    if work == "segments":
        along_segment(tiny, -np.ones(dim), np.ones(dim))
    elif work.endswith("count"):
        region_count(tiny, (-1, 1))
    else:
        cells = polyhedral_complex(tiny, (-1, 1))
        assert len(cells.neighbours) and len(cells.edges) and len(cells.volumes)


def _is_compiled(work: Work) -> bool:
    if work == "segments":
        from pindown.geometry._compiled.segments import find_crossings

        return bool(_signatures(find_crossings))
    from numba import types

    from pindown.geometry._compiled.traversal import walk

    names = walk.py_func.__code__.co_varnames
    faces, store, certified = (names.index(name) for name in ("faces", "store", "certified"))
    flat, counting = work.startswith("plane"), work.endswith("count")
    return any(
        (kinds[faces] == types.none) == flat
        and (kinds[store] == types.none) == counting
        and kinds[certified] == types.none
        for kinds in _signatures(walk)
    )


def _signatures(dispatcher: Any) -> list[tuple[Any, ...]]:
    """Return the argument types a loop is compiled for, in this process or on disk."""
    found = list(getattr(dispatcher, "overloads", {}))
    with suppress(Exception):  # Numba's own affair; when in doubt it will compile
        found += dispatcher._cache._cache_file.signatures()
    return found
