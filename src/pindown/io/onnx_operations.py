"""Which operations an ONNX file has, as it names them, and which of them are used in unusual ways."""

from __future__ import annotations

from collections import Counter
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.io.files import read_bytes, read_gzip

# Operations whose inputs from some place on have to be constants to be usual.
_CONSTANTS_FROM = {"Gemm": 1, "Conv": 1, "Div": 1, "Gather": 1, "Reshape": 1, "Slice": 1}

# Operations that move numbers, of constants also where no other operation is of constants alone.
_MOVING = {"Identity", "Flatten", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Gather", "Slice"}
_MIN_WEIGHT = 1e-120  # weights below, and divisors above its inverse, are beyond the checker

# Operations that may give a tensor more axes.
_MORE_AXES = {"Reshape", "Unsqueeze", "Gather", "Expand"}


class OnnxOperations(NamedTuple):
    """The operations of a file.

    Attributes:
        counts: How often each is named.
        unusual: Those that are used in an unusual way at least once: a product of two tensors, a scaled
            Gemm, a convolution in groups or of other things than images, ...
        plain: Whether the file holds all of its weights, no operation of its own, no weights of sizes
            near the ends of float64 or of types that are hardly used, and is of opset 7 or later.
    """

    counts: Counter[str]
    unusual: tuple[str, ...]
    plain: bool = True


def operations_of(path: str | PathLike[str]) -> OnnxOperations:
    """Return which operations an ``.onnx`` or ``.onnx.gz`` file has.

    >>> from tempfile import TemporaryDirectory
    >>> from pindown import ReluNetwork
    >>> with TemporaryDirectory() as folder:
    ...     ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])]).save(f"{folder}/net.onnx")
    ...     found = operations_of(f"{folder}/net.onnx")
    >>> found.counts["Relu"], found.unusual
    (1, ())
    """
    import onnx

    file = Path(path)
    data = read_gzip(file) if file.name.lower().endswith(".gz") else read_bytes(file)
    model = onnx.load_from_string(data)
    graph, opsets = model.graph, {each.domain: each.version for each in model.opset_import}
    apart = any(each.external_data for each in graph.initializer)
    sizes = {each.name: len(each.dims) for each in graph.initializer}
    stored = list(graph.initializer)
    context = type(onnx.checker.DEFAULT_CONTEXT)()
    context.ir_version = onnx.IR_VERSION
    context.opset_imports = {"": opsets.get("", 0)}
    taken = [value.type.tensor_type.shape.dim for value in graph.input if value.name not in sizes]
    flat = (
        max(map(len, taken), default=0) <= 2 and not {node.op_type for node in graph.node} & _MORE_AXES
    )
    names, unusual = [], []
    for node in graph.node:
        name = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if name == "Constant":
            sizes[node.output[0]] = len(given["value"].dims) if "value" in given else 0
            stored += [value for value in given.values() if isinstance(value, onnx.TensorProto)]
        names.append(name)
        if _is_unusual(name, list(node.input), given, sizes, flat) or not _is_known(node, context):
            unusual.append(name)
        elif name in _MOVING and node.input[0] in sizes:
            sizes[node.output[0]] = sizes[node.input[0]] if name in ("Identity", "Transpose") else -1
    kinds = onnx.TensorProto
    usual = {kinds.FLOAT16, kinds.FLOAT, kinds.DOUBLE, kinds.INT32, kinds.INT64}
    doubles = [] if apart else [each for each in stored if each.data_type == kinds.DOUBLE]
    extreme = any(_is_extreme(onnx.numpy_helper.to_array(each)) for each in doubles)
    strange = extreme or any(each.data_type not in usual for each in stored)
    plain = not (apart or strange or model.functions) and opsets.get("", 0) >= 7
    return OnnxOperations(Counter(names), tuple(dict.fromkeys(unusual)), plain)


def _is_known(node: Any, context: Any) -> bool:
    """Whether an operation has these inputs and attributes in the file's version, as ONNX defines it."""
    import onnx

    own = onnx.NodeProto()
    own.CopyFrom(node)
    if own.domain not in ("", "ai.onnx"):
        return True  # an operation of somebody else: its name tells
    own.domain = ""
    try:
        onnx.checker.check_node(own, context)
    except onnx.checker.ValidationError:
        return False
    return True


def _is_extreme(values: NDArray[np.float64]) -> bool:
    sizes = np.abs(values[values != 0])
    return bool(((sizes < _MIN_WEIGHT) | (sizes > 1 / _MIN_WEIGHT)).any())


def _is_unusual(
    name: str, inputs: list[str], given: dict[str, Any], sizes: dict[str, int], flat: bool
) -> bool:
    """Return whether an operation is used in an unusual way.

    Args:
        name: Name of the operation.
        inputs: Their names.
        given: Attributes.
        sizes: How many axes constants have.
        flat: Whether the model's input has at most two axes, and nothing gets more.
    """
    constant = [each in sizes for each in inputs if each]
    if constant and all(constant) and name not in _MOVING:
        return True
    if name in {"Squeeze", "Unsqueeze"} and "axes" not in given:
        return len(constant) < 2 or not constant[1]
    if name in _CONSTANTS_FROM and not all(constant[_CONSTANTS_FROM[name] :]):
        return True
    if name == "Mul":
        return sum(constant) != 1
    if name == "Concat":
        return any(constant)
    if name == "Constant":
        return set(given) != {"value"}
    if name == "Dropout":
        return len(inputs) > 2
    if name == "Gemm":
        return (
            given.get("alpha", 1.0) != 1.0 or given.get("beta", 1.0) != 1.0 or bool(given.get("transA"))
        )
    if name == "MatMul":  # a matrix stands on the right, or on the left of a vector or matrix
        own = [sizes[each] for each in inputs if each in sizes]
        return own != [2] or (constant[0] and not flat)
    if name == "Conv":
        padded = given.get("auto_pad", b"NOTSET") in (b"NOTSET", b"VALID")
        return not padded or given.get("group", 1) != 1 or sizes[inputs[1]] != 4
    return False
