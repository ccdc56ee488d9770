"""How much of the machine a task may use: one thread, and its part of the memory.

With one thread each, workers do not fight and sums come out the same.
"""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pindown.parallel.tuning import MAX_WIDTH_FOR_ONE_THREAD, MEMORY_SHARE
from pindown.validation import positive

if TYPE_CHECKING:
    from pindown.model.graph import Model
    from pindown.network import ReluNetwork


S = TypeVar("S")
T = TypeVar("T")

_GIGABYTE = 1e9
# Modules that bring libraries with threads of their own: looking for those takes milliseconds.
_WITH_THREADS = ("scipy.linalg", "sklearn.utils._openmp_helpers", "numba", "torch")


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
    bytes_per_task = positive("bytes_per_task", bytes_per_task)
    room = available_bytes() if available is None else available
    if room < bytes_per_task:
        warnings.warn(
            f"a task takes about {bytes_per_task / _GIGABYTE:.2g} GB and {room / _GIGABYTE:.2g} GB are "
            "left; running one at a time.",
            stacklevel=3,
        )
    return int(max(1, min(n, MEMORY_SHARE * room // bytes_per_task)))


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


def few_threads(net: ReluNetwork | Model) -> AbstractContextManager[Any]:
    """Return a context in which linear algebra with a network's layers does not fight over cores.

    >>> from pindown.network import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[1.0]], [0.0]), ([[2.0]], [0.0])])
    >>> with few_threads(net):
    ...     net([[3.0]])
    array([[6.]])
    """
    if hasattr(net, "hidden_widths"):
        widths = list(net.hidden_widths)
    else:
        widths = [math.prod(node.shape) for node in net.nodes]
    if max(widths, default=0) > MAX_WIDTH_FOR_ONE_THREAD:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")


@contextmanager
def one_thread() -> Iterator[None]:
    """Let linear algebra, OpenMP and torch use a single thread inside, and as many as before after.

    A sum that is shared among threads is rounded otherwise than one that is not. With one thread in
    every task, a result does not depend on how many tasks run at once, nor on the machine's cores.

    >>> import torch
    >>> before = torch.get_num_threads()
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    >>> torch.get_num_threads() == before
    True
    """
    torch = sys.modules.get("torch")  # what is not loaded need not be held back
    threads = None if torch is None else torch.get_num_threads()
    with _controller(_loaded()).limit(limits=1):
        if torch is not None:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(threads)


def one_in_this_thread() -> AbstractContextManager[Any]:
    """Return a context in which OpenMP, which counts for every thread apart, starts no other threads."""
    return _controller(_loaded()).select(user_api="openmp").limit(limits=1)


def _loaded() -> tuple[bool, ...]:
    return tuple(name in sys.modules for name in _WITH_THREADS)


@lru_cache(maxsize=1)
def _controller(loaded: tuple[bool, ...]) -> Any:
    """Return what limits the libraries that are there, as long as no further ones are loaded."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def in_threads(work: Callable[[S], T], items: Sequence[S], n_threads: int) -> list[T]:
    """Return ``work(item)`` for every item, several at a time: NumPy lets threads run side by side.

    >>> in_threads(lambda x: x * x, [1, 2, 3], 2)
    [1, 4, 9]
    """
    if len(items) == 1 or n_threads == 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, items))
