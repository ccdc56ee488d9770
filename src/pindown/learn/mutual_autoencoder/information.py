r"""How much a trained model's code tells about its data, measured in the best way there is.

* One-dimensional code, one column: :math:`I(z; x) = H(x) - E_z[H(x \mid z)]` by quadrature, no sampling
  (``exact``). The prior is integrated by the trapezoid rule on [-9, 9], whose tails carry less than
  :math:`10^{-18}`; grids are doubled until the answer stands still.
* One-dimensional code, several columns: log p(x | z) - log p(x) averaged over draws, with p(x) by
  quadrature over the code; unbiased (``estimate`` with its standard error).
* Longer codes: the variational lower bound with a guess that is trained afresh and for longer
  (``estimate``; the truth may be higher), and from above the average over codes of
  :func:`sampled_information`: together they bracket the truth.

Phuong 2021, sections 4.4.2, 4.5 and 4.6, and Theorem 4.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.guarantees.bounds.mutual_information import standard_normal_entropy
from pindown.learn.mutual_autoencoder.infomax import fit_guess, guessed_information
from pindown.learn.mutual_autoencoder.tuning import (
    BOUND_DRAWS,
    CODE_TABLE,
    MAX_NODE_DISTANCE,
    MAX_NODES,
    MIN_NODES,
    PAIR_TABLE,
    QUADRATURE_BLOCK,
    SAMPLED_ROWS,
)

_EDGE = 9.0  # of the grid of codes
_REACH = 9.0  # standard deviations of x covered beyond the outermost mean
_STILL = 1e-5  # nats; the rule is spectrally accurate, so a change this small is its last


@dataclass(frozen=True)
class MeasuredInformation:
    """Mutual information of code and data under a model.

    Attributes:
        value: In nats.
        standard_error: 0 where nothing was sampled.
        kind: ``"exact"`` or ``"estimate"``.
        method: ``"quadrature"``, ``"quadrature over codes"`` or ``"variational lower bound"``.
        n: Draws; 0 where nothing was sampled.
    """

    value: float
    standard_error: float
    kind: Kind
    method: str
    n: int

    @property
    def bits(self) -> float:
        """The same in bits."""
        return self.value / math.log(2.0)

    def __str__(self) -> str:
        if self.kind == "exact":
            return f"{self.value:.4f} nats ({self.method}, exact)"
        least = "at least " if self.method == "variational lower bound" else ""
        return (
            f"{least}{self.value:.4f} ± {self.standard_error:.2g} nats "
            f"({self.method}, estimate, n = {self.n:,})"
        )


def measure_information(
    decoder: Any, guess: Any, random: torch.Generator, *, steps: int, batch_size: int = 256
) -> MeasuredInformation:
    """Measure I(z; x) for z from N(0, I) and x from the decoder.

    Args:
        decoder: p(x | z), in float64.
        guess: A fresh r(z | x), trained here if the code is longer than one.
        random: Where draws come from.
        steps: Updates of the guess.
        batch_size: Draws per update.
    """
    latent = int(decoder.latent)
    if can_be_exact(decoder):
        value, _ = exact_information(decoder)
        return MeasuredInformation(value, 0.0, "exact", "quadrature", 0)
    if latent == 1 and (hasattr(decoder, "sizes") or hasattr(decoder, "width")):
        return _quadrature_over_codes(decoder, random)

    def draw(n: int, own: torch.Generator) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            z = torch.randn((n, latent), generator=own, dtype=next(decoder.parameters()).dtype)
            return z, decoder.sample(z, own)

    guess = guess.to(next(decoder.parameters()).dtype)
    fit_guess(guess, draw, random, steps=steps, batch_size=batch_size)
    entropy = standard_normal_entropy(latent)
    bound = guessed_information(guess, draw, random, entropy=entropy, n=BOUND_DRAWS)
    # The information is not negative; a bound below zero says that and no more.
    value = max(bound.value, 0.0)
    return MeasuredInformation(
        value, bound.standard_error, "estimate", "variational lower bound", bound.n
    )


def _nodes(decoder: Any) -> int:
    """Return how many nodes follow the decoder's mean closely enough."""
    if hasattr(decoder, "sizes"):
        return 2 * MIN_NODES - 1
    grid, _ = prior_grid(MIN_NODES)
    with torch.no_grad():
        mean, log_std = decoder(codes_of(grid, decoder))
    apart = float((mean.diff(dim=0).abs() * torch.exp(-log_std[1:])).max())
    return min(max(MIN_NODES, int(MIN_NODES * apart / MAX_NODE_DISTANCE) + 1), MAX_NODES)


def _log_table(decoder: Any, x: Tensor, nodes: Tensor) -> Tensor:
    """Return log p(x | z) for all pairs; the square is multiplied out, so that products do the work."""
    if hasattr(decoder, "sizes"):
        table: Tensor = decoder.log_prob(x, nodes[:, None, :])
        return table
    mean, log_std = decoder(nodes)
    precision = torch.exp(-2.0 * log_std)
    square = precision @ (x * x).T - 2.0 * (precision * mean) @ x.T
    own = (precision * mean * mean + 2.0 * log_std + math.log(2.0 * math.pi)).sum(1, keepdim=True)
    return -0.5 * (square + own)


def _quadrature_over_codes(decoder: Any, random: torch.Generator) -> MeasuredInformation:
    grid, w = prior_grid(_nodes(decoder))
    nodes, log_w = codes_of(grid, decoder), torch.as_tensor(np.log(w))
    values = []
    with torch.no_grad():
        for _ in range(max(1, SAMPLED_ROWS * len(grid) // CODE_TABLE)):
            z = torch.randn((max(2, CODE_TABLE // len(grid)), 1), generator=random, dtype=nodes.dtype)
            x = decoder.sample(z, random)
            table = _log_table(decoder, x, nodes)  # (nodes, draws)
            values.append(decoder.log_prob(x, z) - torch.logsumexp(table + log_w[:, None], 0))
    found = torch.cat(values).numpy()
    error = float(found.std(ddof=1)) / math.sqrt(len(found))
    return MeasuredInformation(
        max(float(found.mean()), 0.0), error, "estimate", "quadrature over codes", len(found)
    )


def prior_grid(nodes: int) -> tuple[Array, Array]:
    """Return nodes and weights for expectations under N(0, 1).

    >>> z, w = prior_grid(501)
    >>> round(float(w @ z**2), 12)
    1.0
    """
    z = np.linspace(-_EDGE, _EDGE, nodes)
    w = np.exp(-0.5 * z * z)
    return z, w / w.sum()


def exact_information(decoder: Any) -> tuple[float, float]:
    """Return I(z; x) in nats and the last change when the grid was refined.

    Args:
        decoder: With a one-dimensional code; one real feature, or one column of symbols.
    """
    nodes, value, change = MIN_NODES, math.inf, math.inf
    while nodes <= MAX_NODES:
        before = value
        with torch.no_grad():
            value = float(differentiable_information(decoder, nodes))
        change = abs(value - before)
        if change < _STILL:
            break
        nodes = 2 * nodes - 1
    return max(value, 0.0), change


def quick_information(decoder: Any) -> float:
    """Return I(z; x) on the first grid only: good to a thousandth of a nat below three nats."""
    with torch.no_grad():
        return float(differentiable_information(decoder))


def differentiable_information(decoder: Any, nodes: int = MIN_NODES) -> Tensor:
    """Return I(z; x) on one grid, with its derivative in the decoder."""
    return (_categorical if hasattr(decoder, "sizes") else _gaussian)(decoder, nodes)


def can_be_exact(decoder: Any) -> bool:
    """Return whether the code has one dimension and the data one column."""
    columns = len(decoder.sizes) if hasattr(decoder, "sizes") else int(getattr(decoder, "width", 0))
    return int(decoder.latent) == 1 and columns == 1


def codes_of(z: Array, decoder: Any) -> Tensor:
    """Return one-dimensional codes as the decoder takes them."""
    kind = next(decoder.parameters()).dtype
    return torch.as_tensor(z, dtype=kind)[:, None]


def _categorical(decoder: Any, nodes: int) -> Tensor:
    z, weights = prior_grid(nodes)
    w = torch.as_tensor(weights)
    log_p = decoder(codes_of(z, decoder))[0].double()
    p = log_p.exp()
    whole = w @ p
    return w @ (p * log_p).sum(1) - torch.special.xlogy(whole, whole).sum()


def _gaussian(decoder: Any, nodes: int) -> Tensor:
    z, weights = prior_grid(nodes)
    w = torch.as_tensor(weights)
    mean, log_std = (part.double()[:, 0] for part in decoder(codes_of(z, decoder)))
    std = log_std.exp()
    low = float((mean - _REACH * std).detach().min())
    high = float((mean + _REACH * std).detach().max())
    x = torch.linspace(low, high, nodes, dtype=torch.float64)
    scale = w / std / math.sqrt(2.0 * math.pi)
    density = torch.cat(
        [
            torch.exp(-0.5 * ((block[:, None] - mean) / std) ** 2) @ scale
            for block in x.split(max(1, QUADRATURE_BLOCK // nodes))
        ]
    )
    # Where no density is left its logarithm has no derivative; such places count nothing.
    positive = density[density > torch.finfo(torch.float64).tiny]
    outer = -(positive * positive.log()).sum() * ((high - low) / (nodes - 1))
    return outer - w @ log_std - 0.5 * math.log(2.0 * math.pi * math.e)


def sampled_information(
    decoder: Any, random: torch.Generator, *, n: int, codes: int
) -> tuple[float, float]:
    r"""Return an estimate from above, the density of x by averaging over codes, and its standard error.

    .. math:: \hat I = \frac1n \sum_i \Big(\log p(x_i \mid z_i)
              - \log \frac1K \sum_k p(x_i \mid z'_k)\Big)

    with fresh codes :math:`z'_k` from the prior, in nats. A logarithm of a mean is too small on average,
    so the estimate is too large on average, by about half the relative variance of the mean; with
    :math:`K \gg e^I` that is little.

    Args:
        decoder: p(x | z) with ``latent``, ``sample`` and ``log_prob``.
        random: Where draws come from.
        n: Draws of z and x.
        codes: K.
    """
    kind = next(decoder.parameters()).dtype
    with torch.no_grad():
        z = torch.randn((n, decoder.latent), generator=random, dtype=kind)
        x = decoder.sample(z, random)
        fresh = torch.randn((codes, 1, decoder.latent), generator=random, dtype=kind)
        tables = [
            decoder.log_prob(x, block.expand(-1, n, -1))
            for block in fresh.split(max(1, PAIR_TABLE // n))
        ]
        told = decoder.log_prob(x, z) - torch.logsumexp(torch.cat(tables), 0) + math.log(codes)
    return float(told.mean()), float(told.std()) / math.sqrt(n)
