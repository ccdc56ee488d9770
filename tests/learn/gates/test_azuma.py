"""The inequality on simulated supermartingales, its inverse, and a case known by heart."""

import numpy as np
import pytest
from scipy.stats import binom

from pindown.learn.gates import azuma_hoeffding, azuma_rise


def test_fair_coin_walks_respect_the_bound_at_every_height():
    n = 60
    for rise in range(1, n + 1):
        heads = (n + rise + 1) // 2
        assert binom.sf(heads - 1, n, 0.5) <= azuma_hoeffding(rise, np.ones(n))


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
        rise = azuma_rise(failure, c)
        slack = 3 * np.sqrt(failure / runs)
        assert np.mean(rise <= X) <= failure + slack
        assert np.mean(highest >= rise) <= failure + slack  # at any time: the process may be stopped


def test_inverse_and_scale():
    c = [0.5, 2.0, 1.5]
    for p in (0.9, 0.1, 1e-6):
        assert azuma_hoeffding(azuma_rise(p, c), c) == pytest.approx(p, rel=1e-12)
    assert azuma_hoeffding(3e200, [1e200]) == pytest.approx(azuma_hoeffding(3, [1]))
    assert azuma_hoeffding(1, [0.0, 0.0]) == 0.0


@pytest.mark.parametrize(
    "rise, c", [(0, [1]), (-1, [1]), (np.nan, [1]), (1, []), (1, [-1]), (1, [np.nan]), ("a", [1])]
)
def test_bad_numbers_are_refused(rise, c):
    with pytest.raises(ValueError, match="must be"):
        azuma_hoeffding(rise, c)


@pytest.mark.parametrize("p", [0, 1, -0.1, 2, np.nan, True, "x"])
def test_bad_probabilities_are_refused(p):
    with pytest.raises(ValueError, match="failure"):
        azuma_rise(p, [1])
