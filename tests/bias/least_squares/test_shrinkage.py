"""Shrinkage: descent against its closed form, stopping against ridge.

Dropout against enumeration, errata.
"""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Lasso, Ridge

from pindown.bias.initialisation import keep_variance, signal_report
from pindown.bias.least_squares import (
    descent_iterate,
    descent_limit,
    descent_shrinkage,
    dropout_predict,
    dropout_squared_error,
    equivalent_penalty,
    equivalent_steps,
    fit_polynomial,
    largest_step,
    least_norm_solution,
    loss_surface,
    mask_average,
    null_projector,
    ridge_shrinkage,
)
from pindown.bias.least_squares.penalties import design


def rng(seed=0):
    return np.random.default_rng(seed)


def descend(A, b, x, step, n):
    for _ in range(n):
        x = x - step * A.T @ (A @ x - b)
    return x


def system(shape, rank, seed=0):
    A = rng(seed).normal(size=(shape[0], rank)) @ rng(seed + 1).normal(size=(rank, shape[1]))
    return A, rng(seed + 2).normal(size=shape[0]), rng(seed + 3).normal(size=shape[1])


@pytest.mark.parametrize(("shape", "rank"), [((3, 6), 3), ((6, 3), 3), ((5, 5), 2)])
def test_descent_has_a_closed_form_and_a_limit(shape, rank):
    A, b, x0 = system(shape, rank)
    step = 0.9 * largest_step(A)
    np.testing.assert_allclose(
        descent_iterate(A, b, x0, step, 17), descend(A, b, x0, step, 17), atol=1e-10
    )
    limit = descent_limit(A, b, x0)
    np.testing.assert_allclose(descend(A, b, x0, largest_step(A) / 2, 100_000), limit, atol=1e-6)
    np.testing.assert_allclose(
        null_projector(A) @ descend(A, b, x0, step, 50), null_projector(A) @ x0, atol=1e-10
    )
    np.testing.assert_allclose(
        descent_limit(A, b, np.zeros(shape[1])), least_norm_solution(A, b).x, atol=1e-12
    )
    assert np.linalg.norm(descend(A, b, x0, 1.1 * largest_step(A), 2000)) > 1e6


def test_pythagoras_for_other_solutions():
    A, b, x = system((3, 7), 3)
    best = least_norm_solution(A, b)
    other = best.x + null_projector(A) @ x
    np.testing.assert_allclose(A @ other, b, atol=1e-10)
    assert other @ other == pytest.approx(best.x @ best.x + (other - best.x) @ (other - best.x))
    np.testing.assert_allclose(best.x, A.T @ np.linalg.solve(A @ A.T, b), atol=1e-10)


def test_printed_shape_of_the_system_has_a_singular_gram_matrix():
    A, b, _ = system((7, 3), 3)  # many equations, few unknowns, as printed
    assert np.linalg.matrix_rank(A @ A.T) < 7
    assert least_norm_solution(A, b).residual > 0.1  # nor is there a solution to be the shortest
    A, b, _ = system((3, 7), 3)
    assert np.linalg.matrix_rank(A @ A.T) == 3
    assert least_norm_solution(A, b).residual < 1e-10


def test_momentum_keeps_the_null_space_and_adam_does_not():
    A, b, _ = system((2, 5), 2)
    parts = {}
    for name, make in (("momentum", torch.optim.SGD), ("adam", torch.optim.Adam)):
        x = torch.zeros(5, dtype=torch.float64, requires_grad=True)
        optimiser = make([x], lr=0.01, **({"momentum": 0.9} if name == "momentum" else {}))
        for _ in range(300):
            optimiser.zero_grad()
            ((torch.tensor(A) @ x - torch.tensor(b)) ** 2).sum().backward()
            optimiser.step()
        parts[name] = np.linalg.norm(null_projector(A) @ x.detach().numpy())
    assert parts["momentum"] < 1e-12
    assert parts["adam"] > 1e-2


def test_early_stopping_is_ridge_in_each_direction():
    eigenvalues, step, n = np.array([1e-3, 1e-2, 0.1, 2.0]), 0.01, 1000
    w = np.zeros(4)
    for _ in range(n):
        w = w - step * eigenvalues * (w - 1.0)
    np.testing.assert_allclose(descent_shrinkage(eigenvalues, step, n), w, atol=1e-12)
    found = equivalent_penalty(eigenvalues, step, n)
    kept = [ridge_shrinkage(v, a) for v, a in zip(eigenvalues, found.exact, strict=True)]
    np.testing.assert_allclose(kept, w, atol=1e-12)
    np.testing.assert_allclose(found.exact[:3], [0.0995, 0.0951, 0.0582], atol=1e-4)
    assert equivalent_steps(step, found.common) == pytest.approx(n)
    assert equivalent_penalty([1e-4], step, n).error < 1e-2 < found.error


def test_printed_logarithm_has_the_wrong_sign():
    step, penalty, eigenvalue = 0.01, 0.1, 1e-4
    # tau log(1 - step lambda) = -log(1 + lambda / penalty) is what makes stopping and ridge agree.
    agree = -np.log1p(eigenvalue / penalty) / np.log1p(-step * eigenvalue)
    assert agree == pytest.approx(equivalent_steps(step, penalty), rel=1e-3)
    printed = -np.log1p(eigenvalue / penalty) / (step * eigenvalue)  # with log(1 - x) = x
    assert printed < 0 < agree
    kept = descent_shrinkage([eigenvalue], step, round(agree))
    np.testing.assert_allclose(kept, ridge_shrinkage([eigenvalue], penalty), rtol=1e-3)
    # The share that is left of the way would grow with the steps, if the printed sign were true.
    assert np.exp(round(agree) * step * eigenvalue) > 1 > 1 - kept[0]
    for x in (1e-2, 1e-4, 1e-6):  # an approximation of first order has an error of second
        assert abs(np.log1p(-x) + x) < x**2
        assert abs(np.log1p(-x) - x) > x


def test_printed_relation_of_steps_and_penalty_mixes_a_number_and_a_matrix():
    eigenvalues, step, penalty = np.array([1e-4, 1e-3, 4e-3]), 0.01, 0.1
    n = round(equivalent_steps(step, penalty))
    ridge = ridge_shrinkage(eigenvalues, penalty)
    # The corrected relation in each direction: stopping is ridge, to first order.
    np.testing.assert_allclose(n * step * eigenvalues, eigenvalues / penalty)
    np.testing.assert_allclose(descent_shrinkage(eigenvalues, step, n), ridge, rtol=0.03)
    # With one number on the right each direction asks for another number of steps; whichever number
    # is meant, stopping there is far from ridge in some direction.
    for single in eigenvalues:
        asked = single / penalty / (step * eigenvalues)
        assert asked.max() > 10 * asked.min()
        wrong = [
            descent_shrinkage([v], step, round(t))[0] for v, t in zip(eigenvalues, asked, strict=True)
        ]
        assert np.abs(np.array(wrong) / ridge - 1).max() > 0.5


def test_dropout_error_by_simulation_and_enumeration():
    X, y, w = rng(0).normal(size=(3, 4)), rng(1).normal(size=3), rng(2).normal(size=4)
    masks = np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T
    weights = 0.7 ** masks.sum(1) * 0.3 ** (4 - masks.sum(1))
    exact = [weights @ (y[i] - (masks * X[i]) @ w) ** 2 for i in range(3)]
    np.testing.assert_allclose(dropout_squared_error(X, y, w, 0.7), exact, atol=1e-12)


def test_averages_over_masks_are_scaled_weights():
    W, x = rng(0).normal(size=(3, 10)), rng(1).normal(size=10)
    np.testing.assert_allclose(mask_average(W, x, 0.5), 0.5 * W @ x, atol=1e-12)
    scaled = np.exp(0.5 * W @ x)
    np.testing.assert_allclose(
        mask_average(W, x, 0.5, average="geometric"), scaled / scaled.sum(), atol=1e-12
    )


def test_predictions_with_dropout():
    torch.set_num_threads(1)
    module = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Dropout(0.5)).train()
    x = torch.ones(2, 4)
    before = torch.random.get_rng_state()
    found = dropout_predict(module, x, 2000)
    assert torch.equal(before, torch.random.get_rng_state())
    assert module.training and module[0].training
    expected = module[0](x).detach().numpy()
    np.testing.assert_allclose(found.mean, expected, atol=5 * np.abs(expected).max() / np.sqrt(2000))
    with pytest.raises(ValueError, match="dropout"):
        dropout_predict(torch.nn.Linear(2, 1), torch.ones(1, 2))


@pytest.mark.parametrize("p", [1.0, 2.0, 1.5, 3.0])
def test_penalised_polynomials(p):
    x, y = np.linspace(0, 3, 30), np.sin(np.linspace(0, 3, 30)) + 0.1 * rng(0).normal(size=30)
    found = fit_polynomial(x, y, 5, 0.7, p)
    D = design(x, 5, (0.0, 3.0))
    assert found.objective == pytest.approx(
        np.sum((D @ found.coefficients - y) ** 2) + 0.7 * np.sum(np.abs(found.coefficients) ** p)
    )
    for seed in range(20):  # convex: no nearby point is lower
        other = found.coefficients + 1e-3 * rng(seed).normal(size=6)
        assert np.sum((D @ other - y) ** 2) + 0.7 * np.sum(np.abs(other) ** p) >= found.objective - 1e-9
    if p == 2.0:
        np.testing.assert_allclose(
            found.coefficients, Ridge(0.7, fit_intercept=False).fit(D, y).coef_, atol=1e-9
        )
    if p == 1.0:
        lasso = Lasso(0.7 / 60, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(D, y)
        np.testing.assert_allclose(found.coefficients, lasso.coef_, atol=1e-6)


def test_surface_is_the_objective():
    D, y = design(np.linspace(0, 1, 9), 1, (0.0, 1.0)), np.linspace(0, 1, 9) ** 2
    a, b = np.linspace(-1, 1, 201), np.linspace(-1, 1, 201)
    surface = loss_surface(D, y, a, b, 0.3, 2.0)
    row, column = np.unravel_index(surface.argmin(), surface.shape)
    np.testing.assert_allclose(
        [a[column], b[row]], fit_polynomial(np.linspace(0, 1, 9), y, 1, 0.3).coefficients, atol=0.01
    )


@pytest.mark.parametrize(
    ("activation", "rule", "low", "high"),
    [(None, "linear", 0.7, 1.4), ("relu", "relu", 1.0, 4.0), ("relu", "linear", 0.0, 0.01)],
)
def test_signals_keep_their_size(activation, rule, low, high):
    torch.set_num_threads(1)
    layers = []
    for _ in range(10):
        layers += [torch.nn.Linear(256, 256)] + ([torch.nn.ReLU()] if activation else [])
    module = keep_variance(torch.nn.Sequential(*layers), rule)
    report = signal_report(module, torch.randn(256, 256, generator=torch.Generator().manual_seed(1)))
    assert low <= report.forward[-1] <= high
    assert len(report.forward) == len(report.backward) == 10
    assert all(parameter.grad is None for parameter in module.parameters())


def test_masks_of_a_linear_layer_have_the_mean_and_spread_of_their_formula():
    """Kept with probability 1 - p and divided by it: mean w'x, variance p / (1 - p) sum w^2 x^2."""
    module = torch.nn.Sequential(torch.nn.Dropout(0.3), torch.nn.Linear(4, 1, bias=False)).double()
    x = torch.tensor([[1.0, -2.0, 0.5, 3.0]], dtype=torch.float64)
    found = dropout_predict(module, x, 3000, seed=1)
    w = module[1].weight.detach().numpy()[0]
    std = np.sqrt(0.3 / 0.7 * np.sum(w**2 * x.numpy()[0] ** 2))
    assert found.std[0, 0] == pytest.approx(std, rel=0.1)
    assert abs(found.mean[0, 0] - w @ x.numpy()[0]) < 5 * std / np.sqrt(3000)
    again, other = (dropout_predict(module, x, 50, seed=seed).mean for seed in (1, 2))
    assert np.array_equal(again, dropout_predict(module, x, 50, seed=1).mean)
    assert not np.array_equal(again, other)


def test_signals_are_mean_squares_at_every_layer():
    """Two layers, a rectifier between: the slope of noise goes back through units that are on."""
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).double()
    X = torch.randn(5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    report = signal_report(module, X, seed=4)
    noise = torch.randn((5, 2), generator=torch.Generator().manual_seed(4), dtype=torch.float64).numpy()
    first = module[0](X).detach().numpy()
    last = module(X).detach().numpy()
    back = (noise @ module[2].weight.detach().numpy()) * (first > 0)
    np.testing.assert_allclose(report.forward, [np.mean(first**2), np.mean(last**2)])
    np.testing.assert_allclose(report.backward, [np.mean(back**2), np.mean(noise**2)])


@pytest.mark.parametrize(
    "call",
    [
        lambda: least_norm_solution([[1.0]], [1.0, 2.0]),
        lambda: least_norm_solution([[np.nan]], [1.0]),
        lambda: descent_iterate([[1.0]], [1.0], [0.0], 0.1, -1),
        lambda: equivalent_penalty([1.0], 2.0, 10),
        lambda: equivalent_penalty([0.0], 0.1, 10),
        lambda: equivalent_penalty([1.0], 0.1, 0),
        lambda: equivalent_steps(0.0, 1.0),
        lambda: mask_average(np.ones((1, 20)), np.ones(20), 0.5),
        lambda: mask_average([[1.0]], [1.0], 1.5),
        lambda: mask_average([[1.0]], [1.0], 0.5, average="median"),
        lambda: fit_polynomial([1.0, 1.0], [1.0, 2.0], 1, 0.1),
        lambda: fit_polynomial([1.0, 2.0], [1.0, 2.0], 1, 0.1, 0.5),
        lambda: keep_variance(torch.nn.Linear(1, 1), "tanh"),
        lambda: keep_variance(torch.nn.ReLU()),
        lambda: ridge_shrinkage([1.0], -1.0),
        lambda: ridge_shrinkage([0.0], 0.0),
        lambda: descent_iterate([[1.0]], [1.0], [0.0], 0.1, 2.5),
        lambda: descent_iterate([[1.0]], [1.0], [np.nan], 0.1, 2),
        lambda: descent_limit([[1.0, 0.0]], [1.0], [1.0]),
        lambda: equivalent_penalty([1.0], 0.1, 2.5),
        lambda: dropout_squared_error([[1.0, 2.0]], [0.0], [1.0], 0.5),
        lambda: dropout_squared_error([[np.nan]], [0.0], [1.0], 0.5),
        lambda: dropout_squared_error([[1.0]], [0.0], [1.0], "half"),
        lambda: fit_polynomial([1.0, 2.0], [1.0, 2.0], 1, 0.1, np.inf),
        lambda: fit_polynomial([1.0, 2.0], [1.0, 2.0], 1.5, 0.1),
    ],
)
def test_bad_input(call):
    with pytest.raises(ValueError):
        call()
