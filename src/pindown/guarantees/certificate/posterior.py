r"""Gaussians over the parameters of a module: draws, relative entropy, noisy outputs.

The prior is :math:`P = N(\mu_0, \mathrm{diag}\, s_0^2)` with one deviation per tensor, the posterior
:math:`Q = N(\mu, \mathrm{diag}\, s^2)` with one per parameter. For a linear layer that meets an
input h once, weights drawn anew for this input give independent outputs

.. math:: (W h + b)_i \sim N\Big(\bar W_i h + \bar b_i, \; \sum_j s_{ij}^2 h_j^2 + s_i^2\Big),

so that one matrix product draws fresh weights for every row of a batch.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from pindown.guarantees.bounds.bound import outward
from pindown.guarantees.certificate.modules import class_scores
from pindown.rounding import UNIT_ROUNDOFF, gamma

Tensors: TypeAlias = Mapping[str, Tensor]

# The variance of a layer without bias on an input of zeros; its root needs a derivative.
_LEAST_VARIANCE = 1e-30
# Squaring a ratio, subtracting one and taking its logarithm: a few roundings each.
_ROUNDINGS = 8
# A draw of all weights for so many rows at most, where layers are not linear.
_LARGE_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class WeightPosterior:
    r"""A random classifier: Gaussian weights, drawn anew for every prediction.

    Attributes:
        module: The network, in evaluation mode; its own parameters are the prior's means.
        prior_scales: :math:`s_0`, by the parameter's name.
        means: :math:`\mu`.
        scales: s.
        local: Whether noise is drawn at the outputs of linear layers, which is the same thing.
    """

    module: nn.Module
    prior_scales: Mapping[str, float]
    means: Tensors
    scales: Tensors
    local: bool

    def __str__(self) -> str:
        total = sum(mean.numel() for mean in self.means.values())
        return f"random classifier with {total:,} Gaussian weights, {self.kl():.4g} nats from its prior"

    def kl(self) -> float:
        """Return the relative entropy KL(Q || P) in nats, rounded up."""
        prior = dict(self.module.named_parameters())
        return diagonal_kl(
            *(
                np.concatenate([np.ravel(np.asarray(part, dtype=np.float64)) for part in parts])
                for parts in (
                    [self.means[name].numpy() for name in self.means],
                    [self.scales[name].numpy() for name in self.means],
                    [prior[name].detach().numpy() for name in self.means],
                    [np.full(self.means[name].numel(), self.prior_scales[name]) for name in self.means],
                )
            )
        )

    def scores(self, X: Tensor, generator: torch.Generator) -> Tensor:
        """Return class scores; if ``local``, every row has its own weights, else one draw serves all."""
        with torch.no_grad():
            if self.local:
                return noisy_scores(self.module, self.means, self.scales, X, generator)
            return class_scores(functional_call(self.module, self._drawn(generator), (X,)))

    def predict(self, X: object, random_state: int = 0) -> np.ndarray:
        """Return the class of each row by weights drawn for that row alone.

        Args:
            X: Inputs (n, ...).
            random_state: Seed of the weights.
        """
        rows = torch.as_tensor(np.asarray(X, dtype=np.float32))
        generator = torch.Generator().manual_seed(random_state)
        size = _LARGE_CHUNK if self.local else 1
        parts = [self.scores(rows[i : i + size], generator).argmax(1) for i in range(0, len(rows), size)]
        return torch.cat(parts).numpy() if parts else np.zeros(0, dtype=np.int64)

    def draw(self, random_state: int = 0) -> nn.Module:
        """Return a network with weights drawn from the posterior."""
        return self._holding(self._drawn(torch.Generator().manual_seed(random_state)))

    def mean_module(self) -> nn.Module:
        """Return the network at the posterior's means; the certificate is not about it."""
        return self._holding(self.means)

    def _drawn(self, generator: torch.Generator) -> dict[str, Tensor]:
        return {
            name: mean
            + self.scales[name] * torch.randn(mean.shape, generator=generator, dtype=mean.dtype)
            for name, mean in self.means.items()
        }

    def _holding(self, values: Tensors) -> nn.Module:
        network = copy.deepcopy(self.module)
        with torch.no_grad():
            for name, parameter in network.named_parameters():
                if name in values:
                    parameter.copy_(values[name])
        return network


def diagonal_kl(
    mean: np.ndarray, scale: np.ndarray, prior_mean: np.ndarray, prior_scale: np.ndarray
) -> float:
    r"""Return the relative entropy of two Gaussians with independent coordinates, rounded up.

    .. math::
        \mathrm{KL} = \frac12 \sum_i
            \Big( \frac{(\mu_i - \mu_{0,i})^2}{s_{0,i}^2} + x_i - \log(1 + x_i) \Big),
        \qquad x_i = \frac{s_i^2}{s_{0,i}^2} - 1

    Example:
        >>> one = np.ones(2)
        >>> round(diagonal_kl(np.array([3.0, 4.0]), one, np.zeros(2), one), 9)
        12.5
    """
    if not (np.isfinite(mean).all() and np.isfinite(scale).all() and (scale > 0.0).all()):
        return math.inf  # beyond float32
    moved = ((mean - prior_mean) / prior_scale) ** 2
    ratio = scale / prior_scale
    x = (ratio - 1.0) * (ratio + 1.0)
    logs = np.log1p(x)
    total = 0.5 * float(np.sum(moved) + np.sum(np.maximum(x - logs, 0.0)))
    lost = _ROUNDINGS * UNIT_ROUNDOFF * float(np.sum(1.0 + np.abs(x) + np.abs(logs)))
    return outward(total * (1.0 + gamma(len(mean) + _ROUNDINGS)) + lost)


def noisy_scores(
    module: nn.Module, means: Tensors, scales: Tensors, X: Tensor, generator: torch.Generator
) -> Tensor:
    """Return class scores of a network of linear layers with fresh weights for every row."""
    with _noise_at_outputs(module, scales, generator):
        return class_scores(functional_call(module, dict(means), (X,)))


@contextmanager
def _noise_at_outputs(module: nn.Module, scales: Tensors, generator: torch.Generator) -> Iterator[None]:
    def hook(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]:
        weight, bias = (
            scales[f"{name}.weight" if name else "weight"],
            scales.get(f"{name}.bias" if name else "bias"),
        )

        def add(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
            squares = None if bias is None else bias**2
            variance = nn.functional.linear(inputs[0] ** 2, weight**2, squares)
            noise = torch.randn(output.shape, generator=generator, dtype=output.dtype)
            return output + variance.clamp_min(_LEAST_VARIANCE).sqrt() * noise

        return add

    handles = [
        part.register_forward_hook(hook(name))
        for name, part in module.named_modules()
        if isinstance(part, nn.Linear) and (f"{name}.weight" if name else "weight") in scales
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
