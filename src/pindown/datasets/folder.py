"""Where public data sets are: a folder that the caller or ``PINDOWN_DATA`` names; nothing is fetched."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

from pindown.errors import DataFileError

VARIABLE = "PINDOWN_DATA"


def find_folder(folder: str | PathLike[str] | None, name: str) -> Path:
    """Return the folder of one data set.

    Args:
        folder: Folder with one sub-folder per data set; None takes what ``PINDOWN_DATA`` names.
        name: The sub-folder.

    Raises:
        DataFileError: If no folder is named, or it has no such sub-folder.
    """
    named = os.environ.get(VARIABLE) if folder is None else folder
    if not named:
        raise DataFileError(
            f"no folder with data is named: pass folder=..., or set {VARIABLE} to one with {name}/."
        )
    found = Path(named) / name
    if not found.is_dir():
        raise DataFileError(
            f"there is no folder {name!r} in {str(named)!r}; it is to hold the files of {name}."
        )
    return found


def has_data(name: str, folder: str | PathLike[str] | None = None) -> bool:
    """Return whether the folder of a data set is there."""
    try:
        find_folder(folder, name)
    except DataFileError:
        return False
    return True
