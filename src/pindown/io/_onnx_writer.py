"""ONNX files out: a chain of Gemm and Relu that other tools read."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import dense
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._limits import MAX_FILE_BYTES
from pindown.io.files import choose_dtype, narrowed, write_atomically
from pindown.network import ReluNetwork

_OPSET, _IR_VERSION = 13, 8  # read by every runtime since 2021
_NODES = {"softmax": "Softmax", "log_softmax": "LogSoftmax", "sigmoid": "Sigmoid"}


def write_onnx(net: ReluNetwork, path: Path, dtype: str = "auto") -> None:
    """Write ``.onnx`` or ``.onnx.gz``; the same network gives the same bytes."""
    data = onnx_bytes(net, dtype)
    if path.name.lower().endswith(".gz"):
        data = gzip.compress(data, mtime=0)  # a time stamp would make equal networks unequal files
    write_atomically(path, data)


def onnx_bytes(net: ReluNetwork, dtype: str = "auto") -> bytes:
    """Return the network as a serialised ONNX model.

    The input has the shape (batch, *input_shape) and the output (batch, out_features).
    """
    numbers = choose_dtype(net, dtype)
    _require_small(net, numbers)
    from onnx import TensorProto, helper

    if net.output_activation not in (None, *_NODES):
        raise UnsupportedModelError(
            f"ONNX files are written with the output activations {', '.join(_NODES)}; "
            f"got '{net.output_activation}'."
        )
    kind = TensorProto.FLOAT if numbers == np.float32 else TensorProto.DOUBLE
    nodes, weights = _chain(net, numbers)
    graph = helper.make_graph(
        nodes,
        "pindown",
        [helper.make_tensor_value_info("input", kind, ["batch", *net.input_shape])],
        [helper.make_tensor_value_info("output", kind, ["batch", net.out_features])],
        weights,
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(
        graph, producer_name="pindown", opset_imports=opsets, ir_version=_IR_VERSION
    )
    return bytes(model.SerializeToString(deterministic=True))


def _chain(net: ReluNetwork, numbers: np.dtype[Any]) -> tuple[list[Any], list[Any]]:
    """Return the nodes and the weights they use; the last node makes ``output``."""
    from onnx import helper

    steps: list[tuple[str, list[str], dict[str, Any]]] = []
    weights = []
    if len(net.input_shape) > 1:
        steps.append(("Flatten", [], {"axis": 1}))
    for i, (W, b) in enumerate(net.layers, 1):
        names = [f"layers.{i}.weight", f"layers.{i}.bias"]
        for name, values in zip(names, (dense(W), b), strict=True):
            weights.append(_tensor(name, narrowed(values, numbers, name)))
        steps.append(("Gemm", names, {"transB": 1}))
        if i < net.depth:
            steps.append(("Relu", [], {}))
    if net.output_activation is not None:
        attributes = {} if net.output_activation == "sigmoid" else {"axis": -1}
        steps.append((_NODES[net.output_activation], [], attributes))

    nodes = []
    current = "input"
    for i, (op, names, attributes) in enumerate(steps, 1):
        made = "output" if i == len(steps) else f"tensor.{i}"
        nodes.append(helper.make_node(op, [current, *names], [made], name=f"{op}.{i}", **attributes))
        current = made
    return nodes, weights


def _tensor(name: str, values: NDArray[Any]) -> Any:
    from onnx import TensorProto

    little_endian = values.astype(values.dtype.newbyteorder("<"), copy=False)
    kind = TensorProto.FLOAT if values.dtype == np.float32 else TensorProto.DOUBLE
    return TensorProto(
        name=name,
        dims=values.shape,
        data_type=kind,
        raw_data=np.ascontiguousarray(little_endian).tobytes(),
    )


def _require_small(net: ReluNetwork, numbers: np.dtype[Any]) -> None:
    """Refuse a file that no reader of ONNX could open: one message holds at most 2 GiB."""
    entries = sum(math.prod(W.shape) + b.size for W, b in net.layers)
    if entries * numbers.itemsize >= MAX_FILE_BYTES - 2**20:
        raise ModelFileError(
            f"as ONNX, with sparse layers written in full, the network takes "
            f"{entries * numbers.itemsize / 2**30:,.1f} GiB; ONNX files end at 2 GiB. "
            "Save it as .safetensors, which keeps sparse layers sparse."
        )
