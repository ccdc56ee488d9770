"""How far some rows are from the nearest input of another class."""

from __future__ import annotations

import time
from math import isfinite

import numpy as np

from pindown.affine import dense
from pindown.findings.deadline import NotApplicable, OutOfTime
from pindown.findings.finding import Finding, Hypothesis, Quantity, Table
from pindown.findings.registry import question
from pindown.findings.robustness import radius_histogram, rows_with_classes, seconds_per_row
from pindown.findings.subject import Subject
from pindown.findings.wording import at_least, at_most, count
from pindown.probes import linear_distance
from pindown.verification import MinimumDistance, minimum_distance

_SHARE = 0.8  # of the time left
_FEW_POINTS = 5
_FEW_INPUTS, _FEW_UNITS = 3, 32  # networks on which exact searches end within seconds
_PATIENCE = 0.5  # of the time left, for an exact search
_FEW_SECONDS = 0.2  # less is not worth a search for one point


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
    found = rows_with_classes(subject, "ROB-02")
    seconds = _SHARE * subject.deadline.left / _FEW_POINTS
    if seconds < max(_FEW_SECONDS, 4 * seconds_per_row(subject.net)):
        raise OutOfTime
    until = subject.deadline.share(_SHARE)
    results: list[MinimumDistance] = []
    for x in found.X[:_FEW_POINTS]:
        if results and time.monotonic() > until:
            break
        # A search that the clock ends would give another answer each time: only where it is short, and
        # then with patience, for the first may have to wait for what the machine has not yet loaded.
        small = subject.net.in_features <= _FEW_INPUTS and subject.net.size <= _FEW_UNITS
        way, patience = ("auto", _PATIENCE) if small else ("relaxation", 0.0)
        budget = max(seconds, patience * (until - time.monotonic()))
        results.append(minimum_distance(subject.net, x, budget=budget, method=way, seed=subject.seed))
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
        f"input that has one. The two ends meet for {exact} of {count(len(results), 'row')}.",
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
        hypotheses=(Hypothesis("the network is affine, so the distance has a closed form", "checked"),),
        reading="The class of a row changes at this distance and not before: the score over the best "
        "other class, divided by the dual norm of its slope.",
        scale="The linf distance moves all coordinates a little, the l1 distance one coordinate a lot.",
        figure=radius_histogram(gaps["linf"]),
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
