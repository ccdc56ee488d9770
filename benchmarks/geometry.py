"""Counting and listing the cells of random networks: CPU time of one thread, second of two runs.

Networks, seeds and box as published comparisons use them: W ~ N(0, 2 / fan-in), b uniform, rounded to
float32, box [-1, 1]^d. Compilation is cached on disk and reported apart.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import polygon_splitter

from pindown import ReluNetwork, load
from pindown.geometry import Box, count_regions, polyhedral_complex
from pindown.geometry.complex.counting import region_count

MODELS = Path("../shared/models")
COUNTED = {
    (2, 16, 16, 1): 391,
    (2, 32, 32, 1): 1_254,
    (2, 64, 64, 1): 4_636,
    (2, 128, 128, 1): 20_845,
    (2, 32, 32, 32, 32, 1): 4_462,
    (2, 256, 256, 1): 83_696,
    (2, 512, 512, 1): 324_671,
    (2, 1024, 1024, 1): 1_338_366,
    (3, 32, 32, 1): 21_980,
    (3, 64, 64, 1): 187_196,
    (4, 16, 16, 1): 21_182,
    (5, 16, 16, 1): 95_821,
    (5, 24, 24, 1): 1_030_818,
    (6, 16, 16, 1): 462_868,
}


def network(widths: tuple[int, ...], seed: int = 0) -> ReluNetwork:
    rng = np.random.default_rng(seed)
    layers = []
    for i, o in pairwise(widths):
        W = rng.normal(0, np.sqrt(2 / i), (o, i))
        b = rng.uniform(-1 / np.sqrt(i), 1 / np.sqrt(i), o)
        layers.append((W.astype(np.float32).astype(float), b.astype(np.float32).astype(float)))
    return ReluNetwork.from_layers(layers)


def cpu_seconds(action: Callable[[], object], repeats: int = 2) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def name(widths: tuple[int, ...]) -> str:
    return "-".join(map(str, widths[:-1]))


def counting_rows() -> list[tuple[str, str]]:
    rows = []
    for widths, cells in COUNTED.items():
        net, box = network(widths), Box.cube(widths[0], -1, 1)
        assert count_regions(net, box) == cells
        repeats = 9 if cells < 100_000 else 2
        fast = cpu_seconds(lambda net=net, box=box: count_regions(net, box), repeats)
        proved = cpu_seconds(lambda net=net, box=box: count_regions(net, box, certified=True), 2)
        rows.append(
            (
                f"count {name(widths)}, {cells:,} cells",
                f"{fast:.4f} s, {1e6 * fast / cells:.2f} us per cell; certified x {proved / fast:.1f}",
            )
        )
    return rows


def complex_rows() -> list[tuple[str, str]]:
    rows = []
    for widths in ((2, 128, 128, 1), (2, 256, 256, 1), (3, 32, 32, 1), (4, 16, 16, 1), (5, 16, 16, 1)):
        net, box = network(widths), Box.cube(widths[0], -1, 1)

        def everything(net: ReluNetwork = net, box: Box = box) -> object:
            cx = polyhedral_complex(net, box)
            return cx.cell_vertices, cx.A, cx.c, cx.neighbours

        everything()
        whole, count = cpu_seconds(everything, 3), cpu_seconds(lambda: count_regions(net, box), 5)  # noqa: B023
        rows.append(
            (
                f"complex with vertices, maps and neighbours, {name(widths)}",
                f"{whole:.3f} s, {whole / count:.1f} times counting",
            )
        )
    return rows


def reference_rows() -> list[tuple[str, str]]:
    rows = []
    for widths in ((2, 16, 16, 1), (2, 32, 32, 1), (2, 64, 64, 1)):
        net, box = network(widths), Box.cube(2, -1, 1)
        layers = [(layer.weight, layer.bias) for layer in net.layers]
        assert polygon_splitter.count_cells(layers, -1, 1) == COUNTED[widths]
        theirs = cpu_seconds(lambda layers=layers: polygon_splitter.count_cells(layers, -1, 1), 1)
        ours = cpu_seconds(lambda net=net, box=box: count_regions(net, box), 9)
        rows.append(
            (
                f"plain NumPy splitter, {name(widths)}",
                f"{theirs:.2f} s, {theirs / ours:,.0f} times ours ({ours:.4f} s)",
            )
        )
    return rows


def relucent_rows() -> list[tuple[str, str]]:
    try:
        import relucent
        import torch
    except ImportError:
        return [("relucent", "not installed: not compared")]
    widths = (2, 16, 16, 1)
    net = network(widths)
    module = net.to_torch().float()
    with torch.no_grad():
        start = time.process_time()
        complex_ = relucent.Complex(module)
        complex_.bfs()
        theirs = time.process_time() - start
    ours = cpu_seconds(lambda: count_regions(net, Box.cube(2, -1, 1)), 9)
    what = f"relucent {relucent.__version__}, {name(widths)} on all of the plane, one process"
    return [(what, f"{theirs:.1f} s, {theirs / ours:,.0f} times ours on the square")]


def not_generic(kind: str, d: int, width: int, seed: int = 7) -> ReluNetwork:
    """A network of two hidden layers that is not in general position, in the way that ``kind`` says."""
    rng = np.random.default_rng(seed)
    shapes = (width, d), (width, width), (1, width)
    layers = [(rng.normal(size=s) / np.sqrt(s[1]), rng.normal(size=s[0]) / 3) for s in shapes]
    (W1, b1), (W2, b2), _ = layers
    if kind == "zero biases":
        layers = [(W, 0 * b) for W, b in layers]
    elif kind == "duplicated units":
        W1[1], b1[1], W2[1], b2[1] = W1[0], b1[0], W2[0], b2[0]
    elif kind == "opposite units":
        W1[1], b1[1], W2[1], b2[1] = -2 * W1[0], -2 * b1[0], -2 * W2[0], -2 * b2[0]
    elif kind == "dead units":
        W1[0], b1[0], W1[-1], b1[-1] = 0, 0, 0, -1
    elif kind == "integer weights":
        layers = [(rng.integers(-2, 3, W.shape), rng.integers(-1, 2, b.shape)) for W, b in layers]
    elif kind == "parallel folds":
        W1[:] = W1[0] * rng.choice([-1, 1, 2], (width, 1))
        W1[-1], b1[-1] = np.eye(d)[0], 1  # along a side of the cube
    elif kind == "units that vanish on whole cells":
        W2[1], b2[1] = np.eye(width)[0], 0
        W2[-1], b2[-1] = -np.eye(width)[0], 0
    elif kind == "folds through corners":
        layers = [(np.round(8 * W) / 8, np.round(8 * b) / 8) for W, b in layers]
        W, b = layers[0]
        b[:] = -np.einsum("ij,ij->i", W, rng.choice([-1.0, 1.0], W.shape))
    return ReluNetwork.from_layers(layers)


NOT_GENERIC = (
    "zero biases",
    "duplicated units",
    "opposite units",
    "dead units",
    "integer weights",
    "parallel folds",
    "units that vanish on whole cells",
    "folds through corners",
)


def certified_rows() -> list[tuple[str, str]]:
    """What proving every sign costs where networks are not in general position."""
    rows = []
    for d, width in ((2, 8), (2, 32), (3, 8), (3, 16)):
        ratios = []
        for kind in NOT_GENERIC:
            ratios.append(
                f"{kind} x {_certified_ratio(not_generic(kind, d, width), Box.cube(d, -1, 1)):.1f}"
            )
        rows.append((f"certified against plain counting, {d}-{width}-{width}", ", ".join(ratios)))
    for model in ("tll_2d_n16_0", "tll_2d_n16_1", "tll_2d_n24_0") if MODELS.exists() else ():
        ratio = _certified_ratio(load(MODELS / f"{model}.onnx.gz").relu_network(), Box.cube(2, -2, 2))
        rows.append((f"certified against plain counting, {model}", f"x {ratio:.1f}"))
    return rows


def _certified_ratio(net: ReluNetwork, box: Box) -> float:
    assert count_regions(net, box) == count_regions(net, box, certified=True)
    plain, proved = (
        cpu_seconds(lambda certified=certified: count_regions(net, box, certified=certified), 9)
        for certified in (False, True)
    )
    return proved / plain


def in_new_process(code: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
        cwd=Path(__file__).parent,
    )
    return done.stdout.split()


def memory_and_compilation_rows() -> list[tuple[str, str]]:
    # Not getrusage: a new process inherits the peak of its parent there.
    code = (
        "import time, geometry as g\n"
        "status = lambda: open('/proc/self/status').read()\n"
        "peak = lambda: int(status().split('VmHWM:')[1].split()[0]) / 1024\n"
        "before = peak(); start = time.process_time()\n"
        "g.count_regions(g.network({widths}), g.Box.cube({d}, -1, 1))\n"
        "print(before, peak(), time.process_time() - start)"
    )
    before, peak, _ = map(float, in_new_process(code.format(widths=(2, 1024, 1024, 1), d=2)))
    rows = [("memory, counting 2-1024-1024 (peak, of which imports)", f"{peak:.0f} MB, {before:.0f} MB")]
    for widths in ((2, 8, 1), (3, 8, 1)):
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (
                float(
                    in_new_process(
                        code.format(widths=widths, d=widths[0]),
                        NUMBA_CACHE_DIR=cache,
                        PINDOWN_LOOPS="compiled",  # so little work would not wait for a compiler
                    )[2]
                )
                for _ in range(2)
            )
        rows.append(
            (
                f"first count in a process, {widths[0]} inputs",
                f"{cold:.1f} s when it compiles, {warm:.2f} s from the cache",
            )
        )
    return rows


def many_cells_row() -> tuple[str, str]:
    net, box = network((3, 256, 256, 1)), Box.cube(3, -1, 1)
    start = time.process_time()
    n = count_regions(net, box, n_jobs=1)
    seconds = time.process_time() - start
    what = f"count 3-256-256, {n:,} cells"
    return what, f"{seconds:.1f} s, {seconds * 1e7 / n:.1f} s per ten million cells"


def model_rows() -> list[tuple[str, str]]:
    if not MODELS.exists():
        return [("public models", "not there: not measured")]
    rows = []
    for model in ("tll_2d_n16_0", "tll_2d_n16_1", "tll_2d_n24_0"):
        net = load(MODELS / f"{model}.onnx.gz").relu_network()
        start = time.process_time()
        cx = polyhedral_complex(net, Box.cube(2, -2, 2))
        text = f"{cx.n_regions:,} cells, {cx.n_pieces} pieces, {cx.n_maps} affine maps"
        rows.append((f"complex of {model} on [-2, 2]^2", f"{time.process_time() - start:.2f} s: {text}"))
    net = load(MODELS / "acasxu_1_1.onnx").relu_network()
    rng = np.random.default_rng(0)
    times, cells = [], []
    for x in rng.uniform(-0.49, 0.49, (20, 5)):
        start = time.process_time()
        cx = polyhedral_complex(net, Box(x - 0.01, x + 0.01), budget=60)
        assert cx.complete
        times.append(time.process_time() - start)
        cells.append(cx.n_regions)
    rows.append(
        (
            "complex of acasxu_1_1 on 20 boxes of side 0.02",
            f"all complete, {min(cells)} to {max(cells):,} cells, at most {max(times):.2f} s",
        )
    )
    time.monotonic = time.process_time  # the clock of budgets: a busy machine finds as many cells
    for budget in (2.0, 10.0):
        start = time.process_time()
        result = region_count(net, Box.cube(5, -0.5, 0.5), budget=budget)
        took = time.process_time() - start
        start = time.process_time()
        cx = polyhedral_complex(net, Box.cube(5, -0.5, 0.5), budget=budget)
        counted = f"count {took:.2f} s ({result.n_regions:,} cells)"
        listed = f"complex {time.process_time() - start:.2f} s ({cx.n_regions:,} cells)"
        rows.append((f"acasxu_1_1 on the whole box, budget {budget:g} s", f"{counted}, {listed}"))
    return rows


def run() -> list[tuple[str, str]]:
    rows = [*counting_rows(), *certified_rows(), many_cells_row(), *complex_rows(), *reference_rows()]
    rows += relucent_rows() + memory_and_compilation_rows() + model_rows()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [*rows, ("peak memory of this benchmark", f"{peak:.0f} MB")]


if __name__ == "__main__":
    for what, result in run():
        print(f"{what}: {result}")
