r"""Digits shown in all rotations: the network becomes nearly invariant, its filters nearly orbits.

A network with one hidden layer is trained on digits, once as they are and once in all 36 rotations by
multiples of ten degrees, with as many steps. Measured on test digits: how much the logits change under
rotation, relative to their distance between digits, and how far the filters are from whole orbits.

Lecture course, slides on augmentation (a figure of weights without numbers).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results, SourceData
from pindown_reproduction.figures import panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TURNS = 36
_HALF = 0.5  # the error with augmentation is to be below this share of the error without
_BATCH, _RATE = 128, 2e-3
_SHOWN = 16  # filters in the figure
_MEASURED = 200  # test digits that are turned
_TRAININGS = ("plain", "rotated")


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """Return one cell per seed; each trains both networks."""
    shared = {name: settings[name] for name in ("data", "train", "width", "steps")}
    return [{**shared, "seed": seed} for seed in range(settings["seeds"])]


def run(cell: Cell) -> dict[str, Any]:
    """Train with and without rotations, and measure both networks."""
    from pindown.symmetry.actions import flattened, image_turns
    from pindown.symmetry.augmentation import orbit_deviation
    from pindown.symmetry.measure.errors import invariance

    X, y, X_test, y_test, name = _digits(cell["data"], cell["train"], cell["seed"])
    turns, rows = image_turns(_TURNS), flattened(image_turns(_TURNS), X.shape[1:])
    found: dict[str, Any] = {"data": name, "side": X.shape[-1]}
    start = _network(X.shape[-1], cell["width"], cell["seed"])
    found["untrained"] = {"closure": orbit_deviation(_filters(start), rows, "mean")}
    for training in _TRAININGS:
        net = _network(X.shape[-1], cell["width"], cell["seed"])
        _train(net, X, y, turns if training == "rotated" else None, cell["steps"], cell["seed"])
        shown = invariance(net, turns, X_test[:_MEASURED], copies=3, seed=cell["seed"])
        filters = _filters(net)
        found[training] = {
            "error": shown.error / shown.spread,
            "fresh": float(np.mean(shown.untrained)) if shown.untrained else None,
            "closure": orbit_deviation(filters, rows, "mean"),
            "accuracy": _accuracy(net, X_test, y_test),
            "accuracy turned": float(
                np.mean([_accuracy(net, turns.act(k, X_test), y_test) for k in range(0, _TURNS, 5)])
            ),
            "filters": filters[np.argsort(-np.linalg.norm(filters, axis=1))[:_SHOWN]].round(3).tolist(),
        }
    return found


def _digits(
    data: str, n: int, seed: int
) -> tuple[Array, NDArray[np.int64], Array, NDArray[np.int64], str]:
    """Return training and test digits in [0, 1], and which they are."""
    from pindown.datasets.public_data import has_data

    rng = np.random.default_rng(seed)
    if data == "mnist" and has_data("mnist"):
        from pindown.datasets.public_data import load_mnist

        digits = load_mnist()
        chosen = rng.permutation(len(digits.train))[:n]
        return (
            digits.train[chosen] / 255.0,
            digits.train_labels[chosen],
            digits.test[:2000] / 255.0,
            digits.test_labels[:2000],
            "MNIST",
        )
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(X))
    images, labels = X[order].reshape(-1, 8, 8) / 16.0, y[order].astype(np.int64)
    n = min(n, 1400)
    return images[:n], labels[:n], images[n:], labels[n:], "digits of scikit-learn"


def _network(side: int, width: int, seed: int) -> Any:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Flatten(),
            torch.nn.Linear(side * side, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, 10),
        )


def _train(net: Any, X: Array, y: NDArray[np.int64], turns: Any | None, steps: int, seed: int) -> None:
    """Take as many steps of Adam with as without rotations; with them every turn is seen alike often."""
    import torch

    rng = np.random.default_rng([seed, 1])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the arrays are small
    optimiser = torch.optim.Adam(net.parameters(), lr=_RATE)
    labels = torch.as_tensor(y)
    for step in range(steps):
        rows = rng.integers(len(X), size=_BATCH)
        # Each batch is of one turn: over 36 steps all are seen, neighbours not in a row.
        images = X[rows] if turns is None else turns.act(7 * step % turns.order, X[rows])
        batch = torch.as_tensor(images, dtype=torch.float32)
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(net(batch), labels[rows]).backward()
        optimiser.step()
    torch.set_num_threads(threads)


def _filters(net: Any) -> Array:
    return np.asarray(net[1].weight.detach().double().numpy())


def _accuracy(net: Any, X: Array, y: NDArray[np.int64]) -> float:
    from pindown.symmetry.measure.models import as_function

    return float((as_function(net)(X).argmax(axis=1) == y).mean())


def compare(results: Results) -> Outcome:
    """Decide by the ratio of errors and by the distance of filters from orbits, seed by seed."""
    rows: list[tuple[Any, ...]] = []
    halved, closer = [], []
    for cell, found in results:
        plain, rotated = (found[name] for name in _TRAININGS)
        halved.append(rotated["error"] < _HALF * plain["error"])
        closer.append(rotated["closure"] < plain["closure"])
        for name in _TRAININGS:
            rows.append(
                (
                    f"{found['data']}, seed {cell['seed']}, {name}",
                    f"{found[name]['error']:.3f}",
                    f"{found[name]['closure']:.3f}",
                    f"{found[name]['accuracy']:.1%}",
                    f"{found[name]['accuracy turned']:.1%}",
                )
            )
    ratios = [found["rotated"]["error"] / found["plain"]["error"] for _, found in results]
    words = (
        f"Rotations in training leave {min(ratios):.2f} to {max(ratios):.2f} of the change under "
        f"rotation, below half in {sum(halved)} of {len(halved)} runs; the filters are closer to whole "
        f"orbits in {sum(closer)}."
    )
    return Outcome(
        verdict="reproduced" if all(halved) and all(closer) else "not reproduced",
        words=words,
        columns=("training", "change of logits", "filters from orbits", "accuracy", "accuracy, turned"),
        rows=tuple(rows),
    )


def draw(results: Results) -> Figure:
    """Draw filters of the first run, without and with rotations."""
    _, found = results[0]
    figure, axes = panels(len(_TRAININGS))
    for ax, name in zip(axes, _TRAININGS, strict=True):
        filters = _side_by_side(found[name]["filters"], found["side"])
        ax.imshow(filters, cmap="RdBu_r", vmin=-1, vmax=1)
        ax.set(title=name, xlabel=f"16 filters; change of logits {found[name]['error']:.2f}")
        ax.set(xticks=[], yticks=[])
    return figure


def _side_by_side(filters: Any, side: int) -> Any:
    """Return the first 16 filters as one image, each scaled by its largest weight."""
    image = np.full((4 * (side + 1) - 1, 4 * (side + 1) - 1), np.nan)
    for i, weights in enumerate(filters[:16]):
        top, left = (side + 1) * (i // 4), (side + 1) * (i % 4)
        scaled = np.array(weights) / (float(np.abs(weights).max()) or 1.0)
        image[top : top + side, left : left + side] = scaled.reshape(side, side)
    return image


EXPERIMENT = Experiment(
    id="rotated-digits",
    title="Digits in all rotations make weights that rotate",
    source="Lecture course, slides on augmentation (figure of learned weights)",
    published="The learned weights reflect the symmetries of the augmentation; the network is to become "
    "invariant. No numbers.",
    rule="Reproduced if, in every run, the change of the logits under rotation, relative to their "
    "distance between digits, is below half of that of the network trained without rotations, and the "
    "filters are closer to whole orbits.",
    settings={
        "quick": {"data": "digits", "train": 1200, "width": 100, "steps": 1500, "seeds": 3},
        "decisive": {"data": "mnist", "train": 5000, "width": 100, "steps": 3000, "seeds": 3},
        "paper": {"data": "mnist", "train": 20000, "width": 200, "steps": 15000, "seeds": 5},
    },
    seconds={"quick": 19, "decisive": 200},
    power=Power(why="The rule is about every run."),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
    data=SourceData("MNIST", ("mnist",)),
)
