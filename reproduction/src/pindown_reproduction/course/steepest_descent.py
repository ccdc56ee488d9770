r"""Steepest descent in three norms: each maximises the margin of its own norm.

Lecture course, section on the implicit bias of steepest descent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.affine import Array
from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NORMS = {"l1": 1.0, "l2": 2.0, "linf": np.inf}
_REACHED = 0.99  # of the largest margin


def separable_points(n: int, d: int, seed: int) -> tuple[Array, Array]:
    """Return Gaussian points labelled by a hyperplane through zero.

    >>> X, y = separable_points(12, 8, 0)
    >>> X.shape, sorted(set(y.tolist()))
    ((12, 8), [-1.0, 1.0])
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X @ rng.standard_normal(d) > 0, 1.0, -1.0)


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per norm and data set."""
    return [
        {"norm": norm, "seed": seed, "n": 12, "d": 8, "steps": settings["steps"]}
        for seed in range(settings["seeds"])
        for norm in _NORMS
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Run one method; return its margins in all three norms beside the largest ones."""
    from pindown.bias.margins import max_margin, steepest_descent

    X, y = separable_points(cell["n"], cell["d"], cell["seed"])
    found = steepest_descent(X, y, cell["norm"], steps=cell["steps"])
    least = float((y * (X @ found.w)).min())
    shares = {
        norm: least / float(np.linalg.norm(found.w, order)) / max_margin(X, y, norm).margin
        for norm, order in _NORMS.items()
    }
    ratios = (found.margins / found.limit.margin).tolist()
    return {"shares": shares, "steps": found.steps.tolist(), "ratios": ratios}


def compare(results: Results) -> Outcome:
    """Check that each method has the largest margin in its own norm."""
    rows, holds = [], []
    for cell, found in results:
        own = found["shares"][cell["norm"]]
        rivals = [
            other["shares"][cell["norm"]]
            for rival, other in results
            if rival["seed"] == cell["seed"] and rival["norm"] != cell["norm"]
        ]
        good = own >= _REACHED and own >= max(rivals, default=0.0)
        holds.append(good)
        rows.append(
            (
                f"{cell['norm']}, data {cell['seed']}",
                "largest margin in its norm",
                *(f"{100 * found['shares'][norm]:.2f} %" for norm in _NORMS),
                "yes" if good else "no",
            )
        )
    words = f"{sum(holds)} of {len(holds)} runs reach 99 % of the margin of their norm, the most of all."
    return Outcome(
        "reproduced" if all(holds) else "not reproduced", words,
        ("steps in", "published", "l1 margin", "l2 margin", "linf margin", "as published"), tuple(rows),
    )  # fmt: skip


def draw(results: Results) -> Figure:
    """Draw how the margins approach the largest."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    colours = dict(zip(_NORMS, ("C0", "C1", "C2"), strict=True))
    for cell, found in results:
        missing = np.maximum(1.0 - np.array(found["ratios"]), 1e-12)
        label = cell["norm"] if cell["seed"] == 0 else None
        ax.loglog(found["steps"], missing, color=colours[cell["norm"]], label=label, alpha=0.8)
    ax.set(xlabel="steps", ylabel="1 - margin / largest margin")
    return figure


EXPERIMENT = Experiment(
    id="steepest-descent",
    title="Steepest descent maximises the margin of its own norm",
    source="Lecture course, section on the implicit bias of steepest descent",
    published="Steepest descent in a norm converges to the classifier of largest margin in that norm: "
    "gradient descent in l2, coordinate descent in l1, sign descent in linf.",
    rule="Reproduced if every run reaches 99 % of the margin that linear or quadratic programs prove to "
    "be the largest of its norm, and more of it than the other two methods on the same data.",
    settings={"quick": {"seeds": 3, "steps": 20_000}, "paper": {"seeds": 10, "steps": 200_000}},
    seconds={"quick": 4.7},
    power=Power(why="The rule is about every run."),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
