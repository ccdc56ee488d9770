"""How many linear regions the network has, and how far the data are from where it bends."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import Deadline, OutOfTime, Stopwatch
from pindown.evidence import Assumption
from pindown.findings.finding import Entry, Finding, Quantity, Table
from pindown.findings.pictures import Histogram, Mark
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import median_error, paid_slices
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    FLOPS_PER_SECOND,
    FOLD_ROWS_PER_LOOK,
    FOLD_SHARE,
    MAX_CELLS_COUNTED,
    MAX_FOLD_ROWS,
    MIN_FOLD_ROWS,
    PAIRS_FOR_SPREAD,
    SECONDS_PER_LOOK,
)
from pindown.findings.which_function._cells import (
    Regions,
    regions,
    require_sane,
    require_walkable,
)
from pindown.findings.wording import count, number_text, percent
from pindown.geometry.counts.bounds import max_regions, zaslavsky
from pindown.geometry.regions.fold_distance import distance_to_nearest_fold
from pindown.network import ReluNetwork

_QUANTILES = (
    (0.0, "nearest"),
    (0.05, "5%"),
    (0.25, "25%"),
    (0.5, "median"),
    (0.75, "75%"),
    (0.95, "95%"),
    (1.0, "farthest"),
)


@question(
    "GEO-01",
    "Linear regions",
    group="which",
    needs=("box", "relus"),
    about="How many cells, on each of which the network is affine, there are on the box and after each "
    "layer, and how many a network of this shape could have; up to 6 inputs.",
    cost=(1, 8),
    place=4,
)
def linear_regions(subject: Subject) -> Finding:
    """Count the cells on the box."""
    here = regions(subject)
    found, place = here.found, here.domain
    if found.n_regions == 0:
        raise OutOfTime
    widths = place.net.hidden_widths
    bound = max_regions(place.box.dim, widths)
    pieces = None if here.complex is None else here.complex.n_pieces
    number = f"{'' if found.complete else 'at least '}{count(found.n_regions, 'cell')}"
    merged = "" if pieces is None else f", {count(pieces, 'affine piece')}"
    return Finding(
        verdict=f"{number}{merged}; a network of this shape has at most {_large(bound)}",
        number=Quantity(found.n_regions, "exact", "cells", bound="" if found.complete else "lower"),
        hypotheses=(
            Assumption(
                f"a complete search of {place.text}"
                if found.complete
                else f"a search of {place.text} that was stopped {_why(here)}: a lower bound",
                "checked" if found.complete else "violated",
            ),
            Assumption("signs as float64 gives them: cells thinner than about 1e-12 are not seen"),
        ),
        reading=_reading(pieces, found.n_regions),
        scale="1 is an affine map. "
        f"{count(place.net.size, 'unit')} in a single layer could make at most "
        f"{_large(zaslavsky(place.net.size, place.box.dim))} cells; in layers, where each may fold "
        f"what the last one made, {_large(bound)}. Trained networks stay far below.",
        table=_table(here),
        sentence=_sentence(here, pieces),
    )


def _sentence(here: Regions, pieces: int | None) -> str:
    found, place = here.found, here.domain.text
    if not found.complete:
        return (
            f"On {place} it has at least {count(found.n_regions, 'linear region')}; the count was "
            f"stopped {_why(here)}."
        )
    if pieces is None:
        return f"On {place} it has exactly {count(found.n_regions, 'linear region')}."
    return f"On {place} it has {count(pieces, 'linear piece')}, in {count(found.n_regions, 'cell')}."


def _why(here: Regions) -> str:
    found = here.found
    if found.n_regions >= MAX_CELLS_COUNTED:
        return f"at {MAX_CELLS_COUNTED:,} cells"
    return f"after {found.seconds:.2g} s"


def _reading(pieces: int | None, cells: int) -> str:
    text = (
        "In a cell every ReLU is on or off throughout, so the network is one affine map there. The "
        "cells tile the box; their number says how finely the network can bend, not how well it fits."
    )
    if pieces is not None and pieces < cells:
        text += (
            " A piece joins neighbouring cells with the same map: units switch between them without "
            "any effect on the output, a sign that the network is larger than its function needs."
        )
    return text


def _table(here: Regions) -> Table:
    net, growth = here.domain.net, here.found.growth
    known = here.found.complete and len(growth) == net.depth - 1
    rows: list[tuple[Entry, ...]] = []
    bound, rank = 1, net.in_features
    for i, width in enumerate(net.hidden_widths):
        bound *= zaslavsky(width, rank)
        rank = min(rank, width)
        rows.append((i + 1, width, int(growth[i]) if known else None, _large(bound)))
    columns = ("layer", "units", "cells", "most for this shape")
    return Table("Cells after each layer", columns, tuple(rows))


def _large(n: int) -> str:
    """Return a whole number, as a power of ten if it is very large.

    >>> _large(56_000), _large(2 * 10**400)
    ('56,000', 'about 2e400')
    """
    if n < 10**9:
        return f"{n:,}"
    power = math.floor(math.log10(n))
    return f"about {10 ** (math.log10(n) - power):.2g}e{power}"


@question(
    "GEO-02",
    "Distance to the nearest fold",
    group="which",
    needs=("data", "relus"),
    about="How far the data are from the nearest place where a unit switches, beside the distance "
    "between two rows.",
    cost=(0.5, 2),
)
def distance_to_folds(subject: Subject) -> Finding:
    """Measure how much room each row has inside its cell."""
    assert subject.data is not None
    X = subject.data.X
    require_sane(subject.net, Box.around(X))
    rng = subject.rng("GEO-02")
    rows = rng.permutation(len(X))[:MAX_FOLD_ROWS]
    distance, layers = _measured(subject, X[rows])
    spread = _spread(X, rng)
    n, whole = len(distance), len(distance) == len(X)
    finite = distance[np.isfinite(distance)]
    if not len(finite):
        raise NotApplicable("no unit switches anywhere near the data: it is affine around every row")
    unit = spread if spread > 0 else 1.0
    median = float(np.median(distance)) / unit
    seen = count(n, "row") if whole else f"{n:,} of {len(X):,} rows"
    share = spread > 0 and median <= 1.0
    relative = percent(median) if share else number_text(median)
    beside = "the distance between two rows" if spread > 0 else ""
    beside = f" {'of' if share else 'times'} {beside}" if beside else ""
    return Finding(
        verdict=f"half of the rows have a fold within {relative}{beside} ({number_text(median * unit)})",
        number=Quantity(
            median,
            "exact" if whole else "estimate",
            "%" if share else "",
            standard_error=None if whole else median_error(distance) / unit,
            n=None if whole else n,
            label=f"{beside.strip()}, in the median" if beside else "median distance",
        ),
        hypotheses=(
            Assumption(f"a statement about {seen} of the {subject.data.name}", "checked"),
            Assumption("distances as float64 evaluation gives them, in the Euclidean norm"),
        ),
        reading="Around each row there is a ball in which no unit switches, and there the network is "
        "exactly affine: gradients, and explanations made of them, are exact up to this distance and "
        f"change beyond it. The nearest fold belongs to {_nearest_layers(layers)}.",
        scale=f"Two random rows are {number_text(spread)} apart (median). The more units, the nearer "
        "the nearest fold; wide networks have one within a tiny fraction of the distance between rows.",
        figure=_histogram(distance / unit, spread > 0),
        table=Table(
            f"Distance to the nearest fold, over {seen}",
            ("rows", "distance", "share of the distance between rows"),
            tuple(
                (name, float(q), float(q) / spread if spread > 0 else None)
                for (_, name), q in zip(
                    _QUANTILES, np.quantile(finite, [q for q, _ in _QUANTILES]), strict=True
                )
            ),
        ),
    )


def _measured(subject: Subject, rows: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return distances and layers for as many rows as the time allows."""
    net, share = subject.net, FOLD_SHARE * subject.turn.left
    if any(sp.issparse(layer.weight) for layer in net.layers):
        require_walkable(net, net.in_features)
    subject.require(_seconds_per_row(net))
    watch = Stopwatch()
    found = [distance_to_nearest_fold(net, rows[:1])]
    least = min(MIN_FOLD_ROWS, len(rows)) * watch.seconds  # of these the first one is paid
    subject.require(least - watch.seconds, measured=True)
    until = Deadline.after(max(least, share) - watch.seconds)
    for part in paid_slices(len(rows) - 1, FOLD_ROWS_PER_LOOK, SECONDS_PER_LOOK, until):
        found.append(distance_to_nearest_fold(net, rows[1:][part]))
    labels = np.concatenate([part.label for part in found])
    layers = np.searchsorted(np.cumsum([0, *subject.net.hidden_widths]), labels, side="right")
    return np.concatenate([part.distance for part in found]), layers


def _seconds_per_row(net: ReluNetwork) -> float:
    """Return about how long the gradients of all units at one row take on a slow core."""
    widths = net.hidden_widths
    thin = min(net.in_features, widths[0])
    products = sum(a * b for a, b in pairwise(widths))
    return (2 * thin * products + 2 * net.in_features * widths[0]) / FLOPS_PER_SECOND


def _spread(X: Array, rng: np.random.Generator) -> float:
    """Return the median distance between two random rows that differ."""
    first, second = rng.integers(0, len(X), (2, PAIRS_FOR_SPREAD))
    gaps = np.linalg.norm(X[first] - X[second], axis=1)
    gaps = gaps[gaps > 0]
    return float(np.median(gaps)) if len(gaps) else 0.0


def _nearest_layers(layers: NDArray[np.intp]) -> str:
    numbers, counts = np.unique(layers, return_counts=True)
    shares = [
        f"layer {i} for {percent(c / len(layers))} of the rows"
        for i, c in zip(numbers, counts, strict=True)
        if i > 0
    ]
    if len(shares) > 4:
        shares = [*shares[:4], f"{len(shares) - 4} deeper layers for the rest"]
    return ", ".join(shares[:-1]) + (" and " if len(shares) > 1 else "") + shares[-1]


def _histogram(relative: Array, known: bool) -> Histogram | None:
    positive = relative[(relative > 0) & np.isfinite(relative)]
    if len(positive) < 2 or positive.max() <= positive.min() * (1 + 1e-9):
        return None
    bins = min(40, max(5, int(2 * len(positive) ** (1 / 3))))
    edges = np.geomspace(positive.min(), positive.max(), bins + 1)
    edges[[0, -1]] = positive.min(), positive.max()
    counts, _ = np.histogram(positive, bins=edges)
    return Histogram(
        "Distances of the rows to the nearest fold, on a logarithmic axis",
        tuple(edges.tolist()),
        tuple(counts.tolist()),
        "distance to a fold / distance between two rows" if known else "distance to a fold",
        "rows",
        marks=(Mark(float(np.median(positive)), "median"),),
        logarithmic=True,
    )
