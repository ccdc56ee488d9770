"""Cost of restricting a network to segments and of finding cells in high dimension, in CPU time."""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import pindown as pn
from pindown.box import Box
from pindown.geometry.regions.fold_distance import distance_to_nearest_fold
from pindown.geometry.regions.region import region_at
from pindown.geometry.slices.black_box_kinks import kinks_on_line
from pindown.geometry.slices.segment import along_segments

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[2] / "shared"))
MNIST_NET = SHARED / "models/mnist_256x4.onnx.gz"
MNIST_IMAGES = SHARED / "data/mnist/t10k-images-idx3-ubyte.gz"


def cpu_seconds(action: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def segment_row(net: pn.ReluNetwork, a: np.ndarray, b: np.ndarray, what: str) -> tuple[str, str]:
    folds = along_segments(net, a, b)  # compiles, too
    n = max(1, int(folds.n_cells.sum()) - len(a))
    points = np.random.default_rng(1).random((n, net.in_features))
    ours, theirs = cpu_seconds(lambda: along_segments(net, a, b)), cpu_seconds(lambda: net(points))
    owner = np.repeat(np.arange(len(a)), np.diff(folds.offsets))
    at = a[owner] + folds.t[:, None] * (b - a)[owner]
    worst = np.abs(net.preactivations(at)[np.arange(len(owner)), folds.units]).max(initial=0.0)
    return (
        f"{len(a):,} segments {what}, {n:,} break points",
        f"{ours:.2f} s, net(P) at as many points {theirs:.2f} s, ratio {ours / theirs:.2f}; "
        f"largest value of a switching unit {worst:.1e}",
    )


def images() -> np.ndarray | None:
    if not MNIST_IMAGES.exists():
        return None
    raw = np.frombuffer(gzip.decompress(MNIST_IMAGES.read_bytes()), np.uint8, offset=16)
    return raw.reshape(-1, 784)[:2000] / 255.0


def mnist_rows() -> list[tuple[str, str]]:
    net = pn.load(MNIST_NET).relu_network()
    rng = np.random.default_rng(0)
    name = "mnist_256x4"
    rows = [
        segment_row(net, *rng.random((2, 1000, 784)), f"of {name} between random points of [0, 1]^784"),
        segment_row(net, *(5 * rng.standard_normal((2, 200, 784))), f"of {name} between far points"),
    ]
    X = images()
    if X is None:
        return rows
    rows.append(segment_row(net, X[:1000], X[1000:2000], f"of {name} between test images"))
    seconds = cpu_seconds(lambda: distance_to_nearest_fold(net, X[:500]), repeats=1)
    rows.append((f"distance to the nearest fold, {name}, 500 images", f"{seconds:.2f} s"))
    for box, where in ((None, "in all of space"), (Box.cube(784, 0, 1), "in [0, 1]^784")):
        times, facets = [], []
        for x in X[:3]:
            start = time.process_time()
            facets.append(len(region_at(net, x, box).facets))
            times.append(time.process_time() - start)
        seen = ", ".join(f"{s:.1f} s ({n:,} facets)" for s, n in zip(times, facets, strict=True))
        rows.append((f"region_at {where}, {name}, three images", seen))
    return rows


def black_box_row() -> tuple[str, str]:
    rng = np.random.default_rng(0)
    truth = found = queries = 0
    error = 0.0
    for _ in range(60):
        layers = [
            (rng.normal(size=(o, i)) / np.sqrt(i), rng.normal(size=o) / 2)
            for i, o in pairwise((5, 8, 6, 1))
        ]
        net = pn.ReluNetwork.from_layers(layers)
        a, b = 2 * rng.standard_normal((2, 5))
        folds = along_segments(net, a[None], b[None])[0]
        kinks = np.unique(folds.t[folds.visible])
        black = kinks_on_line(net, a, b)
        truth, found, queries = truth + len(kinks), found + len(black.t), queries + black.n_queries
        if len(kinks) == len(black.t) > 0:
            error = max(error, float(np.abs(kinks - black.t).max()))
    return (
        "black-box kinks on 60 lines, 5-8-6-1",
        f"{found} found of {truth}, {queries / truth:.0f} queries each, largest error {error:.0e}",
    )


def run() -> list[tuple[str, str]]:
    with threadpool_limits(1):
        return [*(mnist_rows() if MNIST_NET.exists() else []), black_box_row()]


if __name__ == "__main__":
    for name, result in run():
        print(f"{name}: {result}")
