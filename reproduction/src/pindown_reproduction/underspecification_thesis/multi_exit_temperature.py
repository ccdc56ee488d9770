"""The temperature that follows the teachers' confidence, against constant ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Results
from pindown_reproduction.underspecification_thesis._multi_exit import (
    DATA,
    DECISIVE,
    PAPER,
    POWER,
    QUICK,
    cells_by,
    draw_curves,
    seeds_of,
    trained,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BELOW, _ABOVE = 0.15, 0.05  # how far tempered confidence may be from mu
_LOSS = 0.5  # points that the rising temperature may lose against temperature 1


def _variants(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"loss": "distillation", "temperature": t} for t in settings["variants"]]


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per temperature (None for the rising one) and seed."""
    return cells_by(settings, _variants(settings))


def compare(results: Results) -> Outcome:
    """Tabulate mean accuracies, and look how well confidence is kept."""
    temperatures = list(dict.fromkeys(cell["temperature"] for cell, _ in results))
    rows, means = [], {}
    for t in temperatures:
        values = seeds_of(results, "exits", temperature=t)
        means[t] = float(values.mean())
        name = "rising" if t is None else f"constant {t:g}"
        rows.append(
            (name, f"{values[:, 0].mean():.1f}", f"{values[:, -1].mean():.1f}", f"{means[t]:.2f}")
        )
    mu = results[0][0]["mu"]
    rising = [result for cell, result in results if cell["temperature"] is None]
    late = [_late(result["confidence"]) for result in rising if result["temperature"][-1] > 1.0]
    kept = all(mu - _BELOW <= c <= mu + _ABOVE for c in late)
    as_good = None in means and means[None] >= means.get(1.0, means[None]) - _LOSS
    ends = [result["temperature"][-1] for result in rising]
    words = (
        f"The temperature ends at {min(ends):.2f} to {max(ends):.2f}; tempered confidence in the second "
        f"half is {', '.join(f'{c:.2f}' for c in late) or 'below mu without tempering'} for mu = {mu:g}."
        if rising
        else "No run with a rising temperature."
    )
    return Outcome(
        verdict="reproduced" if rising and kept and as_good else "not reproduced",
        words=words,
        columns=("temperature", "first exit, %", "last exit, %", "mean over exits, %"),
        rows=tuple(rows),
    )


def _late(confidence: list[float]) -> float:
    return float(np.mean(confidence[len(confidence) // 2 :]))


def draw(results: Results) -> Figure:
    """Draw accuracies by temperature, and the rising temperature with the confidence it keeps."""
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    temperatures = list(dict.fromkeys(cell["temperature"] for cell, _ in results))
    draw_curves(left, results, "exits", [{"temperature": t} for t in temperatures])
    for cell, result in results:
        if cell["temperature"] is None:
            right.plot(result["temperature"], color="C0", label="temperature")
            right.plot(result["confidence"], color="C1", label="tempered confidence")
            right.axhline(cell["mu"], color="0.6", linewidth=0.8, label="confidence aimed at")
            break
    right.set(xlabel="epoch", ylabel="temperature, confidence")
    return figure


EXPERIMENT = Experiment(
    id="multi-exit-temperature",
    title="A temperature that follows confidence is as good as the best constant one",
    source="Phuong 2021, Figures 6.6 and 6.7",
    published="On CIFAR-100 with 250 images per class the constant temperature 1 loses clearly, any "
    "that is high enough does well, and the rising one is as good as the best without tuning; tempered "
    "confidence stays slightly below mu while the raw one rises.",
    rule="Reproduced if the mean accuracy over exits with the rising temperature is at least that of "
    "temperature 1 less 0.5 points, and mean tempered confidence over the second half of training is "
    "between mu - 0.15 and mu + 0.05 in every run whose temperature rose.",
    settings={
        "quick": {**QUICK, "seeds": 3, "variants": [None, 1.0, 2.0, 4.0]},
        "decisive": {**DECISIVE, "seeds": 3, "variants": [None, 1.0, 2.0, 4.0]},
        "paper": {
            **PAPER,
            "labels": 200,
            "pool": 250,
            "seeds": 5,
            "variants": [None, 1.0, 2.0, 3.0, 4.0],
        },
    },
    seconds={"quick": 170, "decisive": 1500},
    power=POWER,
    cells=cells,
    run=trained,
    compare=compare,
    draw=draw,
    data=DATA,
)
