"""What heavy operations cost: small sweeps, power laws fitted to them, and how far the fit is off.

Seconds are those of the processor, on one thread, compiled code in the cache; bytes are the peak of
Python's and NumPy's allocations (torch keeps its own books, so training rows have none). Each line is

    seconds = factor * first**power * second**power ...

fitted by least squares in logarithms; "off by" is the typical factor between fit and measurement.

    python benchmarks/scaling_cost.py counting diff    only sweeps whose names begin so
    python benchmarks/run.py scaling_cost              all, into RESULTS.md and docs/scaling.md
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import pindown as pn
from pindown.geometry import Box, count_regions, polyhedral_complex

Run = tuple[dict[str, float], Callable[[], Any]]


class Law(NamedTuple):
    """A power law fitted to measurements."""

    factor: float
    powers: dict[str, float]
    off_by: float
    n: int

    def __str__(self) -> str:
        terms = [f"{self.factor:.2g}", *(f"{name}^{power:.2f}" for name, power in self.powers.items())]
        return f"{' * '.join(terms)}, off by x{self.off_by:.2f} ({self.n} runs)"


def fitted(sizes: list[dict[str, float]], values: list[float]) -> Law:
    """Fit log(value) = log(factor) + sum of powers times log(sizes)."""
    names = list(sizes[0])
    columns = [np.ones(len(sizes)), *(np.log([s[name] for s in sizes]) for name in names)]
    A, b = np.stack(columns, axis=1), np.log(values)
    solution = np.linalg.lstsq(A, b, rcond=None)[0]
    error = float(np.sqrt(np.mean((A @ solution - b) ** 2)))
    powers = dict(zip(names, solution[1:].tolist(), strict=True))
    return Law(float(np.exp(solution[0])), powers, float(np.exp(error)), len(values))


def network(widths: tuple[int, ...], seed: int = 0) -> pn.ReluNetwork:
    rng = np.random.default_rng(seed)
    return pn.ReluNetwork.from_layers(
        [
            (rng.normal(0, np.sqrt(2 / i), (o, i)), rng.uniform(-1, 1, o) / np.sqrt(i))
            for i, o in pairwise(widths)
        ]
    )


SIZES = {2: (64, 256, 1024), 3: (24, 48, 96), 4: (12, 20, 28), 5: (10, 15, 22)}
MAX_LISTED = 300_000  # cells that are kept in memory


def shapes() -> Iterator[tuple[int, ...]]:
    """Networks of two hidden layers with 2 to 5 inputs, and of one, three and four layers with 2."""
    for d, widths in SIZES.items():
        for width in widths:
            yield (d, width, width, 1)
    for depth in (1, 3, 4):
        yield (2, *(192 // depth,) * depth, 1)


@cache
def counted() -> list[tuple[pn.ReluNetwork, Box, dict[str, float]]]:
    """Return the networks of all shapes, each with its box and its size."""
    found = []
    for widths in shapes():
        net, box = network(widths), Box.cube(widths[0], -1, 1)
        found.append((net, box, {"cells": float(count_regions(net, box)), "d": float(widths[0])}))
    return found


def counting(certified: bool) -> Iterator[Run]:
    for net, box, sizes in counted():
        yield sizes, lambda net=net, box=box: count_regions(net, box, certified=certified)


def listing() -> Iterator[Run]:
    for net, box, sizes in counted():
        if sizes["cells"] <= MAX_LISTED:
            yield sizes, lambda net=net, box=box: polyhedral_complex(net, box)


def exact_training(width: int) -> Iterator[Run]:
    from pindown.learn import ExactReluRegressor

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3_000, 2))
    y = np.sin(3 * X[:, 0]) + 0.5 * np.abs(X[:, 1]) + 0.1 * rng.normal(size=len(X))
    for n in (100, 300, 1_000, 3_000) if width == 1 else (10, 30, 100, 300, 1_000):
        yield (
            {"samples": float(n)},
            lambda n=n: ExactReluRegressor(width=width, verbose=0).fit(X[:n], y[:n]),
        )


def distance() -> Iterator[Run]:
    from pindown.guarantees import minimum_distance

    for width in (4, 6, 8, 11):
        net = network((2, width, width, 3), seed=1)
        yield (
            {"units": 2.0 * width},
            lambda net=net: [minimum_distance(net, x, budget=20) for x in ([0.3, 0.2], [-0.4, 0.5])],
        )


def accuracy() -> Iterator[Run]:
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    from pindown.guarantees import certified_accuracy

    X, y = load_digits(return_X_y=True)
    for width in (16, 64):
        mlp = MLPClassifier((width, width), max_iter=60, tol=1e-3, random_state=0).fit(X / 16, y)
        net = pn.ReluNetwork.from_sklearn(mlp)
        for n in (100, 400, 1600):
            yield (
                {"samples": float(n), "units": 2.0 * width},
                lambda net=net, n=n: certified_accuracy(
                    net, X[:n] / 16, y[:n], [0.05], n_jobs=1, verbose=0, budget=20
                ),
            )


def comparison() -> Iterator[Run]:
    rng = np.random.default_rng(0)
    for width in (8, 16, 32, 64):
        a = network((4, width, width, 2))
        moved = [(W * (1 + 1e-4 * rng.normal(size=W.shape)), b) for W, b in a.layers]
        b = pn.ReluNetwork.from_layers(moved)
        first = pn.diff(a, b, box=(-1, 1), tol=1.0)
        tol = 0.6 * first.gap_upper  # not proved by the first bound, so the box is split
        yield (
            {"units": 2.0 * width},
            lambda a=a, b=b, tol=tol: pn.diff(a, b, box=(-1, 1), tol=tol, budget=20),
        )


def detection() -> Iterator[Run]:
    from pindown.learn import LocalMaximaDetector

    rng = np.random.default_rng(0)
    for n, d in ((60, 4), (250, 4), (1_000, 4), (250, 16)):
        X = rng.normal(size=(n, d))
        detector = LocalMaximaDetector(random_state=0, verbose=0)
        yield {"samples": float(n), "features": float(d)}, lambda X=X, m=detector: m.fit(X)


def certificate() -> Iterator[Run]:
    from torch import nn

    from pindown.guarantees import certify

    rng = np.random.default_rng(0)
    for n in (200, 800, 3_200):
        X = rng.normal(size=(n, 10))
        module = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2))
        yield {"samples": float(n)}, lambda X=X, m=module: certify(m, X, (X[:, 0] > 0).astype(int))


SWEEPS: dict[str, tuple[Callable[[], Iterator[Run]], bool]] = {
    "counting": (lambda: counting(False), True),
    "certified counting": (lambda: counting(True), True),
    "the complex": (listing, True),
    "exact training, width 1, 2 inputs": (lambda: exact_training(1), False),
    "exact training, width 2, 2 inputs": (lambda: exact_training(2), False),
    "minimum distance, two points": (distance, False),
    "certified accuracy": (accuracy, False),
    "diff, 4 inputs": (comparison, False),
    "detector fit": (detection, False),
    "certify": (certificate, False),
}


def cell_laws() -> Iterator[tuple[str, str]]:
    """How many cells there are, by units, dimension by dimension."""
    for d, widths in SIZES.items():
        nets = [network((d, width, width, 1)) for width in widths]
        counts = [float(count_regions(net, Box.cube(d, -1, 1))) for net in nets]
        yield f"cells, {d} inputs", str(fitted([{"units": float(net.size)} for net in nets], counts))
    deep = [network((2, *(192 // depth,) * depth, 1)) for depth in (1, 2, 3, 4, 6)]
    counts = [float(count_regions(net, Box.cube(2, -1, 1))) for net in deep]
    depths = [{"layers": float(net.depth - 1)} for net in deep]
    yield "cells, 2 inputs, 192 units", str(fitted(depths, counts))


def run(only: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield what was measured, and the law; of all sweeps, or of those whose names begin as given."""
    import torch

    torch.set_num_threads(1)
    time.monotonic = time.process_time  # the clock of budgets: a busy machine does as much
    # Compiled code is loaded before the clock runs.
    count_regions(network((2, 3, 1)), Box.cube(2, -1, 1))
    if not only:
        yield from cell_laws()
    for name, (sweep, with_memory) in SWEEPS.items():
        if only and not name.startswith(only):
            continue
        sizes, seconds, peaks = [], [], []
        for k, (size, action) in enumerate(sweep()):
            if k == 0:
                action()
            began = time.process_time()
            action()
            sizes.append(size)
            seconds.append(max(time.process_time() - began, 1e-5))
            if with_memory:
                tracemalloc.start()
                action()
                peaks.append(float(tracemalloc.get_traced_memory()[1]))
                tracemalloc.stop()
        yield f"{name}, seconds", f"{fitted(sizes, seconds)}; {min(seconds):.2g} to {max(seconds):.2g} s"
        if with_memory:
            yield f"{name}, bytes", f"{fitted(sizes, peaks)}; up to {max(peaks) / 1e6:.1f} MB"


if __name__ == "__main__":
    for what, result in run(tuple(sys.argv[1:])):
        print(f"{what}: {result}", flush=True)
