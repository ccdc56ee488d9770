"""Tables as people have them: gaps, categories, booleans, dates, decimal commas, identifiers.

A file is read as text, every column gets a kind from what stands in it, and a :class:`TableEncoding`
turns cells into numbers. Nothing is guessed in silence: every choice is a note, can be overridden by
naming a kind, and is stored with whatever was learned, so that new files are read in the same way. A
cell that fits its column's kind in no way is refused with its line and column.

=========  ======================================================================================
number     floating point; with decimal commas, thousands, currency or per cent signs if all have them
boolean    true and false, yes and no: 1 and 0
date       days since 1970, with fractions
category   one feature for each frequent value, one for all others
ignore     left out: identifiers, free text, empty columns
=========  ======================================================================================

Missing cells take the median, and a feature of their own says so where training rows had some.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pindown.datasets._limits import MAX_CELL, MAX_CSV_CHARACTERS, MAX_NUMBERS
from pindown.datasets.feature_files import FeatureTable, listed
from pindown.datasets.files import readable
from pindown.errors import DataFileError

ColumnKind = Literal["number", "boolean", "date", "category", "ignore"]
KINDS: tuple[ColumnKind, ...] = get_args(ColumnKind)
TEXT_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt")

MAX_LEVELS = 20  # of a category that get a feature of their own
FREE_TEXT_SHARE = 0.5  # of different values, above which text is no category
MIN_ROWS_TO_TELL = 20  # rows below which different values say nothing about identifiers
NEARLY_ALL = 0.9  # of a column that is of one kind: the others are mistakes
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-", "--", "#n/a", "."}
_TRUE, _FALSE = {"true", "yes", "y", "t"}, {"false", "no", "n", "f"}
_IDENTIFIER = re.compile(r"(^|[_\s])(id|uuid|guid|key|index)$|^row|Id$|ID$")
_ENGLISH = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?([eE][+-]?\d+)?")
_UNIT = re.compile(r"^[$€£]\s*|\s*[$€£%]$")
_DAY = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})([ T].*)?")


@dataclass(frozen=True)
class Column:
    """How one column becomes features.

    Attributes:
        name: Name of the column in the file.
        kind: What its cells are.
        form: How numbers and dates are written.
        fill: What a missing number or date becomes: the median of the training rows.
        gaps: Whether training rows had missing cells, which then have a feature.
        levels: Values of a category that have a feature of their own.
    """

    name: str
    kind: ColumnKind
    form: str = ""
    fill: float = 0.0
    gaps: bool = False
    levels: tuple[str, ...] = ()

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        if self.kind == "ignore":
            return []
        gap = [f"{self.name} missing"] if self.gaps else []
        if self.kind == "category":
            return [*(f"{self.name}={level}" for level in self.levels), f"{self.name}=other", *gap]
        return [self.name, *gap]

    def shown(self, features: NDArray[Any]) -> str:
        """Return the cell that made the features, as a person would write it."""
        if self.gaps and features[-1]:
            return "missing"
        if self.kind == "category":
            return [*self.levels, "another value", "missing"][int(np.argmax(features))]
        if self.kind == "boolean":
            return "yes" if features[0] else "no"
        if self.kind == "date":
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=float(features[0]))
            return moment.strftime("%Y-%m-%d" if features[0] % 1 == 0 else "%Y-%m-%d %H:%M")
        return f"{features[0]:.6g}"


@dataclass(frozen=True)
class TableEncoding:
    """How the columns of a file become features; what :func:`load_mixed` found out.

    Attributes:
        columns: One for each column that was there, labels apart.
    """

    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, all different."""
        found: list[str] = []
        for column in self.columns:
            for name in column.features:
                while name in found:
                    name += "'"  # noqa: PLW2901
                found.append(name)
        return tuple(found)

    @property
    def groups(self) -> list[tuple[Column, list[int]]]:
        """The columns that have features, each with their numbers."""
        found, start = [], 0
        for column in self.columns:
            width = len(column.features)
            if width:
                found.append((column, list(range(start, start + width))))
            start += width
        return found

    def as_dict(self) -> list[dict[str, Any]]:
        """Return it as JSON has it."""
        return [asdict(column) for column in self.columns]

    @classmethod
    def from_dict(cls, columns: Any) -> TableEncoding:
        """Return what :meth:`as_dict` gave, checked: files are untrusted.

        Raises:
            ValueError: If it is anything else.
        """
        made = []
        for given in columns:
            column = Column(**{**given, "levels": tuple(given["levels"])})
            texts = (column.name, column.form, *column.levels)
            fine = column.kind in KINDS and isinstance(column.gaps, bool)
            if not fine or not all(isinstance(text, str) for text in texts):
                raise ValueError("a column of the table's encoding is damaged")
            if column.kind in ("number", "date") and column.form not in _FORMS[column.kind]:
                raise ValueError(f"there is no form {column.form!r} of a {column.kind}")
            if not math.isfinite(column.fill):
                raise ValueError("a column's median is not finite")
            made.append(column)
        if len({column.name for column in made}) != len(made) or not any(c.features for c in made):
            raise ValueError(
                "the columns of the table's encoding are not all different, or none is left"
            )
        return cls(tuple(made))


@dataclass(frozen=True)
class _RawTable:
    """A file as text."""

    file: str
    names: list[str]
    columns: list[list[str]]
    lines: list[int]
    delimiter: str
    notes: list[str] = field(default_factory=list)

    def place(self, row: int, name: str) -> str:
        unit = "row" if self.file.lower().endswith(".parquet") else "line"
        return f"{self.file} {unit} {self.lines[row]}, column {name!r}"


def load_mixed(
    path: str | PathLike[str],
    *,
    label: str | None = None,
    ignore: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    encoding: TableEncoding | None = None,
) -> tuple[FeatureTable, TableEncoding]:
    r"""Read a table of mixed columns as features, and return how.

    Args:
        path: CSV or TSV (also gzipped; commas, semicolons, tabs or bars between cells; UTF-8, UTF-16 or
            Windows-1252), or Parquet.
        label: Name of a column of labels: no feature, but kept.
        ignore: Columns to leave out.
        kinds: Kinds of columns that are not to be guessed.
        encoding: How an earlier file was read, to read this one alike.

    Raises:
        DataFileError: If the file cannot be read, with line and column where a cell is at fault.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.csv")
    ...     _ = path.write_text("width,colour\n1,red\n3,blue\n5,red\n")
    ...     table, how = load_mixed(path)
    >>> table.X.tolist()
    [[1.0, 1.0, 0.0, 0.0], [3.0, 0.0, 1.0, 0.0], [5.0, 1.0, 0.0, 0.0]]
    """
    file = Path(path)
    wanted = dict(kinds or {})
    with readable(file):
        cells = _from_parquet(file) if file.name.lower().endswith(".parquet") else _from_text(file)
    known = set(cells.names)
    for name in (*ignore, *wanted, *([] if label is None else [label])):
        if name not in known:
            raise DataFileError(f"{cells.file} has no column {name!r}; it has {listed(cells.names)}.")
    for name, kind in wanted.items():
        if kind not in KINDS:
            raise DataFileError(f"{name}: there is no kind {kind!r} of column; {', '.join(KINDS)} are.")
    left = {*ignore, *([] if label is None else [label])}
    notes = list(cells.notes)
    if encoding is None:
        found = [
            _column(cells, name, values, wanted.get(name), notes)
            for name, values in zip(cells.names, cells.columns, strict=True)
            if name not in left
        ]
        encoding = TableEncoding(tuple(found))
        if not encoding.names:
            raise DataFileError(f"{cells.file}: no column is left as a feature ({'; '.join(notes)}).")
    lacking = [c.name for c in encoding.columns if c.features and c.name not in known]
    if lacking:
        raise DataFileError(f"{cells.file} lacks {listed(lacking)}; it has {listed(cells.names)}.")
    if len(encoding.names) * len(cells.lines) > MAX_NUMBERS:
        raise DataFileError(f"{cells.file} holds more than {MAX_NUMBERS:,} numbers; take a part of it.")
    by_name = dict(zip(cells.names, cells.columns, strict=True))
    parts = [_features(cells, column, by_name[column.name], notes) for column, _ in encoding.groups]
    used = {column.name for column, _ in encoding.groups}
    table = FeatureTable(
        cells.file,
        np.concatenate(parts, axis=1),
        encoding.names,
        np.array(cells.lines, dtype=np.int64),
        None if label is None else np.array([v.strip() for v in by_name[label]]),
        tuple(name for name in cells.names if name not in used),
        tuple(notes),
    )
    return table, encoding


# ---------------------------------------------------------------------- text


def _from_text(file: Path) -> _RawTable:
    data = file.read_bytes()
    if file.name.lower().endswith(".gz"):
        with gzip.open(io.BytesIO(data)) as stream:
            data = stream.read(MAX_CSV_CHARACTERS + 1)
    if len(data) > MAX_CSV_CHARACTERS:
        raise DataFileError(f"{file.name} is too large; take a part of it.")
    notes = []
    try:
        wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
        notes.append("not in UTF-8: read as Windows-1252")
    delimiter = _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    for row in reader:
        if any(cell.strip() for cell in row):
            rows.append(row)
            lines.append(reader.line_num)
    if not rows:
        raise DataFileError(f"{file.name} is empty.")
    width = len(rows[0])
    for line, row in zip(lines, rows, strict=True):
        if len(row) == width + 1 and not row[-1].strip():
            row.pop()  # a delimiter at the end of a line
        if len(row) != width:
            raise DataFileError(f"{file.name} line {line} has {len(row)} cells, line 1 has {width}.")
    first = [cell.strip() for cell in rows[0]]
    if _is_header(first):
        names, rows, lines = first, rows[1:], lines[1:]
        names = [name or f"#{j + 1}" for j, name in enumerate(names)]
    else:
        names = [f"#{j + 1}" for j in range(width)]
        notes.append("line 1 holds values: columns are called #1, #2, ...")
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise DataFileError(f"{file.name}: the header names {listed(twice)} more than once.")
    if not rows:
        raise DataFileError(f"{file.name} has a header line and no rows.")
    columns = [list(column) for column in zip(*rows, strict=True)]
    return _RawTable(file.name, names, columns, lines, delimiter, notes)


def _is_header(cells: list[str]) -> bool:
    """Whether a first line names columns: it has words, and nothing that is a value."""
    words = [cell for cell in cells if cell]
    values = (("number", "point"), ("number", "comma"), ("date", "iso"))
    return bool(words) and all(
        _READERS[kind](cell, form) is None for cell in words for kind, form in values
    )


def _delimiter(text: str) -> str:
    """Return what parts the cells: the first of tab, semicolon, bar that all first lines have alike."""
    head = [line for line in text[: 2**16].splitlines()[:20] if line.strip()]
    if len(head) == 20 or len(text) > 2**16:
        head = head[:-1] or head
    for mark in "\t;|":
        counts = {len(row) for row in csv.reader(head, delimiter=mark)}
        if len(counts) == 1 and counts.pop() > 1:
            return mark
    return ","


def _from_parquet(file: Path) -> _RawTable:
    try:
        import pandas as pd  # type: ignore[import-untyped]

        frame = pd.read_parquet(file)
    except ImportError:
        raise DataFileError(f"{file.name}: reading Parquet needs pandas and pyarrow.") from None
    columns = []
    for _, values in frame.items():
        missing = values.isna().to_numpy()
        texts = [
            "" if gone else value.isoformat() if hasattr(value, "isoformat") else str(value)
            for value, gone in zip(values.tolist(), missing, strict=True)
        ]
        columns.append(texts)
    names = [str(name) for name in frame.columns]
    return _RawTable(file.name, names, columns, list(range(1, len(frame) + 1)), ",")


# ---------------------------------------------------------------------- kinds


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in _MISSING


def _number(cell: str, form: str) -> float | None:
    """Return a finite number, or None.

    >>> _number("1.234,5", "comma"), _number("$1,234", "english"), _number("x", "point")
    (1234.5, 1234.0, None)
    """
    text = _UNIT.sub("", cell.strip()).replace("\u00a0", "")
    if form == "comma":
        if not _COMMA.fullmatch(text):
            return None
        text = text.replace(".", "").replace(",", ".")
    elif form == "english" and _ENGLISH.fullmatch(text):
        text = text.replace(",", "")
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _boolean(cell: str, _form: str = "") -> float | None:
    word = cell.strip().lower()
    return 1.0 if word in _TRUE | {"1", "1.0"} else 0.0 if word in _FALSE | {"0", "0.0"} else None


def _date(cell: str, form: str) -> float | None:
    """Return days since 1970, or None.

    >>> _date("1970-01-02", "iso"), _date("02/01/1970", "day first"), _date("2/1/1970", "month first")
    (1.0, 1.0, 31.0)
    """
    text = cell.strip()
    if form != "iso":
        match = _DAY.fullmatch(text)
        if match is None:
            return None
        day, _, month, year, rest = match.groups()
        if form == "month first":
            day, month = month, day
        text = f"{year}-{month:>02}-{day:>02}{rest or ''}"
    elif not re.match(r"\d{4}-\d{2}", text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86400


_FORMS: dict[str, tuple[str, ...]] = {
    "number": ("point", "comma", "english"),
    "date": ("iso", "day first", "month first"),
    "boolean": ("",),
}
_READERS: dict[str, Callable[[str, str], float | None]] = {
    "number": _number,
    "date": _date,
    "boolean": _boolean,
}


def _column(
    cells: _RawTable, name: str, values: list[str], asked: str | None, notes: list[str]
) -> Column:
    """Find out what a column holds."""
    there = [(i, cell.strip()) for i, cell in enumerate(values) if not _is_missing(cell)]
    gaps = len(there) < len(values)
    if asked == "ignore" or not there:
        notes.append(f"{name!r} is left out: {'asked for' if there or asked else 'it has no values'}")
        return Column(name, "ignore")
    for _, cell in there:
        if re.fullmatch(r"[+-]?inf(inity)?", cell.lower()):
            row = next(i for i, c in there if c == cell)
            raise DataFileError(f"{cells.place(row, name)}: infinite values are no data.")
    kind, form = (asked, _best_form(asked, there, cells)) if asked else _kind(cells, name, there, notes)
    if asked is None and (why := _identifier(name, [cell for _, cell in there], kind, form)):
        notes.append(f"{name!r} is left out: {why} (--column {name}=category or =number keeps it)")
        return Column(name, "ignore")
    distinct = Counter(cell for _, cell in there)
    if len(distinct) == 1:
        notes.append(f"{name!r} is the same in all rows that have it: {there[0][1][:MAX_CELL]!r}")
    if kind == "category":
        levels = tuple(level for level, _ in distinct.most_common(MAX_LEVELS))
        rest = f", {len(distinct) - len(levels)} rarer ones together" * (len(distinct) > len(levels))
        notes.append(f"{name!r} is a category of {len(levels)} values{rest}{_gaps(values, there)}")
        return Column(name, "category", gaps=gaps, levels=levels)
    numbers = [_value(cells, name, kind, form, i, cell) for i, cell in there]
    how = {"comma": " with decimal commas", "english": " with commas between thousands"}.get(form, "")
    how = how or (f", {form}" if kind == "date" else "")
    if kind != "number" or how or gaps or asked:
        notes.append(f"{name!r} is a {kind}{how}{_gaps(values, there)}")
    fill = float(np.median(numbers)) if kind != "boolean" else 0.0
    return Column(name, kind, form, fill, gaps)  # type: ignore[arg-type]


def _gaps(values: list[str], there: list[tuple[int, str]]) -> str:
    missing = len(values) - len(there)
    return f", {missing:,} missing" * (missing > 0)


def _kind(
    cells: _RawTable, name: str, there: list[tuple[int, str]], notes: list[str]
) -> tuple[str, str]:
    """Return the kind that all cells are of, else a category; refuse a column with a few mistakes."""
    words = {cell.lower() for _, cell in there}
    if words <= _TRUE | _FALSE and words & _TRUE | words & _FALSE:
        return "boolean", ""
    for kind in ("number", "date"):
        form = _best_form(kind, there, cells)
        read = _READERS[kind]
        wrong = [(i, cell) for i, cell in there if read(cell, form) is None]
        if not wrong:
            if kind == "date" and form == "day first" and not _day_is_sure(there):
                notes.append(f"{name!r}: days and months cannot be told apart; read as day first")
            return kind, form
        if len(there) >= MIN_ROWS_TO_TELL and len(wrong) <= (1 - NEARLY_ALL) * len(there):
            row, cell = wrong[0]
            raise DataFileError(
                f"{cells.place(row, name)}: {cell[:MAX_CELL]!r} is no {kind}, nearly all others are; "
                f"mend it, or say what the column is: --column {name}=category."
            )
    return "category", ""


def _best_form(kind: str, there: list[tuple[int, str]], cells: _RawTable) -> str:
    """Return the way of writing that most cells have; a comma parts decimals if it parts no cells."""
    forms = _FORMS.get(kind, ("",))
    if kind not in _READERS:
        return ""
    if kind == "number" and cells.delimiter == ",":
        forms = ("point", "english", "comma")
    read = _READERS[kind]
    return max(forms, key=lambda form: sum(read(cell, form) is not None for _, cell in there))


def _day_is_sure(there: list[tuple[int, str]]) -> bool:
    return any(_date(cell, "month first") is None or "." in cell for _, cell in there)


def _identifier(name: str, cells: list[str], kind: str, form: str) -> str:
    """Return why a column says who a row is instead of what it is like, or an empty text."""
    if len(cells) < MIN_ROWS_TO_TELL:
        return ""
    distinct = len(set(cells))
    if kind == "category" and distinct > FREE_TEXT_SHARE * len(cells):
        return f"{distinct:,} different values in {len(cells):,} rows, an identifier or free text"
    if kind == "number" and distinct == len(cells):
        numbers = np.array([_number(cell, form) for cell in cells], dtype=float)
        whole = bool((numbers == np.round(numbers)).all())
        if whole and (np.diff(numbers) == 1).all():
            return "it counts the rows"
        if whole and _IDENTIFIER.search(name):
            return "an identifier by its name, with different whole numbers"
    return ""


# ---------------------------------------------------------------------- features


def _value(cells: _RawTable, name: str, kind: str, form: str, row: int, cell: str) -> float:
    value = _READERS[kind](cell, form)
    if value is None:
        raise DataFileError(f"{cells.place(row, name)}: {cell[:MAX_CELL]!r} is no {kind}.")
    return value


def _features(
    cells: _RawTable, column: Column, values: list[str], notes: list[str]
) -> NDArray[np.float64]:
    """Return the features of one column, (n, features)."""
    missing = np.array([_is_missing(cell) for cell in values])
    if missing.any() and not column.gaps:
        notes.append(
            f"{column.name!r} has {int(missing.sum()):,} missing cells, training rows had none: "
            "they take the median"
            * (column.kind != "category")
            + "they count as other values" * (column.kind == "category")
        )
    if column.kind == "category":
        place = {level: j for j, level in enumerate(column.levels)}
        made = np.zeros((len(values), len(column.features)))
        new = 0
        for i, cell in enumerate(values):
            if missing[i]:
                made[i, -1] = 1.0
            else:
                at = place.get(cell.strip(), len(place))
                made[i, at] = 1.0
                new += at == len(place)
        if new and len(place) < MAX_LEVELS:
            notes.append(f"{column.name!r} has {new:,} cells with values that training rows had not")
        return made
    numbers = [
        column.fill if gone else _value(cells, column.name, column.kind, column.form, i, cell)
        for i, (cell, gone) in enumerate(zip(values, missing, strict=True))
    ]
    return np.stack([np.array(numbers), *([missing.astype(float)] if column.gaps else [])], axis=1)
