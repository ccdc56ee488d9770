"""An audit as Markdown, for pull requests and notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pindown.findings import Finding, Table
from pindown.findings.comparison import Comparison
from pindown.findings.concerns import MAX_SHOWN, unchecked
from pindown.findings.wording import count
from pindown.report.pages import entry_text, reasons, sections
from pindown.text import visible

if TYPE_CHECKING:
    from pindown._audit import Audit

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#])")


def render_markdown(audit: Audit) -> str:
    """Return the audit as Markdown; text that came from files is escaped."""
    lines = [f"# Audit of {escape(audit.name)}", "", f"**{escape(audit.verdict)}**", ""]
    lines += _opening(audit)
    lines += [f"Given: {escape(audit.given)}.", "", escape(audit.description), ""]
    lines += _comparison(audit.comparison) if audit.comparison else []
    for section in sections(audit):
        lines += [f"## {section.title}", ""]
        for finding in section.findings:
            lines += _finding(finding)
    silent = reasons(audit)
    if silent:
        lines += ["## What could not be said, and why", ""]
        lines += [f"- {escape(reason.text)}: {_named(reason.findings)}" for reason in silent]
    return visible("\n".join(lines).rstrip()) + "\n"


def render_comment(audit: Audit, failures: Sequence[str] = ()) -> str:
    """Return a short text for a pull request: the verdict, concerns, what failed, and the numbers."""
    sign = "❌" if failures else "⚠️" if audit.concerns else "✅"
    lines = [f"### {sign} {escape(audit.name)}: {escape(audit.verdict)}", ""]
    lines += [f"- **failed:** {escape(failure)}" for failure in failures] + [""] * bool(failures)
    lines += _opening(audit)
    lines += [
        "<details><summary>Findings</summary>",
        "",
        "| code | question | answer |",
        "| --- | --- | --- |",
    ]
    lines += [
        f"| {f.code} | {escape(f.title)} | {escape(f.verdict)} |" for f in audit.findings if f.answered
    ]
    return visible("\n".join([*lines, "", "</details>"])) + "\n"


def _opening(audit: Audit) -> list[str]:
    concerns, fine, _ = audit.judgement
    lines = []
    for i, concern in enumerate(concerns[:MAX_SHOWN], 1):
        lines.append(f"{i}. **{escape(concern.title)}** ({concern.code}). {escape(concern.why)}")
        lines.append(f"   → {escape(concern.todo)}")
    lines += [""] if concerns else []
    later = concerns[MAX_SHOWN:]
    if later:
        titles = "; ".join(f"{c.title} ({c.code})" for c in later)
        lines += [f"{count(len(later), 'more concern')} of less weight: {escape(titles)}.", ""]
    if fine:
        lines += [f"Fine: {escape('; '.join(words for words, _ in fine))}.", ""]
    if left_open := unchecked(audit.judgement, audit.findings):
        lines += [escape(left_open), ""]
    return lines


def escape(text: str) -> str:
    r"""Return text that Markdown shows as it is.

    >>> print(escape("a<b> *c*"))
    a\<b\> \*c\*
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _named(findings: list[Finding]) -> str:
    return ", ".join(f"**{finding.code}** {escape(finding.title)}" for finding in findings)


def _comparison(comparison: Comparison) -> list[str]:
    lines = [f"## What changed since {escape(comparison.before)}", ""]
    lines += [] if comparison.distance is None else [escape(comparison.distance.text), ""]
    lines += [f"- {escape(note)}" for note in comparison.notes] + [""] * bool(comparison.notes)
    if not comparison.changed:
        return [*lines, "No finding changed.", ""]
    cells = [(f"{c.code} {c.title}", c.before, c.after, c.text) for c in comparison.changed]
    rows = ["| " + " | ".join(map(escape, row)) + " |" for row in cells]
    return [*lines, "| finding | before | after | change |", "|" + " --- |" * 4, *rows, ""]


def _finding(finding: Finding) -> list[str]:
    lines = [f"### {finding.code} {escape(finding.title)}", "", f"**{escape(finding.verdict)}**", ""]
    if finding.number:
        label = f"{finding.number.label}: " if finding.number.label else ""
        lines += [escape(f"{label}{finding.number}"), ""]
    lines += [escape(finding.reading), ""] if finding.reading else []
    lines += [f"*Scale:* {escape(finding.scale)}", ""] if finding.scale else []
    lines += [f"*To go on:* {escape(finding.next)}", ""] if finding.next else []
    lines += [f"- {hypothesis.status}: {escape(hypothesis.text)}" for hypothesis in finding.hypotheses]
    lines += [""] if finding.hypotheses else []
    return lines + (_table(finding.table) if finding.table else [])


def _table(table: Table) -> list[str]:
    head = "| " + " | ".join(map(escape, table.columns)) + " |"
    rule = "|" + " --- |" * len(table.columns)
    rows = [
        "| "
        + " | ".join(escape(entry_text(c, name)) for c, name in zip(row, table.columns, strict=True))
        + " |"
        for row in table.rows
    ]
    return [escape(table.caption) + ":", "", head, rule, *rows, ""]
