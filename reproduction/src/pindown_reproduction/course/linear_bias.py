r"""Fully connected linear networks of any depth: the same least Euclidean norm, at a rate of 1/log t.

Lecture course, section on the implicit bias of linear networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.course.steepest_descent import separable_points
from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COSINE, _MARGIN = 0.99, 0.99


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per depth and data set."""
    return [
        {"depth": depth, "seed": seed, "steps": settings["steps"]}
        for seed in range(settings["seeds"])
        for depth in settings["depths"]
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Train one network; return its cosine with the max-margin direction and its share of the margin."""
    from pindown.bias.margins import linear_network_limit, train_linear_network

    X, y = separable_points(12, 8, cell["seed"])
    limit = linear_network_limit(X, y, "connected", cell["depth"])
    found = train_linear_network(
        X, y, "connected", cell["depth"], steps=cell["steps"], seed=cell["seed"]
    )
    lengths = np.linalg.norm(found.beta, axis=1)
    cosines = found.beta @ limit.direction / np.where(lengths > 0, lengths, 1.0)
    return {
        "margins": found.margins.tolist(),
        "cosines": cosines.tolist(),
        "share": limit.objective / float(found.objective()[-1]),
    }


def compare(results: Results) -> Outcome:
    """Compare the ends with the prediction."""
    rows, holds = [], []
    for cell, found in results:
        good = found["cosines"][-1] > _COSINE and found["share"] > _MARGIN
        holds.append(good)
        rows.append(
            (
                f"depth {cell['depth']}, data {cell['seed']}",
                "least Euclidean norm",
                f"{found['cosines'][-1]:.6f}",
                f"{found['share']:.6f}",
                "yes" if good else "no",
            )
        )
    words = (
        f"{sum(holds)} of {len(holds)} networks end at the max-margin classifier, whatever their depth."
    )
    return Outcome(
        "reproduced" if all(holds) else "not reproduced", words,
        ("network", "published", "cosine", "share of the largest margin", "as published"), tuple(rows),
    )  # fmt: skip


def draw(results: Results) -> Figure:
    """Draw the angle over the smallest margin, which grows like log t."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    for cell, found in results:
        margins, cosines = np.array(found["margins"]), np.array(found["cosines"])
        fitted = margins > 0
        angles = np.arccos(np.clip(cosines[fitted], -1, 1))
        ax.loglog(
            margins[fitted],
            np.maximum(angles, 1e-9),
            color=f"C{cell['depth']}",
            label=f"depth {cell['depth']}",
            alpha=0.8,
        )
    ax.set(xlabel="smallest margin, about log t", ylabel="angle to the max-margin direction")
    return figure


EXPERIMENT = Experiment(
    id="linear-bias",
    title="Deep linear networks end at the maximum margin",
    source="Lecture course, section on the implicit bias of linear networks",
    published="On separable data with an exponential loss a fully connected linear network of any depth "
    "converges in direction to the classifier of least Euclidean norm.",
    rule="Reproduced if for every depth the cosine with the max-margin direction is above 0.99 and the "
    "margin above 99 % of the largest.",
    settings={
        "quick": {"depths": [1, 2, 3], "seeds": 3, "steps": 20_000},
        "paper": {"depths": [1, 2, 3, 4, 5], "seeds": 5, "steps": 200_000},
    },
    seconds={"quick": 18},
    power=Power(why="The rule is about every network."),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
