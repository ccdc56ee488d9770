"""Every file that pindown reads, onnxruntime reads too, as the same function.

By hand, ``python -m tests.io.differential KIND SEED COUNT`` with KIND ``random``, ``structure`` or
``bytes`` prints the counts and every difference as JSON. test_differential.py runs it in a process of
its own, because a runtime may crash on what the fuzzer makes.
"""

import json
import sys
from collections import Counter
from dataclasses import fields, replace
from functools import cache

import numpy as np
import onnxruntime

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.reader import model_from_onnx
from pindown.model.operations.normalisation import GroupNorm, LayerNorm
from pindown.model.operations.smooth_function import Smooth
from pindown.model.operations.softmax import LogSoftmax, Softmax
from tests.io.fuzz_corpus import onnx_models
from tests.io.fuzz_mutations import mutated_bytes, mutated_model, pick
from tests.io.random_graphs import random_model

# A sound model for which this runtime has no code (convolution in float64), no memory, or that is newer.
_MISSING = (
    "NOT_IMPLEMENTED",
    "Could not find an implementation",
    "only *guarantees* support",
    "exceeds the supported maximum",
    "Unsupported pooling size",
    "ScalesValidation",
)
FINE = {"same", "refused", "refused, though valid", "not in the runtime", "read here only, with a note"}
_SIZES = (1.0, 1e-3, 1e3)
_SEEDS = 8
_SMOOTH = (Smooth, Softmax, LogSoftmax)
_NORMS = (LayerNorm, GroupNorm)
FLOAT32 = float(np.finfo(np.float32).max)
# What a note of the reader says where a difference is possible.
_NOTED = ("float32", "16-bit")


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


def compare(data, valid=False):
    """Return a word for how the two readers stand to each other, and what is to be said about it.

    Args:
        data: The bytes of a file.
        valid: Whether it is meant to be sound; then the runtime is asked about what we refuse.
    """
    try:
        model = model_from_onnx(data)
    except (ModelFileError, UnsupportedModelError) as error:
        return ("refused, though valid" if valid and _runs(data) else "refused"), str(error)
    try:
        session = _session(data)
        entry = session.get_inputs()[0]
        theirs = [_run(session, entry, row) for row in _rows(model)]
    except Exception as error:  # onnxruntime has many kinds
        text = str(error)
        if any("does not need" in note for note in model.notes):
            return "read here only, with a note", text
        return ("not in the runtime" if any(m in text for m in _MISSING) else "read here only"), text
    for row, values in zip(_rows(model), theirs, strict=True):
        word, text = _at(model, row.astype(np.float64), values)
        if word != "same":
            return word, text
    return "same", ""


def _at(model, row, theirs):
    """Compare at one input."""
    ours, largest = evaluated(model, row)
    if theirs.size != ours.size:
        return "different", f"{ours.size} outputs and {theirs.size}"
    changed = [evaluated(disturbed(model, seed), row, seed)[0] for seed in range(_SEEDS)]
    # Runtimes may take a variance as the difference of two means, which loses more digits.
    factor = 64 if any(isinstance(op, _NORMS) for op in model.operations) else 8
    spread = factor * np.max([np.abs(other - ours) for other in changed], axis=0)
    terms = max(model.in_features, *(int(np.prod(node.shape)) for node in model.nodes))
    allowed = spread + (2.0**-18 + 2.0**-24 * terms) * np.abs(ours) + 1e-37
    agree = np.abs(ours - theirs) <= allowed
    agree |= np.isnan(ours) & np.isnan(theirs) | (ours == theirs) | ~np.isfinite(allowed)
    if agree.all() or _only_ties(model, ours, theirs, agree):
        return "same", ""
    if any(word in note for note in model.notes for word in _NOTED):
        return "same", ""
    if largest > FLOAT32 / 4 or not np.isfinite(theirs).all():
        return "overflow without a note", f"{theirs} {largest}"
    return "different", f"{ours} and {theirs} at {row}, allowed {allowed}"


def _only_ties(model, ours, theirs, agree):
    """Return whether a few integers went to the other neighbour, which the last digit decides."""
    integers = any("uantize" in op.name or "dynamic" in op.name for op in model.operations)
    gap = np.abs(ours - theirs).max(initial=0.0, where=~agree)
    return integers and agree.mean() > 0.99 and gap <= 0.05 * np.abs(theirs).max()


def noise(seed, relative):
    """Return a function that changes float numbers by up to a relative amount."""
    rng = np.random.default_rng(seed)
    return lambda v: v * (1.0 + relative * rng.uniform(-1.0, 1.0, v.shape)) if v.dtype.kind == "f" else v


def evaluated(model, row, seed=None):
    """Return the outputs at a flat input, and the largest number on the way.

    With a seed, every number on the way is changed by a relative 2**-18 and, because float32 loses
    digits below 1e-38, by an absolute 1e-38; what smooth functions return by 1e-6, which is what
    runtimes allow themselves in approximating them.
    """
    change = None if seed is None else noise(seed, 2.0**-18)
    sign = 0.0 if seed is None else (-1.0) ** seed
    values, largest = [], 0.0
    with np.errstate(all="ignore"):
        for i, node in enumerate((None, *model.nodes)):
            if node is None:
                made = row.reshape(1, *model.literal_shape)
            else:
                made = node.operation(*(values[j] for j in node.inputs))
            if change is not None:
                made = change(np.asarray(made, dtype=float)) + sign * 1e-38
                if node is not None and isinstance(node.operation, _SMOOTH):
                    made = made + 1e-6 * np.random.default_rng([seed, i]).uniform(-1, 1, made.shape)
                if node is not None and isinstance(node.operation, _NORMS):
                    made = made + sign * _mean_error(values[node.inputs[0]]) * np.abs(made).max()
            values.append(made)
            largest = max(largest, float(np.abs(made).max(initial=0.0, where=~np.isnan(made))))
    return values[-1].ravel(), largest


def _mean_error(x):
    """Return by how many deviations a mean can be off in float32: numbers that are far from zero."""
    largest, deviation = np.abs(x).max(initial=0.0), x.std()
    return 2.0**-22 * largest / deviation if deviation > 0 else 0.0


def disturbed(model, seed):
    """Return the model with all its numbers off by a relative 2**-18."""
    change = noise(100 + seed, 2.0**-18)
    made = {}
    for node in model.nodes:
        operation = node.operation
        if id(operation) not in made:
            arrays = {
                f.name: change(getattr(operation, f.name))
                for f in fields(operation)
                if isinstance(getattr(operation, f.name), np.ndarray) and f.init
            }
            arrays = {name: values for name, values in arrays.items() if values.dtype.kind == "f"}
            if hasattr(operation, "zero"):
                arrays = {}  # zero points are whole numbers
            made[id(operation)] = replace(operation, **arrays) if arrays else operation
    return replace(model, nodes=tuple(n._replace(operation=made[id(n.operation)]) for n in model.nodes))


def _runs(data):
    """Return whether the runtime reads a file and carries it out."""
    try:
        session = _session(data)
        entry = session.get_inputs()[0]
        shape = [n if isinstance(n, int) and n > 0 else 1 for n in entry.shape]
        _run(session, entry, np.ones(shape).ravel())
    except Exception:  # onnxruntime has many kinds
        return False
    return True


def _rows(model):
    rng = np.random.default_rng(0)
    return [(size * rng.normal(size=model.in_features)).astype(np.float32) for size in _SIZES]


def _session(data):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    # Optimising changes functions: weights beside quantised tensors are quantised as well.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def _run(session, entry, row):
    shape = [n if isinstance(n, int) and n > 0 else 1 for n in entry.shape]
    if shape and int(np.prod(shape)) != row.size:
        shape[0] = 1  # a fixed batch
    kinds = {"tensor(double)": np.float64, "tensor(float16)": np.float16}
    value = row.reshape(shape).astype(kinds.get(entry.type, np.float32))
    return session.run(None, {entry.name: value})[0].astype(np.float64).ravel()


def main(kind, seed, count, start=0):
    counts, examples = Counter(), []
    for index in range(start, start + count):
        print(index, file=sys.stderr, flush=True)
        word, text = compare(case(kind, seed, index), kind == "random")
        counts[word] += 1
        if word not in FINE or (word == "refused, though valid" and "-v" in sys.argv):
            examples.append({"case": index, "what": word, "text": text})
    print(json.dumps({"counts": counts, "examples": examples}))


if __name__ == "__main__":
    main(sys.argv[1], *(int(word) for word in sys.argv[2:] if word != "-v"))
