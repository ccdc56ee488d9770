"""Safetensors in and out: pindown's own files come back exactly, others are state dicts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Affine, Array
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._state_dicts import WAY_OUT, model_of_layers, network_from_tensors
from pindown.io.files import choose_dtype, narrowed, read_bytes
from pindown.model.graph import Model
from pindown.model.limits import MAX_FILE_BYTES, MAX_UNITS, check_entries, check_rank
from pindown.network import ReluNetwork

_MARK = "pindown"  # the one key of our metadata, a JSON text: several keys have no fixed order
_FORMAT = 1
_FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
_INTEGERS = {"I64": "<i8", "I32": "<i4"}

# ---------------------------------------------------------------------- out


def safetensors_bytes(net: ReluNetwork, dtype: str = "auto") -> bytes:
    """Return a safetensors file, the same for the same network; sparse layers stay sparse."""
    from safetensors.numpy import save

    numbers = choose_dtype(net, dtype)
    tensors: dict[str, NDArray[Any]] = {}
    for i, layer in enumerate(net.layers, 1):
        tensors |= _layer_tensors(layer, f"layers.{i}", numbers)
    total = sum(tensor.nbytes for tensor in tensors.values())
    if total >= MAX_FILE_BYTES - 2**20:
        raise ModelFileError(f"the weights take {total / 2**30:,.1f} GiB; pindown writes up to 2 GiB.")
    facts = {
        "format": _FORMAT,
        "input_shape": net.input_shape,
        "output_activation": net.output_activation,
        "notes": net.notes,
    }
    return bytes(save(tensors, metadata={_MARK: json.dumps(facts)}))


def _layer_tensors(layer: Affine, name: str, numbers: np.dtype[Any]) -> dict[str, NDArray[Any]]:
    W, b = layer
    bias = {f"{name}.bias": narrowed(b, numbers, f"{name}.bias")}
    if not sp.issparse(W):
        return {f"{name}.weight": narrowed(W, numbers, f"{name}.weight"), **bias}
    return {
        f"{name}.data": narrowed(W.data, numbers, f"{name}.data"),
        f"{name}.indices": W.indices,
        f"{name}.indptr": W.indptr,
        f"{name}.shape": np.array(W.shape, dtype=np.int64),
        **bias,
    }


# ---------------------------------------------------------------------- in


def read_safetensors(
    path: Path,
    activation: str | None = None,
    module: Any = None,
    input_shape: Sequence[int] | None = None,
) -> Model:
    """Read ``.safetensors``; see :func:`~pindown.io._state_dicts.read_torch_file`."""
    if module is None:
        return model_of_layers(network_from_safetensors(read_bytes(path), activation))
    from safetensors.torch import load

    from pindown.io._torch.weights import model_with_weights

    data = read_bytes(path)
    _parse(data)  # speaks up if the file is damaged
    return model_with_weights(load(data), module, input_shape)


def network_from_safetensors(data: bytes, activation: str | None = None) -> ReluNetwork:
    """Read the bytes of a safetensors file; pindown's own say themselves what lies between layers.

    Raises:
        ModelFileError: If the bytes are not a sound safetensors file.
        UnsupportedModelError: If its tensors are not those of a plain fully connected network.
    """
    tensors, metadata = _parse(data)
    try:
        if _MARK in metadata:
            return _own(tensors, metadata[_MARK])
        return network_from_tensors(_all_float(tensors), in_order=False, activation=activation)
    except (ModelFileError, UnsupportedModelError):
        raise
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"the tensors do not make up a network: {str(error).rstrip('.')}."
        ) from None


def _parse(data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    from safetensors import SafetensorError, deserialize

    try:
        # The library checks every offset and length against the file before it hands anything out.
        entries = deserialize(data)  # type: ignore[no-untyped-call]
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except (SafetensorError, ValueError, RecursionError) as error:
        raise ModelFileError(
            f"this is not a safetensors file, or it is damaged: {str(error).rstrip('.')}."
        ) from None
    return {name: _decoded(name, entry) for name, entry in entries}, header.get("__metadata__") or {}


def _decoded(name: str, entry: Mapping[str, Any]) -> NDArray[Any]:
    kind, raw = entry["dtype"], entry["data"]
    shape = check_rank(entry["shape"], f"the tensor '{name}'")
    check_entries(*shape, what=f"the tensor '{name}'")
    if kind == "BF16":  # the upper half of a float32
        return (
            (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4").astype(np.float64).reshape(shape)
        )
    if kind in _FLOATS:
        return np.frombuffer(raw, _FLOATS[kind]).astype(np.float64).reshape(shape)
    if kind in _INTEGERS:
        return np.frombuffer(raw, _INTEGERS[kind]).reshape(shape)
    raise UnsupportedModelError(
        f"the tensor '{name}' holds {kind}; pindown reads weights of 16 to 64 bits. "
        "Export the model with torch.onnx.export and load the .onnx file."
    )


def _all_float(tensors: Mapping[str, NDArray[Any]]) -> Mapping[str, Array]:
    for name, tensor in tensors.items():
        if tensor.dtype.kind != "f":
            reason = "belongs to a batch normalisation" if "num_batches" in name else "holds integers"
            raise UnsupportedModelError(f"the tensor '{name}' {reason}. {WAY_OUT}")
    return tensors


def _own(tensors: dict[str, NDArray[Any]], text: str) -> ReluNetwork:
    """Read what :func:`safetensors_bytes` made."""
    facts = json.loads(text)
    if not isinstance(facts, dict) or facts.get("format") != _FORMAT:
        raise ModelFileError("the file was written by a newer pindown, or its metadata is damaged.")
    left = dict(tensors)
    layers: list[tuple[Any, Array]] = []
    while f"layers.{len(layers) + 1}.bias" in left:
        layers.append(_own_layer(left, f"layers.{len(layers) + 1}"))
    if left:
        raise ModelFileError(
            f"the tensor '{next(iter(left))}' belongs to no layer; the file is damaged."
        )
    activation, notes = facts["output_activation"], facts["notes"]
    if not (activation is None or isinstance(activation, str)):
        raise ModelFileError(f"the output activation must be a text; got {activation!r}.")
    if not (isinstance(notes, list) and all(isinstance(note, str) for note in notes)):
        raise ModelFileError("the notes must be a list of texts; the metadata is damaged.")
    return ReluNetwork.from_layers(
        layers,
        input_shape=check_rank(facts["input_shape"], "the input"),
        output_activation=activation,
        notes=notes,
    )


def _own_layer(left: dict[str, NDArray[Any]], name: str) -> tuple[Any, Array]:
    """Take one layer's tensors out of those that are left."""
    bias = left.pop(f"{name}.bias")
    if f"{name}.weight" in left:
        return left.pop(f"{name}.weight"), bias
    data, indices, indptr, shape = (
        left.pop(f"{name}.{p}") for p in ("data", "indices", "indptr", "shape")
    )
    rows, columns = (int(n) for n in shape)
    # The number of columns is a bare claim: nothing in the file grows with it.
    check_entries(columns, what=f"an input of {name}", limit=MAX_UNITS)
    if (
        rows != bias.size
        or data.dtype.kind != "f"
        or indices.dtype.kind != "i"
        or indptr.dtype.kind != "i"
    ):
        raise ModelFileError(f"the sparse matrix of {name} is damaged.")
    return sp.csr_array((data, indices, indptr), shape=(rows, columns)), bias
