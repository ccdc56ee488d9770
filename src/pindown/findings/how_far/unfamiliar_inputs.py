"""What it answers to noise and to inputs it was not made for, and what noise on the inputs does."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.deadline import Deadline
from pindown.evidence import Assumption
from pindown.findings.finding import Finding, Quantity, Table
from pindown.findings.pictures import StackedBars
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import chunk_rows, confidences, predicted_classes, typical_range
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    CONFIDENT,
    MAX_NOISY_ROWS,
    NOISE_LEVELS,
    ROWS_OF_A_LOOK,
    UNFAMILIAR_POINTS,
    UNFAMILIAR_REACH,
    UNFAMILIAR_SHARE,
)
from pindown.findings.wording import count, number_text, percent


class _Answers(NamedTuple):
    """What a kind of input is called, and the outputs on some of them."""

    name: str
    outputs: Array


@question(
    "OUT-03",
    "Answers to strange inputs",
    group="how far",
    needs=("box", "data"),
    about="How sure the network is of noise, of rows whose entries are shuffled, and of "
    "inputs ten times "
    "outside the box, beside how sure it is of data.",
    cost=(0.2, 1),
)
def strange_inputs(subject: Subject) -> Finding:
    """Measure confidence where there is nothing to recognise."""
    assert subject.data is not None
    if subject.labelled is not None and not _classes(subject):
        return _far_values(subject)
    if subject.values.out_features == 1 and subject.labelled is None:
        raise NotApplicable("one output and no labels: nothing says that its sign is a class")
    found = _asked(subject)
    shares = [float(np.mean(confidences(kind.outputs) >= CONFIDENT)) for kind in found]
    means = [float(confidences(kind.outputs).mean()) for kind in found]
    noise, n = shares[1], len(found[1].outputs)
    return Finding(
        verdict=f"at least {percent(CONFIDENT)} sure of {percent(noise)} of noise, "
        f"{percent(shares[3])} of inputs outside the box and {percent(shares[0])} of data",
        number=Quantity(noise, "estimate", "%", standard_error=math.sqrt(noise * (1 - noise) / n), n=n,
                        label=f"of noise answered with {percent(CONFIDENT)} confidence or more"),
        hypotheses=(
            Assumption("scores become probabilities by a softmax, or by a sigmoid of one output"),
            Assumption(f"noise is uniform on {subject.box_name}; strange inputs of other kinds exist"),
        ),
        reading="There is nothing to recognise in noise, so a network that is sure of it will also be "
        "sure of a broken sensor or of the wrong kind of picture. Its confidence is then no guard; an "
        "outlier detector before it (pindown detect) can be one.",
        scale="Networks of ReLUs become arbitrarily sure far away from data, whatever they were trained "
        "on (Hein, Andriushchenko, Bitterwolf 2019). With few inputs the box is full of "
        "data-like points.",
        figure=StackedBars(
            f"Share of inputs answered with {percent(CONFIDENT)} confidence or more",
            tuple(kind.name for kind in found), ("share",), tuple((100 * s,) for s in shares),
            "% of inputs",
        ),
        table=Table(
            "Confidence by kind of input", ("inputs", "how many", "share sure", "mean confidence"),
            tuple((kind.name, len(kind.outputs), s, m)
                  for kind, s, m in zip(found, shares, means, strict=True)),
        ),
        facts={"sure_of_noise": noise, "sure_of_far": shares[3], "sure_of_data": shares[0]},
    )  # fmt: skip


def _classes(subject: Subject) -> bool:
    sample = subject.labelled
    return sample is not None and sample.targets is not None and sample.targets.is_classification


def _far_values(subject: Subject) -> Finding:
    """Say how far outputs outside the box leave the range they have on the data."""
    data, noise, _, far = _asked(subject)
    low, high = float(data.outputs.min()), float(data.outputs.max())
    width = (high - low) or 1.0
    beyond = float(np.maximum(np.abs(far.outputs - (low + high) / 2).max() / (width / 2), 1.0))
    return Finding(
        verdict=f"outputs on the data lie between {number_text(low)} and {number_text(high)}, on inputs "
        f"{UNFAMILIAR_REACH:g} times outside the box up to {number_text(beyond)} times as far out",
        number=Quantity(beyond, "estimate", "times", n=len(far.outputs), label="the range on the data"),
        hypotheses=(Assumption(f"points drawn uniformly from {subject.box_name} made larger"),),
        reading="Outside of what it was trained on a network goes on as it happens to; its values there "
        "mean nothing. On noise inside the box they lie between "
        f"{number_text(float(noise.outputs.min()))} "
        f"and {number_text(float(noise.outputs.max()))}.",
        scale="1 means that it never leaves the range it has on the data.",
    )


def _asked(subject: Subject) -> list[_Answers]:
    """Return outputs on data, noise, shuffled rows and points outside the box."""
    return subject.once("answers to strange inputs", lambda: _ask(subject))


def _ask(subject: Subject) -> list[_Answers]:
    assert subject.data is not None
    rng, box = subject.rng("OUT-03"), subject.box
    n = subject.affordable(UNFAMILIAR_POINTS, 4, UNFAMILIAR_SHARE)
    data = subject.data.X[rng.permutation(len(subject.data))[:n]]
    shuffled = np.stack([rng.permutation(row) for row in data])
    reach = UNFAMILIAR_REACH * box.radius * rng.uniform(-1.0, 1.0, (n, box.dim))
    far = box.center + reach
    until = subject.turn.share(UNFAMILIAR_SHARE)
    kinds = {
        "data": data,
        "noise": box.sample(n, rng),
        "shuffled rows": shuffled,
        "outside the box": far,
    }
    return [_Answers(name, evaluated_some(subject, rows, until)) for name, rows in kinds.items()]


def evaluated_some(subject: Subject, rows: Array, until: Deadline) -> Array:
    """Return outputs at the first of some rows, at least a chunk, as many as the time allows.

    Raises:
        NotApplicable: If they overflow.
    """
    step = min(chunk_rows(subject.values), ROWS_OF_A_LOOK)
    parts: list[Array] = []
    for start in range(0, len(rows), step):
        if parts and until.passed:
            break
        try:
            with np.errstate(all="ignore"):
                parts.append(subject.values(rows[start : start + step]))
        except ValueError:
            raise NotApplicable("the network overflows float64 there") from None
    return np.concatenate(parts)


@question(
    "SEN-01",
    "Noise on the inputs",
    group="how far",
    needs=("data",),
    about="How many decisions stay, or by how much outputs change, when noise of 1%, 3% and 10% of the "
    "inputs' range is added.",
    cost=(0.2, 1),
)
def noise_on_inputs(subject: Subject) -> Finding:
    """Add noise to rows and see what changes."""
    sample = subject.labelled if subject.labelled is not None else subject.data
    assert sample is not None
    rng = subject.rng("SEN-01")
    n = subject.affordable(MAX_NOISY_ROWS, 1 + len(NOISE_LEVELS), UNFAMILIAR_SHARE)
    X = sample.X[rng.permutation(len(sample))[:n]]
    until = subject.turn.share(UNFAMILIAR_SHARE)
    ranges = subject.ranges(sample.X)
    size = typical_range(sample.X) if ranges is None else ranges
    clean = evaluated_some(subject, X, until)
    X = X[: len(clean)]
    noisy = [
        evaluated_some(subject, X + level * size * rng.standard_normal(X.shape), until)
        for level in NOISE_LEVELS
    ]  # fmt: skip
    decides = subject.values.out_features > 1 if subject.labelled is None else _classes(subject)
    measure = _kept if decides else _change
    values = [measure(clean[: len(out)], out) for out in noisy]
    told = ", ".join(
        f"{percent(v)} at {percent(level)}" for level, v in zip(NOISE_LEVELS, values, strict=True)
    )
    n, what = len(noisy[0]), "of decisions kept" if decides else "change"
    return Finding(
        verdict=f"decisions kept under noise: {told}" if decides
        else f"change of outputs under noise, of their spread: {told}",
        number=Quantity(values[0], "estimate", "%", n=n,
                        standard_error=math.sqrt(values[0] * (1 - values[0]) / n) if decides else None,
                        label=f"{what} at {percent(NOISE_LEVELS[0])} noise"),
        hypotheses=(Assumption(f"Gaussian noise, independent in every input, on {count(n, 'row')}"),),
        reading="Noise of 1% has a standard deviation of 1% of the range of "
        f"{'a typical' if ranges is None else 'every'} input. What "
        "measurement noise does is about this; what an adversary can do with as little is far worse "
        "(ROB-03).",
        scale="100% would not notice the noise at all." if decides else "0% would not notice it at all.",
        table=Table("Under noise", ("noise, of the range", "decisions kept" if decides else "change"),
                    tuple((level, v) for level, v in zip(NOISE_LEVELS, values, strict=True))),
        facts={"kept_at_1_percent": values[0]} if decides else {},
    )  # fmt: skip


def _kept(clean: Array, noisy: Array) -> float:
    return float(np.mean(predicted_classes(clean) == predicted_classes(noisy)))


def _change(clean: Array, noisy: Array) -> float:
    spread = float(clean.std()) or 1.0
    return float(np.sqrt(np.mean((noisy - clean) ** 2)) / spread)
