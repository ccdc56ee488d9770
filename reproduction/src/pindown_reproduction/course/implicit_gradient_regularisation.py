r"""Whether finite steps descend the loss with a penalty on its gradient.

Three kinds of cells: the powers of the step with which gradient descent departs from both flows; the
same for one epoch of minibatches; and a small network trained with large steps, with small steps, and
with small steps that have the penalty of the large ones added.

Lecture course, slides on implicit gradient regularisation; Smith et al. 2021.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NEAR = 0.2  # allowed departure of a measured power
_STEPS = (0.04, 0.02, 0.01)
_CLOSER = 2.0  # how many times closer the penalised small steps are to come to the large ones
_FINE = 16  # small steps in a large one


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """Return functions, minibatches, and networks."""
    return [
        *({"what": "descent", "seed": s} for s in range(settings["functions"])),
        *({"what": "minibatches", "seed": s} for s in range(settings["functions"])),
        *(
            {"what": "network", "step": step, "seed": s, "time": settings["time"]}
            for step in settings["steps"]
            for s in range(settings["seeds"])
        ),
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Measure one cell."""
    return {"descent": _descent, "minibatches": _minibatches, "network": _network}[cell["what"]](cell)


def _descent(cell: Cell) -> dict[str, Any]:
    import torch

    from pindown.bias.discretisation import discretisation_orders

    rng = np.random.default_rng(cell["seed"])
    A, b = torch.tensor(rng.standard_normal((3, 2))), torch.tensor(rng.standard_normal(3))

    def loss(w: Any) -> Any:  # not convex, with third derivatives
        return torch.sin(A @ w + b).sum() + 0.1 * (w**4).sum()

    found = discretisation_orders(loss, rng.standard_normal(2), _STEPS)
    return {"local": list(found.local_orders), "global": list(found.global_orders)}


def _minibatches(cell: Cell) -> dict[str, Any]:
    import torch

    from pindown.bias.discretisation import sgd_orders

    rng = np.random.default_rng(100 + cell["seed"])
    parts = []
    for _ in range(4):
        root, centre = rng.standard_normal((3, 3)), torch.tensor(rng.standard_normal(3))
        A = torch.tensor(root @ root.T / 3)
        parts.append(lambda w, A=A, c=centre: (w - c) @ A @ (w - c) / 2)
    found = sgd_orders(parts, rng.standard_normal(3), (0.02, 0.01, 0.005))
    return {"local": list(found.local_orders)}


def _network(cell: Cell) -> dict[str, Any]:
    import torch

    from pindown.bias.implicit_regularisation import ImplicitRegularisation, emulating_multiple

    rng = np.random.default_rng(200 + cell["seed"])
    X = torch.tensor(rng.standard_normal((40, 3)))
    y = torch.tensor(np.sin(2 * X[:, :1].numpy()))
    large, small = cell["step"], cell["step"] / _FINE

    def train(step: float, multiple: float) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(cell["seed"])
            net = torch.nn.Sequential(
                torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)
            ).double()
        descent = ImplicitRegularisation(torch.optim.SGD(net.parameters(), lr=step), "add", multiple)
        for _ in range(round(cell["time"] / step)):
            descent.step(((net(X) - y) ** 2).mean)
        return torch.cat([p.detach().reshape(-1) for p in net.parameters()])

    reference, plain = train(large, 0.0), train(small, 0.0)
    penalised = train(small, emulating_multiple(small, large))
    return {
        "plain": float((plain - reference).norm()),
        "penalised": float((penalised - reference).norm()),
    }


def compare(results: Results) -> Outcome:
    """Decide by the powers, and by how much closer the penalty brings small steps to large ones."""
    rows: list[tuple[Any, ...]] = []
    good, closer = [], []
    for cell, found in results:
        name = f"{cell['what']}, seed {cell['seed']}"
        if cell["what"] == "network":
            closer.append(found["plain"] / found["penalised"])
            rows.append(
                (
                    f"{name}, step {cell['step']:g}",
                    "closer",
                    f"{closer[-1]:.3g} times closer",
                    closer[-1] >= _CLOSER,
                )
            )
            continue
        powers, expected = found["local"], [2, 3]
        if "global" in found:
            powers, expected = [*powers, *found["global"]], [2, 3, 1, 2]
        good.append(all(abs(p - e) <= _NEAR for p, e in zip(powers, expected, strict=True)))
        rows.append((name, " ".join(map(str, expected)), " ".join(f"{p:.2f}" for p in powers), good[-1]))
    words = f"The powers are within {_NEAR:g} of theory in {sum(good)} of {len(good)} cells."
    if closer:
        words += (
            f" With the penalty added, small steps end {min(closer):.3g} to {max(closer):.3g} times "
            "closer to where large steps end."
        )
    holds = all(good) and (not closer or min(closer) >= _CLOSER)
    return Outcome(
        verdict="reproduced" if holds else "not reproduced",
        words=words,
        columns=("cell", "theory (plain, modified; fixed time)", "measured", "as published"),
        rows=tuple((a, b, c, "yes" if d else "no") for a, b, c, d in rows),
    )


def draw(results: Results) -> Figure:
    """Draw the measured powers of the step, and how much closer the penalty comes."""
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    for what, marker in (("descent", "o"), ("minibatches", "s")):
        for cell, found in results:
            if cell["what"] == what:
                left.plot([2, 3], found["local"], marker, color="C0", alpha=0.5, label=what)
    left.plot([1.8, 3.2], [1.8, 3.2], color="#7F7F7F", linewidth=1, label="as in theory")
    left.set(xlabel="power in theory", ylabel="measured after one step")
    nets = [(c["step"], f["plain"] / f["penalised"]) for c, f in results if c["what"] == "network"]
    if nets:
        right.semilogx(*zip(*nets, strict=True), "o", alpha=0.6, label="a run")
    right.axhline(1, color="#7F7F7F", linewidth=1)
    right.set(xlabel="large step", ylabel="times closer with the penalty")
    return figure


EXPERIMENT = Experiment(
    id="implicit-gradient-regularisation",
    title="What a finite step adds to the loss",
    source="Lecture course, slides on implicit gradient regularisation; Smith et al. 2021",
    published="Gradient descent with a step follows the flow of the loss plus a quarter of the step "
    "times the squared gradient, up to the square of the step; minibatches "
    "that of their mean squared gradients.",
    rule="Reproduced if all measured powers of the step are within 0.2 of 2 and 3 after one step (1 and "
    "2 at a fixed time), and small steps with the penalty of large ones end at least twice as close to "
    "where large steps end as small steps without it.",
    settings={
        "quick": {"functions": 3, "steps": [0.02, 0.05, 0.1], "seeds": 2, "time": 5.0},
        "paper": {"functions": 20, "steps": [0.01, 0.02, 0.05, 0.1], "seeds": 10, "time": 20.0},
    },
    seconds={"quick": 46},
    power=Power(why="The rule is about every function and network."),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
