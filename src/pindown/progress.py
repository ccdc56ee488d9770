"""One bar for work that lasts, and one way to be told how far it is.

A function that can report takes ``progress``, a :data:`Report`, and calls it with what it is doing, how
much is done, and how much there is in all (None if nobody knows).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pindown.deadline import Deadline

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")
Report: TypeAlias = Callable[[str, float, float | None], None]

PATIENCE = 2.0  # seconds before a bar appears
_PAUSE = 0.1  # seconds between two updates of the bar


def silent(what: str, done: float, total: float | None) -> None:
    """Report to nobody."""


@contextmanager
def progress_bar(
    *, verbose: int = 1, patience: float = PATIENCE, console: Console | None = None
) -> Iterator[Report]:
    """Show a bar on stderr while the block runs, once it has lasted; only on a terminal.

    Args:
        verbose: Nothing is shown if it is zero.
        patience: Seconds before the bar appears.
        console: Where to draw it instead.

    Yields:
        What is to be called with ``(what, done, total)``.

    >>> with progress_bar(verbose=0) as report:
    ...     report("counting", 1, 3)
    """
    if not verbose:
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    screen = console or Console(stderr=True)
    if not screen.is_terminal:  # a bar that is switched off still ends in an empty line before rich 14.3
        yield silent
        return
    columns = (BarColumn(bar_width=24), TextColumn("{task.description}"), TimeElapsedColumn())
    bar = Progress(*columns, console=screen, transient=True)
    task = bar.add_task("", total=None)
    due, shown = Deadline.after(patience), ""

    def report(what: str, done: float, total: float | None) -> None:
        nonlocal due, shown
        another = bool(shown) and what != shown  # what comes next may last: it is told at once
        if not (due.passed or another):
            return
        bar.start()
        bar.update(task, description=what, completed=done, total=total)
        due, shown = Deadline.after(_PAUSE), what

    try:
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()


def watched(items: Iterable[T], what: str, *, total: int | None = None, verbose: int = 1) -> Iterator[T]:
    """Yield the items and show a bar once that has lasted, on a terminal, unless told to be quiet.

    Args:
        items: What to go through.
        what: What is being done, in a word or two.
        total: How many there are, where ``len(items)`` does not say it.
        verbose: Nothing is shown if it is zero.

    >>> list(watched("abc", "spelling", verbose=0))
    ['a', 'b', 'c']
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    with progress_bar(verbose=verbose) as report:
        for done, item in enumerate(items):
            report(what, done, total)
            yield item
