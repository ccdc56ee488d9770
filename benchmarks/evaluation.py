"""Cost of importing, loading and evaluating, beside torch in the same process: CPU time of one thread.

Ours and torch take turns, so that a busy machine slows both alike.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

import pindown as pn

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[2] / "shared"))
MODELS = SHARED / "models"


def best_of(action: Callable[[], object], repeats: int = 7) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def in_new_process(code: str, repeats: int = 5) -> float:
    """Best time that a fresh interpreter prints for a piece of code."""

    def once() -> float:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return float(done.stdout)

    return min(once() for _ in range(repeats))


def evaluation_rows() -> list[tuple[str, str]]:
    rng = np.random.default_rng(0)
    widths = (784, 256, 256, 256, 256, 10)
    layers = [(rng.normal(size=(o, i)) / np.sqrt(i), rng.normal(size=o)) for i, o in pairwise(widths)]
    net = pn.ReluNetwork.from_layers(layers)
    module = net.to_torch()
    X = rng.normal(size=(10_000, 784))
    T = torch.from_numpy(X)
    torch.set_num_threads(1)
    with torch.no_grad(), threadpool_limits(1):
        turns = [(best_of(lambda: module(T), 1), best_of(lambda: net(X), 1)) for _ in range(9)]
    theirs, ours = map(min, zip(*turns, strict=True))
    what = "net(X), 10,000 x 784, 784-256x4-10, against torch float64, 1 thread(s)"
    return [(what, f"{ours:.3f} s against {theirs:.3f} s, ratio {ours / theirs:.2f}")]


def start_rows() -> list[tuple[str, str]]:
    clock = "import time; t = time.process_time(); {}; print(time.process_time() - t)"
    rows = [("import pindown, fresh process", f"{in_new_process(clock.format('import pindown')):.3f} s")]
    model = MODELS / "acasxu_1_1.onnx"
    if model.exists():
        load = "import pindown; " + clock.format(f"pindown.load({str(model)!r})")
        rows.append(("first load of an ACAS Xu file after import", f"{in_new_process(load):.3f} s"))
        rows.append(("loading it again", f"{best_of(lambda: pn.load(model)):.4f} s"))
    for name in ("mnist_256x4.onnx.gz", "cifar_conv_base.onnx.gz", "tll_2d_n24_0.onnx.gz"):
        if (MODELS / name).exists():
            seconds = best_of(lambda name=name: pn.load(MODELS / name), repeats=3)
            rows.append((f"loading {name}", f"{seconds:.3f} s"))
    return rows


def run() -> list[tuple[str, str]]:
    return start_rows() + evaluation_rows()


if __name__ == "__main__":
    for name, result in run():
        print(f"{name}: {result}")
