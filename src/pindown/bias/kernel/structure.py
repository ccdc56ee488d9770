"""Fully connected ReLU networks as layers whose parameters may be scaled or frozen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array
from pindown.network import ReluNetwork


@dataclass(frozen=True, eq=False)
class TangentLayer:
    r"""The map :math:`z = s W a + r b`, perhaps with a ReLU after it.

    Attributes:
        weight: The product :math:`s W` that acts on the input.
        bias: The product :math:`r b`; zeros if there is none.
        weight_factor: :math:`s^2` if the weights are trained, else 0.
        bias_factor: :math:`r^2` if the bias is trained, else 0.
        relu: Whether a ReLU follows.
    """

    weight: Array
    bias: Array
    weight_factor: float
    bias_factor: float
    relu: bool


def layers_of_network(net: ReluNetwork, biases: bool) -> list[TangentLayer]:
    """Return the layers of a network, all weights trained.

    Raises:
        ValueError: If a layer is sparse: an unrolled convolution no longer knows its parameters.
    """
    for i, layer in enumerate(net.layers, 1):
        if sp.issparse(layer.weight):
            raise ValueError(
                f"layer {i} is stored sparse, as convolutions are, and its shared weights cannot be "
                "told apart any more; give the torch module itself to empirical_ntk."
            )
    last = net.depth - 1
    return [
        TangentLayer(layer.weight, layer.bias, 1.0, float(biases), i < last)
        for i, layer in enumerate(net.layers)
    ]


def layers_of_module(module: Any, biases: bool) -> list[TangentLayer] | None:
    """Return the layers of a ``Sequential`` of linear maps and ReLUs, or None if it is anything else."""
    from torch import nn

    from pindown.bias.kernel.modules import TangentLinear

    parts = list(_parts(module))
    owned = [id(value) for part in parts for value in part.parameters()]
    if len(set(owned)) < len(owned):
        return None  # parameters used twice are one set, not two
    layers: list[TangentLayer] = []
    for i, part in enumerate(parts):
        kind = type(part)
        if part._forward_hooks or part._forward_pre_hooks:
            return None
        if kind is nn.Identity or (kind is nn.Dropout and not part.training):
            continue
        if kind is nn.Flatten and i == 0 and (part.start_dim, part.end_dim) == (1, -1):
            continue
        if kind is nn.ReLU and layers:
            layers[-1] = replace(layers[-1], relu=True)
        elif kind is nn.Linear:
            layers.append(_affine(part, 1.0, 1.0, biases))
        elif kind is TangentLinear:
            layers.append(_affine(part, part.weight_scale, part.bias_scale, biases))
        else:
            return None
    return layers or None


def starts_flat(module: Any) -> bool:
    """Return whether the module flattens its inputs first, so that rows of any shape fit."""
    from torch import nn

    return isinstance(next(_parts(module)), nn.Flatten)


def _parts(module: Any) -> Iterator[Any]:
    from torch import nn

    if type(module) is nn.Sequential and not (module._forward_hooks or module._forward_pre_hooks):
        for child in module:
            yield from _parts(child)
    else:
        yield module


def _affine(part: Any, weight_scale: float, bias_scale: float, biases: bool) -> TangentLayer:
    weight = weight_scale * part.weight.detach().cpu().double().numpy()
    for name, value in part.named_parameters():
        if not value.isfinite().all():
            raise ValueError(f"parameter {name} of {part} holds NaN or infinity.")
    trained = biases and part.bias is not None and part.bias.requires_grad
    bias = np.zeros(len(weight))
    if part.bias is not None:
        bias = bias_scale * part.bias.detach().cpu().double().numpy()
    return TangentLayer(
        weight,
        bias,
        weight_scale**2 * float(part.weight.requires_grad),
        bias_scale**2 * float(trained),
        relu=False,
    )
