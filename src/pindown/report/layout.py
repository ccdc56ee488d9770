"""What every report has in common: which finding stands where, and how a cell is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pindown.findings import CATALOGUE, GROUPS, Finding
from pindown.findings.finding import Cell
from pindown.findings.opening_paragraph import Reason, grouped_reasons
from pindown.findings.wording import at_least, at_most, number_text, percent

if TYPE_CHECKING:
    from pindown._audit import Audit


class Section(NamedTuple):
    """The answered findings of one of the big questions."""

    title: str
    findings: list[Finding]


def sections(audit: Audit) -> list[Section]:
    """Group the answered findings by question, leaving out empty groups."""
    group_of = {question.code: question.group for question in CATALOGUE}
    found = [
        Section(title, [f for f in audit.findings if f.answered and group_of[f.code] == group])
        for group, title in GROUPS.items()
    ]
    return [section for section in found if section.findings]


def unanswered(audit: Audit) -> list[Finding]:
    """Return the findings that say why there is no answer."""
    return [finding for finding in audit.findings if not finding.answered]


def reasons(audit: Audit) -> list[Reason]:
    """Group findings without an answer by the reason they give: what failed, then the commonest."""
    return sorted(grouped_reasons(audit.findings), key=lambda reason: reason.rank)


def cell_text(cell: Cell, column: str) -> str:
    """Return a table cell as text; columns named "share ..." are percentages, others may be bounds.

    >>> cell_text(1234, "rows"), cell_text(0.5, "share right"), cell_text(None, "value")
    ('1,234', '50.0%', '–')
    >>> cell_text(2.344, "at least"), cell_text(2.344, "at most")
    ('2.34', '2.35')
    """
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    if column in ("at least", "at most"):
        return at_least(cell) if column == "at least" else at_most(cell)
    return percent(cell) if column.startswith("share") else number_text(cell)
