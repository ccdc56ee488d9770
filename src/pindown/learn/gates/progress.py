"""Counting steps where a person can see them: a bar on the terminal once a run has lasted."""

from __future__ import annotations

import time
from collections.abc import Iterator

_PATIENCE = 2.0  # seconds before a bar appears
_PAUSE = 0.2  # seconds between two updates of the bar


def watched(total: int, verbose: int, what: str) -> Iterator[int]:
    """Yield 0, ..., total - 1 and show a bar after two seconds, on a terminal, unless told to be quiet.

    Example:
        >>> list(watched(3, 0, "counting"))
        [0, 1, 2]
    """
    if not verbose:
        yield from range(total)
        return
    from rich.console import Console
    from rich.progress import Progress

    screen = Console(stderr=True)
    bar = Progress(console=screen, transient=True, disable=not screen.is_terminal)
    task = bar.add_task(what, total=total)
    due = time.monotonic() + _PATIENCE
    try:
        for t in range(total):
            if time.monotonic() > due:
                bar.start()
                bar.update(task, completed=t)
                due = time.monotonic() + _PAUSE
            yield t
    finally:
        if bar.live.is_started:
            bar.stop()
