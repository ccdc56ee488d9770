r"""Certificates that are not vacuous: PAC-Bayes with a trained prior on digits, tumours and MNIST.

Each cell certifies one network on one data set; a test part that nobody saw shows the risk. Without the
data, MNIST's cells take the digits of scikit-learn.

Perez-Ortiz et al. 2021, "Tighter risk certificates for neural networks".
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results, SourceData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The most that counts as reproduced, by data set; the published recipes take hours on a GPU.
_WANTED = {"mnist": 0.10, "binary mnist": 0.15, "digits": 0.15, "breast cancer": 0.15}
_PUBLISHED = {"mnist": "0.02 to 0.03, larger networks"}
_BELOW_FIVE = 5  # binary MNIST: is the digit below five?
_TEST_SHARE = 0.2
_MEASUREMENTS = 30  # features of breast cancer, in units of their own
_DIGITS_SCALE = 16.0


class _Data(NamedTuple):
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    fresh: NDArray[np.float64]
    labels: NDArray[np.int64]
    name: str


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per data set and seed."""
    return [
        {**task, **{key: settings[key] for key in ("delta", "draws")}, "seed": seed}
        for task in settings["tasks"]
        for seed in range(settings["seeds"])
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Certify one network and look at examples that nobody saw."""
    import torch

    from pindown.guarantees.certificate import certify

    data = _read(cell["data"], cell["n"])
    before, clock = time.process_time(), time.monotonic()
    found = certify(
        _network(data.X.shape[1], cell["hidden"], int(data.y.max()) + 1),
        data.X,
        data.y,
        cell["delta"],
        method="pac-bayes",
        prior_share=cell["share"],
        dropout=cell["dropout"],
        epochs=cell["epochs"],
        draws=cell["draws"],
        random_state=cell["seed"],
    )
    used = {"cpu_seconds": time.process_time() - before, "seconds": time.monotonic() - clock}
    assert found.posterior is not None and found.network is not None and found.test_set is not None
    with torch.no_grad():
        plain = found.network(torch.as_tensor(data.fresh, dtype=torch.float32)).argmax(1).numpy()
    return {
        "name": data.name,
        "certificate": found.value,
        "test_set": found.test_set.value,
        "kl": found.terms["kl"],
        "counted": found.terms["counted risk"],
        "n": int(found.terms["n"]),
        "test_error": float(np.mean(found.posterior.predict(data.fresh) != data.labels)),
        "network_test_error": float(np.mean(plain != data.labels)),
        **used,
    }


def _network(d: int, hidden: list[int], k: int) -> Any:
    """Return a network; where features have units, it first scales them by the prior's part alone."""
    from torch import nn

    widths = [d, *hidden]
    layers: list[nn.Module] = [nn.BatchNorm1d(d, affine=False)] if d == _MEASUREMENTS else []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], k))


def _read(name: str, n: int) -> _Data:
    from sklearn.datasets import load_breast_cancer, load_digits

    if name.endswith("mnist"):
        from pindown.datasets.public_data import load_mnist
        from pindown_reproduction.relu_thesis._optimisers import data_folder

        folder = data_folder()
        if folder is not None and (folder / "mnist").is_dir():
            images = load_mnist(folder)
            X, y = images.train[:n].reshape(-1, 784) / 255.0, images.train_labels[:n]
            fresh, labels = images.test.reshape(-1, 784) / 255.0, images.test_labels
            if name == "binary mnist":
                y, labels = (y < _BELOW_FIVE).astype(np.int64), (labels < _BELOW_FIVE).astype(np.int64)
            return _Data(X, y, fresh, labels, name)
    X, y = (load_breast_cancer if name == "breast cancer" else load_digits)(return_X_y=True)
    y = (y < _BELOW_FIVE).astype(np.int64) if name == "binary mnist" else y.astype(np.int64)
    X = X if name == "breast cancer" else X / _DIGITS_SCALE
    order = np.random.default_rng(0).permutation(len(X))
    cut = len(X) - int(_TEST_SHARE * len(X))
    used = name if not name.endswith("mnist") else f"8 x 8 digits for {name}"
    return _Data(X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]], used)


def compare(results: Results) -> Outcome:
    """Compare certificates with what was wanted, and with the errors on fresh examples."""
    rows, good = [], []
    for name in dict.fromkeys(cell["data"] for cell, _ in results):
        mine = [r for cell, r in results if cell["data"] == name]
        mean = {
            key: float(np.mean([r[key] for r in mine])) for key in mine[0] if key not in ("name", "n")
        }
        largest = max(r["certificate"] for r in mine)
        good.append(largest <= _WANTED[name])
        rows.append(
            (
                mine[0]["name"],
                mine[0]["n"],
                largest,
                _PUBLISHED.get(name, ""),
                mean["test_set"],
                mean["kl"],
                mean["test_error"],
                mean["network_test_error"],
                mean["cpu_seconds"],
            )
        )
    return Outcome(
        verdict="reproduced" if all(good) else "not reproduced",
        words=f"{sum(good)} of {len(good)} data sets are certified as tightly as asked for. The network "
        f"without noise has the smaller bound, from the same held-out part, in "
        f"{sum(row[4] < row[2] for row in rows)}. Defaults were settled on twenty runs with these data "
        f"sets: read the confidence as a little below its nominal value.",
        columns=(
            "data",
            "certifying examples",
            "certificate (largest)",
            "published",
            "test-set bound",
            "kl",
            "test error, random classifier",
            "test error, network",
            "CPU seconds",
        ),
        rows=tuple(rows),
    )


def draw(results: Results) -> Figure:
    """Draw certificate, test-set bound and test error for each data set."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(cell["data"] for cell, _ in results))
    figure = Figure()
    ax = figure.add_subplot()
    shown = (("certificate", "o"), ("test_set", "s"), ("test_error", "x"))
    for key, marker in shown:
        at = [names.index(cell["data"]) for cell, _ in results]
        ax.plot(at, [r[key] for _, r in results], marker, label=key.replace("_", " "))
    ax.set_xticks(range(len(names)), names)
    ax.set_ylim(bottom=0.0)
    ax.set(xlabel="data (a dot per seed)", ylabel="risk")
    return figure


def _task(
    data: str,
    n: int,
    hidden: list[int],
    share: float = 0.5,
    dropout: float = 0.2,
    epochs: int | None = None,
) -> dict[str, Any]:
    sizes = {"data": data, "n": n, "hidden": hidden}
    return {**sizes, "share": share, "dropout": dropout, "epochs": epochs}


_SMALL = [_task("breast cancer", 569, [32]), _task("digits", 1797, [64])]

EXPERIMENT = Experiment(
    id="pac-bayes-certificate",
    title="Risk certificates that are not vacuous, for networks as people train them",
    source="Perez-Ortiz et al. 2021, MNIST with a prior learnt on half of the data",
    published="Fully connected networks on MNIST have certified 0-1 risks of 0.02 to 0.03 after long "
    "training.",
    rule="Reproduced if every certificate at confidence 0.95 is at most 0.10 on MNIST (60,000 images, "
    "784-256-256-10) and at most 0.15 on the others.",
    settings={
        "quick": {
            "tasks": [*_SMALL, _task("binary mnist", 6000, [64], 0.5, 0.3, epochs=30)],
            "delta": 0.05,
            "draws": 200_000,
            "seeds": 3,
        },
        "paper": {
            "tasks": [
                *_SMALL,
                _task("binary mnist", 60_000, [256, 256], 0.6, 0.3),
                _task("mnist", 60_000, [256, 256], 0.6, 0.3),
            ],
            "delta": 0.05,
            "draws": None,
            "seeds": 3,
        },
    },
    seconds={"quick": 75},
    power=Power(why="A certificate fails with probability 0.05; three of three."),
    remark="At full size (MNIST, 784-256-256-10): risk at most 0.0226 with confidence 95 % (0.0233 "
    "if about twenty looks at settings are paid for) in 105 CPU seconds; a bound from a plain"
    " held-out part is 0.0196. Published recipes: 0.02 to 0.03.",
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
    data=SourceData("MNIST", ("mnist", "binary mnist", "breast cancer", "digits")),
)
