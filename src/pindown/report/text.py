"""An audit in the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pindown.report.layout import sections, unanswered

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from pindown.audit import Audit
    from pindown.findings import Finding

_STYLES = {"exact": "green", "probability": "cyan", "estimate": "yellow", "heuristic": "magenta"}
_INDENT = (0, 0, 0, 10)


def plain_text(audit: Audit, width: int = 100) -> str:
    """Return the verdict and the findings as text without colours."""
    blocks = [f"Audit of {audit.name} (given: {audit.given})", textwrap.fill(audit.verdict, width)]
    for section in sections(audit):
        blocks.append("\n".join([section.title, *map(str, section.findings)]))
    silent = unanswered(audit)
    if silent:
        blocks.append("\n".join(["What could not be said, and why", *map(str, silent)]))
    return "\n\n".join(block for block in blocks if block)


def print_audit(audit: Audit, console: Console | None = None) -> None:
    """Print the verdict and one entry per finding, with colours if the terminal has them."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    out = console or Console(highlight=False)
    out.print(
        Text.assemble(("Audit of ", "dim"), (audit.name, "bold"), (f"  given: {audit.given}", "dim"))
    )
    out.print()
    out.print(Text(audit.verdict))
    for section in sections(audit):
        out.print(Text(f"\n{section.title}", style="bold underline"))
        for finding in section.findings:
            out.print(_headline(finding))
            out.print(Padding(_verdict(finding), _INDENT))
            out.print(Padding(Text(finding.reading, style="dim"), _INDENT))
    silent = unanswered(audit)
    if silent:
        out.print(Text("\nWhat could not be said, and why", style="bold underline"))
        for finding in silent:
            out.print(_headline(finding))
            out.print(Padding(_verdict(finding), _INDENT))


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Show progress on stderr while the block runs; yields ``report(title, done, total)``."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(bar_width=24), TextColumn("{task.description}"), TimeElapsedColumn())
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("starting", total=None)

        def report(title: str, done: int, total: int) -> None:
            bar.update(task, description=title, completed=done, total=total)

        yield report


def _headline(finding: Finding) -> Text:
    from rich.text import Text

    line = Text.assemble((f"{f'[{finding.code}]':<10}", "bold"), (finding.title, "bold"))
    if finding.number:
        line.append(f"  {finding.number.kind}", style=_STYLES[finding.number.kind])
    return line


def _verdict(finding: Finding) -> Text:
    from rich.text import Text

    style = {"answered": "", "error": "red"}.get(finding.status, "dim")
    return Text(finding.verdict, style=style)
