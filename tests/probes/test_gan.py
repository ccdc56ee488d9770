"""The game on finitely many outcomes: its best discriminator, its value, and what was misprinted."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from pindown.probes.gan import cross_entropy, gan_value, jensen_shannon, optimal_discriminator


def pair(seed, k=7):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))


@pytest.mark.parametrize("seed", range(5))
def test_value_at_the_optimum_is_twice_the_divergence_minus_two_logarithms(seed):
    p, q = pair(seed)
    best = gan_value(p, q, optimal_discriminator(p, q))
    assert best == pytest.approx(2 * jensen_shannon(p, q) - 2 * math.log(2), abs=1e-12)
    assert jensen_shannon(p, q) == pytest.approx(jensenshannon(p, q) ** 2, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_no_discriminator_does_better(seed):
    p, q = pair(seed, 4)
    found = minimize(lambda z: -gan_value(p, q, 1 / (1 + np.exp(-z))), np.zeros(4), tol=1e-12)
    np.testing.assert_allclose(1 / (1 + np.exp(-found.x)), optimal_discriminator(p, q), atol=1e-4)
    assert -found.fun <= gan_value(p, q, optimal_discriminator(p, q)) + 1e-12


def test_generator_does_best_by_drawing_as_the_data_do():
    """It is the generator that imitates the data; the discriminator has nothing left to tell then."""
    p, _ = pair(9)
    assert gan_value(p, p, optimal_discriminator(p, p)) == pytest.approx(-2 * math.log(2))
    np.testing.assert_allclose(optimal_discriminator(p, p), 0.5)
    for seed in range(20):
        _, q = pair(seed)
        assert gan_value(p, q, optimal_discriminator(p, q)) > -2 * math.log(2)


def test_printed_divergence_without_the_second_logarithm_is_not_one():
    """Equal distributions have divergence zero; the printed formula gives one half."""
    p, q = pair(3)
    middle = (p + q) / 2

    def printed(a, b):
        m = (a + b) / 2
        return 0.5 * np.sum(a * np.log(a / m)) + 0.5 * np.sum(b * (b / m))

    assert printed(p, p) == pytest.approx(0.5)
    assert jensen_shannon(p, p) == 0.0
    best = gan_value(p, q, optimal_discriminator(p, q))
    assert abs(2 * printed(p, q) - 2 * math.log(2) - best) > 0.1
    assert jensen_shannon(p, q) == pytest.approx(0.5 * entropy(p, middle) + 0.5 * entropy(q, middle))


def test_printed_cross_entropy_does_not_see_the_label():
    """With the prediction in the place of the label, being right and being wrong cost the same."""
    scores = np.array([-3.0, 0.5, 2.0])
    D = 1 / (1 + np.exp(-scores))
    printed = -D * np.log(D) - (1 - D) * np.log(1 - D)
    for label in (0.0, 1.0):
        exact = -label * np.log(D) - (1 - label) * np.log(1 - D)
        np.testing.assert_allclose(cross_entropy(label, scores), exact, rtol=1e-12)
        assert np.abs(printed - exact).max() > 0.3
    right, wrong = cross_entropy([1, 0], [5.0, 5.0])
    assert right < 0.01 and wrong > 5


def test_value_is_minus_the_cross_entropy():
    p, q = pair(4)
    z = np.random.default_rng(0).standard_normal(7)
    value = -(p @ cross_entropy(1.0, z) + q @ cross_entropy(0.0, z))
    assert gan_value(p, q, 1 / (1 + np.exp(-z))) == pytest.approx(value, abs=1e-12)


def test_edges():
    assert gan_value([1.0, 0.0], [0.0, 1.0], [1.0, 0.0]) == 0.0
    assert gan_value([1.0, 0.0], [0.0, 1.0], [0.0, 0.0]) == -math.inf
    assert optimal_discriminator([1.0, 0.0], [1.0, 0.0])[1] == 0.5
    assert cross_entropy(1.0, -1e4) == 1e4


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: jensen_shannon([0.5, 0.4], [0.5, 0.5]), "sum to 1"),
        (lambda: jensen_shannon([0.5, 0.5], [1.0]), "same outcomes"),
        (lambda: jensen_shannon([], []), "one probability"),
        (lambda: jensen_shannon([math.nan, 1.0], [0.5, 0.5]), "at least 0"),
        (lambda: gan_value([1.0], [1.0], 1.5), "0 to 1"),
        (lambda: cross_entropy([2.0], [0.0]), "between 0 and 1"),
        (lambda: cross_entropy([1.0], [math.nan]), "NaN"),
    ],
)
def test_refuses(call, words):
    with pytest.raises(ValueError, match=words):
        call()
