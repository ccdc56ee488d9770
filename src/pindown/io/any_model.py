"""Whatever a user calls a model: files by their ending, torch modules, scikit-learn MLPs, networks."""

from __future__ import annotations

import sys
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._limits import MAX_MESSAGE
from pindown.io._onnx_reader import read_onnx
from pindown.network import ReluNetwork

# Torch modules and estimators have no types here: their libraries are loaded only by who uses them.
AnyModel: TypeAlias = ReluNetwork | str | PathLike[str] | Any

_PICKLES = (".pkl", ".pickle", ".joblib", ".dill")
_READABLE = ".onnx, .onnx.gz, .safetensors, and .pt or .pth state dicts"
_WRITABLE = ".onnx, .onnx.gz and .safetensors"


def load(path: str | PathLike[str], *, activation: str | None = None) -> ReluNetwork:
    """Read a model file; its ending says which kind it is.

    Args:
        path: ``.onnx``, ``.onnx.gz``, ``.safetensors``, or a ``.pt``/``.pth`` state dict.
        activation: What lies between the layers of a state dict, which does not say: ``"relu"``.
            Other files say it themselves.

    Returns:
        The network, in float64. ``net.notes`` says what had to be assumed.

    Raises:
        ValueError: If ``activation`` is something else.
        ModelFileError: If the file is missing, damaged, too large or of no known kind.
        UnsupportedModelError: If the model in it is not a ReLU network pindown can write down, or
            it is a state dict with several layers and no ``activation`` is given.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from pindown import ReluNetwork
        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
        >>> with TemporaryDirectory() as folder:
        ...     save(net, f"{folder}/absolute.onnx")
        ...     load(f"{folder}/absolute.onnx") == net
        True
    """
    if activation is not None:
        from pindown.io._state_dicts import check_activation

        check_activation(activation)
    file = Path(path)
    try:
        return _read(file, file.name.lower(), activation)
    except (ModelFileError, UnsupportedModelError) as error:
        raise type(error)(f"{file}: {_one_line(str(error))}") from None
    except MemoryError:
        raise UnsupportedModelError(f"{file}: the model needs more memory than there is.") from None


def save(net: ReluNetwork, path: str | PathLike[str], *, dtype: str = "auto") -> None:
    """Write a network; the ending of the path says as what.

    Args:
        net: The network.
        path: ``.onnx``, ``.onnx.gz`` or ``.safetensors``; an existing file is replaced at once.
        dtype: ``"float32"``, ``"float64"``, or ``"auto"``: float32 if that loses nothing.

    Raises:
        ModelFileError: If the path cannot be written, or a weight does not fit the type.
    """
    file = Path(path)
    name = file.name.lower()
    if name.endswith((".onnx", ".onnx.gz")):
        from pindown.io._onnx_writer import write_onnx

        write_onnx(net, file, dtype)
    elif name.endswith(".safetensors"):
        from pindown.io._state_dicts import write_safetensors

        write_safetensors(net, file, dtype)
    else:
        raise ModelFileError(
            f"{file}: networks are written as {_WRITABLE}; choose one of these endings."
        )


def as_network(model: AnyModel, caller: str, activation: str | None = None) -> ReluNetwork:
    """Return the network that a model is.

    Args:
        model: A network, the path of a model file, a torch module whose first layer is ``Linear``, or a
            fitted ``MLPClassifier`` or ``MLPRegressor``.
        caller: Who asks; the complaint begins with this name.
        activation: What lies between the layers of a state dict; see :func:`pindown.load`.

    Raises:
        TypeError: If it is none of these.
        UnsupportedModelError: If it cannot be written as a ReLU network.

    >>> net = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
    >>> as_network(net, "audit") is net
    True
    """
    if isinstance(model, ReluNetwork):
        return model
    if isinstance(model, (str, PathLike)):
        return load(model, activation=activation)
    torch = sys.modules.get("torch")  # whoever has a module has loaded torch
    if torch is not None and isinstance(model, torch.nn.Module):
        return ReluNetwork.from_torch(model)
    if type(model).__module__.partition(".")[0] == "sklearn":
        return ReluNetwork.from_sklearn(model)
    raise TypeError(
        f"{caller} takes a ReluNetwork, the path of a model file, a torch module or a fitted "
        f"scikit-learn MLP; got {_kind(model)}."
    )


def _one_line(message: str) -> str:
    """Make a message fit to print: names in it come from the file and may hold anything."""
    shown = "".join(character if character.isprintable() else "?" for character in message)
    return shown if len(shown) <= MAX_MESSAGE else f"{shown[:MAX_MESSAGE]} ..."


def _read(file: Path, name: str, activation: str | None) -> ReluNetwork:
    if name.endswith((".onnx", ".onnx.gz")):
        return read_onnx(file)
    if name.endswith(".safetensors"):
        from pindown.io._state_dicts import read_safetensors

        return read_safetensors(file, activation)
    if name.endswith((".pt", ".pth")):
        from pindown.io._state_dicts import read_torch_file

        return read_torch_file(file, activation)
    if name.endswith(_PICKLES):
        from pindown.io._state_dicts import PICKLE_REFUSAL

        raise UnsupportedModelError(PICKLE_REFUSAL)
    raise ModelFileError(f"pindown reads {_READABLE}; the ending '{file.suffix}' is none of these.")


def _kind(model: object) -> str:
    if isinstance(model, type):
        return f"the class {model.__name__} itself: make one, such as {model.__name__}()"
    if isinstance(model, dict):
        return "a dict; save a state dict with torch.save and give the path of the file"
    return type(model).__name__
