r"""Text in which nothing hides: no character that is not seen, reorders others, or commands a terminal.

File names, column names, labels and what models say about themselves come from strangers. One of them
may hold U+202E, which turns "cod.exe" round, or ``\x1b[2J``, which clears a terminal.
"""

from __future__ import annotations

import re

# Unicode's control, format and surrogate characters and its separators of lines and paragraphs, all but
# the tab and the line feed.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_SPACE = re.compile(r"\s")


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
