"""Grids cover, weights sum to less than one, shares of delta add up."""

import math

import numpy as np
import pytest

from pindown.guarantees.bounds.priors import beta_grid, scale_below, shared_delta


@pytest.mark.parametrize("kind", ["geometric", "uniform"])
@pytest.mark.parametrize(
    ("a", "b", "d"), [(1, 20, 5), (0.01, 3, 2), (0.5, 0.5, 3), (1, 1.001, 8), (1, 81, 2)]
)
def test_every_point_is_covered(kind, a, b, d):
    x = np.random.default_rng(0).uniform(a, b, 10_000)
    x[:2] = a, b
    grid = beta_grid(a, b, d, kind)
    nearest = grid[np.abs(x[:, None] - grid).argmin(axis=1)]
    assert (np.abs(x - nearest) <= x / d * (1 + 1e-9)).all()
    powers = nearest ** (d - 1) / x ** (d - 1)
    assert (powers <= math.e).all() and (powers >= 1 / math.e).all()


def test_printed_number_of_points_can_be_below_one():
    assert 3 * (1.001 - 1) / 2 < 1
    assert len(beta_grid(1, 1.001, 3, "uniform")) == 1


def test_geometric_is_never_larger():
    for d in (2, 3, 8):
        for ratio in (1.5, 10, 1000):
            assert len(beta_grid(1, ratio, d)) <= len(beta_grid(1, ratio, d, "uniform"))


def test_scales_are_below_and_their_weights_sum_to_less_than_one():
    for scale in 10 ** np.random.default_rng(1).uniform(-30, 30, 500):
        choice = scale_below(float(scale))
        assert choice.scale <= scale < choice.scale * 2 ** (1 / 16) * (1 + 1e-9)
    total = sum(math.exp(-scale_below(2.0 ** (i / 16) * 1.0001).cost) for i in range(-10_000, 10_001))
    assert 0.99 < total + 2 / 2.3 / 10_000 <= 1.0


def test_share_of_delta():
    def growing(delta):
        return 5 * math.log(1 / delta) ** 2

    each = shared_delta(growing, 0.05)
    assert math.ceil(growing(each)) * each <= 0.05
    assert math.ceil(growing(each)) * each > 0.02
    with pytest.raises(ValueError, match="grows too fast"):
        shared_delta(lambda d: 2 / d, 0.05)


@pytest.mark.parametrize("bad", [(0, 1, 2), (2, 1, 2), (1, 2, 1), (1, math.inf, 2)])
def test_refuses(bad):
    with pytest.raises(ValueError, match="must"):
        beta_grid(*bad)
