"""Whatever a user calls a model: files, torch modules, scikit-learn estimators, networks."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io.accepting import is_estimator, is_module
from pindown.io.files import write_atomically
from pindown.model.from_network import model_of_network
from pindown.model.graph import Model
from pindown.model.limits import MAX_MESSAGE
from pindown.network import ReluNetwork

# Torch modules and estimators have no types here: their libraries are loaded only by who uses them.
AnyModel: TypeAlias = Model | ReluNetwork | str | PathLike[str] | Any

_PICKLES = (".pkl", ".pickle", ".joblib", ".dill")
_READABLE = ".onnx, .onnx.gz, .safetensors, and .pt or .pth state dicts"
_WRITABLE = ".onnx, .onnx.gz and .safetensors"
# Files of other tools, and the way from them to one that is read.
_WAYS_OUT = {
    (
        ".keras",
        ".h5",
        ".hdf5",
        ".tflite",
        ".pb",
    ): "convert it to ONNX, with tf2onnx or Keras' model.export",
    (".ckpt",): "give the module whose weights it holds: load(path, module=...)",
    (".pt2", ".torchscript", ".ptl"): "export the module itself with torch.onnx.export",
    (".mlmodel", ".mlpackage", ".engine", ".trt", ".xml"): "take the ONNX file it was made from",
}


def load(
    path: str | PathLike[str],
    *,
    input: str | None = None,
    output: str | None = None,
    fixed: Mapping[str, ArrayLike] | None = None,
    activation: str | None = None,
    module: Any = None,
    input_shape: Sequence[int] | None = None,
) -> Model:
    """Read a model file; its ending says which kind it is.

    Args:
        path: ``.onnx``, ``.onnx.gz``, ``.safetensors``, or a ``.pt``/``.pth`` state dict.
        input: Which input of an ONNX file varies, if it has several.
        output: Which output of an ONNX file is meant, if it has several.
        fixed: Values of the other inputs, by name.
        activation: What lies between the layers of a state dict, which does not say: ``"relu"``.
            Other files say it themselves.
        module: The torch module whose state dict the file holds; then any layers are read.
        input_shape: The shape of one input of that module, if its first layer is not ``Linear``.

    Returns:
        The model, in float64. ``model.notes`` says what had to be assumed; ``model.relu_network()`` is
        its exact piecewise-linear form.

    Raises:
        ValueError: If ``activation`` is something else.
        ModelFileError: If the file is missing, damaged, too large or of no known kind.
        UnsupportedModelError: If an operation in it cannot be read, or it is a state dict with several
            layers and neither ``activation`` nor ``module`` is given.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from pindown import ReluNetwork
        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
        >>> with TemporaryDirectory() as folder:
        ...     save(net, f"{folder}/absolute.onnx")
        ...     load(f"{folder}/absolute.onnx").relu_network() == net
        True
    """
    if activation is not None:
        from pindown.io._state_dicts import check_activation

        check_activation(activation)
    file = Path(path)
    try:
        return _read(file, input, output, fixed, (activation, module, input_shape))
    except (ModelFileError, UnsupportedModelError) as error:
        raise type(error)(f"{file}: {_one_line(str(error))}") from None
    except MemoryError:
        raise UnsupportedModelError(f"{file}: the model needs more memory than there is.") from None


def save(model: Model | ReluNetwork, path: str | PathLike[str], *, dtype: str = "auto") -> None:
    """Write a model; the ending of the path says as what.

    Args:
        model: The model, written with the operations it has, or a ReLU network.
        path: ``.onnx`` or ``.onnx.gz``; for a ReLU network also ``.safetensors``. An existing file is
            replaced at once.
        dtype: ``"float32"``, ``"float64"``, or ``"auto"``: of a model the type it was read in, of a
            network float32 if that loses nothing.

    Raises:
        ModelFileError: If the path cannot be written, or a weight does not fit the type.

    >>> from tempfile import TemporaryDirectory
    >>> from pindown.io import load
    >>> net = ReluNetwork.from_layers([([[1.0]], [0.0]), ([[2.0]], [0.0])])
    >>> with TemporaryDirectory() as folder:
    ...     save(net, Path(folder, "double.onnx"))
    ...     print(load(Path(folder, "double.onnx"))([[3.0]]))
    [[6.]]
    """
    write_atomically(Path(path), file_bytes(model, path, dtype=dtype))


def file_bytes(model: Model | ReluNetwork, path: str | PathLike[str], *, dtype: str = "auto") -> bytes:
    """Return what :func:`save` would write to a path."""
    file = Path(path)
    name = file.name.lower()
    if name.endswith((".onnx", ".onnx.gz")):
        from pindown.io._onnx.writer import onnx_bytes

        data = onnx_bytes(model, dtype)
        # A time stamp would make equal models unequal files.
        return gzip.compress(data, mtime=0) if name.endswith(".gz") else data
    if name.endswith(".safetensors"):
        from pindown.io._safetensors import safetensors_bytes

        return safetensors_bytes(
            model if isinstance(model, ReluNetwork) else model.relu_network(), dtype
        )
    raise ModelFileError(f"{file}: models are written as {_WRITABLE}; choose one of these endings.")


def as_model(model: AnyModel, caller: str, activation: str | None = None) -> Model:
    """Return the graph of operations that a model is.

    Args:
        model: A model, a network, the path of a model file, a torch module whose first layer is
            ``Linear``, or a fitted scikit-learn estimator or pipeline.
        caller: Who asks; the complaint begins with this name.
        activation: What lies between the layers of a state dict; see :func:`pindown.load`.

    Raises:
        TypeError: If it is none of these.
        UnsupportedModelError: If it cannot be read.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> as_model(net, "example").n_parameters
    7
    """
    if isinstance(model, Model):
        return model
    if isinstance(model, ReluNetwork):
        return model_of_network(model)
    if isinstance(model, (str, PathLike)):
        return load(model, activation=activation)
    if is_module(model):
        return Model.from_torch(model)
    if is_estimator(model):
        return Model.from_sklearn(model)
    raise TypeError(
        f"{caller} takes a Model, a ReluNetwork, the path of a model file, a torch module or a fitted "
        f"scikit-learn estimator; got {_kind(model)}."
    )


def as_network(model: AnyModel, caller: str, activation: str | None = None) -> ReluNetwork:
    """Return the exact normal form of a model: see :func:`as_model` and ``Model.relu_network``.

    Raises:
        TypeError: If it is none of the models that are read.
        UnsupportedModelError: If it cannot be written as a ReLU network.

    >>> net = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
    >>> as_network(net, "audit") is net
    True
    """
    if isinstance(model, ReluNetwork):
        return model
    return as_model(model, caller, activation).relu_network()


def _one_line(message: str) -> str:
    """Make a message fit to print: names in it come from the file and may hold anything."""
    shown = "".join(character if character.isprintable() else "?" for character in message)
    return shown if len(shown) <= MAX_MESSAGE else f"{shown[:MAX_MESSAGE]} ..."


def _read(
    file: Path,
    input: str | None,
    output: str | None,
    fixed: Mapping[str, ArrayLike] | None,
    told: tuple[Any, ...],
) -> Model:
    """Read a file; ``told`` is what a state dict does not say."""
    name = file.name.lower()
    if name.endswith((".onnx", ".onnx.gz")):
        from pindown.io._onnx.reader import read_onnx

        return read_onnx(file, input=input, output=output, fixed=fixed)
    if input or output or fixed:
        raise ModelFileError("inputs and outputs have names in ONNX files only.")
    if name.endswith(".safetensors"):
        from pindown.io._safetensors import read_safetensors

        return read_safetensors(file, *told)
    if name.endswith((".pt", ".pth")) or (name.endswith(".ckpt") and told[1] is not None):
        from pindown.io._state_dicts import read_torch_file

        return read_torch_file(file, *told)
    if name.endswith(_PICKLES):
        from pindown.io._state_dicts import PICKLE_REFUSAL

        raise UnsupportedModelError(PICKLE_REFUSAL)
    for endings, way in _WAYS_OUT.items():
        if name.endswith(endings):
            raise UnsupportedModelError(f"{file.suffix} files are not read; {way}.")
    raise ModelFileError(f"pindown reads {_READABLE}; the ending '{file.suffix}' is none of these.")


def _kind(model: object) -> str:
    if isinstance(model, type):
        return f"the class {model.__name__} itself: make one, such as {model.__name__}()"
    if isinstance(model, dict):
        return "a dict; save a state dict with torch.save and give the path of the file"
    return type(model).__name__
