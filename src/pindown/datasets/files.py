"""Inputs and labels from a user's file: NPZ, NPY or CSV.

The files are untrusted: sizes are checked against the file before memory is taken, and nothing
in a file is ever executed (NumPy's pickled object arrays are refused).
"""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.datasets._limits import MAX_BYTES, MAX_CSV_CHARACTERS
from pindown.errors import DataFileError

_DAMAGE = (
    *(ValueError, OSError, EOFError, KeyError, MemoryError, RuntimeError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error, csv.Error),
)
_INPUT_NAMES = (
    "X",
    "x",
    "data",
    "inputs",
    "images",
    "features",
    "X_train",
    "x_train",
    "X_test",
    "x_test",
)
_LABEL_NAMES = ("y", "Y", "labels", "label", "target", "targets", "y_train", "y_test")


@dataclass(frozen=True)
class Table:
    """Inputs and, if the file has them, labels.

    Attributes:
        X: One input per row; images keep their shape.
        y: Labels or targets, one per row, or None.
        classes: Names of the classes 0, 1, ... when the file names them in words.
    """

    X: NDArray[Any]
    y: NDArray[Any] | None = None
    classes: tuple[str, ...] = ()


def load_table(path: str | PathLike[str], target: str | None = None) -> Table:
    r"""Read inputs and labels.

    Args:
        path: ``.npz`` with arrays named X and (if any) y, ``.npy`` with inputs, or ``.csv`` /
            ``.csv.gz`` with one input per line.
        target: Name of the array (NPZ) or column (CSV) that holds the labels. By default one
            called y, label or target, if there is one.

    Raises:
        DataFileError: If the file is missing, damaged, too large, or not understood.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.csv")
    ...     _ = path.write_text("width,height,label\n1,2,0\n3,4,1\n")
    ...     table = load_table(path)
    >>> table.X.tolist(), table.y.tolist()
    ([[1.0, 2.0], [3.0, 4.0]], [0.0, 1.0])
    """
    file = Path(path)
    name = file.name.lower()
    readers: dict[str, Callable[[Path, str | None], Table]] = {
        ".npz": _read_npz,
        ".npy": _read_npy,
        ".csv": _read_csv,
        ".csv.gz": _read_csv,
    }
    ending = next((ending for ending in readers if name.endswith(ending)), None)
    if ending is None:
        raise DataFileError(f"data files end in {', '.join(readers)}; got {file.name!r}.")
    with readable(file):
        table = readers[ending](file, target)
    if table.X.ndim == 0 or len(table.X) == 0:
        raise DataFileError(f"{file.name} holds no inputs.")
    if table.y is not None and len(table.y) != len(table.X):
        raise DataFileError(
            f"{file.name} holds {len(table.X)} inputs but {len(table.y)} labels; they must be as many."
        )
    return table


def numbered_alike(*tables: Table | None, n_classes: int) -> list[Table | None]:
    """Number classes that are named in words alike in all tables, in alphabetical order.

    Raises:
        DataFileError: If the words of all tables together are not as many as there are classes: a
            number would be a guess then.
    """
    labelled = [table for table in tables if table is not None and table.y is not None]
    names = sorted({name for table in labelled for name in table.classes})
    if names and (len(names) != n_classes or not all(table.classes for table in labelled)):
        raise DataFileError(
            f"the labels name {len(names)} classes in words where {n_classes} are needed, in all files; "
            f"write the labels as numbers 0 to {n_classes - 1}."
        )
    return [
        table
        if table is None or not table.classes
        else Table(table.X, np.searchsorted(names, table.classes)[table.y], tuple(names))
        for table in tables
    ]


@contextmanager
def readable(file: Path) -> Iterator[None]:
    """Turn whatever the libraries raise about a damaged file into one sentence."""
    if not file.is_file():
        raise DataFileError(f"there is no data file {str(file)!r}.")
    try:
        yield
    except DataFileError:
        raise
    except _DAMAGE as error:
        raise DataFileError(f"{file.name} cannot be read: {error}") from None


def load_arrays(path: str | PathLike[str], names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Read the named arrays of an NPZ file, sizes checked first.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(Path(folder, "data.npz"), X=[[1.0, 2.0]], more=[3.0])
    ...     load_arrays(Path(folder, "data.npz"), ["more"])
    {'more': array([3.])}
    """
    file = Path(path)
    with readable(file), zipfile.ZipFile(file) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        arrays = {}
        for name in names:
            if name not in members:
                raise DataFileError(f"{file.name} has no array {name!r}; it holds {sorted(members)}.")
            with archive.open(members[name]) as stream:
                arrays[name] = _checked_array(io.BufferedReader(stream), members[name].file_size, name)
        return arrays


def names_in(file: Path) -> set[str]:
    """Return the names of the arrays in an NPZ file; none for files of another kind."""
    if file.suffix != ".npz":
        return set()
    with readable(file), zipfile.ZipFile(file) as archive:
        return {name.removesuffix(".npy") for name in archive.namelist()}


def _read_npz(file: Path, target: str | None) -> Table:
    with zipfile.ZipFile(file) as archive:
        members = [name.removesuffix(".npy") for name in archive.namelist()]
    inputs = members[0] if len(members) == 1 else _choose(members, _INPUT_NAMES)
    labels = target or _choose(members, _LABEL_NAMES)
    if inputs is None or inputs == labels:
        raise DataFileError(
            f"{file.name} needs an array named X (and y for labels); it holds {sorted(members)}."
        )
    arrays = load_arrays(file, [inputs] if labels is None else [inputs, labels])
    return Table(arrays[inputs], None if labels is None else arrays[labels])


def _read_npy(file: Path, target: str | None) -> Table:
    if target:
        raise DataFileError(f"{file.name} holds one array; labels need .npz or .csv.")
    with file.open("rb") as stream:
        return Table(_checked_array(stream, file.stat().st_size, file.name))


def _checked_array(stream: Any, size: int, name: str) -> NDArray[Any]:
    """Read one NPY array after comparing what its header claims with the bytes there are."""
    head = stream.peek(4096)[:4096] if hasattr(stream, "peek") else b""
    claimed = _claimed_bytes(io.BytesIO(head), name)
    if claimed > min(size, MAX_BYTES):
        raise DataFileError(f"array {name!r} claims {claimed:,} bytes; there are {size:,}.")
    values = np.lib.format.read_array(stream, allow_pickle=False)
    if values.dtype.kind not in "biuf":
        raise DataFileError(f"array {name!r} must hold real numbers; it holds {values.dtype}.")
    return values


def _claimed_bytes(head: BinaryIO, name: str) -> int:
    version = np.lib.format.read_magic(head)
    if version not in ((1, 0), (2, 0)):
        raise DataFileError(f"array {name!r} has the unknown format version {version}.")
    v1, v2 = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
    shape, _, dtype = (v1 if version == (1, 0) else v2)(head)
    count = 1
    for n in shape:
        count *= int(n)  # Python integers: no overflow
    return count * dtype.itemsize


def _read_csv(file: Path, target: str | None) -> Table:
    rows = _csv_rows(file)
    has_header = bool(rows) and not all(_is_number(cell) for cell in rows[0])
    header = [cell.strip() for cell in rows[0]] if has_header else []
    body = rows[has_header:]
    if not body:
        raise DataFileError(f"{file.name} holds no inputs.")
    column = _target_column(file, header, target)
    X = np.empty((len(body), len(rows[0]) - (column is not None)))
    for i, row in enumerate(body):
        if len(row) != len(rows[0]):
            line = i + 1 + has_header
            raise DataFileError(
                f"{file.name} line {line} has {len(row)} cells, line 1 has {len(rows[0])}."
            )
        numbers = [cell for j, cell in enumerate(row) if j != column]
        try:
            X[i] = numbers
        except ValueError:
            word = next(cell for cell in numbers if not _is_number(cell))
            line = i + 1 + has_header
            raise DataFileError(f"{file.name} line {line}: {word[:40]!r} is not a number.") from None
    if column is None:
        return Table(X)
    return Table(X, *_labels([row[column].strip() for row in body]))


def _csv_rows(file: Path) -> list[list[str]]:
    opener = gzip.open if file.name.lower().endswith(".gz") else open
    rows, characters = [], 0
    with opener(file, "rt", newline="", encoding="utf-8-sig") as stream:
        for row in csv.reader(stream):
            characters += sum(map(len, row)) + len(row)
            if characters > MAX_CSV_CHARACTERS:
                raise DataFileError(f"{file.name} is too long for CSV; save it as .npz.")
            if row:
                rows.append(row)
    return rows


def _target_column(file: Path, header: list[str], target: str | None) -> int | None:
    if target is None:
        chosen = _choose(header, _LABEL_NAMES)
        return None if chosen is None else header.index(chosen)
    if target in header:
        return header.index(target)
    raise DataFileError(f"{file.name} has no column {target!r}; it has {header or 'no header line'}.")


def _labels(cells: list[str]) -> tuple[Array | NDArray[np.int64], tuple[str, ...]]:
    """Return numbers as they are, and words as the numbers of their sorted classes."""
    if all(_is_number(cell) for cell in cells):
        return np.array(cells, dtype=float), ()
    names, numbers = np.unique(cells, return_inverse=True)
    return numbers, tuple(map(str, names))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _choose(available: Iterable[str], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in available), None)
