"""How much a trained model's code tells about its data, measured in the best way there is.

* One-dimensional code, one feature: quadrature, no sampling (``exact``).
* One-dimensional code, several features: log p(x | z) - log p(x) averaged over draws, with p(x) by
  quadrature over the code; unbiased (``estimate`` with its standard error).
* Longer codes: the variational lower bound with a guess that is trained afresh and for longer
  (``estimate``; the truth may be higher).

Phuong 2021, section 4.4.2 and Theorem 4.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from pindown.guarantees.bounds.information import standard_normal_entropy
from pindown.learn.mutual_autoencoder.infomax import fit_guess, guessed_information
from pindown.learn.mutual_autoencoder.quadrature import (
    can_be_exact,
    codes_of,
    exact_information,
    prior_grid,
)

_DRAWS = 2_000  # about, of x, where x is sampled
_BOUND_DRAWS = 20_000  # for the variational bound, cheap per draw
_FEWEST, _MOST = 501, 8_001  # nodes of the code
_APART = 0.5  # standard deviations of x between neighbouring nodes at most: then sums are integrals
_TABLE = 400_000  # entries of nodes times draws in one go


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
    kind: Literal["exact", "estimate"]
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
    bound = guessed_information(guess, draw, random, entropy=entropy, n=_BOUND_DRAWS)
    # The information is not negative; a bound below zero says that and no more.
    value = max(bound.value, 0.0)
    return MeasuredInformation(
        value, bound.standard_error, "estimate", "variational lower bound", bound.n
    )


def _nodes(decoder: Any) -> int:
    """Return how many nodes follow the decoder's mean closely enough."""
    if hasattr(decoder, "sizes"):
        return 2 * _FEWEST - 1
    grid, _ = prior_grid(_FEWEST)
    with torch.no_grad():
        mean, log_std = decoder(codes_of(grid, decoder))
    apart = float((mean.diff(dim=0).abs() * torch.exp(-log_std[1:])).max())
    return min(max(_FEWEST, int(_FEWEST * apart / _APART) + 1), _MOST)


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
        for _ in range(max(1, _DRAWS * len(grid) // _TABLE)):
            z = torch.randn((max(2, _TABLE // len(grid)), 1), generator=random, dtype=nodes.dtype)
            x = decoder.sample(z, random)
            table = _log_table(decoder, x, nodes)  # (nodes, draws)
            values.append(decoder.log_prob(x, z) - torch.logsumexp(table + log_w[:, None], 0))
    found = torch.cat(values).numpy()
    error = float(found.std(ddof=1)) / math.sqrt(len(found))
    return MeasuredInformation(
        max(float(found.mean()), 0.0), error, "estimate", "quadrature over codes", len(found)
    )
