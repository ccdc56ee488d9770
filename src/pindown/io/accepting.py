"""Functions of a ReLU network take whatever can be written as one: a model, a path, a module."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from inspect import signature
from os import PathLike
from typing import Any, Concatenate, ParamSpec, TypeVar

from pindown.model.graph import Model
from pindown.network import ReluNetwork

P = ParamSpec("P")
R = TypeVar("R")


def on_network(function: Callable[Concatenate[ReluNetwork, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Let a function of a ReLU network take, as its first argument, whatever can be written as one.

    Arguments that are no model go through as they are.

    >>> from pindown.model.from_network import model_of_network
    >>> @on_network
    ... def depth(net: ReluNetwork) -> int:
    ...     return net.depth
    >>> depth(model_of_network(ReluNetwork.from_layers([([[1.0]], [0])])))
    1
    """
    return _converting(function, 1)


def on_networks(
    function: Callable[Concatenate[ReluNetwork, ReluNetwork, P], R],
) -> Callable[Concatenate[Any, Any, P], R]:
    """Let a function of two ReLU networks take what :func:`on_network` lets one take."""
    return _converting(function, 2)


def is_module(value: Any) -> bool:
    """Return whether it is a torch module; whoever has one has loaded torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def is_estimator(value: Any) -> bool:
    """Return whether it is an object of scikit-learn."""
    return type(value).__module__.partition(".")[0] == "sklearn"


def _converting(function: Any, n: int) -> Any:
    names = list(signature(function).parameters)[:n]

    @wraps(function)
    def convert(*args: Any, **options: Any) -> Any:
        first = [network_if_model(value, function.__name__) for value in args[:n]]
        for name in names:
            if name in options:
                options[name] = network_if_model(options[name], function.__name__)
        return function(*first, *args[n:], **options)

    return convert


def network_if_model(value: Any, caller: str) -> Any:
    """Return the exact form of a model; what is none goes through as it is."""
    if isinstance(value, ReluNetwork):
        return value
    if isinstance(value, (Model, str, PathLike)) or is_module(value) or is_estimator(value):
        from pindown.io.any_model import as_network

        return as_network(value, caller)
    return value
