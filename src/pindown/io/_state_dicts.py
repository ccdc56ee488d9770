"""State dicts: bare named tensors, where names and shapes alone say what the layers are.

A state dict holds weights and no operations. With the module that it belongs to, any layers are read.
Without it, where its tensors can only be the fully connected layers of one chain, the caller says what
lies between them, and the model's notes repeat it beside what else was taken for granted. Anything else
is refused: guessing would give another function.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple

import numpy as np

from pindown.affine import Array, is_finite
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io.files import choose_dtype, require_file
from pindown.model.from_network import model_of_network
from pindown.model.graph import Model
from pindown.model.limits import (
    MAX_CHAIN_STEPS,
    check_entries,
    check_file_bytes,
)
from pindown.network import ReluNetwork

PICKLE_REFUSAL = (
    "a pickle can run code when it is opened, so pindown never opens one. "
    "Save weights with torch.save(model.state_dict(), ...) or the model with "
    "pindown.Model.from_torch(model).save('model.onnx')."
)
WAY_OUT = (
    "From bare tensors pindown infers plain fully connected networks only; pass the module that they "
    "belong to, as in load(path, module=model), or write the model with torch.onnx.export and load that."
)
ACTIVATIONS = ("relu",)
_NESTED = ("state_dict", "model_state_dict")
# What lies in archives of torch that hold more than weights.
_OTHER_ARCHIVES = {
    "code/": "a TorchScript file",
    "models/": "an exported program",
    "serialized_exported_program": "an exported program",
}


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
                f"'{second.name}' takes {second.weight.shape[1]}. {WAY_OUT}"
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
            f"the tensor '{name}' of shape {tensor.shape} {_reason(name, tensor)}. {WAY_OUT}"
        )
    if not layers:
        raise UnsupportedModelError(f"there is no weight matrix in it. {WAY_OUT}")
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
        raise UnsupportedModelError(f"the layers {names} chain {many} by their shapes. {WAY_OUT}")
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
                f"the order of {len(shapes)} layers cannot be inferred. {WAY_OUT}"
            )
        free = set(range(len(shapes))).difference(order)
        unfinished += [[*order, i] for i in sorted(free) if shapes[i][1] == shapes[order[-1]][0]]


# ---------------------------------------------------------------------- torch files


def read_torch_file(
    path: Path,
    activation: str | None = None,
    module: Any = None,
    input_shape: Sequence[int] | None = None,
) -> Model:
    """Read a ``.pt`` or ``.pth`` file that holds a state dict, without running any code in it.

    Args:
        path: The file.
        activation: What lies between the layers, if they are those of a plain chain.
        module: The torch module that the weights belong to; a copy of it gets them, and is read.
        input_shape: The shape of one input of that module, if its first layer is not ``Linear``.
    """
    require_file(path)
    _check_archive(path)
    content = _load_weights(path)
    for key in _NESTED:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping):
        raise UnsupportedModelError(f"it holds a {type(content).__name__}, not a state dict. {WAY_OUT}")
    if module is not None:
        from pindown.io._torch.weights import model_with_weights

        for name, value in content.items():
            _require_plain(str(name), value)
        return model_with_weights(
            {str(name): value for name, value in content.items()}, module, input_shape
        )
    tensors = {str(name): _numbers(str(name), value) for name, value in content.items()}
    return model_of_layers(network_from_tensors(tensors, in_order=True, activation=activation))


def model_of_layers(net: ReluNetwork) -> Model:
    """Return a network as a model, in the smaller float type if that loses nothing."""
    return model_of_network(net, choose_dtype(net, "auto").name)


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
    inside = {member.filename.partition("/")[2] for member in members}
    for sign, kind in _OTHER_ARCHIVES.items():
        if any(name.startswith(sign) for name in inside):
            raise UnsupportedModelError(
                f"this is {kind}, not a state dict; export the module that it was made from with "
                "torch.onnx.export and load the .onnx file."
            )
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ModelFileError("this zip file is compressed; torch.save writes no such file.")


def _load_weights(path: Path) -> Any:
    import warnings

    from pindown.extras import torch

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


def _require_plain(name: str, value: Any) -> None:
    """Make sure that a value is a tensor that holds as many numbers as it claims."""
    from pindown.extras import torch

    if not isinstance(value, torch.Tensor):
        raise UnsupportedModelError(
            f"the entry '{name}' is a {type(value).__name__}, not a tensor; "
            "save torch.save(model.state_dict(), ...)."
        )
    if value.layout != torch.strided or value.device.type != "cpu" or value.is_quantized:
        raise UnsupportedModelError(f"the tensor '{name}' is not a plain dense one. {WAY_OUT}")
    count = check_entries(math.prod(value.shape), what=f"the tensor '{name}'")
    if count * value.element_size() > value.untyped_storage().nbytes():
        raise ModelFileError(f"the tensor '{name}' claims {count:,} numbers, more than it stores.")


def _numbers(name: str, value: Any) -> Array:
    """Return a tensor's numbers."""
    from pindown.extras import torch

    _require_plain(name, value)
    if not value.dtype.is_floating_point:
        reason = "belongs to a batch normalisation" if "num_batches" in name else f"holds {value.dtype}"
        raise UnsupportedModelError(f"the tensor '{name}' {reason}. {WAY_OUT}")
    return np.asarray(value.detach().to(torch.float64).numpy())
