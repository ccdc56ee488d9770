"""How much the shift matters to RMSProp and ADAM, with other settings tuned again or kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Results, SourceData
from pindown_reproduction.relu_thesis._optimisers import (
    CONTENDERS,
    MEASURES,
    SHIFTS,
    Claim,
    Run,
    autoencoder_power,
    autoencoder_run,
    autoencoder_setting,
    best_runs,
    settle,
    step_sizes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRONGLY = 1.05  # the source's word; a gain of less than a twentieth would hardly be seen in its figure


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per method, shift, step size and seed."""
    shared = {key: settings[key] for key in ("width", "train", "test", "iterations")}
    return [
        {
            **{
                "contender": name,
                "shift": shift,
                "lr": lr,
                "hidden_layers": 1,
                "side": 22,
                "batch": None,
            },
            **{"seed": seed, **shared},
        }
        for seed in range(settings["seeds"])
        for name in ("ADAM 0.9", "RMSProp 0.9")
        for shift in settings["shifts"]
        for lr in step_sizes(name, settings)
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Train with this shift."""
    found = autoencoder_run(cell["contender"], cell["lr"], cell, shift=cell["shift"])
    return {key: found[key] for key in ("data", *MEASURES)}


def by_shift(results: Results, contender: str) -> dict[float, tuple[Run, Run]]:
    """Return for every shift the best run, and the run with the step size of the usual shift."""
    shifts = list(dict.fromkeys(cell["shift"] for cell, _ in results if cell["contender"] == contender))
    best = {shift: best_runs(results, shift=shift).get(contender) for shift in shifts}
    usual = best.get(SHIFTS[CONTENDERS[contender][0]])
    kept = {
        cell["shift"]: found
        for cell, found in results
        if cell["contender"] == contender and usual is not None and cell["lr"] == usual["lr"]
    }
    return {shift: (run, kept.get(shift, run)) for shift, run in best.items() if run is not None}


def compare(results: Results) -> Outcome:
    """Check whether some larger shift lowers ADAM's gradient norm and test loss."""
    table = {name: by_shift(results, name) for name in ("ADAM 0.9", "RMSProp 0.9")}
    adam = table["ADAM 0.9"]
    claims = []
    if len(adam) < 2:
        claims.append(Claim("ADAM was run with two or more shifts", f"{len(adam)}", False))
    for measure, words in (
        (("gradient", "gradient norm"), ("test", "test loss")) if len(adam) > 1 else ()
    ):
        for mode, i in (("tuned for every shift", 0), ("kept", 1)):
            values = {shift: float(runs[i][measure]) for shift, runs in adam.items()}
            smallest = min(values)
            best = min((s for s in values if s != smallest), key=values.__getitem__)
            claims.append(
                Claim(
                    f"a larger shift lowers ADAM's {words}, step size {mode}",
                    f"{values[smallest]:.3g} with {smallest:.0e}, {values[best]:.3g} with {best:.0e}",
                    values[best] * STRONGLY < values[smallest],
                )
            )
    return settle(claims, autoencoder_setting(results))


def draw(results: Results) -> Figure:
    """Draw the three measures against the shift, tuned and kept."""
    from matplotlib.figure import Figure

    figure = Figure()
    for ax, measure in zip(figure.subplots(1, 3), MEASURES, strict=True):
        for name, colour in (("ADAM 0.9", "C1"), ("RMSProp 0.9", "C4")):
            table = by_shift(results, name)
            for i, (mode, style) in enumerate((("tuned", "o-"), ("kept", "o:"))):
                values = [runs[i][measure] for runs in table.values()]
                ax.loglog(list(table), values, style, ms=3, label=f"{name}, {mode}", color=colour)
        ax.set(xlabel="shift", ylabel=MEASURES[measure])
    return figure


EXPERIMENT = Experiment(
    id="optimisers-shift",
    title="The shift of RMSProp and ADAM",
    source="Mukherjee 2020, sections 5.6.1 and 5.E, Figures 5.6.1 and 5.E.1",
    published="One hidden layer of 1,000 units, full batches: a larger shift strongly helps ADAM in "
    "particular to lower gradient norms and test losses, perhaps at the cost of training loss. No "
    "number is printed.",
    rule="Reproduced if some shift above the smallest lowers ADAM's final gradient norm and test loss, "
    "each by a twentieth or more, both with the step size tuned for every shift and with it kept.",
    settings={
        "quick": {
            "shifts": [1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0],
            "width": 50,
            "train": 200,
            "test": 300,
            "iterations": 250,
            "step_sizes": {"adaptive": (1e-2, 3e-3, 1e-3, 3e-4)},
            "seeds": 1,
        },
        "decisive": {
            "shifts": [1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0],
            "width": 100,
            "train": 1000,
            "test": 1000,
            "iterations": 3000,
            "step_sizes": {"adaptive": (3e-2, 1e-2, 3e-3, 1e-3, 3e-4)},
            "seeds": 3,
        },
        "paper": {
            "shifts": [1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0],
            "width": 1000,
            "train": 5500,
            "test": 1000,
            "iterations": 100_000,
            "seeds": 1,
        },
    },
    seconds={"quick": 41, "decisive": 5000},
    power=autoencoder_power(iterations=3_000, train=1_000),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
    data=SourceData("MNIST", ("mnist",)),
)
