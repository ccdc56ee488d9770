"""Bytes in and out of files, with the checks that a file from a stranger needs."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

from pindown.errors import ModelFileError
from pindown.io.limits import MAX_FILE_BYTES, MAX_GZIP_BYTES, check_file_bytes
from pindown.whole_files import reason_of, whole_file

_CHUNK_BYTES = 2**20


def require_file(path: Path) -> int:
    """Return the size of a regular, non-empty file of bearable size."""
    try:
        if path.is_dir():
            raise ModelFileError("this is a directory; give the path of a model file in it.")
        if not path.exists():
            raise ModelFileError("there is no such file; check the path.")
        if not path.is_file():
            raise ModelFileError("this is not a regular file (a pipe or a device?).")
        size = path.stat().st_size
    except OSError as error:
        raise ModelFileError(f"the file cannot be read: {reason_of(error)}.") from None
    except ValueError as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"the file cannot be read: {error}.") from None
    if size == 0:
        raise ModelFileError("the file is empty; export or download it again.")
    check_file_bytes(size)
    return size


def read_bytes(path: Path) -> bytes:
    """Return what a file holds."""
    require_file(path)
    try:
        with path.open("rb") as file:
            # One byte more than allowed: a file that grew since it was measured is noticed.
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ModelFileError(f"the file cannot be read: {reason_of(error)}.") from None
    check_file_bytes(len(data))
    return data


def read_gzip(path: Path, limit: int = MAX_GZIP_BYTES) -> bytes:
    """Return what a gzipped file holds, decompressing no more than the limit."""
    require_file(path)
    unpacked = io.BytesIO()
    try:
        with gzip.open(path, "rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                unpacked.write(chunk)
                if unpacked.tell() > limit:
                    raise ModelFileError(
                        f"the file unpacks to more than {limit / 2**20:,.0f} MB; "
                        "unpack it yourself if you trust it."
                    )
    except (OSError, EOFError, zlib.error) as error:
        raise ModelFileError(f"the gzip file is damaged or cut short: {error}.") from None
    return unpacked.getvalue()


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old one or the whole new one, never a part."""
    try:
        with whole_file(path) as file:
            file.write(data)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be written: {reason_of(error)}.") from None
