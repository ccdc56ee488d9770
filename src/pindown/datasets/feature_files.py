"""Tables of features with the names of their columns: CSV with or without a header, NPZ, NPY, Parquet.

Nothing is guessed in silence: what is not a number is named by line and column. The columns of two
tables are matched by their names where both have them, else by position, and what was decided is said in
a note.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.datasets._limits import MAX_CELL, MAX_FIRST_LINE, MAX_NAMED, MAX_NUMBERS, ROWS_AT_ONCE
from pindown.datasets.files import load_table, readable
from pindown.errors import DataFileError

_ENDINGS = (".csv", ".csv.gz", ".npz", ".npy", ".parquet")


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Rows of numbers.

    Attributes:
        file: Name of the file.
        X: The features (n, d); images keep their shape (n, ...).
        names: Names of the columns, or empty if the file has none.
        lines: The line of each row in the file, or its number from 1 where there are no lines.
        labels: The cells of the label column, or None.
        left_out: Columns that were left out, label column included.
        notes: What the reader decided and the user should know.
    """

    file: str
    X: NDArray[Any]
    names: tuple[str, ...]
    lines: NDArray[np.int64]
    labels: NDArray[Any] | None = None
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def n_features(self) -> int:
        """Numbers in a row."""
        return int(np.prod(self.X.shape[1:]))

    def __str__(self) -> str:
        return f"{self.file}: {len(self.X):,} rows of {self.n_features:,} features"


def load_features(
    path: str | PathLike[str],
    *,
    label: str | None = None,
    ignore: Sequence[str] = (),
    wanted: Sequence[str] = (),
) -> FeatureTable:
    r"""Read a table of features.

    Args:
        path: ``.csv`` or ``.csv.gz`` with or without a header line, ``.npz`` with an array X, ``.npy``,
            or ``.parquet`` if pandas and pyarrow are installed.
        label: Name of a column (or NPZ array) of labels: no feature, but kept.
        ignore: Names of columns to leave out; ``#3`` names the third column of a file without a header.
        wanted: If the file names all of these, its other columns are left out, words and all.

    Raises:
        DataFileError: If the file is missing, damaged, empty or too large, a column is not there, or a
            cell is missing or not a number.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.csv")
    ...     _ = path.write_text("width,height\n1,2\n3,4\n")
    ...     table = load_features(path)
    >>> table.names, table.X.tolist()
    (('width', 'height'), [[1.0, 2.0], [3.0, 4.0]])
    """
    file = Path(path)
    ending = next((e for e in _ENDINGS if file.name.lower().endswith(e)), None)
    if ending is None:
        raise DataFileError(f"data files end in {', '.join(_ENDINGS)}; got {file.name!r}.")
    if ending in (".npz", ".npy"):
        table = _from_arrays(file, label, ignore)
    else:
        with readable(file):
            table = (
                _from_csv(file, label, ignore, wanted)
                if ".csv" in ending
                else _from_parquet(file, label, ignore, wanted)
            )
    if len(table.X) == 0 or table.n_features == 0:
        raise DataFileError(f"{file.name} holds no rows of numbers.")
    check_finite(table)
    return table


def matched(table: FeatureTable, names: Sequence[str], n_features: int, model: str) -> FeatureTable:
    """Return the table with the columns that a model wants, in its order.

    Args:
        table: What was read.
        names: Columns the model was fitted on; empty if they had no names.
        n_features: Their number.
        model: What to call the model in messages.

    Raises:
        DataFileError: If columns are missing, too many without names, or too few.
    """
    if names and table.names:
        place = {name: j for j, name in enumerate(table.names)}
        missing = [name for name in names if name not in place]
        if missing:
            raise DataFileError(
                f"{table.file} lacks {listed(missing)} that {model} was fitted on; "
                f"it has {listed(table.names)}."
            )
        if tuple(names) == table.names:
            return table
        wanted = set(names)
        extra = [name for name in table.names if name not in wanted]
        order = [place[name] for name in names]
        note = f"columns put in the order of {model}" if not extra else f"left out {listed(extra)}"
        return replace(
            table,
            X=table.X[:, order],
            names=tuple(names),
            left_out=(*table.left_out, *extra),
            notes=(*table.notes, note),
        )
    if table.n_features != n_features:
        hint = " A column of labels? --label-column or --ignore-column leaves it out." * (
            table.n_features > n_features and table.X.ndim == 2
        )
        raise DataFileError(
            f"{table.file} has {table.n_features:,} features in a row, {model} was fitted on "
            f"{n_features:,}.{hint}"
        )
    if bool(names) != bool(table.names):
        which = model if names else table.file
        note = f"only {which} names its columns: they are taken in the order they have"
        return replace(table, notes=(*table.notes, note))
    return table


def check_finite(table: FeatureTable) -> None:
    """Refuse missing and infinite values, naming the lines and columns they are in."""
    rows = table.X.reshape(len(table.X), -1)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if not len(bad):
        return
    word = ("line" if ".csv" in table.file.lower() else "row") + "s" * (len(bad) > 1)
    named = ", ".join(str(line) for line in table.lines[bad[:MAX_NAMED]])
    more = f" and {len(bad) - MAX_NAMED:,} more" if len(bad) > MAX_NAMED else ""
    columns = np.flatnonzero(~np.isfinite(rows[bad]).all(axis=0))
    where = f" (in {listed([table.names[j] for j in columns])})" if table.names else ""
    raise DataFileError(
        f"{table.file}: missing or infinite values in {word} {named}{more}{where}; "
        "remove or fill them first."
    )


def listed(names: Sequence[str]) -> str:
    """Return some names as a message shows them.

    >>> listed(["a", "b"]), listed(list("abcdefg"))
    ("'a', 'b'", "'a', 'b', 'c', 'd', 'e' and 2 more")
    """
    shown = ", ".join(repr(name[:MAX_CELL]) for name in names[:MAX_NAMED])
    return f"{shown} and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else shown


def _from_arrays(file: Path, label: str | None, ignore: Sequence[str]) -> FeatureTable:
    if ignore:
        raise DataFileError(f"{file.name} has no named columns, so --ignore-column finds nothing in it.")
    table = load_table(file, label)
    X = table.X if table.X.ndim > 1 else table.X[:, None]
    left = () if table.y is None else (label or "y",)
    return FeatureTable(file.name, X, (), np.arange(1, len(X) + 1), table.y, left)


def _from_csv(
    file: Path, label: str | None, ignore: Sequence[str], wanted: Sequence[str]
) -> FeatureTable:
    opener = gzip.open if file.name.lower().endswith(".gz") else open
    with opener(file, "rt", newline="", encoding="utf-8-sig") as stream:
        reader = csv.reader(stream, delimiter=_delimiter(stream))
        numbered = ((reader.line_num, row) for row in reader if row)
        first = next(numbered, None)
        if first is None:
            raise DataFileError(f"{file.name} is empty.")
        header = first[1] if any(_is_word(cell) for cell in first[1]) else []
        names = [cell.strip() for cell in header] or [f"#{j + 1}" for j in range(len(first[1]))]
        label_at, kept = _columns(file.name, names, label, ignore, bool(header), wanted)
        body = numbered if header else _after(first, numbered)
        X, lines, labels = _numbers(file.name, body, names, kept, label_at)
    shown = tuple(names[j] for j in kept) if header else ()
    out = _others(names, kept)
    notes: tuple[str, ...] = ()
    if header and not all(_is_word(cell) for cell in header if cell.strip()):
        notes = ("line 1 holds words beside numbers: taken as the names of the columns",)
    if header and names[kept[0]] == "" and len(kept) > 1 and _counts(X[:, 0]):
        X, shown, out = X[:, 1:], shown[1:], ("", *out)
        notes = (*notes, "the first column has no name and counts the rows: left out")
    elif header and names[kept[-1]] == "" and len(kept) > 1 and np.isnan(X[:, -1]).all():
        X, shown, out = X[:, :-1], shown[:-1], (*out, "")
        notes = (*notes, "the last column has no name and no values: left out")
    return FeatureTable(file.name, X, shown, lines, labels, out, notes)


def _numbers(
    file: str,
    body: Iterator[tuple[int, list[str]]],
    names: list[str],
    kept: list[int],
    label_at: int | None,
) -> tuple[Array, NDArray[np.int64], NDArray[Any] | None]:
    """Read rows in chunks, so that text never takes more memory than the numbers do."""
    chunks: list[Array] = []
    lines: list[int] = []
    labels: list[str] = []
    waiting: list[list[str]] = []

    def convert() -> None:
        try:
            chunks.append(np.array(waiting, dtype=np.float64))
        except ValueError:
            chunks.append(_one_by_one(file, waiting, lines[-len(waiting) :], [names[j] for j in kept]))
        waiting.clear()

    for line, row in body:
        if len(row) != len(names):
            raise DataFileError(f"{file} line {line} has {len(row)} cells, line 1 has {len(names)}.")
        waiting.append([row[j] for j in kept])
        lines.append(line)
        if label_at is not None:
            labels.append(row[label_at].strip())
        if len(lines) * len(kept) > MAX_NUMBERS:
            raise DataFileError(f"{file} holds more than {MAX_NUMBERS:,} numbers; take a part of it.")
        if len(waiting) == ROWS_AT_ONCE:
            convert()
    if waiting:
        convert()
    if not chunks:
        raise DataFileError(f"{file} has a header line and no rows.")
    return np.vstack(chunks), np.array(lines), None if label_at is None else np.array(labels)


def _one_by_one(file: str, rows: list[list[str]], lines: list[int], names: list[str]) -> Array:
    """Convert a chunk that holds empty cells (missing values) or words (refused, all columns named)."""
    found = np.empty((len(rows), len(names)))
    words: dict[str, tuple[int, str]] = {}
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            if _is_word(cell):
                words.setdefault(names[j], (lines[i], cell.strip()))
                found[i, j] = np.nan
            else:
                found[i, j] = float(cell) if cell.strip() else np.nan
    if words:
        name, (line, cell) = next(iter(words.items()))
        shown = cell if len(cell) <= MAX_CELL else f"{cell[:MAX_CELL]}..."
        raise DataFileError(
            f"{file}: not numbers: {listed(list(words))} (line {line}, {name!r}: {shown!r}); "
            "--ignore-column leaves a column out, or code it as numbers first."
        )
    return found


def _from_parquet(
    file: Path, label: str | None, ignore: Sequence[str], wanted: Sequence[str]
) -> FeatureTable:
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ImportError:
        raise DataFileError(f"{file.name}: reading Parquet needs pandas and pyarrow.") from None
    try:
        frame = pd.read_parquet(file)
    except ImportError:
        raise DataFileError(f"{file.name}: reading Parquet needs pyarrow beside pandas.") from None
    names = [str(name) for name in frame.columns]
    label_at, kept = _columns(file.name, names, label, ignore, True, wanted)
    words = [names[j] for j in kept if frame.dtypes.iloc[j].kind not in "biuf"]
    if words:
        raise DataFileError(
            f"{file.name}: not numbers: {listed(words)}; --ignore-column leaves a column out."
        )
    if len(frame) * len(kept) > MAX_NUMBERS:
        raise DataFileError(f"{file.name} holds more than {MAX_NUMBERS:,} numbers; take a part of it.")
    X = frame.iloc[:, kept].to_numpy(dtype=np.float64)
    labels = None if label_at is None else frame.iloc[:, label_at].to_numpy()
    out = _others(names, kept)
    return FeatureTable(
        file.name, X, tuple(names[j] for j in kept), np.arange(1, len(X) + 1), labels, out
    )


def _columns(
    file: str,
    names: list[str],
    label: str | None,
    ignore: Sequence[str],
    named: bool,
    wanted: Sequence[str],
) -> tuple[int | None, list[int]]:
    """Return the position of the label column and the positions of the features."""
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise DataFileError(f"{file}: the header names {listed(twice)} more than once.")
    known, unwanted = set(names), {*ignore, *([] if label is None else [label])}
    for name in (*ignore, *([] if label is None else [label])):
        if name not in known:
            has = listed(names) if named else f"no header; its columns are #1 to #{len(names)}"
            raise DataFileError(f"{file} has no column {name!r}; it has {has}.")
    if named and wanted and known.issuperset(wanted):
        unwanted |= known.difference(wanted)
    kept = [j for j, name in enumerate(names) if name not in unwanted]
    if not kept:
        raise DataFileError(f"{file}: no column is left as a feature.")
    return (None if label is None else names.index(label)), kept


def _others(names: list[str], kept: list[int]) -> tuple[str, ...]:
    """Return the names of the columns that were not kept."""
    taken = set(kept)
    return tuple(name for j, name in enumerate(names) if j not in taken)


def _delimiter(stream: Any) -> str:
    """Return what parts the cells of the first line: a comma, else a semicolon, else a tab."""
    first = stream.readline(MAX_FIRST_LINE)
    stream.seek(0)
    bare = re.sub(r'"[^"]*"', "", first)  # what stands in quotes parts nothing
    return next((mark for mark in ",;\t" if mark in bare), ",")


def _is_word(cell: str) -> bool:
    text = cell.strip()
    if not text:
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def _counts(column: Array) -> bool:
    """Whether a column is 0, 1, 2, ... or 1, 2, 3, ..., as programs that write tables put in front."""
    return len(column) > 1 and column[0] in (0.0, 1.0) and bool((np.diff(column) == 1.0).all())


def _after(first: tuple[int, list[str]], rest: Iterator[tuple[int, list[str]]]) -> Iterator[Any]:
    yield first
    yield from rest
