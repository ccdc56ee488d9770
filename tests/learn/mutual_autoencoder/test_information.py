"""Measured information against closed forms: straight decoders, noiseless symbols, several features."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from pindown.learn.mutual_autoencoder._networks import (
    CategoricalDecoder,
    GaussianDecoder,
    MixtureGuess,
    Numbers,
)
from pindown.learn.mutual_autoencoder.information import (
    exact_information,
    measure_information,
    quick_information,
    sampled_information,
)
from pindown.learn.mutual_autoencoder.posterior_collapse import linear_gaussian_optimum


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def straight(gains, noise):
    """x_j = gain_j z + noise e_j."""
    gains = torch.as_tensor(gains, dtype=torch.float64)
    decoder = GaussianDecoder(len(gains), gains.shape[1], (), seeded()).double()
    with torch.no_grad():
        decoder.body[0].weight.copy_(torch.cat([gains, torch.zeros_like(gains)]))
        decoder.body[0].bias.copy_(torch.tensor([0.0] * len(gains) + [math.log(noise)] * len(gains)))
    return decoder.requires_grad_(False)


@pytest.mark.parametrize("target", [0.0, 0.5, 2.0, 4.0])
def test_quadrature_on_the_optimum_gives_its_information(target):
    best = linear_gaussian_optimum(target)
    value, change = exact_information(straight([[best.slope]], best.std))
    assert value == pytest.approx(target, abs=1e-6)
    assert change < 1e-4
    if target < 3:
        assert quick_information(straight([[best.slope]], best.std)) == pytest.approx(target, abs=1e-3)


def test_a_sharp_partition_tells_the_entropy_of_its_parts():
    """Symbol 1 where z > 0, else 0, without noise: log 2 nats."""
    decoder = CategoricalDecoder([2], 1, (), seeded()).double()
    with torch.no_grad():
        decoder.body[0].weight.copy_(torch.tensor([[0.0], [3000.0]]))
        decoder.body[0].bias.zero_()
    assert exact_information(decoder.requires_grad_(False))[0] == pytest.approx(math.log(2), abs=3e-3)


def test_several_features_against_the_closed_form():
    """For one code and features a z + s e, I = 0.5 log(1 + |a|^2 / s^2)."""
    decoder = straight([[0.7], [-0.4], [1.1]], 0.5)
    found = measure_information(decoder, None, seeded(), steps=0)
    truth = 0.5 * math.log1p((0.49 + 0.16 + 1.21) / 0.25)
    assert found.kind == "estimate" and found.method == "quadrature over codes"
    assert abs(found.value - truth) < 5 * found.standard_error < 0.2


def test_longer_codes_get_the_variational_bound():
    """I = 0.5 log det(1 + A A' / s^2); a normal r with affine mean is the posterior, so it is tight."""
    gains = np.array([[0.9, 0.0], [0.3, 0.6]])
    decoder = straight(gains, 0.5)
    guess = MixtureGuess(Numbers(2), 2, (), 1, seeded(1))
    found = measure_information(decoder, guess, seeded(2), steps=500)
    posterior = np.linalg.inv(np.eye(2) + gains.T @ gains / 0.25)
    # A guess with independent coordinates falls short of the truth by their posterior dependence.
    best = -0.5 * np.log(np.diag(posterior)).sum()
    truth = -0.5 * np.log(np.linalg.det(posterior))
    assert found.method == "variational lower bound" and "at least" in str(found)
    assert found.value <= truth + 5 * found.standard_error
    assert abs(found.value - best) < 0.02 + 5 * found.standard_error
    assert found.bits == pytest.approx(found.value / math.log(2))


@pytest.mark.parametrize("slope", [0.5, 3.0])
def test_symbols_by_adaptive_quadrature(slope):
    """Three symbols with logits 0, slope z and 1 - z: entropy of the mean less the mean entropy."""
    from scipy.integrate import quad
    from scipy.special import softmax
    from scipy.stats import entropy, norm

    decoder = CategoricalDecoder([3], 1, (), seeded()).double()
    with torch.no_grad():
        decoder.body[0].weight.copy_(torch.tensor([[0.0], [slope], [-1.0]]))
        decoder.body[0].bias.copy_(torch.tensor([0.0, 0.0, 1.0]))

    def mean(function):
        return quad(lambda z: norm.pdf(z) * function(softmax([0.0, slope * z, 1 - z])), -9, 9)[0]

    truth = entropy([mean(lambda p, j=j: p[j]) for j in range(3)]) - mean(entropy)
    assert exact_information(decoder)[0] == pytest.approx(truth, abs=1e-7)
    found = measure_information(decoder, None, seeded(), steps=0)
    assert found.kind == "exact" and found.value == pytest.approx(truth, abs=1e-7)
    assert found.bits == pytest.approx(truth / math.log(2))


def test_against_the_closed_form_in_two_dimensions():
    """x = A z + s e has I = 0.5 log det(1 + A'A / s^2)."""
    gains = torch.tensor([[0.9, 0.2], [-0.3, 0.6]], dtype=torch.float64)
    decoder = straight(gains.tolist(), 0.5)
    truth = 0.5 * float(torch.logdet(torch.eye(2, dtype=torch.float64) + gains.T @ gains / 0.25))
    value, error = sampled_information(decoder, seeded(1), n=2000, codes=2000)
    assert abs(value - truth) < 5 * error < 0.2


def test_few_codes_err_upwards():
    decoder = straight([[3.0]], 0.3)
    truth = 0.5 * math.log1p(100.0)
    found = [sampled_information(decoder, seeded(k), n=2000, codes=k)[0] for k in (3, 2000)]
    assert found[0] > truth + 0.5 and abs(found[1] - truth) < 0.15


def test_draws_and_codes_need_not_be_as_many():
    decoder, truth = straight([[0.8]], 0.6), 0.5 * math.log1p(16 / 9)
    value, error = sampled_information(decoder, seeded(2), n=500, codes=4000)
    assert abs(value - truth) < 5 * error < 0.3
    assert error < sampled_information(decoder, seeded(2), n=50, codes=4000)[1]
