"""Rules for torch's normalisations: by running statistics, and by those of the tensor itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from pindown.errors import UnsupportedModelError
from pindown.io._torch.elementwise import scaled
from pindown.io._torch.graph import Graph, Rule, array
from pindown.io._torch.layers import or_none, with_batch
from pindown.model.builder import Tensor
from pindown.model.operations.dense import BatchNorm
from pindown.model.operations.normalisation import GroupNorm, LayerNorm, RmsNorm


def batch_norm(
    graph: Graph,
    x: Tensor,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Scale and shift every channel by its running statistics."""
    if training or running_mean is None:
        raise UnsupportedModelError("it has no running statistics, so its output depends on the batch.")

    def make() -> BatchNorm:
        n = len(running_mean)
        scale = np.ones(n) if weight is None else array(weight)
        shift = np.zeros(n) if bias is None else array(bias)
        return BatchNorm(scale, shift, array(running_mean), array(running_var), float(eps))

    if weight is None:  # nothing is trained: an operation that does not count
        scale = make().as_scale(len(x.shape))
        return scaled(graph, x, scale.factor, scale.shift, "BatchNorm")
    return graph.add(graph.once("BatchNorm", make, running_mean, running_var, weight, bias, eps), x)


def batch_norm_module(graph: Graph, m: Any, x: Tensor) -> Tensor:
    """Scale and shift every channel by its running statistics."""
    return batch_norm(graph, x, m.running_mean, m.running_var, m.weight, m.bias, eps=m.eps)


def instance_norm(
    graph: Graph,
    x: Tensor,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise every channel by its own mean and variance, or by running ones."""
    if not use_input_stats:
        return batch_norm(graph, x, running_mean, running_var, weight, bias, eps=eps)
    return group_norm(graph, x, x.shape[1], weight, bias, eps)


def instance_norm_module(dims: int) -> Rule:
    """Return the rule of an instance norm module."""

    def rule(graph: Graph, m: Any, x: Tensor) -> Tensor:
        own = m.running_mean is None
        return with_batch(
            graph,
            x,
            dims,
            lambda image: instance_norm(
                graph, image, m.running_mean, m.running_var, m.weight, m.bias, own, eps=m.eps
            ),
        )

    return rule


def group_norm(
    graph: Graph, x: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """Normalise groups of channels."""
    make = lambda: GroupNorm(num_groups, or_none(weight), or_none(bias), float(eps))  # noqa: E731
    return graph.add(graph.once("GroupNorm", make, num_groups, weight, bias, eps), x)


def layer_norm(
    graph: Graph,
    x: Tensor,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise over the last axes."""
    axes = _last_axes(x, normalized_shape)
    make = lambda: LayerNorm(axes, or_none(weight), or_none(bias), float(eps))  # noqa: E731
    return graph.add(graph.once("LayerNorm", make, axes, weight, bias, eps), x)


def rms_norm(
    graph: Graph, x: Tensor, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> Tensor:
    """Divide by the root of the mean square over the last axes."""
    axes = _last_axes(x, normalized_shape)
    epsilon = torch.finfo(torch.float32).eps if eps is None else float(eps)
    make = lambda: RmsNorm(axes, or_none(weight), epsilon)  # noqa: E731
    return graph.add(graph.once("RmsNorm", make, axes, weight, epsilon), x)


def _last_axes(x: Tensor, normalized_shape: Any) -> tuple[int, ...]:
    shape = tuple(int(n) for n in normalized_shape)
    if x.shape[-len(shape) :] != shape:
        raise UnsupportedModelError(
            f"it normalises the last axes {shape} and got a tensor of shape {x.shape}."
        )
    return tuple(range(len(x.shape) - len(shape), len(x.shape)))


NORMS: dict[str, Rule] = {
    "batch_norm": batch_norm,
    "instance_norm": instance_norm,
    "group_norm": group_norm,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
}
