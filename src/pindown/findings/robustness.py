"""How far the data can be moved without changing their class: certificates."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, stored_entries
from pindown.findings.deadline import NotApplicable, OutOfTime
from pindown.findings.finding import Finding, Hypothesis, Quantity, Table
from pindown.findings.pictures import Histogram, Mark
from pindown.findings.registry import question
from pindown.findings.subject import Subject
from pindown.findings.wording import at_least, count, number_text
from pindown.network import ReluNetwork
from pindown.verification import certified_radii

_MOST_ROWS = 500
_BLOCK = 25  # rows between two looks at the clock
_SHARE = 0.8  # of the time left
_PRODUCTS_PER_SECOND = 4e9  # of one slow core
_STEPS = 7  # halvings of the radius
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
    found = rows_with_classes(subject, "ROB-01")
    subject.require(_BLOCK * seconds_per_row(subject.net))
    top = float(np.median(found.X.max(axis=0) - found.X.min(axis=0))) or 1.0
    until = subject.deadline.share(_SHARE)
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
        f"proved, not sampled. A larger radius may be safe, too. {_unproved(none)}",
        scale=f"The data vary by {number_text(top)} in the median coordinate; larger radii were "
        "not tried.",
        figure=radius_histogram(radius),
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
        sentence=_kept(seen, median) if median > 0 else "",
    )


def _kept(seen: str, median: float) -> str:
    who = f"Half of {seen} certainly keep their" if seen != "1 row" else "The row certainly keeps its"
    return f"{who} class if no coordinate changes by more than {at_least(median)}."


def _unproved(none: int) -> str:
    if not none:
        return "One was proved for every row."
    whose = "its" if none == 1 else "their"
    return (
        f"None was proved for {count(none, 'row')}: {whose} class is wrong, the bounds are too wide "
        "there, or time ended."
    )


class RowsWithClasses(NamedTuple):
    """Rows to ask about, with the class that should stay."""

    X: Array
    y: NDArray[np.intp]
    places: NDArray[np.intp]
    n_given: int
    meaning: str


def rows_with_classes(subject: Subject, code: str) -> RowsWithClasses:
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
        return RowsWithClasses(
            X, np.argmax(subject.net(X), axis=1), index, len(sample.X), "the class given to them"
        )
    return RowsWithClasses(X, targets.values[index], index, len(sample.X), "their true class")


def seconds_per_row(net: ReluNetwork) -> float:
    """Return about how long the linear bounds around one row take, for all radii tried."""
    behind, products = 0, 0.0
    for layer, width in zip(net.layers, (*net.hidden_widths, net.out_features), strict=True):
        behind += stored_entries(layer.weight)
        products += 4.0 * width * behind
    return (_STEPS + 1) * products / _PRODUCTS_PER_SECOND


def radius_histogram(values: Array) -> Histogram | None:
    """Return how radii are spread, or None if they are all alike."""
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
