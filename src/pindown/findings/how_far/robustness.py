"""How far the data can be moved without changing their class: certified radii and distances."""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, dense
from pindown.deadline import Deadline, OutOfTime
from pindown.evidence import Assumption
from pindown.findings.finding import Finding, Quantity, Table
from pindown.findings.pictures import Histogram, Mark
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import median_error, paid_slices, typical_range
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    CERTIFIED_ROWS_PER_LOOK,
    DISTANCE_EVALUATIONS,
    DISTANCE_ROWS,
    EXACT_DISTANCE_SHARE,
    FIRST_ROWS,
    MAX_CERTIFIED_ROWS,
    MAX_INPUTS_FOR_EXACT_DISTANCE,
    MAX_UNITS_FOR_EXACT_DISTANCE,
    MIN_DISTANCE_SECONDS,
    PASSES_PER_SLOPE,
    RADIUS_HALVINGS,
    RADIUS_QUARTERINGS,
    ROBUSTNESS_SHARE,
    SECONDS_PER_CERTIFIED_LOOK,
    TIMES_THE_FIRST,
)
from pindown.findings.wording import at_least, at_most, count, number_text
from pindown.network import ReluNetwork
from pindown.probes import linear_distance
from pindown.verification import MinimumDistance, certified, certified_radii, minimum_distance
from pindown.verification.classes import classifier, predicted

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
    needs=("data", "graph"),
    about="How far every coordinate of a row can be moved at once without changing its class, proved by "
    "linear relaxation: quantiles over rows, in the units of the data.",
    cost=(1, 6),
    place=5,
)
def certified_radius(subject: Subject) -> Finding:
    """Certify a radius around each row within which the class cannot change."""
    if not subject.asked.why_not_exact and not subject.net.size:
        raise NotApplicable("the network is affine, it has no ReLU: ROB-02 gives the distance itself")
    found = rows_with_classes(subject, "ROB-01")
    top = typical_range(found.X)
    # One proof is a way back for every other class, which no clock cuts short.
    ways_back = PASSES_PER_SLOPE * (subject.values.out_features - 1)
    subject.require(ways_back * subject.seconds_per_row(), measured=True)
    until = subject.turn.share(ROBUSTNESS_SHARE)
    radius = _certified(subject, found, top, until)
    n = len(radius)
    median = float(np.median(radius))
    error = max(median_error(radius), top / 2**RADIUS_HALVINGS)
    none = int(np.count_nonzero(radius == 0.0))
    seen = count(n, "row") if n == found.n_given else f"{n:,} of {found.n_given:,} rows"
    proved = f"under any change of all coordinates by up to {at_least(median)}"
    return Finding(
        verdict=f"half of the rows keep their class {proved}"
        if median > 0
        else f"for {none:,} of {count(n, 'row')} no change at all is proved harmless",
        number=Quantity(median, "exact", label="median certified linf radius", bound="lower"),
        hypotheses=(
            Assumption(f"a statement about {seen}, and {found.meaning}", "checked"),
            Assumption("rounding is bounded: the radii hold for the real-number network", "checked"),
        ),
        reading="Within the radius no input, whatever its other coordinates, has another class: that is "
        f"proved, not sampled. A larger radius may be safe, too. {_unproved(none)}",
        scale=f"The data vary by {number_text(top)} in the median coordinate; larger radii were "
        "not tried.",
        figure=_radius_histogram(radius),
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
        next=verify_command(
            subject, int(found.places[np.argmax(radius)]), 2 * float(radius.max()) or top / 100
        ),
        facts={"certified_radius": median, "certified_share_of_range": median / top},
        noise={"": error, "certified_share_of_range": error / top},
        sentence=_kept(seen, median) if median > 0 else "",
    )


def verify_command(subject: Subject, row: int, radius: float) -> str:
    """Return the command that decides whether the class of a row stays, empty if there is none."""
    if subject.values.out_features < 2:
        return ""
    where = f"--data {subject.data_file} --row {row} --radius {radius:.3g}"
    return f"pindown verify {subject.file} {where}"


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


def _certified(subject: Subject, found: RowsWithClasses, top: float, until: Deadline) -> Array:
    """Certify row after row, as many as the time allows; the first one tells what a row costs."""
    first, scale = _scale(subject, found, top, until)
    known = np.zeros(first + 1)
    known[first] = scale
    model, radii = bounded_model(subject), [np.zeros(0)]
    reaches = sorted({min(top, TIMES_THE_FIRST * scale) or top, top})
    parts = paid_slices(len(found.X), CERTIFIED_ROWS_PER_LOOK, SECONDS_PER_CERTIFIED_LOOK, until)
    for part in parts if not until.passed else ():
        X, y = found.X[part], found.y[part]
        made = np.zeros(len(X))
        for reach, before in zip(reaches, (0.0, *reaches), strict=False):
            open_ = made >= before  # the larger one is tried where the smaller one was proved
            if not open_.any():
                break
            with np.errstate(all="ignore"):
                more = certified_radii(
                    model, X[open_], y[open_], largest=reach, steps=RADIUS_HALVINGS, deadline=until
                )
            made[open_] = np.maximum(made[open_], more)
        if until.passed and part.stop < len(found.X):
            break  # rows that the clock cut short say nothing about the model
        radii.append(made)
    kept = np.concatenate(radii)
    if len(kept) <= first:
        if until.passed and not scale:
            raise OutOfTime
        return known
    kept[first] = max(kept[first], scale)
    return kept


def _scale(subject: Subject, found: RowsWithClasses, top: float, until: Deadline) -> tuple[int, float]:
    """Return the first row that is right, and a radius proved for it, from small ones upwards.

    Small balls are cheap, for few units switch in them: of a deep model a large one may take minutes.
    """
    right = np.flatnonzero(
        predicted(classifier(bounded_model(subject)), found.X[:FIRST_ROWS]) == found.y[:FIRST_ROWS]
    )
    if not len(right):
        return 0, 0.0
    i, proved = int(right[0]), 0.0
    for step in range(RADIUS_QUARTERINGS, -1, -1):
        radius = top / 4.0**step
        with np.errstate(all="ignore"):
            ok = certified(
                bounded_model(subject),
                found.X[i : i + 1],
                found.y[i : i + 1],
                radius=radius,
                deadline=until,
            )
        if not ok[0] or until.passed:
            return i, radius if ok[0] else proved
        proved = radius
    return i, proved


def bounded_model(subject: Subject) -> Any:
    """Return what bounds are computed on: matrices of a chain, else the operations."""
    return subject.values if isinstance(subject.values, ReluNetwork) else subject.graph


class RowsWithClasses(NamedTuple):
    """Rows to ask about, with the class that should stay."""

    X: Array
    y: NDArray[np.intp]
    places: NDArray[np.intp]
    n_given: int
    meaning: str


def rows_with_classes(subject: Subject, code: str, most: int = MAX_CERTIFIED_ROWS) -> RowsWithClasses:
    """Return random rows with their true classes, or with those the network gives."""
    subject.require_moderate()
    sample = subject.labelled or subject.data
    assert sample is not None
    targets = sample.targets
    if targets is not None and not targets.is_classification:
        raise NotApplicable("the targets are values: there are no classes to change")
    if targets is None and subject.values.out_features == 1:
        raise NotApplicable("one output and no labels: nothing says that its sign is a class")
    index = subject.rng(code).permutation(len(sample.X))[:most]
    X = sample.X[index]
    if targets is None:
        return RowsWithClasses(
            X, np.argmax(subject.values(X), axis=1), index, len(sample.X), "the class given to them"
        )
    return RowsWithClasses(X, targets.values[index], index, len(sample.X), "their true class")


def _radius_histogram(values: Array) -> Histogram | None:
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


@question(
    "ROB-02",
    "Nearest other class",
    group="how far",
    needs=("data", "graph"),
    about="For a few rows the distance, in the largest coordinate, to the nearest input of another "
    "class: exact for small and for affine networks, else a proved interval.",
    cost=(1, 5),
)
def nearest_other_class(subject: Subject) -> Finding:
    """Enclose the distance to another class for some rows."""
    exact = not subject.asked.why_not_exact
    if exact and not subject.net.size:
        return _linear_distances(subject)
    found = rows_with_classes(subject, "ROB-02")
    seconds = ROBUSTNESS_SHARE * subject.turn.left / DISTANCE_ROWS
    if seconds < MIN_DISTANCE_SECONDS:
        raise OutOfTime
    model = bounded_model(subject)
    if not isinstance(model, ReluNetwork):
        subject.require(DISTANCE_EVALUATIONS * subject.seconds_per_row(), measured=True)
    until = subject.turn.share(ROBUSTNESS_SHARE)
    results: list[MinimumDistance] = []
    for x in found.X[:DISTANCE_ROWS]:
        if results and until.passed:
            break
        # A search that the clock ends would give another answer each time: only where it is short, and
        # then with patience, for the first may have to wait for what the machine has not yet loaded.
        small = (
            exact
            and subject.net.in_features <= MAX_INPUTS_FOR_EXACT_DISTANCE
            and subject.net.size <= MAX_UNITS_FOR_EXACT_DISTANCE
        )
        way, patience = ("auto", EXACT_DISTANCE_SHARE) if small else ("relaxation", 0.0)
        budget = max(seconds, patience * until.left)
        with np.errstate(all="ignore"):
            results.append(minimum_distance(model, x, budget=budget, method=way, seed=subject.seed))
    lower = min(result.lower for result in results)
    upper = min(result.upper for result in results)
    meet = sum(result.complete for result in results)
    return Finding(
        verdict=f"of {count(len(results), 'row')} the nearest to another class is between "
        f"{at_least(lower)} and {at_most(upper) if isfinite(upper) else 'infinitely far'} away"
        if isfinite(lower)
        else f"no input has another class than {count(len(results), 'row')} that were asked about",
        number=Quantity(lower, "exact", label="smallest linf distance", bound="lower"),
        hypotheses=(
            Assumption(f"rows drawn at random, {len(results)} of {found.n_given:,}", "checked"),
            Assumption("exact searches are computed in float64, with their tolerance taken off"),
        ),
        reading="The lower end says that no nearer input has another class; the upper end belongs to an "
        f"input that has one. The two ends meet for {meet} of {count(len(results), 'row')}.",
        scale="Compare with the noise of a measurement, or with one grey level of an image.",
        next=_decided(subject, found, results),
        table=Table(
            "Distance to the nearest input of another class, in linf",
            ("row", "class", "at least", "at most", "other class", "how"),
            tuple(
                (int(i), r.label, _finite(r.lower), _finite(r.upper), r.other, r.method)
                for i, r in zip(found.places, results, strict=False)
            ),
        ),
    )


def _decided(subject: Subject, found: RowsWithClasses, results: list[MinimumDistance]) -> str:
    """Return the command about the row with the widest open interval, half way into it."""
    wide = [r.upper - r.lower if isfinite(r.upper) else r.lower for r in results]
    i = int(np.argmax(wide))
    if not wide[i] > 0 or not isfinite(wide[i]):
        return ""
    middle = results[i].lower + wide[i] / 2
    return verify_command(subject, int(found.places[i]), middle)


def _linear_distances(subject: Subject) -> Finding:
    """Compute the distances to the boundary of an affine classifier."""
    found = rows_with_classes(subject, "ROB-02")
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
        hypotheses=(Assumption("the network is affine, so the distance has a closed form", "checked"),),
        reading="The class of a row changes at this distance and not before: the score over the best "
        "other class, divided by the dual norm of its slope.",
        scale="The linf distance moves all coordinates a little, the l1 distance one coordinate a lot.",
        figure=_radius_histogram(gaps["linf"]),
        table=Table(
            f"Distances to another class, over {len(found.X):,} rows",
            ("norm", "smallest", "median", "largest"),
            tuple(
                (norm, *(_finite(float(q)) for q in np.quantile(gap, [0.0, 0.5, 1.0])))
                for norm, gap in gaps.items()
            ),
        ),
    )


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
