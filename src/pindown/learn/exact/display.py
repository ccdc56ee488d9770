"""What a person sees of the search: a progress bar while it runs, the closing gap afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pindown.learn.exact.search import Search

_PATIENCE = 2.0  # seconds before a bar appears


@contextmanager
def shown(search: Search, verbose: int) -> Iterator[None]:
    """Show a search's progress on the terminal while the block runs, unless told to be quiet."""
    if not verbose:
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    screen = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)
    task = bar.add_task("exact search", total=1.0)
    began = time.monotonic()

    def show(share: float, lower: float, upper: float) -> None:
        if time.monotonic() - began > _PATIENCE:
            bar.start()
            bar.update(task, completed=share, description=f"least loss in [{lower:.5g}, {upper:.5g}]")

    search.progress = show
    try:
        yield
    finally:
        search.progress = None
        if bar.live.is_started:
            bar.stop()


def plot_history(history: npt.NDArray[np.float64], ax: Any = None) -> Axes:
    """Draw the best loss and the lower bound over time."""
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(6, 3.5))
    seconds, lower, upper = history.T
    ax.step(seconds, upper, where="post", label="best network")
    ax.step(seconds, lower, where="post", label="proved lower bound")
    ax.fill_between(seconds, lower, upper, step="post", alpha=0.15)
    ax.set(xlabel="seconds", ylabel="loss", ylim=(0, None))
    ax.legend(loc="best")
    return ax
