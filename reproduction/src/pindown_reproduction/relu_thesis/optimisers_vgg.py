"""ADAM with much momentum against NAG on an image classifier: VGG-9."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results, SourceData
from pindown_reproduction.relu_thesis._optimisers import (
    Claim,
    at_the_end,
    best_runs,
    make_optimiser,
    missing,
    settle,
    step_sizes,
    untuned,
)

CONTENDERS_HERE = ("NAG 0.9", "NAG 0.99", "ADAM 0.9", "ADAM 0.99")
WEIGHT_DECAY = 1e-5
LEARNED = 0.2  # twice what guessing gives: below it nothing is compared
_PART = 500  # images that are classified at once
_CLOSE = 0.01  # accuracies that differ by less count as the same


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per contender, step size and seed."""
    shared = {key: settings[key] for key in ("divisor", "train", "test", "epochs", "batch")}
    return [
        {"contender": name, "lr": lr, "seed": seed, **shared}
        for seed in range(settings["seeds"])
        for name in CONTENDERS_HERE
        for lr in step_sizes(name, settings)
    ]


def compare(results: Results) -> Outcome:
    """Check the two statements on the accuracy."""
    best = best_runs(results)
    cell, first = results[0]
    small = f", widths divided by {cell['divisor']}" if cell["divisor"] > 1 else ""
    where = f"{first['data']}, {cell['train']:,} images, {cell['epochs']} epochs{small}"
    if missing(best, CONTENDERS_HERE):
        return settle(missing(best, CONTENDERS_HERE), where)
    accuracy = {name: float(run["accuracy"]) for name, run in best.items()}
    nag = max(accuracy["NAG 0.9"], accuracy["NAG 0.99"])
    learned = min(nag, accuracy["ADAM 0.99"]) > LEARNED
    values = ", ".join(f"{name}: {value:.3f}" for name, value in accuracy.items())
    claims = [
        Claim(
            "ADAM 0.99 classifies test images as well as NAG",
            values,
            learned and accuracy["ADAM 0.99"] >= nag - _CLOSE,
        ),
        Claim(
            "ADAM 0.99 classifies test images better than ADAM 0.9",
            values,
            learned and accuracy["ADAM 0.99"] > accuracy["ADAM 0.9"],
        ),
    ]
    return settle(claims, where, at_the_end(results, best))


def run(cell: Cell) -> dict[str, Any]:
    """Train and return the loss and the accuracy."""
    import numpy as np
    import torch
    from torch.nn.functional import cross_entropy

    from pindown_reproduction.relu_thesis._optimisers import colour_images, vgg9

    torch.set_num_threads(1)
    images = colour_images(cell["train"], cell["test"])
    assert images.labels is not None
    X, X_test = torch.from_numpy(images.train), torch.from_numpy(images.test)
    y, y_test = map(torch.from_numpy, images.labels)
    model = vgg9(divisor=cell["divisor"], seed=cell["seed"])
    settings = {"weight_decay": WEIGHT_DECAY}
    optimiser = make_optimiser(cell["contender"], model.parameters(), cell["lr"], **settings)
    rng = np.random.default_rng(cell["seed"])
    for _ in range(cell["epochs"]):
        order = torch.from_numpy(rng.permutation(len(X)))
        for rows in order.split(cell["batch"]):
            if len(rows) < 2:
                continue  # batch normalisation needs two
            optimiser.zero_grad()
            loss = cross_entropy(model(X[rows]), y[rows])
            loss.backward()
            optimiser.step()
        if not math.isfinite(loss.item()):
            return {"data": images.name, "train": math.nan, "accuracy": 0.0}
    model.eval()
    with torch.no_grad():
        # In parts: the first layers make sixty times as many numbers as an image has.
        scores, fresh = (torch.cat([model(part) for part in Z.split(_PART)]) for Z in (X, X_test))
        train = cross_entropy(scores, y).item()
        accuracy = float((fresh.argmax(dim=1) == y_test).double().mean())
    return {"data": images.name, "train": train, "accuracy": accuracy}


EXPERIMENT = Experiment(
    id="optimisers-vgg",
    title="Optimisers on an image classifier",
    source="Mukherjee 2020, section 5.6.5, Figure 5.6.5 and Table 5.6.1",
    published="VGG-9 on CIFAR-10, batches of 100: at about the same loss, ADAM with beta1 = 0.99 "
    "generalises as well as NAG and better than with 0.9. No number is printed.",
    rule="Reproduced if NAG and ADAM 0.99 classify more than a fifth of the test images, ADAM 0.99 is "
    "within one point of NAG's accuracy or above, and above ADAM 0.9's.",
    settings={
        "quick": {
            "divisor": 8,
            "train": 800,
            "test": 500,
            "epochs": 5,
            "batch": 100,
            "step_sizes": {"NAG": (1e-1, 3e-2, 1e-2, 3e-3), "adaptive": (1e-2, 3e-3, 1e-3)},
            "seeds": 1,
        },
        "decisive": {
            "divisor": 4,
            "train": 4000,
            "test": 2000,
            "epochs": 15,
            "batch": 100,
            "step_sizes": {"NAG": (1e-1, 3e-2, 1e-2, 3e-3), "adaptive": (1e-2, 3e-3, 1e-3)},
            "seeds": 3,
        },
        "paper": {
            "divisor": 1,
            "train": 50_000,
            "test": 10_000,
            "epochs": 200,
            "batch": 100,
            "seeds": 1,
        },
    },
    seconds={"quick": 43, "decisive": 6000},
    power=Power(
        least={"train": 4_000, "epochs": 15},
        why="A point of accuracy is told apart on 2,000 test images over three seeds; below 4,000 "
        "images "
        "and a quarter of the channels the network hardly classifies better than a linear one.",
        unfit=untuned,
    ),
    cells=cells,
    run=run,
    compare=compare,
    data=SourceData("CIFAR-10", ("cifar",)),
)
