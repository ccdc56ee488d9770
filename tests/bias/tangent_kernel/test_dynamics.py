"""Predictions over time against training itself."""

import numpy as np
import pytest
import torch
from sklearn.kernel_ridge import KernelRidge

from pindown.bias.tangent_kernel import (
    empirical_ntk,
    infinite_ntk,
    ntk_predict,
    residual_in_eigenbasis,
    spectral_bias,
    tangent_network,
)

torch.set_num_threads(1)
CONSTANTS = {"half-sum": 1.0, "sum": 2.0, "mean": 2.0 / 9}


@pytest.fixture
def linear():
    """A linear model (its kernel never moves), targets, a start and other inputs."""
    rng = np.random.default_rng(0)
    X, Z, y = rng.standard_normal((9, 4)), rng.standard_normal((5, 4)), rng.standard_normal(9)
    return X, Z, y, rng.standard_normal(4)


@pytest.mark.parametrize("loss", list(CONSTANTS))
def test_gradient_descent_of_a_linear_model_step_by_step(linear, loss):
    X, Z, y, w = linear
    c, lr, steps = CONSTANTS[loss], 0.02, [0, 1, 7, 60]
    found = ntk_predict(
        X @ X.T, y, steps, K_test=Z @ X.T, f0=X @ w, f0_test=Z @ w, lr=lr, loss=loss, mode="gd"
    )
    for t in range(61):
        if t in steps:
            i = steps.index(t)
            np.testing.assert_allclose(found.train[i], X @ w, atol=1e-8)
            np.testing.assert_allclose(found.test[i], Z @ w, atol=1e-8)
            value = {"half-sum": 0.5, "sum": 1.0, "mean": 1 / 9}[loss] * np.sum((X @ w - y) ** 2)
            assert found.loss[i] == pytest.approx(value)
        w = w - lr * c * X.T @ (X @ w - y)
    assert found.stable
    # The slides mix the constants of the losses: any other than the loss's own is another curve.
    for other in set(CONSTANTS) - {loss}:
        mixed = ntk_predict(X @ X.T, y, steps, f0=linear[0] @ linear[3], lr=lr, loss=other, mode="gd")
        assert np.abs(mixed.train[1] - found.train[1]).max() > 0.01


def test_flow_is_the_limit_of_small_steps(linear):
    X, Z, y, w = linear
    K, options = X @ X.T, {"K_test": Z @ X.T, "f0": X @ w, "f0_test": Z @ w}
    flow = ntk_predict(K, y, 0.7, **options)
    gaps = [
        np.abs(ntk_predict(K, y, k, lr=0.7 / k, mode="gd", **options).test - flow.test).max()
        for k in (200, 2000)
    ]
    assert gaps[1] == pytest.approx(gaps[0] / 10, rel=0.1)


def test_the_printed_forms_fail_where_the_start_is_not_zero(linear):
    """The slides drop the start, and put the exponential on the wrong side of it."""
    X, _, y, w = linear
    K, f0 = X @ X.T, X @ w
    values, Q = np.linalg.eigh(K)
    decay = Q @ np.diag(np.exp(-values * 0.1)) @ Q.T
    ours = ntk_predict(K, y, 0.1, f0=f0).train[0]
    truth, h = f0.copy(), 0.1 / 20_000
    for _ in range(20_000):
        truth = truth - h * K @ (truth - y)
    np.testing.assert_allclose(ours, truth, atol=1e-4)
    printed = y - decay @ y  # holds for a start at zero only
    assert np.abs(printed - truth).max() > 0.1
    np.testing.assert_allclose(ntk_predict(K, y, 0.1).train[0], printed, atol=1e-10)
    many = np.random.default_rng(1).standard_normal((9, 9))  # nine outputs, so that both sides fit
    left = ntk_predict(K, np.zeros((9, 9)), 0.1, f0=many).train[0]
    np.testing.assert_allclose(left, decay @ many, atol=1e-10)
    assert np.abs(many @ decay - left).max() > 0.1
    unscaled = ntk_predict(K, y, 0.1, f0=f0, lr=3.0).train[0]  # one exponent is printed without the rate
    assert np.abs(unscaled - ours).max() > 0.1
    np.testing.assert_allclose(unscaled, ntk_predict(K, y, 0.3, f0=f0).train[0], atol=1e-12)


def test_the_end_of_time_is_interpolation_of_least_norm():
    rng = np.random.default_rng(0)
    X, Z, y = rng.standard_normal((12, 3)), rng.standard_normal((6, 3)), rng.standard_normal(12)
    K, Kz = infinite_ntk(X, bias_std=0.5), infinite_ntk(Z, X, bias_std=0.5)
    found = ntk_predict(K, y, np.inf, K_test=Kz)
    ridge = KernelRidge(alpha=1e-11, kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(found.train[0], y, atol=1e-8)
    np.testing.assert_allclose(found.test[0], ridge.predict(Kz), atol=1e-5)
    np.testing.assert_allclose(ntk_predict(K, y, 10**9, K_test=Kz).test[0], found.test[0], atol=1e-5)


def test_directions_without_kernel_are_never_learned():
    X = np.array([[1.0], [1.0], [2.0]])  # rank one
    y = np.array([1.0, 0.0, 0.0])
    end = ntk_predict(X @ X.T, y, np.inf, K_test=np.array([[1.0, 1.0, 2.0]]))
    np.testing.assert_allclose(end.train[0], X[:, 0] / 6, atol=1e-12)
    assert end.test[0, 0] == pytest.approx(1 / 6)
    assert spectral_bias(X @ X.T, y).never == pytest.approx(5 / 6)


def test_too_large_steps_are_said_to_diverge():
    found = ntk_predict([[1.0]], [1.0], [0, 5, 50], lr=2.5, mode="gd")
    assert not found.stable and "diverges" in str(found)
    assert abs(found.train[2, 0]) > 1e8
    with pytest.raises(ValueError, match="no limit at t = infinity; lr must be below 2"):
        ntk_predict([[1.0]], [1.0], np.inf, lr=2.5, mode="gd")
    assert ntk_predict([[1.0]], [1.0], np.inf, lr=1.5, mode="gd").train[0, 0] == 1.0
    assert ntk_predict([[1.0]], [1.0], 3, lr=1.0, mode="gd").train[0, 0] == 1.0  # in one step


def test_several_targets_go_their_own_ways(linear):
    X, _, y, _ = linear
    K = X @ X.T
    both = ntk_predict(K, np.c_[y, -2 * y], [0.3])
    assert both.train.shape == (1, 9, 2)
    np.testing.assert_allclose(both.train[0, :, 1], -2 * ntk_predict(K, y, 0.3).train[0], atol=1e-12)


def trained_curve(width, steps, n=24):
    """Train a network of one hidden layer; return its measured and its predicted outputs."""
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((2, n, 5))
    X, Z = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (X, Z))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    net = tangent_network([5, width, 1], random_state=1)
    K, Kz = empirical_ntk(net, X), empirical_ntk(net, Z, X)
    lr = 1.0 / float(np.linalg.eigvalsh(K)[-1])
    tensors = [torch.as_tensor(A) for A in (X, Z, y)]
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    train, test = [], []
    for step in range(max(steps) + 1):
        if step in steps:
            with torch.no_grad():
                train.append(net(tensors[0])[:, 0].numpy())
                test.append(net(tensors[1])[:, 0].numpy())
        optimizer.zero_grad()
        (0.5 * torch.sum((net(tensors[0])[:, 0] - tensors[2]) ** 2)).backward()
        optimizer.step()
    found = ntk_predict(K, y, steps, K_test=Kz, f0=train[0], f0_test=test[0], lr=lr, mode="gd")
    return y, np.array(train), np.array(test), found


def test_a_network_of_width_4096_trains_as_predicted():
    y, train, test, found = trained_curve(4096, [0, 1, 3, 10, 30, 100, 300])
    size = np.linalg.norm(y)
    losses = 0.5 * np.sum((train - y) ** 2, axis=1)
    assert losses[-1] < 0.02 * losses[0]
    assert np.abs(losses - found.loss).max() < 0.02 * losses[0]
    assert np.linalg.norm(train - found.train, axis=1).max() < 0.02 * size
    assert np.linalg.norm(test - found.test, axis=1).max() < 0.02 * size
    # A narrow one does not.
    y, _, other, rough = trained_curve(32, [0, 100])
    assert np.linalg.norm(other - rough.test, axis=1).max() > 0.04 * size


def test_components_decay_at_their_own_rates_with_the_sign_that_was_lost(linear):
    X, _, y, _ = linear
    K, lr = X @ X.T, 1e-3
    w, outputs = np.zeros(4), []
    for _ in range(101):
        outputs.append(X @ w)
        w = w - lr * X.T @ (X @ w - y)
    measured, values = residual_in_eigenbasis(K, y, outputs)
    report = spectral_bias(K, y, lr=lr)
    fitted = -np.log(measured[100, :4] / measured[0, :4]) / 100
    np.testing.assert_allclose(fitted, report.rates[:4], rtol=0.02)
    signs = np.sign(np.sum(report.vectors * np.linalg.eigh(K)[1][:, ::-1], axis=0))
    np.testing.assert_allclose(measured[0], signs * report.coefficients[:, 0], atol=1e-10)
    # Printed without its minus, the component would start on the other side of zero.
    plain = report.vectors.T @ y
    np.testing.assert_allclose(report.coefficients[:, 0], -plain, atol=1e-12)
    assert np.abs(report.coefficients[:, 0] - plain).max() > 0.1
    np.testing.assert_allclose(values[:4], report.eigenvalues[:4])


def test_times_of_the_spectral_report():
    report = spectral_bias(np.diag([4.0, 1.0]), [1.0, 1.0], loss="sum")
    np.testing.assert_allclose(report.half_times, np.log(2) / np.array([8.0, 2.0]))
    t = report.time_to(0.75)
    assert 0.5 * (np.exp(-16 * t) + np.exp(-4 * t)) == pytest.approx(0.25)
    assert report.time_to(0.0) == 0.0 and "2 of 2 directions" in str(report)
    stuck = spectral_bias(np.diag([1.0, 0.0]), [1.0, 1.0])
    assert stuck.time_to(0.9) == np.inf and stuck.never == pytest.approx(0.5)
    assert spectral_bias(np.eye(2), [0.0, 0.0]).time_to(0.5) == 0.0
    with pytest.raises(ValueError, match="share"):
        report.time_to(1.0)


def test_low_frequencies_are_learned_first():
    t = 2 * np.pi * np.arange(64) / 64
    K = infinite_ntk(np.c_[np.cos(t), np.sin(t), np.ones(64)])
    halves = [spectral_bias(K, np.cos(k * t)).time_to(0.5) for k in range(7)]
    assert (np.diff(halves) > 0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"K": np.ones((2, 3))}, "square"),
        ({"K": [[1.0, 0.0], [1.0, 1.0]]}, "not symmetric"),
        ({"K": -np.eye(2)}, "no kernel matrix"),
        ({"K": [[np.nan, 0.0], [0.0, 1.0]]}, "finite"),
        ({"y": [1.0]}, r"\(2,\) or \(2, k\)"),
        ({"y": [1.0, np.inf]}, "finite"),
        ({"t": -1.0}, "at least 0"),
        ({"t": []}, "one or more"),
        ({"t": 0.5, "mode": "gd"}, "integers"),
        ({"mode": "sgd"}, "'flow', 'gd'"),
        ({"loss": "huber"}, "'half-sum', 'sum', 'mean'"),
        ({"lr": 0.0}, "lr must be a finite number above 0"),
        ({"f0": [[1.0, 2.0], [3.0, 4.0]]}, "shape of the targets"),
        ({"f0_test": [1.0]}, "without K_test"),
        ({"K_test": [[1.0]]}, r"\(m, 2\)"),
    ],
)
def test_bad_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        ntk_predict(**{"K": np.eye(2), "y": [1.0, 2.0], "t": 1.0, **change})


def test_divergence_and_matrices_that_are_no_kernels_are_refused():
    with pytest.raises(ValueError, match="lr must be below 2"):
        ntk_predict(np.eye(2), [1.0, 1.0], [10_000], lr=3.0, mode="gd")
    at_the_edge = ntk_predict(2 * np.eye(2), [1.0, 1.0], [1, 2], mode="gd")
    assert not at_the_edge.stable and "does not converge" in str(at_the_edge)
    with pytest.raises(ValueError, match="no kernel matrix"):
        spectral_bias(-np.eye(2), [1.0, 0.0])
    assert sorted(spectral_bias(np.eye(2), [1e200, 0.0]).shares.tolist()) == [0.0, 1.0]


def test_times_of_two_known_rates():
    """Rates 2 and 1/2 and a direction that is never learned, equal shares: the answer by hand."""
    found = spectral_bias(np.diag([2.0, 0.5, 0.0]), [1.0, 1.0, 1.0])
    assert found.time_to(0.0) == 0.0
    assert found.time_to(0.7) == np.inf  # a third is never learned
    t = found.time_to(0.4)
    assert (np.exp(-4 * t) + np.exp(-t) + 1) / 3 == pytest.approx(0.6)
    single = spectral_bias([[3.0]], [5.0])
    assert single.time_to(0.9) == pytest.approx(np.log(10) / 6)


def test_a_share_is_gone_when_the_predicted_loss_has_fallen_by_it():
    rng = np.random.default_rng(0)
    A, y, f0 = rng.standard_normal((5, 5)), rng.standard_normal((5, 2)), rng.standard_normal((5, 2))
    for loss in ("half-sum", "sum", "mean"):
        options = {"f0": f0, "lr": 0.3, "loss": loss}
        t = spectral_bias(A @ A.T, y, **options).time_to(0.6)
        first, then = ntk_predict(A @ A.T, y, [0.0, t], **options).loss
        assert then == pytest.approx(0.4 * first)
