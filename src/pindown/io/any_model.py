"""One door for whatever a user calls a model: networks, files, torch modules, scikit-learn MLPs."""

from __future__ import annotations

import sys
from os import PathLike
from typing import Any, TypeAlias

from pindown.network import ReluNetwork

# Torch modules and estimators have no types here: their libraries are loaded only by who uses them.
AnyModel: TypeAlias = ReluNetwork | str | PathLike[str] | Any


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
        from pindown.io import load

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


def _kind(model: object) -> str:
    if isinstance(model, type):
        return f"the class {model.__name__} itself: make one, such as {model.__name__}()"
    if isinstance(model, dict):
        return "a dict; save a state dict with torch.save and give the path of the file"
    return type(model).__name__
