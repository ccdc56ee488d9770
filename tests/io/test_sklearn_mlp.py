"""Reading scikit-learn perceptrons: predictions must be theirs."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_regression
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor

from pindown import ReluNetwork
from pindown.errors import UnsupportedModelError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_classifier_probabilities():
    X, y = load_iris(return_X_y=True)
    mlp = MLPClassifier(hidden_layer_sizes=(8, 6), max_iter=50, random_state=0).fit(X, y)
    net = ReluNetwork.from_sklearn(mlp)
    logits = net(X)
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    assert net.output_activation == "softmax"
    np.testing.assert_allclose(
        shifted / shifted.sum(axis=1, keepdims=True), mlp.predict_proba(X), atol=1e-12
    )


def test_binary_classifier_has_one_logit():
    X, y = load_iris(return_X_y=True)
    mlp = MLPClassifier(hidden_layer_sizes=(5,), max_iter=50, random_state=0).fit(X, y == 1)
    net = ReluNetwork.from_sklearn(mlp)
    assert net.output_activation == "sigmoid"
    np.testing.assert_allclose(1 / (1 + np.exp(-net(X)[:, 0])), mlp.predict_proba(X)[:, 1], atol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "identity"])
def test_regressor(activation):
    X, y = make_regression(60, 4, random_state=0)
    mlp = MLPRegressor(
        hidden_layer_sizes=(7, 3), activation=activation, max_iter=50, random_state=0
    ).fit(X, y)
    net = ReluNetwork.from_sklearn(mlp)
    assert net.depth == (3 if activation == "relu" else 1)
    np.testing.assert_allclose(net(X)[:, 0], mlp.predict(X), atol=1e-9)


def test_what_cannot_be_read():
    X, y = make_regression(30, 2, random_state=0)
    with pytest.raises(UnsupportedModelError, match="tanh"):
        ReluNetwork.from_sklearn(MLPRegressor(activation="tanh", max_iter=5).fit(X, y))
    with pytest.raises(ValueError, match="not fitted"):
        ReluNetwork.from_sklearn(MLPRegressor())
    with pytest.raises(TypeError, match="LinearRegression"):
        ReluNetwork.from_sklearn(LinearRegression())


def test_an_output_activation_that_is_not_read_is_named():
    X, y = make_regression(30, 2, random_state=0)
    with pytest.raises(UnsupportedModelError, match="'exp'"):
        ReluNetwork.from_sklearn(MLPRegressor(loss="poisson", max_iter=5).fit(X, np.abs(y)))


def test_an_estimator_that_predicts_something_else_is_refused():
    class Doubled(MLPRegressor):
        def predict(self, X):
            return 2.0 * super().predict(X)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    estimator = Doubled(hidden_layer_sizes=(4,), max_iter=20, random_state=0).fit(X, X[:, 0])
    with pytest.raises(UnsupportedModelError, match="not read as what it is"):
        ReluNetwork.from_sklearn(estimator)
