"""Is a graph what the ONNX standard says, before any number is looked at? As strict as a runtime is.

Versions, wires and the batch axis; and for every node the standard's own tables (``onnx.defs``) say how
many inputs and outputs it has, of which element types, which have to agree, and which attributes exist.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any, TypeAlias

import onnx

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.contrib import Contract
from pindown.io._onnx.expansion import outer_names
from pindown.model.limits import MAX_NODES

Types: TypeAlias = dict[str, str]  # name of a tensor -> "tensor(float)" and the like
_FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors"}
_FORMAL = onnx.defs.OpSchema.FormalParameterOption
DEFAULT_DOMAINS = ("", "ai.onnx")
_OLDEST_OPSET, _NEWEST_OPSET = 7, 28


def check_nodes(
    graph: Any,
    opsets: Mapping[str, int],
    rules: Mapping[str, Container[str]],
    contracts: Mapping[tuple[str, str], Contract],
    label: Any,
) -> tuple[list[int], Types]:
    """Refuse a graph with a node that no runtime would accept.

    Args:
        graph: The ``GraphProto``; its nodes may stand in any order.
        opsets: Version of the operator set of each domain.
        rules: For each domain, the operations to look at.
        contracts: What nodes may have of which the standard knows nothing, by domain and operation.
        label: From a node and its number to the words that name it in a message.

    Returns:
        The numbers of the nodes, in an order in which they can be carried out, and the element type of
        every tensor where it is known.

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
        _check_node(node, opsets, rules, contracts, types, label(node, index))
        order.append(index)
    for entry in (*graph.input, *graph.output, *graph.value_info):
        if entry.type.HasField("tensor_type") and not entry.type.tensor_type.elem_type:
            raise ModelFileError(f"'{entry.name}' is declared as a tensor of no element type.")
    for entry in (*graph.output, *graph.value_info):
        declared = _declared(entry)
        if declared and types.get(entry.name, "") not in ("", declared):
            raise ModelFileError(
                f"the tensor '{entry.name}' is declared as {declared}; it is {types[entry.name]}."
            )
    return order, types


def _in_order(graph: Any, known: Types) -> Iterator[tuple[int, Any]]:
    """Yield every node after those that make its inputs; the caller makes its outputs known."""
    missing = [{name for name in outer_names(node) if name and name not in known} for node in graph.node]
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


def _check_node(
    node: Any,
    opsets: Mapping[str, int],
    rules: Mapping[str, Container[str]],
    contracts: Mapping[tuple[str, str], Contract],
    types: Types,
    label: str,
) -> None:
    if not isinstance(node.op_type, str):  # protobuf hands out bytes that are no text as they are
        raise ModelFileError("the ONNX file is damaged: the name of an operation is not valid text.")
    domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
    if node.op_type not in rules.get(domain, ()):
        types.update((name, "") for name in node.output)  # nothing is known of it
        return
    if domain not in opsets:
        raise ModelFileError(f"{label}: the file names no operator set of the domain '{domain}'.")
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets[domain], domain)
    except onnx.defs.SchemaError:
        contract = contracts.get((domain, node.op_type))
        if contract is None:
            raise ModelFileError(
                f"{label}: there is no operation {node.op_type} in ONNX operator set {opsets[domain]}."
            ) from None
        _check_contract(node, contract, types, label)
        return
    if schema.deprecated and node.op_type in ("Scatter", "Upsample"):
        raise ModelFileError(
            f"{label}: {node.op_type} was taken out of ONNX before operator set {opsets[domain]}."
        )
    _check_count(node.input, schema.inputs, schema.min_input, schema.max_input, f"{label}: input")
    _check_count(node.output, schema.outputs, schema.min_output, schema.max_output, f"{label}: output")
    _check_attributes(node, schema, label)
    bound = _bind(node, schema, types, label)
    for i, name in enumerate(node.output):
        if name:
            formal = schema.outputs[min(i, len(schema.outputs) - 1)]
            types[name] = _output_type(node, formal, bound, schema)


def _check_contract(node: Any, contract: Contract, types: Types, label: str) -> None:
    """Check a node of which the standard knows nothing."""
    allowed = f"{contract.least} to {contract.most}"
    if not contract.least <= len(node.input) <= contract.most:
        raise ModelFileError(f"{label}: it has {len(node.input)} inputs; the operation takes {allowed}.")
    if not 1 <= len(node.output) <= contract.outputs:
        raise ModelFileError(
            f"{label}: it has {len(node.output)} outputs; {contract.outputs} can be there."
        )
    if not all(node.input[: contract.least]):
        raise ModelFileError(f"{label}: one of its first {contract.least} inputs is left out.")
    for attribute in node.attribute:
        known = contract.attributes.get(attribute.name, 0)
        if attribute.type != known or not holds_its_type(attribute):
            raise ModelFileError(f"{label}: the attribute '{attribute.name}' is none of its own.")
    given = {types[name] for name in node.input if types.get(name)}
    if contract.alike and len(given) > 1:
        raise ModelFileError(f"{label}: its inputs are {' and '.join(sorted(given))}, not of one type.")
    at = len(node.input) if contract.like is None else contract.like
    kind = types.get(node.input[at], "") if at < len(node.input) and node.input[at] else contract.makes
    types.update((name, kind) for name in node.output)


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
        if attribute.type != known.type.value or not holds_its_type(attribute):
            raise ModelFileError(f"{label}: the attribute '{attribute.name}' has the wrong type.")
    if len(set(names)) < len(names):
        raise ModelFileError(f"{label}: an attribute is given twice.")
    for name, known in schema.attributes.items():
        if known.required and name not in names:
            raise ModelFileError(f"{label}: the attribute '{name}' is missing.")


def holds_its_type(attribute: Any) -> bool:
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
    if node.op_type == "Cast" or (node.op_type == "EyeLike" and "dtype" in attributes):
        return _tensor_type(attributes["to" if node.op_type == "Cast" else "dtype"].i)
    if node.op_type == "QuantizeLinear":
        return _tensor_type(attributes["output_dtype"].i if "output_dtype" in attributes else 2)
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


def operator_sets(model: Any) -> dict[str, int]:
    """Return the version of every operator set that the model is written for, by domain."""
    if not 1 <= model.ir_version <= onnx.IR_VERSION:
        raise ModelFileError(
            f"the file claims version {model.ir_version} of the ONNX format; "
            f"the last one known here is {onnx.IR_VERSION}."
        )
    versions: dict[str, int] = {}
    for entry in model.opset_import:
        versions.setdefault("" if entry.domain in DEFAULT_DOMAINS else entry.domain, int(entry.version))
    if "" not in versions:
        raise ModelFileError("the file names no ONNX operator set; it is damaged or not an ONNX model.")
    if not _OLDEST_OPSET <= versions[""] <= _NEWEST_OPSET:
        raise UnsupportedModelError(
            f"the model is written for ONNX operator set {versions['']}; pindown reads "
            f"{_OLDEST_OPSET} to {_NEWEST_OPSET}. Export it again with opset_version=17."
        )
    return versions


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
