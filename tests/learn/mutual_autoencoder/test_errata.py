"""Where the chapter on the mutual autoencoder is wrong as printed."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from pindown.guarantees.bounds.mutual_information import standard_normal_entropy
from pindown.learn.mutual_autoencoder import linear_gaussian_information, linear_gaussian_optimum

# A straight model x = a z + s e with its exact posterior N(slope x, tau^2) as r, and many small batches.
GAIN, NOISE = 1.0, 1.0
SLOPE, TAU = 0.5, math.sqrt(0.5)
BATCHES, SIZE = 200_000, 4


def batch_estimates(seed, tau=TAU):
    """Per batch the estimated information and the estimated gradient in (a, s)."""
    rng = np.random.default_rng(seed)
    z, e = rng.standard_normal((2, BATCHES, SIZE))
    missed = z - SLOPE * (GAIN * z + NOISE * e)
    log_r = -0.5 * (missed / tau) ** 2 - math.log(tau) - 0.5 * math.log(2 * math.pi)
    gradient = np.stack([missed * SLOPE * z, missed * SLOPE * e], -1) / tau**2
    return standard_normal_entropy(1) + log_r.mean(1), gradient.mean(1)


def mean_and_error(values):
    return values.mean(0), values.std(0) / math.sqrt(len(values))


def test_sign_errors_change_only_the_length_if_batches_are_independent():
    target = linear_gaussian_information(GAIN, NOISE) - 0.05
    (m, g), (fresh, _) = batch_estimates(0), batch_estimates(1)
    true_gradient = g.mean(0)
    right = float((fresh > target).mean())  # the truth is above the target
    assert 0.5 < right < 0.9
    update, error = mean_and_error(np.sign(fresh - target)[:, None] * g)
    assert (np.abs(update - (2 * right - 1) * true_gradient) < 5 * error).all()
    # As printed, for any batches: the same draws reverse the direction, though most signs are right.
    same, error = mean_and_error(np.sign(m - target)[:, None] * g)
    assert (m > target).mean() > 0.6
    assert same @ true_gradient < -10 * float(np.abs(true_gradient) @ error)


def test_sign_errors_turn_the_direction_round_where_most_signs_are_wrong():
    """A weak r shows less than the target although the truth is above it."""
    target = linear_gaussian_information(GAIN, NOISE) - 0.05
    (_, g), (fresh, _) = batch_estimates(0), batch_estimates(1, tau=2.0)
    assert (fresh > target).mean() < 0.5
    update, _ = mean_and_error(np.sign(fresh - target)[:, None] * g)
    assert update @ g.mean(0) < 0


def test_formulas_are_in_nats_not_bits():
    """One unit of information with unit noise: a signal of variance 3 in bits, of e^2 - 1 in nats."""
    one_bit = linear_gaussian_information(math.sqrt(3.0), 1.0)
    assert one_bit / math.log(2) == pytest.approx(1.0)
    assert one_bit == pytest.approx(0.693147, abs=1e-6)  # what the formulas give: not the printed unit
    assert linear_gaussian_optimum(1.0).slope ** 2 == pytest.approx(1 - math.exp(-2))
    assert linear_gaussian_optimum(1.0).slope ** 2 != pytest.approx(1 - 2.0**-2, abs=0.05)


def test_the_prior_is_a_density_in_z():
    best = linear_gaussian_optimum(1.0)
    z = np.linspace(-10, 10, 4001)
    step = z[1] - z[0]
    for x in (0.0, 1.0, -2.0):
        likelihood = norm.pdf(x, best.slope * z, best.std)
        assert (likelihood * norm.pdf(z)).sum() * step == pytest.approx(norm.pdf(x), rel=1e-9)
        # As printed, N(x; 0, 1): what is left over z is no density of the data.
        assert abs((likelihood * norm.pdf(x)).sum() * step / norm.pdf(x) - 1.0) > 0.05
