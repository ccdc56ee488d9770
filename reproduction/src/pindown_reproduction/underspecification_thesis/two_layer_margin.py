r"""A two-layer network on orthogonally separable points: rank two, along two max-margin directions.

The published run is stochastic gradient descent from small weights that are not balanced. Beside it
runs the gradient flow of the theorem, from balanced weights, far enough that directions settle.

Phuong 2021, section 3.4 and Figure 3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.affine import Array
from pindown.datasets.synthetic import orthogonally_separable
from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure

BATCH, RATE, SHRINK = 50, 0.1, 0.05  # as published: batch, learning rate, factor of the first weights
_THIRD, _CLOSE = 0.35, 0.6  # the rule: third over second singular value, share of neurons above 0.9
_RANK_TWO = 1e-2  # the rule for gradient flow: third over first


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per way of training and seed."""
    return [
        {"training": training, "seed": seed, **{k: settings[k] for k in ("width", "epochs", "steps")}}
        for seed in range(settings["seeds"])
        for training in ("SGD", "gradient flow")
    ]


def descend(module: torch.nn.Module, X: Array, y: Array, epochs: int, seed: int) -> float:
    """Train by stochastic gradient descent as published; return the share of points that are fitted."""
    import torch

    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(SHRINK)
    points, labels = torch.from_numpy(X).float(), torch.from_numpy(y).float()
    order = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.SGD(module.parameters(), lr=RATE)
    for _ in range(epochs):
        for batch in torch.randperm(len(points), generator=order).split(BATCH):
            optimiser.zero_grad()
            outputs = module(points[batch]).reshape(-1)
            torch.nn.functional.softplus(-labels[batch] * outputs).mean().backward()
            optimiser.step()
    with torch.no_grad():
        return float((module(points).reshape(-1) * labels > 0).float().mean())


def run(cell: Cell) -> dict[str, Any]:
    """Train one network; return singular values, correlations and a plane to look at the neurons in."""
    import torch

    from pindown.bias.two_layer import Neurons, alignment, train_two_layer

    X, y = orthogonally_separable(random_state=cell["seed"])
    if cell["training"] == "SGD":
        torch.manual_seed(cell["seed"])
        module = torch.nn.Sequential(
            torch.nn.Linear(20, cell["width"], bias=False), torch.nn.ReLU(),
            torch.nn.Linear(cell["width"], 1, bias=False),
        )  # fmt: skip
        accuracy = descend(module, X, y.astype(float), cell["epochs"], cell["seed"])
        W, a = (p.detach().double().numpy() for p in module.parameters())
        neurons = Neurons(W, a[0])
    else:
        neurons = train_two_layer(
            X, y, width=cell["width"], scale=1e-4, steps=cell["steps"], random_state=cell["seed"]
        ).network
        accuracy = float((neurons(X) * y > 0).mean())
    found = alignment(neurons, X, y)
    limit = found.limit
    plane = np.linalg.qr(np.array([limit.positive, limit.negative]).T)[0]
    return {
        "accuracy": accuracy,
        "singular values": found.singular_values[:6].tolist(),
        "share above 0.9": found.close,
        "median": float(np.median(found.correlations)),
        "neurons": (neurons.W @ plane).tolist(),
        "limits": [(limit.positive @ plane).tolist(), (limit.negative @ plane).tolist()],
    }


def compare(results: Results) -> Outcome:
    """Apply the rule to every run."""
    rows, holds = [], []
    for cell, found in results:
        s = found["singular values"]
        if cell["training"] == "SGD":
            good = s[2] / s[1] < _THIRD and found["share above 0.9"] >= _CLOSE and found["accuracy"] == 1
        else:
            good = s[2] / s[0] < _RANK_TWO and found["share above 0.9"] >= _CLOSE
        holds.append(good)
        rows.append(
            (
                f"{cell['training']}, seed {cell['seed']}",
                "rank two; most neurons above 0.9",
                f"{s[0]:.3g}, {s[1]:.3g}, {s[2]:.2g}",
                f"{100 * found['share above 0.9']:.3g} % (median {found['median']:.3f})",
                "yes" if good else "no",
            )
        )
    words = f"{sum(holds)} of {len(holds)} networks are near rank two, along the predicted directions."
    return Outcome(
        "reproduced" if all(holds) else "not reproduced", words,
        ("run", "published", "first three singular values", "neurons above 0.9", "as published"),
        tuple(rows),
    )  # fmt: skip


def draw(results: Results) -> Figure:
    """Draw singular values, and neurons in the plane of the two max-margin directions."""
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    for cell, found in results:
        values = np.array(found["singular values"])
        left.semilogy(
            np.arange(1, len(values) + 1),
            values / values[0],
            "o-",
            alpha=0.7,
            color="C0" if cell["training"] == "SGD" else "C1",
            label=cell["training"],
        )
    left.set(xlabel="index", ylabel="singular value / first")
    found = results[0][1]
    neurons = np.array(found["neurons"])
    right.plot(neurons[:, 0], neurons[:, 1], ".", color="C0", label="a neuron")
    reach = float(np.abs(neurons).max())
    for unit in found["limits"]:
        right.plot(
            [0, reach * unit[0]],
            [0, reach * unit[1]],
            "--",
            color="#7F7F7F",
            label="max-margin direction",
        )
    right.set(
        xlabel="along the first direction",
        ylabel="along the second",
        aspect="equal",
        adjustable="datalim",
    )
    return figure


EXPERIMENT = Experiment(
    id="two-layer-margin",
    title="A two-layer network collapses to two neurons",
    source="Phuong 2021, section 3.4 and Figure 3.1",
    published="Trained on 500 orthogonally separable points in 20 dimensions, the input weights of 100 "
    "neurons have rank two, and most neurons have a correlation above 0.9 with the max-margin direction "
    "of their class.",
    rule="Reproduced if every SGD run fits all points with a third singular value below 0.35 of the "
    "second and at least 60 % of neurons above 0.9, and every gradient flow has a third singular value "
    "below 0.01 of the first.",
    settings={
        "quick": {"seeds": 3, "width": 100, "epochs": 500, "steps": 1500},
        "paper": {"seeds": 10, "width": 100, "epochs": 500, "steps": 10_000},
    },
    seconds={"quick": 18},
    power=Power(least={"epochs": 500}, why="Data, sizes and epochs are the source's."),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
