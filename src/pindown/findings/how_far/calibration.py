"""Whether its confidence can be believed, and where it was sure and wrong."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.evidence import Assumption
from pindown.findings.finding import Entry, Finding, Quantity, Table
from pindown.findings.pictures import Curves
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import Sample, Targets, confidences, margins, predicted_classes
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    CALIBRATION_BINS,
    CONFIDENT,
    MANY_TIMES_WRONG,
    MAX_CHANCE,
    MIN_CALIBRATION_ROWS,
    WORST_ROWS_SHOWN,
)
from pindown.findings.wording import count, number_text, percent

_SOFTMAX = Assumption("scores become probabilities by a softmax, or by a sigmoid of one output")


@question(
    "CAL-01",
    "Calibration",
    group="how far",
    needs=("labels",),
    about="Whether the network is right as often as it says: mean confidence beside accuracy, the error "
    "over bins of confidence, and the temperature that would mend it.",
    cost=(0.1, 0),
    place=19,
)
def calibration(subject: Subject) -> Finding:
    """Compare confidence with accuracy."""
    sample, observed, targets = subject.judged()
    _require_classes(targets)
    if observed.n < MIN_CALIBRATION_ROWS:
        raise NotApplicable(f"confidence is judged on {MIN_CALIBRATION_ROWS} rows at least")
    sure = confidences(observed.outputs)
    right = predicted_classes(observed.outputs) == targets.values
    gap = float(np.mean(sure - right))
    error = float(np.std(sure - right, ddof=1) / math.sqrt(len(sure)))
    surely = _no_chance(sure, right)
    times = times_wrong(sure, right)
    bins = reliability(sure, right)
    ece = expected_calibration_error(bins)
    temperature = best_temperature(observed.outputs, targets)
    word = "overconfident" if gap > 0 else "underconfident"
    return Finding(
        verdict=f"{percent(float(sure.mean()))} sure in the mean and right on "
        f"{percent(float(right.mean()))} of {observed.seen} of the {sample.name}: {word} by "
        f"{percent(abs(gap))}",
        number=Quantity(gap, "estimate", "%", standard_error=error, n=len(sure),
                        label="mean confidence minus accuracy"),
        hypotheses=(_SOFTMAX, Assumption("rows are independent and like those to come"),
                    *_unseen(subject, sample)),
        reading="A calibrated network that is 80% sure is right in 80% of such cases. "
        "Dividing the scores "
        f"by {number_text(temperature)} before the softmax fits these rows best; it "
        "changes no decision. "
        f"The mean gap over {len(bins)} bins of confidence (the expected calibration error) is "
        f"{percent(ece)}.",
        scale="0 is calibrated in the mean. Chance alone gives a gap of about "
        f"{percent(error)} with so many rows; above 0 it is surer than it should be.",
        figure=Curves(
            "Share right against confidence, in bins of as many rows; on the diagonal is calibrated",
            tuple(float(c) for c, _, _ in bins), ("right", "calibrated"),
            (tuple(float(r) for _, r, _ in bins), tuple(float(c) for c, _, _ in bins)),
            "mean confidence", "share right",
        ) if len(bins) > 1 and all(b[0] > a[0] for a, b in pairwise(bins)) else None,
        table=Table("Confidence and accuracy", ("mean confidence", "share right", "rows"),
                    tuple((float(c), float(r), n) for c, r, n in bins)),
        sentence=f"It is {percent(float(sure.mean()))} sure in the mean and right on "
        f"{percent(float(right.mean()))}.",
        facts={
            "overconfidence": gap,
            "overconfidence_surely": gap if surely else min(gap, 0.0),
            "times_wrong": times,
            "times_wrong_surely": times if surely else min(times, 1.0),
            "confidence": float(sure.mean()),
            "accuracy": float(right.mean()),
            "calibration_error": ece,
            "temperature": temperature,
        },
        noise=observed.noise or {"times_wrong": times / math.sqrt(max(1.0, float(np.sum(~right))))},
    )  # fmt: skip


def times_wrong(sure: Array, right: NDArray[np.bool_]) -> float:
    """Return how many times as often as its confidence says it is wrong."""
    return float(np.mean(~right)) / max(float(np.mean(1.0 - sure)), 1e-9)  # in float64 it may be sure


def understates(sure: Array, right: NDArray[np.bool_]) -> bool:
    """Return whether it is wrong many times as often as it says, and that is no chance."""
    return times_wrong(sure, right) > MANY_TIMES_WRONG and _no_chance(sure, right)


def _no_chance(sure: Array, right: NDArray[np.bool_]) -> bool:
    r"""Return whether a calibrated model would hardly make as many mistakes.

    As many are a sum of independent events of probability :math:`1 - p_i`, of which a Poisson variable
    of the same mean has the heavier upper tail.
    """
    from scipy.special import gammainc  # scipy.stats has it too, and takes half a second to load

    return bool(gammainc(np.count_nonzero(~right), np.sum(1.0 - sure)) < MAX_CHANCE)


def _unseen(subject: Subject, sample: Sample) -> list[Assumption]:
    if sample is subject.test:
        return []
    return [Assumption("rows were not used for training (not said; on those it is right too often)")]


def _require_classes(targets: Targets) -> None:
    if not targets.is_classification:
        raise NotApplicable("confidence belongs to classification and the targets are real values")


def reliability(sure: Array, right: NDArray[np.bool_]) -> list[tuple[float, float, int]]:
    """Return mean confidence, share right and rows of bins of as many rows each, ascending.

    >>> reliability(np.array([0.6, 0.9]), np.array([False, True]))
    [(0.75, 0.5, 2)]
    """
    order = np.argsort(sure, kind="stable")
    n_bins = max(1, min(CALIBRATION_BINS, len(sure) // CALIBRATION_BINS))
    parts = np.array_split(order, n_bins)
    return [(float(sure[p].mean()), float(right[p].mean()), len(p)) for p in parts]


def expected_calibration_error(bins: list[tuple[float, float, int]]) -> float:
    r"""Return :math:`\sum_b \frac{n_b}{n} \lvert \mathrm{acc}_b - \mathrm{conf}_b \rvert`.

    >>> expected_calibration_error([(0.75, 0.5, 2)])
    0.25

    Naeini, Cooper and Hauskrecht 2015, "Obtaining well calibrated probabilities using Bayesian binning".
    """
    n = sum(rows for _, _, rows in bins)
    return sum(rows * abs(share - sure) for sure, share, rows in bins) / n


def best_temperature(outputs: Array, targets: Targets) -> float:
    r"""Return T > 0 with the least cross entropy of :math:`\mathrm{softmax}(f / T)`.

    The cross entropy is convex in 1/T, so a search in one variable finds it.

    Guo, Pleiss, Sun and Weinberger 2017, "On calibration of modern neural networks", section 4.2.

    >>> outputs = 10.0 * np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> round(best_temperature(outputs, Targets("classes", np.array([0, 0, 1, 1]))), 2)
    9.1
    """
    return tempered(outputs, targets)[0]


def tempered(outputs: Array, targets: Targets) -> tuple[float, float]:
    """Return the best temperature, and the mean cross entropy that is left at it."""
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    scores = np.c_[np.zeros(len(outputs)), outputs] if outputs.shape[1] == 1 else outputs
    scale = float(np.abs(scores - scores.max(axis=1, keepdims=True)).max()) or 1.0
    scaled, own = scores / scale, np.arange(len(scores))

    def loss(log_inverse: float) -> float:
        z = math.exp(log_inverse) * scaled
        return float(np.mean(logsumexp(z, axis=1) - z[own, targets.values]))

    found = minimize_scalar(loss, bounds=(-6.0, max(0.0, math.log(scale)) + 6.0), method="bounded")
    return float(scale * math.exp(-found.x)), float(found.fun)


@question(
    "ACC-03",
    "Confident mistakes",
    group="how far",
    needs=("labels",),
    about="Rows on which the network is wrong although it is at least 95% sure: how many, and which.",
    cost=(0.05, 0),
)
def confident_mistakes(subject: Subject) -> Finding:
    """List rows that are wrong with high confidence."""
    _, observed, targets = subject.judged()
    _require_classes(targets)
    sure = confidences(observed.outputs)
    predicted = predicted_classes(observed.outputs)
    wrong = predicted != targets.values
    bold = np.flatnonzero(wrong & (sure >= CONFIDENT))
    worst = bold[np.argsort(margins(observed.outputs, targets)[bold], kind="stable")][:WORST_ROWS_SHOWN]
    n, share = observed.n, len(bold) / observed.n
    rows: tuple[tuple[Entry, ...], ...] = tuple(
        (int(observed.rows[i]), int(targets.values[i]), int(predicted[i]), float(sure[i])) for i in worst
    )
    return Finding(
        verdict=f"{count(len(bold), 'row')} of {n:,} ({percent(share)}) wrong although at least "
        f"{percent(CONFIDENT)} sure, of {count(int(wrong.sum()), 'mistake')} in all",
        number=Quantity(share, "exact", "%", label="confident mistakes"),
        hypotheses=(_SOFTMAX, Assumption(f"a statement about {observed.seen}", "checked")),
        reading="No threshold on the confidence would have caught these. Look at them one by one: often "
        "it is the label that is wrong.",
        scale=f"A calibrated network is wrong in at most {percent(1 - CONFIDENT)} of the cases in which "
        f"it is {percent(CONFIDENT)} sure.",
        table=Table(
            "Confident mistakes, the worst first (rows numbered from 0)",
            ("row", "label", "predicted", "confidence"),
            rows,
        )
        if rows
        else None,
        facts={"confident_mistakes": share, "confident_mistakes_count": float(len(bold))},
    )
