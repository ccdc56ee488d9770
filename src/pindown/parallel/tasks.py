"""Tasks in, results out as they finish; workers that die are replaced; a seed for every task."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import sys
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, nullcontext
from operator import itemgetter
from typing import Any, Literal, TypeVar

import numpy as np
from joblib._parallel_backends import LokyBackend
from numpy.typing import NDArray

from pindown.parallel.limits import at_once, in_threads, one_in_this_thread, one_thread
from pindown.parallel.tuning import MAX_DEATHS, MAX_FUNCTIONS_KEPT, PARENT_LOOK, WORKERS_WITHIN
from pindown.parallel.worker_pools import Pool, chosen_pool, in_this_process
from pindown.progress import Report
from pindown.validation import integer

Item = TypeVar("Item")
Result = TypeVar("Result")
_FUNCTIONS: OrderedDict[str, Callable[[Any], Any]] = OrderedDict()
_ORPHANED = 1  # exit code


def each(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    n_jobs: int | None = None,
    threads: bool = False,
    batch: int | Literal["auto"] = "auto",
    bytes_per_task: float | None = None,
    progress: Report | None = None,
    what: str = "tasks",
) -> Generator[tuple[int, Result], None, None]:
    """Apply a function to every item and yield ``(index, result)`` as results come in.

    Each task has one thread for linear algebra, also in this process, and loops inside it run where it
    runs. If a worker process dies, the tasks it held run again. Closing the iterator (``break``, Ctrl-C)
    stops the workers; results that came are the caller's.

    Args:
        function: What to apply. For processes it is sent once to each worker with all it carries; the
            items should be small.
        items: Its arguments.
        n_jobs: Workers, -1 for all cores; 1 works in this process. None: as an enclosing
            :func:`workers` says, else ``joblib.parallel_config``, else 1.
        threads: Whether threads do as well, because the function releases the interpreter lock.
        batch: Tasks to send to a process in one go; 1 if each is worth saving when it is done.
        bytes_per_task: Memory that one task takes; fewer run at once if it is short.
        progress: Called with what is done, tasks done and tasks in all.
        what: What is done, in the words of the progress bar.

    Raises:
        ChildProcessError: If workers die again and again at the same tasks.
        ValueError: If ``n_jobs`` is 0 or no integer.

    >>> sorted(each(abs, [-1, 2, -3]))
    [(0, 1), (1, 2), (2, 3)]
    """
    tasks = list(items)
    pool = chosen_pool(n_jobs)
    if pool.kind == "here" or (len(tasks) <= 1 and not pool.is_cluster):
        results = _in_this_process(function, tasks)
    elif pool.kind == "threads" or (pool.kind == "local" and threads):
        results = _in_threads(function, tasks, at_once(pool.n_jobs, bytes_per_task))
    else:
        results = _in_processes(function, tasks, pool, batch, bytes_per_task)
    for done, pair in enumerate(results, 1):
        if progress is not None:
            progress(what, done, len(tasks))
        yield pair


def shared_out(
    function: Callable[[Item], Result], items: Sequence[Item], n_threads: int
) -> list[Result]:
    """Return ``function(item)`` for every item: in threads, or where :func:`workers` says otherwise.

    For functions that release the interpreter lock, called again and again with few items.

    >>> shared_out(abs, [-1, 2, -3], 2)
    [1, 2, 3]
    """
    pool = chosen_pool(None)
    if pool.kind in ("here", "local", "threads"):
        return in_threads(function, items, n_threads)
    return [result for _, result in sorted(each(function, items, batch=1), key=itemgetter(0))]


def _in_this_process(
    function: Callable[[Item], Result], tasks: list[Item]
) -> Iterator[tuple[int, Result]]:
    for index, task in enumerate(tasks):
        with one_thread():
            result = function(task)
        yield index, result


def _in_threads(
    function: Callable[[Item], Result], tasks: list[Item], n_jobs: int
) -> Iterator[tuple[int, Result]]:
    from joblib import delayed, parallel_config

    def work(index: int, task: Item) -> tuple[int, Result]:
        with in_this_process(), one_in_this_thread():
            return index, function(task)

    with one_thread():  # of the whole process: of linear algebra, threads cannot each have their own
        with parallel_config(backend="threading", n_jobs=n_jobs):
            calls = (delayed(work)(index, task) for index, task in enumerate(tasks))
            results = _started(calls, batch_size=1)
        yield from _stopped_early(results)


def _in_processes(
    function: Callable[[Item], Result],
    tasks: list[Item],
    pool: Pool,
    batch: int | Literal["auto"],
    bytes_per_task: float | None,
) -> Iterator[tuple[int, Result]]:
    """Run rounds until all tasks are done; a round ends early when a worker dies."""
    from joblib import delayed, wrap_non_picklable_objects

    # In a tuple, because joblib makes something else of classes.
    content = pickle.dumps(wrap_non_picklable_objects((function,), keep_wrapper=False))
    key, packed = hashlib.sha256(content).hexdigest(), np.frombuffer(content, dtype=np.uint8)
    left, fruitless = list(range(len(tasks))), 0
    while left:
        sent: list[int] = []
        finished: set[int] = set()

        def calls(left: list[int] = left, sent: list[int] = sent) -> Iterator[Any]:
            for index in left:
                sent.append(index)
                yield delayed(_unpacked_task)(key, packed, index, tasks[index])

        try:
            with _configured(pool, bytes_per_task) as limits:
                if fruitless:  # one at a time, so that a deadly task takes no other with it
                    limits |= {"batch_size": 1, "pre_dispatch": 1}
                results = _started(calls(), **({"batch_size": batch} | limits))
            for index, result in _stopped_early(results):
                finished.add(index)
                yield index, result
            return
        except _lost_worker() as error:
            deaths = 1 if isinstance(error, BrokenExecutor) else MAX_DEATHS - 1  # Dask tried, too
            fruitless = 0 if finished else fruitless + deaths
            if fruitless >= MAX_DEATHS:
                raise ChildProcessError(
                    f"worker processes died {MAX_DEATHS} times or more without a result, {len(left)} "
                    "tasks are left; they may need more memory than there is: use fewer workers, or "
                    "n_jobs=1 to see what happens."
                ) from error
            # What a dead worker may have held comes last: a deadly task delays no other.
            held = set(sent)
            left = sorted(set(left) - finished, key=lambda index: (index in held, index))


@contextmanager
def _configured(pool: Pool, bytes_per_task: float | None) -> Iterator[dict[str, Any]]:
    """Let joblib work with a pool; give the limits of a loop there."""
    from joblib import parallel_config

    limits: dict[str, Any] = {}
    if pool.kind == "dask":
        from pindown.parallel._dask_workers import DaskBackend, free_slots

        slots = -1 if pool.whole else pool.n_jobs
        if bytes_per_task is not None:
            free = free_slots(pool.client, bytes_per_task)
            slots = free if pool.whole else min(free, pool.n_jobs)
        if slots != -1:  # Dask would begin all that it is given
            limits = {"batch_size": 1, "pre_dispatch": slots}
        backend = DaskBackend(client=pool.client, wait_for_workers_timeout=WORKERS_WITHIN)
        config = parallel_config(backend=backend, n_jobs=slots)
    elif pool.kind == "joblib":
        config = nullcontext()
    elif pool.kind == "ray":
        config = parallel_config(backend="ray", n_jobs=pool.n_jobs)
    else:
        slots = at_once(pool.n_jobs, bytes_per_task)
        if slots < pool.n_jobs:
            limits = {"batch_size": 1, "pre_dispatch": slots}
        config = parallel_config(backend=OwnLokyBackend(inner_max_num_threads=1), n_jobs=slots)
    with config:
        yield limits


def _started(calls: Iterable[Any], **settings: Any) -> Iterator[Any]:
    from joblib import Parallel

    results: Iterator[Any] = Parallel(return_as="generator_unordered", **settings)(calls)
    return results


def _stopped_early(results: Any) -> Iterator[Any]:
    """Yield results; when the caller has enough, stop the workers and do not complain about it."""
    try:
        for result in results:  # noqa: UP028  ("yield from" would close them, and complain, first)
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            results.close()


def _lost_worker() -> tuple[type[BaseException], ...]:
    dask = sys.modules.get("pindown.parallel._dask_workers")
    return (BrokenExecutor,) if dask is None else (BrokenExecutor, dask.LostWorkerError)


def _unpacked_task(
    key: str, packed: NDArray[np.uint8], index: int, task: Any
) -> tuple[int, Any]:  # at module level: processes find it by name
    function = _FUNCTIONS.get(key)
    if function is None:
        (function,) = pickle.loads(packed.tobytes())  # noqa: S301  (packed by the process that asks)
        _FUNCTIONS[key] = function
        while len(_FUNCTIONS) > MAX_FUNCTIONS_KEPT:
            _FUNCTIONS.popitem(last=False)
    with in_this_process(), one_thread():
        return index, function(task)


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
    root = None if seed is None else integer("seed", seed, least=0)
    children = np.random.SeedSequence(root).spawn(integer("n", n, least=0))
    return [int(child.generate_state(1, np.uint64)[0] >> np.uint64(1)) for child in children]


class OwnLokyBackend(LokyBackend):  # type: ignore[misc]
    """joblib's backend, whose workers end with this process: joblib's own stay for minutes, or for ever.

    A process that is killed cannot stop its workers, and they hold each other's pipes open.
    """

    def configure(self, *args: Any, **settings: Any) -> int:
        """Start workers that watch over this process from their first moment, and return how many."""
        return int(super().configure(*args, initializer=end_with_parent, **settings))


def end_with_parent() -> None:
    """See to it that a worker ends when its parent has, whatever it is doing then."""
    threading.Thread(target=_watch, name="pindown: end with parent", daemon=True).start()


def _watch() -> None:
    parent: Any = multiprocessing.parent_process()
    if getattr(parent, "_sentinel", None) is not None:
        parent.join()
    else:  # loky sets none except on Windows; elsewhere an orphan gets another parent
        while os.getppid() == parent.pid:
            time.sleep(PARENT_LOOK)
    os._exit(_ORPHANED)
