"""Which exits should teach: the last one, or all later ones."""

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
    early,
    half_width,
    seeds_of,
    shown,
    trained,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ALIKE = 1.5  # points between the mean accuracies of the two
_VARIANTS = [
    {"loss": "exit-wise", "teachers": "last"},
    {"loss": "distillation", "teachers": "last"},
    {"loss": "distillation", "teachers": "later"},
]


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per choice of teachers and seed."""
    return cells_by(settings, _VARIANTS)


def compare(results: Results) -> Outcome:
    """Compare both choices with each other and with no teachers."""
    none, last, later = (seeds_of(results, "exits", **variant) for variant in _VARIANTS)
    rows = []
    n = min(len(none), len(last), len(later))
    for name, values in (("none", none), ("last", last), ("later", later)):
        if not len(values):
            continue
        gain = "-"
        if n and name != "none":
            difference = (values[:n] - none[:n])[:, early(values.shape[1])].mean(axis=1, keepdims=True)
            gain = shown(float(difference.mean()), float(half_width(difference)[0]))
        rows.append((name, f"{values[:, 0].mean():.1f}", f"{values[:, -1].mean():.1f}", gain))
    if not n:
        return Outcome("not reproduced", "Too few cells to compare.", _COLUMNS, tuple(rows))
    half = early(none.shape[1])
    gap = float((later[:n] - last[:n]).mean())
    better = all((v[:n] - none[:n])[:, half].mean() > 0 for v in (last, later))
    words = (
        f"With all later exits as teachers the mean accuracy over exits differs by {gap:+.2f} points."
    )
    good = better and abs(gap) <= _ALIKE
    return Outcome("reproduced" if good else "not reproduced", words, _COLUMNS, tuple(rows))


_COLUMNS = ("teachers", "first exit, %", "last exit, %", "gain of the early half")


def draw(results: Results) -> Figure:
    """Draw accuracies of the exits by teachers."""
    return curves_figure(results, "exits", _VARIANTS)


EXPERIMENT = Experiment(
    id="multi-exit-teachers",
    title="Learning from the last exit or from all later ones makes little difference",
    source="Phuong 2021, appendix E.1",
    published="On CIFAR-100 with 250 images per class both curves are nearly identical and above "
    "exit-wise training (figure only).",
    rule="Reproduced if the mean accuracies over exits differ by at most 1.5 points, and both choices "
    "beat the exit-wise loss on average over the first half of the exits.",
    settings={
        "quick": {**QUICK, "seeds": 3},
        "decisive": {**DECISIVE, "seeds": 3},
        "paper": {**PAPER, "labels": 200, "pool": 250, "seeds": 5},
    },
    seconds={"quick": 170, "decisive": 1300},
    power=POWER,
    cells=cells,
    run=trained,
    compare=compare,
    draw=draw,
    data=DATA,
)
