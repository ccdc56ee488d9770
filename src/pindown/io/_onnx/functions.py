"""Functions that a file defines itself: every call is replaced by what the function is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.schema import holds_its_type
from pindown.model.limits import MAX_NODES

_MAX_NESTED = 32
Name: TypeAlias = tuple[str, str]  # domain and name


def inlined(model: Any) -> Any:
    """Return a model without functions of its own.

    Raises:
        ModelFileError: If a function calls itself, or cannot be put in the place of a call.
        UnsupportedModelError: If too many nodes would come out.
    """
    if not model.functions:
        return model
    from onnx import inliner

    _require_bearable(model)
    try:
        return inliner.inline_local_functions(model)
    except Exception as error:  # whatever the C++ code makes of a damaged file
        reason = str(error).strip().splitlines()[-1:] or ["it is damaged"]
        raise ModelFileError(f"a function of the file cannot be carried out: {reason[0]}.") from None


def _require_bearable(model: Any) -> None:
    """Count the nodes before they are made: functions that call two others twice grow fast."""
    functions = {(function.domain, function.name): function for function in model.functions}
    sizes: dict[Name, int] = {}
    imported = {entry.domain for entry in model.opset_import}

    def known(name: Name) -> set[str]:
        return {entry.domain for entry in functions[name].opset_import}

    def size(nodes: Any, trail: tuple[Name, ...]) -> int:
        if len(trail) > _MAX_NESTED:
            raise UnsupportedModelError("functions of the file are nested too deeply.")
        total = 0
        for node in _all_nodes(nodes):
            key = (node.domain, node.op_type)
            if key in trail:
                raise ModelFileError(f"the function '{node.op_type}' of the file calls itself.")
            if key in functions:
                _check_call(node, functions[key], imported if not trail else known(trail[-1]))
            if key in functions and key not in sizes:
                sizes[key] = size(functions[key].node, (*trail, key))
            total += sizes.get(key, 1)
            if total > MAX_NODES:
                raise UnsupportedModelError(
                    f"with its functions the graph has more than {MAX_NODES:,} nodes, the limit."
                )
        return total

    size(model.graph.node, ())


def _check_call(node: Any, function: Any, imported: set[str]) -> None:
    """Refuse a call that does not fit its function, as runtimes do."""
    name = f"a call of the function '{node.op_type}'"
    if node.domain not in imported:
        raise ModelFileError(f"{name}: no operator set of the domain '{node.domain}' is named.")
    if len(node.input) > len(function.input) or len(node.output) != len(function.output):
        counts = f"{len(node.input)} inputs and {len(node.output)} outputs"
        takes = f"{len(function.input)} and {len(function.output)}"
        raise ModelFileError(f"{name} has {counts}; the function has {takes}.")
    given = [attribute.name for attribute in node.attribute]
    own = [attribute for attribute in node.attribute if not attribute.ref_attr_name]
    if len(set(given)) < len(given) or not all(map(holds_its_type, own)):
        raise ModelFileError(f"{name} has an attribute twice, or one of another type than it says.")
    known = {entry.domain for entry in function.opset_import}
    if not known.issuperset(inner.domain for inner in function.node):
        raise ModelFileError(f"the function '{node.op_type}' names no operator set of its operations.")


def _all_nodes(nodes: Any) -> Iterator[Any]:
    """Yield nodes, also those of branches inside them."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            for graph in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
                waiting.extend(graph.node)
