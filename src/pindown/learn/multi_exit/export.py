"""Every prefix of a network as a file of its own: one for each device that can afford it."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import torch
from torch import nn

from pindown.errors import UnsupportedModelError
from pindown.io.files import write_atomically
from pindown.learn.multi_exit.model import MultiExitModel
from pindown.learn.multi_exit.tuning import MAX_FILE_GROWTH
from pindown.network import ReluNetwork
from pindown.validation import choice

_OPSET = 17
_KINDS = {"float32": torch.float32, "float64": torch.float64}


def prefix_module(model: MultiExitModel, m: int, before: nn.Module | None = None) -> nn.Sequential:
    """Return exit m as one module in evaluation mode, with a module (a scaling, say) before it."""
    prefix = model.prefix(m)
    return (prefix if before is None else nn.Sequential(before, prefix)).eval()


def prefix_network(
    model: MultiExitModel, m: int, input_shape: Sequence[int], before: nn.Module | None = None
) -> ReluNetwork:
    """Return exit m as a :class:`pindown.ReluNetwork`, for audits, comparisons and proofs.

    Raises:
        UnsupportedModelError: If it is no plain ReLU network.
    """
    return ReluNetwork.from_torch(prefix_module(model, m, before), input_shape=tuple(input_shape))


def export_prefixes(
    model: MultiExitModel,
    folder: str | PathLike[str],
    input_shape: Sequence[int],
    *,
    before: nn.Module | None = None,
    name: str = "exit",
    dtype: str = "auto",
) -> list[Path]:
    """Write every exit as an ONNX file ``exit_1.onnx``, ``exit_2.onnx``, ... that needs nothing else.

    A prefix of fully connected layers goes through :class:`pindown.ReluNetwork`; one with convolutions
    through torch's own exporter, which keeps them as convolutions. In the former, a scaling in front and
    batch normalisations become part of the layers: computed in float64, then rounded once to ``dtype``.

    Args:
        model: The network.
        folder: Where to; made if it is not there.
        input_shape: Shape of one input.
        before: A module to put in front, such as the scaling of inputs.
        name: Beginning of the file names.
        dtype: Numbers that the files take, hold and return: ``"float32"``, ``"float64"``, or ``"auto"``
            for float32 if that loses nothing of the weights as they were trained.

    Returns:
        The files, cheap to expensive. Inputs are called ``input``, logits ``output``; the first axis of
        both is the batch.

    Raises:
        ValueError: If ``dtype`` is none of these.
        ModelFileError: If a layer with its scaling has numbers that are too large for float32.
        UnsupportedModelError: If torch cannot export a module.
    """
    kind = _kind(model, dtype)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    files = []
    for m in range(1, model.n_exits + 1):
        path = place / f"{name}_{m}.onnx"
        module = prefix_module(model, m, before)
        net = _as_network(module, input_shape)
        if net is not None:
            net.save(path, dtype=kind)
        else:
            write_atomically(path, torch_onnx(_in_kind(module, kind), input_shape))
        files.append(path)
    return files


def _kind(model: nn.Module, dtype: str) -> str:
    """Return the name of the numbers to write."""
    if choice("dtype", dtype, ("auto", *_KINDS)) != "auto":
        return dtype
    held = (t for t in (*model.parameters(), *model.buffers()) if t.is_floating_point())
    return "float32" if all(torch.equal(t.float().to(t.dtype), t) for t in held) else "float64"


def _in_kind(module: nn.Module, kind: str) -> nn.Module:
    """Return a module that computes in these numbers: itself, or a copy."""
    held = {t.dtype for t in (*module.parameters(), *module.buffers()) if t.is_floating_point()}
    return module if held <= {_KINDS[kind]} else copy.deepcopy(module).to(_KINDS[kind])


def _as_network(module: nn.Module, input_shape: Sequence[int]) -> ReluNetwork | None:
    """Return the ReLU network of a module, if it is one and is not much larger than the module."""
    if any(isinstance(part, nn.Conv2d) for part in module.modules()):
        return None
    try:
        net = ReluNetwork.from_torch(module, input_shape=tuple(input_shape))
    except UnsupportedModelError:
        return None
    size = sum(p.numel() for p in module.parameters())
    return net if net.n_parameters <= MAX_FILE_GROWTH * size else None


def torch_onnx(module: nn.Module, input_shape: Sequence[int]) -> bytes:
    """Return what torch's exporter makes of a module.

    Raises:
        UnsupportedModelError: If it cannot.
    """
    own = (t.dtype for t in (*module.parameters(), *module.buffers()) if t.is_floating_point())
    dtype = next(own, torch.float32)
    example, file = torch.zeros(1, *input_shape, dtype=dtype), io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the newer exporter needs a further package
            torch.onnx.export(
                module,
                (example,),
                file,
                dynamo=False,
                opset_version=_OPSET,
                input_names=["input"],
                output_names=["output"],
                dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}},
            )
    except Exception as error:
        raise UnsupportedModelError(f"torch cannot write this module as ONNX: {error}") from error
    return file.getvalue()
