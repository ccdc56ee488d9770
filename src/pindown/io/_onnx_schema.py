"""Is a graph what the ONNX standard says, before any number is looked at? As strict as a runtime is.

Versions, wires and the batch axis; and for every node the standard's own tables (``onnx.defs``) say how
many inputs and outputs it has, of which element types, which have to agree, and which attributes exist.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._limits import MAX_NODES

Types: TypeAlias = dict[str, str]  # name of a tensor -> "tensor(float)" and the like
_FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors"}
_FORMAL = onnx.defs.OpSchema.FormalParameterOption
DEFAULT_DOMAINS = ("", "ai.onnx")
_OLDEST_OPSET, _NEWEST_OPSET = 7, 28


def check_nodes(graph: Any, opset: int, operations: Container[str], label: Any) -> list[int]:
    """Refuse a graph with a node that no runtime would accept.

    Args:
        graph: The ``GraphProto``; its nodes may stand in any order.
        opset: Version of the standard's operator set.
        operations: Names of the operations to look at.
        label: From a node and its number to the words that name it in a message.

    Returns:
        The numbers of the nodes, in an order in which they can be carried out.

    Raises:
        ModelFileError: If inputs, outputs, element types or attributes are not the operation's.
    """
    types = {tensor.name: _tensor_type(tensor.data_type) for tensor in graph.initializer}
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for entry in graph.input:
        declared = _declared(entry)
        if entry.name in shapes and not _fits(entry, shapes[entry.name]):
            raise ModelFileError(
                f"the input '{entry.name}' is declared with another shape than its weight."
            )
        if declared and types.setdefault(entry.name, declared) != declared:
            raise ModelFileError(
                f"the input '{entry.name}' is declared as {declared}; its weight is {types[entry.name]}."
            )
    names = [node.name for node in graph.node if node.name]
    if len(set(names)) < len(names):
        raise ModelFileError("two nodes of the graph have the same name.")
    order = []
    for index, node in _in_order(graph, types):
        _check_node(node, opset, operations, types, label(node, index))
        order.append(index)
    for entry in (*graph.input, *graph.output, *graph.value_info):
        if entry.HasField("type") and entry.type.WhichOneof("value") != "tensor_type":
            raise ModelFileError(f"'{entry.name}' is not declared as a tensor.")
        if entry.type.HasField("tensor_type") and not entry.type.tensor_type.elem_type:
            raise ModelFileError(f"'{entry.name}' is declared as a tensor of no element type.")
    for entry in (*graph.output, *graph.value_info):
        declared = _declared(entry)
        if declared and types.get(entry.name, "") not in ("", declared):
            raise ModelFileError(
                f"the tensor '{entry.name}' is declared as {declared}; it is {types[entry.name]}."
            )
    return order


def _in_order(graph: Any, known: Types) -> Iterator[tuple[int, Any]]:
    """Yield every node after those that make its inputs; the caller makes its outputs known."""
    missing = [{name for name in node.input if name and name not in known} for node in graph.node]
    readers: dict[str, list[int]] = {}
    for index, names in enumerate(missing):
        for name in names:
            readers.setdefault(name, []).append(index)
    ready = [index for index, names in enumerate(missing) if not names]
    done = 0
    while ready:
        index = ready.pop()
        yield index, graph.node[index]
        done += 1
        for name in graph.node[index].output:
            for reader in readers.pop(name, ()):
                missing[reader].discard(name)
                if not missing[reader]:
                    ready.append(reader)
    if done == len(missing):
        return
    made = {name for node in graph.node for name in node.output}
    for name in readers:
        if name not in made:
            raise ModelFileError(
                f"the tensor '{name}' is used but no node or weight of the file makes it "
                "(sparse weights are not read)."
            )
    raise ModelFileError(f"the graph runs in a circle through the tensor '{min(readers)}'.")


def _check_node(node: Any, opset: int, operations: Container[str], types: Types, label: str) -> None:
    if not isinstance(node.op_type, str):  # protobuf hands out bytes that are no text as they are
        raise ModelFileError("the ONNX file is damaged: the name of an operation is not valid text.")
    if node.domain not in DEFAULT_DOMAINS or node.op_type not in operations:
        types.update((name, "") for name in node.output)  # nothing is known of it
        return
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, "")
    except onnx.defs.SchemaError:
        raise ModelFileError(
            f"{label}: there is no operation {node.op_type} in ONNX operator set {opset}."
        ) from None
    _check_count(node.input, schema.inputs, schema.min_input, schema.max_input, f"{label}: input")
    _check_count(node.output, schema.outputs, schema.min_output, schema.max_output, f"{label}: output")
    _check_attributes(node, schema, label)
    bound = _bind(node, schema, types, label)
    for i, name in enumerate(node.output):
        if name:
            formal = schema.outputs[min(i, len(schema.outputs) - 1)]
            types[name] = _output_type(node, formal, bound, schema)


def _check_count(names: Any, formals: Any, least: int, most: int, label: str) -> None:
    if not least <= len(names) <= most:
        allowed = str(least) if least == most else f"{least} to {most}"
        raise ModelFileError(f"{label}s: it has {len(names)}; the operation takes {allowed}.")
    for i, name in enumerate(names):
        if not name and formals[min(i, len(formals) - 1)].option != _FORMAL.Optional:
            raise ModelFileError(f"{label} {i + 1} must not be left out.")


def _check_attributes(node: Any, schema: Any, label: str) -> None:
    names = [attribute.name for attribute in node.attribute]
    for attribute in node.attribute:
        known = schema.attributes.get(attribute.name)
        if known is None:
            raise ModelFileError(f"{label}: {node.op_type} has no attribute '{attribute.name}'.")
        if attribute.type != known.type.value or not _holds_its_type(attribute):
            raise ModelFileError(f"{label}: the attribute '{attribute.name}' has the wrong type.")
    if len(set(names)) < len(names):
        raise ModelFileError(f"{label}: an attribute is given twice.")
    for name, known in schema.attributes.items():
        if known.required and name not in names:
            raise ModelFileError(f"{label}: the attribute '{name}' is missing.")


def _holds_its_type(attribute: Any) -> bool:
    """Return whether the one value that is there is of the type that the attribute claims."""
    for kind, field in _FIELDS.items():
        single = not field.endswith("s") or field == "s"
        there = attribute.HasField(field) if single else len(getattr(attribute, field)) > 0
        if there != (attribute.type == kind) and (there or single):
            return False
    return True


def _bind(node: Any, schema: Any, types: Types, label: str) -> dict[str, str]:
    """Return which element type each of the operation's type variables stands for in this node."""
    allowed = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    bound: dict[str, str] = {}
    for i, name in enumerate(node.input):
        formal = schema.inputs[min(i, len(schema.inputs) - 1)]
        given = types.get(name, "") if name else ""
        if not given:
            continue
        variable = formal.type_str
        if given not in allowed.get(variable, {variable}):
            raise ModelFileError(f"{label}: its input {i + 1} is {given}, which it does not take.")
        if formal.is_homogeneous and bound.setdefault(variable, given) != given:
            raise ModelFileError(
                f"{label}: its inputs are {bound[variable]} and {given}; they have to be of one type."
            )
    return bound


def _output_type(node: Any, formal: Any, bound: dict[str, str], schema: Any) -> str:
    """Return the element type of an output, or nothing if only the operation itself knows it."""
    if formal.type_str in bound:
        return bound[formal.type_str]
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type == "Cast":
        return _tensor_type(attributes["to"].i)
    if "value" in attributes and node.op_type in ("Constant", "ConstantOfShape"):
        return _tensor_type(attributes["value"].t.data_type)
    if node.op_type == "ConstantOfShape":
        return "tensor(float)"
    if node.op_type == "Constant":
        return "tensor(float)" if any("float" in name for name in attributes) else "tensor(int64)"
    allowed = [
        c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == formal.type_str
    ]
    if not allowed:
        return str(formal.type_str)
    return str(allowed[0][0]) if len(allowed[0]) == 1 else ""


def _fits(entry: Any, shape: list[int]) -> bool:
    if not entry.type.tensor_type.HasField("shape"):
        return True
    dims = entry.type.tensor_type.shape.dim
    lengths = [dim.dim_value if dim.HasField("dim_value") else None for dim in dims]
    return len(lengths) == len(shape) and all(
        m in (None, n) for m, n in zip(lengths, shape, strict=True)
    )


def _declared(entry: Any) -> str:
    kind = entry.type.tensor_type.elem_type if entry.type.HasField("tensor_type") else 0
    return _tensor_type(kind) if kind else ""


def _tensor_type(number: int) -> str:
    """Return ONNX's name of a tensor of an element type, for instance "tensor(float)"."""
    try:
        name = onnx.TensorProto.DataType.Name(number or -1)
    except ValueError:
        raise ModelFileError(f"there is no element type number {number}.") from None
    return f"tensor({name.lower()})"


@dataclass(frozen=True)
class ModelInput:
    """The model's one input.

    Attributes:
        name: Its name in the graph.
        shape: The literal shape with a batch of one.
        sample_shape: The shape of one sample.
        fixed_batch: The batch size the model was exported with, if it is fixed and above one.
    """

    name: str
    shape: tuple[int, ...]
    sample_shape: tuple[int, ...]
    fixed_batch: int | None


def operator_set(model: Any) -> int:
    """Return the version of ONNX's own operator set that the model is written for."""
    if not 1 <= model.ir_version <= onnx.IR_VERSION:
        raise ModelFileError(
            f"the file claims version {model.ir_version} of the ONNX format; "
            f"the last one known here is {onnx.IR_VERSION}."
        )
    versions = [entry.version for entry in model.opset_import if entry.domain in DEFAULT_DOMAINS]
    if not versions:
        raise ModelFileError("the file names no ONNX operator set; it is damaged or not an ONNX model.")
    if not _OLDEST_OPSET <= versions[0] <= _NEWEST_OPSET:
        raise UnsupportedModelError(
            f"the model is written for ONNX operator set {versions[0]}; pindown reads "
            f"{_OLDEST_OPSET} to {_NEWEST_OPSET}. Export it again with opset_version=17."
        )
    return int(versions[0])


def producers(graph: Any) -> dict[str, tuple[int, int]]:
    """Return, for every tensor a node makes, that node's index and which output it is."""
    if len(graph.node) > MAX_NODES:
        raise UnsupportedModelError(
            f"the graph has {len(graph.node):,} nodes; the limit is {MAX_NODES:,}."
        )
    given = {entry.name for entry in (*graph.input, *graph.initializer)}
    made: dict[str, tuple[int, int]] = {}
    for index, node in enumerate(graph.node):
        for slot, name in enumerate(node.output):
            if name in given:
                raise ModelFileError(f"a node makes the tensor '{name}', which is an input or a weight.")
            if name in made:
                raise ModelFileError(f"the tensor '{name}' is made by two nodes; the file is damaged.")
            if name:
                made[name] = (index, slot)
    return made


def batched(entry: Any, output_length: int | None) -> ModelInput:
    """Find the batch axis: a first axis that is symbolic, of length 1, or also the output's first."""
    dims = entry.type.tensor_type.shape.dim
    if any(dim.HasField("dim_value") and dim.dim_value == 0 for dim in dims):
        raise ModelFileError(f"the input '{entry.name}' has an axis of length 0.")
    lengths = [dim.dim_value if dim.dim_value > 0 else None for dim in dims]
    rank = len(lengths)
    if rank == 0:
        raise UnsupportedModelError(f"the input '{entry.name}' is a single number without axes.")
    first = lengths[0]
    passed_through = first is not None and first == output_length
    has_batch = rank > 1 and (first is None or first == 1 or passed_through)
    for i, (dim, length) in enumerate(zip(dims, lengths, strict=True)):
        if length is None and not (i == 0 and has_batch):
            raise UnsupportedModelError(
                f"axis {i} of the input '{entry.name}' has no fixed length ('{dim.dim_param or '?'}'); "
                "only the batch axis may be symbolic. Export the model with a fixed input shape."
            )
    fixed = [length for length in lengths if length is not None]
    if not has_batch:
        return ModelInput(entry.name, tuple(fixed), tuple(fixed), None)
    sample = tuple(fixed if first is None else fixed[1:])
    return ModelInput(entry.name, (1, *sample), sample, first if first not in (None, 1) else None)


def first_length(entry: Any) -> int | None:
    """Return the declared length of an output's first axis, if it has one that can be a batch."""
    dims = entry.type.tensor_type.shape.dim
    return int(dims[0].dim_value) if len(dims) > 1 else None


def require_over_classes(proto: Any, shape: tuple[int, ...], opset: int) -> None:
    """Check that a final softmax normalises over all outputs of a sample, not over, say, pixels."""
    if proto.op_type == "Sigmoid":
        return
    flattens = opset < 13  # all axes from this one on used to count as one
    given = [attribute.i for attribute in proto.attribute if attribute.name == "axis"]
    axis = given[0] if given else (1 if flattens else -1)
    rank, size = len(shape), int(np.prod(shape))
    if rank == 0 or not -rank <= axis < rank:
        raise ModelFileError(f"{proto.op_type} names axis {axis} of a tensor of rank {rank}.")
    axis %= rank
    together = int(np.prod(shape[axis:])) if flattens else shape[axis]
    if together != size:
        raise UnsupportedModelError(
            f"the last {proto.op_type} works along axis {axis} of a tensor of shape {shape}; "
            "pindown reads one over all outputs."
        )
