"""How long every exit takes, alone and with the exits before it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Phuong 2021, Table E.1: seconds on a CPU for one 32 x 32 image, mean of 1000 runs.
PUBLISHED = {
    "budget": (0.024, 0.034, 0.043, 0.051, 0.062, 0.067, 0.071, 0.085, 0.093, 0.103, 0.105),
    "anytime": (0.026, 0.043, 0.062, 0.081, 0.099, 0.121, 0.139, 0.164, 0.169, 0.196, 0.219),
}
_ORDERED = 0.95  # rank correlation of times and exits: neighbours may swap by noise


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell for each mode."""
    return [{"mode": mode, "runs": settings["runs"], "warmup": settings["warmup"]} for mode in PUBLISHED]


def run(cell: Cell) -> dict[str, Any]:
    """Measure the published network (with random weights) on one image, in CPU time of one thread."""
    import torch

    from pindown.learn.multi_exit.latency import profile_exits
    from pindown.learn.multi_exit.networks import MSDNet, seeded

    torch.set_num_threads(1)
    model = seeded(MSDNet.cifar, 0).eval()
    settings = {"runs": cell["runs"], "warmup": cell["warmup"], "clock": time.process_time}
    found = profile_exits(model, torch.zeros(1, 3, 32, 32), cell["mode"], **settings)
    return {"median": list(found.median), "mean": list(found.mean), "deviation": list(found.deviation)}


def compare(results: Results) -> Outcome:
    """Set times beside the published ones, as shares of the last exit's budget-mode time."""
    from scipy.stats import spearmanr

    found = {cell["mode"]: np.array(result["median"]) for cell, result in results}
    unit = float(next(iter(found.values()))[-1])
    ordered = {mode: float(spearmanr(times, np.arange(len(times)))[0]) for mode, times in found.items()}
    rows = []
    for m in range(len(PUBLISHED["budget"])):
        row: list[Any] = [m + 1]
        for mode, times in PUBLISHED.items():
            own = f"{1e3 * found[mode][m]:.3g} ({found[mode][m] / unit:.2f})" if mode in found else "-"
            row += [own, f"{1e3 * times[m]:.3g} ({times[m] / PUBLISHED['budget'][-1]:.2f})"]
        rows.append(tuple(row))
    slower = True
    if len(found) == 2:
        slower = bool((found["anytime"] / found["budget"]).mean() >= 1.0)
    early = all(times[0] < 0.5 * times[-1] for times in found.values())
    good = slower and early and min(ordered.values()) >= _ORDERED
    words = (
        f"The first exit takes {found[next(iter(found))][0] / unit:.2f} of the last one's time "
        f"(published {PUBLISHED['budget'][0] / PUBLISHED['budget'][-1]:.2f}); rank correlation of time "
        f"and exit {min(ordered.values()):.3f}."
    )
    columns = ("exit", "budget, ms (share)", "published", "anytime, ms (share)", "published ")
    return Outcome("reproduced" if good else "not reproduced", words, columns, tuple(rows))


def draw(results: Results) -> Figure:
    """Draw time against the exit, measured and published, both as shares of the last exit's."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    unit = results[0][1]["median"][-1]
    for k, (cell, result) in enumerate(results):
        exits = np.arange(1, len(result["median"]) + 1)
        ax.plot(exits, np.array(result["median"]) / unit, "o-", ms=3, color=f"C{k}", label=cell["mode"])
        published = np.array(PUBLISHED[cell["mode"]]) / PUBLISHED["budget"][-1]
        ax.plot(exits, published, ":", color=f"C{k}", label=f"{cell['mode']}, published")
    ax.set_xlabel("exit")
    ax.set_ylabel("time, share of the last exit's")
    return figure


EXPERIMENT = Experiment(
    id="multi-exit-times",
    title="Time grows with the exit, and anytime answers pay for the heads on the way",
    source="Phuong 2021, Table E.1",
    published="On a CPU the first of 11 exits takes 24 ms and the last 105 ms; 219 ms with all heads.",
    rule="Reproduced if times rise with the exit (rank correlation at least 0.95), the first exit takes "
    "less than half of the last one's time, and anytime mode is slower than budget mode on average. "
    "Milliseconds are another machine's and are not compared.",
    settings={"quick": {"runs": 8, "warmup": 1}, "paper": {"runs": 1000, "warmup": 50}},
    seconds={"quick": 3.1},
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
