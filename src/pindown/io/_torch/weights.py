"""Weights of a file in the module that they belong to."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from pindown.errors import UnsupportedModelError
from pindown.io._torch.module import model_from_module, unwrapped
from pindown.model.graph import Model


def model_with_weights(
    tensors: Mapping[str, torch.Tensor], module: Any, input_shape: Sequence[int] | None = None
) -> Model:
    """Read a copy of a module that has the weights of a file.

    Args:
        tensors: The file's, by name; all names may begin with a word of the trainer's.
        module: The torch module that they belong to, which is left alone.
        input_shape: The shape of one input, if the module's first layer is not ``Linear``.

    Raises:
        UnsupportedModelError: If the names or shapes are not those of the module, or it cannot be read.
    """
    module = unwrapped(module)
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module; got {type(module).__name__}.")
    own = copy.deepcopy(module)
    wanted = own.state_dict()
    prefix = _prefix(wanted, tensors)
    given = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
    kind = type(module).__name__
    for name in [*wanted, *given]:
        if name not in given:
            raise UnsupportedModelError(f"the file has no tensor '{name}', which {kind} needs.")
        if name not in wanted:
            raise UnsupportedModelError(f"{kind} has no place for the tensor '{name}' of the file.")
        if wanted[name].shape != given[name].shape:
            shapes = f"{tuple(given[name].shape)} in the file and {tuple(wanted[name].shape)} in {kind}"
            raise UnsupportedModelError(f"the tensor '{name}' has shape {shapes}.")
    own.load_state_dict(given, assign=True)  # as they are: the module may have fewer digits
    model = model_from_module(own, input_shape)
    note = f"The weights are the file's; what is done with them is what the given {kind} does."
    return replace(model, notes=(note, *model.notes))


def _prefix(wanted: Mapping[str, Any], tensors: Mapping[str, Any]) -> str:
    """Return what wrappers and trainers put before the names of tensors, such as ``model.``."""
    first = next(iter(wanted), "")
    for name in tensors:
        prefix = name.removesuffix(first)
        if name.endswith(first) and all(prefix + other in tensors for other in wanted):
            return prefix
    return ""
