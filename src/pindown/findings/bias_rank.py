"""In how many directions the weights of each layer act, beside what theory predicts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array
from pindown.findings.bias_setting import read_setting
from pindown.findings.bias_theory import theorems
from pindown.findings.deadline import NotApplicable
from pindown.findings.finding import Cell, Finding, Hypothesis, Quantity, Table
from pindown.findings.registry import question
from pindown.findings.subject import Subject
from pindown.findings.wording import number_text

_NEGLIGIBLE = 1e-2  # singular values below this share of the largest: "rank two to 1e-2" in the source
_MOST_LISTED = 16  # layers in a line
_MOST_SIDE = 3000  # of a layer whose singular values are computed
_SECONDS_PER_STEP = 5e-10  # of one multiply-add of products and eigenvalues


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
    rows: list[tuple[Cell, ...]] = []
    ranks: list[tuple[float, float]] = []
    for i, layer in enumerate(subject.net.layers, 1):
        W = layer.weight
        shape = f"{W.shape[0]:,} × {W.shape[1]:,}"
        if sp.issparse(W) or min(W.shape) > _MOST_SIDE:
            rows.append((i, shape, None, None, None, None))
            continue
        subject.require(2 * _SECONDS_PER_STEP * max(W.shape) * min(W.shape) ** 2)
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
    conditions: tuple[Hypothesis, ...]


def _predicted(subject: Subject) -> _Theory:
    """Check the theorem that predicts rank two, as far as there are data to check it on."""
    try:
        setting = read_setting(subject)
    except NotApplicable:
        reason = "no labelled training data were given"
        return _Theory(False, reason, (Hypothesis("the ranks are those of the weights", "checked"),))
    theorem = theorems(subject, setting)[1]
    conditions = (*theorem.conditions, setting.trained_on)
    return _Theory(theorem.applies, "" if theorem.applies else theorem.obstacle, conditions)


def _listed(rows: list[tuple[Cell, ...]]) -> str:
    shown = [_shown(row[2]) for row in rows]
    if len(shown) > _MOST_LISTED:
        shown[5:-5] = [f"… {len(shown) - 10} more …"]
    return ", ".join(shown)


def _shown(rank: Cell) -> str:
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
