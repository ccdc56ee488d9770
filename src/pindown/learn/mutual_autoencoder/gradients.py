r"""Gradients of :math:`E_{p_\theta}[\log r(z \mid x)]` in the decoder, r held fixed.

* Numbers: :math:`x = \mathrm{decoder}(z, \epsilon)`, and the gradient passes through x.
* Symbols: :math:`E[\nabla \log p_\theta(x \mid z) \, (\log r(z \mid x) - b)]`. The baseline b is the
  mean over the *other* samples of the batch, or, with several samples per code, over the others of the
  same code. Both keep the estimate unbiased; the second varies far less, as log r depends strongly on z.

The exact derivative of the information has one more term, through the best r; it vanishes there.

Phuong 2021, (4.12), (C.12)-(C.19).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


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
