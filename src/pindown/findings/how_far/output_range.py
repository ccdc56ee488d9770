"""What the network can answer: the range of its outputs on the box, and which of them wins."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, stored_entries
from pindown.evidence import Assumption
from pindown.findings.asked_model import Function
from pindown.findings.finding import Entry, Finding, Quantity, Table
from pindown.findings.pictures import StackedBars
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import chunk_rows
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    MAX_OUTPUT_POINTS,
    MAX_OUTPUT_PRODUCTS,
    MAX_OUTPUTS_COMPARED,
    MAX_OUTPUTS_LISTED,
    MAX_PRODUCTS_FOR_LINEAR_BOUNDS,
    MIN_OUTPUT_POINTS,
    OUTPUT_POINTS_SHARE,
    PASSES_PER_INTERVAL,
    RELAXATION_SECONDS_PER_PRODUCT,
    RELAXATION_SHARE,
)
from pindown.findings.wording import at_least, at_most, count, number_text, percent
from pindown.io.evaluated import Evaluated
from pindown.model.graph import Model
from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.relaxation import bounds
from pindown.relaxation.intervals import interval_bounds
from pindown.relaxation.linear import Relaxation, relax


@question(
    "OUT-01",
    "Range of the outputs",
    group="how far",
    needs=("box", "graph"),
    about="Between which numbers every output certainly stays on the box, beside the range that random "
    "inputs reach, and which outputs are never the largest there.",
    cost=(0.3, 4),
    place=7,
)
def range_of_outputs(subject: Subject) -> Finding:
    """Bound the outputs on the box by intervals and linear forms."""
    net = subject.values
    if isinstance(net, ReluNetwork):
        found = _relaxed(subject)
        proved, never = _bounds(subject, found), _never_largest(found, net.out_features)
    else:
        proved, never = _bounds_of_any(subject), []
    if not all(np.isfinite(end).all() for end in proved):
        raise NotApplicable("no bound on the outputs fits into float64")
    reached = sampled_outputs(subject)
    low, high = float(proved.lower.min()), float(proved.upper.max())
    ratio = _looseness(proved, reached)
    silent = f"; never the largest: {_numbers(never)}" if never else ""
    return Finding(
        verdict=f"proved between {at_least(low)} and {at_most(high)}, reached "
        f"{number_text(float(reached.min()))} to {number_text(float(reached.max()))}{silent}",
        number=Quantity(high, "exact", label="largest output", bound="upper"),
        hypotheses=(
            Assumption("bounds rounded outwards, so they hold for the real-number network", "checked"),
            Assumption(f"inputs stay in {subject.box_name}"),
        ),
        reading=f"For every input in {subject.box_name} the outputs stay between the two proved "
        f"numbers; the other two are the smallest and the largest of {len(reached):,} random inputs. "
        "The truth lies between: linear bounds are wide where many units may switch."
        + (" An output that is never the largest is an answer it cannot give there." if never else ""),
        scale=f"The proved range is {number_text(round(ratio, 1))} times as wide as the one reached, in "
        "the median over outputs; 1 would be exact."
        if math.isfinite(ratio)
        else "The outputs did not vary over the random inputs.",
        table=Table(
            "Range of every output",
            ("output", "at least", "smallest reached", "largest reached", "at most"),
            tuple(
                (k, float(proved.lower[k]), float(a), float(b), float(proved.upper[k]))
                for k, (a, b) in enumerate(
                    zip(reached.min(axis=0), reached.max(axis=0), strict=True)
                )
            )[:MAX_OUTPUTS_LISTED],
        ),
        sentence=_sentence(subject, low, high, never),
    )  # fmt: skip


def _relaxed(subject: Subject) -> Relaxation:
    net, box = subject.net, subject.box
    products = sum(stored_entries(layer.weight) for layer in net.layers) * net.out_features
    subject.require(RELAXATION_SECONDS_PER_PRODUCT * 4 * products)
    deadline = subject.turn.share(RELAXATION_SHARE)
    return relax(net, box.lower[None], box.upper[None], deadline=deadline)


def _bounds_of_any(subject: Subject) -> Interval:
    """Bound the outputs of any model on the box, by linear forms where they are not too many."""
    model, box = subject.graph, subject.box
    subject.require(PASSES_PER_INTERVAL * subject.seconds_per_row(), measured=True)
    products = model.multiply_adds * model.out_features
    linear = products <= MAX_PRODUCTS_FOR_LINEAR_BOUNDS
    deadline = subject.turn.share(RELAXATION_SHARE)
    way = "linear" if linear else "interval"
    with np.errstate(all="ignore"):
        return Interval(*bounds(model, box.lower, box.upper, method=way, deadline=deadline))


def _bounds(subject: Subject, found: Relaxation) -> Interval:
    """Intersect linear bounds with those of intervals, which keep exact zeros."""
    plain, own = interval_bounds(subject.net, subject.box)[-1], found.bounds[-1]
    return Interval(np.maximum(plain.lower, own.lower[0]), np.minimum(plain.upper, own.upper[0]))


def _never_largest(found: Relaxation, k: int) -> list[int]:
    r"""Return outputs j with :math:`\sup (f_j - f_i) < 0` for some i, by linear bounds."""
    if not 2 <= k <= MAX_OUTPUTS_COMPARED:
        return []
    pairs = [(j, i) for j in range(k) for i in range(k) if i != j]
    rows = np.zeros((len(pairs), k))
    for row, (j, i) in zip(rows, pairs, strict=True):
        row[j], row[i] = 1.0, -1.0
    beaten = found.upper_bounds(rows)[0] < 0.0
    return sorted({j for (j, _), lost in zip(pairs, beaten, strict=True) if lost})


def _looseness(proved: Interval, reached: Array) -> float:
    spread = reached.max(axis=0) - reached.min(axis=0)
    if not (spread > 0).any():
        return math.inf
    with np.errstate(over="ignore"):
        return float(np.median((proved.upper - proved.lower)[spread > 0] / spread[spread > 0]))


def _sentence(subject: Subject, low: float, high: float, never: list[int]) -> str:
    if never:
        which = f"output{'s' * (len(never) > 1)} {_numbers(never)}"
        return f"On {subject.box_name} {which} {'are' if len(never) > 1 else 'is'} never the largest."
    if subject.values.out_features == 1 and low == high:
        return f"On {subject.box_name} its output is always {number_text(low)}."
    if subject.values.out_features == 1:
        return f"On {subject.box_name} its output stays between {at_least(low)} and {at_most(high)}."
    return ""


def _numbers(those: list[int]) -> str:
    words = [str(i) for i in those]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def sampled_outputs(subject: Subject) -> Array:
    """Return outputs at random points of the box, the same for every question.

    Raises:
        NotApplicable: If they overflow.
    """
    return subject.once("outputs on the box", lambda: _sampled(subject))


def _sampled(subject: Subject) -> Array:
    net, rng = subject.values, subject.rng("outputs on the box")
    step, parts, done = chunk_rows(net), [], 0
    # A number chosen by the size, so that the answer does not depend on the machine's speed unless a
    # row costs so much that the clock has to end it.
    wanted = _wanted_points(net)
    until = subject.turn.share_of_all(OUTPUT_POINTS_SHARE)
    while done < wanted and (not done or not until.passed):
        points = subject.box.sample(min(step, wanted - done), rng)
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                parts.append(net(points))
            except ValueError:
                raise NotApplicable("the network overflows float64 on the box") from None
        done += len(points)
    return np.concatenate(parts)


def _wanted_points(net: Function) -> int:
    if isinstance(net, Evaluated):
        return MIN_OUTPUT_POINTS
    if isinstance(net, Model):
        per_row = max(1, net.multiply_adds)
    else:
        per_row = max(1, sum(stored_entries(layer.weight) for layer in net.layers))
    return int(np.clip(MAX_OUTPUT_PRODUCTS / per_row, MIN_OUTPUT_POINTS, MAX_OUTPUT_POINTS))


@question(
    "OUT-02",
    "Answers to random inputs",
    group="how far",
    needs=("box",),
    about="Which output is the largest, and how often, on inputs drawn uniformly from the box; for one "
    "output its mean and spread.",
    cost=(0.2, 0),
    place=15,
)
def answers_to_random_inputs(subject: Subject) -> Finding:
    """Count which output wins on random inputs."""
    outputs = sampled_outputs(subject)
    if outputs.shape[1] == 1:
        return _one_output(subject, outputs[:, 0])
    shares = _shares(outputs)
    n, top = len(outputs), int(shares.argmax())
    share = float(shares[top])
    given = int(np.count_nonzero(shares))
    ties = " (ties count for the first)" if _tied(outputs) else ""
    order = np.argsort(-shares, kind="stable")[:MAX_OUTPUTS_COMPARED].tolist()
    return Finding(
        verdict=f"output {top} is the largest on {percent(share)} of {n:,} random inputs{ties}; "
        f"{given:,} of {count(outputs.shape[1], 'output')} ever {'is' if given == 1 else 'are'}",
        number=_share(share, n, f"of random inputs have output {top} as the largest"),
        hypotheses=(Assumption(f"points drawn uniformly from {subject.box_name}", "checked"),),
        reading="What the network answers to inputs that mean nothing. A classifier that gives all of "
        "them one class will do so with other inputs it was not made for.",
        scale=f"With {count(outputs.shape[1], 'output')} an even split would be "
        f"{percent(1 / outputs.shape[1])} each. Data may be spread quite differently.",
        figure=StackedBars(
            "Share of random inputs on which each output is the largest",
            tuple(f"output {k}" for k in order),
            ("share",),
            tuple((100 * float(shares[k]),) for k in order),
            "% of random inputs",
        ),
        table=Table(
            "Outputs by how often they are the largest",
            ("output", "share of random inputs", "mean value"),
            tuple(_rows(shares, outputs, order)),
        ),
        sentence=f"Output {top} is the largest on {percent(share)} of {n:,} random inputs from "
        f"{subject.box_name}{ties}.",
    )


def _tied(outputs: Array) -> bool:
    """Return whether two outputs are the largest anywhere."""
    return bool(np.equal(*np.partition(outputs, -2, axis=1)[:, -2:].T).any())


def _shares(outputs: Array) -> Array:
    winners: NDArray[np.intp] = outputs.argmax(axis=1)
    return np.bincount(winners, minlength=outputs.shape[1]) / len(outputs)


def _rows(shares: Array, outputs: Array, order: list[int]) -> list[tuple[Entry, ...]]:
    means = outputs.mean(axis=0)
    return [(k, float(shares[k]), float(means[k])) for k in order]


def _share(share: float, n: int, label: str) -> Quantity:
    error = math.sqrt(share * (1 - share) / n)
    return Quantity(share, "estimate", "%", standard_error=error, n=n, label=label)


class _Spread(NamedTuple):
    mean: float
    deviation: float
    positive: float


def _one_output(subject: Subject, values: Array) -> Finding:
    n = len(values)
    with np.errstate(over="ignore"):
        found = _Spread(float(values.mean()), float(values.std()), float(np.mean(values > 0)))
    low, high = (float(q) for q in np.quantile(values, [0.05, 0.95]))
    return Finding(
        verdict=f"mean {number_text(found.mean)}, standard deviation {number_text(found.deviation)}, "
        f"positive on {percent(found.positive)} of {n:,} random inputs",
        number=Quantity(
            found.mean,
            "estimate",
            standard_error=found.deviation / math.sqrt(n),
            n=n,
            label="mean output on random inputs",
        ),
        hypotheses=(Assumption(f"points drawn uniformly from {subject.box_name}", "checked"),),
        reading="What the network answers to inputs that mean nothing: 90% of its answers lie between "
        f"{number_text(low)} and {number_text(high)}.",
        scale="For two classes told apart by the sign, an even split would be 50% positive. OUT-01 says "
        "between which numbers the output certainly stays.",
    )
