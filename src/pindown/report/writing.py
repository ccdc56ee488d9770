"""Writing what was rendered."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from pindown.whole_files import reason_of, whole_file


def written(text: str, path: str | PathLike[str] | None) -> str:
    """Return the text, written to the path if there is one: whole, or not at all.

    Raises:
        OSError: If it cannot be written there, with the name of the file.
    """
    if path is None:
        return text
    place = Path(path).resolve()  # a link is followed, not replaced
    data = text.encode()
    try:
        if place.exists() and not place.is_file():  # a pipe or a device takes what comes
            place.write_bytes(data)
        else:
            with whole_file(place) as file:
                file.write(data)
    except OSError as error:
        raise OSError(error.errno, reason_of(error), str(path)) from None
    return text
