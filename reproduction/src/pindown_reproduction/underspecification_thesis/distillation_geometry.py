r"""Distillation and the geometry of data: the better inputs align with the teacher, the less is lost.

Tasks with :math:`P[a \ge \theta] = (1 - 2\theta/\pi)^\kappa` for the angle a between input and teacher.
A linear student is distilled from 20 inputs of 1000 dimensions; its transfer risk is the integral over
new inputs, not a share of a test set, so that risks of 1e-7 can be told from zero.

Phuong 2021, section 5.4.1, Figure 5.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results, stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DIMENSION, _INPUTS = 1000, 20  # section 5.4.1
_ERRORS = 2.0  # the rule: a rise of means within so many standard errors is no rise


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per exponent."""
    return [
        {
            "exponent": exponent,
            "dimension": settings["dimension"],
            "n": settings["n"],
            "repetitions": settings["repetitions"],
        }
        for exponent in settings["exponents"]
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Return the mean transfer risk over samples, and the bound."""
    from pindown.guarantees.bounds import polynomial_angle_bound, transfer_risk_bound
    from pindown.learn.distillation import minimum_norm, power_angle_task

    task = power_angle_task(cell["exponent"], cell["dimension"])
    risks = []
    for seed in range(cell["repetitions"]):
        X = task.draw(cell["n"], np.random.default_rng(stream(cell, seed, int(100 * cell["exponent"]))))
        risks.append(task.transfer_risk(minimum_norm(X, task.logits(X)).weights).value)
    assert task.profile is not None
    return {
        "risk": float(np.mean(risks)),
        "error": float(np.std(risks) / len(risks) ** 0.5),
        "bound": transfer_risk_bound(task.profile, cell["n"], dimension=cell["dimension"]).value,
        "corollary": polynomial_angle_bound(cell["exponent"], cell["n"]).value,
    }


def compare(results: Results) -> Outcome:
    """Check that mean risks fall with the exponent, and stay below the bound."""
    rows: list[tuple[Any, ...]] = []
    ordered = sorted(results, key=lambda pair: float(pair[0]["exponent"]))
    falls, bounded = [], []
    for i, (cell, found) in enumerate(ordered):
        bounded.append(found["risk"] <= found["bound"])
        if i:
            before = ordered[i - 1][1]
            room = _ERRORS * (before["error"] ** 2 + found["error"] ** 2) ** 0.5
            falls.append(found["risk"] <= before["risk"] + room)
        rows.append(
            (
                f"{cell['exponent']:g}",
                "falls with the exponent (figure)",
                f"{found['risk']:.3g} +- {found['error']:.1g}",
                f"{found['bound']:.3g}",
                f"{min(1.0, found['corollary']):.3g}",
                "yes" if bounded[-1] and (not i or falls[-1]) else "no",
            )
        )
    words = (
        f"The mean risk falls in {sum(falls)} of {len(falls)} steps of the exponent, and is below the "
        f"bound of Theorem 5.3 for {sum(bounded)} of {len(bounded)} exponents."
    )
    return Outcome(
        "reproduced" if all(falls) and all(bounded) else "not reproduced",
        words,
        ("exponent", "published", "transfer risk", "bound", "corollary 5.2", "as published"),
        tuple(rows),
    )


def draw(results: Results) -> Figure:
    """Draw risk and bound over the exponent."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    ordered = sorted(results, key=lambda pair: float(pair[0]["exponent"]))
    exponents = [cell["exponent"] for cell, _ in ordered]
    for name, label in (
        ("risk", "transfer risk"),
        ("bound", "Theorem 5.3"),
        ("corollary", "Corollary 5.2"),
    ):
        ax.semilogy(exponents, [max(found[name], 1e-18) for _, found in ordered], "o-", label=label)
    ax.set(xlabel="exponent of the angles", ylabel="probability of a mistake")
    return figure


EXPERIMENT = Experiment(
    id="distillation-geometry",
    title="Data geometry decides how much distillation loses",
    source="Phuong 2021, section 5.4.1, Figure 5.3",
    published="With 20 inputs in 1000 dimensions the transfer risk falls clearly as the exponent of the "
    "angles grows.",
    rule="Reproduced if the mean transfer risk does not rise from one exponent to the next by more than "
    "two standard errors, and is never above the bound of Theorem 5.3.",
    settings={
        "quick": {
            "exponents": [0.25, 0.5, 1, 1.5, 2, 3, 4, 5],
            "dimension": _DIMENSION,
            "n": _INPUTS,
            "repetitions": 40,
        },
        "paper": {
            "exponents": [0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5],
            "dimension": _DIMENSION,
            "n": _INPUTS,
            "repetitions": 400,
        },
    },
    seconds={"quick": 0.48},
    power=Power(seeds=10, repeats="repetitions", why="The rule weighs standard errors of its own."),
    remark="The source prints a figure, so shapes are compared, not numbers.",
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
