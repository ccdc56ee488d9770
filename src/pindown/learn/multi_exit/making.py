"""The network that a classifier with exits trains: one by name, or the user's own, looked at first."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from pindown.learn.multi_exit.model import MultiExitModel
from pindown.learn.multi_exit.msdnet import MSDNet
from pindown.learn.multi_exit.networks import multi_exit_cnn, multi_exit_mlp


def make_model(network: str, module: Any, shape: tuple[int, ...], n_classes: int) -> MultiExitModel:
    """Return an untrained network.

    Args:
        network: Its name, or ``"auto"``: by the shape.
        module: A network to copy, or a function that makes one, in place of the name; or None.
        shape: Of one input.
        n_classes: How many classes there are.

    Raises:
        ValueError: If the network is not for such inputs.
        TypeError: If the function makes something else.
    """
    is_image = len(shape) == 3
    if isinstance(module, torch.nn.Module):
        return copy.deepcopy(module).float()
    if module is not None:
        made = module(shape, n_classes)
        if not isinstance(made, torch.nn.Module):
            raise TypeError(f"module must make a MultiExitModel; it made {type(made).__name__}.")
        return made
    kind = network
    if kind == "auto":
        kind = "cnn" if is_image else "mlp"
    if kind == "mlp":
        if is_image:
            raise ValueError("network 'mlp' needs rows (n, features); images go to 'cnn' or 'msdnet'.")
        return multi_exit_mlp(shape[0], n_classes)
    if not is_image:
        raise ValueError(f"network {kind!r} needs images (n, channels, height, width), got rows.")
    return (
        MSDNet(n_classes, in_channels=shape[0])
        if kind == "msdnet"
        else multi_exit_cnn(shape[0], n_classes)
    )


def check_model(model: Any, x: Tensor, n_classes: int) -> None:
    """Refuse what has no exits, or exits of other shapes.

    Raises:
        TypeError: If it is no network with exits.
        ValueError: If an exit does not answer with one number for each class.
    """
    for name in ("stages", "heads", "n_exits", "forward_until", "exit_only"):
        if not hasattr(model, name):
            raise TypeError(f"module must be a MultiExitModel; {type(model).__name__} has no {name}.")
    model.eval()
    with torch.no_grad():
        logits = model(x)
    for m, z in enumerate(logits, 1):
        if tuple(z.shape) != (len(x), n_classes):
            raise ValueError(
                f"exit {m} of the module returns shape {tuple(z.shape)} for {len(x)} rows of "
                f"{n_classes} classes."
            )
