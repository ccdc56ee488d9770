"""One door to parallel work: the same call for one process, many, or a cluster that joblib knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pindown.network import ReluNetwork

# On a busy machine, factoring small matrices takes far longer with several threads than with one.
_SMALL = 1_024
Item = TypeVar("Item")
Result = TypeVar("Result")


def each(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    n_jobs: int | None = 1,
    threads: bool = False,
) -> Iterator[tuple[int, Result]]:
    """Apply a function to every item and yield ``(index, result)`` as results come in.

    Args:
        function: What to apply; for several processes it must be importable by name.
        items: Its arguments.
        n_jobs: Processes; 1 works in this one, None leaves it to ``joblib.parallel_config``.
        threads: Whether threads do as well, because the function releases the interpreter lock.

    >>> sorted(each(abs, [-1, 2, -3]))
    [(0, 1), (1, 2), (2, 3)]
    """
    numbered = list(enumerate(items))
    if n_jobs == 1:
        for index, item in numbered:
            yield index, function(item)
        return
    from joblib import Parallel, delayed

    tasks = (delayed(_numbered)(function, index, item) for index, item in numbered)
    prefer = "threads" if threads else None
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered", prefer=prefer)(tasks)


def _numbered(
    function: Callable[[Item], Result], index: int, item: Item
) -> tuple[int, Result]:  # at module level: processes find it by name
    return index, function(item)


def few_threads(net: ReluNetwork) -> AbstractContextManager[Any]:
    """Return a context in which linear algebra with a network's layers does not fight over cores."""
    if max(net.hidden_widths, default=0) > _SMALL:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")
