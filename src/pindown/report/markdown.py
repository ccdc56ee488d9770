"""An audit as Markdown, for pull requests and notes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pindown.findings import Finding, Table
from pindown.report.layout import cell_text, sections, unanswered

if TYPE_CHECKING:
    from pindown.audit import Audit

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#])")


def render_markdown(audit: Audit) -> str:
    """Return the audit as Markdown; text that came from files is escaped."""
    lines = [f"# Audit of {escape(audit.name)}", "", escape(audit.verdict), ""]
    lines += [f"Given: {escape(audit.given)}.", ""]
    for section in sections(audit):
        lines += [f"## {section.title}", ""]
        for finding in section.findings:
            lines += _finding(finding)
    silent = unanswered(audit)
    if silent:
        lines += ["## What could not be said, and why", ""]
        lines += [f"- **{f.code}** {escape(f.title)}: {escape(f.verdict)}" for f in silent]
    return "\n".join(lines).rstrip() + "\n"


def escape(text: str) -> str:
    r"""Return text that Markdown shows as it is.

    >>> print(escape("a<b> *c*"))
    a\<b\> \*c\*
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _finding(finding: Finding) -> list[str]:
    lines = [f"### {finding.code} {escape(finding.title)}", "", f"**{escape(finding.verdict)}**", ""]
    if finding.number:
        label = f"{finding.number.label}: " if finding.number.label else ""
        lines += [escape(f"{label}{finding.number}"), ""]
    lines += [escape(finding.reading), ""] if finding.reading else []
    lines += [f"*Scale:* {escape(finding.scale)}", ""] if finding.scale else []
    lines += [f"- {hypothesis.status}: {escape(hypothesis.text)}" for hypothesis in finding.hypotheses]
    lines += [""] if finding.hypotheses else []
    return lines + (_table(finding.table) if finding.table else [])


def _table(table: Table) -> list[str]:
    head = "| " + " | ".join(map(escape, table.columns)) + " |"
    rule = "|" + " --- |" * len(table.columns)
    rows = [
        "| "
        + " | ".join(escape(cell_text(c, name)) for c, name in zip(row, table.columns, strict=True))
        + " |"
        for row in table.rows
    ]
    return [escape(table.caption) + ":", "", head, rule, *rows, ""]
