"""What unlabelled images add when there are very few labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Results
from pindown_reproduction.underspecification_thesis._multi_exit import (
    DATA,
    DECISIVE,
    PAPER,
    POWER,
    QUICK,
    cells_by,
    curves_figure,
    half_width,
    seeds_of,
    shown,
    trained,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST, _LEAST = 2.0, -1.0  # points: "about 1" with room for noise, and no real harm
_VARIANTS = [{"loss": "distillation"}, {"loss": "semi-supervised"}]


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per loss and seed."""
    return cells_by(settings, _VARIANTS)


def compare(results: Results) -> Outcome:
    """Compare exit by exit."""
    plain, semi = (seeds_of(results, "exits", **variant) for variant in _VARIANTS)
    n = min(len(plain), len(semi))
    if not n:
        rows = tuple((m + 1, f"{v:.1f}", "-", "-") for m, v in enumerate(plain.mean(axis=0)))
        return Outcome("not reproduced", "Too few cells to compare.", _COLUMNS, rows)
    gain = semi[:n] - plain[:n]
    half = half_width(gain)
    table = tuple(
        (
            m + 1,
            f"{plain[:, m].mean():.1f}",
            f"{semi[:, m].mean():.1f}",
            shown(gain[:, m].mean(), half[m]),
        )
        for m in range(gain.shape[1])
    )
    mean = float(gain.mean())
    words = (
        f"With {results[0][0]['labels']} labels per class unlabelled images change the mean accuracy "
        f"over exits by {mean:+.2f} points (first exit {gain[:, 0].mean():+.2f})."
    )
    return Outcome("reproduced" if _LEAST <= mean <= _MOST else "not reproduced", words, _COLUMNS, table)


_COLUMNS = ("exit", "distillation, %", "semi-supervised, %", "gain")


def draw(results: Results) -> Figure:
    """Draw accuracies of the exits."""
    return curves_figure(results, "exits", _VARIANTS)


EXPERIMENT = Experiment(
    id="multi-exit-few-labels",
    title="With very few labels, unlabelled images add little",
    source="Phuong 2021, appendix E.2",
    published="CIFAR-100 with 30 labelled images per class: at most about one point (figure only).",
    rule="Reproduced if the gain, averaged over exits and seeds, is between -1 and 2 points.",
    settings={
        "quick": {**QUICK, "labels": 7, "seeds": 3},
        "decisive": {**DECISIVE, "labels": 30, "seeds": 5},
        "paper": {**PAPER, "labels": 30, "pool": 420, "seeds": 5},
    },
    seconds={"quick": 68, "decisive": 600},
    power=POWER,
    remark="The source reads its number off a figure; the spread over seeds is large.",
    cells=cells,
    run=trained,
    compare=compare,
    draw=draw,
    data=DATA,
)
