r"""How many degrees of freedom each layer of a trained network uses.

Networks of five layers are trained on different numbers of scikit-learn's digits; the dimension of their
representation of test digits is estimated layer by layer. First the estimator itself is checked on
cubes of known dimension.

Ansuini et al. 2019, which the lecture course's slides on data manifolds cite (figures only).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import (
    Cell,
    Experiment,
    Outcome,
    Power,
    Results,
    SourceData,
    stream,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS, _AMBIENT = 2_000, 50  # of the cubes
_NEAR = 0.1
_WIDTH, _HIDDEN, _TEST = 64, 5, 500


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """Return cubes, then networks."""
    cubes: list[Cell] = [{"cube": d} for d in settings["cubes"]]
    nets = [
        {"samples": n, "seed": seed, "epochs": settings["epochs"]}
        for n in settings["samples"]
        for seed in range(settings["seeds"])
    ]
    return cubes + nets


def run(cell: Cell) -> dict[str, Any]:
    """Estimate the dimension of a cube, or of the layers of a network."""
    return _cube(cell) if "cube" in cell else _network(cell)


def _cube(cell: Cell) -> dict[str, Any]:
    from pindown.bias import intrinsic_dimension

    dimension = cell["cube"]
    rng = np.random.default_rng(stream(cell, dimension))
    frame, _ = np.linalg.qr(rng.standard_normal((_AMBIENT, dimension)))
    found = intrinsic_dimension(rng.uniform(size=(_POINTS, dimension)) @ frame.T)
    return {"dimension": found.value, "interval": list(found.interval)}


def _network(cell: Cell) -> dict[str, Any]:
    import torch
    from sklearn.datasets import load_digits

    from pindown.bias import layer_dimensions

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(cell["seed"]).permutation(len(images))
    X = torch.tensor(images[order] / 16, dtype=torch.float32)
    y = torch.tensor(labels[order])
    train, test = slice(_TEST, _TEST + cell["samples"]), slice(0, _TEST)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(cell["seed"])
        layers: list[torch.nn.Module] = []
        for i in range(_HIDDEN):
            layers += [torch.nn.Linear(64 if i == 0 else _WIDTH, _WIDTH), torch.nn.ReLU()]
        net = torch.nn.Sequential(*layers, torch.nn.Linear(_WIDTH, 10))
        optimiser = torch.optim.Adam(net.parameters(), lr=2e-3)
        for _ in range(cell["epochs"]):
            for chosen in torch.randperm(cell["samples"]).split(64):
                optimiser.zero_grad()
                torch.nn.functional.cross_entropy(net(X[train][chosen]), y[train][chosen]).backward()
                optimiser.step()
    hidden = [str(2 * i + 1) for i in range(_HIDDEN)]
    found = layer_dimensions(net, X[test], hidden)
    with torch.no_grad():
        accuracy = float((net(X[test]).argmax(1) == y[test]).double().mean())
    return {"dimensions": [d.value for d in found.values()], "accuracy": accuracy}


def compare(results: Results) -> Outcome:
    """Decide by the cubes, the shape of the curve over layers, and its end against the accuracy."""
    cubes = [(c["cube"], f["dimension"]) for c, f in results if "cube" in c]
    nets = [(c, f) for c, f in results if "cube" not in c]
    close = all(abs(found - d) <= _NEAR * d for d, found in cubes)
    rows: list[tuple[Any, ...]] = [
        (f"cube of dimension {d}", d, f"{found:.3g}", "yes" if abs(found - d) <= _NEAR * d else "no")
        for d, found in cubes
    ]
    bumps, ends, accuracies = [], [], []
    for c, f in nets:
        d = f["dimensions"]
        bumps.append(max(d[1:-1]) > d[0] and max(d[1:-1]) > d[-1])
        ends.append(d[-1])
        accuracies.append(f["accuracy"])
        curve = " ".join(f"{v:.1f}" for v in d)
        rows.append(
            (
                f"{c['samples']} digits, seed {c['seed']}",
                "rises, then falls",
                curve,
                "yes" if bumps[-1] else "no",
            )
        )
    varied = len(set(accuracies)) > 1 and len(set(ends)) > 1
    link = float(np.corrcoef(ends, accuracies)[0, 1]) if varied else float("nan")
    words = f"Cubes are {'' if close else 'not '}within 10 % of their dimension."
    if nets:
        words += (
            f" The dimension rises and then falls in {sum(bumps)} of {len(nets)} networks; the "
            f"correlation of the last layer's dimension with accuracy is {link:.2f}."
        )
    holds = close and bool(nets) and sum(bumps) >= 0.8 * len(nets) and link < 0
    return Outcome(
        verdict="reproduced" if holds else "not reproduced",
        words=words,
        columns=("what", "published", "measured (input, then layers)", "as published"),
        rows=tuple(rows),
    )


def draw(results: Results) -> Figure:
    """Draw dimension over layers; with cubes only, estimated over true dimension."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    nets = [(c, f) for c, f in results if "cube" not in c]
    if not nets:
        pairs = [(c["cube"], f["dimension"]) for c, f in results]
        ax.plot(*zip(*pairs, strict=True), "o", label="a cube")
        ax.set(xlabel="dimension of the cube", ylabel="estimate")
        return figure
    sizes = sorted({c["samples"] for c, _ in nets})
    for i, n in enumerate(sizes):
        curves = np.array([f["dimensions"] for c, f in nets if c["samples"] == n])
        ax.errorbar(
            np.arange(curves.shape[1]),
            curves.mean(0),
            curves.std(0),
            color=f"C{i}",
            capsize=2,
            label=f"{n} digits",
        )
    ax.set(xlabel="layer (0: input)", ylabel="intrinsic dimension")
    return figure


EXPERIMENT = Experiment(
    id="intrinsic-dimension",
    title="Degrees of freedom of the layers' representations",
    source="Lecture course, slides on data manifolds, after Ansuini et al. 2019",
    published="Along the layers the intrinsic dimension first rises and then falls, and it is lower "
    "in the last layer of networks that predict better. Convolutional networks on "
    "photographs; figures only.",
    rule="Reproduced if cubes of dimension up to 10 are estimated within 10 %, at least 80 % of "
    "networks have their largest dimension inside (above input and last hidden layer), and the last "
    "hidden layer's dimension correlates negatively with test accuracy.",
    settings={
        "quick": {"cubes": [1, 2, 5, 10], "samples": [100, 300, 1200], "seeds": 4, "epochs": 60},
        "paper": {
            "cubes": [1, 2, 5, 10],
            "samples": [50, 100, 200, 400, 800, 1200],
            "seeds": 20,
            "epochs": 200,
        },
    },
    seconds={"quick": 19},
    power=Power(
        why="Four networks for each number of digits; on digits the effect can be seen, not refuted."
    ),
    remark="Small dense networks on digits, not deep convolutional ones on photographs.",
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
    data=SourceData("photographs", otherwise="8 x 8 digits"),
)
