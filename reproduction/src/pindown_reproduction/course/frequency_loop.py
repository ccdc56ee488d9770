"""A filter adapted in the loop until a unit responds most: does it find the band the unit likes?

The source proposes to adapt a filter of frequencies while neurons are recorded, and asks how. Here the
neuron is planted: its response is the energy in its own band less that in the others, with noise, so
what the loop should find is known.

Lecture course, section on essential frequencies.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BINS = (6, 4)  # rings and directions
_WANTED = 0.8  # overlap of the filter found with the band planted


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """Return one cell for each seed and level of noise."""
    sizes = {"size": settings["size"], "budget": settings["budget"]}
    pairs = product(settings["noises"], range(settings["seeds"]))
    return [{"noise": noise, "seed": seed, **sizes} for noise, seed in pairs]


def run(cell: Cell) -> dict[str, Any]:
    """Plant a unit with a random band, and look for it."""
    from pindown.probes.filtered_stimuli import closed_loop_filter, frequency_bins

    rng = np.random.default_rng([cell["seed"], round(1_000 * cell["noise"])])
    shape = (cell["size"], cell["size"])
    bins, used = frequency_bins(shape, *_BINS)
    band = rng.permutation(used)[: used // 4]
    planted = np.isin(bins, band)
    # every bin counts alike, however many frequencies it holds
    weight = np.where(planted, 1.0, -1.0) / np.bincount(bins[bins >= 0])[np.maximum(bins, 0)]
    weight[bins < 0] = 0.0

    def respond(mask: Any) -> float:
        return float(np.sum(mask * weight) + cell["noise"] * rng.standard_normal())

    found = closed_loop_filter(
        respond, shape, max_queries=cell["budget"], n_radial=_BINS[0], n_angular=_BINS[1],
        random_state=cell["seed"],
    )  # fmt: skip
    chosen = (found.mask > 0) & (bins >= 0)
    overlap = float((chosen & planted).sum() / (chosen | planted).sum())
    return {"overlap": overlap, "queries": found.n_queries, "response": found.response}


def compare(results: Results) -> Outcome:
    """List the overlaps; the source has no number to compare with."""
    rows = []
    for noise in dict.fromkeys(cell["noise"] for cell, _ in results):
        mine = [found for cell, found in results if cell["noise"] == noise]
        overlaps = [found["overlap"] for found in mine]
        most = max(found["queries"] for found in mine)
        good = sum(overlap > _WANTED for overlap in overlaps)
        rows.append((noise, "none", f"{min(overlaps):.3f}", f"{good} of {len(mine)}", most))
    good = sum(found["overlap"] > _WANTED for _, found in results)
    words = f"The band is found with an overlap above {_WANTED} in {good} of {len(results)} runs."
    return Outcome(
        "no published number",
        words,
        ("noise of a response", "published", "least overlap", f"overlap above {_WANTED}", "queries"),
        tuple(rows),
    )


def draw(results: Results) -> Figure:
    """Draw the overlaps over the noise."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    ax.plot(
        [c["noise"] for c, _ in results],
        [r["overlap"] for _, r in results],
        "o",
        alpha=0.6,
        label="a run",
    )
    ax.axhline(_WANTED, color="#7F7F7F", linewidth=1, label="asked for")
    ax.set(xlabel="noise of a response", ylabel="overlap with the planted band", ylim=(0, 1.03))
    return figure


EXPERIMENT = Experiment(
    id="frequency-loop",
    title="A filter adapted in the loop finds what a unit responds to",
    source="Lecture course, section on essential frequencies (a question)",
    published="Proposed, not done: adapt a filter of frequencies so that a recorded neuron responds "
    "most. How is left open.",
    rule="None: the source has no number. The overlap with a planted band after 500 responses is "
    "reported.",
    settings={
        "quick": {"size": 16, "budget": 500, "noises": [0.0, 0.5, 1.0, 2.0], "seeds": 5},
        "paper": {"size": 32, "budget": 500, "noises": [0.0, 0.5, 1.0, 2.0, 4.0], "seeds": 50},
    },
    seconds={"quick": 0.22},
    remark="The planted unit is ours. With responses as noisy as a whole bin counts, 500 of them are"
    " too few.",
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
