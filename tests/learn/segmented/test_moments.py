"""Moments of runs of points from stored blocks, and moves of breakpoints."""

import numpy as np
import pytest

from pindown.learn.segmented._compiled.breakpoints import best_in_gaps, improve, jump
from pindown.learn.segmented._compiled.parabolas import moment_blocks, moments_between, two_passes


def points(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.sort(rng.uniform(-1, 1, n)), rng.normal(size=n), rng.uniform(0.1, 3.0, n)


@pytest.mark.parametrize("n", [1, 2, 7, 64, 100, 513])
def test_blocks_give_the_moments_of_every_run(n):
    x, y, w = points(n)
    blocks, found, direct = moment_blocks(x, y, w), np.empty(6), np.empty(6)
    for first in range(0, n, max(n // 13, 1)):
        for stop in range(first, n + 1, max(n // 17, 1)):
            moments_between(blocks, first, stop, found)
            two_passes(blocks, first, stop, direct)
            assert np.allclose(found, direct, rtol=1e-13, atol=1e-13)
            if stop > first + 1:
                part = slice(first, stop)
                assert np.isclose(direct[1], np.average(x[part], weights=w[part]))
                S = np.cov(x[part], y[part], aweights=w[part], ddof=0) * w[part].sum()
                assert np.allclose(direct[3:], [S[0, 0], S[0, 1], S[1, 1]], atol=1e-12)


def test_nothing_cancels_for_a_short_run_far_from_the_others():
    x = np.r_[np.linspace(-1, -0.9, 500), 1 - np.arange(40)[::-1] * 1e-9]
    y = np.sin(1e9 * x)
    blocks, found, direct = moment_blocks(x, y, np.ones(540)), np.empty(6), np.empty(6)
    moments_between(blocks, 500, 540, found)
    two_passes(blocks, 500, 540, direct)
    assert np.allclose(found[3:], direct[3:], rtol=1e-6)


def test_jumps_free_the_breakpoints_that_one_outlier_holds():
    x = np.linspace(-1, 1, 201)
    y = np.abs(x) + 0.1 * np.random.default_rng(0).normal(size=201)
    y[60] += 30.0
    blocks = moment_blocks(x, y, np.ones(201))
    start = np.array([100, 130, 160, 190])
    loss, mask = best_in_gaps(x, blocks, start, np.inf)
    near, near_mask, gaps = improve(x, blocks, start, loss, mask)
    _, far, _, _ = jump(x, blocks, gaps, near, near_mask)
    assert far < 2.0 and near > 4.0  # the noise alone has 201 times 0.01
