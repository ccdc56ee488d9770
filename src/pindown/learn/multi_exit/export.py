"""Every prefix of a network as a file of its own: one for each device that can afford it."""

from __future__ import annotations

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
from pindown.network import ReluNetwork

_OPSET = 17
# A ReLU network is written out in full; convolutions as matrices would make files many times as large.
_MOST_GROWTH = 2.0


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
) -> list[Path]:
    """Write every exit as an ONNX file ``exit_1.onnx``, ``exit_2.onnx``, ... that needs nothing else.

    A prefix of fully connected layers goes through :class:`pindown.ReluNetwork`; one with convolutions
    through torch's own exporter, which keeps them as convolutions.

    Args:
        model: The network.
        folder: Where to; made if it is not there.
        input_shape: Shape of one input.
        before: A module to put in front, such as the scaling of inputs.
        name: Beginning of the file names.

    Returns:
        The files, cheap to expensive. Inputs are called ``input``, logits ``output``; the first axis of
        both is the batch.

    Raises:
        UnsupportedModelError: If torch cannot export a module.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    files = []
    for m in range(1, model.n_exits + 1):
        path = place / f"{name}_{m}.onnx"
        module = prefix_module(model, m, before)
        net = _as_network(module, input_shape)
        if net is not None:
            net.save(path)
        else:
            write_atomically(path, torch_onnx(module, input_shape))
        files.append(path)
    return files


def _as_network(module: nn.Module, input_shape: Sequence[int]) -> ReluNetwork | None:
    """Return the ReLU network of a module, if it is one and is not much larger than the module."""
    if any(isinstance(part, nn.Conv2d) for part in module.modules()):
        return None
    try:
        net = ReluNetwork.from_torch(module, input_shape=tuple(input_shape))
    except UnsupportedModelError:
        return None
    size = sum(p.numel() for p in module.parameters())
    return net if net.n_parameters <= _MOST_GROWTH * size else None


def torch_onnx(module: nn.Module, input_shape: Sequence[int]) -> bytes:
    """Return what torch's exporter makes of a module.

    Raises:
        UnsupportedModelError: If it cannot.
    """
    dtype = next((p.dtype for p in module.parameters()), torch.float32)
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
