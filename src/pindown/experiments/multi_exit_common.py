"""What the experiments on networks with exits share: settings, training, means over seeds, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pindown.experiments.declaration import Cell, Results
from pindown.experiments.multi_exit_data import FewLabels, few_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pindown.learn.multi_exit.training import History

LOSSES = ("exit-wise", "distillation", "semi-supervised")
QUICK: dict[str, Any] = {
    "data": "quick",
    "first_seed": 10,  # settings were chosen on seeds from 100; these were run once
    "labels": 20,
    "pool": 100,
    "network": "cnn",
    "mirror": False,
    "epochs": 300,
    "batch": 64,
    "optimiser": "sgd",
    "rate": 0.1,
    "mu": 0.55,
    "test": 2000,
}
PAPER: dict[str, Any] = {
    "data": "cifar100",
    "labels": 100,  # 150 per class, of which 50 are for validation
    "pool": 350,
    "network": "msdnet",
    "mirror": True,
    "epochs": 300,
    "batch": 64,
    "optimiser": "sgd",
    "rate": 0.5,
    "mu": 0.5,
    "test": 10_000,
}
_TAU_STAR, _DECAY = 1.05, 1e-4
_CHANNELS, _HEAD = (8, 16, 16, 16), 16  # of the small network
_BORDER = 8  # images are moved by one part in so many: the source pads 32 pixels by 4


def make_network(kind: str, in_channels: int, n_classes: int, seed: int) -> Any:
    """Return an untrained network: the source's, or eight convolutions with four exits."""
    from pindown.learn.multi_exit.msdnet import MSDNet
    from pindown.learn.multi_exit.networks import multi_exit_cnn, seeded

    if kind == "msdnet":
        return seeded(lambda: MSDNet.cifar(n_classes), seed)

    return seeded(
        lambda: multi_exit_cnn(in_channels, n_classes, channels=_CHANNELS, head_channels=_HEAD), seed
    )


def trained(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Train one network; return the accuracies of its exits and of ensembles of the first ones.

    Args:
        cell: Settings such as ``QUICK``, with ``loss``, ``seed`` and, if they are not the usual ones,
            ``teachers`` and ``temperature``.
    """
    return _trained(tuple(sorted(_essential(cell).items())))


def _essential(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that make a difference: experiments look at the same networks.

    >>> _essential({"loss": "exit-wise", "teachers": "later"}) == _essential({"loss": "exit-wise"})
    True
    """
    usual = {"teachers": "last", "temperature": None}
    if cell["loss"] == "exit-wise":
        return {name: value for name, value in cell.items() if name not in usual}
    return {name: value for name, value in cell.items() if name not in usual or value != usual[name]}


def fit_network(cell: Mapping[str, Any]) -> tuple[Any, FewLabels, History]:
    """Train the network of a cell; return it with its data and what happened."""
    import torch

    from pindown.learn.multi_exit.distiller import MultiExitDistiller
    from pindown.learn.multi_exit.training import crop_and_flip, make_optimiser, train

    torch.set_num_threads(1)
    data = few_labels(cell)
    n_classes = int(data.labels.max()) + 1
    moves = {"border": max(1, round(data.labelled.shape[-1] / _BORDER)), "fill": data.black}
    model = make_network(cell["network"], data.labelled.shape[1], n_classes, cell["seed"])
    distiller = MultiExitDistiller(
        model,
        "none" if cell["loss"] == "exit-wise" else cell.get("teachers", "last"),
        mu=cell["mu"],
        tau_star=_TAU_STAR,
        temperature=cell.get("temperature"),
    )
    history = train(
        model,
        distiller,
        make_optimiser(cell["optimiser"], model, cell["rate"], _DECAY),
        data.labelled,
        data.labels,
        unlabelled=data.pool if cell["loss"] == "semi-supervised" else None,
        epochs=range(cell["epochs"]),
        n_epochs=cell["epochs"],
        batch_size=cell["batch"],
        generator=torch.Generator().manual_seed(cell["seed"]),
        augment=partial(crop_and_flip, mirror=cell["mirror"], **moves),
    )
    return model, data, history


@lru_cache(maxsize=64)
def _trained(settings: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    model, data, history = fit_network(dict(settings))
    top = 5 if int(data.labels.max()) >= 99 else 1
    exits, ensembles = accuracies(model, data.test, data.test_labels, top)
    held, _ = accuracies(model, data.held, data.held_labels, top)
    return {
        "data": data.name,
        "exits": exits,
        "ensembles": ensembles,
        "held": held,
        "temperature": history.temperature,
        "confidence": [None if np.isnan(c) else c for c in history.confidence],
    }


def accuracies(model: Any, x: Any, y: NDArray[np.int64], top: int) -> tuple[list[float], list[float]]:
    """Return the accuracies, in percent, of all exits and of the means of the first m."""
    import torch

    with torch.inference_mode():
        parts = [torch.stack(model(part)).softmax(dim=2) for part in torch.split(x, 500)]
    P = torch.cat(parts, dim=1)
    means = P.cumsum(dim=0) / torch.arange(1, len(P) + 1)[:, None, None]
    labels = torch.from_numpy(y)[None, :, None]

    def right(scores: Any) -> list[float]:
        hits = (scores.topk(top, dim=2).indices == labels).any(dim=2)
        return [float(v) for v in (100 * hits.double().mean(dim=1)).tolist()]

    return right(P), right(means)


def seeds_of(results: Results, key: str, **wanted: Any) -> NDArray[np.float64]:
    """Return a list-valued result of all cells with these settings, (seeds, entries), in seed order."""
    chosen = [
        (cell["seed"], result[key])
        for cell, result in results
        if all(cell.get(name) == value for name, value in wanted.items())
    ]
    return np.array([values for _, values in sorted(chosen, key=lambda pair: pair[0])], dtype=float)


def half_width(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return half of the 95 % interval of the mean over the first axis, by Student's t; nan for one."""
    from scipy.stats import t

    n = len(differences)
    if n < 2:
        return np.full(differences.shape[1:], np.nan)
    return np.asarray(t.ppf(0.975, n - 1) * differences.std(axis=0, ddof=1) / np.sqrt(n))


def early(n_exits: int) -> slice:
    """Return the first half of the exits, which the claims are about."""
    return slice(0, max(1, n_exits // 2))


def shown(mean: float, half: float) -> str:
    """Return a mean with its half-width.

    >>> shown(1.234, 0.5), shown(-2.0, float("nan"))
    ('+1.23 ± 0.50', '-2.00')
    """
    return f"{mean:+.2f}" + ("" if np.isnan(half) else f" ± {half:.2f}")


def curves_figure(results: Results, key: str, groups: Sequence[Mapping[str, Any]]) -> Figure:
    """Return a figure of accuracies against the exit."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.8, 3.4), layout="constrained")
    draw_curves(figure.add_subplot(), results, key, groups)
    return figure


def draw_curves(ax: Axes, results: Results, key: str, groups: Sequence[Mapping[str, Any]]) -> None:
    """Draw mean accuracies against the exit, a line for each group of cells."""
    for group in groups:
        values = seeds_of(results, key, **group)
        if len(values):
            exits = np.arange(1, values.shape[1] + 1)
            label = ", ".join(str(v) for v in group.values())
            half = np.nan_to_num(half_width(values))
            ax.errorbar(
                exits, values.mean(axis=0), half, marker="o", markersize=3, capsize=2, label=label
            )
    ax.set_xlabel("exit")
    ax.set_ylabel("test accuracy, %")
    ax.legend(fontsize=7, frameon=False)


def cells_by(settings: Mapping[str, Any], variants: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """Return one cell per seed and variant; seeds outermost, so that the first cells can be compared."""
    aside = ("seeds", "first_seed", "variants")
    common = {name: value for name, value in settings.items() if name not in aside}
    first = settings.get("first_seed", 0)
    seeds = range(first, first + settings["seeds"])
    return [{**common, **variant, "seed": seed} for seed in seeds for variant in variants]
