"""Exits that learn from the last one, anytime mode: the mean of all exits so far."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pindown_reproduction.experiment import Experiment, Outcome, Results
from pindown_reproduction.underspecification_thesis._multi_exit import (
    DATA,
    DECISIVE,
    LOSSES,
    PAPER,
    POWER,
    QUICK,
    curves_figure,
    seeds_of,
    trained,
)
from pindown_reproduction.underspecification_thesis.multi_exit_budget import cells, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Phuong 2021, Table 6.4: CIFAR-100 with 150 images per class, top-5 accuracy of the first m exits, %.
ANYTIME = {
    "exit-wise": (72.4, 75.8, 77.9, 79.1, 80.0, 80.7, 81.2, 81.6, 81.9, 82.1, 82.2),
    "distillation": (78.7, 80.8, 81.8, 82.3, 82.7, 82.8, 82.9, 82.9, 82.9, 82.9, 82.8),
    "semi-supervised": (79.9, 81.5, 82.1, 82.3, 82.3, 82.3, 82.3, 82.3, 82.2, 82.2, 82.1),
}
_NOISE = 1.0  # points that an ensemble may lose by one more exit


def compare(results: Results) -> Outcome:
    """Set the gains beside the source's, and look whether more exits help."""
    outcome = judge(results, "ensembles", ANYTIME, "the accuracy")
    base = seeds_of(results, "ensembles", loss="exit-wise").mean(axis=0)
    drop = float(max(0.0, *(base[:-1] - base[1:]))) if len(base) > 1 else 0.0
    helped = drop <= _NOISE
    words = f"{outcome.words} One more exit costs the exit-wise ensemble at most {drop:.2f} points."
    good = outcome.verdict == "reproduced" and helped
    return replace(outcome, verdict="reproduced" if good else "not reproduced", words=words)


def draw(results: Results) -> Figure:
    """Draw accuracy against the number of exits in the mean."""
    return curves_figure(results, "ensembles", [{"loss": loss} for loss in LOSSES])


EXPERIMENT = Experiment(
    id="multi-exit-anytime",
    title="Early exits gain from learning from the last one (anytime mode)",
    source="Phuong 2021, Tables 6.3 and 6.4",
    published="CIFAR-100 with 150 images per class, top-5: the mean of the first exits gains 6.3, 5.0 "
    "and 3.9 points by distillation at one, two and three exits, and 0.6 at all eleven.",
    rule="Reproduced if distillation beats the exit-wise loss at the first exit on average and in "
    "at least two of three seeds, and on average over the first half, and one more exit never costs the "
    "exit-wise ensemble more than 1 point.",
    settings={
        "quick": {**QUICK, "seeds": 3},
        "decisive": {**DECISIVE, "seeds": 3},
        "paper": {**PAPER, "seeds": 10},
    },
    seconds={"quick": 150, "decisive": 1100},
    power=POWER,
    cells=cells,
    run=trained,
    compare=compare,
    draw=draw,
    data=DATA,
)
