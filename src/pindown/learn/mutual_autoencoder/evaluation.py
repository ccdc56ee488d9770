"""What a trained model says about given rows, the same every time: evidence, codes, divergences.

Expectations under a one-dimensional Gaussian encoder are computed by Gauss-Hermite quadrature, others
over a fixed set of draws that all rows share, so that a row's number does not depend on its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pindown.affine import Array
from pindown.learn.mutual_autoencoder.networks import normal_log_density, prior_log_density
from pindown.learn.mutual_autoencoder.objective import divergence_from_prior

_NODES = 48  # of Gauss-Hermite quadrature
_DRAWS = 240  # shared draws where there is no quadrature
_ROWS = 250  # rows looked at in one go


def blockwise(function: Callable[[Tensor], Tensor], rows: Tensor) -> Array:
    """Apply to some rows at a time, without gradients."""
    with torch.no_grad():
        parts = [function(block) for block in rows.split(_ROWS)]
    out: Array = torch.cat(parts).numpy()
    return out


def _noise(latent: int) -> tuple[Tensor, Tensor]:
    """Return standard normal nodes, (s, 1, latent), and their weights, (s, 1)."""
    if latent == 1:
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        return torch.as_tensor(nodes)[:, None, None], torch.as_tensor(weights / weights.sum())[:, None]
    draws = np.random.default_rng(0).standard_normal((_DRAWS, 1, latent))
    return torch.as_tensor(draws), torch.full((_DRAWS, 1), 1.0 / _DRAWS, dtype=torch.float64)


def evidence(encoder: Any, decoder: Any, rows: Tensor, k: int | None) -> Array:
    """Return the evidence bound of every row, in nats.

    Args:
        encoder: q(z | x), in float64.
        decoder: p(x | z), in float64.
        rows: Data.
        k: Proposals of the resampling encoder; None for the plain one.
    """
    if k is not None:
        return blockwise(lambda x: _weighted(encoder, decoder, x, k)[0], rows)
    noise, weights = _noise(encoder.latent)

    def plain(x: Tensor) -> Tensor:
        mean, log_std = encoder(x)
        told = decoder.log_prob(x, mean + log_std.exp() * noise)
        return (told * weights).sum(0) - divergence_from_prior(mean, log_std)

    return blockwise(plain, rows)


def mean_codes(encoder: Any, decoder: Any, rows: Tensor, k: int | None) -> Array:
    """Return the mean code of every row, (n, latent)."""
    if k is None:
        return blockwise(lambda x: encoder(x)[0], rows)
    return blockwise(lambda x: _weighted(encoder, decoder, x, k)[1], rows)


def rates(encoder: Any, rows: Tensor) -> Array:
    """Return the divergence of q(z | x) from the prior for every row and coordinate, (n, latent)."""

    def each(x: Tensor) -> Tensor:
        mean, log_std = encoder(x)
        return divergence_from_prior(mean[..., None], log_std[..., None])

    return blockwise(each, rows)


def _weighted(encoder: Any, decoder: Any, x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return bound and mean code of the resampling encoder, averaged over groups of k shared draws."""
    groups = max(1, _DRAWS // k)
    draws = np.random.default_rng(0).standard_normal((groups * k, 1, encoder.latent))
    mean, log_std = encoder(x)
    z = mean + log_std.exp() * torch.as_tensor(draws)
    weights = decoder.log_prob(x, z) + prior_log_density(z) - normal_log_density(z, mean, log_std)
    weights, z = weights.unflatten(0, (groups, k)), z.unflatten(0, (groups, k))
    bound = (torch.logsumexp(weights, 1) - math.log(k)).mean(0)
    return bound, (weights.softmax(1)[..., None] * z).sum(1).mean(0)
