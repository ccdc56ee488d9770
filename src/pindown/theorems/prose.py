"""What docstrings say in plain words, read from their files: a search imports nothing."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path

from pindown.lazy import homes_of

_PACKAGE = Path(__file__).parents[1]
_FIRST = re.compile(r'\A(?:#.*\n|\s)*r?"""(.*?)"""', re.DOTALL)
_PASSED_OVER = re.compile(
    r"^[ ]*(?:>>>|\.\.\.)[^\n]*$"  # sessions
    r"|\.\. math::.*?(?=\n\n|\Z)|:math:`[^`]*`"
    r"|\n[ ]*(?:Raises|Example):.*\Z"
    r"|\b(?:Mukherjee|Phuong|Wolf|Brutzkus)[^.]*\d{4}[^.]*\.",  # sources
    re.MULTILINE | re.DOTALL,
)
_ROLE = re.compile(r":\w+:`~?([^`]*)`")


def prose_of(path: str) -> tuple[str, str]:
    """Return what the docstrings of a public name and of its module say; empty where there is no text.

    Args:
        path: A dotted name.

    >>> prose_of("pindown.canonical")[0].split(". ")[0]
    'Return the representative of all symmetric copies of the network'
    """
    module, _, name = path.rpartition(".")
    while _place(module).with_suffix(".pyi").is_file():  # a package that has it from elsewhere
        import_module(module)
        module, name = homes_of(module)[name]
    text = _text(module)
    own = re.search(rf'^(?:def|class) {name}\b.*?"""(.*?)"""', text, re.DOTALL | re.MULTILINE)
    whole = _FIRST.search(text)
    return _plain(own[1] if own else ""), _plain(whole[1] if whole else "")


def _plain(docstring: str) -> str:
    return " ".join(_ROLE.sub(r"\1", _PASSED_OVER.sub(" ", docstring)).split())


def _place(module: str) -> Path:
    """Return the file of a module, or of a package's list."""
    place = _PACKAGE.joinpath(*module.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@cache
def _text(module: str) -> str:
    try:
        return _place(module).read_text("utf-8")
    except OSError:
        return ""  # a program without its sources
