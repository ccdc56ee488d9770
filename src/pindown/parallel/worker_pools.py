"""Where tasks run: in this process, in threads, in processes, or on a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, TypeAlias

from pindown.validation import refuse

PoolKind: TypeAlias = Literal["here", "local", "threads", "processes", "dask", "ray", "joblib"]

_BACKENDS: tuple[PoolKind, ...] = ("threads", "processes")
_ADDRESS = re.compile(r"(?:tcp|tls|wss?|ucx)://(?:[^\s/:\[\]]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})/?")
_LAST_PORT = 65_535


@dataclass(frozen=True)
class Pool:
    """Workers and what they are.

    Attributes:
        n_jobs: How many tasks run at once.
        kind: ``"local"`` leaves it to the loop whether threads suffice; ``"joblib"`` is whatever backend
            ``joblib.parallel_config`` names.
        client: The Dask client whose workers they are; None for other kinds.
        whole: Whether all of a cluster is wanted, also what joins it later.
    """

    n_jobs: int
    kind: PoolKind
    client: Any = None
    whole: bool = False

    @property
    def is_cluster(self) -> bool:
        """Whether workers may be on other machines."""
        return self.kind in ("dask", "ray", "joblib")


THIS_PROCESS = Pool(1, "here")
_CHOSEN: ContextVar[Pool | None] = ContextVar("pindown workers", default=None)


@contextmanager
def workers(
    n_jobs: int | None = None, *, cluster: Any = None, backend: str | None = None
) -> Iterator[Pool]:
    """Say where the tasks of all loops inside run, unless a call says otherwise by its ``n_jobs``.

    A script that asks for ``"local"`` must do so below ``if __name__ == "__main__":``, because its
    workers import it.

    Args:
        n_jobs: How many at once, -1 for all cores; None for all cores, or all of the cluster.
        cluster: ``"local"`` for Dask workers on this machine, each a process with one thread; the
            address of a Dask scheduler, such as ``"tcp://node7:8786"``; a Dask client or cluster (of
            Slurm, say); ``"ray"``; None for none.
        backend: ``"threads"`` or ``"processes"``; None leaves it to each loop. Not with a cluster.

    Raises:
        ValueError: If the arguments mean nothing.
        ImportError: If Dask or Ray is asked for and not installed.
        OSError: If no scheduler answers, or it has no workers.

    >>> from pindown.parallel import each
    >>> with workers(2, backend="threads"):
    ...     sorted(each(abs, [-1, 2]))
    [(0, 1), (1, 2)]
    """
    with ExitStack() as stack:
        pool = _opened(n_jobs, cluster, backend, stack)
        token = _CHOSEN.set(pool)
        try:
            yield pool
        finally:
            _CHOSEN.reset(token)


@contextmanager
def in_this_process() -> Iterator[None]:
    """Let loops inside run in this process: for tasks, whose worker is one of many."""
    from joblib import parallel_config

    token = _CHOSEN.set(THIS_PROCESS)
    try:
        with parallel_config(backend="sequential"):
            yield
    finally:
        _CHOSEN.reset(token)


def chosen_pool(n_jobs: int | None) -> Pool:
    """Return where tasks run for the ``n_jobs`` of a call.

    >>> chosen_pool(None).kind, chosen_pool(3).n_jobs
    ('here', 3)
    """
    pool = _CHOSEN.get()
    if n_jobs is None and pool is not None:
        return pool
    count = _count(n_jobs)
    if count == 1:
        return THIS_PROCESS
    if pool is None or pool is THIS_PROCESS:
        return Pool(count, _joblib_kind())
    return replace(pool, n_jobs=count, whole=False)


def _joblib_kind() -> PoolKind:
    """Return what ``joblib.parallel_config`` asks for; its default leaves the choice to the loop."""
    from joblib.parallel import get_active_backend

    backend = type(get_active_backend()[0]).__name__
    if backend == "ThreadingBackend":
        return "threads"
    return "local" if backend == "LokyBackend" else "joblib"


def n_workers(n_jobs: int | None) -> int:
    """Return how many tasks a loop with this ``n_jobs`` would run at once.

    >>> n_workers(1), n_workers(4)
    (1, 4)
    """
    return chosen_pool(n_jobs).n_jobs


def _count(n_jobs: int | None) -> int:
    from joblib import effective_n_jobs

    if n_jobs is not None and (not hasattr(n_jobs, "__index__") or n_jobs == 0):
        refuse("n_jobs", "a number of workers, -1 for all cores, or None", n_jobs)
    return int(effective_n_jobs(n_jobs))


def _opened(n_jobs: int | None, cluster: Any, backend: str | None, stack: ExitStack) -> Pool:
    if cluster is None:
        if backend is not None and backend not in _BACKENDS:
            refuse("backend", "'threads', 'processes' or None", backend)
        count = _count(-1 if n_jobs is None else n_jobs)
        kind: PoolKind = "local" if backend is None else backend
        return THIS_PROCESS if count == 1 else Pool(count, kind)
    if backend is not None:
        raise ValueError(f"give backend={backend!r} or a cluster, not both.")
    if cluster == "ray":
        return _ray(n_jobs)
    if isinstance(cluster, str) and cluster != "local" and not _is_address(cluster):
        words = "'local', 'ray', the address of a Dask scheduler such as 'tcp://node7:8786', "
        refuse("cluster", f"{words}or a Dask client or cluster", cluster)
    from pindown.parallel._dask_workers import opened_client

    wanted = None if n_jobs in (None, -1) else _count(n_jobs)
    client, cores = opened_client(cluster, wanted, stack)
    whole = wanted is None or (cluster == "local" and wanted >= cores)
    return Pool(min(cores, wanted or cores), "dask", client, whole)


def _is_address(text: str) -> bool:
    """Return whether a text has the form of a scheduler's address, with a port.

    >>> [_is_address(a) for a in ("tcp://node7:8786", "tcp://[::1]:8786", "tcp://", "tcp://node7")]
    [True, True, False, False]
    """
    found = _ADDRESS.fullmatch(text)
    return found is not None and 0 < int(found[1]) <= _LAST_PORT


def _ray(n_jobs: int | None) -> Pool:
    try:
        ray: Any = import_module("ray.util.joblib")
    except ImportError:
        raise ImportError("cluster='ray' needs Ray: pip install ray.") from None
    ray.register_ray()
    return Pool(_count(-1 if n_jobs is None else n_jobs), "ray")
