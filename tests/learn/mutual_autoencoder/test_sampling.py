"""Information from above: against a closed form, and never far below it."""

import math

import torch

from pindown.learn.mutual_autoencoder.sampling import sampled_information
from tests.learn.mutual_autoencoder.test_measure import seeded, straight


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
