"""Whether the inputs are scaled as the model expects them, and lie where the data lay."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.evidence import Assumption
from pindown.findings.finding import Finding, Quantity, Table
from pindown.findings.how_far.calibration import tempered, understates
from pindown.findings.how_far.unfamiliar_inputs import evaluated_some
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import Targets, confidences, predicted_classes
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    MENDED_LEFT,
    MENDED_SHRINKS,
    MENDED_UNDER,
    MIN_SCALING_ROWS,
    RANGE_SLACK,
    SCALED_ROWS,
    SCALING_SHARE,
    SURE_IN_STANDARD_ERRORS,
)
from pindown.findings.wording import number_text, percent
from pindown.model.graph import Model
from pindown.model.operations.dense import Scale


class _Way(NamedTuple):
    """Another scaling of the inputs.

    Attributes:
        name: What is done, as advice.
        change: The function, of rows and of what the columns' means and deviations are.
        sensible: Whether to try it, given the smallest and the largest input.
    """

    name: str
    change: Callable[[Array, Array, Array], Array]
    sensible: Callable[[float, float], bool]


# Scalings that people forget, or do twice.
_WAYS = (
    _Way("divide by 255", lambda X, m, s: X / 255.0, lambda low, high: low >= 0.0 and high > 2.0),
    _Way("divide by the largest input of all", lambda X, m, s: X / X.max(),
         lambda low, high: low >= 0.0 and 2.0 < high != 255.0),
    _Way("multiply by 255", lambda X, m, s: X * 255.0, lambda low, high: high <= 2.0),
    _Way("map [0, 1] to [-1, 1]", lambda X, m, s: 2.0 * X - 1.0,
         lambda low, high: 0.0 <= low < high <= 1.0),
    _Way("map [-1, 1] to [0, 1]", lambda X, m, s: (X + 1.0) / 2.0, lambda low, high: -1.0 <= low < 0.0),
    _Way("map [0, 255] to [-1, 1]", lambda X, m, s: X / 127.5 - 1.0,
         lambda low, high: low >= 0.0 and high > 2.0),
    _Way("exchange dark and bright", lambda X, m, s: X.max() + X.min() - X,
         lambda low, high: low >= 0.0),
    _Way("subtract the mean of every column and divide by its standard deviation",
         lambda X, m, s: (X - m) / s, lambda low, high: True),
    _Way("subtract the mean of all inputs and divide by their standard deviation",
         lambda X, m, s: (X - X.mean()) / (X.std() or 1.0), lambda low, high: True),
)  # fmt: skip


class _Tried(NamedTuple):
    """What a scaling does.

    Attributes:
        name: What is done.
        share: How often it is right then.
        sure: Its mean confidence then.
        gain: How much more often it is right than before.
        surely: The same at least.
        mended: By how much confidence comes down to accuracy; 0 where that is no matter of scale.
        part: Which part of the overconfidence that is.
        error: Standard error of what it gains, or mends.
    """

    name: str
    share: float
    sure: float
    gain: float
    surely: float
    mended: float
    part: float
    error: float

    @property
    def helps(self) -> float:
        """By how much it surely helps: accuracy gained, or the part of overconfidence taken away."""
        return max(self.surely, self.part)


@question(
    "DAT-03",
    "Scale of the inputs",
    group="how far",
    needs=("data",),
    about="The range of the inputs, whether test inputs leave that of the data, and whether another "
    "scaling (by 255, to [-1, 1], to mean 0 and deviation 1) would make it right more often.",
    cost=(0.3, 1),
)
def scale_of_inputs(subject: Subject) -> Finding:
    """Try scalings that people forget."""
    data = subject.data
    assert data is not None
    low, high = float(data.X.min()), float(data.X.max())
    spread = data.spread
    constant = int(np.count_nonzero(spread == 0.0))
    outside = _outside(subject)
    tried, given, sure, n = _tried(subject)
    best = max(tried, key=lambda way: round(way.helps, 2)) if tried else None  # of equals the usual one
    facts = {"outside": outside} if outside is not None else {}
    told = f"inputs from {number_text(low)} to {number_text(high)}"
    told += f", {constant:,} of {len(spread):,} constant" if constant else ""
    if outside is not None:
        told += f"; {percent(outside)} of the test inputs leave the range of the data"
    if best is None:
        words, number = "", Quantity(high - low, "exact", label="range of all inputs")
    elif best.surely > 0:
        words = f"; right on {percent(given)}, and on {percent(best.share)} after this: {best.name}"
        number = Quantity(best.gain, "estimate", "%", n=n, label="more right after scaling")
    elif best.part > 0:
        words = (
            f"; {percent(sure)} sure and right on {percent(given)}, after this {percent(best.sure)} "
            f"sure and right on {percent(best.share)}: {best.name}"
        )
        number = Quantity(best.mended, "estimate", "%", n=n, label="less too sure after scaling")
    else:
        words = f"; no other scaling of {len(tried)} makes it right more often"
        number = Quantity(max(best.gain, 0.0), "estimate", "%", n=n, label="more right after scaling")
    if best is not None:
        facts |= {
            "gain": best.gain if best.surely > 0 else best.mended,
            "gain_surely": best.helps,
            "given": given,
            "scaled": best.share,
            "sure": sure,
            "scaled_sure": best.sure,
        }
        number = replace(number, standard_error=best.error)
    return Finding(
        verdict=told + words,
        number=number,
        hypotheses=(Assumption("only the usual scalings were tried, on rows of the data"),),
        reading="A model has to be given inputs scaled as in training; the file does not say how. If "
        "another scaling makes it right much more often, the scaling was forgotten or done twice. "
        "Inputs outside of the range of the data are extrapolation.",
        scale="Trained and tested on inputs scaled alike, no other scaling helps.",
        table=Table(
            "After another scaling", ("scaling", "share right", "mean confidence"),
            (("as given", given, sure), *((way.name, way.share, way.sure) for way in tried)),
        ) if tried else None,
        facts=facts,
        noise={"outside": 0.0},
        remedy=best.name if best is not None and best.helps > 0 else "",
    )  # fmt: skip


def _outside(subject: Subject) -> float | None:
    """Return the share of test inputs outside of the range of the data, somewhat widened."""
    data, test = subject.data, subject.test
    if data is None or test is None:
        return None
    low, high = data.X.min(axis=0), data.X.max(axis=0)
    slack = RANGE_SLACK * np.maximum(high - low, 1e-9 * np.maximum(np.abs(low), np.abs(high)))
    return float(np.mean((low - slack > test.X) | (high + slack < test.X)))


def _tried(subject: Subject) -> tuple[list[_Tried], float, float, int]:
    """Return what scalings do, how often it is right as given, how sure, and of how many rows.

    A network without much of a bias answers alike at every scale and is only far too sure: then it is
    confidence that comes down to accuracy where the scale is right.
    """
    sample = subject.labelled
    if sample is None or sample.targets is None or not sample.targets.is_classification:
        return [], math.nan, math.nan, 0
    rows = np.sort(subject.rng("DAT-03").permutation(len(sample))[:SCALED_ROWS])
    if len(rows) < MIN_SCALING_ROWS:
        return [], math.nan, math.nan, 0
    X, y = sample.X[rows], sample.targets.values[rows]
    until = subject.turn.share(SCALING_SHARE)
    first = evaluated_some(subject, X, until)
    n, sure = len(first), confidences(first)
    right, low, high = predicted_classes(first) == y[:n], float(X.min()), float(X.max())
    too_sure = understates(sure, right)
    mean, spread = sample.mean, np.where(sample.spread > 0, sample.spread, 1.0)
    found: list[_Tried] = []
    for way in (*_WAYS, *_left_out(subject.model)):
        if not way.sensible(low, high) or (found and until.passed):
            continue
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                changed = way.change(X, mean, spread)[:n]
                shrinks = float(changed.std()) * MENDED_SHRINKS <= float(X.std())
                outputs = evaluated_some(subject, changed, until)
        except NotApplicable:
            continue
        m, confidence = len(outputs), confidences(outputs)
        now = predicted_classes(outputs) == y[:m]
        gained, lost = int(np.sum(now & ~right[:m])), int(np.sum(~now & right[:m]))
        error = math.sqrt(gained + lost) / m
        gain, mended, part = (gained - lost) / m, 0.0, 0.0
        surely = gain - SURE_IN_STANDARD_ERRORS * error
        if too_sure and shrinks:
            likelier = _likelier(first[:m], outputs, sample.targets.take(rows[:m]))
            mended, part, spent = _mended(sure[:m] - right[:m], confidence - now, gain, likelier)
            error = spent if part and surely <= 0 else error
        seen = float(now.mean()), float(confidence.mean())
        found.append(_Tried(way.name, *seen, gain, surely, mended, part, error))
    return found, float(right.mean()), float(sure.mean()), n


def _left_out(model: Model | None) -> list[_Way]:
    """Return the way to leave a scaling out that the model begins with; none if it begins with none."""
    factor, shift, kind = np.ones(()), np.zeros(()), ""
    for i, node in enumerate(model.nodes if model is not None else ()):
        scale = node.operation
        if node.inputs != (i,) or not isinstance(scale, Scale):
            break
        times = np.ones(()) if scale.factor is None else scale.factor
        factor, shift = factor * times, shift * times
        shift = shift if scale.shift is None else shift + scale.shift
        kind = scale.kind
    if model is None or not kind or (factor == 0.0).any():
        return []
    f, b = (np.broadcast_to(v, (1, *model.input_shape)).reshape(1, -1) for v in (factor, shift))
    name = f"leave out what scales them, for the model does that itself (it begins with {kind})"
    return [_Way(name, lambda X, m, s: (X - b) / f, lambda low, high: True)]


def _mended(before: Array, after: Array, gain: float, likelier: bool) -> tuple[float, float, float]:
    """Return by how much overconfidence goes away, which part that is, and the error; 0 if it stays.

    Of each row, confidence minus whether it is right; only where hardly any is left and no more wrong.
    Where the scores then say more of the labels it may be unsure, for networks are trained to be that.
    """
    was, left, drop = float(before.mean()), float(after.mean()), before - after
    known = left <= MENDED_LEFT and (likelier or left >= -MENDED_UNDER)
    if len(drop) < 2 or not known or gain < -MENDED_LEFT:
        return 0.0, 0.0, 0.0
    error, mean = float(np.std(drop, ddof=1)) / math.sqrt(len(drop)), float(drop.mean())
    if mean <= SURE_IN_STANDARD_ERRORS * error:
        return 0.0, 0.0, 0.0
    mean = min(mean, was)  # below zero it is no more of it
    return mean, mean / was, error


def _likelier(before: Array, after: Array, classes: Targets) -> bool:
    """Return whether at their best temperature scores say more, and that is nearer to 1.

    At the scale of training biases weigh as they should. At another one they are as good as gone, or
    drown the inputs, which no temperature makes good.
    """
    (hot, was), (warm, now) = tempered(before, classes), tempered(after, classes)
    return now < was and abs(math.log(warm)) < abs(math.log(hot))
