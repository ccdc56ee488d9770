"""An audit as one self-contained page, and as a fragment for notebooks."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pindown.findings import KINDS, Finding
from pindown.findings.wording import shape
from pindown.report.layout import cell_text, sections, unanswered

if TYPE_CHECKING:
    from pindown.audit import Audit

# A shape beside every colour: the mark must read without colour vision and on a grey print.
SYMBOLS = {"exact": "●", "probability": "◐", "estimate": "○", "heuristic": "◌"}
_HYPOTHESIS_SYMBOLS = {"checked": "✓", "assumed": "?", "violated": "✗"}

_MOST_ROWS = 200  # of a table: a page of a very deep network must still open on a phone


def render_page(audit: Audit) -> str:
    """Return the page. Everything that came from a file is escaped; nothing is loaded from elsewhere."""
    from jinja2 import Environment, StrictUndefined

    folder = files("pindown.report")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(
        symbols=SYMBOLS, hypothesis_symbols=_HYPOTHESIS_SYMBOLS, picture=_picture, cell=cell_text
    )
    template = environment.from_string((folder / "page.html.j2").read_text("utf-8"))
    page = template.render(
        audit=audit,
        sections=sections(audit),
        unanswered=unanswered(audit),
        kinds=KINDS,
        style=safe((folder / "page.css").read_text("utf-8")),
        shape=shape(audit.network.widths),
        most_rows=_MOST_ROWS,
    )
    return str(page).lstrip() + "\n"


def render_fragment(audit: Audit) -> str:
    """Return the verdict and one row per finding, for a notebook cell."""
    rows = "".join(
        f"<tr><td><code>{f.code}</code></td><td>{escape(f.title)}</td>"
        f"<td style='text-align:left'>{escape(f.verdict)}</td>"
        f"<td>{f'{SYMBOLS[f.number.kind]} {f.number.kind}' if f.number else ''}</td></tr>"
        for f in audit.findings
    )
    return (
        f"<div><p><b>Audit of {escape(audit.name)}.</b> {escape(audit.verdict)}</p>"
        f"<table><thead><tr><th>code</th><th>question</th><th>verdict</th><th>kind</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _picture(finding: Finding) -> Any:
    from pindown.report.figures import draw

    return safe(draw(finding.figure, finding.code.lower())) if finding.figure else ""


def safe(markup: str) -> Any:
    """Mark text of our own making as markup; matplotlib escapes the labels it draws."""
    from markupsafe import Markup

    return Markup(markup)
