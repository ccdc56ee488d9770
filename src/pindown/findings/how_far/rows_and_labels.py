"""Whether the rows and labels can be trusted: duplicates, leaks, suspicious labels.

Equal rows are found by a short digest of each, and every match is compared number by number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.evidence import Assumption
from pindown.findings.finding import Entry, Finding, Quantity, Table
from pindown.findings.how_far.accuracy import wilson_interval
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import Sample, Targets, predicted_classes
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    LABEL_ROWS,
    METRIC_ROWS,
    MIN_LABEL_ROWS,
    NEIGHBOUR_SHARE,
    NEIGHBOURS,
    NEIGHBOURS_AGREEING,
    NEIGHBOURS_WITH_LABEL,
    ROWS_OF_A_LOOK,
    SURE_IN_STANDARD_ERRORS,
    SUSPECTS_SHOWN,
)
from pindown.findings.wording import count, percent
from pindown.network import row_chunks


@question(
    "DAT-01",
    "Duplicate rows",
    group="how far",
    needs=("data",),
    about="Rows of the test data that are also rows of the data, rows that come twice, and equal rows "
    "with different labels.",
    cost=(0.1, 0),
)
def duplicate_rows(subject: Subject) -> Finding:
    """Look for equal rows."""
    data, test = subject.data, subject.test
    assert data is not None
    first = first_equal(data.X, subject.turn.audit.check)
    n_rows = len(first)
    again = int(np.count_nonzero(first != np.arange(n_rows)))
    conflicts = _conflicts(first, data.targets)
    twice = f"{count(again, 'row')} of {n_rows:,} of the {data.name} {_come(again)} again"
    differ = f"; {count(conflicts, 'row')} with another label" if conflicts else ""
    if test is None:
        share = again / n_rows
        return Finding(
            verdict=twice + differ,
            number=Quantity(share, "exact", "%", label="rows that come again"),
            hypotheses=(_EQUAL,),
            reading=_TWICE,
            scale="0% is usual for measurements; tables of few categories repeat themselves.",
            facts={"again": share, "conflicts": float(conflicts)},
        )
    leaked = are_among(test.X, data.X, subject.turn.audit.check)
    share, n = float(leaked.mean()), int(leaked.sum())
    return Finding(
        verdict=f"{count(n, 'row')} of {len(test):,} of the test data ({percent(share)}) "
        f"{'is' if n == 1 else 'are'} also in the data; {twice}{differ}",
        number=Quantity(share, "exact", "%", label="of the test data are rows of the data"),
        hypotheses=(_EQUAL,),
        reading="A test row that training has seen says nothing about new ones: accuracy is then too "
        f"hopeful. {_TWICE}{_without(subject, leaked)}",
        scale="0% is what a test needs. In tables of few categories some rows coincide by chance.",
        table=_leaked_rows(leaked) if n else None,
        sentence=f"{percent(share)} of the test data are also rows of the data." if n else "",
        facts={"leaked": share, "leaked_count": float(n), "again": again / n_rows,
               "conflicts": float(conflicts)},
    )  # fmt: skip


_EQUAL = Assumption("rows count as equal if all numbers are", "checked")
_TWICE = "Rows that come again count twice in everything that is averaged."


def _come(n: int) -> str:
    return "comes" if n == 1 else "come"


def _conflicts(first: NDArray[np.intp], targets: Targets | None) -> int:
    """Return how many rows have another label than the first equal one."""
    if targets is None or not targets.is_classification:
        return 0
    return int(np.count_nonzero(targets.values != targets.values[first]))


def _without(subject: Subject, leaked: NDArray[np.bool_]) -> str:
    test = subject.test
    if test is None or test.targets is None or not test.targets.is_classification:
        return ""
    if leaked.all() or not leaked.any():
        return ""
    observed = subject.observe(test)
    right = predicted_classes(observed.outputs) == test.targets.take(observed.rows).values
    seen = leaked[observed.rows]
    if seen.all() or not seen.any():
        return ""
    return (
        f" On these test rows it is right on {percent(float(right[seen].mean()))}, on the others on "
        f"{percent(float(right[~seen].mean()))}."
    )


def _leaked_rows(leaked: NDArray[np.bool_]) -> Table:
    shown = np.flatnonzero(leaked)[:SUSPECTS_SHOWN]
    return Table("Test rows that are in the data (numbered from 0)", ("row",),
                 tuple((int(i),) for i in shown))  # fmt: skip


class _Suspects(NamedTuple):
    """Rows whose neighbours have another label.

    Attributes:
        rows: Which.
        others: Their neighbours' labels.
        n: How many were looked at.
        measure: How inputs were compared, in words.
        trusted: How many more there were, of which the network has the label without having seen it.
    """

    rows: NDArray[np.intp]
    others: NDArray[np.intp]
    n: int
    measure: str
    trusted: int = 0


@question(
    "DAT-02",
    "Suspicious labels",
    group="how far",
    needs=("labels",),
    about="Rows whose nearest neighbours nearly all have another label, as mislabelled rows have; which "
    "they are, and what the network says of them.",
    cost=(0.3, 2),
)
def suspicious_labels(subject: Subject) -> Finding:
    """Compare labels with those of neighbours."""
    labelled = [s for s in (subject.test, subject.data) if s is not None and s.targets is not None]
    if not any(s.targets.is_classification for s in labelled if s.targets is not None):
        raise NotApplicable("the targets are real values: there are no labels to doubt")
    several = [s for s in labelled if s.targets is not None and len(np.unique(s.targets.values)) > 1]
    if not several:
        raise NotApplicable("all rows are of one class")
    looked = [(_suspects(subject, s), s) for s in several]
    # Where the network has the labels of rows that it has not seen, it is neighbours that mislead.
    misled = sum(found.trusted / found.n for found, s in looked if s is subject.test)
    # Wrong labels do harm in the data and in the test: the worse of the two is shown.
    weighed = [
        (_surely(found) - (0.0 if s is subject.test else misled), found, s) for found, s in looked
    ]
    surely, found, sample = max(weighed, key=lambda one: one[0])
    share = len(found.rows) / found.n
    error = math.sqrt(share * (1 - share) / found.n)
    agree = _network_agrees(subject, sample, found)
    also = ", nor the network" if sample is subject.test else ""
    return Finding(
        verdict=f"{count(len(found.rows), 'row')} of {found.n:,} ({percent(share)}) of "
        f"the {sample.name} "
        f"{'has' if len(found.rows) == 1 else 'have'} a label that nearly no neighbour shares"
        f"{also}{agree}",
        number=Quantity(share, "estimate", "%", standard_error=error, n=found.n,
                        label="of labels are suspicious"),
        hypotheses=(
            Assumption(f"rows near each other in Euclidean distance, {found.measure}, are of one "
                       "class; where they are not, mistakes are missed"),
            Assumption(f"{found.n:,} of {len(sample):,} rows were looked at", "checked"),
        ),
        reading=f"Of {NEIGHBOURS} nearest neighbours at least {NEIGHBOURS_AGREEING} share one other "
        f"label and at most {NEIGHBOURS_WITH_LABEL} the row's own. Look at these rows first: they are "
        "mislabelled, or rare cases. Test rows are not counted where the network, which has not seen "
        "them, has their label, too"
        + (f"; so often, on {percent(misled)}, neighbours mislead here." if misled else "."),
        scale="Clean data show about 0%: where classes overlap, neighbours disagree among themselves, "
        "and such rows are not counted. Of labels that are wrong at random most are found where classes "
        "are apart.",
        table=_suspect_table(sample, found) if len(found.rows) else None,
        facts={"suspicious": share, "suspicious_count": float(len(found.rows)),
               "suspicious_surely": surely},
        noise={"": 0.0} if found.n == len(sample) else {},
    )  # fmt: skip


def _surely(found: _Suspects) -> float:
    """Return the share of suspicious labels at least; also of few rows, unlike share minus error."""
    return wilson_interval(len(found.rows), found.n, SURE_IN_STANDARD_ERRORS)[0]


def _suspects(subject: Subject, sample: Sample) -> _Suspects:
    """Find rows whose neighbours have another label; as many as the time allows."""
    assert sample.targets is not None
    rows = np.sort(subject.rng("DAT-02").permutation(len(sample))[:LABEL_ROWS])
    if len(rows) < MIN_LABEL_ROWS:
        raise NotApplicable(f"neighbours say something from {MIN_LABEL_ROWS} rows on")
    y = sample.targets.values[rows]
    X, measure = _measured(sample, rows, y)
    until, found, others, n = subject.turn.share(NEIGHBOUR_SHARE), [], [], 0
    for start in range(0, len(rows), ROWS_OF_A_LOOK):
        if n and until.passed:
            break
        part = np.arange(start, min(start + ROWS_OF_A_LOOK, len(rows)))
        votes = _votes(X, y, part)
        own = votes[np.arange(len(part)), y[part]]
        best = votes.argmax(axis=1)
        doubtful = (own <= NEIGHBOURS_WITH_LABEL) & (votes.max(axis=1) >= NEIGHBOURS_AGREEING)
        found.append(rows[part[doubtful]])
        others.append(best[doubtful])
        n += len(part)
    result = _Suspects(np.concatenate(found), np.concatenate(others), n, measure)
    return _distrusted(subject, sample, result) if sample is subject.test else result


def _measured(sample: Sample, rows: NDArray[np.intp], y: NDArray[np.intp]) -> tuple[Array, str]:
    """Return inputs to compare: as they are, or by their deviations where labels then agree more."""
    X = sample.X[rows]
    spread = np.where(sample.spread[None] > 0, sample.spread[None], 1.0)
    with np.errstate(over="ignore"):
        plain, scaled = X - X.mean(axis=0), (X - X.mean(axis=0)) / spread
        plain = plain / (float(np.abs(plain).max()) or 1.0)
    part = np.arange(min(METRIC_ROWS, len(rows)))
    agree = [np.mean(_votes(Z, y, part).argmax(axis=1) == y[part]) for Z in (plain, scaled)]
    if agree[1] > agree[0]:
        return scaled, "every input in units of its deviation"
    return plain, "inputs as they are"


def _distrusted(subject: Subject, sample: Sample, found: _Suspects) -> _Suspects:
    """Return suspicious rows without those of which the network has the label as well."""
    observed = subject.observe(sample)
    assert sample.targets is not None
    right = observed.rows[predicted_classes(observed.outputs) == sample.targets.values[observed.rows]]
    kept = ~np.isin(found.rows, right)
    return found._replace(
        rows=found.rows[kept], others=found.others[kept], trusted=int(np.count_nonzero(~kept))
    )


def _votes(X: Array, y: NDArray[np.intp], part: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how many of the nearest neighbours of some rows are of each class, themselves left out."""
    squares = (X**2).sum(axis=1)
    distance = squares[part, None] - 2.0 * X[part] @ X.T + squares
    distance[np.arange(len(part)), part] = np.inf
    near = np.argpartition(distance, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
    votes = np.zeros((len(part), int(y.max()) + 1), dtype=np.intp)
    np.add.at(votes, (np.arange(len(part))[:, None], y[near]), 1)
    return votes


def _network_agrees(subject: Subject, sample: Sample, found: _Suspects) -> str:
    if not len(found.rows):
        return ""
    observed = subject.observe(sample)
    place = np.searchsorted(observed.rows, found.rows)
    known = (place < observed.n) & (observed.rows[np.minimum(place, observed.n - 1)] == found.rows)
    if not known.any():
        return ""
    said = predicted_classes(observed.outputs)[place[known]]
    share = float(np.mean(said == found.others[known]))
    return f"; the network sides with the neighbours on {percent(share)}"


def _suspect_table(sample: Sample, found: _Suspects) -> Table:
    assert sample.targets is not None
    rows: tuple[tuple[Entry, ...], ...] = tuple(
        (int(i), int(sample.targets.values[i]), int(other))
        for i, other in zip(found.rows[:SUSPECTS_SHOWN], found.others, strict=False)
    )
    return Table("Suspicious rows (numbered from 0)", ("row", "label", "label of the neighbours"), rows)


Indices = NDArray[np.intp]


def first_equal(X: Array, check: Callable[[], None] = lambda: None) -> Indices:
    """Return for every row the number of the first row equal to it; -0 and 0 are equal.

    Args:
        X: Rows, (n, d).
        check: Called between parts of the work; may raise to end it.

    >>> first_equal(np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0]])).tolist()
    [0, 1, 0]
    """
    _, first, place = np.unique(_digests(X, check), return_index=True, return_inverse=True)
    leaders: Indices = first[place.ravel()]
    again = np.flatnonzero(leaders != np.arange(len(X)))
    if not _are_equal(X, again, X, leaders[again], check):
        _, first, place = np.unique(_whole(X), return_index=True, return_inverse=True)
        leaders = first[place.ravel()]
    return leaders


def are_among(rows: Array, X: Array, check: Callable[[], None] = lambda: None) -> NDArray[np.bool_]:
    """Return for every row whether X has an equal one.

    >>> are_among(np.array([[2.0], [3.0]]), np.array([[1.0], [2.0]])).tolist()
    [True, False]
    """
    digests, place = np.unique(_digests(X, check), return_index=True)
    wanted = _digests(rows, check)
    at = np.minimum(np.searchsorted(digests, wanted), len(digests) - 1)
    found: NDArray[np.bool_] = digests[at] == wanted
    matched = np.flatnonzero(found)
    if not _are_equal(rows, matched, X, place[at[matched]], check):
        return np.isin(_whole(rows), _whole(X))
    return found


def _digests(X: Array, check: Callable[[], None]) -> NDArray[np.uint64]:
    """Return one number per row: equal rows have equal ones, others only by a rare accident."""
    odd = np.random.default_rng(0).integers(2**64, size=X.shape[1], dtype=np.uint64) | np.uint64(1)
    result = np.empty(len(X), dtype=np.uint64)
    for part in row_chunks(len(X), X.itemsize * X.shape[1]):
        check()
        bits = (X[part] + 0.0).view(np.uint64)  # no negative zeros
        # The high bits of a product depend on all bits of its factors, the low ones on few.
        mixed = (bits ^ (bits >> np.uint64(32))) * odd
        result[part] = (mixed ^ (mixed >> np.uint64(29))).sum(axis=1, dtype=np.uint64)
    return result


def _are_equal(A: Array, i: Indices, B: Array, j: Indices, check: Callable[[], None]) -> bool:
    for part in row_chunks(len(i), A.itemsize * A.shape[1]):
        check()
        if not np.array_equal(A[i[part]], B[j[part]]):
            return False
    return True


def _whole(X: Array) -> NDArray[Any]:
    """Return rows as values that can be sorted: slow, and right whatever the digests say."""
    rows = np.ascontiguousarray(X + 0.0)
    return rows.view(f"V{rows.dtype.itemsize * rows.shape[1]}").ravel()
