"""What an adversary finds within a small distance, and how steep the margins are at the data."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import Deadline, OutOfTime
from pindown.evidence import Assumption
from pindown.findings.finding import Finding, Quantity, Table
from pindown.findings.how_far.robustness import (
    RowsWithClasses,
    bounded_model,
    rows_with_classes,
    verify_command,
)
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import median_error, paid_slices, typical_range
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    ATTACK_RADIUS,
    ATTACK_RESTARTS,
    ATTACK_SHARE,
    ATTACK_STEPS,
    ATTACKED_ROWS,
    ATTACKED_ROWS_PER_LOOK,
    MAX_SLOPED_ROWS,
    MIN_ATTACKED_ROWS,
    SECONDS_PER_ATTACK_LOOK,
    SECONDS_PER_LOOK,
    SLOPE_POINTS_PER_LOOK,
    SLOPE_SHARE,
    SURE_IN_STANDARD_ERRORS,
)
from pindown.findings.wording import count, number_text, percent
from pindown.model.graph import Model, Node
from pindown.model.operations.dense import Scale
from pindown.network import ReluNetwork
from pindown.verification.classes import classifier, margin_slopes
from pindown.verification.counterexamples import gradient_attack


@question(
    "ROB-03",
    "Under attack",
    group="how far",
    needs=("data", "graph"),
    about="How many right decisions a search by gradients turns wrong with a change of "
    "every input by at "
    "most 1% of the inputs' range.",
    cost=(0.5, 3),
)
def under_attack(subject: Subject) -> Finding:
    """Attack rows that are classified correctly."""
    found = rows_with_classes(subject, "ROB-03")
    evaluations = len(found.X) + min(MIN_ATTACKED_ROWS, len(found.X)) * ATTACK_STEPS
    subject.require(evaluations * subject.seconds_per_row(), measured=True)
    right = np.argmax(classified(subject, found.X), axis=1) == found.y
    if not right.any():
        raise NotApplicable("no row of those drawn is classified correctly")
    X, y = found.X[right][:ATTACKED_ROWS], found.y[right][:ATTACKED_ROWS]
    radius, model = ATTACK_RADIUS * typical_range(found.X), bounded_model(subject)
    within, ranges = number_text(radius), subject.ranges(found.X)
    typical = f"the range of a typical input ({number_text(typical_range(found.X))})"
    if ranges is None:
        turned = _attacked(subject, model, X, y, radius)
    else:  # every input in units of its range; one that is constant stays
        low, units = found.X.min(axis=0), np.where(ranges > 0, ranges, 1.0)
        within, typical = f"{percent(ATTACK_RADIUS)} of every range", "the range of every input"
        turned = _attacked(subject, _of_shares(model, ranges, low), (X - low) / units, y, ATTACK_RADIUS)
    n, share = len(turned), float(turned.mean())
    error = math.sqrt(share * (1 - share) / n)
    return Finding(
        verdict=f"{count(int(turned.sum()), 'row')} of {n:,} ({percent(share)}) that were right are "
        f"turned by a change of at most {within}{' in any input' if ranges is None else ''}",
        number=Quantity(share, "estimate", "%", standard_error=error, n=n,
                        label=f"of right decisions turned within {within}"),
        hypotheses=(
            Assumption(f"{count(n, 'row')} drawn at random from those that are right", "checked"),
            Assumption("every change that is counted was evaluated", "checked"),
            Assumption("a stronger attack may turn more"),
        ),
        reading="Gradients lead from each row to the nearest change of the decision. A turned row is a "
        "fact, with an input that shows it; a row that stays may still be turned by a better search. "
        "ROB-01 says what no attack can turn.",
        scale=f"The radius is {percent(ATTACK_RADIUS)} of {typical}. Random noise of this size usually "
        "turns nothing (SEN-01).",
        next="" if ranges is not None
        else verify_command(subject, _kept_row(found, right, turned), radius),
        facts={
            "turned": share,
            "turned_surely": share - SURE_IN_STANDARD_ERRORS * error,
            "radius": radius if ranges is None else ATTACK_RADIUS,
            "share_of_range": ATTACK_RADIUS,
        },
        noise={"share_of_range": 0.0},
    )  # fmt: skip


def _of_shares(model: ReluNetwork | Model, ranges: Array, low: Array) -> ReluNetwork | Model:
    """Return a model of inputs as shares of their ranges."""
    if isinstance(model, ReluNetwork):
        return model @ ReluNetwork.from_layers([(np.diag(ranges), low)])
    shape = model.literal_shape
    scale = Scale(ranges.reshape(shape), low.reshape(shape))
    later = [node._replace(inputs=tuple(i + 1 for i in node.inputs)) for node in model.nodes]
    return replace(model, nodes=(Node(scale, (0,), shape), *later))


def _kept_row(found: RowsWithClasses, right: NDArray[np.bool_], turned: NDArray[np.bool_]) -> int:
    """Return a row that the attack did not turn, which a proof may be found for; else the first."""
    return int(found.places[right][int(np.argmin(turned))])


def classified(subject: Subject, X: Array) -> Array:
    """Return scores of the classes, two for one output."""
    made = subject.values(X)
    return np.c_[np.zeros(len(made)), made] if made.shape[1] == 1 else made


def _attacked(
    subject: Subject, model: ReluNetwork | Model, X: Array, y: NDArray[np.intp], radius: float
) -> NDArray[np.bool_]:
    """Return which of the first rows were turned, as many as the time allows."""
    until = subject.turn.share(ATTACK_SHARE)
    found: list[NDArray[np.bool_]] = []
    for part in paid_slices(len(X), ATTACKED_ROWS_PER_LOOK, SECONDS_PER_ATTACK_LOOK, until):
        with np.errstate(all="ignore"):
            tried = gradient_attack(
                model, X[part], y[part], radius=radius, steps=ATTACK_STEPS, restarts=ATTACK_RESTARTS,
                seed=subject.seed, deadline=until,
            )  # fmt: skip
        if until.passed:  # rows that were cut short say nothing, and those found alone would mislead
            break
        found.append(tried.success)
    if sum(map(len, found)) < min(MIN_ATTACKED_ROWS, len(X)):
        raise OutOfTime
    return np.concatenate(found)


@question(
    "SEN-02",
    "Slopes at the data",
    group="how far",
    needs=("data", "graph"),
    about="How steep the margin of the decision is at the rows, and how far the nearest change of it "
    "would be if the model went on straight.",
    cost=(0.2, 1),
)
def slopes_at_data(subject: Subject) -> Finding:
    """Measure gradients of margins."""
    found = rows_with_classes(subject, "SEN-02", MAX_SLOPED_ROWS)
    margin, slopes = _slopes(subject, found, subject.turn.share(SLOPE_SHARE))
    lengths, sums = np.linalg.norm(slopes, axis=1), np.abs(slopes).sum(axis=1)
    if not lengths.any():
        raise NotApplicable("no slope was found: the model looks constant at these rows")
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 where nothing lies ahead
        ahead = np.where(margin > 0, margin / sums, 0.0)
    median, size = float(np.median(lengths)), typical_range(found.X)
    near = float(np.median(ahead))
    return Finding(
        verdict=f"median slope {number_text(median)}; going on straight, half of "
        f"{count(len(margin), 'row')} "
        f"would change their class when every input moves by {number_text(near)}",
        number=Quantity(median, "estimate", n=len(margin), label="median length of the margin's slope"),
        hypotheses=(
            Assumption("the model goes on straight, which it does only near the row", "violated"),
            Assumption(f"{count(len(margin), 'row')} drawn at random", "checked"),
        ),
        reading="The slope says by how much the margin falls for a change of length 1 in the worst "
        "direction. Margin over slope is where a straight line would reach 0: no promise, but a number "
        "to compare models by.",
        scale=f"A typical input varies by {number_text(size)}. What is certain is said by ROB-01, what "
        "an adversary finds by ROB-03.",
        table=Table(
            "Over rows", ("quantile", "slope", "straight-line distance in linf"),
            tuple((name, float(np.quantile(lengths, q)), float(np.quantile(ahead, q)))
                  for q, name in ((0.05, "5%"), (0.5, "median"), (0.95, "95%"))),
        ),
        facts={"slope": median, "straight_distance": near},
        noise={"": median_error(lengths), "straight_distance": median_error(ahead)},
    )  # fmt: skip


def _slopes(subject: Subject, found: RowsWithClasses, until: Deadline) -> tuple[Array, Array]:
    model = classifier(subject.graph)
    margin: list[Array] = []
    slopes: list[Array] = []
    for part in paid_slices(len(found.X), SLOPE_POINTS_PER_LOOK, SECONDS_PER_LOOK, until):
        made = margin_slopes(model, found.X[part], found.y[part])
        margin.append(made.margin)
        slopes.append(made.gradient)
    return np.concatenate(margin), np.concatenate(slopes)
