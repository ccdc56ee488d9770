"""Gradient descent on a squared error: its limit, its iterates, and when it diverges."""

from fractions import Fraction

import numpy as np
import pytest

from pindown.bias.flow import gradient_flow
from pindown.bias.least_squares import (
    dropout_least_squares,
    largest_step,
    predict_descent,
    stopping_as_ridge,
)

FACTORS = {"half_sum": 1.0, "sum": 2.0, "mean": 2.0, "half_mean": 1.0}


def problem(n, d, rank, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    return X, rng.standard_normal(n), rng.standard_normal(d)


def gradient(X, y, w, reduction):
    scale = FACTORS[reduction] / (len(X) if "mean" in reduction else 1)
    return scale * X.T @ (X @ w - y)


@pytest.mark.parametrize("reduction", list(FACTORS))
@pytest.mark.parametrize("n, d, rank", [(8, 3, 3), (3, 8, 3), (6, 5, 2), (1, 4, 1), (4, 300, 4)])
def test_iterates_are_those_of_the_loop(n, d, rank, reduction):
    X, y, start = problem(n, d, rank, n + d)
    bend = FACTORS[reduction] / (n if "mean" in reduction else 1) * np.linalg.norm(X, 2) ** 2
    w = start
    for _ in range(25):
        w = w - 1.3 / bend * gradient(X, y, w, reduction)
    found = predict_descent(X, y, step=1.3 / bend, n_steps=25, start=start, reduction=reduction)
    np.testing.assert_allclose(found.iterate, w, atol=1e-10 * np.abs(w).max())
    assert found.converges and found.rank == rank
    assert found.step_limit == pytest.approx(2 / bend)


@pytest.mark.parametrize("n, d, rank", [(8, 3, 3), (3, 8, 3), (6, 5, 2)])
def test_limit_is_where_the_flow_ends_and_the_nearest_minimiser(n, d, rank):
    X, y, start = problem(n, d, rank, 7)
    left, _, right = np.linalg.svd(X, full_matrices=False)
    X = left[:, :rank] * np.linspace(1, 2, rank) @ right[:rank]  # well conditioned: a short flow
    found = predict_descent(X, y, step=1e-3, start=start)
    path = gradient_flow(lambda w: X.T @ (X @ w - y), start, time=25.0, method="ivp")
    np.testing.assert_allclose(found.limit, path.end, atol=1e-6)
    rng = np.random.default_rng(0)
    null = np.eye(d) - np.linalg.pinv(X) @ X
    for _ in range(20):  # other minimisers are further from the start
        other = found.limit + null @ rng.standard_normal(d)
        assert np.linalg.norm(other - start) >= np.linalg.norm(found.limit - start) - 1e-12
    # The nearest one lacks what the data do not see; so do hidden part and least norm.
    np.testing.assert_allclose(found.hidden, null @ start, atol=1e-10)
    assert abs(found.hidden @ found.least_norm) < 1e-10


def test_iterate_in_exact_arithmetic():
    X, y, w = [[1, 2, 0], [0, 1, 1]], [3, -1], [Fraction(1, 3)] * 3
    step = Fraction(1, 8)
    for _ in range(6):
        r = [sum(a * b for a, b in zip(row, w, strict=True)) - t for row, t in zip(X, y, strict=True)]
        w = [wi - step * sum(r[i] * X[i][j] for i in range(2)) for j, wi in enumerate(w)]
    found = predict_descent(X, y, step=0.125, n_steps=6, start=[1 / 3] * 3)
    np.testing.assert_allclose(found.iterate, [float(v) for v in w], rtol=1e-13)


def test_minibatches_end_where_the_theorem_says():
    X = np.random.default_rng(5).standard_normal((4, 9))
    _, y, start = problem(4, 9, 4, 3)
    rng, w = np.random.default_rng(0), start.copy()
    for _ in range(5_000):
        i = rng.integers(4)
        w -= X[i] * (X[i] @ w - y[i]) / (X[i] @ X[i])
    np.testing.assert_allclose(w, predict_descent(X, y, step=0.01, start=start).limit, atol=1e-8)


def test_too_large_a_step_diverges_and_says_so():
    X, y, start = problem(5, 5, 5, 1)
    limit = predict_descent(X, y, step=1e-3).step_limit
    found = predict_descent(X, y, step=1.01 * limit, n_steps=2000, start=start)
    assert not found.converges and np.linalg.norm(found.iterate) > 1e6
    assert "diverges" in str(found)
    assert predict_descent(X, y, step=0.99 * limit).converges
    with pytest.raises(ValueError, match="beyond float range"):
        predict_descent(X, y, step=100 * limit, n_steps=10**6, start=start)


def test_data_that_say_nothing_leave_the_start():
    found = predict_descent(np.zeros((3, 2)), [1.0, 2.0, 3.0], step=5.0, n_steps=9, start=[4.0, -1.0])
    assert found.limit.tolist() == found.iterate.tolist() == [4.0, -1.0]
    assert found.rank == 0 and found.step_limit == np.inf and found.converges
    assert found.residual == pytest.approx(np.sqrt(14))


@pytest.mark.parametrize(
    "change",
    [
        {"X": [[np.nan, 1.0]]},
        {"X": np.zeros((0, 2))},
        {"X": [1.0, 2.0]},
        {"y": [1.0, 2.0]},
        {"y": [np.inf]},
        {"step": 0.0},
        {"step": float("nan")},
        {"n_steps": -1},
        {"start": [0.0]},
        {"reduction": "average"},
    ],
)
def test_bad_input(change):
    arguments = {"X": [[1.0, 2.0]], "y": [1.0], "step": 0.1} | change
    with pytest.raises(ValueError, match="must"):
        predict_descent(**arguments)


def test_steps_that_are_no_whole_number():
    with pytest.raises(TypeError, match="integer"):
        predict_descent([[1.0]], [1.0], step=0.1, n_steps=1.5)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_squares_that_leave_the_floats_are_refused(scale):
    with pytest.raises(ValueError, match="must be scaled"):
        predict_descent([[scale]], [1.0], step=0.5, n_steps=3)
    with pytest.raises(ValueError, match="must be scaled"):
        stopping_as_ridge([[scale]], [1.0], step=1e-10, n_steps=3)
    with pytest.raises(ValueError, match="must be scaled"):
        dropout_least_squares([[scale]], [1.0], 0.5)


def test_the_largest_step_at_every_scale():
    assert largest_step(np.zeros((2, 2))) == largest_step([[1e-200]]) == np.inf
    assert largest_step([[1e200]]) == 0.0 and largest_step([[1e100]]) == pytest.approx(2e-200)


def test_tensors_are_read_as_arrays():
    import torch

    X = torch.tensor([[1.0, 2.0]], requires_grad=True)
    assert predict_descent(X, torch.ones(1), step=0.1).rank == 1
    with pytest.raises(TypeError, match="must hold real numbers"):
        predict_descent([["a"]], [1.0], step=0.1)


def test_the_rate_is_the_slowest_factor_of_the_error():
    X, step = np.diag([1.0, 2.0, 0.5]), 0.3
    found = predict_descent(X, np.zeros(3), step=step, start=np.ones(3))
    assert found.rate == pytest.approx(1 - step * 0.25)
    w, before = np.ones(3), 1.0
    for _ in range(200):
        w, before = w - step * X.T @ X @ w, np.linalg.norm(w)
    assert np.linalg.norm(w) / before == pytest.approx(found.rate, rel=1e-9)
