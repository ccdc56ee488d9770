"""Small ONNX models made on the spot, and onnxruntime as the independent opinion on them."""

import os
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import HealthCheck, settings
from onnx import helper, numpy_helper

from pindown.errors import UnsupportedModelError
from pindown.io._onnx_evaluate import GraphEvaluator, typed
from pindown.io._onnx_reader import network_from_onnx
from pindown.io._onnx_tensors import decode_tensor

OPSETS = (7, 9, 11, 13, 17, 21)
many = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
i64 = np.int64
SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[3] / "shared")) / "models"
DATA = Path(__file__).parents[1] / "data"
# The IR version that came with an operator set; onnxruntime refuses pairs that never existed together.
_IR_VERSIONS = {7: 3, 8: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 17: 8, 18: 8, 21: 10}


def make_model(nodes, weights, in_shape, out_shape=None, opset=13, weights_as_inputs=None, kind=1):
    """Return a ModelProto with the tensors ``x`` in and ``y`` out.

    Args:
        nodes: Tuples (op, inputs, outputs, attributes).
        weights: Name -> array.
        in_shape: Shape of ``x``; text is a symbolic length.
        out_shape: Shape of ``y``, or None to declare none.
        opset: Version of the operator set.
        weights_as_inputs: Whether weights are listed as inputs too, as before IR version 4.
        kind: Element type of ``x`` and ``y``, a float32 unless told.
    """
    made = [
        helper.make_node(op, inputs, outputs, name=f"{op}_{i}", **attributes)
        for i, (op, inputs, outputs, attributes) in enumerate(nodes)
    ]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    ir_version = _IR_VERSIONS[opset]
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
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version
    )


def random_inputs(net, n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, net.in_features)).astype(np.float32)


def run_onnxruntime(data, rows, input_shape):
    """Return the flattened outputs of onnxruntime, fed one row at a time."""
    options = onnxruntime.SessionOptions()
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


def assert_agrees(model, n=20, tol=1e-5, seed=0):
    """Check that pindown reads the model as the function that onnxruntime computes; return the net."""
    data = model.SerializeToString()
    net = network_from_onnx(data)
    rows = random_inputs(net, n, seed)
    theirs = run_onnxruntime(data, rows, net.input_shape)
    gap = relative_gap(net(rows), theirs)
    assert gap < tol, gap
    evaluator, name, shape = graph_evaluator(model)
    second = [evaluator.output(name, row.reshape(shape).astype(float)).ravel() for row in rows[:3]]
    assert relative_gap(np.array(second), theirs[:3]) < tol
    return net


def graph_evaluator(model):
    """Return a model's evaluator, the tensor that enters the last activation, and the input's shape."""
    graph = model.graph
    stored = {tensor.name: tensor for tensor in graph.initializer}
    source = next(entry for entry in graph.input if entry.name not in stored)
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    output = _before_activation(graph)
    nodes = _needed(graph, output)
    used = {need for node in nodes for need in (*node.input, output)} & stored.keys()
    weights = {n: typed(decode_tensor(stored[n], None), stored[n].data_type) for n in used}
    lengths = [dim.dim_value for dim in source.type.tensor_type.shape.dim]
    declared = [dim.dim_value for dim in graph.output[0].type.tensor_type.shape.dim]
    fixed = len(lengths) > 1 and len(declared) > 1 and declared[0] == lengths[0]
    shape = [1 if n <= 0 or (i == 0 and fixed) else n for i, n in enumerate(lengths)]
    return GraphEvaluator(nodes, weights, source=source.name, opset=opset), output, shape


def _needed(graph, output):
    """Return the nodes that a tensor rests on, sorted."""
    made = {name: node for node in graph.node for name in node.output if name}
    order, seen = [], set()

    def visit(name):
        node = made.get(name)
        if node is not None and id(node) not in seen:
            seen.add(id(node))
            for need in node.input:
                visit(need)
            order.append(node)

    visit(output)
    return order


def _before_activation(graph):
    """Return the tensor that enters the last activation, or the output."""
    made = {name: node for node in graph.node for name in node.output}
    start = name = graph.output[0].name
    while name in made and made[name].op_type == "Identity":
        name = made[name].input[0]
    if name in made and made[name].op_type in ("Softmax", "LogSoftmax", "Sigmoid"):
        return made[name].input[0]
    return start


def f32(rng, *shape):
    return rng.normal(size=shape).astype("f4")


def one_op(op, in_shape, weights=None, opset=13, names=("x",), out_shape=None, **attributes):
    """A model of one operation on ``x``, whose further inputs are constants."""
    weights = weights or {}
    names = [*names, *weights] if names == ("x",) else list(names)
    return make_model([(op, names, ["y"], attributes)], weights, in_shape, out_shape, opset)


def read(model):
    return network_from_onnx(model.SerializeToString())


def refusal(model, kind=UnsupportedModelError):
    with pytest.raises(kind) as caught:
        read(model)
    return str(caught.value)


def dense_model(in_shape, out_shape=None, op="Relu"):
    weights = {"W": np.ones((3, 2), "f4")}
    return make_model(
        [("MatMul", ["x", "W"], ["h"], {}), (op, ["h"], ["y"], {})], weights, in_shape, out_shape
    )
