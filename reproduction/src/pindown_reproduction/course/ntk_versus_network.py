r"""A trained network beside kernel regression with its own tangent kernels.

The teacher is the product of two of twenty Gaussian inputs. A network of one hidden layer is trained
with Adam, weight decay and stopping on held-out rows; ridge regression uses the tangent kernel at the
start, that after training, and that of infinite width, whose penalty is even chosen on the test rows.

Lecture course, slide on the tangent kernel and practice, which gives no numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.affine import Array
from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_D, _TRAIN, _HELD_OUT, _TEST = 20, 400, 200, 1000
_RATE, _DECAY, _LOOK = 3e-3, 1e-3, 20  # of Adam; steps between two looks at the held-out rows
_PENALTIES = np.logspace(-6, 1, 36)
_METHODS = ("network", "kernel at the start", "kernel after training", "infinite width")


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """Return one cell per width and seed."""
    return [
        {"width": width, "seed": seed, "steps": settings["steps"]}
        for width in settings["widths"]
        for seed in range(settings["seeds"])
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Train one network and compare it with its kernels."""
    from pindown.bias import infinite_ntk, kernel_versus_network

    rng = np.random.default_rng([cell["seed"], cell["width"]])
    parts = [rng.standard_normal((n, _D)) for n in (_TRAIN, _HELD_OUT, _TEST)]
    (X, y), held_out, (Z, z) = ((P, P[:, 0] * P[:, 1]) for P in parts)
    start, end, step = _train(X, y, held_out, cell)
    found = kernel_versus_network(start, end, X, y, Z, z)
    ones = [np.c_[P, np.ones(len(P))] for P in (X, Z)]
    kernel, cross = infinite_ntk(ones[0]), infinite_ntk(ones[1], ones[0])
    size = float(np.trace(kernel)) / _TRAIN
    errors = [
        float(np.mean((cross @ np.linalg.solve(kernel + p * size * np.eye(_TRAIN), y) - z) ** 2))
        for p in _PENALTIES
    ]
    return {
        "network": found.network,
        "kernel at the start": found.initial,
        "kernel after training": found.final,
        "infinite width": min(errors),
        "alignment": found.alignment,
        "target before": found.target_before,
        "target after": found.target_after,
        "stopped at": step,
    }


def _train(X: Array, y: Array, held_out: tuple[Array, Array], cell: Cell) -> tuple[Any, Any, int]:
    """Return the network at the start, that of least held-out error, and the step it was seen at."""
    import torch
    from torch import nn

    torch.manual_seed(cell["seed"])
    net = nn.Sequential(nn.Linear(_D, cell["width"]), nn.ReLU(), nn.Linear(cell["width"], 1)).double()
    start, best, least, at = copy.deepcopy(net), copy.deepcopy(net), np.inf, 0
    rows, targets, others, wanted = (torch.as_tensor(A) for A in (X, y, *held_out))
    optimizer = torch.optim.Adam(net.parameters(), lr=_RATE, weight_decay=_DECAY)
    for step in range(cell["steps"]):
        optimizer.zero_grad()
        torch.mean((net(rows)[:, 0] - targets) ** 2).backward()
        optimizer.step()
        if step % _LOOK == 0:
            with torch.no_grad():
                error = float(torch.mean((net(others)[:, 0] - wanted) ** 2))
            if error < least:
                best, least, at = copy.deepcopy(net), error, step
    return start, best, at


def compare(results: Results) -> Outcome:
    """Compare test errors, run by run."""
    rows, wins = [], []
    for cell, found in results:
        wins.append(found["network"] < found["infinite width"])
        rows.append(
            (
                f"width {cell['width']}, seed {cell['seed']}",
                "network below its infinite-width kernel",
                *(f"{found[name]:.3f}" for name in _METHODS),
                f"{found['target before']:.2f} to {found['target after']:.2f}",
                "yes" if wins[-1] else "no",
            )
        )
    mean = {name: float(np.mean([found[name] for _, found in results])) for name in _METHODS}
    words = (
        f"The network has the smaller test error in {sum(wins)} of {len(wins)} runs: "
        f"{mean['network']:.3f} in the mean, against {mean['infinite width']:.3f} for infinite width, "
        f"{mean['kernel at the start']:.3f} for its kernel at the start and "
        f"{mean['kernel after training']:.3f} for its kernel after training. One teacher and one "
        "architecture; the network also saw held-out rows, the infinite kernel the test rows."
    )
    return Outcome(
        verdict="reproduced" if all(wins) else "not reproduced",
        words=words,
        columns=("run", "claimed", *_METHODS, "target alignment", "holds"),
        rows=tuple(rows),
    )


def draw(results: Results) -> Figure:
    """Draw the test errors of all runs."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    for i, name in enumerate(_METHODS):
        errors = [found[name] for _, found in results]
        ax.plot(np.full(len(errors), i), errors, "o", alpha=0.7)
    ax.set_xticks(range(len(_METHODS)), [name.replace(" ", "\n", 1) for name in _METHODS])
    ax.set(xlabel="method (a dot per run)", ylabel="test error", ylim=(0, None))
    return figure


EXPERIMENT = Experiment(
    id="ntk-versus-network",
    title="A finite network beats its own tangent kernels",
    source="Lecture course, slide on the tangent kernel and practice",
    published="Practical networks are not in the tangent-kernel regime, and finite networks beat their "
    "exact infinite-width kernels; no numbers are given.",
    rule="Reproduced if the network's test error is below that of ridge regression with the "
    "infinite-width kernel in every run, although the kernel's penalty is chosen on the test rows.",
    settings={
        "quick": {"widths": [100], "seeds": 3, "steps": 2000},
        "paper": {"widths": [30, 100, 300, 1000], "seeds": 5, "steps": 5000},
    },
    seconds={"quick": 13},
    power=Power(why="The rule is about every run."),
    remark="The order is reproduced; the source gives no level.",
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
