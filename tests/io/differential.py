"""Every file that pindown reads, onnxruntime reads too, as the same function.

By hand, ``python -m tests.io.differential KIND SEED COUNT`` with KIND ``random``, ``structure`` or
``bytes`` prints the counts and every difference as JSON. test_differential.py runs it in a process of
its own, because a runtime may crash on what the fuzzer makes.
"""

import json
import sys
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import onnx
import onnxruntime

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._agreement import _outputs, noise
from pindown.io._onnx_reader import network_from_onnx
from tests.io.fuzz_corpus import onnx_models
from tests.io.fuzz_mutations import mutated_bytes, mutated_model, pick
from tests.io.onnx_models import graph_evaluator
from tests.io.random_graphs import random_model

# A sound model for which this runtime has no code (convolution in float64), no memory, or that is newer.
_MISSING = (
    "NOT_IMPLEMENTED",
    "Could not find an implementation",
    "only *guarantees* support",
    "exceeds the supported maximum",
    "Unsupported pooling size",
)
FINE = {"same", "refused", "not in the runtime", "read here only, with a note"}
_SIZES = (1.0, 1e-3, 1e3)
FLOAT32 = float(np.finfo(np.float32).max)


def case(kind, seed, index):
    """Return the bytes of one file; each has its own generator, so that a run can go on anywhere."""
    rng = np.random.default_rng([seed, index])
    if kind == "random":
        return random_model(rng).SerializeToString()
    model = pick(rng, _corpus()) if rng.integers(2) else random_model(rng)
    return (
        mutated_model(model, rng)
        if kind == "structure"
        else mutated_bytes(model.SerializeToString(), rng)
    )


@cache
def _corpus():
    return list(onnx_models())


def compare(data):
    """Return a word for how the two readers stand to each other, and what is to be said about it."""
    try:
        net = network_from_onnx(data)
    except (ModelFileError, UnsupportedModelError) as error:
        return "refused", str(error)
    try:
        session = _session(data)
        entry = session.get_inputs()[0]
        theirs = [_run(session, entry, row) for row in _rows(net)]
    except Exception as error:  # onnxruntime has many kinds
        text = str(error)
        if any("does not need" in note for note in net.notes):
            return "read here only, with a note", text
        return ("not in the runtime" if any(m in text for m in _MISSING) else "read here only"), text
    evaluate, graph = _evaluator(net), graph_evaluator(onnx.ModelProto.FromString(data))
    for row, values in zip(_rows(net), theirs, strict=True):
        ours = _activated(net, evaluate(row))
        if values.size != ours.size:
            return "different", f"{ours.size} outputs and {values.size}"
        allowed, largest = _allowed(graph, net, row)
        allowed = allowed + _of_float64(net, row)
        if largest > FLOAT32 / 4 or not np.isfinite(values).all():
            if any("float32" in note for note in net.notes):
                continue
            return "overflow without a note", f"{values} {largest}"
        if (np.abs(ours - values) > allowed).any():
            return "different", f"{ours} and {values} at {row}, allowed {allowed}"
    return "same", ""


def _evaluator(net):
    """Return the function of the network; where it is cheap, without the rounding that float64 adds."""
    if net.n_parameters > 1_000:
        return lambda row: net(row.astype(np.float64))
    exact = net.as_fractions()
    return lambda row: np.array([float(v) for v in exact([Fraction(float(v)) for v in row])])


def _of_float64(net, row):
    """Return what weights rounded to float64, not to the rationals they come from, may do."""
    a, b = (_outputs(net, row[None].astype(float), np.random.default_rng(s))[0] for s in (0, 1))
    return 2.0**-14 * np.abs(a - b)


def _rows(net):
    rng = np.random.default_rng(0)
    return [(size * rng.normal(size=net.in_features)).astype(np.float32) for size in _SIZES]


def _session(data):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def _run(session, entry, row):
    shape = [n if isinstance(n, int) and n > 0 else 1 for n in entry.shape]
    if shape and int(np.prod(shape)) != row.size:
        shape[0] = 1  # a fixed batch
    kinds = {"tensor(double)": np.float64, "tensor(float16)": np.float16}
    value = row.reshape(shape).astype(kinds.get(entry.type, np.float32))
    return session.run(None, {entry.name: value})[0].astype(np.float64).ravel()


def _activated(net, logits):
    if net.output_activation == "sigmoid":
        return 1 / (1 + np.exp(-logits))
    if net.output_activation is None:
        return logits
    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    return shares if net.output_activation == "softmax" else np.log(shares)


def _allowed(graph, net, row):
    """Return what rounding in float32 may do to the outputs, and the largest number on the way.

    Every number on the way is changed by a relative 2**-18 and, because float32 loses digits below
    1e-38, by an absolute 1e-38.
    """
    evaluator, name, shape = graph
    x = row.astype(np.float64).reshape(shape)
    plain = evaluator(x)
    largest = max(
        (float(np.abs(v).max(initial=0.0)) for v in plain.values() if v.dtype.kind == "f"), default=0.0
    )

    def tiny(change, sign):
        return lambda v: change(v) + sign * 1e-38 if v.dtype.kind == "f" else v

    spreads = []
    for seed in range(4):
        changed = evaluator.output(name, x, tiny(noise(seed, 2.0**-18), (-1) ** seed))
        spreads.append(np.abs(changed - evaluator.output(name, x)).ravel())
    spread = 8 * np.max(spreads, axis=0)
    if net.output_activation is not None:
        spread = np.full(spread.shape, 2 * spread.max() + 1e-5)
    return spread + 2.0**-18 * np.abs(evaluator.output(name, x)).ravel() + 1e-37, largest


def main(kind, seed, count, start=0):
    counts, examples = Counter(), []
    for index in range(start, start + count):
        print(index, file=sys.stderr, flush=True)
        word, text = compare(case(kind, seed, index))
        counts[word] += 1
        if word not in FINE:
            examples.append({"case": index, "what": word, "text": text})
    print(json.dumps({"counts": counts, "examples": examples}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
