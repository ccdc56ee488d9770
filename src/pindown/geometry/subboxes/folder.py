"""The files of a streamed complex.

Arrays are stored in NPZ files, uncompressed, so a file cannot unpack to more than its own size. What
was finished stays finished: each file is there completely or not at all.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.errors import DataFileError
from pindown.whole_files import whole_file, writing_to

Arrays = Mapping[str, NDArray[Any]]

# What NumPy and zipfile raise at damaged files, encrypted or of a kind they do not know.
_DAMAGE = (OSError, ValueError, KeyError, EOFError, RuntimeError, SyntaxError, zipfile.BadZipFile)
_KINDS = {"f8", "i8", "i4", "u8"}  # float64 and whole numbers, little-endian


def write_arrays(path: Path, arrays: Arrays) -> dict[str, Any]:
    """Write arrays, one after the other, without a second copy of them all; say what was written."""
    with writing_to(path.parent), whole_file(path, sweep=False) as file:
        np.savez(file, allow_pickle=False, **arrays)
    return {"file": path.name, "bytes": path.stat().st_size, "sha256": _digest(path)}


def is_as_written(folder: Path, entry: Mapping[str, Any]) -> bool:
    """Return whether a file is there and is what :func:`write_arrays` said."""
    path = folder / Path(entry["file"]).name
    return path.stat().st_size == entry["bytes"] and _digest(path) == entry["sha256"]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_arrays(path: Path, names: Sequence[str], n_bytes: int | None = None) -> dict[str, Any]:
    """Read arrays by name; what the file claims is checked before memory is taken for it.

    Args:
        path: The file.
        names: Which arrays; others in the file are not touched.
        n_bytes: How large the file has to be, if that is known.

    Raises:
        DataFileError: If the file is missing, damaged, of another size, compressed, or has other arrays.
    """
    try:
        size = path.stat().st_size
        if n_bytes is not None and size != n_bytes:
            raise DataFileError(f"{path.name} has {size:,} bytes; {n_bytes:,} were written.")
        with zipfile.ZipFile(path) as archive:
            return {name: _read_array(archive, name, size) for name in names}
    except _DAMAGE as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(f"{path} is missing, damaged or no file of a complex: {error}.") from None


def _read_array(archive: zipfile.ZipFile, name: str, size: int) -> NDArray[Any]:
    entry = archive.getinfo(f"{name}.npy")
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size:
        raise DataFileError(f"array {name} is compressed or claims more than the file holds.")
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise DataFileError(f"array {name} has a header that pindown does not write.")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        claimed = dtype.itemsize * int(np.prod(shape, dtype=object))
        if dtype.str[1:] not in _KINDS or fortran or dtype.str[0] == ">" or claimed > entry.file_size:
            raise DataFileError(f"array {name} is {dtype} of shape {shape}, not one that was written.")
        data = file.read(claimed)
        if len(data) != claimed or file.read(1):  # at its end the archive compares its checksum
            raise DataFileError(f"array {name} is cut short, or longer than it says.")
        return np.frombuffer(data, dtype=dtype).reshape(shape)
