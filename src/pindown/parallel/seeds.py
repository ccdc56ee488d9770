"""Seeds for tasks that run apart: the same whoever runs them, and in whatever order."""

from __future__ import annotations

import numpy as np


def task_seeds(seed: int | None, n: int) -> list[int]:
    """Return a seed for each of n tasks; streams that begin at them do not overlap in practice.

    The first k of n seeds are those of k tasks, so that a longer run begins with the shorter one.

    Args:
        seed: Seed of the whole; None takes one from the system.
        n: How many tasks.

    Returns:
        Numbers below 2^63, which NumPy, torch and JSON all take.

    Raises:
        ValueError: If the seed or n is negative.

    >>> task_seeds(0, 3)[:2] == task_seeds(0, 2), len(set(task_seeds(7, 1_000)))
    (True, 1000)

    O'Neill 2014, as in NumPy's ``SeedSequence``.
    """
    if n < 0 or (seed is not None and seed < 0):
        raise ValueError(f"seed and n must be at least 0; got {seed!r} and {n!r}.")
    children = np.random.SeedSequence(seed).spawn(int(n))
    return [int(child.generate_state(1, np.uint64)[0] >> np.uint64(1)) for child in children]
