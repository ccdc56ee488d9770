"""A terminal that nothing from a file can command."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from rich.console import Console
from rich.segment import Segment

from pindown import progress
from pindown.text import visible


class Screen(Console):
    """A console that prints hidden characters, which would reorder a line or move the cursor, as "?"."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"highlight": False} | settings)

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """Render as a console does; what the console itself tells the terminal is left alone."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def progress_bar(screen: Console | None = None) -> AbstractContextManager[progress.Report]:
    """Show a bar while the block runs, from the first report on; nothing if it is no terminal.

    Args:
        screen: Where to; stderr by default.
    """
    return progress.progress_bar(patience=0.0, console=screen or Screen(stderr=True))
