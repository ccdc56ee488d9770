"""Which input of an ONNX graph varies, what the others are, and which output is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.tensors import BOOL_TYPE, FLOAT_TYPES, INTEGER_TYPES
from pindown.model.limits import check_shape

_DTYPES = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}


@dataclass(frozen=True)
class ModelInput:
    """The input that varies.

    Attributes:
        name: Its name in the graph.
        shape: The literal shape with a batch of one.
        sample_shape: The shape of one sample.
        fixed_batch: The batch size the model was exported with, if it is fixed and above one.
        dtype: Its float type, such as ``"float32"``.
    """

    name: str
    shape: tuple[int, ...]
    sample_shape: tuple[int, ...]
    fixed_batch: int | None
    dtype: str = "float32"


@dataclass(frozen=True)
class ModelOutput:
    """The output that is meant.

    Attributes:
        name: The tensor that is read.
        first_length: The declared length of its first axis, if that can be a batch.
        note: What has to be said of the choice.
    """

    name: str
    first_length: int | None
    note: str | None = None


# ---------------------------------------------------------------------- outputs


def chosen_output(graph: Any, wanted: str | None) -> ModelOutput:
    """Return the output that is asked for, or the only one with numbers."""
    entries = list(graph.output)
    names = _listed(entries)
    if wanted is not None:
        found = [entry for entry in entries if entry.name == wanted]
        if not found:
            raise UnsupportedModelError(f"there is no output '{wanted}'; the model has {names}.")
        return _read_as(graph, found[0], None)
    floats = [entry for entry in entries if _may_be_read(graph, entry)]
    if len(floats) == 1:
        others = _listed([entry for entry in entries if entry is not floats[0]])
        note = (
            f"Of the outputs {names}, '{floats[0].name}' was read; not {others}, which holds no scores."
        )
        return _read_as(graph, floats[0], note if len(entries) > 1 else None)
    if not floats:
        raise UnsupportedModelError(f"no output of the model is a tensor of floats: {names}.")
    raise UnsupportedModelError(
        f"the model has the outputs {_listed(floats)}; choose one with output=NAME or --output NAME."
    )


def _listed(entries: Sequence[Any]) -> str:
    return ", ".join(f"'{entry.name}'" for entry in entries)


def _may_be_read(graph: Any, entry: Any) -> bool:
    """Return whether an output can hold scores: floats, or the maps from labels to floats of ZipMap."""
    if not entry.HasField("type"):
        return True
    kind = entry.type.WhichOneof("value")
    if kind == "tensor_type":
        return entry.type.tensor_type.elem_type in FLOAT_TYPES | {0}
    return _behind_zip_map(graph, entry.name) is not None


def _behind_zip_map(graph: Any, name: str) -> str | None:
    """Return the tensor that a ZipMap makes an output of."""
    for node in graph.node:
        if (
            node.op_type == "ZipMap"
            and node.domain == "ai.onnx.ml"
            and name in node.output
            and node.input
        ):
            return str(node.input[0])
    return None


def _read_as(graph: Any, entry: Any, note: str | None) -> ModelOutput:
    kind = entry.type.WhichOneof("value") if entry.HasField("type") else None
    if kind not in (None, "tensor_type"):
        inner = _behind_zip_map(graph, entry.name)
        if inner is None:
            raise UnsupportedModelError(
                f"the output '{entry.name}' is no tensor; pindown reads tensors of floats."
            )
        return ModelOutput(inner, None, note)
    if kind == "tensor_type" and entry.type.tensor_type.elem_type not in FLOAT_TYPES | {0}:
        raise UnsupportedModelError(
            f"the output '{entry.name}' does not hold floats; labels jump and are not read. "
            "Choose an output with scores."
        )
    dims = entry.type.tensor_type.shape.dim
    return ModelOutput(str(entry.name), int(dims[0].dim_value) if len(dims) > 1 else None, note)


# ---------------------------------------------------------------------- inputs


def chosen_input(
    graph: Any, wanted: str | None, fixed: Mapping[str, ArrayLike] | None, output: ModelOutput
) -> tuple[ModelInput, dict[str, NDArray[Any]]]:
    """Return the input that varies, and the values of the others."""
    stored = {tensor.name for tensor in graph.initializer}
    real = {entry.name: entry for entry in graph.input if entry.name not in stored}
    given = dict(fixed or {})
    names = ", ".join(f"'{name}'" for name in real) or "none"
    for name in (*given, *(() if wanted is None else (wanted,))):
        if name not in real:
            raise UnsupportedModelError(f"there is no input '{name}'; the model has {names}.")
    if wanted in given:
        raise UnsupportedModelError(f"the input '{wanted}' cannot both vary and be fixed.")
    free = [name for name in real if name not in given]
    if wanted is not None and free != [wanted]:
        others = ", ".join(f"'{name}'" for name in free if name != wanted)
        raise UnsupportedModelError(
            f"the model also has the inputs {others}; give their values with fixed={{name: array}}."
        )
    if len(free) != 1:
        if not free:
            raise UnsupportedModelError(f"the model has no input that varies; its inputs are {names}.")
        raise UnsupportedModelError(
            f"the model has the inputs {names}; choose the one that varies with input=NAME and give the "
            "others' values with fixed={name: array}."
        )
    values = {name: _fixed_value(real[name], value) for name, value in given.items()}
    return _varying(real[free[0]], output), values


def _fixed_value(entry: Any, value: ArrayLike) -> NDArray[Any]:
    """Return the value of an input as the graph takes it."""
    kind = entry.type.tensor_type.elem_type if entry.type.HasField("tensor_type") else 0
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise UnsupportedModelError(f"the value of '{entry.name}' must be numbers; got {array.dtype}.")
    if kind in FLOAT_TYPES:
        array = array.astype(np.float64)
    elif kind in INTEGER_TYPES and (array == np.round(array)).all():
        array = array.astype(np.int64)
    elif kind == BOOL_TYPE:
        array = array.astype(bool)
    else:
        raise UnsupportedModelError(f"the input '{entry.name}' does not take {array.dtype} numbers.")
    dims = entry.type.tensor_type.shape.dim if entry.type.tensor_type.HasField("shape") else None
    if dims is None:
        return array
    lengths = [dim.dim_value or None for dim in dims]
    if array.ndim == len(lengths) - 1 and lengths[0] in (None, 1):
        array = array[None]
    if array.ndim != len(lengths) or any(
        m not in (None, n) for m, n in zip(lengths, array.shape, strict=True)
    ):
        shape = tuple(n if n else (dim.dim_param or "?") for n, dim in zip(lengths, dims, strict=True))
        raise UnsupportedModelError(
            f"the input '{entry.name}' has the shape {shape}; its value has {array.shape}."
        )
    return array


def _varying(entry: Any, output: ModelOutput) -> ModelInput:
    if not entry.type.HasField("tensor_type") or not entry.type.tensor_type.HasField("shape"):
        raise UnsupportedModelError(f"the input '{entry.name}' declares no tensor shape.")
    kind = entry.type.tensor_type.elem_type
    if kind not in FLOAT_TYPES:
        raise UnsupportedModelError(
            f"the input '{entry.name}' is not of a float type; export the part of the model behind its "
            "embedding or cast, or give this input a value with fixed={name: array}."
        )
    return _batched(entry, output.first_length, _DTYPES[kind])


def _batched(entry: Any, output_length: int | None, dtype: str) -> ModelInput:
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
    check_shape(fixed, "the input")
    if not has_batch:
        return ModelInput(entry.name, tuple(fixed), tuple(fixed), None, dtype)
    sample = tuple(fixed if first is None else fixed[1:])
    batch = first if first not in (None, 1) else None
    return ModelInput(entry.name, (1, *sample), sample, batch, dtype)
