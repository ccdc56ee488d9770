"""Densities on a grid: Bayes against the closed form, the resampling encoder against its own draws."""

import numpy as np
import torch
from scipy.stats import norm

from pindown.learn.mutual_autoencoder._objective import resample
from pindown.learn.mutual_autoencoder.evaluation import (
    encoder_density,
    mean_divergence,
    posterior_density,
)
from tests.learn.mutual_autoencoder.test_objective import seeded, straight

GRID = np.linspace(-8, 8, 1601)
STEP = GRID[1] - GRID[0]


def test_bayes_on_the_straight_model():
    _, decoder = straight()
    x = torch.tensor([[1.5], [-0.3]], dtype=torch.float64)
    found = posterior_density(decoder, x, GRID)
    np.testing.assert_allclose(found, norm.pdf(GRID, 0.8 * x.numpy(), 0.6), atol=1e-8)


def test_density_of_the_resampling_encoder_matches_its_draws_and_nears_the_posterior():
    encoder, decoder = straight()
    x = torch.tensor([[1.5]], dtype=torch.float64)
    truth = posterior_density(decoder, x, GRID)
    gaps = []
    for k in (None, 5, 20):
        density = encoder_density(encoder, decoder, x, GRID, k, seeded())
        assert abs(density.sum() * STEP - 1) < 0.03
        gaps.append(mean_divergence(density, truth, GRID))
    assert gaps[0] > 2 * gaps[1] > 4 * gaps[2]
    draws = resample(encoder, decoder, x.expand(20_000, 1), 5, seeded(1)).numpy()[:, 0]
    density = encoder_density(encoder, decoder, x, GRID, 5, seeded())[0]
    for low, high in ((-9, 0.5), (0.5, 1.2), (1.2, 9)):
        share = float(((draws > low) & (draws < high)).mean())
        inside = (low < GRID) & (high > GRID)
        assert abs(share - density[inside].sum() * STEP) < 0.04


def test_one_proposal_is_the_plain_density():
    encoder, decoder = straight()
    x = torch.tensor([[1.5]], dtype=torch.float64)
    one, plain = (encoder_density(encoder, decoder, x, GRID, k, seeded()) for k in (1, None))
    np.testing.assert_array_equal(one, plain)
    np.testing.assert_allclose(plain[0], norm.pdf(GRID), atol=1e-12)
