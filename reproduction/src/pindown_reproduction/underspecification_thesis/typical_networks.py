"""How typical are networks that the theorem covers, at random weights and after training?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pindown.box import Box
from pindown.equivalence.flat_directions import functional_dimension
from pindown.equivalence.identifiable import check_identifiable
from pindown_reproduction.experiment import Cell, Experiment, Outcome, Results
from pindown_reproduction.underspecification_thesis._random_networks import (
    random_network,
    trained_network,
)


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per architecture, kind and seed."""
    return [
        {"widths": list(widths), "kind": kind, "seed": seed}
        for widths in settings["widths"]
        for kind in ("random", "trained")
        for seed in range(settings["seeds"])
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Check one network on the square [-1, 1]^2."""
    widths, seed = tuple(cell["widths"]), cell["seed"]
    net = (random_network if cell["kind"] == "random" else trained_network)(widths, seed)
    box = Box.cube(2, -1, 1)
    found = check_identifiable(net, box, budget=2.0)
    return {
        "transparent": found.transparency.transparent is True,
        "paths": found.paths is not None and found.paths >= widths[1],
        "hidden": functional_dimension(net, box, seed=seed).hidden,
    }


def compare(results: Results) -> Outcome:
    """Tabulate; the source has no number to compare with."""
    rows = []
    keys = dict.fromkeys((tuple(cell["widths"]), cell["kind"]) for cell, _ in results)
    for widths, kind in keys:
        mine = [r for cell, r in results if (tuple(cell["widths"]), cell["kind"]) == (widths, kind)]
        n = len(mine)
        rows.append(
            (
                "-".join(map(str, widths)),
                kind,
                n,
                f"{sum(r['transparent'] for r in mine)}/{n}",
                f"{sum(r['paths'] for r in mine)}/{n}",
                f"{sum(r['hidden'] <= 0 for r in mine)}/{n}",
            )
        )
    free = sum(r["hidden"] <= 0 for _, r in results)
    both = sum(r["transparent"] and r["paths"] for _, r in results)
    neither = sum(r["hidden"] <= 0 and not (r["transparent"] and r["paths"]) for _, r in results)
    return Outcome(
        verdict="no published number",
        words=f"{both} of {len(results)} networks are transparent and have the paths of bends that the "
        f"theorem's networks have; {free} have no hidden redundancy, {neither} of them without these "
        "conditions. To be determined by its function a network needs that, but needs more.",
        columns=("widths", "kind", "networks", "transparent", "paths of bends", "no hidden redundancy"),
        rows=tuple(rows),
    )


EXPERIMENT = Experiment(
    id="typical-networks",
    title="How typical the theorem's networks are",
    source="Phuong 2021, section 2.6, second and third open question",
    published="Left open: whether typical networks are identifiable, and what happens for wide layers.",
    rule="None: the source has no number; the measurement is reported.",
    settings={
        "quick": {"widths": [(2, 2, 1), (2, 2, 2, 1), (2, 4, 1), (2, 4, 4, 1)], "seeds": 20},
        "paper": {
            "widths": [(2, 2, 1), (2, 2, 2, 1), (2, 2, 2, 2, 1), (2, 4, 1), (2, 4, 4, 1), (2, 8, 8, 1)],
            "seeds": 200,
        },
    },
    seconds={"quick": 20},
    cells=cells,
    run=run,
    compare=compare,
)
