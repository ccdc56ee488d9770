"""Data normalisation and the speed of gradient descent; signals at random weights."""

import numpy as np
import pytest
import torch

from pindown.bias.initialisation import conditioning, keep_variance, predicted_signal, signal_report

torch.set_num_threads(1)


def steps_needed(X, shrink):
    """Gradient descent with its best step on the worst start, counted."""
    H = X.T @ X / len(X)
    values, Q = np.linalg.eigh(H)
    step = 2 / (values[0] + values[-1])
    w = Q[:, 0] + Q[:, -1]
    first, steps = np.abs(Q.T @ w).max(), 0
    while np.abs(Q.T @ w).max() > shrink * first:
        w, steps = w - step * H @ w, steps + 1
    return steps


def test_condition_numbers_and_the_steps_they_mean():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)) * [1.0, 5.0, 0.3] + [0.5, 0.0, 0.0]
    found = conditioning(X)
    raw = np.hstack([X, np.ones((200, 1))])
    assert found.raw == pytest.approx(np.linalg.cond(raw.T @ raw), rel=1e-6)
    assert found.standardised < 2 < found.raw
    assert abs(found.raw_steps - steps_needed(raw, 1e-6)) <= 1
    from sklearn.preprocessing import StandardScaler

    Z = np.hstack([StandardScaler().fit_transform(X), np.ones((200, 1))])
    assert found.standardised == pytest.approx(np.linalg.cond(Z.T @ Z), rel=1e-6)
    assert abs(found.standardised_steps - steps_needed(Z, 1e-6)) <= 1
    assert found.speed_up > 50


def test_the_published_scales():
    X = np.random.default_rng(1).standard_normal((200, 3)) * [1.0, 100.0, 0.01] + [3.0, 0.0, 0.0]
    found = conditioning(X)
    assert found.raw > 1e7 and found.standardised < 2 and found.rank == 4


def test_constant_rank_deficient_single_and_zero_inputs():
    X = np.random.default_rng(2).standard_normal((30, 2))
    found = conditioning(np.column_stack([X, X[:, 0], np.full(30, 0.1)]))
    assert found.constant == (3,) and found.rank == 3 and np.isfinite(found.raw)
    one = conditioning([[5.0, -3.0]])
    assert one.rank == 1 and one.raw == one.standardised == 1.0 and one.constant == (0, 1)
    nothing = conditioning(np.zeros((3, 2)), intercept=False)
    assert nothing.rank == 0 and nothing.raw == 1.0 and nothing.speed_up == 1.0
    for bad in ([[np.nan]], np.zeros((0, 1)), [1.0]):
        with pytest.raises(ValueError, match="X must"):
            conditioning(bad)
    with pytest.raises(ValueError, match="shrink must"):
        conditioning(X, shrink=1.0)


@pytest.mark.parametrize(
    "nonlinearity, gain", [("linear", 1.0), ("relu", 1.0), ("relu", 2.0), ("tanh", 1.0)]
)
def test_signals_of_wide_networks_follow_the_recursion(nonlinearity, gain):
    layers, make = [], {"linear": torch.nn.Identity, "relu": torch.nn.ReLU, "tanh": torch.nn.Tanh}
    for _ in range(6):
        layers += [torch.nn.Linear(512, 512), make[nonlinearity]()]
    net = keep_variance(torch.nn.Sequential(*layers), "relu" if gain == 2.0 else "linear", seed=1)
    X = torch.randn(64, 512, generator=torch.Generator().manual_seed(0))
    measured = signal_report(net, X).forward
    np.testing.assert_allclose(measured, predicted_signal(6, nonlinearity, gain=gain), rtol=0.2)


def test_recursion_by_simulation_and_refusals():
    z = np.random.default_rng(0).standard_normal(10**6)
    predicted = predicted_signal(2, "tanh", gain=1.5, input_square=2.0)
    assert predicted[0] == 3.0
    assert predicted[1] == pytest.approx(1.5 * np.mean(np.tanh(np.sqrt(3.0) * z) ** 2), rel=5e-3)
    assert (
        predicted_signal(1, "relu").tolist() == [1.0] and predicted_signal(2, "tanh", gain=0.0)[1] == 0.0
    )
    with pytest.raises(ValueError, match="nonlinearity must"):
        predicted_signal(2, "sine")
    with pytest.raises(ValueError, match="depth must"):
        predicted_signal(0)


def test_huge_inputs_are_standardised_like_others():
    X = np.random.default_rng(0).standard_normal((30, 3))
    assert conditioning(1e200 * X).standardised == pytest.approx(conditioning(X).standardised)


def test_speed_up_is_steps_over_steps():
    rng = np.random.default_rng(1)
    a = rng.standard_normal(300)
    X = np.stack([a, 0.5 * a + 0.2 * rng.standard_normal(300)], axis=1) * [1.0, 9.0]
    found = conditioning(X)
    assert found.standardised_steps > 1
    assert found.speed_up * found.standardised_steps == pytest.approx(found.raw_steps)
    assert found.speed_up > 1
