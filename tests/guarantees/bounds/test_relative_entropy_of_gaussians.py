"""Divergences against numerical integrals and Monte Carlo."""

import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

from pindown.guarantees.bounds import gaussian_kl, mixture_kl_bound
from pindown.guarantees.bounds.relative_entropy import mixture_exponent


@pytest.mark.parametrize(
    ("a", "s", "b", "t"), [(0.3, 1.0, -0.5, 2.0), (1.0, 0.2, 0.0, 0.5), (2.0, 1.0, 2.0, 1.0)]
)
def test_one_gaussian_by_quadrature(a, s, b, t):
    def integrand(x):
        return norm.pdf(x, a, s) * (norm.logpdf(x, a, s) - norm.logpdf(x, b, t))

    integral = quad(integrand, a - 12 * s, a + 12 * s)[0]
    assert gaussian_kl([a], s, [b], t) == pytest.approx(integral, abs=1e-9)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_mixture_bound_is_above_monte_carlo(dimension):
    rng = np.random.default_rng(dimension)
    for _ in range(20):
        a, centres = rng.standard_normal(dimension), rng.standard_normal((4, dimension)) * 2
        s, t = rng.uniform(0.3, 2, 2)
        weights = rng.dirichlet(np.ones(4))
        x = a + s * rng.standard_normal((20_000, dimension))
        log_f = norm.logpdf(x, a, s).sum(axis=1)
        log_g = logsumexp(
            np.stack([norm.logpdf(x, c, t).sum(axis=1) for c in centres]), axis=0, b=weights[:, None]
        )
        sample = log_f - log_g
        bound = mixture_kl_bound(a, s, centres, prior_scale=t, weights=weights)
        assert bound >= sample.mean() - 4 * sample.std() / math.sqrt(len(sample))


def test_one_component_is_exact():
    assert mixture_kl_bound([1.0, 2.0], 0.5, [[0.0, 0.0]], prior_scale=0.7) == pytest.approx(
        gaussian_kl([1.0, 2.0], 0.5, [0.0, 0.0], 0.7), rel=1e-12
    )


def test_adding_components_costs_at_most_a_logarithm():
    rng = np.random.default_rng(3)
    distances = rng.uniform(1, 3, 25)
    best = 0.5 * distances.min() ** 2
    assert best - 1e-9 <= mixture_exponent(distances, 1.0) <= best + math.log(25) + 1e-9
    fixed = np.full(2, 0.5)
    assert mixture_exponent(np.array([2.0, 1.5]), 1.0, fixed) <= mixture_exponent(
        np.array([2.0, 9.0]), 1.0, fixed
    )


def test_far_away_is_infinite_not_nan():
    assert mixture_exponent(np.array([1e200]), 1e-200) == math.inf


@pytest.mark.parametrize(
    "call",
    [
        lambda: gaussian_kl([1.0], 1.0, [1.0, 2.0]),
        lambda: gaussian_kl([np.nan], 1.0, [1.0]),
        lambda: gaussian_kl([1.0], 0.0, [1.0]),
        lambda: mixture_kl_bound([1.0], 1.0, np.empty((0, 1))),
        lambda: mixture_kl_bound([1.0], 1.0, [[1.0]], weights=[2.0]),
    ],
)
def test_refuses(call):
    with pytest.raises(ValueError, match=r"must|need"):
        call()


@pytest.mark.parametrize("ratio", [1 + 1e-15, 1 + 1e-9, 1 - 1e-8, 0.7, 3.0, 1e-170, 1e170])
def test_widths_are_rounded_up_also_where_they_nearly_agree(ratio):
    with mpmath.workdps(60):
        x = mpmath.mpf(ratio) ** 2
        true = (x - 1 - mpmath.log(x)) / 2 * 1000
        assert true <= gaussian_kl(np.zeros(1000), ratio, np.zeros(1000), 1.0)
    assert gaussian_kl(np.zeros(1000), 1.0, np.zeros(1000), 1.0) == 0.0
