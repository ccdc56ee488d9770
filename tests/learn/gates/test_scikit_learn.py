"""Every gate learner is a scikit-learn regressor: its checks, pipelines, grid search, pickles."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pindown.learn.gates import GLMTron, ModifiedSGDRegressor, NoisyGDRegressor, SingleFilterRegressor
from tests.learn.gates.problems import gaussian, relu_problem

LEARNERS = [ModifiedSGDRegressor(), GLMTron(), NoisyGDRegressor(), SingleFilterRegressor()]
named = pytest.mark.parametrize("learner", LEARNERS, ids=lambda e: type(e).__name__)


@parametrize_with_checks([*LEARNERS, GLMTron("identity", fit_intercept=True, max_iter=2000)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@named
def test_pipelines_pickles_and_clones(learner):
    X, y, _ = relu_problem(gaussian, 0)
    pipeline = make_pipeline(MaxAbsScaler(), clone(learner)).fit(X, y)
    assert pipeline.score(X, y) > 0.99
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))
    assert clone(learner).get_params().keys() == learner.get_params().keys()


@named
def test_the_same_seed_gives_the_same_weights(learner):
    X, y, _ = relu_problem(gaussian, 0)
    np.testing.assert_array_equal(clone(learner).fit(X, y).coef_, clone(learner).fit(X, y).coef_)


@named
def test_network_before_fit_is_missing(learner):
    assert not hasattr(clone(learner), "network_")


def test_grid_search_finds_the_link():
    X, _, w = relu_problem(gaussian, 0)
    search = GridSearchCV(GLMTron(max_iter=500), {"link": ["identity", "relu", "tanh"]}, cv=3)
    assert search.fit(X, np.tanh(X @ w)).best_params_ == {"link": "tanh"}


@named
@pytest.mark.parametrize("X, y", [(1e200, 1.0), (1e-200, 1.0), (1.0, 1e200)])
def test_numbers_whose_powers_overflow_are_refused(learner, X, y):
    with pytest.raises(ValueError, match="rescale"):
        clone(learner).fit(np.full((3, 2), X), np.full(3, y))


@named
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (7, 1), (3, 6)])
def test_tiny_and_constant_data(learner, shape):
    for X in (np.ones(shape), np.zeros(shape), -np.ones(shape)):
        for y in (np.ones(shape[0]), np.zeros(shape[0])):
            model = clone(learner).fit(X, y)
            assert np.isfinite(model.coef_).all()
            assert np.isfinite(model.predict(X)).all()
