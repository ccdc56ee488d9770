"""Comparing, shrinking and pairing networks: wall time on all cores, whole calls, files read before.

Public tools do other work: weight matchers (git-re-basin, rebasin) look for a permutation without scales
and without an answer. None returns a proved interval, so there is no ratio to report; times and
intervals are as they came.
"""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

import pindown as pn
from pindown.equivalence import apply, random_symmetry

MODELS = Path("../shared/models")


def timed_diff(a: pn.ReluNetwork, b: pn.ReluNetwork, **options: object) -> tuple[float, pn.Diff]:
    start = time.perf_counter()
    answer = pn.diff(a, b, **options)  # type: ignore[arg-type]
    return time.perf_counter() - start, answer


def row(name: str, seconds: float, answer: pn.Diff) -> tuple[str, str]:
    return (
        name,
        f"{answer.verdict} at {answer.tol:g}, gap in [{answer.gap_lower:.2g}, {answer.gap_upper:.3g}], "
        f"{seconds:.2f} s ({answer.proof})",
    )


def pair_rows() -> list[tuple[str, str]]:
    rows = []
    pairs = [
        ("mnist_256x4.onnx.gz", "mnist_256x4_split_a.onnx.gz", (0.0, 1.0)),
        ("mnist_256x4.onnx.gz", "mnist_256x4_split_b.onnx.gz", (0.0, 1.0)),
        ("cifar_conv_base.onnx.gz", "cifar_conv_base_split.onnx.gz", (0.0, 1.0)),
        *(
            (f"acasxu_1_{k}.onnx", f"acasxu_1_{k}_pruned{p}.onnx", (-0.5, 0.5))
            for k in (1, 2)
            for p in (5, 10, 30)
        ),
    ]
    for first, second, (low, high) in pairs:
        a, b = pn.load(MODELS / first), pn.load(MODELS / second)
        for box in (pn.Box.cube(a.in_features, low, high), None):
            if box is None and "acas" in first:
                continue
            seconds, answer = timed_diff(a, b, box=box, tol=1e-4, budget=20)
            where = "box" if box is not None else "all inputs"
            rows.append(row(f"diff {second.split('.')[0]}, {where}", seconds, answer))
    return rows


def quantised_row() -> tuple[str, str]:
    net = pn.load(MODELS / "mnist_256x4.onnx.gz")
    half = pn.ReluNetwork.from_layers(
        [(W.astype(np.float16).astype(float), b.astype(np.float16).astype(float)) for W, b in net.layers]
    )
    seconds, answer = timed_diff(net, half, box=pn.Box.cube(784, 0, 1), budget=20)
    name, text = row("diff mnist_256x4 and its float16 copy, box", seconds, answer)
    return name, f"{text}; upper end {answer.gap_upper / answer.gap_lower:,.0f} times the lower one"


def shrink_rows() -> list[tuple[str, str]]:
    rows = []
    for name, box in (
        ("mnist_256x4_split_a.onnx.gz", None),
        ("mnist_256x4_split_b.onnx.gz", None),
        ("cifar_conv_base_split.onnx.gz", None),
        ("acasxu_1_1_pruned30.onnx", None),
        ("tll_2d_n16_0.onnx.gz", pn.Box.cube(2, -2, 2)),
    ):
        net = pn.load(MODELS / name)
        start = time.perf_counter()
        shrunk = pn.shrink(net, box=box, budget=20)
        where = "all inputs" if box is None else "box"
        rows.append(
            (f"shrink {name.split('.')[0]}, {where}", f"{shrunk}, {time.perf_counter() - start:.2f} s")
        )
    return rows


def large_row() -> tuple[str, str]:
    """In a process of its own, for its peak memory."""
    out = subprocess.run(
        [sys.executable, __file__, "--large"], check=True, capture_output=True, text=True
    ).stdout
    return "diff 784-2048-2048-2048-10 (11 M parameters) and a symmetric copy, all inputs", out.strip()


def large() -> None:
    rng = np.random.default_rng(0)
    widths = (784, 2048, 2048, 2048, 10)
    net = pn.ReluNetwork.from_layers(
        [(rng.normal(0, np.sqrt(2 / n), (m, n)), rng.normal(0, 0.1, m)) for n, m in pairwise(widths)]
    )
    seconds, answer = timed_diff(net, apply(random_symmetry(net, seed=1), net))
    print(f"{row('', seconds, answer)[1]}, peak {peak_gigabytes():.2f} GB")


def peak_gigabytes() -> float:
    """Of this program alone: what getrusage says begins with the memory of the parent process."""
    status = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in status if line.startswith("VmHWM"))) / 2**20


def run() -> list[tuple[str, str]]:
    shared = [*pair_rows(), quantised_row(), *shrink_rows()] if MODELS.is_dir() else []
    return [*shared, large_row()]


if __name__ == "__main__":
    if "--large" in sys.argv:
        large()
    else:
        for name, result in run():
            print(f"{name}: {result}")
