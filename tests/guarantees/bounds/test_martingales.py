"""Rises of simulated processes stay within the bounds, at every time at once."""

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from pindown.guarantees.bounds import supermartingale_bound, supermartingale_rise

RUNS = 20_000


@pytest.mark.parametrize("drift", [0.0, 0.2])
def test_simulated_maximum(drift):
    rng = np.random.default_rng(0)
    sizes = np.array([1.0, 0.5, 2.0, 1.0] * 10)
    up = 0.5 * (1 - drift)
    steps = np.where(rng.random((RUNS, 40)) < up, sizes, -sizes)
    highest = np.cumsum(steps, axis=1).max(axis=1)
    for rise in (3.0, 8.0, 15.0):
        assert np.mean(highest >= rise) <= supermartingale_bound(rise, sizes).value


def test_rare_large_steps_and_their_variance():
    rng = np.random.default_rng(1)
    p, n = 0.01, 200
    steps = np.where(rng.random((RUNS, n)) < p, 1 - p, -p)  # martingale, variance p (1 - p)
    highest = np.cumsum(steps, axis=1).max(axis=1)
    for rise in (3.0, 6.0):
        bound = supermartingale_bound(rise, np.ones(n), variance=n * p * (1 - p))
        assert np.mean(highest >= rise) <= bound.value
        assert bound.terms["freedman"] < bound.terms["azuma"] / 4


def test_inverse_and_monotone():
    for variance in (None, 0.5):
        rise = supermartingale_rise(0.01, np.ones(30), variance=variance)
        assert supermartingale_bound(rise, np.ones(30), variance=variance).value == pytest.approx(
            0.01, rel=1e-9
        )
    values = [supermartingale_bound(r, [1, 1], variance=1.0).value for r in (0.5, 1, 2, 3)]
    assert values == sorted(values, reverse=True)


def test_edges():
    assert supermartingale_bound(1.0, [0.0]).value == 0.0
    assert supermartingale_bound(1.0, [0.0], variance=0.0).value == 0.0
    assert supermartingale_bound(1e-9, [1e200]).vacuous is (
        supermartingale_bound(1e-9, [1e200]).value >= 1
    )
    assert supermartingale_bound(1.0, [1.0]).kind == "exact"


@pytest.mark.parametrize("bad", [[], [-1.0], [math.nan], [math.inf]])
def test_refuses(bad):
    with pytest.raises(ValueError, match="increments"):
        supermartingale_bound(1.0, bad)


def test_fair_coin_walks_respect_the_bound_at_every_height():
    n = 60
    for rise in range(1, n + 1):
        heads = (n + rise + 1) // 2
        assert binom.sf(heads - 1, n, 0.5) <= supermartingale_bound(rise, np.ones(n)).value


@pytest.mark.parametrize("seed", range(3))
def test_steps_that_depend_on_the_past_respect_the_bound(seed):
    rng = np.random.default_rng(seed)
    runs, n = 20_000, 40
    c = rng.uniform(0.2, 2.0, n)
    X = np.zeros(runs)
    highest = np.zeros(runs)
    for ci in c:
        # Larger steps when ahead, always with mean at most zero.
        size = np.where(X > 0, ci, ci * rng.uniform(0, 1, runs))
        drift = np.where(X < -1, 0.0, -0.02 * ci)
        X += np.clip(size * rng.choice([-1, 1], runs) * 0.98 + drift, -ci, ci)
        np.maximum(highest, X, out=highest)
    for failure in (0.5, 0.2, 0.05, 0.01):
        rise = supermartingale_rise(failure, c)
        slack = 3 * np.sqrt(failure / runs)
        assert np.mean(rise <= X) <= failure + slack
        assert np.mean(highest >= rise) <= failure + slack  # at any time: the process may be stopped


def test_inverse_and_scale_of_the_first_bound():
    c = [0.5, 2.0, 1.5]
    for p in (0.9, 0.1, 1e-6):
        assert supermartingale_bound(supermartingale_rise(p, c), c).value == pytest.approx(p, rel=1e-12)
    assert supermartingale_bound(3e200, [1e200]).value == pytest.approx(
        supermartingale_bound(3, [1]).value
    )
    assert supermartingale_bound(1, [0.0, 0.0]).value == 0.0


@pytest.mark.parametrize(
    "rise, c", [(0, [1]), (-1, [1]), (np.nan, [1]), (1, []), (1, [-1]), (1, [np.nan]), ("a", [1])]
)
def test_bad_numbers_are_refused(rise, c):
    with pytest.raises(ValueError, match="must be"):
        supermartingale_bound(rise, c)


@pytest.mark.parametrize("p", [0, 1, -0.1, 2, np.nan, True, "x"])
def test_bad_probabilities_are_refused(p):
    with pytest.raises(ValueError, match="failure"):
        supermartingale_rise(p, [1])


def test_what_can_happen_never_gets_probability_zero():
    # 9,000 heads more than tails in 10,000 flips are rare, not impossible.
    assert supermartingale_bound(9000.0, np.ones(10_000)).value > 0.0
    assert supermartingale_bound(9000.0, np.ones(10_000), variance=10.0).terms["freedman"] > 0.0


def test_small_probabilities_are_rounded_up():
    rng = np.random.default_rng(0)
    for rise, c, V in rng.uniform([3.0, 0.3, 0.5], [33.0, 0.4, 1.0], (200, 3)):
        bound = supermartingale_bound(rise, np.full(11, c), variance=V)
        with mpmath.workdps(50):
            up, step = mpmath.mpf(rise), mpmath.mpf(c)
            azuma = mpmath.exp(-up * up / (22 * step**2))
            freedman = mpmath.exp(-up * up / (2 * (mpmath.mpf(V) + step * up / 3)))
            for name, true in (("azuma", azuma), ("freedman", freedman)):
                assert true <= bound.terms[name] <= true * (1 + mpmath.mpf(10) ** -9)
