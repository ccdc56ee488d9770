"""The posterior-collapse theorem: an informative Gaussian code of symbols always costs evidence."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from pindown.learn.mutual_autoencoder.posterior_collapse import collapse_gap


@pytest.mark.parametrize("seed", range(20))
def test_every_informative_code_has_a_price(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 8)
    mu, sd = rng.normal(size=n), rng.uniform(0.2, 1.5, n)
    found = collapse_gap(mu, sd, rng.dirichlet(np.ones(n)))
    assert found.gap > 0 and found.information > 0 and not found.collapsed


def test_the_price_is_zero_only_at_the_prior():
    assert collapse_gap(np.zeros(5), np.ones(5)).gap == 0.0
    assert collapse_gap(np.zeros((5, 3)), np.ones((5, 3))).collapsed
    nearly = collapse_gap([0.0, 0.01], [1.0, 1.0])
    assert 0 < nearly.gap < 1e-4 and not nearly.collapsed
    # One common code tells nothing, yet costs: the theorem's optimum is unique.
    shifted = collapse_gap([0.3, 0.3], [1.0, 1.0])
    assert shifted.gap == pytest.approx(0.045) and shifted.information == pytest.approx(0.0, abs=1e-12)


def test_against_adaptive_integration():
    mu, sd, p = np.array([-1.0, 0.4, 2.0]), np.array([0.3, 0.8, 0.5]), np.array([0.5, 0.3, 0.2])

    def q(z):
        return float(p @ norm.pdf(z, mu, sd))

    gap = quad(lambda z: q(z) * math.log(q(z) / norm.pdf(z)), -9, 9, limit=200, epsabs=1e-11)[0]
    told = sum(
        w
        * quad(
            lambda z, m=m, s=s: norm.pdf(z, m, s) * math.log(norm.pdf(z, m, s) / q(z)),
            m - 9 * s,
            m + 9 * s,
            limit=200,
            epsabs=1e-11,
        )[0]
        for m, s, w in zip(mu, sd, p, strict=True)
    )
    found = collapse_gap(mu, sd, p)
    assert found.gap == pytest.approx(gap, abs=1e-8)
    assert found.information == pytest.approx(told, abs=1e-8)


def test_no_decoder_beats_the_best_elbo_and_bayes_attains_it():
    rng = np.random.default_rng(0)
    mu, sd, p = rng.normal(size=4), rng.uniform(0.3, 1.0, 4), rng.dirichlet(np.ones(4))
    z = np.linspace(-12, 12, 20_001)
    codes = norm.pdf(z[:, None], mu, sd)
    rate = p @ (0.5 * (mu**2 + sd**2 - 1) - np.log(sd))

    def elbo(decoder):
        return float(np.sum(p * codes * np.log(decoder)) * (z[1] - z[0]) - rate)

    best = collapse_gap(mu, sd, p).best_elbo
    joint = np.maximum(p * codes, 1e-290)
    bayes = joint / joint.sum(1, keepdims=True)
    assert elbo(bayes) == pytest.approx(best, abs=1e-6)
    for _ in range(20):
        logits = rng.normal(size=(5, 4)) * 2
        decoder = np.exp(np.vander(np.tanh(z), 5) @ logits)
        assert elbo(decoder / decoder.sum(1, keepdims=True)) <= best


def test_on_ten_symbols_the_price_grows_with_what_the_code_tells():
    """The ten slices of the prior, blurred ever less: the more is told, the larger the price."""
    middles = norm.ppf((np.arange(10) + 0.5) / 10)
    found = [
        collapse_gap(middles * np.sqrt(1 - s * s), np.full(10, s)) for s in (0.95, 0.6, 0.3, 0.1, 0.03)
    ]
    gaps, told = [f.gap for f in found], [f.information for f in found]
    assert all(np.diff(gaps) > 0) and all(np.diff(told) > 0)
    assert told[-1] == pytest.approx(math.log(10), abs=0.02) and gaps[-1] > 1.0


def test_draws_agree_with_quadrature():
    mu, sd = np.array([-1.0, 1.0]), np.array([0.5, 0.7])
    line = collapse_gap(mu, sd)
    plane = collapse_gap(np.stack([mu, 0 * mu], 1), np.stack([sd, 0 * sd + 1], 1))
    assert plane.kind == "estimate"
    assert abs(plane.gap - line.gap) < 5 * plane.standard_error
    assert "estimate" in str(plane) and "exact" in str(line)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([0.0], [1.0, 1.0]), "means and stds"),
        (([], []), "means and stds"),
        (([0.0], [0.0]), "positive"),
        (([np.nan], [1.0]), "finite"),
        (([0.0, 1.0], [1.0, 1.0], [0.5, 0.6]), "sum to 1"),
        (([0.0, 1.0], [1.0, 1.0], [1.0]), "2 probabilities"),
    ],
)
def test_bad_codes_are_explained(arguments, said):
    with pytest.raises(ValueError, match=said):
        collapse_gap(*arguments)


def test_standard_errors_are_the_spread_of_other_draws():
    mu, sd = np.array([[1.0, 0.0], [-1.0, 0.5], [0.0, -2.0]]), np.full((3, 2), 0.7)
    runs = [collapse_gap(mu, sd, draws=400, random_state=seed) for seed in range(60)]
    gaps = np.array([run.gap for run in runs])
    assert np.mean([run.standard_error for run in runs]) == pytest.approx(gaps.std(), rel=0.3)
    many = collapse_gap(mu, sd, draws=40_000)
    assert abs(gaps.mean() - many.gap) < 5 * gaps.std() / math.sqrt(60)
