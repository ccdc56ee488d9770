"""Orthogonal separability of what each layer of a network computes, before its ReLU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.evaluation import in_evaluation
from pindown.bias.separability.orthogonal import OrthogonalSeparability, orthogonal_separability
from pindown.network import ReluNetwork

_BATCH = 512


def layer_separability(
    network: Any, X: ArrayLike, y: ArrayLike, *, max_samples: int | None = 2000, seed: int = 0
) -> dict[str, OrthogonalSeparability]:
    """Check the inputs and the pre-activations of every layer but the last.

    Args:
        network: A :class:`ReluNetwork`, or a torch module: every linear or convolutional submodule
            counts as a layer, in the order in which they are called.
        X: Samples (n, d) for a network; (n, ...) as the module takes them.
        y: Labels of two classes.
        max_samples: Draw at most so many samples; None for all.
        seed: Of that draw.

    Returns:
        One :class:`OrthogonalSeparability` for ``"input"`` and for each layer, named ``"layer 1"``, ...
        for a network and after the submodules for a module.

    Example:
        >>> net = ReluNetwork.from_layers([([[1.0, 0.0]], [-1.0]), ([[1.0]], [0.0])])
        >>> found = layer_separability(net, [[2.0, 1.0], [0.0, 1.0]], [1, -1])
        >>> [(name, bool(part)) for name, part in found.items()]
        [('input', False), ('layer 1', True)]

    Phuong 2021, section 3.5 and Figure 3.3.
    """
    points = np.asarray(X, dtype=np.float64)
    if points.ndim < 2 or not len(points):
        raise ValueError(f"X must hold samples in rows, got shape {points.shape}")
    labels = np.asarray(y)
    if labels.shape != (len(points),):
        raise ValueError(
            f"y must hold one label for each of the {len(points)} samples, got {labels.shape}"
        )
    kept = np.arange(len(points))
    if max_samples is not None and len(points) > max_samples:
        kept = np.sort(np.random.default_rng(seed).choice(len(points), max_samples, replace=False))
    features = {"input": points[kept].reshape(len(kept), -1)}
    features |= (
        _of_network(network, features["input"])
        if isinstance(network, ReluNetwork)
        else module_features(network, points[kept])
    )
    answer = {name: orthogonal_separability(part, labels[kept]) for name, part in features.items()}
    if len(kept) < len(points):
        from dataclasses import replace

        answer = {name: replace(part, kind="estimate") for name, part in answer.items()}
    return answer


def _of_network(network: ReluNetwork, X: Array) -> dict[str, Array]:
    layers = network.by_layer(network.preactivations(X))
    return {f"layer {i}": np.asarray(z) for i, z in enumerate(layers, 1)}


def module_features(module: Any, X: Array) -> dict[str, Array]:
    """Return outputs (n, k) of every linear or convolutional submodule except the one called last.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    >>> {name: part.shape for name, part in module_features(net, np.ones((5, 2))).items()}
    {'0': (5, 3)}
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"a ReluNetwork or a torch module is needed, got {type(module).__name__}")
    affine = (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)
    found: dict[str, list[Array]] = {}

    def keep(name: str) -> Any:
        def hook(_module: Any, _inputs: Any, output: torch.Tensor) -> None:
            found.setdefault(name, []).append(output.detach().double().flatten(1).numpy())

        return hook

    hooks = [
        part.register_forward_hook(keep(name))
        for name, part in module.named_modules()
        if isinstance(part, affine)
    ]
    kind = next((p.dtype for p in module.parameters()), torch.float32)
    try:
        with in_evaluation(module), torch.no_grad():
            for start in range(0, len(X), _BATCH):
                module(torch.as_tensor(X[start : start + _BATCH], dtype=kind))
    finally:
        for hook in hooks:
            hook.remove()
    layers = {name: np.concatenate(parts) for name, parts in found.items()}
    if layers:
        layers.popitem()  # its output is the network's
    return {name: part for name, part in layers.items() if len(part) == len(X)}
