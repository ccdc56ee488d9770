r"""Codes of one dimension on a grid: the exact posterior, and the density of the resampling encoder.

Of k proposals the encoder keeps one in proportion to :math:`\omega`, so its density is

.. math:: q_k(z \mid x) = k\, q(z \mid x)\,
          E\Big[\frac{\omega(z)}{\omega(z) + \omega_2 + \dots + \omega_k}\Big],

the expectation over the other proposals; for k = 1 it is q itself.

Phuong 2021, section 4.5; Cremer et al. 2017.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from pindown.affine import Array
from pindown.learn.mutual_autoencoder.networks import normal_log_density, prior_log_density

_SETS = 400  # draws of the other proposals


def posterior_density(decoder: Any, x: Tensor, grid: Array) -> Array:
    """Return p(z | x) on an evenly spaced grid for every row, (rows, nodes), by Bayes' rule.

    Args:
        decoder: p(x | z), in float64, with a one-dimensional code.
        x: Rows.
        grid: Codes; they should reach far into the prior's tails.
    """
    z = torch.as_tensor(grid, dtype=torch.float64)[:, None, None]
    with torch.no_grad():
        joint = (decoder.log_prob(x, z) + prior_log_density(z)).T.numpy()
    density = np.exp(joint - joint.max(axis=1, keepdims=True))
    out: Array = density / (density.sum(axis=1, keepdims=True) * (grid[1] - grid[0]))
    return out


def encoder_density(
    encoder: Any, decoder: Any, x: Tensor, grid: Array, k: int | None, random: torch.Generator
) -> Array:
    """Return the encoder's density on a grid for every row, (rows, nodes).

    Args:
        encoder: q(z | x), in float64, with a one-dimensional code.
        decoder: p(x | z), in float64.
        x: Rows.
        grid: Codes.
        k: Proposals of the resampling encoder; None for the plain one.
        random: Where the other proposals come from.
    """
    z = torch.as_tensor(grid, dtype=torch.float64)[:, None, None]
    with torch.no_grad():
        mean, log_std = encoder(x)
        log_q = normal_log_density(z, mean, log_std)  # (nodes, rows)
        if k is None or k == 1:
            out: Array = log_q.exp().T.numpy()
            return out
        log_w = decoder.log_prob(x, z) + prior_log_density(z) - log_q
        noise = torch.randn((_SETS * (k - 1), *mean.shape), generator=random, dtype=mean.dtype)
        others = mean + log_std.exp() * noise
        weights = decoder.log_prob(x, others) + prior_log_density(others)
        weights = weights - normal_log_density(others, mean, log_std)
        rest = torch.logsumexp(weights.unflatten(0, (_SETS, k - 1)), 1)  # (sets, rows)
        kept = torch.sigmoid(log_w[:, None, :] - rest).mean(1)
        found: Array = (k * log_q.exp() * kept).T.numpy()
        return found


def mean_divergence(first: Array, second: Array, grid: Array) -> float:
    """Return the mean over rows of KL(first || second), both densities on the grid."""
    least = np.finfo(np.float64).tiny
    terms = first * (np.log(np.maximum(first, least)) - np.log(np.maximum(second, least)))
    return float(terms.sum(axis=1).mean() * (grid[1] - grid[0]))
