r"""A residual network of four layers on orthogonally separable points: every layer has rank two.

.. math:: h_1 = W_1x, \qquad h_l = h_{l-1} + W_l\,\rho(h_{l-1}),\ l = 2, 3, \qquad
          h = W_4\,\rho(h_3).

Phuong 2021, section 3.4, equation 3.30 and Figure 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.datasets.synthetic import orthogonally_separable
from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results
from pindown_reproduction.underspecification_thesis.two_layer_margin import descend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The rule: third over second singular value, median correlation.
_FIRST, _LATER, _MEDIAN = 0.5, 0.15, 0.9


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per seed."""
    return [
        {"seed": seed, "width": settings["width"], "epochs": settings["epochs"]}
        for seed in range(settings["seeds"])
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Train one network; return singular values of its layers, and the first layer's rows."""
    import torch

    from pindown.bias.two_layer import two_layer_limit

    class Residual(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, d: int, width: int) -> None:
            super().__init__()
            widths = [(d, width), (width, width), (width, width), (width, 1)]
            self.layers = torch.nn.ModuleList(torch.nn.Linear(a, b, bias=False) for a, b in widths)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.layers[0](x)
            for layer in self.layers[1:3]:
                h = h + layer(h.relu())
            return torch.as_tensor(self.layers[3](h.relu()))

    X, y = orthogonally_separable(random_state=cell["seed"])
    torch.manual_seed(cell["seed"])
    module = Residual(X.shape[1], cell["width"])
    accuracy = descend(module, X, y.astype(float), cell["epochs"], cell["seed"])
    matrices = [layer.weight.detach().double().numpy() for layer in module.layers][:3]
    limit = two_layer_limit(X, y)
    rows = matrices[0] / np.linalg.norm(matrices[0], axis=1, keepdims=True)
    nearest = np.maximum(rows @ limit.positive, rows @ limit.negative)
    return {
        "accuracy": accuracy,
        "singular values": [np.linalg.svd(W, compute_uv=False)[:6].tolist() for W in matrices],
        "median": float(np.median(nearest)),
        "share above 0.9": float((nearest > 0.9).mean()),
    }


def compare(results: Results) -> Outcome:
    """Apply the rule to every run."""
    rows, holds = [], []
    for cell, found in results:
        thirds = [values[2] / values[1] for values in found["singular values"]]
        good = thirds[0] < _FIRST and max(thirds[1:]) < _LATER and found["median"] > _MEDIAN
        holds.append(good)
        rows.append(
            (
                f"seed {cell['seed']}",
                "rank two in W1, W2, W3",
                ", ".join(f"{third:.2g}" for third in thirds),
                f"{found['median']:.3f}",
                "yes" if good else "no",
            )
        )
    words = f"{sum(holds)} of {len(holds)} residual networks have layers near rank two."
    return Outcome(
        "reproduced" if all(holds) else "not reproduced",
        words,
        (
            "run",
            "published",
            "third / second singular value",
            "median correlation of W1",
            "as published",
        ),
        tuple(rows),
    )  # fmt: skip


def draw(results: Results) -> Figure:
    """Draw the singular values of the three layers."""
    from matplotlib.figure import Figure

    figure = Figure()
    for ax, layer in zip(figure.subplots(1, 3, sharey=True), range(3), strict=True):
        for _, found in results:
            values = np.array(found["singular values"][layer])
            ax.plot(np.arange(1, len(values) + 1), values / values[0], "o-", color="C0", alpha=0.7)
        ax.set(
            title=f"layer {layer + 1}, a line per run", xlabel="index", ylabel="singular value / first"
        )
    return figure


EXPERIMENT = Experiment(
    id="residual-margin",
    title="Layers of a residual network have rank two",
    source="Phuong 2021, section 3.4 and Figure 3.2",
    published="In a residual network of four layers and width 100 the first three weight matrices have "
    "rank two, and the rows of the first are close to the two max-margin directions (a conjecture).",
    rule="Reproduced if in every run the third singular value is below 0.5 of the second in the first "
    "layer and below 0.15 in the other two, and the median correlation of first-layer rows above 0.9.",
    settings={
        "quick": {"seeds": 3, "width": 100, "epochs": 500},
        "paper": {"seeds": 10, "width": 100, "epochs": 500},
    },
    seconds={"quick": 21},
    power=Power(why="The rule is about every run; data and sizes are the source's."),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
