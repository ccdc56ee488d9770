"""Wall times of coarse-grained work in one process, two processes and two Dask workers, side by side.

Seconds are those of the clock, so that this needs a quiet machine. Workers are started, and have
imported what they need, before the clock runs. Results are compared: all ways must give the same.

    python benchmarks/scaling_parallel.py [workers]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import pindown as pn
from pindown.datasets.public_data import load_mnist
from pindown.guarantees import certified_accuracy
from pindown.learn.exact.estimators import ExactReluRegressor
from pindown.parallel import each, workers
from pindown_reproduction import EXPERIMENTS, reproduce

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[2] / "shared"))
IMAGES = 1_000
CELLS = 160  # of the paper's 500
RADII = [0.01, 0.02]
EXPERIMENT = "inverse-stability"
Case = tuple[str, Callable[[], Any]]


def run(n: int = 2) -> Iterator[tuple[str, str]]:
    """Yield what was measured, and the result."""
    ways: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "serial": nullcontext,
        "loky": lambda: workers(n, backend="processes"),
        "dask": lambda: workers(n, cluster="local"),
    }
    alone: dict[str, tuple[float, Any]] = {}
    for way, place in ways.items():
        with place():
            for name, case in cases():
                list(each(_warm, range(4 * n), batch=1))
                began = time.perf_counter()
                result = case()
                seconds = time.perf_counter() - began
                before, expected = alone.setdefault(name, (seconds, result))
                same = "same result" if result == expected else "ANOTHER RESULT"
                yield f"{name}, {way}", f"{seconds:.2f} s, {before / seconds:.2f} times as fast, {same}"


def cases() -> Iterator[Case]:
    yield f"{CELLS} cells of {EXPERIMENT} as published", experiment_cells
    if (SHARED / "data/mnist").exists():
        yield f"certified accuracy, {IMAGES:,} images, 4 x 256", images
    else:
        yield f"certified accuracy, {IMAGES:,} random inputs, 3 x 100", random_inputs
    yield "exact training, 20 points, 2 units, absolute loss", exact_training


def experiment_cells() -> dict[str, bytes]:
    """Run cells at the paper's scale; return the files that must not depend on where they ran."""
    whole = EXPERIMENTS[EXPERIMENT]
    some = replace(whole, cells=lambda settings: whole.cells(settings)[:CELLS])
    with tempfile.TemporaryDirectory() as out:
        folder = reproduce(some, scale="paper", out=Path(out)).folder
        files = ("results.json", "table.md", "figure.svg")
        return {name: (folder / name).read_bytes() for name in files if (folder / name).exists()}


def images() -> list[bytes]:
    data = load_mnist(SHARED / "data")
    net = pn.load(SHARED / "models/mnist_256x4.onnx.gz")
    X = data.test[:IMAGES].reshape(IMAGES, -1) / 255.0
    return _curve(net, X, data.test_labels[:IMAGES])


def random_inputs() -> list[bytes]:
    rng = np.random.default_rng(0)
    layers = [
        (rng.standard_normal((m, n)) / np.sqrt(n), rng.standard_normal(m) / 10)
        for n, m in pairwise((50, 100, 100, 100, 5))
    ]
    net, X = pn.ReluNetwork.from_layers(layers), rng.random((IMAGES, 50))
    return _curve(net, X, np.argmax(net(X), axis=1))


def _curve(net: pn.ReluNetwork, X: Any, y: Any) -> list[bytes]:
    found = certified_accuracy(net, X, y, RADII, box=(0, 1), optimise=False, verbose=0)
    return [found.certified_radius.tobytes(), found.attacked_radius.tobytes()]


def exact_training(n: int = 20) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 2)), rng.standard_normal(n)
    model = ExactReluRegressor(2, loss="absolute", budget=300, verbose=0).fit(X, y)
    return model.lower_bound_, model.best_loss_


def _warm(_: int) -> None:
    """Load, and compile, in a worker what the cases need."""
    experiment = EXPERIMENTS[EXPERIMENT]
    experiment.run(experiment.cells(experiment.settings["quick"])[0])
    net = pn.ReluNetwork.from_layers([(np.eye(2), [0, 0]), (np.eye(2), [0, 0])])
    _curve(net, np.eye(2), np.arange(2))
    exact_training(4)
    time.sleep(0.2)  # so that every worker gets some of these


if __name__ == "__main__":
    for what, measured in run(int(sys.argv[1]) if len(sys.argv) > 1 else 2):
        print(f"{what:<60} {measured}", flush=True)
