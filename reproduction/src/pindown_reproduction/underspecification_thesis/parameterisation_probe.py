r"""Does training prefer functions that many weights can descend to? And does redundancy help it?

First probe: width-4 networks on four orthogonally separable points of the plane, from many small random
starts. An end is named by which classes its surviving neurons serve. For each name three numbers: the
share of starts that end there (reachability), its share among random weights of like size that fit all
points that the name allows (volume), and the margin it attains. Second probe: steps of gradient descent
to a loss of 0.01 for the same linear functions with one to four factors, and with duplicated units.

Phuong 2021, chapter 7 (an open question; there is no published number).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.affine import Array
from pindown_reproduction.experiment import Cell, Experiment, Outcome, Results, stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_X = np.array([[1.0, 0.3], [0.2, 0.9], [-1.5, -0.25], [-0.4, -1.2]])
_Y = np.array([1.0, 1.0, -1.0, -1.0])
_NAMES = ("none", "positive only", "negative only", "both")
_GOAL, _LONGEST, _RATE = 1e-2, 20_000, 0.2
_STEP, _FAR = 0.2, 30.0  # of the flow: a share of the local curvature; where a loss is exp(-margin)
_ALIVE = 1e-2  # a group whose output stays below this serves nobody


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """Reachability for each width, then redundancy for each form."""
    reach = [
        {
            "probe": "reachability",
            "width": width,
            "starts": settings["starts"],
            "steps": settings["steps"],
        }
        for width in settings["widths"]
    ]
    forms = [
        {"probe": "redundancy", "depth": depth, "copies": copies, "seeds": settings["seeds"]}
        for depth, copies in settings["forms"]
    ]
    return [*reach, *forms]


def run(cell: Cell) -> dict[str, Any]:
    """Run one probe."""
    return _reachability(cell) if cell["probe"] == "reachability" else _redundancy(cell)


def _reachability(cell: Cell) -> dict[str, Any]:
    from pindown.bias.two_layer import TwoLayerLimit, balanced_neurons

    starts = [
        balanced_neurons(cell["width"], 2, scale=1e-2, random_state=seed + cell.get("seed", 0))
        for seed in range(cell["starts"])
    ]
    W, a = flows(
        np.array([start.W for start in starts]), np.array([start.a for start in starts]), cell["steps"]
    )
    outputs = _Y * np.einsum("snp,sp->sn", np.maximum(_X @ W.transpose(0, 2, 1), 0.0), a)
    classes = (outputs[:, :2].min(axis=1) > _ALIVE) + 2 * (outputs[:, 2:].min(axis=1) > _ALIVE)
    ends = np.bincount(classes, minlength=4)
    margin = outputs.min(axis=1) / ((W**2).sum(axis=(1, 2)) + (a**2).sum(axis=1))
    margins = [margin[classes == at] for at in range(4)]
    rng = np.random.default_rng(stream(cell, 0))
    volume = np.zeros(4)
    for _ in range(20 * cell["starts"]):  # random weights: which classes they fit, whatever the margin
        W, a = rng.standard_normal((cell["width"], 2)), rng.choice([-1.0, 1.0], cell["width"])
        outputs = _Y * (np.maximum(_X @ W.T, 0.0) @ (a * np.linalg.norm(W, axis=1)))
        volume[int(outputs[:2].min() > 0) + 2 * int(outputs[2:].min() > 0)] += 1
    return {
        "reachability": (ends / ends.sum()).tolist(),
        "volume": (volume / volume.sum()).tolist(),
        "margins": [float(np.mean(part)) if len(part) else None for part in margins],
        "promised": TwoLayerLimit.probability(cell["width"]),
    }


def flows(W: Array, a: Array, steps: int) -> tuple[Array, Array]:
    """Follow the gradient flow of many two-layer networks at once.

    Args:
        W: Their input weights (starts, width, 2).
        a: Their output weights (starts, width).
        steps: Steps, each as :func:`~pindown.bias.two_layer.train_two_layer` takes it.
    """
    squares = (_X**2).sum(axis=1)
    lengths = np.sqrt(squares)
    for _ in range(steps):
        values = _X @ W.transpose(0, 2, 1)  # (starts, points, width)
        active = values > 0
        values = np.where(active, values, 0.0)
        margins = _Y * np.einsum("snp,sp->sn", values, a)
        losses = np.where(
            margins > _FAR, -margins, np.log(np.logaddexp(0.0, -np.minimum(margins, _FAR)))
        )
        total = np.logaddexp.reduce(losses, axis=1, keepdims=True)
        shares = np.exp(-np.logaddexp(0.0, margins) - total)
        slopes = (values**2).sum(axis=2) + squares * np.einsum("snp,sp->sn", active, a**2)
        pace = _STEP / (shares * (slopes + lengths)).sum(axis=1)
        pull = _Y * shares
        W_part = np.einsum("snp,sn,nd->spd", active, pull, _X) * a[:, :, None]
        a_part = np.einsum("sn,snp->sp", pull, values)
        W, a = W + pace[:, None, None] * W_part, a + pace[:, None] * a_part
    return W, a


def _redundancy(cell: Cell) -> dict[str, Any]:
    """Return the steps that plain gradient descent takes to the goal, from the same first function."""
    steps = []
    for seed in range(cell["seeds"]):
        rng = np.random.default_rng(stream(cell, seed))
        X = rng.standard_normal((10, 3))
        y = np.where(X @ rng.standard_normal(3) > 0, 1.0, -1.0)
        steps.append(_steps_to_goal(y[:, None] * X, cell["depth"], cell["copies"]))
    return {"steps": steps, "median": float(np.median(steps))}


def _steps_to_goal(Z: Array, depth: int, copies: int) -> int:
    """Return the steps for factors times w, or copies: the same linear functions, other paths."""
    factors, w = np.ones(depth - 1), np.full((copies, Z.shape[1]), 1e-2 / copies)
    for k in range(_LONGEST):
        scale = float(factors.prod())
        margins = Z @ (scale * w.sum(axis=0))
        losses = np.logaddexp(0.0, -margins)
        if losses.mean() < _GOAL:
            return k
        slope = -(1.0 / (1.0 + np.exp(margins))) @ Z / len(Z)
        along = float(slope @ w.sum(axis=0))
        step = np.array([along * scale / f for f in factors])
        w = w - _RATE * scale * slope
        factors = factors - _RATE * step
    return _LONGEST


def compare(results: Results) -> Outcome:
    """Put reachability beside volume and margin, with rank correlations; steps beside redundancy."""
    from scipy.stats import spearmanr

    rows: list[tuple[Any, ...]] = []
    for cell, found in results:
        if cell["probe"] == "redundancy":
            form = f"depth {cell['depth']}, {cell['copies']} copies"
            rows.append((form, "steps to a loss of 0.01", f"{found['median']:.0f}", "", ""))
            continue
        rank = float(spearmanr(found["reachability"], found["volume"])[0])
        for i, name in enumerate(_NAMES):
            margin = found["margins"][i]
            rows.append(
                (
                    f"width {cell['width']}, fits {name}",
                    f"reached from {100 * found['reachability'][i]:.3g} % of starts",
                    f"volume {100 * found['volume'][i]:.3g} %",
                    "" if margin is None else f"margin {margin:.3g}",
                    f"rank correlation {rank:.2f}",
                )
            )
    last = next((pair for pair in reversed(results) if pair[0]["probe"] == "reachability"), None)
    words = "Steps beside redundancy; nothing was published."
    if last is not None:
        cell, found = last
        words = (
            f"With width {cell['width']}, {100 * found['reachability'][3]:.0f} % of {cell['starts']:,} "
            "starts end in the function that fits both classes, which "
            f"{100 * found['volume'][3]:.0f} % of random weights compute: reachability is not volume. "
            "Nothing was published."
        )
    return Outcome(
        "no published number",
        words,
        ("what", "measured", "volume or steps", "margin", "correlation"),
        tuple(rows),
    )


def draw(results: Results) -> Figure:
    """Draw reachability over volume, and steps over the number of factors."""
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    for cell, found in results:
        if cell["probe"] == "reachability":
            left.plot(found["volume"], found["reachability"], "o", label=f"width {cell['width']}")
        else:
            mark, label = ("o", "a product") if cell["copies"] == 1 else ("s", "duplicated units")
            right.plot(cell["depth"], found["median"], mark, color="C0", label=label)
    left.plot([0, 1], [0, 1], "--", color="#7F7F7F", linewidth=1)
    left.set(xlabel="volume", ylabel="reachability")
    right.set(xlabel="factors", ylabel="steps to a loss of 0.01", yscale="log")
    return figure


EXPERIMENT = Experiment(
    id="parameterisation-probe",
    title="Reachability of functions, and the use of redundancy",
    source="Phuong 2021, chapter 7",
    published="An open question: training may prefer functions that many starting points can descend "
    "to, and redundant parameters may help it. No numbers are given.",
    rule="None: nothing was published. Reachability, volume and margin are listed with their rank "
    "correlation.",
    settings={
        "quick": {
            "widths": [2, 4],
            "starts": 40,
            "steps": 400,
            "forms": [[1, 1], [2, 1], [3, 1], [1, 4]],
            "seeds": 3,
        },
        "paper": {
            "widths": [2, 3, 4],
            "starts": 2000,
            "steps": 4000,
            "forms": [[1, 1], [2, 1], [3, 1], [4, 1], [1, 2], [1, 4]],
            "seeds": 20,
        },
    },
    seconds={"quick": 1.5, "paper": 45.0},
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
