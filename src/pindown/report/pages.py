"""What all pages share: one style, one script, one set of parts, and nothing loaded from elsewhere.

Inputs that are images are drawn as images.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
from functools import lru_cache
from importlib.resources import files
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.findings import KINDS
from pindown.report.layout import cell_text
from pindown.report.tuning import MAX_TABLE_ROWS, MIN_SQUARE_SIDE
from pindown.text import SYMBOLS, visible

if TYPE_CHECKING:
    from jinja2 import Environment


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
        cell=cell_text,
        documentation=documentation,
        most_rows=MAX_TABLE_ROWS,
        style=safe(_read("page.css")),
        script=safe(script),
        script_hash=safe(f"'sha256-{digest}'"),
    )
    return environment


def _read(name: str) -> str:
    return (files("pindown.report") / name).read_text("utf-8")


def image_of(x: Array, shape: tuple[int, ...]) -> NDArray[np.float64] | None:
    """Return the input as (height, width) or (height, width, 3) in [0, 1], or None if it is no image.

    Inputs without a second axis count as an image if they fill a square of 8 x 8 or more.

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
    low, high = min(0.0, float(picture.min())), max(1.0, float(picture.max()))
    return np.asarray((picture - low) / (high - low))


def png_of(picture: NDArray[np.float64]) -> str:
    """Return an image as PNG in base64."""
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    imsave(buffer, picture, cmap="gray", vmin=0.0, vmax=1.0, format="png")
    return base64.b64encode(buffer.getvalue()).decode("ascii")
