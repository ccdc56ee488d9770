"""What the experiments on networks with exits share: settings, training, means over seeds, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pindown.datasets.files import load_arrays
from pindown.datasets.public_data import ImageClasses, load_cifar10, load_mnist, small_digits
from pindown_reproduction.experiment import Cell, Power, Results, SourceData
from pindown_reproduction.relu_thesis._optimisers import data_folder

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
# Colour images of ten classes, an eighth of the source's network: what its effect is claimed for, in
# small.
DECISIVE: dict[str, Any] = {
    "data": "cifar10",
    "labels": 100,
    "pool": 100,
    "network": "cnn",
    "mirror": True,
    "epochs": 60,
    "batch": 64,
    "optimiser": "sgd",
    "rate": 0.1,
    "mu": 0.55,
    "test": 2000,
}
POWER = Power(
    why="Gains of a point or more show over three seeds, paired. On other data than the CIFAR images "
    "a gain "
    "can be seen, but not refuted.",
)
DATA = SourceData("CIFAR-100", ("cifar-100",), akin=("cifar",))
_TAU_STAR, _DECAY = 1.05, 1e-4
_CHANNELS, _HEAD = (8, 16, 16, 16), 16  # of the small network
_BORDER = 8  # images are moved by one part in so many: the source pads 32 pixels by 4
_HELD = 50  # images per class that the source keeps for validation
Table = Mapping[str, tuple[float, ...]]
# Top-5 accuracy in percent on CIFAR-100 with 150, 250, 350 and all 500 images per class, by exit.
# Phuong 2021, Table 6.2 (budget mode).
BUDGET = {
    150: {
        "exit-wise": (72.4, 75.5, 77.4, 78.4, 79.2, 79.8, 80.1, 80.3, 80.3, 80.4, 80.3),
        "distillation": (78.7, 80.5, 80.9, 81.2, 81.2, 81.2, 81.1, 81.1, 81.1, 81.1, 81.1),
        "semi-supervised": (79.9, 81.1, 81.0, 81.0, 81.0, 81.0, 81.0, 81.0, 81.0, 81.0, 81.0),
    },
    250: {
        "exit-wise": (80.6, 83.4, 84.9, 86.0, 86.8, 87.4, 87.6, 87.9, 88.0, 88.0, 87.9),
        "distillation": (85.6, 87.5, 88.4, 88.6, 88.8, 88.8, 88.8, 88.8, 88.8, 88.8, 88.8),
        "semi-supervised": (86.5, 88.2, 88.5, 88.7, 88.7, 88.7, 88.7, 88.7, 88.7, 88.7, 88.7),
    },
    350: {
        "exit-wise": (84.5, 87.2, 88.8, 89.6, 90.1, 90.5, 90.7, 90.8, 90.8, 90.8, 90.8),
        "distillation": (88.1, 90.1, 91.1, 91.3, 91.4, 91.5, 91.5, 91.5, 91.5, 91.5, 91.5),
        "semi-supervised": (88.5, 90.4, 91.2, 91.5, 91.5, 91.5, 91.5, 91.5, 91.5, 91.5, 91.5),
    },
    500: {
        "exit-wise": (87.5, 89.8, 91.2, 91.8, 92.3, 92.6, 92.9, 93.0, 93.1, 93.1, 93.1),
        "distillation": (90.0, 92.0, 92.9, 93.1, 93.1, 93.1, 93.1, 93.1, 93.1, 93.1, 93.1),
    },
}
# The same on ImageNet with 100 images per class and with all. Phuong 2021, Table 6.1.
IMAGENET = {
    "100": {"exit-wise": (64.4, 67.1, 68.1, 68.2, 68.1), "distillation": (68.1, 69.2, 69.3, 69.3, 69.3)},
    "300": {"exit-wise": (79.5, 82.1, 83.0, 83.1, 83.3), "distillation": (82.3, 83.9, 84.2, 84.2, 84.2)},
    "500": {"exit-wise": (83.4, 86.3, 87.3, 87.5, 87.8), "distillation": (85.6, 87.3, 87.7, 87.7, 87.7)},
    "full": {
        "exit-wise": (87.8, 90.4, 91.5, 91.8, 92.3),
        "distillation": (88.8, 90.7, 91.3, 91.5, 91.7),
    },
}


def make_network(kind: str, in_channels: int, n_classes: int, seed: int) -> Any:
    """Return an untrained network: the source's, or eight convolutions with four exits."""
    from pindown.learn.multi_exit.networks import MSDNet, multi_exit_cnn, seeded

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

    from pindown.learn.multi_exit.self_distillation import MultiExitDistiller
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

    figure = Figure()
    draw_curves(figure.add_subplot(), results, key, groups)
    return figure


def draw_curves(ax: Axes, results: Results, key: str, groups: Sequence[Mapping[str, Any]]) -> None:
    """Draw mean accuracies against the exit, a line for each group of cells."""
    for group in groups:
        values = seeds_of(results, key, **group)
        if len(values):
            exits = np.arange(1, values.shape[1] + 1)
            label = ", ".join(_in_words(key, value) for key, value in group.items())
            half = np.nan_to_num(half_width(values))
            ax.errorbar(
                exits, values.mean(axis=0), half, marker="o", markersize=3, capsize=2, label=label
            )
    ax.set_xlabel("exit")
    ax.set_ylabel("test accuracy, %")


def cells_by(settings: Mapping[str, Any], variants: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """Return one cell per seed and variant; seeds outermost, so that the first cells can be compared."""
    aside = ("seeds", "first_seed", "variants")
    common = {name: value for name, value in settings.items() if name not in aside}
    first = settings.get("first_seed", 0)
    seeds = range(first, first + settings["seeds"])
    return [{**common, **variant, "seed": seed} for seed in seeds for variant in variants]


@dataclass(frozen=True, eq=False)
class FewLabels:
    """A data set with few labels.

    Attributes:
        name: Which.
        labelled: Images, (n, channels, side, side), channels scaled by the labelled ones.
        labels: Their classes.
        pool: Images without labels.
        held: Images for validation, with labels ``held_labels``.
        test: Test images, with labels ``test_labels``.
        black: What black is after scaling, (1, channels, 1, 1).
    """

    name: str
    labelled: Any
    labels: Any
    pool: Any
    held: Any
    held_labels: NDArray[np.int64]
    test: Any
    test_labels: NDArray[np.int64]
    black: Any


def few_labels(cell: Mapping[str, Any]) -> FewLabels:
    """Draw labelled, unlabelled, validation and test images, by the cell's seed."""
    import torch

    source = _images(cell["data"])
    rng = np.random.default_rng([7, cell["seed"]])
    y = source.train_labels
    groups = [rng.permutation(np.flatnonzero(y == k)) for k in np.unique(y)]
    least = min(map(len, groups))
    held = min(_HELD, least // 4)
    n = min(cell["labels"], least - held)
    parts = [(0, n), (n, n + held), (n + held, n + held + cell["pool"])]
    rows, held_rows, pool_rows = (np.concatenate([own[a:b] for own in groups]) for a, b in parts)
    test_rows = np.random.default_rng(0).permutation(len(source.test))[: cell["test"]]
    images = {
        name: _tensor(source.train[r]) for name, r in (("x", rows), ("h", held_rows), ("p", pool_rows))
    }
    centre = images["x"].mean((0, 2, 3), keepdim=True)
    scale = images["x"].std((0, 2, 3), keepdim=True)
    scaled = {name: (part - centre) / scale for name, part in images.items()}
    return FewLabels(
        source.name,
        scaled["x"],
        torch.from_numpy(y[rows]),
        scaled["p"],
        scaled["h"],
        y[held_rows],
        (_tensor(source.test[test_rows]) - centre) / scale,
        source.test_labels[test_rows],
        -centre / scale,
    )


@lru_cache(maxsize=1)
def _images(which: str) -> ImageClasses:
    folder = data_folder()
    if which == "cifar10":
        return load_cifar10(folder)
    if which == "cifar100":
        if folder is None or not (files := sorted((folder / "cifar100").glob("*.npz"))):
            raise FileNotFoundError(
                "the paper scale needs cifar100/*.npz with x_train, y_train, x_test and y_test in the "
                "folder that PINDOWN_DATA names."
            )
        found = load_arrays(files[0], ["x_train", "y_train", "x_test", "y_test"])
        labels = (found[name].astype(np.int64) for name in ("y_train", "y_test"))
        return ImageClasses("CIFAR-100", found["x_train"], found["x_test"], *labels)
    if folder is None or not (folder / "mnist").is_dir():
        return small_digits()
    whole = load_mnist(folder)
    train, test = (_halved(part) for part in (whole.train, whole.test))
    return ImageClasses("MNIST, 14 x 14", train, test, whole.train_labels, whole.test_labels)


def _halved(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    n, height, width = images.shape
    blocks = images.reshape(n, height // 2, 2, width // 2, 2)
    return np.asarray(np.round(blocks.mean(axis=(2, 4))), dtype=np.uint8)


def _tensor(images: NDArray[np.uint8]) -> Any:
    import torch

    values = images if images.ndim == 4 else images[..., None]
    return torch.from_numpy(values.astype(np.float32) / 255).permute(0, 3, 1, 2).contiguous()


def published_gains(table: Table, loss: str = "distillation") -> tuple[float, ...]:
    """Return what a loss gains over exit-wise training, in points by exit, to the digits printed.

    >>> published_gains(BUDGET[500])[-3:], published_gains(IMAGENET["full"])[0]
    ((0.0, 0.0, 0.0), 1.0)
    """
    return tuple(round(a - b, 1) for a, b in zip(table[loss], table["exit-wise"], strict=True))


def _in_words(key: str, value: Any) -> str:
    if key != "temperature":
        return str(value)
    return "temperature rises" if value is None else f"temperature {value:g}"
