"""Layer by layer: whether features are orthogonally separable, and the rank of the weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.evidence import Assumption
from pindown.findings.finding import Entry, Finding, Quantity, Table
from pindown.findings.pictures import StackedBars
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    MAX_RANKS_LISTED,
    MAX_ROWS_FOR_PAIRS,
    MAX_SIDE_FOR_RANK,
    PAIR_SECONDS_PER_PRODUCT,
    RANK_SECONDS_PER_STEP,
)
from pindown.findings.why_this_one.training_theorems import Setting, read_setting, theorems
from pindown.findings.wording import number_text, percent

# A cosine of this size is zero up to the rounding of an inner product.
_ZERO_COSINE = 1e-13
_NEGLIGIBLE = 1e-2  # singular values below this share of the largest: "rank two to 1e-2" in the source


@question(
    "BIAS-03",
    "Separability of features",
    group="why",
    needs=("labels", "exact"),
    about="Layer by layer, how many pairs of rows point apart although they are of one class, or "
    "together although they are not: none do if the features are orthogonally separable.",
    cost=(0.3, 0),
)
def separability_of_features(subject: Subject) -> Finding:
    """Count pairs of rows with the wrong sign of inner product at every layer."""
    setting = read_setting(subject)
    if not setting.targets.is_classification:
        raise NotApplicable("separability belongs to classification and the targets are real values")
    if len(np.unique(setting.targets.values)) < 2:
        raise NotApplicable("all rows are of one class")
    rows = setting.some(subject.rng("BIAS-03"), MAX_ROWS_FOR_PAIRS)
    widths = setting.net.widths[:-1]
    subject.require(PAIR_SECONDS_PER_PRODUCT * len(rows) ** 2 * sum(widths))
    labels = setting.targets.values[rows]
    names = ["inputs", *(f"layer {i}" for i in range(1, setting.net.depth))]
    shares = [_wrong_pairs(part, labels) for part in _features(setting, rows)]
    worst = [max(within, between) for within, between in shares]
    drawn = len(rows) < setting.n
    clean = [name for name, share in zip(names, worst, strict=True) if share == 0.0]
    best = int(np.argmin(worst))
    return Finding(
        verdict=f"orthogonally separable: {', '.join(clean)}"
        if clean
        else f"no layer is orthogonally separable; fewest pairs wrong: {percent(worst[best])}, "
        f"{names[best]}",
        number=Quantity(
            worst[-1],
            "estimate" if drawn else "exact",
            "%",
            n=len(rows) if drawn else None,
            label=f"wrong pairs, {names[-1]}",
        ),
        hypotheses=(
            Assumption("values before the ReLU: after it no inner product is negative", "checked"),
            Assumption(f"all pairs of {len(rows):,} of {setting.n_given:,} rows", "checked"),
            setting.trained_on,
        ),
        reading="Features are orthogonally separable if any two rows of one class have a positive inner "
        "product and any two of different classes do not. A two-layer network on such features is "
        "predicted to collapse to one neuron per class. The larger of the two shares of wrong pairs "
        "is shown.",
        scale="0% in both columns is needed, not just few. Features that know nothing of the classes "
        "have about 50% wrong in each, and inputs that are never negative 100% between classes.",
        figure=StackedBars(
            "Pairs with the wrong sign, within and between classes (each out of 100%)",
            tuple(names),
            ("within a class", "between classes"),
            tuple((100 * a, 100 * b) for a, b in shares),
            "% of pairs",
        ),
        table=Table(
            "Pairs of rows with the wrong sign of inner product",
            ("features", "within a class", "between classes"),
            tuple((name, *_entries(pair)) for name, pair in zip(names, shares, strict=True)),
        ),
    )


def _entries(pair: tuple[float, float]) -> tuple[Entry, Entry]:
    return percent(pair[0]), percent(pair[1])


def _features(setting: Setting, rows: NDArray[np.intp]) -> list[Array]:
    X = setting.X[rows]
    return [X, *setting.net.by_layer(setting.net.preactivations(X))]


def _wrong_pairs(features: Array, labels: NDArray[Any]) -> tuple[float, float]:
    """Return the shares of wrong pairs within classes and between them; 0 where there are no pairs."""
    features = features / (float(np.abs(features).max()) or 1.0)  # squares stay within the floats
    lengths = np.linalg.norm(features, axis=1)
    units = features / np.where(lengths > 0, lengths, 1.0)[:, None]
    cosines = units @ units.T
    same = labels[:, None] == labels[None]
    within = int(np.count_nonzero((cosines <= _ZERO_COSINE) & same))
    between = int(np.count_nonzero((cosines > _ZERO_COSINE) & ~same))
    pairs = int(np.count_nonzero(same))
    return within / pairs, between / max(1, same.size - pairs)


@question(
    "BIAS-04",
    "Effective rank of the weights",
    group="why",
    needs=("relus",),
    about="In how many directions each layer acts, beside the rank that theory predicts where it does "
    "and beside random weights of the same shape.",
    cost=(0.3, 0),
)
def effective_rank_of_weights(subject: Subject) -> Finding:
    """Compare the singular values of each layer with the prediction and with random weights."""
    theory = _predicted(subject)
    rng = subject.rng("BIAS-04")
    rows: list[tuple[Entry, ...]] = []
    ranks: list[tuple[float, float]] = []
    for i, layer in enumerate(subject.net.layers, 1):
        W = layer.weight
        shape = f"{W.shape[0]:,} × {W.shape[1]:,}"
        if sp.issparse(W) or min(W.shape) > MAX_SIDE_FOR_RANK:
            rows.append((i, shape, None, None, None, None))
            continue
        subject.require(2 * RANK_SECONDS_PER_STEP * max(W.shape) * min(W.shape) ** 2)
        rank, above = _ranks(W)
        fresh, _ = _ranks(rng.standard_normal(W.shape))
        predicted = 2 if theory.applies and i == 1 else None
        ranks.append((rank, fresh))
        rows.append((i, shape, rank, above, fresh, predicted))
    if not ranks:
        raise NotApplicable("no layer is dense and small enough for its singular values")
    # The least of a random layer's directions: where training has concentrated most.
    lowest, fresh = min(ranks, key=lambda pair: pair[0] / pair[1])
    # Above one, no layer is more concentrated than random weights: each has at least all of their rank.
    share = min(1.0, lowest / fresh)
    first = next(row for row in rows if row[2] is not None)
    told = (
        f"layer 1 has {first[3]} singular values above 1% of the largest, predicted 2"
        if theory.applies
        else f"effective ranks {_listed(rows)}; no prediction applies, because {theory.obstacle}"
    )
    return Finding(
        verdict=told,
        number=Quantity(share, "exact", "%", label="of a random layer's effective rank, at least"),
        hypotheses=theory.conditions,
        reading="The effective rank is the exponential of the entropy of the singular values: n if n "
        "directions count alike. From small weights, training a two-layer network on orthogonally "
        "separable data is predicted to leave rank two. For other networks low rank is often seen and "
        "seldom proved.",
        scale="The column 'random' is what Gaussian weights of the same shape have. Near it, the layer "
        "looks untouched by this measure; far below, a few directions carry it.",
        table=Table(
            "Singular values of the layers",
            ("layer", "shape", "effective rank", "above 1% of the largest", "random", "predicted"),
            tuple(rows),
        ),
    )


class _Theory(NamedTuple):
    """What is known about the prediction of rank two."""

    applies: bool
    obstacle: str
    conditions: tuple[Assumption, ...]


def _predicted(subject: Subject) -> _Theory:
    """Check the theorem that predicts rank two, as far as there are data to check it on."""
    try:
        setting = read_setting(subject)
    except NotApplicable:
        reason = "no labelled training data were given"
        return _Theory(False, reason, (Assumption("the ranks are those of the weights", "checked"),))
    theorem = theorems(subject, setting)[1]
    conditions = (*theorem.conditions, setting.trained_on)
    return _Theory(theorem.applies, "" if theorem.applies else theorem.obstacle, conditions)


def _listed(rows: list[tuple[Entry, ...]]) -> str:
    shown = [_shown(row[2]) for row in rows]
    if len(shown) > MAX_RANKS_LISTED:
        shown[5:-5] = [f"… {len(shown) - 10} more …"]
    return ", ".join(shown)


def _shown(rank: Entry) -> str:
    return "?" if not isinstance(rank, float) else number_text(round(rank, 1))


def _ranks(W: Array) -> tuple[float, int]:
    """Return the effective rank, and how many singular values are not negligible."""
    largest = float(np.abs(W).max())
    if largest == 0.0:
        return 0.0, 0
    # Squares in units of the largest entry: good to 1e-8 of the largest value, which is plenty.
    W = W / largest
    squares = np.linalg.eigvalsh(W @ W.T if W.shape[0] <= W.shape[1] else W.T @ W)
    values = np.sqrt(np.maximum(squares[::-1], 0.0))
    shares = values[values > 0] / values.sum()
    entropy = -float(np.sum(shares * np.log(shares)))
    # It counts directions: from one to as many as there are, which rounding may leave.
    rank = min(max(float(np.exp(entropy)), 1.0), float(min(W.shape)))
    return rank, int(np.count_nonzero(values > _NEGLIGIBLE * values[0]))
