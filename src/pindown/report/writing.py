"""Writing what was rendered."""

from __future__ import annotations

from os import PathLike
from pathlib import Path


def written(text: str, path: str | PathLike[str] | None) -> str:
    """Return the text, written to the path if there is one."""
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
