"""An audit as one self-contained page, and as a fragment for notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from pindown.findings import CATALOGUE, GROUPS, Finding, Quantity, Table
from pindown.findings.asked_model import Function
from pindown.findings.concerns import MAX_SHOWN, unchecked
from pindown.findings.pictures import PlaneMap
from pindown.findings.wording import shape
from pindown.network import ReluNetwork
from pindown.report.glosses import first_glosses
from pindown.report.pages import entry_text, reasons, render, safe, sections
from pindown.report.tuning import (
    MAX_KEY_NUMBERS,
    MAX_LETTERS_BELOW_PICTURE,
    MAX_LETTERS_BESIDE_WORDS,
    MAX_ROWS_BELOW_PICTURE,
    MAX_TABLE_ROWS,
    MIN_KEY_NUMBERS,
)
from pindown.text import SYMBOLS, visible

if TYPE_CHECKING:
    from pindown._audit import Audit
    from pindown.findings.comparison import Change

# The numbers a reader looks for first; as many as fit into a strip are shown.
_KEY_CODES = ("ACC-01", "CAL-01", "BND-01", "ROB-01", "ROB-03", "ARC-01", "GEO-01", "EQV-01", "LIP-01")
# Letters between columns, and of a head that is not wrapped.
_SPACES, _SHORT_HEAD = 4, 12
_NUMERIC = re.compile(r"–|unbounded|[<>≤≥±]?\s*[-−+]?[\d,.]+(e[-+]?\d+)?\s*%?")


class KeyNumber(NamedTuple):
    """A number of the strip at the top: its value, what it counts, and the finding behind it."""

    value: str
    label: str
    finding: Finding


def render_page(audit: Audit) -> str:
    """Return the page. Everything that came from a file is escaped; nothing is loaded from elsewhere."""
    groups = {title: name for name, title in GROUPS.items()}
    return render(
        "page.html.j2",
        audit=audit,
        parts_of_page=[
            (groups[section.title].replace(" ", "-"), section) for section in sections(audit)
        ],
        opening=opening(audit),
        judgement=audit.judgement,
        unchecked=unchecked(audit.judgement, audit.findings),
        most_concerns=MAX_SHOWN,
        unfolded=unfolded(audit),
        keys=key_numbers(audit),
        glosses=first_glosses(_places(audit)),
        reasons=reasons(audit),
        comparison=audit.comparison,
        about={question.code: question.about for question in CATALOGUE},
        picture=_picture,
        table=_table,
        number_label=number_label,
        layout=_layout,
        change_rows=_change_rows,
        shape=shape_in_words(audit.model),
    )


def _places(audit: Audit) -> Iterator[tuple[str, str]]:
    """Yield the parts of the page that can explain words, in its order, with what they say."""
    concerns, fine, _ = audit.judgement
    for concern in concerns:
        yield f"concern:{concern.name}", f"{concern.title} {concern.why} {concern.todo}"
    keys = [f"{key.finding.title} {key.label}" for key in key_numbers(audit)]
    yield "numbers", " ".join([audit.verdict, *(words for words, _ in fine), *keys])
    for section in sections(audit):
        for f in section.findings:
            yield f.code, " ".join((f.title, f.verdict, f.reading, f.scale))


def unfolded(audit: Audit) -> set[str]:
    """Return the codes of findings that a reader should see at once; the others say little at first."""
    shown = {concern.code for concern in audit.concerns[:MAX_SHOWN]}
    maps = [f.code for f in audit.findings if f.answered and isinstance(f.figure, PlaneMap)]
    return shown | {"ACC-01", *maps[:1]}


def shape_in_words(model: Function) -> str:
    """Return the widths of a network; of other models the shape of an input, and outputs."""
    if isinstance(model, ReluNetwork):
        return shape(model.widths)
    return f"{' × '.join(f'{n:,}' for n in model.input_shape)} → {model.out_features:,}"


def opening(audit: Audit) -> list[tuple[str, Finding | None]]:
    """Return the words of the opening paragraph, each with the finding whose sentence they are."""
    return [(words, audit[code] if code else None) for words, code in audit.passages]


def key_numbers(audit: Audit) -> list[KeyNumber]:
    """Return the few numbers that a reader looks for first."""
    known = {f.code: f for f in audit.findings if f.answered and f.number is not None}
    first = [known[code] for code in _KEY_CODES if code in known][:MAX_KEY_NUMBERS]
    rest = [finding for code, finding in known.items() if code not in _KEY_CODES]
    return [_key_number(finding) for finding in first + rest[: max(0, MIN_KEY_NUMBERS - len(first))]]


def _key_number(finding: Finding) -> KeyNumber:
    number = finding.number
    assert number is not None
    value, unit = number.text, ""
    if number.unit not in ("", "%"):
        value, _, unit = number.text.partition(" ")
    return KeyNumber(value, f"{unit} {number_label(number)}".strip() or finding.title, finding)


def number_label(number: Quantity) -> str:
    """Return what a number is; a bound says on which side the truth lies.

    >>> number_label(Quantity(0.05, "probability", label="error rate", bound="upper"))
    'error rate, at most'
    """
    side = {"upper": "at most", "lower": "at least", "": ""}[number.bound]
    if not side or "bound" in number.label:
        return number.label
    return f"{number.label}, {side}" if number.label else side


def render_fragment(audit: Audit) -> str:
    """Return the verdict and one row per finding, for a notebook cell."""
    rows = "".join(
        f"<tr><td><code>{f.code}</code></td><td>{escape(f.title)}</td>"
        f"<td style='text-align:left'>{escape(f.verdict)}</td>"
        f"<td>{f'{SYMBOLS[f.number.kind]} {f.number.kind}' if f.number else ''}</td></tr>"
        for f in audit.findings
    )
    todo = "".join(f"<li>{escape(c.title)}. {escape(c.todo)}</li>" for c in audit.concerns[:MAX_SHOWN])
    concerns = f"<ol>{todo}</ol>" if todo else ""
    return visible(
        f"<div><p><b>Audit of {escape(audit.name)}.</b> {escape(audit.verdict)}</p>{concerns}"
        f"<table><thead><tr><th>code</th><th>question</th><th>verdict</th><th>kind</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _table(table: Table) -> dict[str, Any]:
    """Return what the page shows of a table: cells as text, and which columns are words."""
    shown = table.rows[:MAX_TABLE_ROWS]
    rows = [[entry_text(v, c) for v, c in zip(row, table.columns, strict=True)] for row in shown]
    words = [i for i in range(len(table.columns)) if not all(_NUMERIC.fullmatch(row[i]) for row in rows)]
    return {
        "caption": table.caption,
        "columns": table.columns,
        "rows": rows,
        "text_columns": words,
        "total": len(table.rows),
    }


def _letters(table: Table) -> int:
    """Return about how wide a table is; long heads are counted as wrapped."""
    rows = _table(table)["rows"]
    widest = (
        max(len(head) if len(head) <= _SHORT_HEAD else len(head) // 2, *map(len, cells))
        for head, *cells in zip(table.columns, *rows, strict=True)
    )
    return sum(letters + _SPACES for letters in widest) if rows else 0


def _layout(finding: Finding) -> str:
    """Return where table and picture of a finding stand: beside the words, or below if wide."""
    table = finding.table
    if finding.figure is not None:
        small = (
            table is not None
            and len(table.rows) <= MAX_ROWS_BELOW_PICTURE
            and _letters(table) <= MAX_LETTERS_BELOW_PICTURE
        )
        return "pictured small" if small and not isinstance(finding.figure, PlaneMap) else "pictured"
    return "tabled" if table is not None and _letters(table) <= MAX_LETTERS_BESIDE_WORDS else ""


def _change_rows(changes: Sequence[Change]) -> list[tuple[Any, ...]]:
    """Return the rows of a comparison; what it is called leads to the finding."""
    return [
        (
            safe(f'<a href="#{escape(change.code)}">{escape(change.title)}</a>'),
            change.text or change.status,
            change.before or "–",
            change.after or "–",
        )
        for change in changes
    ]


def _picture(finding: Finding) -> Any:
    from pindown.report.figures import draw

    return safe(draw(finding.figure, finding.code.lower())) if finding.figure else ""
