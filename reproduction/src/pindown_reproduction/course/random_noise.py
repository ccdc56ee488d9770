r"""Random noise is a poor attack: noise of the length that flips a class, beside the shortest attack.

On linear models of growing dimension the share of flips is counted at noise of a fixed multiple of the
margin, beside :math:`\Phi(-m/\sigma)`, and the chance that the mean of the noise exceeds a number,
beside :math:`\tfrac12 \mathrm{erfc}(\epsilon \sqrt{d/2})`. On a trained network for digits the noise
that changes the class in one of ten draws is compared with the shortest attack found.

Lecture course, section on random noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results, stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EPS, _STANDARD_ERRORS = 0.1, 4.0
_RATE = 0.1  # share of flips that noise on the network is tuned to
_HALVINGS = 12


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """Return linear models of several dimensions, and trained networks from several seeds."""
    linear = [{"model": "linear", "d": d, "draws": settings["draws"]} for d in settings["dimensions"]]
    nets = [
        {"model": "digits", "seed": seed, "inputs": settings["inputs"]} for seed in settings["seeds"]
    ]
    return [*linear, *nets]


def run(cell: Cell) -> dict[str, Any]:
    """Measure one cell."""
    return _linear(cell) if cell["model"] == "linear" else _digits(cell)


def _linear(cell: Cell) -> dict[str, Any]:
    """Count flips, positive products and large means of normal noise."""
    from pindown.network import ReluNetwork
    from pindown.probes import mean_noise_probability, noise_versus_adversarial

    d, draws = int(cell["d"]), int(cell["draws"])
    rng = np.random.default_rng(stream(cell, d))
    w, x = rng.standard_normal(d), rng.standard_normal(d)
    plane = ReluNetwork.from_layers([(w[None], [0.0])])
    found = noise_versus_adversarial(plane, x, probability=_RATE)
    flips = positive = large = 0
    block = max(1, 2**22 // d)
    for start in range(0, draws, block):
        noise = rng.standard_normal((min(block, draws - start), d))
        flips += int((((x + found.sigma * noise) @ w > 0) != (x @ w > 0)).sum())
        positive += int((noise @ w > 0).sum())
        large += int((noise.mean(axis=1) > _EPS).sum())
    return {
        "flips": flips / draws,
        "positive": positive / draws,
        "large mean": large / draws,
        "predicted large mean": mean_noise_probability(d, _EPS),
        "ratio": found.ratio,
    }


def _digits(cell: Cell) -> dict[str, Any]:
    """Compare noise and attacks on a trained network."""
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from sklearn.utils._testing import ignore_warnings

    from pindown.network import ReluNetwork
    from pindown.probes import attack

    X, y = load_digits(return_X_y=True)
    model = MLPClassifier((32,), max_iter=60, random_state=cell["seed"])
    ignore_warnings(category=ConvergenceWarning)(model.fit)(X / 16, y)
    net, rng = ReluNetwork.from_sklearn(model), np.random.default_rng(cell["seed"])
    rows = X[rng.choice(len(X), cell["inputs"], replace=False)] / 16
    labels = net(rows).argmax(axis=1)
    shortest = attack(net, rows, norm="l2", method="deepfool")
    noise = rng.standard_normal((200, X.shape[1]))
    low, high = np.zeros(len(rows)), np.full(len(rows), 20.0)
    for _ in range(_HALVINGS):
        sigma = (low + high) / 2
        moved = rows[:, None] + sigma[:, None, None] * noise
        flips = (
            net(moved.reshape(-1, X.shape[1])).argmax(axis=1).reshape(len(rows), -1) != labels[:, None]
        )
        enough = flips.mean(axis=1) >= _RATE
        low, high = np.where(enough, low, sigma), np.where(enough, sigma, high)
    ratio = high * np.sqrt(X.shape[1]) / shortest.distance
    return {
        "ratio": float(np.median(ratio[shortest.success])),
        "attacked": float(shortest.success.mean()),
    }


def compare(results: Results) -> Outcome:
    """Compare counts with probabilities, and lengths of noise with those of attacks."""
    rows: list[tuple[Any, ...]] = []
    agree, halves, longer = [], [], []
    for cell, found in results:
        if cell["model"] == "linear":
            n = cell["draws"]
            agree.append(_close(found["flips"], _RATE, n))
            agree.append(_close(found["large mean"], found["predicted large mean"], n))
            halves.append(_close(found["positive"], 0.5, n))
            rows.append(
                (
                    f"linear, d = {cell['d']}",
                    f"P(mean > {_EPS:g}) = {found['predicted large mean']:.3g}; P(w.r > 0) diminishes",
                    f"{found['large mean']:.3g}; P(w.r > 0) = {found['positive']:.3f}; noise "
                    f"{found['ratio']:.1f} times as long as the attack",
                    "yes" if agree[-1] and agree[-2] else "no",
                )
            )
        else:
            longer.append(found["ratio"] > 1.0)
            rows.append(
                (
                    f"network for digits, seed {cell['seed']}",
                    "noise has to be much longer",
                    f"{found['ratio']:.1f} times as long as the shortest attack found",
                    "yes" if longer[-1] else "no",
                )
            )
    holds = all(agree) and all(longer)
    words = (
        f"The probabilities agree with counts in {sum(agree)} of {len(agree)} cases; noise has to be "
        f"longer than the attack in {sum(longer)} of {len(longer)} networks. A positive product does "
        f"not get rare: its chance is one half in {sum(halves)} of {len(halves)} dimensions."
    )
    return Outcome(
        verdict="reproduced" if holds else "not reproduced",
        words=words,
        columns=("model", "printed", "measured", "agrees"),
        rows=tuple(rows),
    )


def _close(share: float, p: float, n: int) -> bool:
    return abs(share - p) <= _STANDARD_ERRORS * float(np.sqrt(p * (1 - p) / n)) + 1.0 / n


def draw(results: Results) -> Figure:
    """Draw how much longer than the shortest attack noise has to be, over the dimension."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    linear = [(cell["d"], found["ratio"]) for cell, found in results if cell["model"] == "linear"]
    nets = [(64, found["ratio"]) for cell, found in results if cell["model"] == "digits"]
    for points, label in ((linear, "a linear model"), (nets, "a network for digits")):
        if points:
            ax.loglog(*zip(*points, strict=True), "o", label=label)
    ax.set(xlabel="dimension", ylabel="length of noise / length of attack")
    return figure


EXPERIMENT = Experiment(
    id="random-noise",
    title="Random noise is a poor attack",
    source="Lecture course, section on random noise",
    published="The chance that the mean of standard normal noise exceeds eps is erfc(eps sqrt(d/2))/2, "
    "which vanishes as d grows; so noise hardly ever does what an attack does.",
    rule="Reproduced if all counted shares lie within four standard errors of the probabilities, and on "
    "every trained network noise that flips one draw in ten is longer, in the median, than the attack.",
    settings={
        "quick": {"dimensions": [1, 10, 100, 1000], "draws": 4000, "seeds": [0, 1, 2], "inputs": 40},
        "paper": {
            "dimensions": [1, 10, 100, 1000, 10000],
            "draws": 100_000,
            "seeds": [0, 1, 2, 3, 4],
            "inputs": 200,
        },
    },
    seconds={"quick": 2},
    power=Power(
        why="Shares are within four standard errors of 4,000 draws, or not; networks of three seeds."
    ),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
