"""Training runs that are compared: settings of an optimiser, the search for its step size."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pindown.datasets.files import load_arrays
from pindown.datasets.public_data import read_idx
from pindown_reproduction.experiment import Outcome, Power, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# The grids of the source.
STEP_SIZES = {
    "NAG": (3e-3, 1e-3, 3e-4, 1e-4, 3e-5),
    "RMSProp": (3e-4, 1e-4, 3e-5, 1e-5, 3e-6),
    "ADAM": (3e-4, 1e-4, 3e-5, 1e-5, 3e-6),
}
# For runs of a few hundred iterations, which need larger steps.
QUICK_STEPS = {
    "NAG": (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5),
    "adaptive": (1e-2, 3e-3, 1e-3, 3e-4, 1e-4),
}
DECISIVE_STEPS = {
    "NAG": (1e-2, 3e-3, 1e-3, 3e-4),
    "adaptive": (1e-2, 3e-3, 1e-3, 3e-4),
}
# What is compared: the name, the method, and its momentum (for RMSProp, the decay of its average).
CONTENDERS = {
    "NAG 0.9": ("NAG", 0.9),
    "NAG 0.99": ("NAG", 0.99),
    "RMSProp 0.9": ("RMSProp", 0.9),
    "RMSProp 0.99": ("RMSProp", 0.99),
    "ADAM 0.9": ("ADAM", 0.9),
    "ADAM 0.99": ("ADAM", 0.99),
}
SHIFTS = {"RMSProp": 1e-10, "ADAM": 1e-8}
_CURVE = 25  # points of a recorded curve
_EXPLODED = 1e3  # times the first loss: such a run is given up
VARIABLE = "PINDOWN_DATA"
# TensorFlow's reader, which the source used, keeps the first images for validation: 55,000 remain.
VALIDATION = 5_000
CROPPED = 22
VGG_CHANNELS = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0)  # 0 halves the image
VGG_HIDDEN = 256
Run: TypeAlias = Mapping[str, Any]
MEASURES = {
    "train": "loss on the training set",
    "test": "loss on the test set",
    "gradient": "gradient norm",
}
_COLOURS = dict(zip(CONTENDERS, ("C7", "C0", "C4", "C6", "C3", "C1"), strict=True))


def make_optimiser(
    contender: str, parameters: Any, lr: float, *, shift: float | None = None, **more: Any
) -> Any:
    """Return the optimiser with the settings of the source."""
    from pindown.optim import NAG, Adam, RMSProp

    method, momentum = CONTENDERS[contender]
    if method == "NAG":
        return NAG(parameters, lr, momentum, **more)
    shift = SHIFTS[method] if shift is None else shift
    if method == "RMSProp":
        return RMSProp(parameters, lr, momentum, shift, **more)
    return Adam(parameters, lr, (momentum, 0.999), shift, **more)


def step_sizes(contender: str, settings: Mapping[str, Any]) -> list[float]:
    """Return the step sizes to try: those of the settings, else the source's with two more at each end.

    The source extends its grid while the best step size is at an end. With a grid that is wide enough
    from the start, all runs are independent of each other.

    >>> step_sizes("NAG 0.9", {})
    [3e-06, 1e-05, 3e-05, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03]
    """
    method = CONTENDERS[contender][0]
    if "step_sizes" in settings:
        return list(settings["step_sizes"]["NAG" if method == "NAG" else "adaptive"])
    grid = sorted(STEP_SIZES[method])
    below, above = [_neighbour(grid[0], -i) for i in (2, 1)], [_neighbour(grid[-1], i) for i in (1, 2)]
    return [*below, *grid, *above]


def _neighbour(lr: float, way: int) -> float:
    """Return a later one of ..., 1e-3, 3e-3, 1e-2, 3e-2, ..., or an earlier one."""
    place = round(2 * math.log10(lr)) + way
    return float(f"{'1' if place % 2 == 0 else '3'}e{place // 2}")


def autoencoder_run(
    contender: str,
    lr: float,
    cell: Mapping[str, Any],
    *,
    shift: float | None = None,
    watch: Callable[[int, Any, Any], None] | None = None,
) -> dict[str, Any]:
    """Train a tied autoencoder and measure it.

    Args:
        contender: A key of ``CONTENDERS``.
        lr: Step size.
        cell: ``hidden_layers``, ``width``, ``train``, ``test``, ``side``, ``iterations``, ``batch``
            (None for all images at once) and ``seed``.
        shift: Shift of RMSProp or ADAM, if not the usual one.
        watch: Called with the iteration, the model and the training images, at each point of the curve.

    Returns:
        Losses (mean over images of the squared distance), the norm of the gradient over all training
        images, and the curve of these; nan if the run exploded.
    """
    import torch

    torch.set_num_threads(1)
    images = digit_images(cell["train"], cell["test"], cell["side"])
    X, X_test = (torch.from_numpy(part.reshape(len(part), -1)) for part in (images.train, images.test))
    model = TiedAutoencoder(X.shape[1], cell["width"], cell["hidden_layers"], cell["seed"])
    optimiser = make_optimiser(contender, model.parameters(), lr, shift=shift)
    batches = _batches(len(X), cell["batch"], cell["seed"])
    marks = set(np.unique(np.geomspace(1, cell["iterations"], _CURVE).astype(int)).tolist())
    curve, first = [], reconstruction_loss(model, X).item()
    for iteration in range(1, cell["iterations"] + 1):
        rows = batches()
        optimiser.zero_grad()
        loss = reconstruction_loss(model, X if rows is None else X[rows])
        loss.backward()
        optimiser.step()
        if not loss.item() < _EXPLODED * first:
            return {
                "data": images.name,
                "train": math.nan,
                "test": math.nan,
                "gradient": math.nan,
                "curve": [],
            }
        if iteration in marks:
            curve.append([iteration, *_measures(model, X, X_test)])
            if watch is not None:
                watch(iteration, model, X)
    _, train, test, gradient = curve[-1]
    return {"data": images.name, "train": train, "test": test, "gradient": gradient, "curve": curve}


def reconstruction_loss(model: Any, X: Any) -> Any:
    """Return the mean squared distance between images and their reconstructions."""
    return ((model(X) - X) ** 2).sum(dim=1).mean()


def _measures(model: Any, X: Any, X_test: Any) -> tuple[float, float, float]:
    import torch

    model.zero_grad()
    loss = reconstruction_loss(model, X)
    grads = torch.autograd.grad(loss, list(model.parameters()))
    with torch.no_grad():
        test = reconstruction_loss(model, X_test).item()
    return loss.item(), test, math.sqrt(sum(float((g**2).sum()) for g in grads))


def _batches(n: int, size: int | None, seed: int) -> Callable[[], Any]:
    """Return a function that gives the rows of the next batch: a new order in every epoch."""
    import torch

    if size is None:
        return lambda: None
    rng, order = np.random.default_rng(seed), np.array([], dtype=np.int64)

    def rows() -> Any:
        nonlocal order
        if len(order) < size:
            order = rng.permutation(n)
        chosen, order = order[:size], order[size:]
        return torch.from_numpy(chosen)

    return rows


@dataclass(frozen=True)
class Images:
    """Training and test images with values in [0, 1].

    Attributes:
        name: Where they are from.
        train: Shape (n, side, side) or (n, 3, side, side).
        test: Shape alike.
        labels: Labels of both, or None where there is no use for them.
    """

    name: str
    train: NDArray[np.float32]
    test: NDArray[np.float32]
    labels: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None


def data_folder() -> Path | None:
    """Return the folder that ``PINDOWN_DATA`` names, if there is one."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named and Path(named).is_dir() else None


def digit_images(n_train: int, n_test: int, side: int = CROPPED) -> Images:
    """Return digits: MNIST cropped to 22 x 22 or resized, or the digits of scikit-learn (8 x 8).

    Args:
        n_train: How many training images, from the first one.
        n_test: How many test images.
        side: 22 crops three pixels from each side; other sizes are resized by bilinear interpolation.
    """
    return _digits(data_folder(), n_train, n_test, side)


@lru_cache(maxsize=2)  # a search for step sizes trains on the same images many times
def _digits(folder: Path | None, n_train: int, n_test: int, side: int) -> Images:
    if folder is not None and (folder / "mnist").is_dir():
        train = read_idx(folder / "mnist" / "train-images-idx3-ubyte.gz")
        test = read_idx(folder / "mnist" / "t10k-images-idx3-ubyte.gz")
        train = train[VALIDATION : VALIDATION + n_train]
        return Images(f"MNIST, {side} x {side}", _fitted(train, side), _fitted(test[:n_test], side))
    from sklearn.datasets import load_digits

    X = (load_digits().images / 16).astype(np.float32)
    n_test = min(n_test, len(X) // 4)
    return Images("scikit-learn digits, 8 x 8", X[: min(n_train, len(X) - n_test)], X[len(X) - n_test :])


def colour_images(n_train: int, n_test: int) -> Images:
    """Return colour images 32 x 32 with labels: CIFAR-10, or digits of scikit-learn enlarged to that."""
    return _colours(data_folder(), n_train, n_test)


@lru_cache(maxsize=1)
def _colours(folder: Path | None, n_train: int, n_test: int) -> Images:
    files = sorted((folder / "cifar10").glob("*.npz")) if folder is not None else []
    if files:
        names = ("x_train", "y_train", "x_test", "y_test")
        found: dict[str, Any] = load_arrays(files[0], names)
        rng = np.random.default_rng(0)  # the file may be sorted by class
        parts = []
        for part, n in (("train", n_train), ("test", n_test)):
            chosen = rng.permutation(len(found[f"x_{part}"]))[:n]
            pixels = found[f"x_{part}"][chosen].astype(np.float32) / 255
            parts.append((pixels.transpose(0, 3, 1, 2), found[f"y_{part}"][chosen].astype(np.int64)))
        (X, y), (X_test, y_test) = parts
        return Images("CIFAR-10", X, X_test, (y, y_test))
    from sklearn.datasets import load_digits

    bunch = load_digits()
    large = np.kron(bunch.images / 16, np.ones((4, 4))).astype(np.float32)
    colour, labels = np.repeat(large[:, None], 3, axis=1), bunch.target.astype(np.int64)
    n_test = min(n_test, len(colour) // 4)
    n_train = min(n_train, len(colour) - n_test)
    ends = slice(0, n_train), slice(len(colour) - n_test, None)
    return Images(
        "scikit-learn digits, enlarged",
        colour[ends[0]],
        colour[ends[1]],
        (labels[ends[0]], labels[ends[1]]),
    )


def _fitted(images: NDArray[np.uint8], side: int) -> NDArray[np.float32]:
    scaled = images.astype(np.float32) / 255
    if side == CROPPED:
        return np.ascontiguousarray(scaled[:, 3:-3, 3:-3])
    import torch

    tensor = torch.from_numpy(scaled)[:, None]
    resized = torch.nn.functional.interpolate(tensor, size=(side, side), mode="bilinear")
    return np.asarray(resized[:, 0].numpy())


class TiedAutoencoder(nn.Module):  # type: ignore[misc]
    r"""An autoencoder whose decoder uses the transposed matrices of its encoder.

    .. math::
        a = s(W_\ell \cdots s(W_1 y + b_1) \cdots + b_\ell), \qquad
        \hat y = W_1^\top s(\cdots s(W_\ell^\top a + b_{\ell+1}) \cdots) + b_{2\ell},

    with s the ReLU: :math:`\ell` matrices, :math:`2 \ell` biases, :math:`2 \ell - 1` hidden layers.

    Args:
        inputs: Number of pixels.
        width: Units in every hidden layer.
        hidden_layers: 1, 3, 5, ...
        seed: Seed of the weights, uniform as Glorot and Bengio have them; biases start at zero.

    Example:
        >>> model = TiedAutoencoder(6, 4, hidden_layers=3)
        >>> [tuple(W.shape) for W in model.matrices], [b.numel() for b in model.biases]
        ([(4, 6), (4, 4)], [4, 4, 4, 6])

    Mukherjee 2020, section 1.3 and section 5.5.
    """

    def __init__(self, inputs: int, width: int, hidden_layers: int, seed: int = 0) -> None:
        super().__init__()
        if hidden_layers < 1 or hidden_layers % 2 == 0:
            raise ValueError(
                f"a tied autoencoder has 1, 3, 5, ... hidden layers; got {hidden_layers!r}."
            )
        count = (hidden_layers + 1) // 2
        source = torch.Generator().manual_seed(seed)
        sizes = [inputs] + [width] * count
        self.matrices = nn.ParameterList()
        for n_in, n_out in zip(sizes[:-1], sizes[1:], strict=True):  # noqa: RUF007 - as in the formula
            limit = (6 / (n_in + n_out)) ** 0.5
            self.matrices.append((2 * torch.rand(n_out, n_in, generator=source) - 1) * limit)
        widths = [*sizes[1:], *reversed(sizes[:-1])]
        self.biases = nn.ParameterList([torch.zeros(n) for n in widths])

    def forward(self, x: Tensor) -> Tensor:
        """Encode and decode rows."""
        linear = nn.functional.linear
        count = len(self.matrices)
        for i, W in enumerate(self.matrices):
            x = torch.relu(linear(x, W, self.biases[i]))
        for i, W in enumerate(reversed(list(self.matrices))):
            x = linear(x, W.t(), self.biases[count + i])
            if i < count - 1:
                x = torch.relu(x)
        return x


def vgg9(*, divisor: int = 1, seed: int = 0, channels: Sequence[int] = VGG_CHANNELS) -> nn.Sequential:
    """Return VGG-9 for images 3 x 32 x 32: seven convolutions and two linear layers.

    Batch normalisation and ReLU follow every convolution and the first linear layer.

    Args:
        divisor: Divides all widths, for quick runs.
        seed: Seed of the weights.
        channels: Output channels of the convolutions; 0 stands for pooling.

    Example:
        >>> with torch.no_grad():
        ...     vgg9(divisor=16).eval()(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    Mukherjee 2020, Table 5.6.1.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        n_in, side = 3, 32
        for wanted in channels:
            if wanted == 0:
                layers.append(nn.MaxPool2d(2))
                side //= 2
                continue
            n_out = max(1, wanted // divisor)
            layers += [nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU()]
            n_in = n_out
        hidden = max(1, VGG_HIDDEN // divisor)
        layers += [
            nn.Flatten(),
            nn.Linear(n_in * side * side, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
        ]
        return nn.Sequential(*layers, nn.Linear(hidden, 10))


@dataclass(frozen=True)
class Claim:
    """A sentence with what was measured.

    Attributes:
        words: What the source says.
        measured: The numbers that decide it.
        holds: Whether they agree.
    """

    words: str
    measured: str
    holds: bool


def contender_run(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Train an autoencoder as a cell says."""
    return autoencoder_run(cell["contender"], cell["lr"], cell)


def best_runs(results: Results, **wanted: Any) -> dict[str, Run]:
    """Return, for every contender, the means over seeds at the step size of the lowest training loss.

    Step sizes at which a seed exploded do not count; cells are those with the wanted settings.
    """
    runs: dict[tuple[str, float], list[Run]] = {}
    for cell, found in results:
        if all(cell[key] == value for key, value in wanted.items()):
            runs.setdefault((cell["contender"], cell["lr"]), []).append(found)
    best: dict[str, Run] = {}
    for (name, lr), found_here in runs.items():
        mean = _mean_run(found_here)
        if math.isfinite(mean["train"]) and not (name in best and best[name]["train"] <= mean["train"]):
            best[name] = {**mean, "lr": lr}
    return best


def _mean_run(runs: Sequence[Run]) -> Run:
    """Return the mean of what runs measured: numbers, and curves of the same points."""
    mean = dict(runs[0])
    for key, value in runs[0].items():
        if isinstance(value, int | float | list) and len(runs) > 1:
            shapes = {np.shape(run[key]) for run in runs}
            values = np.mean([run[key] for run in runs], axis=0) if len(shapes) == 1 else value
            mean[key] = values.tolist() if isinstance(values, np.ndarray) else values
    return mean


def untuned(results: Results) -> list[str]:
    """Return a reason why nothing can be said if a best step size is at an end of its grid."""
    shared = [key for key in ("hidden_layers", "width", "side", "shift") if key in results[0][0]]
    ends: list[str] = []
    for values in dict.fromkeys(tuple(cell[key] for key in shared) for cell, _ in results):
        wanted = dict(zip(shared, values, strict=True))
        mine = [pair for pair in results if all(pair[0][k] == v for k, v in wanted.items())]
        ends += at_the_end(mine, best_runs(mine))
    names = ", ".join(dict.fromkeys(ends))
    return [f"the best step size is at an end of the grid for {names}"] if ends else []


def autoencoder_power(**least: float) -> Power:
    """Return what comparisons of optimisers on autoencoders need."""
    return Power(
        least=least,
        why="ADAM's averages remember ten, a hundred and a thousand steps: five thousand iterations are "
        "five of the longest. A thousand images are more than a network of a hundred units can learn by "
        "heart in them, so that training and test loss are told apart. The source has 100,000 "
        "iterations.",
        unfit=untuned,
    )


def at_the_end(results: Results, best: Mapping[str, Run]) -> list[str]:
    """Return the contenders whose best step size is the largest or the smallest that was tried."""
    tried = {name: [cell["lr"] for cell, _ in results if cell["contender"] == name] for name in best}
    return [name for name, run in best.items() if run["lr"] in (min(tried[name]), max(tried[name]))]


def missing(best: Mapping[str, Run], needed: Iterable[str] = CONTENDERS) -> list[Claim]:
    """Return a claim that cannot be decided if contenders are missing, else nothing."""
    absent = [name for name in needed if name not in best]
    return [Claim("all contenders were run", f"missing: {', '.join(absent)}", False)] if absent else []


def autoencoder_setting(results: Results) -> str:
    """Return the data and the length of the runs, in words."""
    cell, first = results[0]
    batch = "full batches" if cell["batch"] is None else f"batches of {cell['batch']}"
    return f"{first['data']}, {cell['train']:,} images, {cell['iterations']:,} iterations with {batch}"


def least(found: Mapping[str, Run], measure: str) -> str:
    """Return who has the least of a measure."""
    return min(found, key=lambda name: found[name][measure])


def of(found: Mapping[str, Run], method: str, measure: str) -> float:
    """Return the best value of a method over its momenta."""
    return min(float(values[measure]) for name, values in found.items() if CONTENDERS[name][0] == method)


def settle(claims: Sequence[Claim], where: str, ends: Sequence[str] = ()) -> Outcome:
    """Return the outcome: reproduced if every claim holds.

    Args:
        claims: What was checked.
        where: The data and the setting, in words.
        ends: Who had the best step size at an end of the grid.
    """
    held = sum(claim.holds for claim in claims)
    failed = "; ".join(claim.words for claim in claims if not claim.holds)
    words = f"{held} of {len(claims)} published orderings hold on {where}."
    if failed:
        words += f" Not seen: {failed}."
    if ends:
        words += f" The best step size is at an end of the grid for {', '.join(ends)}."
    return Outcome(
        verdict="reproduced" if held == len(claims) else "not reproduced",
        words=words,
        columns=("published ordering", "measured", "holds"),
        rows=tuple((claim.words, claim.measured, "yes" if claim.holds else "no") for claim in claims),
    )


def shown(found: Mapping[str, Run], measure: str) -> str:
    """Return all values of a measure, best first.

    >>> shown({"NAG 0.9": {"test": 2.0}, "ADAM 0.9": {"test": 1.5}}, "test")
    'ADAM 0.9: 1.5, NAG 0.9: 2'
    """
    order = sorted(found, key=lambda name: found[name][measure])
    return ", ".join(f"{name}: {found[name][measure]:.3g}" for name in order)


def draw_curves(results: Results) -> Figure:
    """Draw training loss, test loss and gradient norm of the best runs on the first network."""
    from matplotlib.figure import Figure

    figure = Figure()
    panels = figure.subplots(1, 3)
    first = {key: results[0][0][key] for key in ("hidden_layers", "width", "side", "seed")}
    best = best_runs(results, **first)
    for i, (ax, name_of) in enumerate(zip(panels, MEASURES.values(), strict=True), 1):
        for name, run in best.items():
            t, values = [p[0] for p in run["curve"]], [p[i] for p in run["curve"]]
            ax.loglog(t, values, label=name, color=_COLOURS[name])
        ax.set(xlabel="iterations", ylabel=name_of)
    return figure
