"""Early stopping and ridge: equal in each direction, within a factor two with one penalty."""

import mpmath
import numpy as np
import pytest

from pindown.bias.flow import gradient_flow
from pindown.bias.least_squares import flow_penalty, stopping_as_ridge
from pindown.bias.least_squares.early_stopping import FLOW_RATIO


def problem(seed, n=12, d=6, rank=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    return X, rng.standard_normal(n), rng.standard_normal(d)


@pytest.mark.parametrize("rank", [6, 3])
def test_stopped_weights_are_those_of_descent_and_of_ridge_in_each_direction(rank):
    X, y, start = problem(rank, rank=rank)
    n = len(X)
    H = X.T @ X / n
    step = 0.7 / np.linalg.norm(H, 2)
    found = stopping_as_ridge(X, y, step=step, n_steps=30, start=start)
    w = start
    for _ in range(30):
        w = w - step * X.T @ (X @ w - y) / n
    np.testing.assert_allclose(found.stopped, w, atol=1e-11)
    # Ridge with a matrix of penalties, solved as a linear system: the exact penalties give the same.
    values, Q = np.linalg.eigh(H)
    order = np.argsort(values)[::-1][: len(found.exact)]
    penalties = np.zeros(len(values)) + 1.0
    penalties[order] = found.exact
    P = Q @ np.diag(penalties) @ Q.T
    np.testing.assert_allclose(np.linalg.solve(H + P, X.T @ y / n + P @ start), w, atol=1e-8)
    ridge = np.linalg.solve(H + found.penalty * np.eye(6), X.T @ y / n + found.penalty * start)
    np.testing.assert_allclose(found.ridge, ridge, atol=1e-10)
    assert found.penalty == pytest.approx(1 / (30 * step))
    ways = (Q.T @ (w - start))[order] / (Q.T @ (ridge - start))[order]
    assert ways.min() >= 1 and ways.max() <= 2 and found.ratio == pytest.approx(ways.max())
    assert found.distance == pytest.approx(np.linalg.norm(w - ridge) / np.linalg.norm(w - start))
    # Along directions that are nearly flat the two are one.
    flat = stopping_as_ridge(1e-4 * X, y, step=step, n_steps=30)
    assert flat.exact == pytest.approx(flat.penalty, rel=1e-4) and flat.ratio == pytest.approx(1)


def test_ridge_is_that_of_scikit_learn():
    from sklearn.linear_model import Ridge

    X, y, _ = problem(0)
    found = stopping_as_ridge(X, y, step=1e-3, n_steps=100, reduction="half_sum")
    theirs = Ridge(alpha=found.penalty, fit_intercept=False, tol=1e-12).fit(X, y).coef_
    np.testing.assert_allclose(found.ridge, theirs, atol=1e-9)


def test_published_values_in_many_digits():
    step, steps = mpmath.mpf("0.01"), 1000
    for curvature, told in (("0.001", 0.0995), ("0.01", 0.0951), ("0.1", 0.0582)):
        lam = mpmath.mpf(curvature)
        q = (1 - step * lam) ** steps
        exact = float(lam * q / (1 - q))
        X = np.array([[np.sqrt(float(lam))]])
        found = stopping_as_ridge(X, [1.0], step=0.01, n_steps=1000, reduction="half_sum").exact[0]
        assert found == pytest.approx(exact, rel=1e-10) and round(exact, 4) == told


def test_one_penalty_is_within_a_factor_of_two_for_every_step_and_curvature():
    u = np.concatenate([np.geomspace(1e-9, 1, 400), [0.5, 0.999]])
    worst = 0.0
    for steps in (1, 2, 3, 5, 10, 100, 10_000):
        gone, kept = 1 - (1 - u) ** steps, steps * u / (1 + steps * u)
        if steps < 100:
            gone = -np.expm1(steps * np.log1p(-np.minimum(u, 1 - 1e-16)))
        ratio = gone / kept
        assert ratio.min() >= 1 - 1e-7 and ratio.max() <= 2 + 1e-12
        worst = max(worst, ratio.max())
    assert worst == pytest.approx(2.0)  # one step of full length: it cannot be improved
    x = np.linspace(1e-6, 20, 2_000_001)
    assert (-np.expm1(-x) * (1 + x) / x).max() == pytest.approx(FLOW_RATIO, abs=1e-9)


def test_small_steps_are_flow():
    X, y, start = problem(4)
    time = 0.8
    path = gradient_flow(lambda w: X.T @ (X @ w - y), start, time=time, method="ivp")
    H = X.T @ X
    values, Q = np.linalg.eigh(H)
    P = Q @ np.diag(flow_penalty(np.maximum(values, 0), time)) @ Q.T
    np.testing.assert_allclose(np.linalg.solve(H + P, X.T @ y + P @ start), path.end, atol=1e-6)
    many = stopping_as_ridge(X, y, step=time / 10**6, n_steps=10**6, start=start, reduction="half_sum")
    np.testing.assert_allclose(many.stopped, path.end, atol=1e-4)
    assert 1 <= many.ratio <= FLOW_RATIO + 1e-4
    assert flow_penalty([1e6], 1.0).tolist() == [0.0]


def test_start_at_the_minimiser_and_no_data():
    X, y, _ = problem(2)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    found = stopping_as_ridge(X, y, step=1e-3, n_steps=5, start=best)
    np.testing.assert_allclose(found.stopped, best, atol=1e-12)
    empty = stopping_as_ridge(np.zeros((2, 3)), [1.0, 1.0], step=0.1, n_steps=3, start=[1.0, 2.0, 3.0])
    assert empty.stopped.tolist() == [1.0, 2.0, 3.0] and empty.distance == 0.0 and len(empty.exact) == 0


@pytest.mark.parametrize(
    "change", [{"step": 3.0}, {"step": -1.0}, {"n_steps": 0}, {"y": [np.nan]}, {"X": [[np.inf]]}]
)
def test_bad_input(change):
    with pytest.raises(ValueError, match=r"must|step"):
        stopping_as_ridge(**({"X": [[1.0]], "y": [1.0], "step": 0.5, "n_steps": 1} | change))


def test_bad_times():
    with pytest.raises(ValueError, match="time must"):
        flow_penalty([1.0], 0.0)
    with pytest.raises(ValueError, match="not negative"):
        flow_penalty([-1.0], 1.0)
