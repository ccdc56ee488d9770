"""What all pages share: one style, one script, one set of parts, and nothing loaded from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import os
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pindown.findings import KINDS
from pindown.notebook import SYMBOLS
from pindown.report.layout import cell_text
from pindown.visible_text import visible

if TYPE_CHECKING:
    from jinja2 import Environment

# Names the variable with the address, or the folder, of the built documentation. While it is not set no
# page links there: a page must work from a disk, and a link that leads nowhere is worse than none.
DOCUMENTATION = "PINDOWN_DOCS"

_HYPOTHESIS_SYMBOLS = {"checked": "✓", "assumed": "?", "violated": "✗"}

MOST_ROWS = 200  # of a table: a page of a very deep network must still open on a phone


def render(template: str, **values: Any) -> str:
    """Return a page. Everything that came from a file is escaped, and only our own script may run.

    Nothing in it hides: bidirectional and control characters become question marks.

    Args:
        template: Name of its template, which extends ``base.html.j2``.
        **values: What the template shows.
    """
    return visible(str(_environment().get_template(template).render(**values)).strip()) + "\n"


def safe(markup: str) -> Any:
    """Mark text of our own making as markup."""
    from markupsafe import Markup

    return Markup(markup)


def documentation(page: str, anchor: str = "") -> str:
    """Return the address of a page of the documentation, or nothing if nobody said where it is."""
    place = os.environ.get(DOCUMENTATION, "")
    if place and Path(place).is_dir():
        place = Path(place).resolve().as_uri()
    if not place.startswith(("https://", "http://", "file://")):
        return ""
    return f"{place.rstrip('/')}/{page}.html{f'#{anchor}' if anchor else ''}"


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = _read("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    environment.globals.update(
        symbols=SYMBOLS,
        hypothesis_symbols=_HYPOTHESIS_SYMBOLS,
        kinds=KINDS,
        cell=cell_text,
        documentation=documentation,
        most_rows=MOST_ROWS,
        style=safe(_read("page.css")),
        script=safe(script),
        script_hash=safe(f"'sha256-{digest}'"),
    )
    return environment


def _read(name: str) -> str:
    return (files("pindown.report") / name).read_text("utf-8")
