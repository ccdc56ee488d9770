"""Information bounds of Gaussian joints, whose mutual information is known."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from pindown.guarantees.bounds.mutual_information import information_lower_bound, standard_normal_entropy


def joint(rng, a, s, n=50_000):
    z = rng.standard_normal(n)
    return z, a * z + s * rng.standard_normal(n)


def test_never_above_the_truth_and_attained_by_the_posterior():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, s = rng.uniform(0.2, 3, 2)
        z, x = joint(rng, a, s)
        true = 0.5 * math.log(1 + a**2 / s**2)
        mean, sd = a * x / (a * a + s * s), s / math.hypot(a, s)
        exact = information_lower_bound(norm.logpdf(z, mean, sd), standard_normal_entropy(1))
        assert exact.value == pytest.approx(true, abs=4 * exact.standard_error)
        wrong = information_lower_bound(norm.logpdf(z, 0.8 * mean, 1.3 * sd), standard_normal_entropy(1))
        assert wrong.value <= true + 3 * wrong.standard_error


def test_gap_is_the_divergence():
    z, x = joint(np.random.default_rng(1), 1.0, 1.0, 400_000)
    found = information_lower_bound(norm.logpdf(z, x / 2, 1.0), standard_normal_entropy(1))
    gap = 0.5 * (0.5 - 1 - math.log(0.5))
    assert 0.5 * math.log(2) - found.value == pytest.approx(gap, abs=0.005)


def test_entropy_of_several_normal_numbers_adds_up():
    for k in (1, 2, 7):
        assert standard_normal_entropy(k) == pytest.approx(k * norm.entropy())


def test_error_is_that_of_the_mean():
    rng = np.random.default_rng(2)
    found = information_lower_bound(3 * rng.standard_normal(90_000), 0.0)
    assert found.standard_error == pytest.approx(3 / 300, rel=0.02)


def test_bits_are_not_nats():
    values = norm.logpdf(np.linspace(-1, 1, 100))
    nats, bits = (information_lower_bound(values, 3.0, units=u) for u in ("nats", "bits"))
    assert nats.value == pytest.approx(bits.value * math.log(2))
    assert "bits" in str(bits) and bits.kind == "estimate"


@pytest.mark.parametrize(
    "bad", [([], 1.0), ([1.0], 1.0), ([1.0, math.nan], 1.0), ([1.0, 2.0], math.inf)]
)
def test_refuses(bad):
    with pytest.raises(ValueError, match="needs"):
        information_lower_bound(*bad)
