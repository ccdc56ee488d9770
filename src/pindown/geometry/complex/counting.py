"""How many linear regions: counted exactly, without building the cells of the last layer, in threads."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.box import Box
from pindown.deadline import Deadline, Stopwatch
from pindown.geometry.complex._cells import full_box
from pindown.geometry.tuning import SUBTREES_PER_THREAD
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.progress import Report
from pindown.text import card
from pindown.validation import refuse

if TYPE_CHECKING:
    from pindown.geometry.complex._traversal import Walk


@dataclass(frozen=True)
class RegionCount:
    """How many full-dimensional cells a network has on a box.

    Attributes:
        n_regions: Cells found; all of them if ``complete``, else a lower bound.
        complete: Whether the whole box was searched.
        growth: Cells after each hidden layer, as far as the search came.
        certified: Whether every sign was proved or decided in exact arithmetic.
        n_exact: Cells of some layer that were left to exact arithmetic: those with a sign that could not
            be proved; if not certified, those in which rounded signs contradict each other.
        seconds: Time spent, compilation included.
    """

    n_regions: int
    complete: bool
    growth: tuple[int, ...]
    certified: bool
    n_exact: int
    seconds: float

    _repr_html_ = card

    def __str__(self) -> str:
        how = "certified" if self.certified else "float64 signs"
        bound = "" if self.complete else "at least "
        return f"{bound}{self.n_regions:,} regions ({how}, {self.seconds:.2g} s)"


@on_network
def count_regions(
    net: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike],
    n_jobs: int | None = None,
    *,
    certified: bool = False,
) -> int:
    """Return the number of full-dimensional activation cells of a network on a box.

    Args:
        net: The network.
        box: The inputs, full-dimensional.
        n_jobs: Threads; None means one, -1 all cores.
        certified: Prove every sign; undecided ones go to exact rational arithmetic.

    Raises:
        ValueError: If the box does not fit, is flat, or has too many dimensions.

    Two lines that cross in the square make four cells, two that miss each other three:

    >>> cross = ReluNetwork.from_layers([([[1.0, 0.0], [0.0, 1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> count_regions(cross, (-1, 1))
    4
    >>> apart = ReluNetwork.from_layers([([[1.0, 0.0], [1.0, 0.0]], [0, 0.5]), ([[1.0, 1.0]], [0])])
    >>> count_regions(apart, (-1, 1))
    3
    """
    return region_count(net, box, n_jobs=n_jobs, certified=certified).n_regions


@on_network
def region_count(
    net: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike],
    *,
    budget: float | None = None,
    certified: bool = False,
    n_jobs: int | None = None,
    progress: Report | None = None,
) -> RegionCount:
    """Count cells within a time budget; see :func:`count_regions`.

    Args:
        net: The network.
        box: The inputs, full-dimensional.
        budget: Seconds; when they are over, the count so far is returned as a lower bound.
        certified: Prove every sign; undecided ones go to exact rational arithmetic.
        n_jobs: Threads; None means one, -1 all cores.
        progress: Called with what is done, the count so far and None, a few times per second.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> region_count(net, (-1, 1)).n_regions
    2
    """
    watch, deadline = Stopwatch(), Deadline.of(budget)
    domain = full_box(box, net.in_features)

    def result(n: int, complete: bool, growth: Any = (), n_exact: int = 0) -> RegionCount:
        return RegionCount(n, complete, tuple(map(int, growth)), certified, n_exact, watch.seconds)

    if deadline.passed:
        return result(0, False)
    if net.size == 0:
        return result(1, True)
    if net.in_features == 1:
        from pindown.geometry.complex._cell_search import cells_on_line

        found = cells_on_line(net, domain, certified, deadline)
        return result(found.cells.n, found.complete, found.growth, found.n_exact)
    walked = walk_in_threads(net, domain, certified, n_jobs, deadline, progress)
    n, growth, complete = walked.n_cells, walked.growth.copy(), walked.finished
    if len(walked.deferred):
        from pindown.geometry.complex._cell_search import open_growth
        from pindown.geometry.exact.complex import exact_cells_within

        for states in walked.deferred:
            if deadline.left <= 0:
                complete = False
                break
            exact = exact_cells_within(net, domain, states, budget=deadline.left)
            n, complete = n + exact.n_regions, complete and exact.complete
            growth += open_growth(net, states, exact.growth)
    return result(n, complete, growth, len(walked.deferred))


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
    deadline: Deadline,
    progress: Report | None,
) -> Walked:
    """Count cells with ``n_jobs`` threads: subtrees of the first layer are walked side by side."""
    from joblib import Parallel, delayed

    from pindown.geometry.complex._traversal import Walk

    walk = Walk(net, box, counting=True, certified=certified)
    threads = n_threads(n_jobs)
    if threads == 1 or walk.finished:
        walk.run(deadline=deadline, progress=progress)
        return Walked(walk.n_cells, walk.growth, walk.deferred, walk.finished)
    tasks = _subtrees(walk, SUBTREES_PER_THREAD * threads, deadline)
    total, lock = [walk.n_cells], Lock()

    def work(_: int) -> Walk:
        own = Walk(net, box, counting=True, certified=certified, flat=walk.flat)
        own.unload()
        while tasks and not deadline.passed:
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
                    progress("cells", total[0], None)
        return own

    parts = Parallel(n_jobs=threads, require="sharedmem")(delayed(work)(i) for i in range(threads))
    return Walked(
        n_cells=walk.n_cells + sum(part.n_cells for part in parts),
        growth=walk.growth + sum(part.growth for part in parts),
        deferred=np.concatenate([walk.deferred, *(part.deferred for part in parts)]),
        finished=not tasks and all(part.finished for part in [walk, *parts]),
    )


def n_threads(n_jobs: int | None) -> int:
    """Return how many threads ``n_jobs`` stands for."""
    if n_jobs is None:
        return 1
    if n_jobs == 0 or n_jobs % 1 != 0:
        refuse("n_jobs", "a number of threads, -1 for all cores, or None for one", n_jobs)
    from joblib import cpu_count

    return int(n_jobs) if n_jobs > 0 else max(1, cpu_count() + 1 + int(n_jobs))


def _subtrees(walk: Walk, n: int, deadline: Deadline) -> list[Any]:
    """Take about n cells of the first layer off a fresh walk, the most cut ones split first."""
    walk.run(max_steps=1, deadline=deadline)
    heap = [(-cell.n_candidates, i, cell) for i, cell in enumerate(walk.unload())]
    heapq.heapify(heap)
    serial = len(heap)
    while heap and len(heap) < n and heap[0][0] < 0:
        if deadline.passed:
            break
        walk.load(heapq.heappop(heap)[2])
        walk.run(max_steps=1, deadline=deadline)
        for cell in walk.unload():
            heapq.heappush(heap, (-cell.n_candidates, serial, cell))
            serial += 1
    return [cell for _, _, cell in heap]
