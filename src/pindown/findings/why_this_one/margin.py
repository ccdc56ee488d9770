"""The margin that training reached, beside the one that theory predicts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pindown.evidence import Assumption, Kind
from pindown.findings.finding import Entry, Finding, Quantity, Table
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    MARGIN_SECONDS_PER_ENTRY,
    MAX_SLOPES,
    MAX_TRAINING_ROWS,
    SECONDS_PER_SLOPE,
)
from pindown.findings.why_this_one.training_theorems import Setting, Theorem, read_setting, theorems
from pindown.findings.wording import number_text, percent


class _Answer(NamedTuple):
    verdict: str
    number: Quantity
    reading: str
    scale: str
    rows: tuple[tuple[Entry, ...], ...]
    checked: tuple[Assumption, ...] = ()


@question(
    "BIAS-02",
    "Margin and its prediction",
    group="why",
    needs=("labels", "exact"),
    about="How the margin on the data compares with the largest margin or the stationary point that "
    "theory predicts for this architecture, or why nothing is predicted.",
    cost=(0.5, 0),
)
def margin_and_prediction(subject: Subject) -> Finding:
    """Compare the margin with the prediction of the strongest theorem that applies."""
    setting = read_setting(subject)
    if not setting.targets.is_classification:
        raise NotApplicable("margins belong to classification and the targets are real values")
    linear, two_neurons, homogeneous = theorems(subject, setting)
    if linear.applies:
        theorem, answer = linear, _of_linear(subject, setting)
    elif two_neurons.applies:
        theorem, answer = two_neurons, _of_two_neurons(subject, setting)
    elif homogeneous.applies and setting.one_output and setting.dense:
        theorem, answer = homogeneous, _of_homogeneous(subject, setting)
    else:
        theorem, answer = homogeneous, _without_theorem(setting, homogeneous)
    return Finding(
        verdict=answer.verdict,
        number=answer.number,
        hypotheses=(*theorem.conditions, *answer.checked, setting.trained_on),
        reading=answer.reading,
        scale=answer.scale,
        table=Table("Margin and prediction", ("what", "value"), answer.rows),
    )


def _of_linear(subject: Subject, setting: Setting) -> _Answer:
    from pindown.bias import max_margin

    net, X = setting.unbiased()
    rows = setting.some(subject.rng("BIAS-02"))
    subject.require(MARGIN_SECONDS_PER_ENTRY * len(rows) * X.shape[1])
    best = max_margin(X[rows], setting.signs[rows])
    w = np.asarray(net.layers[0].weight)[0]
    reached = float(setting.margins[rows].min() / np.linalg.norm(w))
    angle = _angle(w, best.w)
    drawn = len(rows) < setting.n
    return _Answer(
        f"{percent(reached / best.margin)} of the largest margin; {number_text(angle)}° from its "
        f"direction",
        Quantity(reached / best.margin, "estimate" if drawn else "exact", "%",
                 n=len(rows) if drawn else None, label="of the largest margin"),
        "The distance from the separator to the nearest row,"
        + (" with the bias as the weight of one more input that is always 1," if setting.biased else "")
        + " as a share of the largest that any linear classifier attains. Gradient descent on the "
        "logistic loss goes to the largest, but only like one over the logarithm of time.",
        "100% is the prediction. An angle of 0° is its direction; random directions in many dimensions "
        "are at 90°.",
        (
            ("margin reached", reached),
            ("largest margin (proved)", best.margin),
            ("angle to the largest-margin direction, degrees", angle),
            ("support rows of the largest margin", len(best.support)),
        ),
    )  # fmt: skip


def _of_two_neurons(subject: Subject, setting: Setting) -> _Answer:
    from pindown.bias import two_layer_limit
    from pindown.bias.margins import NoMarginError
    from pindown.bias.two_layer import alignment

    rows = setting.some(subject.rng("BIAS-02"))
    X, signs = setting.X[rows], setting.signs[rows]
    subject.require(MARGIN_SECONDS_PER_ENTRY * X.size)
    try:
        limit = two_layer_limit(X, signs)
    except NoMarginError as error:
        raise NotApplicable(f"the prediction does not exist: {error}") from None
    found = alignment(setting.net, X, signs)
    predicted = float((signs * limit(X)).min())
    reached = float(setting.margins[rows].min() / setting.size**2)
    spans = [Assumption(text, "violated") for text in limit.violated]
    alive = found.correlations[found.alive]
    drawn = len(rows) < setting.n
    kind: Kind = "heuristic" if limit.violated else "estimate" if drawn else "exact"
    return _Answer(
        f"{percent(reached / predicted)} of the predicted margin; median cosine of neurons to their "
        f"predicted direction {number_text(float(np.median(alive)))}",
        Quantity(reached / predicted, kind, "%", n=len(rows) if drawn else None,
                 label="of the predicted normalised margin"),
        "The least margin over the squared length of all weights, as a share of its predicted limit, "
        "two neurons that are the max-margin vectors of the classes. Training from small weights "
        "approaches it like one over the logarithm of time.",
        "100% and cosine 1 are the prediction. Above 100% is possible: the limit is a stationary point, "
        "not always the largest margin. In the source's experiment most neurons are above 0.9.",
        (
            ("normalised margin reached", reached),
            ("normalised margin predicted", predicted),
            ("neurons within cosine 0.9 of the prediction", found.close),
            ("median cosine of neurons that contribute", float(np.median(alive))),
            ("third singular value over the first (predicted 0)", found.third_to_first),
        ),
        tuple(spans),
    )  # fmt: skip


def _of_homogeneous(subject: Subject, setting: Setting) -> _Answer:
    from pindown.bias.two_layer import margin_certificate

    net, X = setting.unbiased()
    n_weights = sum(int(np.prod(layer.weight.shape)) for layer in net.layers)
    most = min(MAX_TRAINING_ROWS, max(1, MAX_SLOPES // n_weights))
    # Multipliers belong to rows of least margin; leaving out others can only raise the residual.
    rows = np.argsort(setting.margins, kind="stable")[:most]
    subject.require(SECONDS_PER_SLOPE * len(rows) * n_weights)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            found = margin_certificate(net, X[rows], setting.signs[rows])
    except ValueError as error:
        raise NotApplicable(
            f"the conditions of a stationary point could not be measured: {error}"
        ) from None
    if not np.isfinite([found.stationarity, found.margin]).all():
        raise NotApplicable("the weights or outputs are too large or small for float64")
    held = int(np.count_nonzero(found.multipliers > 0))
    return _Answer(
        f"stationary to {percent(found.stationarity)}; normalised margin {number_text(found.margin)}",
        Quantity(found.stationarity, "exact", "%", label="of the weights unexplained"
                 + ("" if len(rows) == setting.n else ", at most")),
        "At a stationary point of the margin the weights are a positive combination of the derivatives "
        "of the outputs at the rows of least margin. This is the share of the weights, in length, that "
        "no such combination explains.",
        "0% is the prediction for endless training; weights that no row holds in place are at 100%. "
        "Weight decay, early stopping and frozen units all raise it.",
        (
            ("unexplained share of the weights", found.stationarity),
            ("largest violation of complementarity", found.complementarity),
            ("normalised margin", found.margin),
            ("rows that hold the weights", held),
        ),
    )  # fmt: skip


def _without_theorem(setting: Setting, homogeneous: Theorem) -> _Answer:
    k, least = setting.net.out_features, float(setting.margins.min())
    why = homogeneous.obstacle if not homogeneous.applies else (
        f"the conditions of the theorem are measured for one output only and there are {k}"
        if k > 1 else
        "the theorem is not measured for layers that are stored sparse, as convolutions are"
    )  # fmt: skip
    told = "not compared with its prediction" if homogeneous.applies else "no theorem here applies"
    normalised = setting.normalised_margin if setting.homogeneous and least > 0 else None
    return _Answer(
        f"{told}, because {why}; least margin {number_text(least)}",
        Quantity(least, "exact", label="least margin"),
        "By how much the right class wins on the worst row. No prediction stands beside it: "
        f"{why}.",
        "In units of the outputs; above 0 every row is classified correctly. ACC-02 shows all margins.",
        (
            ("least margin", least),
            ("normalised margin", normalised),
            ("length of all weights", setting.size),
        ),
    )  # fmt: skip


def _angle(u: np.ndarray, v: np.ndarray) -> float:
    cosine = u @ v / (np.linalg.norm(u) * np.linalg.norm(v))
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
