"""How far optimisers end from the least loss there is, which is known here with a proof."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]

OPTIMISERS = ("sgd", "adam", "lbfgs")
_RATES = {"sgd": 0.03, "adam": 0.02}
# A run that ends within this of the optimum, relative to the loss of the zero network, has found it.
_FOUND = 1e-4
_BELOW = 1e-7
_LEAST = 1e-9  # what is drawn for an excess that rounding makes zero or less


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per size, width and data set."""
    return [
        {
            "samples": n,
            "width": width,
            "seed": seed,
            "starts": settings["starts"],
            "steps": settings["steps"],
        }
        for n, width in settings["sizes"]
        for seed in range(settings["seeds"])
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Certify the optimum, then run every optimiser from random weights on the same loss."""
    from pindown.learn import ExactReluRegressor

    rng = np.random.default_rng(cell["seed"])
    X = rng.uniform(-1, 1, (cell["samples"], 2))
    y = np.sin(3 * X[:, 0]) + 0.5 * np.abs(X[:, 1]) + 0.1 * rng.normal(size=len(X))
    exact = ExactReluRegressor(width=cell["width"], budget=600, verbose=0).fit(X, y)
    reached = {
        name: [_train(name, X, y, cell["width"], cell["steps"], seed) for seed in range(cell["starts"])]
        for name in OPTIMISERS
    }
    return {
        "best": exact.best_loss_,
        "lower": exact.lower_bound_,
        "proved": bool(exact.optimal_),
        "zero": float(y @ y),
        **reached,
    }


def _train(name: str, X: Array, y: Array, width: int, steps: int, seed: int) -> float:
    """Return the loss at which an optimiser ends, from torch's usual random weights."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the arrays are tiny
    generator = torch.Generator().manual_seed(seed)
    inputs, targets = torch.from_numpy(X), torch.from_numpy(y)

    def uniform(*shape: int, fan_in: int) -> torch.Tensor:
        values = 2 * torch.rand(*shape, generator=generator, dtype=torch.float64) - 1
        return (values / fan_in**0.5).requires_grad_()

    weights = [
        uniform(width, 2, fan_in=2),
        uniform(width, fan_in=2),
        uniform(width, fan_in=width),
    ]

    def loss() -> torch.Tensor:
        hidden = torch.relu(inputs @ weights[0].T + weights[1])
        return ((hidden @ weights[2] - targets) ** 2).sum()

    if name == "lbfgs":
        optimiser: torch.optim.Optimizer = torch.optim.LBFGS(
            weights,
            max_iter=steps,
            line_search_fn="strong_wolfe",
            tolerance_grad=1e-12,
            tolerance_change=1e-14,
        )
    else:
        kind = torch.optim.Adam if name == "adam" else torch.optim.SGD
        optimiser = kind(weights, lr=_RATES[name] / (1 if name == "adam" else len(X)))

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        value = loss()
        value.backward()
        return value

    for _ in range(1 if name == "lbfgs" else steps):
        optimiser.step(closure)
    torch.set_num_threads(threads)
    return float(loss().detach())


def compare(results: Results) -> Outcome:
    """Tabulate how often each optimiser finds the optimum, and how far it stays away."""
    sizes = list(dict.fromkeys((cell["samples"], cell["width"]) for cell, _ in results))
    rows = []
    below = 0
    for n, width in sizes:
        mine = [r for cell, r in results if (cell["samples"], cell["width"]) == (n, width)]
        for name in OPTIMISERS:
            excess = np.concatenate([(np.array(r[name]) - r["best"]) / r["zero"] for r in mine])
            below += sum(int((np.array(r[name]) < r["lower"] * (1 - _BELOW)).sum()) for r in mine)
            best = np.array([(min(r[name]) - r["best"]) / r["zero"] for r in mine])
            rows.append(
                (
                    n,
                    width,
                    name,
                    f"{(excess <= _FOUND).mean():.0%}",
                    f"{(best <= _FOUND).mean():.0%}",
                    f"{np.median(excess):.2g}",
                    f"{excess.max():.2g}",
                )
            )
    proved = all(r["proved"] for _, r in results)
    found = [float(row[3].rstrip("%")) for row in rows]
    return Outcome(
        verdict="no published number",
        words=f"{'All' if proved else 'Not all'} optima are proved; {below} runs below a proved bound. "
        f"A single run ends at the optimum in {min(found):.0f}% to {max(found):.0f}% of cases.",
        columns=(
            "samples",
            "width",
            "optimiser",
            "runs at the optimum",
            "best run at the optimum",
            "median excess",
            "largest excess",
        ),
        rows=tuple(rows),
    )


def _above(loss: float, result: Mapping[str, Any]) -> float:
    return float(max((loss - result["best"]) / result["zero"], _LEAST))


def draw(results: Results) -> Figure:
    """Draw every run's excess loss, by size and width."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    sizes = list(dict.fromkeys((cell["samples"], cell["width"]) for cell, _ in results))
    for shift, name in zip((-0.22, 0.0, 0.22), OPTIMISERS, strict=True):
        points = [
            (sizes.index((cell["samples"], cell["width"])) + shift, _above(loss, r))
            for cell, r in results
            for loss in r[name]
        ]
        ax.semilogy(*zip(*points, strict=True), ".", ms=4, alpha=0.5, label=name)
    ax.axhline(_FOUND, color="0.6", lw=0.8)
    ax.set_xticks(range(len(sizes)), [f"{n} rows\nwidth {w}" for n, w in sizes])
    ax.set_xlabel("problem (a dot per run)")
    ax.set_ylabel("loss above the certified optimum,\nrelative to the zero network")
    return figure


EXPERIMENT = Experiment(
    id="optimiser-gap",
    title="How far Adam, SGD and L-BFGS end from the certified optimum",
    source="Mukherjee 2020, section 2.4 (exact training makes the question answerable)",
    published="No number: the source gives the algorithm, not a comparison.",
    rule="None for the gap. A run below a proved lower bound would refute the certificate.",
    settings={
        "quick": {"sizes": [(10, 1), (10, 2), (20, 2), (30, 2)], "seeds": 4, "starts": 5, "steps": 800},
        "paper": {
            "sizes": [(10, 1), (10, 2), (10, 3), (20, 1), (20, 2), (30, 2), (50, 2), (100, 1), (100, 2)],
            "seeds": 10,
            "starts": 20,
            "steps": 20_000,
        },
    },
    seconds={"quick": 86},
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
