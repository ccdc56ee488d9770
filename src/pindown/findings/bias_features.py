"""Whether the layers make the classes orthogonally separable."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.findings.bias_setting import Setting, read_setting
from pindown.findings.deadline import NotApplicable
from pindown.findings.finding import Cell, Finding, Hypothesis, Quantity, Table
from pindown.findings.pictures import StackedBars
from pindown.findings.registry import question
from pindown.findings.subject import Subject
from pindown.findings.wording import percent

_MOST_ROWS = 1000  # a million pairs
_SECONDS_PER_PRODUCT = 1e-9
# A cosine of this size is zero up to the rounding of an inner product.
_ZERO_COSINE = 1e-13


@question(
    "BIAS-03",
    "Separability of features",
    group="why",
    needs=("labels",),
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
    rows = setting.some(subject.rng("BIAS-03"), _MOST_ROWS)
    widths = setting.net.widths[:-1]
    subject.require(_SECONDS_PER_PRODUCT * len(rows) ** 2 * sum(widths))
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
            Hypothesis("values before the ReLU: after it no inner product is negative", "checked"),
            Hypothesis(f"all pairs of {len(rows):,} of {setting.n_given:,} rows", "checked"),
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
            tuple((name, *_cells(pair)) for name, pair in zip(names, shares, strict=True)),
        ),
    )


def _cells(pair: tuple[float, float]) -> tuple[Cell, Cell]:
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
