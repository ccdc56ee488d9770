r"""The random classifier: Gaussians over the parameters of a module, and steps that lower its bound.

The prior is :math:`P = N(\mu_0, \mathrm{diag}\, s_0^2)` with one deviation per tensor, the posterior
:math:`Q = N(\mu, \mathrm{diag}\, s^2)` with one per parameter. For a linear layer that meets an
input h once, weights drawn anew for this input give independent outputs

.. math:: (W h + b)_i \sim N\Big(\bar W_i h + \bar b_i, \; \sum_j s_{ij}^2 h_j^2 + s_i^2\Big),

so that one matrix product draws fresh weights for every row of a batch.

With :math:`p = \mathrm{kl}^{-1}(L, (\mathrm{KL} + \log(2 \sqrt m / \delta)) / m)` the gradient of p is

.. math::
    \nabla p = \frac{p (1 - p)}{m (p - L)}
        \Big( m \log\frac{p (1 - L)}{L (1 - p)} \, \nabla L + \nabla \mathrm{KL} \Big).

In coordinates measured in the prior's deviations, :math:`\mu = \mu_0 + s_0 u` and :math:`s = s_0 e^v`,
the Hessian of KL at the prior is one in u and two in v. So steps along the bracket with a rate of a few
thousandths are natural gradient steps, for every network and sample size. L is the mean of
:math:`1 - \mathrm{softmax}_y`, a loss in [0, 1] that has a gradient; the certificate is about errors.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from pindown.guarantees.bounds.bound import outward
from pindown.guarantees.bounds.relative_entropy import small_kl_inverse
from pindown.guarantees.certificate._stages import Stage
from pindown.guarantees.certificate.modules import Examples, class_scores
from pindown.guarantees.tuning import (
    LOSS_MEMORY,
    MAX_MOVE,
    MAX_ROWS_PER_DRAW,
    NATURAL_BATCH,
    NATURAL_MOMENTUM,
    NATURAL_RATE,
)
from pindown.rounding import UNIT_ROUNDOFF, gamma

Tensors: TypeAlias = Mapping[str, Tensor]
# The variance of a layer without bias on an input of zeros; its root needs a derivative.
_MIN_VARIANCE = 1e-30
# Squaring a ratio, subtracting one and taking its logarithm: a few roundings each.
_ROUNDINGS = 8


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
        size = MAX_ROWS_PER_DRAW if self.local else 1
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
            return output + variance.clamp_min(_MIN_VARIANCE).sqrt() * noise

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


@dataclass
class Moves:
    """Where a posterior is, in the prior's deviations: u for means, v for log deviations."""

    u: dict[str, Tensor]
    v: dict[str, Tensor]

    @classmethod
    def none(cls, prior: Mapping[str, Tensor]) -> Moves:
        """Return the prior itself."""
        return cls(*({name: torch.zeros_like(p) for name, p in prior.items()} for _ in range(2)))

    def kl(self) -> float:
        """Return the relative entropy to the prior, to float32."""
        moved = sum(float((u * u).sum()) for u in self.u.values())
        widths = sum(float((torch.expm1(2 * v) - 2 * v).sum()) for v in self.v.values())
        return 0.5 * (moved + max(widths, 0.0))

    def copy(self) -> Moves:
        """Return a copy."""
        return Moves(*({name: t.clone() for name, t in part.items()} for part in (self.u, self.v)))


class Prior(NamedTuple):
    """A Gaussian prior around a module's parameters."""

    module: nn.Module
    scales: Mapping[str, float]
    local: bool

    def means(self) -> dict[str, Tensor]:
        """Return the parameters that carry noise."""
        return {n: p.detach() for n, p in self.module.named_parameters() if n in self.scales}

    def moved(self, moves: Moves) -> WeightPosterior:
        """Return the posterior at these moves, in float32 numbers that KL is computed from later."""
        means, scales = self._at(moves.u, moves.v)
        return WeightPosterior(self.module, self.scales, means, scales, self.local)

    def _at(
        self, u: Mapping[str, Tensor], v: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        means = {n: p + self.scales[n] * u[n] for n, p in self.means().items()}
        return means, {n: self.scales[n] * torch.exp(v[n]) for n in means}

    def soft_error(self, moves: Moves, batch: Examples, generator: torch.Generator) -> Tensor:
        """Return the mean of 1 - softmax of the right class under one draw per row, or per batch."""
        means, scales = self._at(moves.u, moves.v)
        if self.local:
            scores = noisy_scores(self.module, means, scales, batch.inputs, generator)
        else:
            drawn = {
                n: m + scales[n] * torch.randn(m.shape, generator=generator, dtype=m.dtype)
                for n, m in means.items()
            }
            scores = class_scores(functional_call(self.module, drawn, (batch.inputs,)))
        return 1.0 - torch.softmax(scores, 1).gather(1, batch.classes[:, None]).mean()


def descend(
    prior: Prior,
    examples: Examples,
    delta: float,
    stage: Stage,
    generator: torch.Generator,
    watch: Callable[[Moves], None],
    every: int,
) -> Moves:
    """Move the posterior from the prior to where the bound is lower.

    Args:
        prior: Where to start.
        examples: The part that certifies.
        delta: Probability with which the bound may fail.
        stage: Counts the steps; its progress lets the rate fall to zero.
        generator: Source of batches and noise.
        watch: Called with the moves every so many steps.
        every: How many.
    """
    moves = Moves.none(prior.means())
    speed = Moves.none(prior.means())
    m, loss = examples.n, None
    for step in stage.steps():
        rows = torch.randint(m, (min(NATURAL_BATCH, m),), generator=generator)
        leaves = [t.requires_grad_() for part in (moves.u, moves.v) for t in part.values()]
        value = prior.soft_error(moves, examples.at(rows), generator)
        # A parameter that no output depends on has no slope; the divergence still holds it.
        found = torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
        for leaf in leaves:
            leaf.requires_grad_(False)
        now = float(value.detach())
        if not math.isfinite(now):
            break  # noise beyond float32: nothing to follow, and the best so far is kept
        loss = now if loss is None else LOSS_MEMORY * loss + (1 - LOSS_MEMORY) * now
        price = _price(loss, moves.kl(), m, delta)
        _step(moves, speed, found, price, NATURAL_RATE * (1.0 - stage.progress))
        if step % every == every - 1:
            watch(moves)
    return moves


def _price(loss: float, kl: float, m: int, delta: float) -> float:
    """Return by how much a change of the loss weighs more than a change of KL."""
    q = min(max(loss, 1.0 / (2 * m)), 1.0 - 1.0 / (2 * m))
    p = float(small_kl_inverse(q, (kl + math.log(2 * math.sqrt(m) / delta)) / m))
    p = min(p, 1.0 - 1e-9)
    return m * math.log(p * (1 - q) / (q * (1 - p)))


def _step(moves: Moves, speed: Moves, slopes: tuple[Tensor, ...], price: float, rate: float) -> None:
    names = list(moves.u)
    with torch.no_grad():
        for name, slope in zip(names, slopes[: len(names)], strict=True):
            speed.u[name].mul_(NATURAL_MOMENTUM).add_(price * slope + moves.u[name])
        for name, slope in zip(names, slopes[len(names) :], strict=True):
            speed.v[name].mul_(NATURAL_MOMENTUM).add_(
                0.5 * (price * slope + torch.expm1(2 * moves.v[name]))
            )
        length = rate * math.sqrt(
            sum(float((s * s).sum()) for part in (speed.u, speed.v) for s in part.values())
        )
        shorter = rate * min(1.0, MAX_MOVE / max(length, 1e-12))
        for name in names:
            moves.u[name].sub_(shorter * speed.u[name])
            moves.v[name].sub_(shorter * speed.v[name])
