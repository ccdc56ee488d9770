"""Noise on the inputs as a penalty."""

import numpy as np
import pytest
import torch

from pindown.bias.discretisation import convergence_order
from pindown.bias.least_squares import (
    jacobian_penalty,
    noise_expansion,
    noise_to_ridge,
    noisy_least_squares,
    noisy_squared_error,
    ridge_to_noise,
)

torch.set_num_threads(1)


def problem(seed=0, n=15, d=4):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n), rng.standard_normal(d)


@pytest.mark.parametrize("noise", ["normal", "signs"])
def test_expected_error_by_simulation(noise):
    X, y, w = problem()
    sigma = np.array([0.1, 0.5, 1.0, 2.0])
    rng = np.random.default_rng(1)
    shape = (20_000, len(X), 4)
    draws = rng.standard_normal(shape) if noise == "normal" else rng.choice([-1.0, 1.0], shape)
    errors = ((X + sigma * draws) @ w - y) ** 2
    spread = errors.std(axis=0) / np.sqrt(len(errors))
    assert (np.abs(errors.mean(axis=0) - noisy_squared_error(X, y, w, sigma)) < 4.5 * spread).all()


def test_minimiser_is_ridge_and_what_training_on_noisy_copies_gives():
    from sklearn.linear_model import Ridge

    X, y, _ = problem(2)
    sigma = 0.6
    ours = noisy_least_squares(X, y, sigma)
    penalty = noise_to_ridge(sigma, len(X))
    theirs = Ridge(alpha=penalty, fit_intercept=False, tol=1e-12).fit(X, y).coef_
    np.testing.assert_allclose(ours, theirs, atol=1e-10)
    rng = np.random.default_rng(0)
    copies = np.vstack([X + sigma * rng.standard_normal(X.shape) for _ in range(2000)])
    np.testing.assert_allclose(
        np.linalg.lstsq(copies, np.tile(y, 2000), rcond=None)[0], ours, atol=0.015
    )


def test_penalty_depends_on_the_reduction():
    X, y, w = problem(3)
    n, sigma = len(X), 0.7
    extra = (noisy_squared_error(X, y, w, sigma) - noisy_squared_error(X, y, w, 0.0)).sum()
    for reduction, scale in (("sum", 1), ("half_sum", 0.5), ("mean", 1 / n), ("half_mean", 0.5 / n)):
        penalty = noise_to_ridge(sigma, n, reduction)
        assert penalty * (w @ w) == pytest.approx(scale * extra)
        assert ridge_to_noise(penalty, n, reduction) == pytest.approx(sigma)


def test_rank_deficient_and_partial_noise():
    X = np.array([[1.0, 1.0, 0.0]])
    np.testing.assert_allclose(noisy_least_squares(X, [2.0], 0.0), [1.0, 1.0, 0.0], atol=1e-12)
    found = noisy_least_squares(X, [2.0], [1.0, 0.0, 0.0])  # the clean input does all of the work
    np.testing.assert_allclose(found, [0.0, 2.0, 0.0], atol=1e-12)
    assert noisy_least_squares(np.zeros((2, 2)), [1.0, 1.0], 0.5).tolist() == [0.0, 0.0]


def test_expansion_of_a_network_is_right_to_the_fourth_power():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    X, y = (
        torch.tensor([[0.3], [-0.8]], dtype=torch.float64),
        torch.tensor([0.5, -0.2], dtype=torch.float64),
    )
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)  # an exact expectation, not a simulation
    weights = torch.tensor(weights / weights.sum())
    sigmas, rests = [0.4, 0.2, 0.1], []
    for sigma in sigmas:
        with torch.no_grad():
            noisy = net(
                (X[:, None] + sigma * torch.tensor(nodes)[None, :, None]).reshape(-1, 1)
            ).reshape(2, -1)
            exact = float((((noisy - y[:, None]) ** 2) @ weights).mean())
        rests.append(abs(exact - noise_expansion(net, X, y, sigma).total))
    assert convergence_order(sigmas, rests) == pytest.approx(4, abs=0.3)
    # Without the term of curvature, the penalty on the gradient alone, only the second power is right.
    alone = [abs(noise_expansion(net, X, y, s).curvature) for s in sigmas]
    assert convergence_order(sigmas, alone) == pytest.approx(2, abs=1e-6) and alone[-1] > 5 * rests[-1]


def test_jacobian_penalty_by_differences_and_it_trains():
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(3, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2)).double()
    X = torch.randn(5, 3, dtype=torch.float64)
    h, total = 1e-5, 0.0
    for j in range(3):
        e = torch.zeros(3, dtype=torch.float64)
        e[j] = h
        total += float((((net(X + e) - net(X - e)) / (2 * h)) ** 2).sum().detach()) / 5
    found = jacobian_penalty(net, X)
    assert float(found.detach()) == pytest.approx(total, rel=1e-7)
    found.backward()
    assert float(net[0].weight.grad.abs().sum()) > 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: noise_to_ridge(-1.0, 3),
        lambda: noise_to_ridge(1.0, 0),
        lambda: noise_to_ridge(1.0, 3, "other"),
        lambda: noisy_least_squares([[1.0]], [1.0], [-1.0]),
        lambda: noisy_least_squares([[1.0]], [1.0], [1.0, 2.0]),
        lambda: noisy_least_squares([[1.0]], [1.0], np.nan),
        lambda: noisy_squared_error([[1.0]], [1.0], [1.0, 2.0], 1.0),
    ],
)
def test_bad_input(call):
    with pytest.raises(ValueError, match="must"):
        call()


def test_targets_and_outputs_must_be_one_for_each_sample():
    X = np.ones((3, 2))
    square = noise_expansion(lambda x: x.pow(2).sum(1), X, np.zeros(3), 0.1)
    assert square.total == pytest.approx(4 + 0.01 * 8 + 0.01 * 2 * 4)
    with pytest.raises(ValueError, match="one target for each of the 3"):
        noise_expansion(lambda x: x.pow(2).sum(1), X, np.zeros(1), 0.1)
    with pytest.raises(ValueError, match="one output for each sample"):
        noise_expansion(lambda x: x, X, np.zeros(3), 0.1)
