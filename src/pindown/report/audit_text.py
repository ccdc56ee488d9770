"""An audit in the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pindown.findings.concerns import MAX_SHOWN, unchecked
from pindown.report.pages import reasons, sections
from pindown.text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from pindown._audit import Audit
    from pindown.findings import Finding
    from pindown.findings.opening_paragraph import Reason
    from pindown.progress import Report

_STYLES = {"exact": "green", "probability": "cyan", "estimate": "yellow", "heuristic": "magenta"}
_INDENT = (0, 0, 0, 10)
_SILENT = "What could not be said, and why"


def plain_text(audit: Audit, width: int = 100) -> str:
    """Return the verdict and the findings as text without colours."""
    blocks = [f"Audit of {audit.name} (given: {audit.given})", textwrap.fill(audit.verdict, width)]
    blocks += [textwrap.fill(line, width, subsequent_indent="   ") for line in opening_lines(audit)]
    blocks.append(textwrap.fill(audit.description, width))
    if audit.comparison is not None:
        blocks.append(f"What changed: {audit.comparison}")
    for section in sections(audit):
        blocks.append("\n".join([section.title, *map(str, section.findings)]))
    silent = reasons(audit)
    if silent:
        lines = [textwrap.fill(_because(reason), width, subsequent_indent="  ") for reason in silent]
        blocks.append("\n".join([_SILENT, *lines]))
    return visible("\n\n".join(block for block in blocks if block))


def opening_lines(audit: Audit) -> list[str]:
    """Return what follows the verdict: the first concerns with what to do, and what is fine."""
    concerns, fine, _ = audit.judgement
    lines = [
        f"{i}. {c.title} [{c.code}]. {c.why} → {c.todo}" for i, c in enumerate(concerns[:MAX_SHOWN], 1)
    ]
    if len(concerns) > MAX_SHOWN:
        lines.append(f"Also: {'; '.join(f'{c.title} [{c.code}]' for c in concerns[MAX_SHOWN:])}.")
    if fine:
        lines.append(f"What is fine: {'; '.join(words for words, _ in fine)}.")
    if left_open := unchecked(audit.judgement, audit.findings):
        lines.append(left_open)
    return lines


def _print_opening(audit: Audit, out: Console) -> None:
    from rich.text import Text

    out.print(Text(audit.verdict, style="bold" if not audit.concerns else "bold red"))
    for line in opening_lines(audit):
        out.print(Text(line))
    out.print(Text(audit.description, style="dim"))


def print_audit(audit: Audit, console: Console | None = None, *, streamed: bool = False) -> None:
    """Print an audit, with colours if the terminal has them.

    Args:
        audit: What to print.
        console: Where to; stdout by default.
        streamed: Whether the findings were printed as they came: then only what comes after them.
    """
    from pindown.report.terminal import Screen

    out = console or Screen()
    if not streamed:
        out.print(_opening(audit.name, audit.given))
        out.print()
        _print_opening(audit, out)
        _print_comparison(audit, out)
        for section in sections(audit):
            out.print(_section(section.title))
            for finding in section.findings:
                print_finding(finding, out)
        _print_silence(audit, out)
        return
    _print_silence(audit, out)
    _print_comparison(audit, out)
    out.print(_section("In short"))
    _print_opening(audit, out)


def print_finding(finding: Finding, out: Console) -> None:
    """Print one finding with an answer, or that failed."""
    from rich.padding import Padding
    from rich.text import Text

    out.print(_headline(finding))
    out.print(Padding(_verdict(finding), _INDENT))
    if finding.reading:
        out.print(Padding(Text(finding.reading, style="dim"), _INDENT))


def _print_comparison(audit: Audit, out: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    found = audit.comparison
    if found is None:
        return
    out.print(_section(f"What changed since {found.before}"))
    for line in ([] if found.distance is None else [found.distance.text]) + list(found.notes):
        out.print(Text(line))
    if not found.changed:
        out.print(Text("No finding changed."))
    for change in found.changed:
        mark = f"  {change.text}" if change.text else ""
        out.print(
            Text.assemble((f"{f'[{change.code}]':<10}", "bold"), (change.title, "bold"), (mark, "cyan"))
        )
        out.print(Padding(Text(f"before: {change.before}", style="dim"), _INDENT))
        out.print(Padding(Text(f"after:  {change.after}"), _INDENT))


def _print_silence(audit: Audit, out: Console) -> None:
    from rich.text import Text

    silent = reasons(audit)
    if silent:
        out.print(_section(_SILENT))
        for reason in silent:
            out.print(Text(_because(reason), style="red" if reason.status == "error" else "dim"))


def _because(reason: Reason) -> str:
    return f"{reason.text}: {reason.codes}"


def _section(title: str) -> Text:
    from rich.text import Text

    return Text(f"\n{title}", style="bold underline")


def _opening(name: str, given: str) -> Text:
    from rich.text import Text

    return Text.assemble(("Audit of ", "dim"), (name, "bold"), (f"  given: {given}", "dim"))


@contextmanager
def streaming(name: str, budget: float) -> Iterator[tuple[Report, Callable[[Finding], None]]]:
    """Print findings as they come, above a progress bar; yields ``report`` and ``found``.

    For terminals: both go to stdout, where rich keeps the bar below what is printed.
    """
    from rich.text import Text

    from pindown.report.terminal import Screen, progress_bar

    screen = Screen()
    with progress_bar(screen) as report:
        within = f", within {budget:g} s"
        screen.print(Text.assemble(("Audit of ", "dim"), (name, "bold"), (within, "dim")))

        def found(finding: Finding) -> None:
            if finding.answered or finding.status == "error":
                print_finding(finding, screen)

        yield report, found


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
