"""Densities and probabilities are what they are called: they sum to one, and draws follow them."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import kstest, norm

from pindown.learn.mutual_autoencoder._networks import (
    CategoricalDecoder,
    GaussianDecoder,
    MixtureGuess,
    Numbers,
    SentenceDecoder,
    normal_log_density,
    prior_log_density,
)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_normal_densities_against_scipy():
    x, mean, log_std = torch.randn(3, 5, 2, generator=seeded(), dtype=torch.float64)
    expected = norm.logpdf(x.numpy(), mean.numpy(), np.exp(log_std.numpy())).sum(1)
    np.testing.assert_allclose(normal_log_density(x, mean, log_std).numpy(), expected)
    np.testing.assert_allclose(prior_log_density(x).numpy(), norm.logpdf(x.numpy()).sum(1))


@pytest.mark.parametrize("parts", [1, 3])
def test_a_guess_is_a_density(parts):
    guess = MixtureGuess(Numbers(1), 1, (4,), parts, seeded(3)).double()
    z = torch.linspace(-60, 60, 24_001, dtype=torch.float64)[:, None]
    for x in (-1.0, 0.5, 3.0):
        with torch.no_grad():
            mass = guess.log_prob(z, torch.full_like(z, x)).exp().sum() * 120 / 24_000
        assert float(mass) == pytest.approx(1.0, abs=1e-6)


@torch.no_grad()
def test_columns_of_symbols_are_independent_and_sum_to_one():
    decoder = CategoricalDecoder([2, 3], 1, (4,), seeded()).double()
    z = torch.tensor([[0.3], [-2.0]], dtype=torch.float64)
    first, second = decoder(z)
    chances = torch.stack(
        [decoder.log_prob(torch.tensor([pair, pair]), z).exp() for pair in product(range(2), range(3))]
    )
    assert torch.allclose(chances.sum(0), torch.ones(2, dtype=torch.float64))
    together = (first.exp()[:, :, None] * second.exp()[:, None, :]).flatten(1)
    assert torch.allclose(chances.T, together)
    draws = decoder.sample(z[:1].expand(8000, 1), seeded(1)).numpy()
    shares = np.bincount(3 * draws[:, 0] + draws[:, 1], minlength=6) / 8000
    assert np.abs(shares - chances[:, 0].numpy()).max() < 5 * 0.5 / np.sqrt(8000)


@torch.no_grad()
def test_sentences_sum_to_one_and_draws_follow():
    decoder = SentenceDecoder(3, 3, 1, 4, seeded(2)).double()
    for weights in decoder.parameters():
        weights.mul_(4)  # so that words depend on all before them
    z = torch.tensor([[0.7]], dtype=torch.float64)
    every = torch.tensor(list(product(range(3), repeat=3)))
    chances = decoder.log_prob(every, z.expand(27, 1)).exp()
    assert float(chances.sum()) == pytest.approx(1.0)
    draws = decoder.sample(z.expand(3000, 1), seeded(4))
    shares = np.bincount((draws @ torch.tensor([9, 3, 1])).numpy(), minlength=27) / 3000
    p = chances.numpy()
    assert (np.abs(shares - p) < 5 * np.sqrt(p * (1 - p) / 3000) + 1e-3).all()


@torch.no_grad()
def test_draws_of_numbers_follow_their_density():
    decoder = GaussianDecoder(1, 1, (4,), seeded(5)).double()
    z = torch.full((4000, 1), 0.4, dtype=torch.float64)
    mean, log_std = (float(part[0, 0]) for part in decoder(z))
    draws = decoder.sample(z, seeded(6)).numpy()[:, 0]
    assert abs(log_std) > 0.05
    assert kstest(draws, norm(mean, np.exp(log_std)).cdf).pvalue > 1e-4
