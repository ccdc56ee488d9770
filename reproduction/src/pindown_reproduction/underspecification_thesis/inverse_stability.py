r"""How well the function pins down the weights: from exact to approximate equality.

Near a network, a change of the weights (scales of units set aside) is at most the change of the function
times :math:`\sqrt N / \sigma`, with :math:`\sigma` the smallest singular value of the Jacobian that is
not zero. The source leaves open how large this is; here it is measured, for networks that the theorem
builds and for random ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.box import Box
from pindown.equivalence.flat_directions import functional_dimension
from pindown.equivalence.identifiable import identifiable_network
from pindown_reproduction.experiment import Cell, Experiment, Outcome, Results
from pindown_reproduction.underspecification_thesis._random_networks import random_network

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per architecture, kind and seed."""
    return [
        {"widths": list(widths), "kind": kind, "seed": seed}
        for widths in settings["widths"]
        for kind in ("identifiable", "random")
        for seed in range(settings["seeds"])
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Measure rank, hidden redundancy and the smallest singular value that counts."""
    widths, seed = tuple(cell["widths"]), cell["seed"]
    box = Box.cube(widths[0], -1, 1)
    if cell["kind"] == "identifiable":
        net = identifiable_network(widths, box=box, seed=seed)
    else:
        net = random_network(widths, seed)
    found = functional_dimension(net, box, seed=seed)
    return {"hidden": found.hidden, "sigma": found.gap, "stable": found.stable}


def compare(results: Results) -> Outcome:
    """Tabulate; the source has no number to compare with."""
    rows = []
    keys = dict.fromkeys((tuple(cell["widths"]), cell["kind"]) for cell, _ in results)
    for widths, kind in keys:
        mine = [r for cell, r in results if (tuple(cell["widths"]), cell["kind"]) == (widths, kind)]
        sigmas = np.array([r["sigma"] for r in mine])
        rows.append(
            (
                "-".join(map(str, widths)),
                kind,
                len(mine),
                sum(r["hidden"] > 0 for r in mine),
                float(np.median(sigmas)),
                float(sigmas.min()),
            )
        )
    return Outcome(
        verdict="no published number",
        words="The smallest singular value that counts says how firmly the function holds the weights: "
        f"medians from {min(row[4] for row in rows):.1g} to {max(row[4] for row in rows):.1g}.",
        columns=("widths", "kind", "networks", "with hidden redundancy", "median sigma", "least sigma"),
        rows=tuple(rows),
    )


def draw(results: Results) -> Figure:
    """Draw all singular values, by architecture and kind."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    names = list(dict.fromkeys("-".join(map(str, cell["widths"])) for cell, _ in results))
    for kind, marker, shift in (("identifiable", "o", -0.12), ("random", "x", 0.12)):
        mine = [(cell, r) for cell, r in results if cell["kind"] == kind]
        x = [names.index("-".join(map(str, cell["widths"]))) + shift for cell, _ in mine]
        ax.semilogy(x, [max(r["sigma"], 1e-17) for _, r in mine], marker, ms=4, label=kind)
    ax.set_xticks(range(len(names)), names)
    ax.set(xlabel="widths (a dot per network)", ylabel="smallest singular value that counts")
    return figure


EXPERIMENT = Experiment(
    id="inverse-stability",
    title="How firmly the function holds the weights",
    source="Phuong 2021, section 2.6, first open question",
    published="Left open: whether nearly equal functions have nearly equal weights.",
    rule="None: the source has no number; the measurement is reported.",
    settings={
        "quick": {"widths": [(3, 3, 2, 1), (4, 4, 3, 1), (6, 5, 4, 3, 1)], "seeds": 5},
        "paper": {
            "widths": [(2, 2, 1), (3, 3, 2, 1), (4, 4, 3, 1), (4, 3, 3, 2, 1), (6, 5, 4, 3, 1)],
            "seeds": 50,
        },
    },
    seconds={"quick": 2.7},
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
