"""How far the data are from where the network bends."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.findings.deadline import NotApplicable, OutOfTime
from pindown.findings.finding import Finding, Hypothesis, Quantity, Table
from pindown.findings.geometry import require_sane
from pindown.findings.pictures import Histogram, Mark
from pindown.findings.registry import question
from pindown.findings.subject import Subject
from pindown.findings.wording import count, number_text, percent
from pindown.geometry.regions.fold_distance import FoldDistances, distance_to_nearest_fold
from pindown.network import ReluNetwork

_MOST_ROWS = 2000
_FEWEST_ROWS = 20
_PAIRS = 1000
_FLOPS_PER_SECOND = 4e9  # of one slow core
_BLOCK = 50  # rows between two looks at the clock
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
    rows = rng.permutation(len(X))[:_MOST_ROWS]
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
            standard_error=None if whole else _median_error(distance) / unit,
            n=None if whole else n,
            label=f"{beside.strip()}, in the median" if beside else "median distance",
        ),
        hypotheses=(
            Hypothesis(f"a statement about {seen} of the {subject.data.name}", "checked"),
            Hypothesis("distances as float64 evaluation gives them, in the Euclidean norm"),
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
    until = subject.deadline.share(0.8)
    subject.require(_FEWEST_ROWS * _seconds_per_row(subject.net))
    found: list[FoldDistances] = []
    for start in range(0, len(rows), _BLOCK):
        if found and time.monotonic() >= until:
            break
        found.append(distance_to_nearest_fold(subject.net, rows[start : start + _BLOCK]))
    if not found:
        raise OutOfTime
    labels = np.concatenate([part.label for part in found])
    layers = np.searchsorted(np.cumsum([0, *subject.net.hidden_widths]), labels, side="right")
    return np.concatenate([part.distance for part in found]), layers


def _seconds_per_row(net: ReluNetwork) -> float:
    """Return about how long the gradients of all units at one row take."""
    widths = net.hidden_widths
    thin = min(net.in_features, widths[0])
    products = sum(a * b for a, b in pairwise(widths))
    return (2 * thin * products + 2 * net.in_features * widths[0]) / _FLOPS_PER_SECOND


def _spread(X: Array, rng: np.random.Generator) -> float:
    """Return the median distance between two random rows that differ."""
    first, second = rng.integers(0, len(X), (2, _PAIRS))
    gaps = np.linalg.norm(X[first] - X[second], axis=1)
    gaps = gaps[gaps > 0]
    return float(np.median(gaps)) if len(gaps) else 0.0


def _median_error(values: Array) -> float:
    """Return half the distance between the order statistics one standard error from the median."""
    n = len(values)
    low, high = np.quantile(values, np.clip([0.5 - 0.5 / n**0.5, 0.5 + 0.5 / n**0.5], 0.0, 1.0))
    return float(high - low) / 2


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
