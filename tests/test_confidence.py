"""Confidence limits hold as often as they say, and barely."""

import numpy as np
import pytest
from scipy.stats import binom

from pindown.confidence import clopper_pearson, quantile_upper


@pytest.mark.parametrize("n", [1, 5, 60])
@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_share_is_covered_as_often_as_stated_and_no_more_at_the_worst_share(n, delta):
    limits = np.array([clopper_pearson(k, n, delta) for k in range(n + 1)])
    assert (np.diff(limits) > 0).all()
    for p in np.linspace(0.001, 0.999, 97):
        assert binom.pmf(np.arange(n + 1), n, p)[limits >= p].sum() >= 1 - delta - 1e-12
    for k in range(n):  # just above a limit, samples with k successes or fewer miss: a share of delta
        p = limits[k] * (1 + 1e-9)
        missed = binom.pmf(np.arange(n + 1), n, p)[limits < p].sum()
        assert missed == pytest.approx(delta, rel=1e-4)


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_quantile_is_covered_as_often_as_stated_and_the_next_smaller_value_is_not(share):
    n, delta, runs = 80, 0.1, 4000
    draws = np.random.default_rng(0).random((runs, n))  # uniform: the quantile is the share itself
    limits = np.array([quantile_upper(row, share, delta) for row in draws])
    ordered = np.sort(draws, axis=1)
    before = ordered[np.arange(runs), (ordered < limits[:, None]).sum(axis=1) - 1]
    noise = 4 * np.sqrt(delta / runs)
    assert (limits >= share).mean() >= 1 - delta - noise
    assert (before >= share).mean() <= 1 - delta + noise


def test_quantile_of_few_or_tied_values():
    assert quantile_upper(np.ones(58), 0.95, 0.05) == np.inf
    assert quantile_upper(np.ones(59), 0.95, 0.05) == 1.0
    values = np.array([0.0] * 90 + [7.0] * 10)
    assert quantile_upper(values, 0.5, 0.05) == 0.0 and quantile_upper(values, 0.95, 0.05) == 7.0
