"""The variational bound on joints whose information is known."""

import math
import warnings

import numpy as np
import pytest
import torch

from pindown.learn.mutual_autoencoder import InfomaxEstimator, linear_gaussian_information
from pindown.learn.mutual_autoencoder.infomax import binned_information

SIGMAS = 5.0


def line(gain, noise):
    def draw(n, random):
        z = torch.randn((n, 1), generator=random)
        return z, gain * z + noise * torch.randn((n, 1), generator=random)

    return draw


@pytest.mark.filterwarnings("ignore:the bound")  # twenty updates do not make a good guess
def test_never_above_the_truth_on_twenty_gaussian_joints():
    rng = np.random.default_rng(0)
    for seed in range(20):
        gain, noise = rng.normal(), rng.uniform(0.3, 2.0)
        found = InfomaxEstimator(hidden=(), mixture=1, steps=60, n_test=4000, random_state=seed)
        bound = found.fit(line(gain, noise)).bound_
        assert bound.value <= linear_gaussian_information(gain, noise) + SIGMAS * bound.standard_error


def test_tight_when_the_guess_can_be_the_posterior():
    bound = InfomaxEstimator(hidden=(), mixture=1, steps=600).fit(line(1.5, 1.0)).bound_
    assert (
        abs(bound.value - linear_gaussian_information(1.5, 1.0)) < 0.01 + SIGMAS * bound.standard_error
    )


@pytest.mark.filterwarnings("ignore:the bound")
def test_bits():
    nats, bits = (
        InfomaxEstimator(hidden=(), mixture=1, steps=50, n_test=500, units=units)
        .fit(line(1.0, 1.0))
        .bound_
        for units in ("nats", "bits")
    )
    assert bits.value == pytest.approx(nats.value / math.log(2))
    assert "bits" in str(bits)


def test_bad_input_is_explained():
    with pytest.raises(ValueError, match="mixture must be"):
        InfomaxEstimator(mixture=0)
    with pytest.raises(ValueError, match="must return z"):
        InfomaxEstimator(steps=1).fit(lambda n, random: (torch.zeros(n), torch.zeros(n, 1)))
    with pytest.raises(ValueError, match="learning_rate"):
        InfomaxEstimator(learning_rate=-1.0)
    with pytest.raises(ValueError, match="noise must be a finite number above 0"):
        linear_gaussian_information(1.0, 0.0)


def folded(n, random):
    """Only the size of z is seen: a posterior with two peaks, which no single normal comes near."""
    z = torch.randn((n, 1), generator=random)
    return z, z.abs() + 0.1 * torch.randn((n, 1), generator=random)


def test_a_guess_that_cannot_reach_the_posterior_is_told_by_histograms():
    with pytest.warns(UserWarning, match="a larger mixture, more hidden layers or steps"):
        weak = InfomaxEstimator(mixture=1, hidden=(), steps=200, n_test=4000).fit(folded)
    assert weak.bound_.value < 0.1
    assert weak.histogram_.value > 1.0


def test_histograms_are_below_the_truth_and_do_not_warn_about_a_good_guess():
    rng = np.random.default_rng(0)
    for r in (0.0, 0.5, 0.9):
        z = rng.standard_normal((20_000, 2))
        x = r * z + np.sqrt(1 - r * r) * rng.standard_normal((20_000, 2))
        found = binned_information(z, x)
        truth = -0.5 * np.log(1 - r * r)  # of one pair of coordinates
        assert 0.85 * truth - 0.02 <= found.value <= truth + 3 * found.standard_error

    def gaussian(n, random):
        z = torch.randn((n, 1), generator=random)
        return z, z + 0.5 * torch.randn((n, 1), generator=random)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        InfomaxEstimator(mixture=1, hidden=(), steps=300, n_test=4000).fit(gaussian)
