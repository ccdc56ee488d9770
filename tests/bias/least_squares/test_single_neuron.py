"""One neuron under gradient flow ends within twice the least distance."""

import numpy as np
import pytest
from scipy.optimize import minimize

from pindown.bias.least_squares import nearest_without_loss, single_neuron_flow


def problem(seed, n=3, d=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.maximum(X @ rng.standard_normal(d), 0), rng


@pytest.mark.parametrize("n, d", [(3, 6), (6, 4), (2, 12)])
def test_nearest_weights_against_a_general_solver(n, d):
    for seed in range(8):
        X, y, rng = problem(seed, n, d)
        start = 2 * rng.standard_normal(d)
        found = nearest_without_loss(X, y, start)
        on = y > 0
        constraints = [{"type": "ineq", "fun": lambda w, G=X[~on]: -G @ w}] if (~on).any() else []
        if on.any():
            constraints.append({"type": "eq", "fun": lambda w, A=X[on], b=y[on]: A @ w - b})
        best = minimize(
            lambda w, s=start: np.sum((w - s) ** 2),
            start,
            constraints=constraints,
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert found is not None and np.allclose(np.maximum(X @ found, 0), y, atol=1e-7)
        assert np.sum((found - start) ** 2) <= best.fun + 1e-6 or not best.success
        if best.success:
            np.testing.assert_allclose(found, best.x, atol=1e-4)


def test_factor_two_and_the_shrinking_distance():
    ratios = []
    for seed in range(16):
        X, y, rng = problem(seed)
        start = np.zeros(6) if seed % 2 else rng.standard_normal(6)
        found = single_neuron_flow(X, y, start, time=100.0, record=50)
        assert found.largest_increase < 1e-6
        if found.converged and found.least > 1e-9:
            ratios.append(found.ratio)
    assert len(ratios) >= 5
    assert min(ratios) >= 1 - 1e-6 and max(ratios) <= 2


@pytest.mark.parametrize("activation", ["softplus", "tanh", "identity"])
def test_other_monotone_activations(activation):
    functions = {"softplus": lambda z: np.logaddexp(0, z), "tanh": np.tanh, "identity": lambda z: z}
    for seed in range(2):
        X, _, rng = problem(seed)
        y = functions[activation](X @ rng.standard_normal(6) / 2)
        found = single_neuron_flow(X, y, activation=activation, time=200.0, record=40)
        assert found.largest_increase < 1e-6
        if found.converged:
            assert found.ratio <= 2
        if activation == "identity":  # a linear neuron ends at the nearest
            np.testing.assert_allclose(found.weights, found.nearest, atol=1e-4)


@pytest.mark.parametrize("activation", ["relu", "softplus", "tanh", "identity"])
def test_the_path_is_the_flow_of_half_the_squared_error_and_the_nearest_weights_fit(activation):
    import torch
    from scipy.integrate import solve_ivp

    forms = {"softplus": torch.nn.functional.softplus, "identity": lambda z: z}
    form = forms.get(activation) or getattr(torch, activation)
    X, _, rng = problem(7)
    X, start = 3 * X, rng.standard_normal(6) / 4
    A = torch.tensor(X)
    y = form(A @ torch.tensor(rng.standard_normal(6) / 4))

    def downhill(_, w):
        at = torch.tensor(w, requires_grad=True)
        (slope,) = torch.autograd.grad(((form(A @ at) - y) ** 2).sum() / 2, at)
        return -slope.numpy()

    found = single_neuron_flow(X, y.numpy(), start, activation=activation, time=0.2, record=4)
    theirs = solve_ivp(downhill, (0, 0.2), start, t_eval=found.path.times, rtol=1e-8, atol=1e-10).y.T
    assert np.linalg.norm(theirs[-1] - start) > 0.05
    np.testing.assert_allclose(found.path.points, theirs, atol=1e-5)
    np.testing.assert_allclose(form(A @ torch.tensor(found.nearest)), y, atol=1e-9)


def test_printed_equality_at_the_end_is_an_inequality():
    X, y, _ = problem(0)
    found = single_neuron_flow(X, y, activation="identity", time=60.0)
    left = np.linalg.norm(found.weights - found.nearest) + np.linalg.norm(found.nearest)
    assert abs(left - 2 * found.least) > 0.5 * found.least  # as printed: equal
    assert left <= 2 * found.least


def test_printed_start_at_zero_needs_a_slope_there():
    X, y = [[3.0, 4.0], [4.0, -3.0]], [5.0, 2.0]
    still = single_neuron_flow(X, y, slope_at_zero=0.0, time=5.0)
    moved = single_neuron_flow(X, y, time=5.0)
    assert still.travelled == 0.0 and not still.converged and "says nothing" in str(still)
    assert moved.converged and 0 < moved.ratio <= 2


def test_euler_is_near_the_flow():
    X, y, rng = problem(5)
    start = rng.standard_normal(6)
    a = single_neuron_flow(X, y, start, time=40.0)
    b = single_neuron_flow(X, y, start, time=40.0, method="euler", step=0.005)
    np.testing.assert_allclose(a.weights, b.weights, atol=3e-2)


def test_targets_that_no_weights_fit():
    assert nearest_without_loss([[1.0]], [-1.0], [0.0]) is None
    assert nearest_without_loss([[1.0], [1.0]], [1.0, 2.0], [0.0]) is None
    assert nearest_without_loss([[1.0], [-1.0]], [1.0, 0.5], [0.0]) is None
    assert nearest_without_loss([[1.0, 0.0], [-1.0, 0.0]], [1.0, 0.0], [0.0, 3.0]).tolist() == [1.0, 3.0]
    assert nearest_without_loss([[1.0], [2.0]], [1.0, 0.0], [0.0]) is None
    assert nearest_without_loss([[1.0]], [1.5], [0.0], activation="tanh") is None
    assert nearest_without_loss([[1.0]], [0.0], [0.0], activation="softplus") is None
    found = single_neuron_flow([[1.0]], [-1.0], time=1.0)
    # One unit pulled below zero, one up: the flow slides along the fold, and comes back in time.
    slides = single_neuron_flow([[1.0, 0.2], [1.0, -0.2]], [3.0, -3.5], [0.3, 0.2])
    assert not slides.converged and np.isfinite(slides.weights).all()
    assert found.nearest is None and np.isnan(found.ratio) and "no weights fit" in str(found)


def test_zero_data_one_sample_and_a_start_without_loss():
    found = single_neuron_flow(np.zeros((2, 3)), [0.0, 0.0], [1.0, 2.0, 3.0], time=1.0)
    assert found.converged and found.travelled == 0 and np.isnan(found.ratio)
    one = single_neuron_flow([[2.0, 0.0]], [4.0], [1.0, 5.0], time=30.0)
    np.testing.assert_allclose(one.weights, [2.0, 5.0], atol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"X": [[np.nan]]},
        {"y": [1.0, 2.0]},
        {"start": [1.0, 2.0]},
        {"activation": "step"},
        {"slope_at_zero": 2.0},
    ],
)
def test_bad_input(change):
    with pytest.raises(ValueError, match="must"):
        single_neuron_flow(**({"X": [[1.0]], "y": [1.0], "start": [0.0], "time": 1.0} | change))


@pytest.mark.slow
def test_factor_two_on_two_hundred_problems():
    ratios = []
    for seed in range(1000, 1200):
        X, y, rng = problem(seed)
        found = single_neuron_flow(X, y, np.zeros(6) if seed % 2 else rng.standard_normal(6), record=50)
        assert found.largest_increase < 1e-6
        if found.converged and found.least > 1e-9:
            ratios.append(found.ratio)
    assert len(ratios) >= 100
    assert min(ratios) >= 1 - 1e-6 and 1.01 < max(ratios) <= 2


def test_the_default_time_follows_the_scale_of_the_data():
    X, y, _ = problem(3)
    plain = single_neuron_flow(X, y, record=5)
    for scale in (1e-6, 1e6):
        scaled = single_neuron_flow(scale * X, y, record=5)
        assert scaled.converged == plain.converged
        np.testing.assert_allclose(scale * scaled.weights, plain.weights, atol=1e-3)


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_arrival_does_not_depend_on_the_unit_of_the_targets(size):
    X = np.eye(2)
    stopped = single_neuron_flow(X, [size, size], time=0.1)
    assert stopped.loss > 0.1 * size**2 and not stopped.converged
    ended = single_neuron_flow(X, [size, size])
    assert ended.converged == (ended.loss <= 1e-10 * size**2)
