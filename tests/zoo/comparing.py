"""How far pindown is from the tool that made a file or module, and what reading and evaluating cost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper

from pindown.model import Model
from pindown.model.operations.integers import Quantize
from pindown.model.operations.moves import Constant
from tests.zoo.exports import INTEGERS, Shelf, run, run_integers, session_of, widened
from tests.zoo.models import ZOO, inputs_of

ROOT = Path(__file__).parents[2]


def gap(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest difference, as a part of the output's size."""
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


class IntegerGap(NamedTuple):
    """How a model and onnxruntime differ on a file with integers.

    Attributes:
        effect: Size of the difference (root mean square), as a part of what the integers changed.
        steps: The largest difference in steps of the output; None where the output has no fixed steps.
        equal: Share of inputs on which all output integers (or the first five digits) are equal.
    """

    effect: float
    steps: float | None
    equal: float


def output_step(path: Path) -> float | None:
    """Return the distance of neighbouring outputs, where a file ends with scaled integers."""
    graph = onnx.load(path).graph
    numbers = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.output[0] == graph.output[0].name:
            return float(numpy_helper.to_array(numbers[node.input[1]]))
    return None


def integer_gap(model: Model, path: Path, float_path: Path, rows: np.ndarray) -> IntegerGap:
    """Compare on a file with integers; ``float_path`` is what it was made from.

    onnxruntime carries the file out node by node, as it stands.
    """
    ours, theirs = model(rows), run(path, rows, optimised=False)
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    step = output_step(path)
    unit = step or 1e-5 * np.abs(theirs).max()
    off = np.abs(ours - theirs) / unit
    change = np.linalg.norm(theirs - run(float_path, rows))
    equal = float((off < 0.5).all(axis=1).mean())
    return IntegerGap(
        float(np.linalg.norm(ours - theirs) / change), float(off.max()) if step else None, equal
    )


class NodeGap(NamedTuple):
    """How one node's integers differ, both computed from onnxruntime's integers before it.

    Attributes:
        name: The node.
        share: Share of entries that differ.
        largest: The largest difference.
        from_half: Of a Quantize: how far x / scale is from a half, at most, where entries differ.
    """

    name: str
    share: float
    largest: float
    from_half: float | None


def node_gaps(model: Model, path: Path, rows: np.ndarray) -> list[NodeGap]:
    """Compare the integers of every node that makes some, handing onnxruntime's on to the next."""
    theirs = run_integers(path, rows)
    made = [rows.reshape(len(rows), *model.literal_shape).astype(np.float64)]
    last = {node.name: node for node in model.nodes}
    found = []
    for node in model.nodes:
        inputs = [made[i] for i in node.inputs]
        ours = node.operation(*inputs)
        at = re.match(r"node (\d+) ", node.name)
        expected = theirs.get(int(at[1])) if at and node is last[node.name] else None
        if expected is not None and not isinstance(node.operation, Constant):
            off = np.abs(ours - expected)
            halves = None
            if isinstance(node.operation, Quantize) and off.any():
                quotient = (inputs[0] / node.operation.scale)[off > 0]
                halves = float(np.abs(quotient - np.floor(quotient) - 0.5).max())
            found.append(NodeGap(node.name, float((off > 0).mean()), float(off.max()), halves))
            ours = expected
        made.append(ours)
    return found


def settled(model: onnx.ModelProto, row: np.ndarray) -> onnx.ModelProto:
    """Return a model with stored numbers for what depends on the input's shape alone.

    They are those that onnxruntime computes on the way, in the file's own type: the scale of attention
    is made from a width, with float16's rounding in a float16 file.
    """
    known, fixed = {tensor.name for tensor in model.graph.initializer}, []
    for i, node in enumerate(model.graph.node):
        if node.op_type == "Shape" or all(name in known for name in node.input if name):
            known.update(node.output)
            fixed.append(i)
    names = [name for i in fixed for name in model.graph.node[i].output if name]
    if not names:
        return model
    asked, made = onnx.ModelProto(), onnx.ModelProto()
    for copy in (asked, made):
        copy.CopyFrom(model)
    asked.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = session_of(asked, optimised=False)
    values = session.run(names, {session.get_inputs()[0].name: row[None].astype(np.float16)})
    for i in reversed(fixed):
        del made.graph.node[i]
    stored = zip(values, names, strict=True)
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), name) for v, name in stored)
    return made


def compare(model: Model, shelf: Shelf, name: str, kind: str, n: int) -> float | IntegerGap:
    """Compare with onnxruntime on n inputs.

    A float16 file is compared with itself in float32, its constants computed in float16: rounding of
    what depends on the input is onnxruntime's own.
    """
    path, rows = shelf.file(name, kind), inputs_of(ZOO[name].shape, n)
    if kind in INTEGERS:
        return integer_gap(model, path, shelf.file(name, "old"), rows)
    if kind == "float16":
        return gap(model(rows), run(widened(settled(onnx.load(path), rows[0])), rows))
    return gap(model(rows), run(path, rows))


# ---------------------------------------------------------------------- cost

_READ = """
import re, sys, time
from pathlib import Path
from pindown import load
wall, cpu = time.perf_counter(), time.process_time()
model = load(sys.argv[1])
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(min(wall, cpu), int(peak[1]) / 1000)
"""
_EVALUATE = """
import sys, time
from pindown import load
from tests.zoo.models import ZOO, inputs_of, module_of
import torch

name, path, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.set_num_threads(1)
X = inputs_of(ZOO[name].shape, n)
model, module, T = load(path), module_of(name).double(), torch.from_numpy(X).double()

def best(action):
    times = []
    for _ in range(3):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)

with torch.no_grad():
    print(best(lambda: model(X)), best(lambda: module(T)))
"""


def fresh(script: str, *words: str, **environment: str) -> list[float]:
    """Run a script in a new process with one thread, and return the numbers that it prints."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=ROOT,
        env={**os.environ, **threads, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [float(word) for word in done.stdout.split()]


def cost_of_reading(path: Path) -> tuple[float, float]:
    """Return seconds and the peak of all memory of a new process in megabytes."""
    seconds, megabytes = fresh(_READ, str(path))
    return seconds, megabytes


def cost_of_evaluating(name: str, path: Path, n: int = 4) -> tuple[float, float]:
    """Return seconds for n inputs, of pindown, which uses no torch for this, and of torch in float64."""
    ours, theirs = fresh(_EVALUATE, name, str(path), str(n))
    return ours, theirs
