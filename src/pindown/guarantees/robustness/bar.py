"""A progress bar for work that lasts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
_PATIENCE = 2.0  # seconds before a bar appears


def watched(items: Iterable[T], total: int, what: str, verbose: int) -> Iterator[T]:
    """Yield the items and show a bar after two seconds, on a terminal, unless told to be quiet.

    >>> list(watched("abc", 3, "spelling", verbose=0))
    ['a', 'b', 'c']
    """
    if not verbose:
        yield from items
        return
    from rich.console import Console
    from rich.progress import Progress

    screen = Console(stderr=True)
    bar = Progress(console=screen, transient=True, disable=not screen.is_terminal)
    task = bar.add_task(what, total=total)
    due = time.monotonic() + _PATIENCE
    try:
        for count, item in enumerate(items, 1):
            if time.monotonic() > due and not bar.live.is_started:
                bar.start()
            bar.update(task, completed=count)
            yield item
    finally:
        if bar.live.is_started:
            bar.stop()
