"""How many threads a task may use: one, so that workers do not fight and sums come out the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pindown.network import ReluNetwork

# On a busy machine, factoring small matrices takes far longer with several threads than with one.
_SMALL = 1_024
# Modules that bring libraries with threads of their own: looking for those takes milliseconds.
_WITH_THREADS = ("scipy.linalg", "sklearn.utils._openmp_helpers", "numba", "torch")


def few_threads(net: ReluNetwork) -> AbstractContextManager[Any]:
    """Return a context in which linear algebra with a network's layers does not fight over cores."""
    if max(net.hidden_widths, default=0) > _SMALL:
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
