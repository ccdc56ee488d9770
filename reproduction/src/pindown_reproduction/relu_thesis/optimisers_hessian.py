"""The smallest eigenvalue of the Hessian along training: do methods leave bad saddle points?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Results, SourceData
from pindown_reproduction.relu_thesis._optimisers import (
    Claim,
    at_the_end,
    autoencoder_power,
    autoencoder_run,
    autoencoder_setting,
    best_runs,
    missing,
    reconstruction_loss,
    settle,
    step_sizes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONTENDERS_HERE = ("NAG 0.9", "RMSProp 0.9", "ADAM 0.9")
_EARLY = 0.3  # of the iterations: what counts as getting there quickly
_TOLERANCE = 1e-2  # of an eigenvalue; the orderings are coarser


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per method, step size and seed."""
    shared = {key: settings[key] for key in ("width", "train", "test", "iterations", "every")}
    return [
        {
            **{"contender": name, "lr": lr, "hidden_layers": 1, "side": 22, "batch": None},
            **{"seed": seed, **shared},
        }
        for seed in range(settings["seeds"])
        for name in CONTENDERS_HERE
        for lr in step_sizes(name, settings)
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Train, and find the eigenvalue at points of the curve."""
    from pindown.optim import hessian_spectrum

    points: list[list[float]] = []
    seen = 0

    def watch(iteration: int, model: Any, X: Any) -> None:
        nonlocal seen
        seen += 1
        if seen % cell["every"] == 0 or iteration == cell["iterations"]:
            loss = partial(reconstruction_loss, model, X)
            ends = hessian_spectrum(loss, model.parameters(), ends="smallest", tol=_TOLERANCE)
            points.append([iteration, ends.smallest, ends.residuals[0]])

    result = autoencoder_run(cell["contender"], cell["lr"], cell, watch=watch)
    gradients = {entry[0]: entry[3] for entry in result["curve"]}
    kept = {key: result[key] for key in ("data", "train", "test", "gradient")}
    return {
        **kept,
        "points": [[*point, gradients[point[0]]] for point in points if point[0] in gradients],
    }


def compare(results: Results) -> Outcome:
    """Check the four statements, early and late."""
    best = best_runs(results)
    if missing(best, CONTENDERS_HERE):
        return settle(missing(best, CONTENDERS_HERE), autoencoder_setting(results))
    runs = {name.split()[0]: run["points"] for name, run in best.items()}
    enough = _EARLY * results[0][0]["iterations"]
    early = {name: next(p for p in points if p[0] >= enough) for name, points in runs.items()}
    last = {name: points[-1] for name, points in runs.items()}

    def all_values(at: Mapping[str, list[float]], i: int) -> str:
        return ", ".join(f"{name}: {point[i]:.3g}" for name, point in at.items())

    adaptive = ("RMSProp", "ADAM")
    claims = [
        Claim(
            "RMSProp and ADAM soon have a higher smallest eigenvalue than NAG",
            all_values(early, 1),
            all(early[name][1] > early["NAG"][1] for name in adaptive),
        ),
        Claim(
            "and a smaller gradient norm",
            all_values(early, 3),
            all(early[name][3] < early["NAG"][3] for name in adaptive),
        ),
        Claim(
            "NAG keeps raising its smallest eigenvalue",
            f"from {early['NAG'][1]:.3g} to {last['NAG'][1]:.3g}",
            last["NAG"][1] > early["NAG"][1],
        ),
        Claim(
            "at the end RMSProp and ADAM still have the higher one",
            all_values(last, 1),
            all(last[name][1] > last["NAG"][1] for name in adaptive),
        ),
    ]
    return settle(claims, autoencoder_setting(results), at_the_end(results, best))


def draw(results: Results) -> Figure:
    """Draw the smallest eigenvalue and the gradient norm."""
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    for (name, found), colour in zip(best_runs(results).items(), ("C0", "C4", "C1"), strict=False):
        t, smallest, _, gradient = zip(*found["points"], strict=True)
        left.semilogx(t, smallest, label=name, color=colour)
        right.loglog(t, gradient, color=colour, label=name)
    left.set(xlabel="iterations", ylabel="smallest eigenvalue of the Hessian")
    right.set(xlabel="iterations", ylabel="gradient norm")
    return figure


EXPERIMENT = Experiment(
    id="optimisers-hessian",
    title="The smallest eigenvalue of the Hessian along training",
    source="Mukherjee 2020, section 5.6.2, Figure 5.6.2",
    published="One hidden layer of 300 units: RMSProp and ADAM quickly get to a high smallest "
    "eigenvalue and a small gradient norm and stay there; NAG keeps raising the eigenvalue. No "
    "number is printed.",
    rule="Reproduced if all four orderings hold: after three tenths of the iterations RMSProp and "
    "ADAM have the higher eigenvalue and the smaller gradient norm, NAG's eigenvalue grows from "
    "then on, and is lower at the end.",
    settings={
        "quick": {
            "width": 30,
            "train": 200,
            "test": 200,
            "iterations": 400,
            "every": 6,
            "seeds": 1,
            "step_sizes": {"NAG": (1e-2, 3e-3, 1e-3, 3e-4), "adaptive": (3e-2, 1e-2, 3e-3, 1e-3)},
        },
        "decisive": {
            "width": 30,
            "train": 1000,
            "test": 500,
            "iterations": 3000,
            "every": 4,
            "seeds": 3,
            "step_sizes": {"NAG": (1e-2, 3e-3, 1e-3, 3e-4), "adaptive": (3e-2, 1e-2, 3e-3, 1e-3)},
        },
        "paper": {
            "width": 300,
            "train": 5500,
            "test": 1000,
            "iterations": 100_000,
            "every": 1,
            "seeds": 1,
        },
    },
    seconds={"quick": 28, "decisive": 1800},
    power=autoencoder_power(iterations=3_000, train=1_000),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
    data=SourceData("MNIST", ("mnist",)),
)
