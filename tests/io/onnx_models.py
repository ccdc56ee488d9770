"""Small ONNX models made on the spot, and onnxruntime as the independent opinion on them."""

import os
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import HealthCheck, settings
from onnx import helper, numpy_helper

from pindown.errors import UnsupportedModelError
from pindown.io._onnx.reader import model_from_onnx

OPSETS = (7, 9, 11, 13, 17, 21)
many = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
i64 = np.int64
SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[3] / "shared")) / "models"
DATA = Path(__file__).parents[1] / "data"
# The IR version that came with an operator set; onnxruntime refuses pairs that never existed together.
_IR_VERSIONS = {7: 3, 8: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8}


def make_model(
    nodes, weights, in_shape, out_shape=None, opset=13, weights_as_inputs=None, kind=1, domains=()
):
    """Return a ModelProto with the tensors ``x`` in and ``y`` out.

    Args:
        nodes: Tuples (op, inputs, outputs, attributes); "com.microsoft:Gelu" is of that domain.
        weights: Name -> array.
        in_shape: Shape of ``x``; text is a symbolic length.
        out_shape: Shape of ``y``, or None to declare none.
        opset: Version of the operator set.
        weights_as_inputs: Whether weights are listed as inputs too, as before IR version 4.
        kind: Element type of ``x`` and ``y``, a float32 unless told.
        domains: Pairs of a domain and its version, besides those that nodes name.
    """
    made, used = [], dict(domains)
    for i, (op, inputs, outputs, attributes) in enumerate(nodes):
        domain, _, name = op.rpartition(":")
        if domain:
            used.setdefault(domain, 1)
        made.append(
            helper.make_node(name, inputs, outputs, name=f"{name}_{i}", domain=domain, **attributes)
        )
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    ir_version = _IR_VERSIONS.get(opset, 10)
    listed = []
    if weights_as_inputs or (weights_as_inputs is None and ir_version < 4):
        listed = [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in tensors]
    graph = helper.make_graph(
        made,
        "test",
        [helper.make_tensor_value_info("x", kind, in_shape), *listed],
        [helper.make_tensor_value_info("y", kind, out_shape)],
        tensors,
    )
    opsets = [helper.make_opsetid(*pair) for pair in {"": opset, **used}.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)


def random_inputs(net, n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, net.in_features)).astype(np.float32)


def run_onnxruntime(data, rows, input_shape, optimised=True):
    """Return the flattened outputs of onnxruntime, fed one row at a time."""
    options = onnxruntime.SessionOptions()
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    entry = session.get_inputs()[0]
    shape = [n if isinstance(n, int) and n > 0 else 1 for n in entry.shape]
    assert int(np.prod(shape)) == int(np.prod(input_shape))
    dtype = np.float64 if entry.type == "tensor(double)" else np.float32
    return np.array(
        [session.run(None, {entry.name: row.reshape(shape).astype(dtype)})[0].ravel() for row in rows]
    )


def relative_gap(ours, theirs):
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max()))


def assert_agrees(model, n=20, tol=1e-5, seed=0, **ends):
    """Check that pindown reads the model as the function that onnxruntime computes; return it."""
    data = model.SerializeToString()
    ours = model_from_onnx(data, **ends)
    rows = random_inputs(ours, n, seed)
    theirs = run_onnxruntime(data, rows, ours.input_shape)
    gap = relative_gap(ours(rows), theirs)
    assert gap < tol, gap
    return ours


def assert_exact(model, **how):
    """Check the model's exact form, too; return that."""
    ours = assert_agrees(model, **how)
    net = ours.relu_network()
    rows = random_inputs(ours, 5)
    assert relative_gap(net(rows), ours(rows)) < 1e-9
    return net


def f32(rng, *shape):
    return rng.normal(size=shape).astype("f4")


def one_op(op, in_shape, weights=None, opset=13, names=("x",), out_shape=None, **attributes):
    """A model of one operation on ``x``, whose further inputs are constants."""
    weights = weights or {}
    names = [*names, *weights] if names == ("x",) else list(names)
    return make_model([(op, names, ["y"], attributes)], weights, in_shape, out_shape, opset)


def read(model, **ends):
    return model_from_onnx(model.SerializeToString(), **ends)


def exact(model):
    """Return the exact form of a model that is read."""
    return read(model).relu_network()


def refusal(model, kind=UnsupportedModelError, **ends):
    with pytest.raises(kind) as caught:
        read(model, **ends)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def dense_model(in_shape, out_shape=None, op="Relu"):
    weights = {"W": np.ones((3, 2), "f4")}
    return make_model(
        [("MatMul", ["x", "W"], ["h"], {}), (op, ["h"], ["y"], {})], weights, in_shape, out_shape
    )
