"""Bytes in and out of files, checked as a stranger's need it, and the precision of written weights."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.atomic_files import reason_of, whole_file
from pindown.errors import ModelFileError
from pindown.model.limits import MAX_FILE_BYTES, MAX_GZIP_BYTES, check_file_bytes
from pindown.network import ReluNetwork
from pindown.validation import choice

_CHUNK_BYTES = 2**20
_CHOICES = ("auto", "float32", "float64")


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


def choose_dtype(net: ReluNetwork, dtype: str) -> np.dtype[Any]:
    """Return the float type to write; ``"auto"`` is float32 if that holds every weight exactly.

    >>> tenth = ReluNetwork.from_layers([([[0.1]], [0.0])])
    >>> half = ReluNetwork.from_layers([([[0.5]], [0.0])])
    >>> choose_dtype(tenth, "auto"), choose_dtype(half, "auto")
    (dtype('float64'), dtype('float32'))
    """
    choice("dtype", dtype, _CHOICES)
    if dtype != "auto":
        return np.dtype(dtype)
    arrays = [part for W, b in net.layers for part in (W.data if sp.issparse(W) else W, b)]
    return np.dtype(np.float32 if all(map(_fits_float32, arrays)) else np.float64)


def narrowed(values: NDArray[Any], dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    """Return the values in the type to write, or refuse if one becomes infinite."""
    with np.errstate(over="ignore"):
        written = values.astype(dtype)
    if not np.isfinite(written).all():
        raise ModelFileError(
            f"{name} holds numbers up to {np.abs(values).max():.3g}, beyond {dtype}; "
            "save with dtype='float64'."
        )
    return written


def _fits_float32(values: NDArray[np.float64]) -> bool:
    with np.errstate(over="ignore"):
        return bool((values.astype(np.float32) == values).all())
