r"""Initial weights that keep the size of signals through the layers, and a report of how they do.

.. math:: \operatorname{Var}(y) = D_{in}\operatorname{Var}(w)\,E(x^2), \qquad
          \operatorname{Var}(w) = g^2/D_{in},\quad g^2 = 1 \text{ (linear)},\ 2 \text{ (ReLU)}.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pindown.affine import Array


@dataclass(frozen=True)
class SignalReport:
    """Mean squares of signals in each linear layer, forward and backward.

    Attributes:
        forward: Mean square of each linear layer's outputs, first layer first.
        backward: Mean square of the loss gradient at those outputs, for a random linear loss.
    """

    forward: Array = field(repr=False)
    backward: Array = field(repr=False)

    def __str__(self) -> str:
        f, b = self.forward, self.backward
        return f"{len(f)} layers: signal {f[0]:.3g} -> {f[-1]:.3g}, gradient {b[-1]:.3g} -> {b[0]:.3g}"


def keep_variance(module: Any, nonlinearity: str = "linear", *, seed: int = 0) -> Any:
    """Draw the weights of all linear layers with variance gain^2 / inputs, and set their biases to zero.

    Args:
        module: A torch module; its layers are changed in place.
        nonlinearity: ``"linear"`` for 1/inputs, ``"relu"`` for 2/inputs.
        seed: Seed of the weights.

    Returns:
        The module.

    Raises:
        ValueError: If the nonlinearity is another one, or there is no linear layer.

    The slides call this Xavier's initialisation; torch's function of that name divides by the mean of
    inputs and outputs.

    Lecture course, slides on initialisation.
    """
    import torch

    if nonlinearity not in ("linear", "relu"):
        raise ValueError(f"nonlinearity must be 'linear' or 'relu', got {nonlinearity!r}")
    generator = torch.Generator().manual_seed(seed)
    for layer in _linear_layers(module):
        torch.nn.init.kaiming_normal_(layer.weight, nonlinearity=nonlinearity, generator=generator)
        if layer.bias is not None:
            torch.nn.init.zeros_(layer.bias)
    return module


def signal_report(module: Any, X: Any, *, seed: int = 0) -> SignalReport:
    """Return how the size of signals and gradients changes from layer to layer.

    Args:
        module: A torch module.
        X: Inputs, a tensor.
        seed: Seed of the random loss.

    Returns:
        A :class:`SignalReport`.

    Lecture course, slides on initialisation.
    """
    import torch

    outputs: list[Any] = []

    def keep(_: Any, __: Any, output: Any) -> None:
        outputs.append(output)

    handles = [layer.register_forward_hook(keep) for layer in _linear_layers(module)]
    try:
        result = module(X)
        noise = torch.randn(
            result.shape, generator=torch.Generator().manual_seed(seed), dtype=result.dtype
        )
        gradients = torch.autograd.grad(
            (noise * result).sum(), outputs
        )  # leaves the parameters' gradients alone
    finally:
        for handle in handles:
            handle.remove()
    forward = np.array([float(o.detach().double().pow(2).mean()) for o in outputs])
    return SignalReport(forward, np.array([float(g.double().pow(2).mean()) for g in gradients]))


def _linear_layers(module: Any) -> list[Any]:
    import torch

    layers = [m for m in module.modules() if isinstance(m, torch.nn.Linear)]
    if not layers:
        raise ValueError("the module has no linear layer")
    return layers
