"""How far the data are from another class: certificates, exact distances, closed forms."""

from __future__ import annotations

import time
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, dense, stored_entries
from pindown.findings.deadline import NotApplicable, OutOfTime
from pindown.findings.finding import Finding, Hypothesis, Quantity, Table
from pindown.findings.pictures import Histogram, Mark
from pindown.findings.registry import question
from pindown.findings.subject import Subject
from pindown.findings.wording import at_least, at_most, count, number_text
from pindown.guarantees.robustness import (
    MinimumDistance,
    certified_radii,
    linear_distance,
    minimum_distance,
)
from pindown.network import ReluNetwork

_MOST_ROWS = 500
_BLOCK = 25  # rows between two looks at the clock
_CERTIFIED_SHARE, _DISTANCE_SHARE = 0.8, 0.8  # of the time left
_PRODUCTS_PER_SECOND = 4e9  # of one slow core
_STEPS = 7  # halvings of the radius
_FEW_POINTS = 5
_FEW_INPUTS, _FEW_UNITS = 3, 32  # networks on which exact searches end within seconds
_FEW_SECONDS = 0.2  # less is not worth a search for one point
_QUANTILES = (
    (0.0, "smallest"),
    (0.05, "5%"),
    (0.25, "25%"),
    (0.5, "median"),
    (0.75, "75%"),
    (1.0, "largest"),
)


@question(
    "ROB-01",
    "Certified radius",
    group="how far",
    needs=("data", "relus"),
    about="How far every coordinate of a row can be moved at once without changing its class, proved by "
    "linear relaxation: quantiles over rows, in the units of the data.",
    cost=(1, 6),
    place=5,
)
def certified_radius(subject: Subject) -> Finding:
    """Certify a radius around each row within which the class cannot change."""
    found = _rows(subject, "ROB-01")
    subject.require(_BLOCK * _seconds_per_row(subject.net))
    top = float(np.median(found.X.max(axis=0) - found.X.min(axis=0))) or 1.0
    until = subject.deadline.share(_CERTIFIED_SHARE)
    radii: list[Array] = []
    for start in range(0, len(found.X), _BLOCK):
        if radii and time.monotonic() >= until:
            break
        part = slice(start, start + _BLOCK)
        radii.append(
            certified_radii(
                subject.net, found.X[part], found.y[part], largest=top, steps=_STEPS, deadline=until
            )
        )
    radius = np.concatenate(radii)
    n = len(radius)
    median = float(np.median(radius))
    none = int(np.count_nonzero(radius == 0.0))
    if none == n and time.monotonic() >= until:
        raise OutOfTime
    seen = count(n, "row") if n == found.n_given else f"{n:,} of {found.n_given:,} rows"
    proved = f"under any change of all coordinates by up to {at_least(median)}"
    return Finding(
        verdict=f"half of the rows keep their class {proved}"
        if median > 0
        else f"for {none:,} of {count(n, 'row')} no change at all is proved harmless",
        number=Quantity(median, "exact", label="median certified linf radius", bound="lower"),
        hypotheses=(
            Hypothesis(f"a statement about {seen}, and {found.meaning}", "checked"),
            Hypothesis("rounding is bounded: the radii hold for the real-number network", "checked"),
        ),
        reading="Within the radius no input, whatever its other coordinates, has another class: that is "
        f"proved, not sampled. A larger radius may be safe, too. No radius was proved for "
        f"{count(none, 'row')}: their class is wrong, the bounds are too wide there, or time ended.",
        scale=f"The data vary by {number_text(top)} in the median coordinate; larger radii were "
        "not tried.",
        figure=_histogram(radius),
        table=Table(
            f"Certified radius in linf, over {seen}",
            ("rows", "radius", "share of the median range"),
            tuple(
                (name, float(q), float(q) / top)
                for (_, name), q in zip(
                    _QUANTILES, np.quantile(radius, [q for q, _ in _QUANTILES]), strict=True
                )
            ),
        ),
        sentence=f"Half of {seen} certainly keep their class if no coordinate changes by more than "
        f"{at_least(median)}."
        if median > 0
        else "",
    )


@question(
    "ROB-02",
    "Nearest other class",
    group="how far",
    needs=("data",),
    about="For a few rows the distance, in the largest coordinate, to the nearest input of another "
    "class: exact for small and for affine networks, else a proved interval.",
    cost=(1, 5),
)
def nearest_other_class(subject: Subject) -> Finding:
    """Enclose the distance to another class for some rows."""
    if not subject.net.size:
        return _linear_distances(subject)
    found = _rows(subject, "ROB-02")
    seconds = _DISTANCE_SHARE * subject.deadline.left / _FEW_POINTS
    if seconds < max(_FEW_SECONDS, 4 * _seconds_per_row(subject.net)):
        raise OutOfTime
    until = subject.deadline.share(_DISTANCE_SHARE)
    results: list[MinimumDistance] = []
    for x in found.X[:_FEW_POINTS]:
        if results and time.monotonic() > until:
            break
        # A search that the clock ends would give another answer each time: only where it is short.
        small = subject.net.in_features <= _FEW_INPUTS and subject.net.size <= _FEW_UNITS
        way = "auto" if small else "relaxation"
        results.append(minimum_distance(subject.net, x, budget=seconds, method=way, seed=subject.seed))
    lower = min(result.lower for result in results)
    upper = min(result.upper for result in results)
    exact = sum(result.complete for result in results)
    return Finding(
        verdict=f"of {count(len(results), 'row')} the nearest to another class is between "
        f"{at_least(lower)} and {at_most(upper) if isfinite(upper) else 'infinitely far'} away"
        if isfinite(lower)
        else f"no input has another class than {count(len(results), 'row')} that were asked about",
        number=Quantity(lower, "exact", label="smallest linf distance", bound="lower"),
        hypotheses=(
            Hypothesis(f"rows drawn at random, {len(results)} of {found.n_given:,}", "checked"),
            Hypothesis("exact searches are computed in float64, with their tolerance taken off"),
        ),
        reading="The lower end says that no nearer input has another class; the upper end belongs to an "
        f"input that has one. The two ends meet for {exact} of {len(results)} rows.",
        scale="Compare with the noise of a measurement, or with one grey level of an image.",
        table=Table(
            "Distance to the nearest input of another class, in linf",
            ("row", "class", "at least", "at most", "other class", "how"),
            tuple(
                (int(i), r.label, _finite(r.lower), _finite(r.upper), r.other, r.method)
                for i, r in zip(found.places, results, strict=False)
            ),
        ),
    )


def _linear_distances(subject: Subject) -> Finding:
    """Compute the distances to the boundary of an affine classifier."""
    found = _rows(subject, "ROB-02")
    W, b = subject.net.layers[0]
    norms = ("l1", "l2", "linf")
    gaps = {norm: linear_distance(dense(W), b, found.X, norm=norm) for norm in norms}
    median = float(np.median(gaps["linf"]))
    if not isfinite(median):
        raise NotApplicable("the classifier gives one class only to half of the rows and their like")
    return Finding(
        verdict="half of the rows can be given another class by moving every coordinate by "
        f"{at_most(median)}",
        number=Quantity(median, "exact", label="median linf distance"),
        hypotheses=(Hypothesis("the network is affine, so the distance has a closed form", "checked"),),
        reading="The class of a row changes at this distance and not before: the score over the best "
        "other class, divided by the dual norm of its slope.",
        scale="The linf distance moves all coordinates a little, the l1 distance one coordinate a lot.",
        figure=_histogram(gaps["linf"]),
        table=Table(
            f"Distances to another class, over {len(found.X):,} rows",
            ("norm", "smallest", "median", "largest"),
            tuple(
                (norm, *(_finite(float(q)) for q in np.quantile(gap, [0.0, 0.5, 1.0])))
                for norm, gap in gaps.items()
            ),
        ),
    )


class _Rows(NamedTuple):
    """Rows to ask about, with the class that should stay."""

    X: Array
    y: NDArray[np.intp]
    places: NDArray[np.intp]
    n_given: int
    meaning: str


def _rows(subject: Subject, code: str) -> _Rows:
    """Return random rows with their true classes, or with those the network gives."""
    subject.require_moderate()
    sample = subject.labelled or subject.data
    assert sample is not None
    targets = sample.targets
    if targets is not None and not targets.is_classification:
        raise NotApplicable("the targets are values: there are no classes to change")
    if targets is None and subject.net.out_features == 1:
        raise NotApplicable("one output and no labels: nothing says that its sign is a class")
    index = subject.rng(code).permutation(len(sample.X))[:_MOST_ROWS]
    X = sample.X[index]
    if targets is None:
        return _Rows(
            X, np.argmax(subject.net(X), axis=1), index, len(sample.X), "the class given to them"
        )
    return _Rows(X, targets.values[index], index, len(sample.X), "their true class")


def _seconds_per_row(net: ReluNetwork) -> float:
    """Return about how long the linear bounds around one row take, for all radii tried."""
    behind, products = 0, 0.0
    for layer, width in zip(net.layers, (*net.hidden_widths, net.out_features), strict=True):
        behind += stored_entries(layer.weight)
        products += 4.0 * width * behind
    return (_STEPS + 1) * products / _PRODUCTS_PER_SECOND


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _histogram(values: Array) -> Histogram | None:
    finite = values[np.isfinite(values)]
    if len(finite) < 2 or finite.max() <= finite.min():
        return None
    counts, edges = np.histogram(finite, bins=min(30, max(5, int(2 * len(finite) ** (1 / 3)))))
    return Histogram(
        "Radius within which the class does not change",
        tuple(edges.tolist()),
        tuple(counts.tolist()),
        "largest change of a coordinate",
        "rows",
        marks=(Mark(float(np.median(finite)), "median"),),
    )
