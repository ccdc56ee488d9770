"""Time that a run may take, threads it may use, and a bar where a person can see them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE = 2.0  # seconds before a bar appears
_PAUSE = 0.2  # seconds between two updates of the bar


class Stage:
    """A part of a run: counts steps, ends when its time is over, shows how far it is.

    Attributes:
        total: Steps it takes if nothing stops it.
        deadline: On the monotonic clock; None is never.

    >>> len(list(Stage("counting", 3).steps()))
    3
    """

    def __init__(self, what: str, total: int, deadline: float | None = None, verbose: int = 0) -> None:
        self.what, self.total, self.deadline, self.verbose = what, total, deadline, verbose
        self._start = time.monotonic()
        self._done = 0

    @property
    def progress(self) -> float:
        """Share that is done, of the steps or of the time, whichever is larger."""
        share = self._done / max(self.total, 1)
        if self.deadline is not None:
            spent = time.monotonic() - self._start
            share = max(share, spent / max(self.deadline - self._start, _PAUSE))
        return min(share, 1.0)

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def steps(self, stride: int = 1) -> Iterator[int]:
        """Yield 0, 1, ..., or every so many of them; the first is always taken."""
        with _bar(self.what, self.verbose) as show:
            for step in range(0, self.total, stride):
                if step and self.late:
                    return
                self._done = step
                show(self.progress)
                yield step


@contextmanager
def _bar(what: str, verbose: int) -> Iterator[_Show]:
    show = _Show(what, verbose)
    try:
        yield show
    finally:
        show.close()


class _Show:
    def __init__(self, what: str, verbose: int) -> None:
        self._what, self._verbose = what, verbose
        self._due = time.monotonic() + _PATIENCE
        self._bar: Progress | None = None

    def __call__(self, share: float) -> None:
        if not self._verbose or time.monotonic() < self._due:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress

            screen = Console(stderr=True)
            self._bar = Progress(console=screen, transient=True, disable=not screen.is_terminal)
            self._bar.add_task(self._what, total=1.0)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=share)
        self._due = time.monotonic() + _PAUSE

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def own_randomness(seed: int, threads: int | None) -> Iterator[None]:
    """Seed torch within, use so many threads, allow gradients, and put all back."""
    before = torch.get_num_threads()
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        with torch.random.fork_rng(devices=[]), torch.inference_mode(False), torch.enable_grad():
            # What modules draw themselves. Not torch.manual_seed, which seeds other devices for good.
            torch.default_generator.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(before)
