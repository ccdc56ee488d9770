"""How the network bends around and between the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.evidence import Assumption
from pindown.findings.finding import Entry, Finding, Quantity, Table
from pindown.findings.pictures import Histogram, Mark
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import chunk_rows
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    MAX_PATTERN_ROWS,
    PAIRS_OF_ROWS,
    PATTERN_SHARE,
    SEGMENT_SHARE,
)
from pindown.findings.which_function._cells import require_sane
from pindown.findings.which_function._segments import walked
from pindown.findings.wording import count, number_text


@question(
    "GEO-04",
    "Cells around the data",
    group="which",
    needs=("data", "relus"),
    about="How many cells hold the data, and how many lie on the way from one row to another, of the "
    "same or of another class.",
    cost=(0.5, 2),
    place=17,
)
def cells_around_data(subject: Subject) -> Finding:
    """Count cells that hold data and cells between data."""
    assert subject.data is not None
    X = subject.data.X
    if np.array_equal(X, np.broadcast_to(X[0], X.shape)):
        raise NotApplicable("all rows are equal")
    require_sane(subject.net, Box.around(X))
    pairs, same = _pairs(subject)
    cells, pieces, lengths = _between(subject, X, pairs)
    same = None if same is None else same[: len(cells)]
    held, most, n = _holding_data(subject)
    mean = float(cells.mean())
    error = float(cells.std(ddof=1) / np.sqrt(len(cells))) if len(cells) > 1 else None
    size = subject.net.size
    return Finding(
        verdict=f"{n:,} rows lie in {count(held, 'cell')}, at most {most:,} in one; "
        f"the way between two rows crosses {number_text(round(mean, 1), 'cells')}",
        number=Quantity(
            mean, "estimate", "cells", standard_error=error, n=len(cells), label="between two rows"
        ),
        hypotheses=(
            Assumption(f"every cell on each segment is found; {_drawn(same)}", "checked"),
            Assumption("signs as float64 evaluation gives them"),
        ),
        reading="Rows in one cell are treated by one affine map. On the straight way from one row to "
        "another the network is a line graph with a corner where it enters the next cell; many cells "
        "between rows of one class mean that it bends where the data do not ask for it.",
        scale=f"1 means that no unit switches on the way. The network has {count(size, 'unit')}; a unit "
        "of the first layer switches at most once on a segment, and for random weights the number of "
        "cells on it grows like the number of units, not exponentially (Hanin, Rolnick 2019).",
        figure=_histogram(cells),
        table=_table(cells, pieces, lengths, same),
        sentence=f"The straight way from one row of the {subject.data.name} to another crosses "
        f"{number_text(round(mean, 1), 'cells')} in the mean; {n:,} rows lie in {count(held, 'cell')}.",
    )


def _drawn(same: NDArray[np.bool_] | None) -> str:
    if same is None or same.all() or not same.any():
        return "the pairs of rows are random"
    return f"pairs of rows are random, {int(same.sum()):,} of {len(same):,} drawn from one class"


def _pairs(subject: Subject) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Return random pairs of rows, half of them of one class if there are classes."""
    assert subject.data is not None
    n, rng = len(subject.data), subject.rng("GEO-04")
    first = rng.integers(0, n, 50 * PAIRS_OF_ROWS)
    second = (first + rng.integers(1, n, 50 * PAIRS_OF_ROWS)) % n
    pairs = np.stack([first, second], axis=1)
    pairs = pairs[(subject.data.X[first] != subject.data.X[second]).any(axis=1)] if n < 1000 else pairs
    targets = subject.data.targets
    if targets is None or not targets.is_classification:
        return _unequal(subject.data.X, pairs[:PAIRS_OF_ROWS]), None
    same = targets.values[pairs[:, 0]] == targets.values[pairs[:, 1]]
    halves = [np.flatnonzero(same == kind)[: PAIRS_OF_ROWS // 2] for kind in (True, False)]
    chosen = rng.permutation(np.concatenate(halves))  # in random order, should time run out
    pairs = _unequal(subject.data.X, pairs[chosen])
    return pairs, targets.values[pairs[:, 0]] == targets.values[pairs[:, 1]]


def _unequal(X: Array, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pairs whose rows differ: between equal ones there is no way."""
    differ = (X[pairs[:, 0]] != X[pairs[:, 1]]).any(axis=1)
    if not differ.any():
        raise NotApplicable("the rows that were drawn are all equal")
    return pairs[differ]


def _between(
    subject: Subject, X: Array, pairs: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Return cells, pieces and lengths of segments, as many as the time allows."""
    found = walked(subject, X[pairs[:, 0]], X[pairs[:, 1]], SEGMENT_SHARE)
    cells = np.concatenate([part.n_cells for part in found])
    pieces = np.concatenate([part.n_pieces for part in found])
    seen = pairs[: len(cells)]
    return cells, pieces, np.linalg.norm(X[seen[:, 0]] - X[seen[:, 1]], axis=1)


def _holding_data(subject: Subject) -> tuple[int, int, int]:
    """Return in how many cells rows lie, how many in the fullest, and how many rows were looked at."""
    assert subject.data is not None
    X, net = subject.data.X, subject.net
    rows = np.sort(subject.rng("GEO-04 rows").permutation(len(X))[:MAX_PATTERN_ROWS])
    until, step = subject.turn.share(PATTERN_SHARE), chunk_rows(net)
    found: list[NDArray[np.uint8]] = []
    for start in range(0, len(rows), step):
        if found and until.passed:
            break
        found.append(np.packbits(net.pattern(X[rows[start : start + step]]), axis=1))
    bits = np.ascontiguousarray(np.concatenate(found))
    _, counts = np.unique(bits.view(f"V{bits.shape[1]}"), return_counts=True)
    return len(counts), int(counts.max()), len(bits)


def _table(
    cells: NDArray[np.int64],
    pieces: NDArray[np.int64],
    lengths: Array,
    same: NDArray[np.bool_] | None,
) -> Table:
    groups = {"all pairs": np.ones(len(cells), dtype=bool)}
    if same is not None:
        groups |= {"same class": same, "different classes": ~same}
    rows: list[tuple[Entry, ...]] = [
        (
            name,
            int(own.sum()),
            float(cells[own].mean()),
            float(np.median(cells[own])),
            float(pieces[own].mean()),
            float(lengths[own].mean()),
            float(cells[own].sum() / lengths[own].sum()),
        )
        for name, own in groups.items()
        if own.any()
    ]
    columns = (
        "rows",
        "pairs",
        "mean cells",
        "median",
        "mean pieces",
        "mean distance",
        "cells per length",
    )
    return Table("Cells on the way between two rows", columns, tuple(rows))


def _histogram(cells: NDArray[np.int64]) -> Histogram | None:
    low, high = int(cells.min()), int(cells.max())
    if low == high:
        return None
    bins = min(high - low + 1, 20)
    counts, edges = np.histogram(cells, bins=bins, range=(low - 0.5, high + 0.5))
    return Histogram(
        "Number of cells on the straight way between two rows",
        tuple(edges.tolist()),
        tuple(counts.tolist()),
        "cells on the way",
        "pairs of rows",
        marks=(Mark(round(float(cells.mean()), 1), "mean"),),
    )
