"""State dicts and safetensors: bare named tensors, where names and shapes alone say what the layers are.

A state dict holds weights and no operations. Where its tensors can only be the fully connected
layers of one chain, the caller says what lies between them, and the network's notes repeat it beside
what else was taken for granted. Anything else is refused: guessing would give another function.
Safetensors are also written; pindown's own files come back exactly.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Affine, Array, is_finite
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._limits import (
    MAX_CHAIN_STEPS,
    MAX_FILE_BYTES,
    MAX_UNITS,
    check_entries,
    check_file_bytes,
    check_rank,
)
from pindown.io.files import choose_dtype, narrowed, read_bytes, require_file, write_atomically
from pindown.network import ReluNetwork

PICKLE_REFUSAL = (
    "a pickle can run code when it is opened, so pindown never opens one. "
    "Save weights with torch.save(model.state_dict(), ...) or the model with "
    "pindown.ReluNetwork.from_torch(model).save('model.onnx')."
)
_WAY_OUT = (
    "From bare tensors pindown infers plain fully connected networks only; "
    "write the model with pindown.ReluNetwork.from_torch(model, input_shape=...).save('model.onnx'), "
    "or with torch.onnx.export, and load that."
)
ACTIVATIONS = ("relu",)
_NESTED = ("state_dict", "model_state_dict")
_MARK = "pindown"  # the one key of our metadata, a JSON text: several keys have no fixed order
_FORMAT = 1
_FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
_INTEGERS = {"I64": "<i8", "I32": "<i4"}


class _Layer(NamedTuple):
    name: str
    weight: Array
    bias: Array


def network_from_tensors(
    tensors: Mapping[str, Array], *, in_order: bool, activation: str | None = None
) -> ReluNetwork:
    """Infer the network from weights by name.

    Args:
        tensors: Name -> float64 array; a layer is ``*.weight`` (out, in) and perhaps ``*.bias`` (out,).
        in_order: Whether the mapping's order is the order of the layers.
        activation: What lies between the layers, one of ``ACTIVATIONS``; a single layer needs none.

    Raises:
        UnsupportedModelError: If the tensors are not those of one chain, or ``activation`` is missing.

    Example:
        >>> tensors = {"b.weight": np.ones((1, 3)), "a.weight": np.ones((3, 2)), "a.bias": np.zeros(3)}
        >>> network_from_tensors(tensors, in_order=False, activation="relu").widths
        (2, 3, 1)
    """
    layers, order = _layers(tensors), "in the order of the file"
    if not in_order:
        layers, order = _sorted(layers)
    for first, second in pairwise(layers):
        if first.weight.shape[0] != second.weight.shape[1]:
            raise UnsupportedModelError(
                f"the layers do not chain: '{first.name}' gives {first.weight.shape[0]} values, "
                f"'{second.name}' takes {second.weight.shape[1]}. {_WAY_OUT}"
            )
    if len(layers) > 1 and activation is None:
        raise UnsupportedModelError(
            "a state dict holds weights and does not say what lies between its layers; if that is ReLU "
            'everywhere, say so: activation="relu", on the command line --activation relu. '
            "An .onnx file says it itself."
        )
    return ReluNetwork.from_layers([(W, b) for _, W, b in layers], notes=(_as_told(layers, order),))


def check_activation(activation: str | None) -> None:
    """Complain about what cannot be told to lie between the layers of a state dict."""
    if activation is not None and activation not in ACTIVATIONS:
        raise ValueError(
            "activation says what lies between the layers of a state dict, and must be "
            f"{' or '.join(map(repr, ACTIVATIONS))}; got {activation!r}. Leaky ReLUs and other "
            "piecewise linear functions are read from .onnx files."
        )


def _as_told(layers: Sequence[_Layer], order: str) -> str:
    """Return what the network rests on besides the weights."""
    if len(layers) == 1:
        return (
            "Read as Linear; a state dict does not say whether anything without weights, such as a "
            "softmax, comes before or after it."
        )
    chain = ("Linear, ReLU, Linear", "Linear, ReLU, ..., Linear")[len(layers) > 2]
    return (
        f"Read as {chain}, as told by activation='relu'; a state dict does not say. The {len(layers)} "
        f"layers were taken {order}, and nothing else without weights: no skip connection, no function "
        "after the last layer."
    )


# ---------------------------------------------------------------------- which tensors are a layer


def _layers(tensors: Mapping[str, Array]) -> list[_Layer]:
    layers = []
    leftover = dict(tensors)
    for name, weight in tensors.items():
        prefix = name.removesuffix("weight")
        if prefix == name or weight.ndim != 2 or 0 in weight.shape:
            continue
        if "emb" in prefix.lower() and f"{prefix}bias" not in tensors:
            continue  # a table to look words up in has the shape of a matrix, and chains by accident
        bias = tensors.get(f"{prefix}bias", np.zeros(weight.shape[0]))
        if bias.shape != weight.shape[:1]:
            continue
        for part in (name, f"{prefix}bias"):
            leftover.pop(part, None)
        _require_finite(name, weight)
        _require_finite(f"{prefix}bias", bias)
        layers.append(_Layer(prefix.rstrip(".") or name, weight, bias))
    if leftover:  # of all that do not fit, a kernel says more than its bias
        name, tensor = max(leftover.items(), key=lambda entry: entry[1].ndim)
        raise UnsupportedModelError(
            f"the tensor '{name}' of shape {tensor.shape} {_reason(name, tensor)}. {_WAY_OUT}"
        )
    if not layers:
        raise UnsupportedModelError(f"there is no weight matrix in it. {_WAY_OUT}")
    return layers


def _reason(name: str, tensor: Array) -> str:
    if tensor.ndim > 2:
        return "is a convolution kernel or the like"
    if "emb" in name.lower():
        return "seems to be an embedding"
    if "running_" in name or "num_batches" in name:
        return "belongs to a batch normalisation"
    return "is no weight matrix (out, in) and no bias (out,) of one"


def _require_finite(name: str, values: Array) -> None:
    if not is_finite(values):
        raise ModelFileError(f"the tensor '{name}' holds NaN or infinite numbers.")


# ---------------------------------------------------------------------- in which order


def _sorted(layers: list[_Layer]) -> tuple[list[_Layer], str]:
    """Order layers by the one number in their names, else by the only way their shapes chain.

    Returns:
        The layers, and which order it is, in words.
    """
    numbers = [tuple(map(int, re.findall(r"\d+", layer.name))) for layer in layers]
    templates = {re.sub(r"\d+", "#", layer.name) for layer in layers}
    if len(templates) == 1 and sum(len(set(column)) > 1 for column in zip(*numbers, strict=True)) == 1:
        counted = sorted(zip(numbers, layers, strict=True), key=lambda pair: pair[0])
        return [layer for _, layer in counted], "in the order of the numbers in their names"
    orders = _chains([layer.weight.shape for layer in layers])
    order = next(orders, None)
    if order is None or next(orders, None) is not None:
        names = ", ".join(f"'{layer.name}' {layer.weight.shape}" for layer in layers[:12])
        many = "in no way" if order is None else "in more than one way"
        raise UnsupportedModelError(f"the layers {names} chain {many} by their shapes. {_WAY_OUT}")
    return [layers[i] for i in order], "in the only order that fits their shapes"


def _chains(shapes: Sequence[tuple[int, ...]]) -> Iterator[list[int]]:
    """Yield orders in which each (out, in) shape takes what the one before gives."""
    steps = 0
    unfinished: list[list[int]] = [[i] for i in range(len(shapes))]
    while unfinished:
        order = unfinished.pop()
        if len(order) == len(shapes):
            yield order
            continue
        steps += 1
        if steps > MAX_CHAIN_STEPS:
            raise UnsupportedModelError(
                f"the order of {len(shapes)} layers cannot be inferred. {_WAY_OUT}"
            )
        free = set(range(len(shapes))).difference(order)
        unfinished += [[*order, i] for i in sorted(free) if shapes[i][1] == shapes[order[-1]][0]]


# ---------------------------------------------------------------------- torch files


def read_torch_file(path: Path, activation: str | None = None) -> ReluNetwork:
    """Read a ``.pt`` or ``.pth`` file that holds a state dict, without running any code in it."""
    require_file(path)
    _check_archive(path)
    content = _load_weights(path)
    for key in _NESTED:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping):
        raise UnsupportedModelError(f"it holds a {type(content).__name__}, not a state dict. {_WAY_OUT}")
    tensors = {str(name): _numbers(str(name), value) for name, value in content.items()}
    return network_from_tensors(tensors, in_order=True, activation=activation)


def _check_archive(path: Path) -> None:
    """Refuse a zip file that would unpack to more than it is; torch stores weights unpacked."""
    try:
        if not zipfile.is_zipfile(path):
            return  # the format before torch 1.6
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
        raise ModelFileError(f"the torch file is damaged: {error}.") from None
    check_file_bytes(sum(member.file_size for member in members))
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ModelFileError("this zip file is compressed; torch.save writes no such file.")


def _load_weights(path: Path) -> Any:
    import warnings

    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except (UnpicklingError, RuntimeError) as error:
        text = str(error)
        if "nsupported" in text or "TorchScript" in text:
            raise UnsupportedModelError(f"it holds more than weights, and {PICKLE_REFUSAL}") from None
        raise ModelFileError("this is not a torch file, or it is damaged; save it again.") from None
    except MemoryError:
        raise
    except Exception as error:  # whatever a malformed pickle makes torch's reader stumble over
        raise ModelFileError(f"the torch file is damaged: {type(error).__name__}.") from None


def _numbers(name: str, value: Any) -> Array:
    """Return a tensor's numbers, after making sure that it holds as many as it claims."""
    import torch

    if not isinstance(value, torch.Tensor):
        raise UnsupportedModelError(
            f"the entry '{name}' is a {type(value).__name__}, not a tensor; "
            "save torch.save(model.state_dict(), ...)."
        )
    if value.layout != torch.strided or value.device.type != "cpu" or value.is_quantized:
        raise UnsupportedModelError(f"the tensor '{name}' is not a plain dense one. {_WAY_OUT}")
    if not value.dtype.is_floating_point:
        raise UnsupportedModelError(f"the tensor '{name}' holds {value.dtype}, not floats. {_WAY_OUT}")
    count = check_entries(math.prod(value.shape), what=f"the tensor '{name}'")
    if count * value.element_size() > value.untyped_storage().nbytes():
        raise ModelFileError(f"the tensor '{name}' claims {count:,} numbers, more than it stores.")
    return np.asarray(value.detach().to(torch.float64).numpy())


# ---------------------------------------------------------------------- out


def write_safetensors(net: ReluNetwork, path: Path, dtype: str = "auto") -> None:
    """Write ``.safetensors``; sparse layers stay sparse, and the same network gives the same bytes."""
    write_atomically(path, safetensors_bytes(net, dtype))


def safetensors_bytes(net: ReluNetwork, dtype: str = "auto") -> bytes:
    """Return the network as the bytes of a safetensors file."""
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


def read_safetensors(path: Path, activation: str | None = None) -> ReluNetwork:
    """Read ``.safetensors``."""
    return network_from_safetensors(read_bytes(path), activation)


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
            raise UnsupportedModelError(
                f"the tensor '{name}' holds integers, which no plain fully connected network has; "
                "export the model with torch.onnx.export and load the .onnx file."
            )
    return tensors


def _own(tensors: dict[str, NDArray[Any]], text: str) -> ReluNetwork:
    """Read what :func:`write_safetensors` wrote."""
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
