r"""What is maximised: the evidence bound of plain and resampling encoders, and information.

The plain bound is :math:`E_q[\log p(x \mid z)] - \mathrm{KL}(q(z \mid x) \| p(z))`. The resampling
encoder draws k proposals :math:`z_1, \dots, z_k \sim q(z \mid x)` and keeps :math:`z_j` with probability
proportional to :math:`\omega_j = p(x, z_j) / q(z_j \mid x)`; its bound is

.. math:: E\Big[\log \frac1k \sum_j \omega_j\Big] \le \log p(x),

the plain one for k = 1, and never smaller for larger k.

The information grows along the gradient of :math:`E_{p_\theta}[\log r(z \mid x)]` in the decoder, r held
fixed (the exact derivative has one more term, through the best r; it vanishes there):

* Numbers: :math:`x = \mathrm{decoder}(z, \epsilon)`, and the gradient passes through x.
* Symbols: :math:`E[\nabla \log p_\theta(x \mid z) \, (\log r(z \mid x) - b)]`. The baseline b is the
  mean over the *other* samples of the batch, or, with several samples per code, over the others of the
  same code. Both keep the estimate unbiased; the second varies far less, as log r depends strongly on z.

Phuong 2021, section 4.5, (4.12), (C.12)-(C.19); Cremer et al. 2017.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pindown.learn.mutual_autoencoder._networks import normal_log_density, prior_log_density


def divergence_from_prior(mean: Tensor, log_std: Tensor) -> Tensor:
    r"""Return :math:`\mathrm{KL}(N(\mu, \sigma^2) \| N(0, I))` per row.

    >>> float(divergence_from_prior(torch.tensor([[2.0]]), torch.tensor([[0.0]])))
    2.0
    """
    return 0.5 * (mean * mean + torch.exp(2.0 * log_std) - 1.0 - 2.0 * log_std).sum(-1)


def proposals(encoder: Any, x: Tensor, k: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw k codes per row from q; return them, (k, n, latent), and their log densities, (k, n)."""
    mean, log_std = encoder(x)
    noise = torch.randn((k, *mean.shape), generator=random, dtype=mean.dtype)
    z = mean + log_std.exp() * noise.to(mean.device)
    return z, normal_log_density(z, mean, log_std)


def log_weights(
    encoder: Any, decoder: Any, x: Tensor, k: int, random: torch.Generator, weight: float = 1.0
) -> tuple[Tensor, Tensor]:
    r"""Draw k proposals per row; return them and their :math:`\log \omega_j`, (k, n)."""
    z, log_q = proposals(encoder, x, k, random)
    return z, decoder.log_prob(x, z) + weight * (prior_log_density(z) - log_q)


def evidence_bound(
    encoder: Any,
    decoder: Any,
    x: Tensor,
    random: torch.Generator,
    k: int | None = None,
    weight: float = 1.0,
) -> Tensor:
    """Return a one-draw estimate of the bound, per row.

    Args:
        encoder: q(z | x).
        decoder: p(x | z).
        x: Rows.
        random: Where the draws come from.
        k: Proposals of a resampling encoder; None for the plain bound.
        weight: Weight of the divergence from the prior; below 1 for a warm start, where it is no bound.
    """
    if k is not None:
        _, weights = log_weights(encoder, decoder, x, k, random, weight)
        return torch.logsumexp(weights, 0) - math.log(k)
    mean, log_std = encoder(x)
    noise = torch.randn(mean.shape, generator=random, dtype=mean.dtype)
    z = mean + log_std.exp() * noise.to(mean.device)
    return decoder.log_prob(x, z) - weight * divergence_from_prior(mean, log_std)


def resample(encoder: Any, decoder: Any, x: Tensor, k: int, random: torch.Generator) -> Tensor:
    """Draw one code per row from the resampling encoder, (n, latent); k = 1 is the plain encoder."""
    with torch.no_grad():
        z, weights = log_weights(encoder, decoder, x, k, random)
        if k == 1:
            return z[0]
        chosen = torch.multinomial(weights.softmax(0).T, 1, generator=random)[:, 0]
        return z[chosen, torch.arange(z.shape[1])]


def others_mean(values: Tensor) -> Tensor:
    """Return for each value the mean of the others along the first axis; 0 if there are none.

    >>> others_mean(torch.tensor([1.0, 2.0, 6.0])).tolist()
    [4.0, 3.5, 1.5]
    """
    n = len(values)
    return torch.zeros_like(values) if n == 1 else (values.sum(0) - values) / (n - 1)


def information_surrogate(
    decoder: Any,
    guess: Any,
    z: Tensor,
    random: torch.Generator,
    *,
    baseline: bool = True,
    draws: int = 1,
) -> Tensor:
    """Return a number whose derivative in the decoder estimates that of the mean log r.

    Args:
        decoder: p(x | z); its ``reparametrised`` says which estimator it takes.
        guess: r(z | x).
        z: Codes from the prior, (n, latent).
        random: Where x is drawn from.
        baseline: Whether the score-function estimator subtracts the mean of the others.
        draws: Samples of x per code; more than one gives every code a baseline of its own.
    """
    z = z.repeat(draws, 1)
    x = decoder.sample(z, random)
    if decoder.reparametrised:
        return guess.log_prob(z, x).mean()
    with torch.no_grad():
        reward = guess.log_prob(z, x)
        if baseline:
            own = reward.unflatten(0, (draws, -1)) if draws > 1 else reward
            reward = (own - others_mean(own)).flatten()
    return (decoder.log_prob(x, z) * reward).mean()
