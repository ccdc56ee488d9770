r"""Lowering the bound: natural gradient steps on the mean and the deviations of a Gaussian posterior.

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

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from pindown.guarantees.bounds.coins import small_kl_inverse
from pindown.guarantees.certificate.clock import Stage
from pindown.guarantees.certificate.examples import Examples
from pindown.guarantees.certificate.modules import class_scores
from pindown.guarantees.certificate.posterior import WeightPosterior, noisy_scores

_RATE = 0.003  # of natural gradient steps at the start
_BATCH = 256
_MOMENTUM = 0.9
_LONGEST_MOVE = 1.0  # of all of u in one step, in nats of sqrt(2 KL): keeps the first steps from jumping
_MEMORY = 0.98  # of the running mean of the loss that sets the price of KL


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
        generator: Of batches and noise.
        watch: Called with the moves every so many steps.
        every: How many.
    """
    moves = Moves.none(prior.means())
    speed = Moves.none(prior.means())
    m, loss = examples.n, None
    for step in stage.steps():
        rows = torch.randint(m, (min(_BATCH, m),), generator=generator)
        leaves = [t.requires_grad_() for part in (moves.u, moves.v) for t in part.values()]
        value = prior.soft_error(moves, examples.at(rows), generator)
        # A parameter that no output depends on has no slope; the divergence still holds it.
        found = torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
        for leaf in leaves:
            leaf.requires_grad_(False)
        now = float(value.detach())
        if not math.isfinite(now):
            break  # noise beyond float32: nothing to follow, and the best so far is kept
        loss = now if loss is None else _MEMORY * loss + (1 - _MEMORY) * now
        price = _price(loss, moves.kl(), m, delta)
        _step(moves, speed, found, price, _RATE * (1.0 - stage.progress))
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
            speed.u[name].mul_(_MOMENTUM).add_(price * slope + moves.u[name])
        for name, slope in zip(names, slopes[len(names) :], strict=True):
            speed.v[name].mul_(_MOMENTUM).add_(0.5 * (price * slope + torch.expm1(2 * moves.v[name])))
        length = rate * math.sqrt(
            sum(float((s * s).sum()) for part in (speed.u, speed.v) for s in part.values())
        )
        shorter = rate * min(1.0, _LONGEST_MOVE / max(length, 1e-12))
        for name in names:
            moves.u[name].sub_(shorter * speed.u[name])
            moves.v[name].sub_(shorter * speed.v[name])
