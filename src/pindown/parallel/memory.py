"""How many tasks fit in memory at once."""

from __future__ import annotations

import os
import warnings
from math import inf
from pathlib import Path

# Estimates are rough, and the rest of the machine needs some.
_SHARE = 0.8
_GIGABYTE = 1e9


def available_bytes() -> float:
    """Return how much memory is left for new work; infinite if the system does not say.

    >>> available_bytes() > 0
    True
    """
    return min(_machine(), _control_group())


def at_once(n: int, bytes_per_task: float | None, available: float | None = None) -> int:
    """Return how many of n tasks to run at once so that they fit in memory; at least one.

    Args:
        n: Workers there are.
        bytes_per_task: What one task takes at its peak; None if that does not matter.
        available: Bytes; None asks the system.

    >>> at_once(8, 1e9, available=5e9), at_once(8, None)
    (4, 8)
    """
    if bytes_per_task is None:
        return n
    if not 0 < bytes_per_task < inf:
        raise ValueError(f"bytes_per_task must be a positive number of bytes; got {bytes_per_task!r}.")
    room = available_bytes() if available is None else available
    if room < bytes_per_task:
        warnings.warn(
            f"a task takes about {bytes_per_task / _GIGABYTE:.2g} GB and {room / _GIGABYTE:.2g} GB are "
            "left; running one at a time.",
            stacklevel=3,
        )
    return int(max(1, min(n, _SHARE * room // bytes_per_task)))


def _machine() -> float:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):  # not Linux: all that is built in has to do
        try:
            return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        except (AttributeError, OSError, ValueError):
            return inf


def _control_group() -> float:
    """Return what a container may still take."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit, used = ((folder / name).read_text().strip() for name in ("memory.max", "memory.current"))
        return inf if limit == "max" else max(0.0, float(limit) - float(used))
    except (OSError, ValueError):
        return inf
