"""Weight decay: each eigendirection is shrunk by its own factor."""

import numpy as np
import pytest
import torch

from pindown.bias.least_squares import weight_decay, weight_decay_of_module

torch.set_num_threads(1)


def problem(seed=0, n=20, d=5):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


def test_prediction_is_ridge_regression():
    from sklearn.linear_model import Ridge

    X, y = problem()
    H, best = X.T @ X / len(X), np.linalg.lstsq(X, y, rcond=None)[0]
    for penalty in (1e-6, 0.1, 3.0, 1e6):
        found = weight_decay(H, best, penalty)
        theirs = Ridge(alpha=len(X) * penalty, fit_intercept=False, tol=1e-14).fit(X, y).coef_
        np.testing.assert_allclose(found.predicted, theirs, atol=1e-10)
        trace = np.trace(np.linalg.solve(H + penalty * np.eye(5), H))
        assert found.effective == pytest.approx(trace)
    np.testing.assert_allclose(weight_decay(H, best, 0.0).predicted, best, atol=1e-12)
    assert np.abs(weight_decay(H, best, 1e12).predicted).max() < 1e-10


def test_training_with_decay_arrives_there():
    X, y = problem(1)
    H, best = X.T @ X / len(X), np.linalg.lstsq(X, y, rcond=None)[0]
    w, step, alpha = np.zeros(5), 0.2, 0.3
    for _ in range(2_000):
        w = (1 - step * alpha) * w - step * X.T @ (X @ w - y) / len(X)
    np.testing.assert_allclose(w, weight_decay(H, best, alpha).predicted, atol=1e-10)


def test_printed_objective_is_two_objectives():
    """The slides call the penalised loss and the quadratic model by one name; their minima differ."""
    X, y = problem(2)
    H, best = X.T @ X / len(X), np.linalg.lstsq(X, y, rcond=None)[0]
    alpha = 0.5
    found = weight_decay(H, best, alpha).predicted
    slope_of_the_model = H @ (found - best)  # as printed: zero at the minimum of the same letter
    slope_of_the_sum = H @ (found - best) + alpha * found
    assert np.linalg.norm(slope_of_the_model) > 0.1
    assert np.linalg.norm(slope_of_the_sum) < 1e-12


def test_flat_directions_are_dropped():
    found = weight_decay([[2.0, 0.0], [0.0, 0.0]], [1.0, 7.0], 1e-9)
    np.testing.assert_allclose(found.predicted, [1.0, 0.0], atol=1e-8)
    assert found.effective == pytest.approx(1.0)
    assert weight_decay(np.zeros((2, 2)), [1.0, 1.0], 0.0).predicted.tolist() == [0.0, 0.0]


def test_a_linear_module_is_predicted_exactly_and_a_network_nearly():
    X, y = (torch.tensor(part) for part in problem(3))
    net = torch.nn.Linear(5, 1, bias=False).double()
    with torch.no_grad():
        net.weight.copy_(torch.linalg.lstsq(X, y[:, None]).solution.T)

    def loss():
        return ((net(X)[:, 0] - y) ** 2).mean() / 2

    found = weight_decay_of_module(loss, net.parameters(), 0.4)
    ours = np.linalg.solve((X.T @ X / 20 + 0.4 * torch.eye(5)).numpy(), (X.T @ y / 20).numpy())
    np.testing.assert_allclose(found.predicted, ours, atol=1e-10)
    assert found.kind == "heuristic" and not found.violated
    with torch.no_grad():
        net.weight += 1.0
    assert "gradient is not zero" in weight_decay_of_module(loss, net.parameters(), 0.4).violated[0]


def test_negative_curvature_is_named():
    w = torch.nn.Parameter(torch.tensor([0.0, 0.0], dtype=torch.float64))
    found = weight_decay_of_module(lambda: w[0] ** 2 - w[1] ** 2, [w], 1.0)
    assert any("negative curvature" in text for text in found.violated)
    v = torch.nn.Parameter(torch.tensor([1.0, 2.0], dtype=torch.float64))
    left = weight_decay_of_module(lambda: v[0] ** 2 - v[1] ** 2, [v], 1.0)
    np.testing.assert_allclose(left.predicted, [2 / 3, 2.0])  # decay helps nowhere to go down


@pytest.mark.parametrize(
    "arguments",
    [
        ([[1.0, 0.0]], [1.0], 1.0),
        ([[1.0, 2.0], [0.0, 1.0]], [1.0, 1.0], 1.0),
        ([[-1.0]], [1.0], 1.0),
        ([[np.nan]], [1.0], 1.0),
        ([[1.0]], [1.0, 2.0], 1.0),
        ([[1.0]], [1.0], -1.0),
    ],
)
def test_bad_input(arguments):
    with pytest.raises(ValueError, match="must"):
        weight_decay(*arguments)


def test_too_many_parameters():
    w = torch.nn.Parameter(torch.zeros(5_000))
    with pytest.raises(ValueError, match="one layer"):
        weight_decay_of_module((w**2).sum, [w], 1.0)


@pytest.mark.slow
def test_predicted_and_retrained_displacement_of_a_network():
    """Weight decay on a trained network that is not linear: the quadratic model knows the way."""
    cosines = []
    for seed in range(3):
        torch.manual_seed(seed)
        net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()
        X = torch.randn(60, 2, dtype=torch.float64)
        y = torch.sin(2 * X[:, :1]) + 0.3 * torch.randn(60, 1, dtype=torch.float64)
        parameters = list(net.parameters())

        def loss(net=net, X=X, y=y):
            return 0.5 * (net(X) - y).pow(2).mean()

        def train(penalty, parameters=parameters, loss=loss):
            optimiser = torch.optim.LBFGS(
                parameters, max_iter=4000, tolerance_grad=1e-11, tolerance_change=1e-16,
                line_search_fn="strong_wolfe", history_size=40,
            )  # fmt: skip

            def closure():
                optimiser.zero_grad()
                value = loss() + penalty / 2 * sum(p.pow(2).sum() for p in parameters)
                value.backward()
                return value

            optimiser.step(closure)
            return torch.nn.utils.parameters_to_vector(parameters).detach().numpy().copy()

        first, penalty = 1e-3, 1e-5  # a minimum that is held; then a little more decay
        base = train(first)

        def held(loss=loss, parameters=parameters, first=first):
            return loss() + first / 2 * sum(p.pow(2).sum() for p in parameters)

        moved = weight_decay_of_module(held, parameters, penalty).predicted - base
        retrained = train(first + penalty) - base
        cosines.append(moved @ retrained / np.linalg.norm(moved) / np.linalg.norm(retrained))
    assert np.median(cosines) > 0.9
