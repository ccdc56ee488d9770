"""JSON: documents for others, and records that pindown reads back, whole and as they were written."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pindown.atomic_files import reason_of, whole_file, writing_to
from pindown.errors import DataFileError
from pindown.text import escaped

CHECKSUM = "checksum"  # the key of a record's checksum
_MAX_BYTES = 2**28


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the checksum of all its entries, as JSON has them.

    >>> record = sealed({"a": (1, 0.1)})
    >>> is_as_written(record), is_as_written(record | {"a": [1, 0.2]}), is_as_written({"a": 1})
    (True, False, False)
    """
    return {**record, CHECKSUM: _checksum(record)}


def is_as_written(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a checksum and nothing has changed since."""
    return record.get(CHECKSUM) == _checksum(record)


def _checksum(record: Mapping[str, Any]) -> str:
    content = {key: value for key, value in record.items() if key != CHECKSUM}
    as_read = json.loads(json.dumps(content))  # numbers as keys come back as words, and in their order
    return hashlib.sha256(json.dumps(as_read, sort_keys=True).encode()).hexdigest()


def document(content: Any) -> str:
    """Return JSON for people and programs: indented, in their own letters, with nothing hidden in it."""
    return escaped(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def plain(value: Any) -> Any:
    """Replace what JSON cannot hold: tuples become lists, numbers that are not finite null."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record with its checksum.

    Raises:
        OSError: In one line, if the disk is full or the folder cannot be written to.
    """
    text = json.dumps(sealed(record), indent=1, sort_keys=True) + "\n"
    with writing_to(path.parent), whole_file(path, sweep=False) as file:
        file.write(text.encode())


def read_record(path: Path) -> dict[str, Any]:
    """Read a record; whether it has to have a checksum is up to who reads it.

    Raises:
        DataFileError: If it is missing, far too large, no record, or not as it was written.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise DataFileError(f"{path} is larger than any that pindown writes.")
        record = json.loads(path.read_bytes())
        if isinstance(record, dict) and (CHECKSUM not in record or is_as_written(record)):
            return record
    except OSError as error:
        raise DataFileError(f"{path} cannot be read: {reason_of(error)}.") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(f"{path} is damaged: {str(error).rstrip('.')}.") from None
    raise DataFileError(f"{path} is not as it was written.")
