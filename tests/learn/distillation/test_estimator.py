"""LinearDistiller keeps scikit-learn's rules and gives the student of the theorem."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pindown.learn import LinearDistiller
from pindown.learn.distillation import deep_limit, power_angle_task


@parametrize_with_checks(
    [LinearDistiller(), LinearDistiller(solver="gradient", fit_intercept=True, tol=1e-6)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def sample(n=6, d=15, k=None, seed=0):
    rng = np.random.default_rng([seed, 2])
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d if k is None else (d, k))


@pytest.mark.parametrize("solver", ["closed", "gradient"])
@pytest.mark.parametrize("k", [None, 1, 3])
def test_the_student_is_the_interpolant_of_least_norm(solver, k):
    X, z = sample(k=k)
    model = LinearDistiller(solver=solver).fit(X, z)
    if k == 3:
        z = z - z.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(model.coef_, (np.linalg.pinv(X) @ z).T, atol=1e-8)
    np.testing.assert_allclose(model.decision_function(X), z, atol=1e-7)
    assert model.rank_ == 6 and model.interpolates_ and model.residual_ < 1e-7
    assert (model.n_iter_ > 0) == (solver == "gradient")
    assert model.score(X, z) == 1.0 and model.score(X, -z) == 0.0


def test_an_intercept_is_the_weight_of_a_constant_input():
    X, z = sample(n=40, d=5)
    model = LinearDistiller(fit_intercept=True).fit(X, z + 3.0)
    assert model.intercept_ == pytest.approx(3.0)
    few = LinearDistiller(fit_intercept=True).fit(X[:3], z[:3])
    joined = np.linalg.pinv(np.column_stack([X[:3], np.ones(3)])) @ z[:3]
    np.testing.assert_allclose(np.append(few.coef_, few.intercept_), joined)


def test_probabilities_in_and_out():
    X, z = sample(n=30, d=4)
    chances = 1 / (1 + np.exp(-z))
    model = LinearDistiller(labels="probability").fit(X, chances)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], chances, atol=1e-9)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), (z >= 0).astype(int))
    X, Z = sample(n=30, d=4, k=3)
    several = LinearDistiller().fit(X, Z)
    np.testing.assert_array_equal(several.predict(X), Z.argmax(axis=1))
    assert several.predict_proba(X).shape == (30, 3)


@pytest.mark.parametrize("depth", [2, 3])
def test_a_deep_student_is_the_limit_of_its_flow(depth):
    task = power_angle_task(1.0, 10)
    X = task.draw(4, 0)
    z = task.logits(X)
    closed = LinearDistiller(depth=depth, start_norm=0.05, random_state=0).fit(X, z)
    flow = LinearDistiller(depth=depth, start_norm=0.05, random_state=0, solver="gradient").fit(X, z)
    np.testing.assert_allclose(closed.coef_, flow.coef_, rtol=0, atol=1e-7)
    assert closed.limit_.depth == depth and closed.limit_.error > 0
    shallow = LinearDistiller().fit(X, z)
    assert np.linalg.norm(closed.coef_ - shallow.coef_) == pytest.approx(closed.limit_.error)
    smaller = LinearDistiller(depth=depth, start_norm=1e-9, random_state=0).fit(X, z)
    assert smaller.limit_.error < closed.limit_.error
    again = deep_limit(X, z, closed.limit_.weights, 1)  # an interpolant is at rest
    np.testing.assert_allclose(again.weights, closed.coef_, atol=1e-9)


def test_as_a_network():
    X, z = sample(n=30, d=4, k=3)
    model = LinearDistiller(fit_intercept=True).fit(X, z)
    np.testing.assert_allclose(model.network_(X), model.decision_function(X))
    with pytest.raises(NotFittedError):
        _ = LinearDistiller().network_


def test_pipelines_pickles_clones_and_grid_search():
    X, z = sample(n=60, d=8)
    noisy = z + 0.1 * np.random.default_rng(0).standard_normal(60)
    pipeline = make_pipeline(StandardScaler(), LinearDistiller(fit_intercept=True)).fit(X, noisy)
    assert pipeline.score(X, noisy) > 0.9 and cross_val_score(pipeline, X, noisy, cv=3).mean() > 0.8
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.decision_function(X), pipeline.decision_function(X))
    search = GridSearchCV(LinearDistiller(), {"rcond": [None, 0.99]}, cv=3).fit(X, noisy)
    assert search.best_params_ == {"rcond": None}
    assert clone(LinearDistiller(depth=3)).depth == 3


def test_a_run_that_is_cut_short_says_so():
    X, z = sample()
    with pytest.warns(ConvergenceWarning, match="after 2 steps"):
        LinearDistiller(solver="gradient", max_iter=2).fit(X, z)


def test_an_interrupted_run_keeps_its_weights(monkeypatch):
    from pindown.learn.distillation import loss as descent

    calls, slopes = [], descent.slopes

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return slopes(*args)

    monkeypatch.setattr(descent, "slopes", interrupted)
    X, z = sample()
    with pytest.warns(UserWarning, match="interrupted"), pytest.warns(ConvergenceWarning):
        model = LinearDistiller(solver="gradient").fit(X, z)
    assert model.coef_.any() and model.n_iter_ == 4


def test_scores_are_refused_for_answers_of_another_shape():
    """One answer would be compared with all, and three columns with two classes."""
    X = np.random.default_rng(0).standard_normal((6, 3))
    model = LinearDistiller().fit(X, X[:, 0])
    assert model.score(X, X[:, :1]) == model.score(X, X[:, 0]) == 1.0
    for y in (X[:1, 0], X, X[:5, 0]):
        with pytest.raises(ValueError, match="one row for each of 6"):
            model.score(X, y)


def test_descent_that_ends_before_the_logits_are_met_says_so():
    """Sure answers leave the gradient flat; the closed form does not mind."""
    X = np.array([[1.0, 0.5, 0.0]])
    for depth, z, tol in ((1, [15.0], 1e-7), (2, [33.0], 1e-13)):
        short = LinearDistiller(solver="gradient", depth=depth, tol=tol, random_state=0)
        with pytest.warns(ConvergenceWarning, match="ended early"):
            short.fit(X, z)
        assert 1e-3 < short.residual_ < 0.2
        assert LinearDistiller(depth=depth, random_state=0).fit(X, z).residual_ < 1e-12


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (7, 1)])
def test_tiny_and_constant_data(shape):
    for X in (np.ones(shape), np.zeros(shape)):
        for z in (np.ones(shape[0]), np.zeros(shape[0])):
            for solver in ("closed", "gradient"):
                model = LinearDistiller(solver=solver).fit(X, z)
                assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize(
    ("options", "z", "message"),
    [
        ({"solver": "newton"}, np.ones(3), "solver must be"),
        ({"depth": 0}, np.ones(3), "depth"),
        ({"depth": 2}, np.ones((3, 2)), "one column"),
        ({"depth": 2}, np.array([1.0, 5.0, -3.0]), "no linear student"),
        ({"depth": 2, "start_norm": 0.0}, np.ones(3), "norm"),
        ({"labels": "probability"}, np.array([0.5, 2.0, 0.1]), "between 0 and 1"),
        ({"labels": "soft"}, np.ones(3), "labels must be"),
        ({"rcond": -1.0}, np.ones(3), "rcond"),
        ({"rcond": np.nan}, np.ones(3), "rcond"),
        ({"rcond": 1.0}, np.ones(3), "rcond"),
    ],
)
def test_refusals(options, z, message):
    with pytest.raises(ValueError, match=message):
        LinearDistiller(**options).fit(np.ones((3, 2)), z)
