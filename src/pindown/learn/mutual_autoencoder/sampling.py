r"""Information of any model one can draw from, from above: the density of x by averaging over codes.

.. math:: \hat I = \frac1n \sum_i \Big(\log p(x_i \mid z_i) - \log \frac1K \sum_k p(x_i \mid z'_k)\Big)

with fresh codes :math:`z'_k` from the prior. A logarithm of a mean is too small on average, so the
estimate is too large on average, by about half the relative variance of the mean; with
:math:`K \gg e^I` that is little. Together with the variational bound, which errs below, it brackets
the truth.
"""

from __future__ import annotations

import math
from typing import Any

import torch

_TABLE = 20_000  # pairs of a code and a row in one go


def sampled_information(
    decoder: Any, random: torch.Generator, *, n: int, codes: int
) -> tuple[float, float]:
    """Return the estimate in nats and its standard error.

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
            decoder.log_prob(x, block.expand(-1, n, -1)) for block in fresh.split(max(1, _TABLE // n))
        ]
        told = decoder.log_prob(x, z) - torch.logsumexp(torch.cat(tables), 0) + math.log(codes)
    return float(told.mean()), float(told.std()) / math.sqrt(n)
