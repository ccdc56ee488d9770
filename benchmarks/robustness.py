"""Certified accuracy, exact distances, and properties of ACAS Xu networks beside maraboupy.

Seconds are those of the processor, so that a busy machine does not count.
"""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

import pindown as pn
from pindown.guarantees import certified_accuracy, minimum_distance
from pindown.verification import Property, UnsafeSet, verify

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[2] / "shared"))
LIMIT = 300  # seconds for one property
PEER_LIMIT = 60  # seconds for it in the peer, which may take hours on the second one


def run() -> Iterator[tuple[str, str]]:
    """Yield what was measured, and the result."""
    yield from small_distances()
    if (SHARED / "models").exists():
        yield from properties()
    if (SHARED / "data/mnist").exists():
        yield from images()


def small_distances() -> Iterator[tuple[str, str]]:
    rng = np.random.default_rng(0)
    widths = (3, 10, 10, 3)
    net = pn.ReluNetwork.from_layers(
        [(rng.standard_normal((m, n)), rng.standard_normal(m)) for n, m in pairwise(widths)]
    )
    X = rng.standard_normal((5, 3))
    for norm in ("linf", "l2", "l1"):
        for method in ("cells", "programs"):
            if (norm, method) == ("l2", "programs"):
                continue
            began = time.process_time()
            found = [minimum_distance(net, x, norm, method=method) for x in X]
            seconds = (time.process_time() - began) / len(X)
            meets = sum(result.complete for result in found)
            yield f"distance, 3-10-10-3, {norm}, {method}", f"{seconds:.2f} s each, {meets} of 5 meet"


def properties() -> Iterator[tuple[str, str]]:
    """Decide each property with both, one after the other in this process, on one thread."""
    for name in ("1_1", "1_2"):
        path = SHARED / f"models/acasxu_{name}.onnx"
        net = pn.load(path)
        for number in (1, 2, 3, 4):
            goal = Property.acas_xu(number)
            began = time.process_time()
            ours = verify(net, goal, budget=LIMIT, n_jobs=1)
            seconds = time.process_time() - began
            text = f"{ours.verdict}, {ours.n_parts:,} parts, {seconds:.2f} s"
            yield f"ACAS Xu {name}, property {number}", text + beside(path, goal.unsafe[0], seconds)


def beside(path: Path, goal: UnsafeSet, ours: float) -> str:
    """Return what maraboupy says and how much longer it took, or that it is not installed."""
    try:
        from maraboupy import Marabou
    except ImportError:
        return "; maraboupy is not installed"
    net = Marabou.read_onnx(str(path))
    inputs, outputs = net.inputVars[0].flatten(), net.outputVars[0].flatten()
    for variable, low, high in zip(inputs, goal.lower, goal.upper, strict=True):
        net.setLowerBound(variable, low)
        net.setUpperBound(variable, high)
    for row, limit in zip(goal.rows, goal.limits, strict=True):
        used = np.flatnonzero(row)
        net.addInequality([outputs[i] for i in used], row[used].tolist(), float(limit))
    options = Marabou.createOptions(verbosity=0, timeoutInSeconds=PEER_LIMIT)
    began = time.process_time()
    verdict = net.solve(verbose=False, options=options)[0]
    seconds = time.process_time() - began
    words = {"unsat": "holds", "sat": "violated", "TIMEOUT": "undecided"}.get(verdict, verdict.lower())
    ratio = f"{seconds / ours:.3g} times ours" if words != "undecided" else "stopped"
    return f"; maraboupy: {words}, {seconds:.2f} s ({ratio})"


def images() -> Iterator[tuple[str, str]]:
    net = pn.load(SHARED / "models/mnist_256x4.onnx.gz")
    with gzip.open(SHARED / "data/mnist/t10k-images-idx3-ubyte.gz") as stream:
        X = np.frombuffer(stream.read(), np.uint8, offset=16).reshape(-1, 784)[:1000] / 255
    with gzip.open(SHARED / "data/mnist/t10k-labels-idx1-ubyte.gz") as stream:
        y = np.frombuffer(stream.read(), np.uint8, offset=8)[:1000]
    began = time.process_time()
    found = certified_accuracy(net, X, y, [2 / 255, 8 / 255], box=(0, 1), verbose=0)
    seconds = time.process_time() - began
    for i, level in enumerate((2, 8)):
        text = f"{found.lower[i]:.1%} certified, {1 - found.upper[i]:.1%} attacked"
        yield f"784-256x4-10, 1,000 digits, linf {level}/255", text
    yield "both radii together", f"{seconds:.0f} s of one core"
