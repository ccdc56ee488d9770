"""Filters of symmetric samples are found at the promised rate; else the fit says that it is a guess."""

import warnings

import numpy as np
import pytest

from pindown.circuits.blocks import single_filter_network, window_matrices
from pindown.learn.gates import GLMTron, SingleFilterRegressor
from tests.learn.gates.problems import DISTRIBUTIONS, gaussian, relu_problem


def symmetric_problem(distribution, seed, n=7, r=3, stride=1, leak=0.0):
    rng = np.random.default_rng(seed)
    X = distribution(rng, 60, n)
    X = np.vstack([X, -X])[rng.permutation(120)]
    w = rng.standard_normal(r)
    return X, single_filter_network(w, window_matrices(n, r, stride=stride), leak=leak)(X)[:, 0], w


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("leak", [0.0, 0.3])
@pytest.mark.parametrize("stride", [1, 2])
def test_symmetric_samples_give_the_filter(distribution, leak, stride):
    for seed in range(5):
        X, y, w = symmetric_problem(distribution, seed, stride=stride, leak=leak)
        for steps in (1, 3, 10, 50):
            model = SingleFilterRegressor(
                kernel_size=3, stride=stride, leak=leak, max_iter=steps, tol=0.0
            )
            with pytest.warns(UserWarning, match="longer than tol"):
                model.fit(X, y)
            assert np.linalg.norm(model.coef_ - w) <= model.error_bound_ + 1e-9
            assert model.guarantee_.kind == "exact"
        found = SingleFilterRegressor(kernel_size=3, stride=stride, leak=leak).fit(X, y)
        np.testing.assert_allclose(found.coef_, w, atol=1e-6)
        np.testing.assert_allclose(found.predict(X), y, atol=1e-6)


def test_distance_contracts_linearly_on_symmetric_samples():
    X, y, w = symmetric_problem(gaussian, 3, leak=0.2)
    A = window_matrices(7, 3)
    mean = np.einsum("krn,jn->jr", A, X) / len(A)
    v = np.random.default_rng(0).standard_normal(3)
    residual = y - single_filter_network(v, A, leak=0.2)(X)[:, 0]
    move = residual @ mean / len(X)
    np.testing.assert_allclose(move, 0.6 * (mean.T @ mean / len(X)) @ (w - v), atol=1e-12)


def test_one_window_is_glm_tron():
    X, y, w = relu_problem(gaussian, 0)
    filtered, gate = SingleFilterRegressor().fit(X, y), GLMTron().fit(X, y)
    np.testing.assert_allclose(filtered.coef_, gate.coef_, atol=1e-7)
    assert filtered.guarantee_.kind == "exact"
    assert SingleFilterRegressor().fit(X, -y - 1).guarantee_.kind == "heuristic"
    np.testing.assert_allclose(filtered.coef_, w, atol=1e-6)


def test_samples_without_symmetry_are_said_to_be_a_guess():
    rng = np.random.default_rng(0)
    X = rng.exponential(1.0, (50, 6)) - 0.5
    y = single_filter_network([1.0, -1.0], window_matrices(6, 2))(X)[:, 0]
    model = SingleFilterRegressor(kernel_size=2, max_iter=300, tol=1e-3).fit(X, y)
    assert model.guarantee_.kind == "heuristic"
    assert model.guarantee_.vacuous


def test_labels_of_no_such_network_are_noticed():
    X, y, _ = symmetric_problem(gaussian, 0)
    model = SingleFilterRegressor(kernel_size=3).fit(X, y + np.abs(X[:, 0]))
    assert model.guarantee_.kind == "heuristic"


def test_general_matrices():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4, 2, 5))
    X = rng.standard_normal((80, 5))
    X = np.vstack([X, -X])
    y = single_filter_network([0.5, 2.0], A, leak=0.1)(X)[:, 0]
    model = SingleFilterRegressor(matrices=A, leak=0.1).fit(X, y)
    np.testing.assert_allclose(model.coef_, [0.5, 2.0], atol=1e-6)
    assert model.network_.in_features == 5


def test_the_network_is_a_convolution_with_average_pooling():
    torch = pytest.importorskip("torch")
    X, y, _ = symmetric_problem(gaussian, 1)
    model = SingleFilterRegressor(kernel_size=3).fit(X, y)
    images, kernel = torch.tensor(X[:, None]), torch.tensor(model.coef_[None, None])
    pooled = torch.relu(torch.conv1d(images, kernel)).mean(dim=(1, 2)).numpy()
    np.testing.assert_allclose(model.predict(X), pooled, atol=1e-12)


@pytest.mark.parametrize(
    "bad", [{"kernel_size": 0}, {"kernel_size": 99}, {"stride": 0}, {"matrices": np.ones((2, 2))},
            {"leak": -1}, {"max_iter": 0}, {"tol": -1}, {"matrices": np.full((1, 1, 4), np.nan)}],
)  # fmt: skip
def test_bad_parameters_are_refused(bad):
    X, y, _ = relu_problem(gaussian, 0)
    with pytest.raises(ValueError, match=next(iter(bad))):
        SingleFilterRegressor(**bad).fit(X, y)


def test_an_interrupt_keeps_the_best_filter(monkeypatch):
    from pindown.learn.gates import single_filter

    def stops(steps, what, *, verbose):
        yield from range(5)
        raise KeyboardInterrupt

    monkeypatch.setattr(single_filter, "watched", stops)
    X = np.random.default_rng(0).normal(size=(30, 4))
    X = np.vstack([X, -X])
    y = single_filter_network([1.0, -2.0], window_matrices(4, 2))(X)[:, 0]
    with pytest.warns(UserWarning, match="interrupted"):
        model = SingleFilterRegressor(kernel_size=2).fit(X, y)
    assert len(model.loss_curve_) == 5 and model.loss_curve_[-1] < model.loss_curve_[0]
    assert np.linalg.norm(model.coef_ - [1.0, -2.0]) <= model.error_bound_


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_does_not_fall_below_rounding(seed):
    rng = np.random.default_rng(900 + seed)
    n = int(rng.integers(3, 8))
    k = int(rng.integers(2, n + 1))
    X, truth = rng.normal(size=(40, n)), rng.normal(size=k)
    X = np.vstack([X, -X])
    y = single_filter_network(truth, window_matrices(n, k))(X)[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SingleFilterRegressor(kernel_size=k, tol=0, max_iter=1500, verbose=0).fit(X, y)
    assert np.linalg.norm(model.coef_ - truth) <= model.error_bound_ < 1e-3


@pytest.mark.parametrize("leak", [0.0, 0.5])
def test_inputs_in_all_directions_alike_give_the_filter_in_one_step(leak):
    """The mean windows have one eigenvalue, which the step inverts; what is left is rounding."""
    A, axes = np.stack([np.eye(3), np.eye(3)]), np.vstack([np.eye(3), -np.eye(3)])
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = axes @ np.linalg.qr(rng.standard_normal((3, 3)))[0] * 1.7
        w = rng.standard_normal(3)
        y = single_filter_network(w, A, leak=leak)(X)[:, 0]
        model = SingleFilterRegressor(matrices=A, leak=leak, tol=1e-12).fit(X, y)
        assert model.contraction_ < 1e-12 and model.n_iter_ <= 3
        assert np.linalg.norm(model.coef_ - w) <= model.error_bound_
        assert 0 < model.error_bound_ < 1e-12


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_promise_is_that_of_the_slowest_direction():
    """Directions of 1 and 1/4 of the largest: three quarters of an error in the second are left."""
    A = np.stack([np.eye(2), np.eye(2)])
    X = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    y = single_filter_network([0.0, 3.0], A)(X)[:, 0]
    for steps in (1, 4):
        model = SingleFilterRegressor(matrices=A, max_iter=steps, tol=0).fit(X, y)
        assert model.contraction_ == pytest.approx(0.75)
        # Only the slow direction is in the filter: the promise is met with equality.
        assert np.linalg.norm(model.coef_ - [0.0, 3.0]) == pytest.approx(3 * 0.75**steps)
        assert model.error_bound_ == pytest.approx(3 * 0.75**steps)
        other = SingleFilterRegressor(matrices=A, max_iter=steps, tol=0).fit(7 * X, y)
        assert other.error_bound_ == pytest.approx(model.error_bound_ / 7)
