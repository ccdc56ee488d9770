r"""How results are written: bounds that stay bounds, nothing that hides, a card in a notebook.

Upper bounds are rounded up and lower ones down. File names, column names, labels and what models say
about themselves come from strangers. One of them may hold U+202E, which turns "cod.exe" round, or
``\x1b[2J``, which clears a terminal: no character may be unseen, reorder others, or command a terminal.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from html import escape

# Unicode's control, format and surrogate characters and its separators of lines and paragraphs, all but
# the tab and the line feed.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_SPACE = re.compile(r"\s")
# A shape beside every name: the mark must read without colour.
SYMBOLS = {"exact": "●", "probability": "◐", "estimate": "○", "heuristic": "◌"}
_CARD = (
    "border-left: 3px solid currentColor; padding: .2em .8em; margin: .3em 0; max-width: 60em; "
    "font-family: inherit"
)
_MAX_CHARACTERS = 4000  # of a card: it must not fill the screen


def rounded_up(value: float, digits: int = 3) -> str:
    """Return an upper bound to at most six digits, rounded up so that what is said stays true.

    >>> rounded_up(0.12301), rounded_up(0.2), rounded_up(1.0000001e-7, 2), rounded_up(math.inf)
    ('0.124', '0.2', '1.1e-07', 'inf')
    """
    return f"{rounded(value, digits, ROUND_CEILING):g}"


def rounded_down(value: float, digits: int = 3) -> str:
    """Return a lower bound to at most six digits, rounded down.

    >>> rounded_down(0.12399), rounded_down(-0.12301), rounded_down(0.0)
    ('0.123', '-0.124', '0')
    """
    return f"{rounded(value, digits, ROUND_FLOOR):g}"


def interval_text(lower: float, upper: float, digits: int = 3) -> str:
    """Return a proved interval, rounded outwards.

    >>> interval_text(0.12349, 0.12351)
    '[0.123, 0.124]'
    """
    return f"[{rounded_down(lower, digits)}, {rounded_up(upper, digits)}]"


def rounded(value: float, digits: int, rounding: str) -> float:
    """Return the nearest number of so many digits on one side; what has no more digits stays."""
    if not math.isfinite(value):
        return value
    # repr: 0.2 is meant by the float next to it, not 0.200001.
    return float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(float(value)))))


def visible(text: str) -> str:
    r"""Return a document with a question mark for every hidden character; lines stay lines.

    >>> visible("cod\u202eexe\nend\x1b[2J")
    'cod?exe\nend?[2J'
    """
    return HIDDEN.sub("?", text)


def printable(text: str) -> str:
    r"""Return text for one line: as :func:`visible`, and with spaces for line feeds and tabs.

    >>> printable("a\x1b[2Jb\nc\udcff")
    'a?[2Jb c?'
    """
    return _SPACE.sub(" ", visible(text))


def escaped(document: str) -> str:
    r"""Return JSON in which hidden characters are written by their numbers: it means the same.

    >>> escaped('"cod\u202eexe"')
    '"cod\\u202eexe"'
    """
    return HIDDEN.sub(_numbered, document)


def _numbered(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def card(result: object) -> str:
    """Return a result as HTML: its name, the kind of its proof, and what it prints.

    To be set as ``_repr_html_ = card`` in a class whose ``__str__`` says what there is to say. A
    ``kind`` attribute, or that of a ``number`` attribute, becomes the mark.

    >>> class Answer:
    ...     kind = "exact"
    ...     __str__ = lambda self: "1 < 2"
    >>> "● exact" in card(Answer()) and "1 &lt; 2" in card(Answer())
    True
    """
    kind = _kind(result)
    mark = f" <span title='how it is known'>{SYMBOLS[kind]} {kind}</span>" if kind else ""
    text = visible(str(result))
    if len(text) > _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]} …"
    lines = "<br>".join(escape(line) for line in text.splitlines())
    return f"<div style='{_CARD}'><b>{escape(type(result).__name__)}</b>{mark}<br>{lines}</div>"


def _kind(result: object) -> str:
    """Return the kind of proof of a result, empty if it has none."""
    for holder in (result, getattr(result, "number", None)):
        kind = getattr(holder, "kind", None)
        if isinstance(kind, str) and kind in SYMBOLS:
            return kind
    return ""
