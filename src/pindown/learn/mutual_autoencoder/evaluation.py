r"""What a trained model says about rows, the same every time: evidence, codes, densities, a report.

Expectations under a one-dimensional Gaussian encoder are computed by Gauss-Hermite quadrature, others
over a fixed set of draws that all rows share, so that a row's number does not depend on its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pindown.affine import Array
from pindown.learn.mutual_autoencoder._networks import normal_log_density, prior_log_density
from pindown.learn.mutual_autoencoder._objective import divergence_from_prior
from pindown.learn.mutual_autoencoder._rows import SymbolRows
from pindown.learn.mutual_autoencoder.information import MeasuredInformation
from pindown.learn.mutual_autoencoder.tuning import (
    ACTIVE_DIVERGENCE,
    HERMITE_NODES,
    PROPOSAL_SETS,
    ROW_BLOCK,
    SHARED_DRAWS,
)
from pindown.torch_modules import own_torch


def blockwise(function: Callable[[Tensor], Tensor], rows: Tensor) -> Array:
    """Apply to some rows at a time, without gradients."""
    with torch.no_grad():
        parts = [function(block) for block in rows.split(ROW_BLOCK)]
    out: Array = torch.cat(parts).numpy()
    return out


def _noise(latent: int) -> tuple[Tensor, Tensor]:
    """Return standard normal nodes, (s, 1, latent), and their weights, (s, 1)."""
    if latent == 1:
        nodes, weights = np.polynomial.hermite_e.hermegauss(HERMITE_NODES)
        return torch.as_tensor(nodes)[:, None, None], torch.as_tensor(weights / weights.sum())[:, None]
    draws = np.random.default_rng(0).standard_normal((SHARED_DRAWS, 1, latent))
    return torch.as_tensor(draws), torch.full((SHARED_DRAWS, 1), 1.0 / SHARED_DRAWS, dtype=torch.float64)


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
    groups = max(1, SHARED_DRAWS // k)
    draws = np.random.default_rng(0).standard_normal((groups * k, 1, encoder.latent))
    mean, log_std = encoder(x)
    z = mean + log_std.exp() * torch.as_tensor(draws)
    weights = decoder.log_prob(x, z) + prior_log_density(z) - normal_log_density(z, mean, log_std)
    weights, z = weights.unflatten(0, (groups, k)), z.unflatten(0, (groups, k))
    bound = (torch.logsumexp(weights, 1) - math.log(k)).mean(0)
    return bound, (weights.softmax(1)[..., None] * z).sum(1).mean(0)


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
    r"""Return the encoder's density on a grid for every row, (rows, nodes).

    Of k proposals the resampling encoder keeps one in proportion to :math:`\omega`, so its density is

    .. math:: q_k(z \mid x) = k\, q(z \mid x)\,
              E\Big[\frac{\omega(z)}{\omega(z) + \omega_2 + \dots + \omega_k}\Big],

    the expectation over the other proposals; for k = 1 it is q itself.

    Args:
        encoder: q(z | x), in float64, with a one-dimensional code.
        decoder: p(x | z), in float64.
        x: Rows.
        grid: Codes.
        k: Proposals of the resampling encoder; None for the plain one.
        random: Where the other proposals come from.

    Phuong 2021, section 4.5; Cremer et al. 2017.
    """
    z = torch.as_tensor(grid, dtype=torch.float64)[:, None, None]
    with torch.no_grad():
        mean, log_std = encoder(x)
        log_q = normal_log_density(z, mean, log_std)  # (nodes, rows)
        if k is None or k == 1:
            out: Array = log_q.exp().T.numpy()
            return out
        log_w = decoder.log_prob(x, z) + prior_log_density(z) - log_q
        noise = torch.randn((PROPOSAL_SETS * (k - 1), *mean.shape), generator=random, dtype=mean.dtype)
        others = mean + log_std.exp() * noise
        weights = decoder.log_prob(x, others) + prior_log_density(others)
        weights = weights - normal_log_density(others, mean, log_std)
        rest = torch.logsumexp(weights.unflatten(0, (PROPOSAL_SETS, k - 1)), 1)  # (sets, rows)
        kept = torch.sigmoid(log_w[:, None, :] - rest).mean(1)
        found: Array = (k * log_q.exp() * kept).T.numpy()
        return found


def mean_divergence(first: Array, second: Array, grid: Array) -> float:
    """Return the mean over rows of KL(first || second), both densities on the grid.

    >>> grid = np.linspace(-9, 9, 901)
    >>> at = lambda centre: np.exp(-((grid - centre) ** 2) / 2)[None] / np.sqrt(2 * np.pi)
    >>> round(mean_divergence(at(0.0), at(1.0), grid), 6)
    0.5
    """
    least = np.finfo(np.float64).tiny
    terms = first * (np.log(np.maximum(first, least)) - np.log(np.maximum(second, least)))
    return float(terms.sum(axis=1).mean() * (grid[1] - grid[0]))


@dataclass(frozen=True)
class InformationReport:
    """Target and measurement side by side.

    Attributes:
        target: M, in nats; None for a plain variational autoencoder.
        measured: Information of the model, with how it was measured.
        running: The training's own last estimate, a lower bound by the guess r.
        elbo: Mean evidence bound of the rows given.
        rate: Mean divergence of q(z | x) from the prior over these rows.
        active: Coordinates of the code with a mean divergence above 0.01 nats.
        reconstruction: Root mean squared error in the data's units, or the share of entries that come
            back the same.
        exact_rows: Share of rows that come back the same; None for numbers.
        entropy: Entropy of the rows of the training data, if they are symbols: no code can tell more.
        n: Rows given.
        dropped: Nats of evidence that all training rows gained by the code before it was dropped;
            None if it was not.
    """

    target: float | None
    measured: MeasuredInformation
    running: float
    elbo: float
    rate: float
    active: int
    reconstruction: float
    exact_rows: float | None
    entropy: float | None
    n: int
    dropped: float | None = None

    def __str__(self) -> str:
        wanted = "no target" if self.target is None else f"target {self.target:g} nats"
        back = (
            f"root mean squared error {self.reconstruction:.3g}"
            if self.exact_rows is None
            else f"{100 * self.exact_rows:.1f} % of rows come back exactly"
        )
        idle = (
            "" if self.dropped is None else f"; code dropped, it gained {self.dropped:.2g} nats in all"
        )
        return (
            f"information {self.measured}, {wanted}; ELBO {self.elbo:.4g}, rate {self.rate:.4g}, "
            f"{self.active} active coordinates; {back}{idle} (n = {self.n:,})"
        )


def report_on(model: Any, X: Any, rows: torch.Tensor) -> InformationReport:
    """Return target and measurement of a fitted autoencoder, and how it does on given rows.

    Args:
        model: The autoencoder.
        X: Rows, as they were given.
        rows: The same, as its networks take them.
    """
    with own_torch():
        rate = rates(model.networks_.encoder, rows)
    given = np.asarray(X)
    back = model.inverse_transform(model.transform(X))
    symbols = isinstance(model.rows_, SymbolRows)
    same = given == back if symbols else None
    error = float(np.sqrt(np.mean((given - back) ** 2))) if same is None else float(same.mean())
    seen = model.history_["information"][-100:]
    return InformationReport(
        target=float(model.information) if model.penalty > 0 else None,
        measured=model.measurement_,
        running=float(seen.mean()) if len(seen) and model.penalty > 0 else math.nan,
        elbo=model.score(X),
        rate=float(rate.sum(1).mean()),
        active=int((rate.mean(0) > ACTIVE_DIVERGENCE).sum()),
        reconstruction=error,
        exact_rows=None if same is None else float(same.all(axis=1).mean()),
        entropy=model.entropy_,
        n=len(rows),
        dropped=model.code_gain_ if model.code_dropped_ else None,
    )
