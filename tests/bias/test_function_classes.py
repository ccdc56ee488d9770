"""Classes of functions: what is fixed and what is learned."""

import numpy as np
import pytest

from pindown.bias.function_classes import approximation_curve, frozen_network, hypothesis_classes


def wave(x):
    return np.sin(9 * x) + np.abs(x - 0.4)


def test_every_class_fits_and_predicts():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (80, 2))
    y = X @ [1.0, -2.0]
    for name, model in hypothesis_classes(width=30, gamma=0.5, random_state=0).items():
        error = np.mean((model.fit(X, y).predict(X) - y) ** 2) / np.var(y)
        assert error < 0.02, name


@pytest.mark.parametrize("gamma", [None, 0.7])
def test_features_and_kernel_have_the_same_gamma(gamma):
    """Inner products of random features are the kernel of the other class: 1 / d unless given."""
    X = 3.0 * np.random.default_rng(2).normal(size=(12, 5))  # not of variance 1
    models = hypothesis_classes(width=20_000, gamma=gamma, random_state=0)
    features = models["features"].fit(X, X[:, 0])[:-1].transform(X)
    kernel = models["kernel"].fit(X, X[:, 0])._get_kernel(X)
    wanted = np.exp(-(0.2 if gamma is None else gamma) * ((X[:, None] - X) ** 2).sum(axis=-1))
    np.testing.assert_allclose(kernel, wanted, atol=1e-12)
    np.testing.assert_allclose(features @ features.T, kernel, atol=0.05)


def test_a_kernel_expansion_with_explicit_features_is_the_feature_model():
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(1)
    X, T, y = rng.normal(size=(40, 3)), rng.normal(size=(10, 3)), rng.normal(size=40)

    def features(A):
        pairs = [(i, j) for i in range(3) for j in range(3)]
        return np.stack([A[:, i] * A[:, j] for i, j in pairs], axis=1)

    kernel = KernelRidge(0.3, kernel="poly", degree=2, gamma=1.0, coef0=0.0).fit(X, y)
    explicit = Ridge(0.3, fit_intercept=False).fit(features(X), y)
    np.testing.assert_allclose(kernel.predict(T), explicit.predict(features(T)), rtol=1e-9)


@pytest.mark.parametrize("penalty", [0.0, 0.7])
def test_a_network_with_frozen_first_layer_is_the_feature_model(penalty):
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(2)
    X, T, y = rng.normal(size=(60, 3)), rng.normal(size=(10, 3)), rng.normal(size=60)
    W, b = rng.normal(size=(8, 3)), rng.normal(size=8)
    net = frozen_network(W, b, X, y, penalty=penalty)
    hidden = np.maximum(X @ W.T + b, 0)
    model = Ridge(penalty, fit_intercept=False, solver="svd").fit(hidden, y)
    np.testing.assert_allclose(net(T).ravel(), model.predict(np.maximum(T @ W.T + b, 0)), rtol=1e-8)


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
def test_more_units_approximate_better(activation):
    for seed in range(2):
        errors = approximation_curve(wave, [10, 200], activation=activation, random_state=seed).errors
        assert errors[1] < errors[0] / 5


def test_a_polynomial_stalls_at_its_degree():
    errors = approximation_curve(wave, [4, 10, 50, 200], activation="cubic", random_state=0).errors
    x = np.linspace(0, 1, 1000)
    best_cubic = np.abs(np.polynomial.Polynomial.fit(x, wave(x), 3)(x) - wave(x)).max()
    np.testing.assert_allclose(errors, best_cubic, rtol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"widths": []}, "at least 1"),
        ({"widths": [0]}, "at least 1"),
        ({"widths": [3], "activation": "tan"}, "one of"),
        ({"widths": [3], "target": lambda x: x[:3]}, "one finite number"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        approximation_curve(**{"target": wave, **arguments})
