"""Facts of an ONNX graph that hold before any number is looked at: versions, wires, the batch axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io.limits import MAX_NODES

DEFAULT_DOMAINS = ("", "ai.onnx")
_OLDEST_OPSET, _NEWEST_OPSET = 7, 28


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
