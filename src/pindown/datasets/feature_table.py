"""A table of features with the names of its columns, as detectors need it.

The columns of two tables are matched by their names where both have them, else by position, and what was
decided is said in a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.errors import DataFileError

MOST_CELL = 60  # characters of a cell worth showing in a message
_MOST_NAMED = 5


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Rows of numbers.

    Attributes:
        file: Name of the file.
        X: The features (n, d); images keep their shape (n, ...).
        names: Names of the columns, or empty if the file has none.
        lines: Of each row, its line in the file, or its number from 1 where there are no lines.
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
    named = ", ".join(str(line) for line in table.lines[bad[:_MOST_NAMED]])
    more = f" and {len(bad) - _MOST_NAMED:,} more" if len(bad) > _MOST_NAMED else ""
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
    shown = ", ".join(repr(name[:MOST_CELL]) for name in names[:_MOST_NAMED])
    return f"{shown} and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else shown
