"""How results show themselves in a notebook: a small card with the kind of proof on it."""

from __future__ import annotations

from html import escape

from pindown.visible_text import visible

# A shape beside every name: the mark must read without colour.
SYMBOLS = {"exact": "●", "probability": "◐", "estimate": "○", "heuristic": "◌"}

_CARD = (
    "border-left: 3px solid currentColor; padding: .2em .8em; margin: .3em 0; max-width: 60em; "
    "font-family: inherit"
)
_MOST_CHARACTERS = 4000  # of a card: a cell must not fill the screen


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
    if len(text) > _MOST_CHARACTERS:
        text = f"{text[:_MOST_CHARACTERS]} …"
    lines = "<br>".join(escape(line) for line in text.splitlines())
    return f"<div style='{_CARD}'><b>{escape(type(result).__name__)}</b>{mark}<br>{lines}</div>"


def _kind(result: object) -> str:
    """Return the kind of proof of a result, empty if it has none."""
    for holder in (result, getattr(result, "number", None)):
        kind = getattr(holder, "kind", None)
        if isinstance(kind, str) and kind in SYMBOLS:
            return kind
    return ""
