"""ONNX operations that stand for other nodes: those that define them, or a branch that is taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
from onnx import helper

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.node import Node, Rule, Value
from pindown.io._onnx.tensors import decode_tensor


def _by_definition(node: Node) -> list[Value]:
    """Carry out the nodes that the standard defines an operation by."""
    schema = onnx.defs.get_schema(node.op, node.opset, "")
    body = _body(node, schema)
    if body is None:
        raise UnsupportedModelError(f"{node.op} is not read in operator set {node.opset}.")
    values = {
        name: value for name, value in zip(body.input, node.inputs, strict=False) if value is not None
    }
    given = set(values)
    nodes = [_bound(inner, node, schema, body) for inner in body.node]
    for inner in nodes:
        inner.input[:] = [
            name if name not in body.input or name in given else "" for name in inner.input
        ]
    opsets = {entry.domain: entry.version for entry in body.opset_import}
    wanted = list(body.output)[: max(1, sum(map(bool, node.proto.output)))]
    return node.expand(nodes, values, wanted, opsets)


def _body(node: Node, schema: Any) -> Any | None:
    """Return the definition that fits the node's inputs, as a ``FunctionProto``."""
    if not schema.has_context_dependent_function:
        return schema.function_body if schema.has_function else None
    types = []
    for i, value in enumerate(node.inputs):
        kind = onnx.TensorProto.DataType.Value(
            _PROTO_NAMES.get(node.type(i), node.type(i).upper()) or "FLOAT"
        )
        shape = () if value is None else value.shape
        info = helper.make_tensor_type_proto(kind, shape) if value is not None else onnx.TypeProto()
        types.append(info.SerializeToString())
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= node.opset]
    version = max(versions, default=schema.context_dependent_function_opset_versions[0])
    data = schema.get_context_dependent_function_with_opset_version(
        version, node.proto.SerializeToString(), types
    )
    return onnx.FunctionProto.FromString(data)


_PROTO_NAMES = {"": "FLOAT"}


def _bound(inner: Any, node: Node, schema: Any, body: Any) -> Any:
    """Return a copy of a node in a definition, with the attributes that it takes from the outside."""
    made = onnx.NodeProto()
    made.CopyFrom(inner)
    given = {attribute.name: attribute for attribute in node.proto.attribute}
    given = {a.name: a for a in body.attribute_proto} | given
    del made.attribute[:]
    for attribute in inner.attribute:
        if not attribute.ref_attr_name:
            made.attribute.append(attribute)
            continue
        source = given.get(attribute.ref_attr_name)
        if source is None and attribute.ref_attr_name in schema.attributes:
            source = schema.attributes[attribute.ref_attr_name].default_value
        if source is not None and source.type:
            bound = made.attribute.add()
            bound.CopyFrom(source)
            bound.name = attribute.name
    return made


# ---------------------------------------------------------------------- branches


def _if(node: Node) -> list[Value]:
    """Carry out the branch that a constant condition chooses."""
    value = node.value(0)
    if not hasattr(value, "dtype"):
        raise UnsupportedModelError(
            "If chooses by the model's input, which is control flow; export a model without branches."
        )
    branch = node.graph("then_branch" if bool(value.reshape(-1)[0]) else "else_branch")  # type: ignore[union-attr]
    if branch is None:
        raise ModelFileError("If lacks a branch.")
    values: dict[str, Value] = {
        tensor.name: decode_tensor(tensor, node.reading.folder) for tensor in branch.initializer
    }
    return node.expand(list(branch.node), values, [entry.name for entry in branch.output], None)


def outer_names(proto: Any) -> Iterator[str]:
    """Yield the tensors that a node reads, also those that the graphs inside it take from around it."""
    yield from proto.input
    for attribute in proto.attribute:
        for graph in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
            inside = {entry.name for entry in (*graph.input, *graph.initializer)}
            inside |= {name for inner in graph.node for name in inner.output}
            for inner in graph.node:
                yield from (name for name in outer_names(inner) if name not in inside)
            yield from (entry.name for entry in graph.output if entry.name not in inside)


EXPANDED: dict[str, Rule] = {
    "AffineGrid": _by_definition,
    "Attention": _by_definition,
    "CenterCropPad": _by_definition,
    "If": _if,
    "RotaryEmbedding": _by_definition,
    "SwiGLU": _by_definition,
}
