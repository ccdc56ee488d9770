"""Dask behind joblib, so that a worker that dies is an error and not an endless wait.

joblib's own backend leaves a loop waiting when Dask gives a task up: it passes results on, and not
failures of the scheduler. The one here passes on both, and lets go of what was cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack
from importlib import import_module
from typing import Any

try:
    distributed: Any = import_module("distributed")
    from joblib._dask import DaskDistributedBackend
except ImportError:
    raise ImportError('cluster needs Dask: pip install "pindown[cluster]".') from None

from pindown.parallel.limits import at_once
from pindown.parallel.tuning import SCHEDULER_WITHIN, WORKER_LOOK, WORKERS_WITHIN

# One thread each. Dask's own setting also tells malloc to give memory back at once, which doubles the
# time of work with large arrays.
_ENVIRONMENT = {"OMP_NUM_THREADS": 1, "MKL_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1}


class LostWorkerError(Exception):
    """A worker died, or what it kept was lost; the task can be run again."""


class DaskBackend(DaskDistributedBackend):  # type: ignore[misc]
    """joblib's backend, with failures passed on."""

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return how many tasks to keep in flight, at least two: with one, joblib would work here."""
        try:
            cores = int(super().effective_n_jobs(n_jobs))
        except Exception as error:  # of many kinds, by what was lost
            raise ChildProcessError(
                f"no Dask worker is left, or came within {WORKERS_WITHIN} s; look at the logs of the "
                "workers and of the scheduler."
            ) from error
        return max(2, cores if n_jobs in (None, -1) else min(cores, n_jobs))

    def start_call(self) -> None:
        """Begin to collect results, and to watch whether there is anyone to give any."""
        super().start_call()
        self.client.loop.add_callback(self._watch)

    async def _watch(self) -> None:
        """Give up what is pending once there has been no scheduler, or no worker, for long."""
        alone = 0.0
        while self._continue and alone < WORKERS_WITHIN:
            await asyncio.sleep(WORKER_LOOK)
            alone = 0.0 if await self._has_workers() else alone + WORKER_LOOK
        if self._continue:
            for future in list(self._results):
                self._pass_on(future, LostWorkerError("Dask has no workers"))

    async def _has_workers(self) -> bool:
        if self.client.status != "running":
            return False
        try:
            return bool(await self.client.scheduler.ncores())
        except OSError:
            return False

    async def _to_func_args(self, func: Any) -> tuple[Any, Any]:
        try:
            return _run_all, (await super()._to_func_args(func))[1]
        except Exception:  # nobody to leave large arguments with: they go with the tasks
            return _run_all, list(func.items)

    async def _collect(self) -> None:
        while self._continue:
            async for future, result in self.waiting_futures:
                failed = future.status != "finished"
                self._pass_on(future, _failure(future, result) if failed else result)
            await asyncio.sleep(0.01)

    def _pass_on(self, future: Any, outcome: Any) -> None:
        waiting, callback = self._results.pop(future, None), self._callbacks.pop(future, None)
        if waiting is not None and callback is not None:
            waiting.set_result(outcome)
            callback(outcome)

    def retrieve_result_callback(self, out: Any) -> Any:
        """Return a task's results, or raise why there are none."""
        if isinstance(out, BaseException):
            raise out
        return super().retrieve_result_callback(out)

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancel what has not begun; what runs on a worker ends and is forgotten."""
        super().abort_everything(ensure_ready)
        pending = list(self._results)
        self._results.clear()
        self._callbacks.clear()
        if pending and self.client.status == "running":
            self.client.cancel(pending, force=True)


def _run_all(tasks: Any) -> list[Any]:
    """Run tasks in a worker; joblib would open a client there, for loops inside, which run here."""
    return [function(*arguments, **named) for function, arguments, named in tasks]


def _failure(future: Any, result: Any) -> BaseException:
    if future.status != "error":
        return LostWorkerError(f"Dask lost a task ({future.status})")
    error = result[1]
    lost = isinstance(error, distributed.KilledWorker | asyncio.CancelledError)
    return LostWorkerError(str(error).splitlines()[0]) if lost else error


def opened_client(cluster: Any, n_jobs: int | None, stack: ExitStack) -> tuple[Any, int]:
    """Return a client and how many tasks its workers take at once; the stack closes what was opened.

    Args:
        cluster: ``"local"``, an address, a Dask client, or a Dask cluster.
        n_jobs: Worker processes to start, if local; None for one on each core.
        stack: What closes it again.
    """
    if isinstance(cluster, distributed.Client):
        client = cluster
    elif cluster == "local":
        with import_module("dask").config.set({"distributed.nanny.pre-spawn-environ": _ENVIRONMENT}):
            local = distributed.LocalCluster(
                n_workers=n_jobs or _cores(),
                threads_per_worker=1,
                processes=True,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
            )
        stack.enter_context(local)
        client = stack.enter_context(distributed.Client(local, set_as_default=False))
    else:
        try:
            client = stack.enter_context(
                distributed.Client(cluster, set_as_default=False, timeout=SCHEDULER_WITHIN)
            )
        except (OSError, TimeoutError):
            raise OSError(
                f"no Dask scheduler answers at {cluster} within {SCHEDULER_WITHIN} s; "
                "start one with `dask scheduler`, and workers with `dask worker`."
            ) from None
        except (TypeError, ValueError, RuntimeError, ImportError) as error:
            if not isinstance(cluster, str):
                raise ValueError(f"cluster must be an address or of Dask; got {cluster!r}.") from None
            reason = " ".join(str(error).split()).rstrip(".")
            raise ValueError(f"Dask cannot use the address {cluster!r}: {reason}.") from None
    try:
        client.wait_for_workers(1, timeout=WORKERS_WITHIN)
    except TimeoutError:
        raise OSError(
            f"the Dask scheduler at {client.scheduler.address} has no worker after {WORKERS_WITHIN} s."
        ) from None
    return client, sum(client.nthreads().values())


def _cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())


def free_slots(client: Any, bytes_per_task: float) -> int:
    """Return how many tasks of a size the workers' memory takes at once; at least one."""
    info = client.scheduler_info(n_workers=-1)["workers"].values()
    slots = 0
    for worker in info:
        limit = worker["memory_limit"] or None
        if limit is None or limit >= bytes_per_task:
            slots += at_once(worker["nthreads"], bytes_per_task, available=limit)
    return max(1, slots)
