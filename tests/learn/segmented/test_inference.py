"""Intervals and p-values of breakpoints: coverage and size by simulation, an independent route."""

import numpy as np
import pytest
from scipy.optimize import curve_fit

from pindown.learn.segmented import SegmentedRegressor


def bent(x, level, slope, change, knot):
    return level + slope * x + change * np.maximum(x - knot, 0.0)


def draws(count, change, n=80, noise=0.5):
    rng = np.random.default_rng(0)
    x = np.linspace(0, 10, n)
    for _ in range(count):
        y = bent(x, 1.0, 0.3, change, 6.1) + noise * rng.normal(size=n)
        yield x, y, SegmentedRegressor(2, budget=None).fit(x, y).breakpoint_intervals(x, y)


def test_intervals_hold_the_breakpoint_as_often_as_they_say():
    held = [at[0].lower <= 6.1 <= at[0].upper for _, _, at in draws(300, change=1.0)]
    assert 0.91 < np.mean(held) < 0.985  # 0.95 up to three standard errors


@pytest.mark.slow
def test_intervals_hold_with_other_breakpoints_beside():
    rng = np.random.default_rng(3)
    x, held = np.linspace(0, 10, 150), []
    for _ in range(300):
        y = np.interp(x, [0, 3, 6.5, 10], [0, 3, 0, 2]) + 0.4 * rng.normal(size=150)
        found = SegmentedRegressor(3, budget=None).fit(x, y).breakpoint_intervals(x, y)
        held += [at.lower <= true <= at.upper for at, true in zip(found, (3, 6.5), strict=True)]
    assert 0.91 < np.mean(held) < 0.985


def test_p_values_are_small_with_a_bend_and_rarely_without():
    assert max(at[0].p_value for _, _, at in draws(40, change=1.0)) < 1e-4
    without = [at[0].p_value if at else 1.0 for _, _, at in draws(300, change=0.0)]
    for level in (0.05, 0.2):
        assert np.mean(np.array(without) <= level) <= level + 3 * np.sqrt(level / 300)
    assert np.mean(np.array(without) <= 0.2) > 0.05  # a bound, but not an empty one


def test_standard_error_is_that_of_nonlinear_least_squares():
    x, y, (found,) = next(draws(1, change=1.0))
    _, covariance = curve_fit(bent, x, y, p0=[1.0, 0.3, 1.0, found.at])
    assert found.standard_error == pytest.approx(np.sqrt(covariance[3, 3]), rel=0.02)


def test_weights_count_as_precision_and_order_does_not_matter():
    x, y, _ = next(draws(1, change=1.0))
    rng = np.random.default_rng(1)
    w = rng.uniform(0.5, 2.0, len(x))
    (found,) = SegmentedRegressor(2).fit(x, y, w).breakpoint_intervals(x, y, w)
    (scaled,) = SegmentedRegressor(2).fit(x, y, 3 * w).breakpoint_intervals(x, y, 3 * w)
    assert scaled.standard_error == pytest.approx(found.standard_error, rel=1e-6)
    order = rng.permutation(len(x))
    (again,) = SegmentedRegressor(2).fit(x, y, w).breakpoint_intervals(x[order], y[order], w[order])
    assert again.p_value == pytest.approx(found.p_value, rel=1e-6)


def test_what_the_data_cannot_tell_is_infinite():
    x = np.array([0.0, 1.0, 2.0, 3.0])
    model = SegmentedRegressor(2).fit(x, [0.0, 1.0, 1.0, 0.0])
    assert all(at.standard_error == np.inf for at in model.breakpoint_intervals(x, [0.0, 1.0, 1.0, 0.0]))
    straight = SegmentedRegressor(1).fit(x, x)
    assert straight.breakpoint_intervals(x, x) == []


def test_bad_input_is_refused():
    x = np.arange(6.0)
    model = SegmentedRegressor(2).fit(x, np.abs(x - 2))
    with pytest.raises(ValueError, match="confidence"):
        model.breakpoint_intervals(x, x, confidence=1.0)
    with pytest.raises(ValueError, match="inconsistent"):
        model.breakpoint_intervals(x, x[:3])
    robust = SegmentedRegressor(2, loss="absolute").fit(x, np.abs(x - 2))
    with pytest.raises(ValueError, match="squared"):
        robust.breakpoint_intervals(x, x)
