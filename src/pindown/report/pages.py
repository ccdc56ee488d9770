"""What all pages share: one style, one script, one set of parts, and nothing loaded from elsewhere.

Inputs that are images are drawn as images.
"""

from __future__ import annotations

import base64
import hashlib
import os
import struct
import zlib
from functools import lru_cache
from importlib.resources import files
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.findings import CATALOGUE, GROUPS, KINDS, Finding
from pindown.findings.finding import Entry
from pindown.findings.opening_paragraph import Reason, grouped_reasons
from pindown.findings.wording import at_least, at_most, number_text, percent
from pindown.report.tuning import MAX_TABLE_ROWS, MIN_SQUARE_SIDE
from pindown.text import SYMBOLS, visible

if TYPE_CHECKING:
    from jinja2 import Environment

    from pindown._audit import Audit


# Names the variable with the address, or the folder, of the built documentation. While it is not set no
# page links there: a page must work from a disk, and a link that leads nowhere is worse than none.
DOCUMENTATION = "PINDOWN_DOCS"
_HYPOTHESIS_SYMBOLS = {"checked": "✓", "assumed": "?", "violated": "✗"}


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
        entry=entry_text,
        documentation=documentation,
        most_rows=MAX_TABLE_ROWS,
        style=safe(_read("page.css")),
        script=safe(script),
        script_hash=safe(f"'sha256-{digest}'"),
    )
    return environment


def _read(name: str) -> str:
    return (files("pindown.report") / name).read_text("utf-8")


def image_of(
    x: Array, shape: tuple[int, ...], ends: tuple[float, float] = (0.0, 1.0)
) -> NDArray[np.float64] | None:
    """Return the input as (height, width) or (height, width, 3) in [0, 1], or None if it is no image.

    Inputs without a second axis count as an image if they fill a square of 8 x 8 or more.

    Args:
        x: The input, flat.
        shape: Its shape.
        ends: What is black and what is white, if x does not go beyond.

    >>> image_of(np.zeros(784), (784, 1)).shape, image_of(np.zeros(12), (12,)) is None
    ((28, 28), True)
    """
    axes = tuple(n for n in shape if n > 1)
    if len(axes) == 1 and isqrt(axes[0]) ** 2 == axes[0] and isqrt(axes[0]) >= MIN_SQUARE_SIDE:
        axes = (isqrt(axes[0]),) * 2
    if len(axes) == 3 and axes[0] == 3:
        picture = x.reshape(axes).transpose(1, 2, 0)
    elif len(axes) == 2 or (len(axes) == 3 and axes[2] == 3):
        picture = x.reshape(axes)
    else:
        return None
    low, high = min(ends[0], float(picture.min())), max(ends[1], float(picture.max()))
    return np.asarray((picture - low) / (high - low))


def png_of(picture: NDArray[np.float64]) -> str:
    """Return an image, grey or (height, width, 3) in colours, from 0 to 1, as PNG in base64."""
    pixels = np.clip(picture * 256, 0, 255).astype(np.uint8)
    pixels = np.repeat(pixels[..., None], 3, axis=2) if pixels.ndim == 2 else pixels
    height, width, _ = pixels.shape
    unfiltered = np.hstack([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)]).tobytes()

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(unfiltered, 9)), (b"IEND", b"")
    content = b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)
    return base64.b64encode(content).decode("ascii")


class Section(NamedTuple):
    """The answered findings of one of the big questions."""

    title: str
    findings: list[Finding]


def sections(audit: Audit) -> list[Section]:
    """Group the answered findings by question, how far to trust it first; empty groups are left out."""
    group_of = {question.code: question.group for question in CATALOGUE}
    found = [
        Section(title, [f for f in audit.findings if f.answered and group_of[f.code] == group])
        for group, title in sorted(GROUPS.items(), key=lambda entry: entry[0] != "how far")
    ]
    return [section for section in found if section.findings]


def reasons(audit: Audit) -> list[Reason]:
    """Group findings without an answer by the reason they give: what failed, then the commonest."""
    return sorted(grouped_reasons(audit.findings), key=lambda reason: reason.rank)


def entry_text(entry: Entry, column: str) -> str:
    """Return a table's entry as text; columns named "share ..." are percentages, others may be bounds.

    >>> entry_text(1234, "rows"), entry_text(0.5, "share right"), entry_text(None, "value")
    ('1,234', '50.0%', '–')
    >>> entry_text(2.344, "at least"), entry_text(2.344, "at most")
    ('2.34', '2.35')
    """
    if entry is None:
        return "–"
    if isinstance(entry, str):
        return entry
    if column in ("at least", "at most"):
        return at_least(entry) if column == "at least" else at_most(entry)
    return percent(entry) if column.startswith("share") else number_text(entry)
