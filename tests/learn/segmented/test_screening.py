"""Gaps that are left out hold no breakpoint of a better fit; large problems are proved in seconds."""

import time
from itertools import combinations_with_replacement

import numpy as np
import pytest

from pindown.deadline import NEVER, Deadline
from pindown.learn.segmented import SegmentedRegressor
from pindown.learn.segmented._compiled.parabolas import moment_blocks
from pindown.learn.segmented._squared import _least_sums, least_squares, possible_gaps


def problem(seed, n=12):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-1, 1, n))
    y = np.abs(x - 0.2) + 0.1 * rng.normal(size=n) if seed % 2 else rng.normal(size=n)
    return x, (y - y.mean()) / y.std(), rng.uniform(0.3, 2.0, n)


def separate_lines(x, y, w, gaps):
    """Sum of the losses of lines that are fitted apart, by plain least squares."""
    loss = 0.0
    for first, stop in zip([0, *(g + 1 for g in gaps)], [*(g + 1 for g in gaps), len(x)], strict=True):
        if stop > first:
            design = np.c_[np.ones(stop - first), x[first:stop]] * np.sqrt(w[first:stop, None])
            target = y[first:stop] * np.sqrt(w[first:stop])
            loss += np.sum((design @ np.linalg.lstsq(design, target, rcond=None)[0] - target) ** 2)
    return loss


@pytest.mark.parametrize("seed", range(6))
def test_sums_of_single_gaps_are_those_of_all_tuples(seed):
    x, y, w = problem(seed)
    gaps = np.arange(len(x) - 1)
    for breaks in (1, 2, 3):
        sums = _least_sums(moment_blocks(x, y, w), gaps, gaps, len(x), breaks, np.inf, NEVER)
        least = np.full(len(gaps), np.inf)
        for places in combinations_with_replacement(gaps, breaks):
            loss = separate_lines(x, y, w, places)
            least[list(places)] = np.minimum(least[list(places)], loss)
        np.testing.assert_allclose(sums, least, atol=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_sums_of_blocks_are_below_those_of_their_gaps_and_tight_for_few(seed):
    x, y, w = problem(seed, 16)
    blocks, gaps = moment_blocks(x, y, w), np.arange(15)
    single = _least_sums(blocks, gaps, gaps, 16, 2, np.inf, NEVER)
    for size in (2, 3, 5):
        low = np.arange(0, 15, size)
        high = np.minimum(low + size - 1, 14)
        sums = _least_sums(blocks, low, high, 16, 2, np.inf, NEVER)
        inside = np.array([single[a : b + 1].min() for a, b in zip(low, high, strict=True)])
        assert (sums <= inside + 1e-10).all()
        assert (sums > 0).any()


@pytest.mark.parametrize("seed", range(8))
def test_the_best_fit_is_never_left_out(seed):
    x, y, w = problem(seed, 60)
    fit = least_squares(x, y, w, 3, NEVER)
    for above in (1e-9, 0.05, 1.0):
        kept, floor = possible_gaps(x, y, w, 3, fit.loss * (1 + above), NEVER)
        assert np.isin(fit.gaps, kept).all()
        assert floor <= fit.loss
    kept, floor = possible_gaps(x, y, w, 3, fit.loss * (1 + 1e-9), Deadline.after(0.0))
    assert len(kept) == 59  # no time: nothing is left out, and nothing is claimed
    assert floor == 0.0


def planted(n, seed=0):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 10, n))
    y = np.interp(x, [0, 2, 4, 6.5, 8, 10], [0, 1, -0.5, 0.4, 1.5, -1]) + 0.2 * rng.normal(size=n)
    return x, y


def test_twenty_thousand_points_are_proved():
    SegmentedRegressor(3).fit(*planted(30))
    x, y = planted(20_000)
    start = time.process_time()
    model = SegmentedRegressor(5, budget=None).fit(x, y)
    assert model.optimal_
    np.testing.assert_allclose(model.breakpoints_, [2, 4, 6.5, 8], atol=0.1)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("n_pieces", [5, 8])
def test_budget_is_kept_where_nothing_can_be_proved(n_pieces):
    SegmentedRegressor(3).fit(*planted(30))
    y = np.random.default_rng(0).normal(size=20_000)
    start = time.process_time()
    model = SegmentedRegressor(n_pieces, budget=1.0).fit(np.arange(20_000.0), y)
    assert time.process_time() - start < 2.1
    assert 0.0 <= model.lower_bound_ < model.best_loss_
