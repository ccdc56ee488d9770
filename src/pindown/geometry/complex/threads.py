"""One walk shared by several threads: subtrees of the first layer are walked side by side."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed
from numpy.typing import NDArray

from pindown.box import Box
from pindown.geometry.complex.walk import Walk
from pindown.network import ReluNetwork

_TASKS_PER_THREAD = 32  # subtrees differ in size; many small ones keep all threads busy


@dataclass
class Walked:
    """What a walk by one or several threads has found."""

    n_cells: int
    growth: NDArray[np.int64]
    deferred: NDArray[np.int8]
    finished: bool


def walk_in_threads(
    net: ReluNetwork,
    box: Box,
    certified: bool,
    n_jobs: int | None,
    deadline: float | None,
    progress: Callable[[int], None] | None,
) -> Walked:
    """Count the cells of a network with ``n_jobs`` threads."""
    walk = Walk(net, box, counting=True, certified=certified)
    threads = _n_threads(n_jobs)
    if threads == 1 or walk.finished:
        walk.run(deadline=deadline, progress=progress)
        return Walked(walk.n_cells, walk.growth, walk.deferred, walk.finished)
    tasks = _subtrees(walk, _TASKS_PER_THREAD * threads, deadline)
    total, lock = [walk.n_cells], Lock()

    def work(_: int) -> Walk:
        own = Walk(net, box, counting=True, certified=certified, flat=walk.flat)
        own.unload()
        while tasks and (deadline is None or time.monotonic() < deadline):
            try:
                task = tasks.pop()
            except IndexError:  # another thread took the last one
                break
            before = own.n_cells
            own.load(task)
            own.run(deadline=deadline)
            with lock:
                total[0] += own.n_cells - before
                if progress is not None:
                    progress(total[0])
        return own

    parts = Parallel(n_jobs=threads, require="sharedmem")(delayed(work)(i) for i in range(threads))
    return Walked(
        n_cells=walk.n_cells + sum(part.n_cells for part in parts),
        growth=walk.growth + sum(part.growth for part in parts),
        deferred=np.concatenate([walk.deferred, *(part.deferred for part in parts)]),
        finished=not tasks and all(part.finished for part in [walk, *parts]),
    )


def _n_threads(n_jobs: int | None) -> int:
    if n_jobs is None:
        return 1
    if n_jobs == 0 or n_jobs % 1 != 0:
        raise ValueError(
            f"n_jobs is a number of threads, -1 for all cores, or None for one; got {n_jobs}."
        )
    return int(n_jobs) if n_jobs > 0 else max(1, cpu_count() + 1 + int(n_jobs))


def _subtrees(walk: Walk, n: int, deadline: float | None) -> list[Any]:
    """Take about n cells of the first layer off a fresh walk, the most cut ones split first."""
    walk.run(max_steps=1, deadline=deadline)
    heap = [(-cell.n_candidates, i, cell) for i, cell in enumerate(walk.unload())]
    heapq.heapify(heap)
    serial = len(heap)
    while heap and len(heap) < n and heap[0][0] < 0:
        if deadline is not None and time.monotonic() >= deadline:
            break
        walk.load(heapq.heappop(heap)[2])
        walk.run(max_steps=1, deadline=deadline)
        for cell in walk.unload():
            heapq.heappush(heap, (-cell.n_candidates, serial, cell))
            serial += 1
    return [cell for _, _, cell in heap]
