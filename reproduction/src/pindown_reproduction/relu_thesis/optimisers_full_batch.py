"""RMSProp, ADAM and Nesterov's method on tied autoencoders, all images at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Results, SourceData
from pindown_reproduction.relu_thesis._optimisers import (
    CONTENDERS,
    DECISIVE_STEPS,
    QUICK_STEPS,
    Claim,
    Run,
    at_the_end,
    autoencoder_power,
    autoencoder_setting,
    best_runs,
    contender_run,
    draw_curves,
    least,
    missing,
    of,
    settle,
    shown,
    step_sizes,
)


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per architecture, image size, seed, contender and step size."""
    shared = {key: settings[key] for key in ("train", "test", "iterations", "batch")}
    return [
        {
            **{"contender": name, "lr": lr, "hidden_layers": layers, "width": width, "side": side},
            **{"seed": seed, **shared},
        }
        for layers, width in settings["nets"]
        for side in settings["sides"]
        for seed in range(settings["seeds"])
        for name in CONTENDERS
        for lr in step_sizes(name, settings)
    ]


def full_batch_claims(found: Mapping[str, Run], where: str = "") -> list[Claim]:
    """Return what the source says of full batches, on one network."""
    losses = [found["ADAM 0.9"]["test"], of(found, "NAG", "test")]
    return [
        Claim(
            f"ADAM 0.99 has the lowest training loss{where}",
            shown(found, "train"),
            least(found, "train") == "ADAM 0.99",
        ),
        Claim(
            f"ADAM 0.99 has the lowest test loss{where}",
            shown(found, "test"),
            least(found, "test") == "ADAM 0.99",
        ),
        Claim(
            f"ADAM 0.9 is not better than NAG on the test set{where}",
            f"{losses[0]:.3g} against {losses[1]:.3g}",
            losses[0] >= losses[1],
        ),
    ]


def compare(results: Results) -> Outcome:
    """Check the orderings on every network."""
    claims: list[Claim] = []
    ends: list[str] = []
    nets = list(dict.fromkeys((cell["hidden_layers"], cell["width"]) for cell, _ in results))
    for layers, width in nets:
        found = best_runs(results, hidden_layers=layers, width=width)
        where = f" ({layers} x {width})" if len(nets) > 1 else ""
        ends += at_the_end(results, found)
        claims += missing(found) or full_batch_claims(found, where)
        if layers > 1 and not missing(found):
            claims.append(
                Claim(
                    f"NAG has the lowest gradient norm{where}",
                    shown(found, "gradient"),
                    least(found, "gradient").startswith("NAG"),
                )
            )
    return settle(claims, autoencoder_setting(results), list(dict.fromkeys(ends)))


EXPERIMENT = Experiment(
    id="optimisers-full-batch",
    title="Optimisers on autoencoders, full batches",
    source="Mukherjee 2020, section 5.6.3, Figures 5.6.3 and 5.F.1 to 5.F.3",
    published="Three hidden layers of 1,000 units, 5,500 images of MNIST, 100,000 iterations: ADAM "
    "with beta1 = 0.99 has the lowest training and test loss, ADAM with 0.9 is comparable to NAG or "
    "slightly worse, and NAG has the lowest gradient norm. No number is printed.",
    rule="Reproduced if every one of these orderings holds for step sizes tuned by the training loss.",
    settings={
        "quick": {
            "nets": [(3, 100)],
            "sides": [22],
            "seeds": 1,
            "train": 300,
            "test": 500,
            "iterations": 400,
            "batch": None,
            "step_sizes": QUICK_STEPS,
        },
        "decisive": {
            "nets": [(3, 100)],
            "sides": [22],
            "seeds": 3,
            "train": 1000,
            "test": 1000,
            "iterations": 5000,
            "batch": None,
            "step_sizes": DECISIVE_STEPS,
        },
        "paper": {
            "nets": [(layers, width) for layers in (1, 3, 5, 9) for width in (300, 1000)],
            "sides": [22],
            "seeds": 1,
            "train": 5500,
            "test": 1000,
            "iterations": 100_000,
            "batch": None,
        },
    },
    seconds={"quick": 79, "decisive": 5000},
    power=autoencoder_power(iterations=5_000, train=1_000, width=100),
    cells=cells,
    run=contender_run,
    compare=compare,
    draw=draw_curves,
    data=SourceData("MNIST", ("mnist",)),
)
