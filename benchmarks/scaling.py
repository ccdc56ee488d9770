"""Sub-boxes on one and two workers: strong and weak scaling, what a task costs, what cuts cost.

Wall time, so run it on a quiet machine; the forecast uses what was measured just before.

    python benchmarks/run.py scaling     writes RESULTS.md and the table of docs/scaling.md
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np

import pindown as pn
from pindown.geometry import Box, complex_by_parts, polyhedral_complex, split_box, stream_complex
from pindown.geometry.subboxes._batches import cells_with_patterns, distinct
from pindown.geometry.subboxes.stitching import parts_of
from pindown.parallel import each, workers

BOX = Box.cube(3, -1, 1)
N_TASKS = 200
NODES, CORES = 100, 32


def network(*widths: int) -> pn.ReluNetwork:
    rng = np.random.default_rng(0)
    return pn.ReluNetwork.from_layers(
        [
            (rng.normal(0, np.sqrt(2 / i), (o, i)), rng.uniform(-1, 1, o) / np.sqrt(i))
            for i, o in pairwise(widths)
        ]
    )


def wall(action: Callable[[], Any]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def nothing(i: int) -> int:
    return i


def on_cluster(n_jobs: int) -> Any:
    return workers(n_jobs=n_jobs, cluster="local")


def overhead() -> Iterator[tuple[str, float]]:
    """Seconds per task that does nothing, tasks sent one at a time."""
    places = {"this process": nullcontext, "two processes": lambda: workers(n_jobs=2)}
    try:
        import distributed  # noqa: F401

        places["Dask, two processes"] = lambda: on_cluster(2)
    except ImportError:
        pass
    for name, place in places.items():
        with place():
            list(each(nothing, range(8)))  # workers start
            yield name, wall(lambda: list(each(nothing, range(N_TASKS), batch=1))) / N_TASKS


def cut_costs(net: pn.ReluNetwork) -> Iterator[tuple[int, int, int, float, float]]:
    """Sub-boxes, cells, those that cuts go through, CPU seconds of sub-boxes and of stitching."""
    for n in (1, 8, 64):
        grid, cut, total = split_box(BOX, n), [], 0
        began = time.process_time()
        for i in range(n):
            for part in parts_of(net, grid, i, certified=False, room=16_384):
                total += part.cells.n
                cut.append(part.patterns)
        middle = time.process_time()
        patterns = distinct(np.concatenate(cut))
        total += len(patterns)
        for _ in cells_with_patterns(net, BOX, patterns, certified=False, room=16_384):
            pass
        yield n, total, len(patterns), middle - began, time.process_time() - middle


def strong(net: pn.ReluNetwork) -> Iterator[tuple[str, float, float]]:
    """The same work by one worker and by two."""
    times = [wall(lambda n=n: complex_by_parts(net, BOX, 64, n_jobs=n)) for n in (1, 2)]
    yield "complex over 64 sub-boxes, threads", times[0], times[1]
    times, tiny = [], network(3, 4, 1)
    for n in (1, 2):
        with tempfile.TemporaryDirectory() as folder, workers(n_jobs=n) if n > 1 else nullcontext():
            stream_complex(tiny, BOX, folder + "/warm", splits=8)  # workers start and load their code
            times.append(wall(lambda: stream_complex(net, BOX, folder + "/cells", splits=64)))
    yield "the same, streamed to disk, processes", times[0], times[1]


def weak(net: pn.ReluNetwork) -> tuple[float, float]:
    """Half of the box by one worker, all of it by two."""
    half = Box(BOX.lower, [0, 1, 1])
    return (
        wall(lambda: complex_by_parts(net, half, 32, n_jobs=1)),
        wall(lambda: complex_by_parts(net, BOX, 64, n_jobs=2)),
    )


def forecast(cells: float, per_cell: float, cut_share: float, task: float) -> str:
    """Amdahl: work on all cores, in tasks that one process hands out.

    As many tasks as cost least, sqrt(work / overhead), but no more than four to a core.
    """
    work = cells * per_cell * (1 + cut_share)
    n_tasks = max(1.0, min(4.0 * NODES * CORES, (work / task) ** 0.5))
    alone = n_tasks * task
    seconds = work / min(n_tasks, NODES * CORES) + alone
    return (
        f"{work / 3600:,.2f} core hours in {n_tasks:,.0f} tasks, {seconds:,.0f} s on "
        f"{NODES} nodes of {CORES} cores, of which {alone:,.0f} s for handing out tasks; speed-up "
        f"{work / seconds:,.0f}"
    )


def run() -> Iterator[tuple[str, str]]:
    """Yield what was measured, and the result."""
    net = network(3, 96, 96, 1)
    complex_by_parts(net, BOX, 2)  # compiled code is loaded before the clock runs
    tasks = dict(overhead())
    for name, seconds in tasks.items():
        yield f"overhead of one task, {name}", f"{1e3 * seconds:.2f} ms"
    unsplit = wall(lambda: polyhedral_complex(net, BOX))
    costs = list(cut_costs(net))
    for n, total, cut, finding, stitching in costs:
        yield (
            f"{n} sub-boxes, {total:,} cells",
            f"{cut / total:.1%} on cuts; {finding:.2f} s for sub-boxes, {stitching:.2f} s for stitching "
            f"(unsplit {unsplit:.2f} s)",
        )
    for name, one, two in strong(net):
        yield f"strong scaling, {name}", f"{one:.2f} s and {two:.2f} s, speed-up {one / two:.2f}"
    one, two = weak(net)
    yield "weak scaling, twice the box on two workers", f"{one:.2f} s and {two:.2f} s: {one / two:.0%}"
    _, total, cut, finding, stitching = costs[2]
    per_cell, share = finding / total, stitching / finding
    slowest = max(tasks.values())
    for cells in (1e7, 1e9, 1e11):
        # A stream's first process reads one record and writes one line per task, and no cells.
        yield (
            f"forecast, streamed, 3 inputs, {cells:.0e} cells",
            forecast(cells, per_cell, share, slowest),
        )


if __name__ == "__main__":
    for what, result in run():
        print(f"{what}: {result}", flush=True)
