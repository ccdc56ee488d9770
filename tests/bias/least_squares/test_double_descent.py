"""Double descent: the peak, its cure, and the formula for Gaussian features."""

import numpy as np
import pytest

from pindown.bias.least_squares import double_descent_curve, gaussian_risk


def data(n, seed, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 10))
    return X, np.tanh(X[:, 0]) + noise * rng.standard_normal(n)


@pytest.mark.parametrize("features", ["relu", "fourier"])
def test_error_and_norm_peak_at_the_number_of_samples(features):
    (X, y), (X_test, y_test) = data(40, 0), data(100, 1, 0.0)
    widths = [10, 20, 36, 40, 44, 80, 400]
    curve = double_descent_curve(X, y, X_test, y_test, widths, features=features, repeats=7)
    assert curve.peak in (36, 40, 44)
    assert widths[int(curve.norm.argmax())] in (36, 40, 44)
    assert curve.test_error[-1] < curve.test_error.max() / 10
    assert curve.train_error[-1] < 1e-10 < curve.train_error[0]
    tuned = double_descent_curve(
        X, y, X_test, y_test, [20, 40, 80], features=features, ridge="tuned", repeats=3
    )
    assert tuned.test_error.max() < 3 * tuned.test_error.min() and "peaks at" in str(curve)


def test_many_features_are_the_kernel_that_they_stand_for():
    """Waves: the Gaussian kernel of width one; ReLUs: the arc-cosine kernel of inputs over root d."""
    from sklearn.metrics.pairwise import rbf_kernel

    from pindown.bias.least_squares.double_descent import _features
    from pindown.bias.tangent_kernel import infinite_ntk

    X = data(6, 3)[0] / 3
    limits = {"fourier": rbf_kernel(X, gamma=0.5), "relu": infinite_ntk(X / 10**0.5, kernel="nngp")}
    for kind, K in limits.items():
        train, test = _features(X, X[:3], 10_000, kind, np.random.default_rng(0))
        np.testing.assert_allclose(train @ train.T, K, atol=0.05 * K.max())
        np.testing.assert_allclose(test @ train.T, K[:3], atol=0.05 * K.max())


def test_ridge_is_scikit_learns():
    from sklearn.linear_model import Ridge

    from pindown.bias.least_squares.double_descent import _fit

    X, y = data(12, 2)
    for width in (4, 10):
        theirs = Ridge(alpha=0.3, fit_intercept=False, tol=1e-12).fit(X[:, :width], y).coef_
        np.testing.assert_allclose(_fit(X[:, :width], y, 0.3), theirs, atol=1e-9)


@pytest.mark.parametrize("used", [0, 1, 5, 15, 18, 22, 30, 60])
def test_formula_for_gaussian_features_by_simulation(used):
    n, noise = 20, 0.5
    beta = np.random.default_rng(9).standard_normal(60) / 4
    rng = np.random.default_rng(used)
    risks = []
    for _ in range(1500 if 10 < used < 40 else 500):
        X = rng.standard_normal((n, 60))
        y = X @ beta + noise * rng.standard_normal(n)
        w = np.zeros(60)
        if used:
            w[:used] = np.linalg.lstsq(X[:, :used], y, rcond=None)[0]
        risks.append(np.sum((w - beta) ** 2) + noise**2)
    exact = gaussian_risk(n, beta, used, noise)
    error = np.std(risks) / np.sqrt(len(risks))
    # Next to n the risk has no variance to speak of an error with: compare within a factor there.
    if used in (18, 22):
        assert 0.5 < np.mean(risks) / exact < 2
    else:
        assert abs(np.mean(risks) - exact) < 4.5 * error + 1e-12


def test_formula_at_its_ends():
    assert [gaussian_risk(5, np.ones(9), p, 0.1) for p in (4, 5, 6)] == [np.inf] * 3
    assert gaussian_risk(5, [1.0, 2.0], 2, 0.0) == 0.0  # all features, no noise: found exactly
    assert gaussian_risk(5, np.ones(5), 5, 0.0) == 0.0
    assert gaussian_risk(5, np.ones(6), 6, 0.0) == pytest.approx(1.0)  # 6 (1 - 5/6)
    assert gaussian_risk(1, [1.0], 0, 0.0) == 1.0


@pytest.mark.parametrize(
    "change",
    [
        {"widths": []},
        {"widths": [0]},
        {"features": "other"},
        {"ridge": -1.0},
        {"repeats": 0},
        {"X_test": [[1.0]]},
        {"y": [np.nan, 1.0]},
    ],
)
def test_bad_input(change):
    arguments = {
        "X": np.eye(2),
        "y": [1.0, 2.0],
        "X_test": np.eye(2),
        "y_test": [1.0, 2.0],
        "widths": [2],
    } | change
    with pytest.raises(ValueError, match=r"must|need"):
        double_descent_curve(**arguments)
    with pytest.raises(ValueError, match="at most"):
        gaussian_risk(3, [1.0], 2, 0.0)


def test_one_sample():
    curve = double_descent_curve([[1.0]], [1.0], [[1.0]], [1.0], [1, 50], repeats=3)
    assert np.isfinite(curve.test_error).all() and curve.n_samples == 1


def test_one_sample_and_features_that_are_never_on():
    X, y = np.zeros((4, 2)), np.arange(4.0)
    assert (double_descent_curve(X, y, X, y, [1, 3], ridge="tuned", repeats=2).norm == 0).all()
    with pytest.raises(ValueError, match="at least two"):
        double_descent_curve([[1.0]], [1.0], X[:, :1], y, [1], ridge="tuned")
    with pytest.raises(TypeError, match="random_state must be an integer"):
        double_descent_curve(X, y, X, y, [1], random_state=None)
