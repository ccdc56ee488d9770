import pickle
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import pindown
from pindown.deadline import Deadline
from pindown.geometry import Box, count_regions
from pindown.learn import ExactReluClassifier, ExactReluRegressor
from pindown.learn.exact import estimators
from pindown.learn.exact._problem import Problem
from pindown.learn.exact._search import Search, merge_groups


def test_scikit_learn_accepts_it():
    # With more time it would list the dichotomies of twenty points in five dimensions, four times.
    checks = check_estimator(ExactReluRegressor(width=1, budget=1), on_fail="raise")
    assert all(check["status"] != "failed" for check in checks)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    "model",
    [ExactReluRegressor(), ExactReluClassifier(width=1), ExactReluClassifier(loss="logistic", width=1)],
    ids=str,
)
def test_scikit_learn_accepts_it_in_other_settings(model):
    assert all(check["status"] != "failed" for check in check_estimator(model, on_fail="raise"))


def _data(n=40, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=n)


def test_network_feeds_the_rest_of_the_package():
    X, y = _data(15)
    model = ExactReluRegressor(width=2, verbose=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert pindown.diff(model.network_, again.network_, box=Box.cube(2, -1, 1)).verdict == "same"
    assert count_regions(model.network_, Box.cube(2, -1, 1)) <= 4
    assert pindown.audit(model.network_, X, y, budget=5).findings


def test_pipeline_and_grid_search():
    X, y = _data(12, 1)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), ExactReluRegressor(verbose=0)),
        {"exactrelu" + "regressor__width": [1, 2]},
        cv=3,
    ).fit(X, y)
    assert search.best_estimator_[-1].optimal_
    assert search.best_params_["exactreluregressor__width"] in (1, 2)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_weights_are_repetitions(loss):
    X, y = _data(8, 1)
    times = np.array([1, 2, 0, 3, 1, 1, 2, 1])
    patient = ExactReluRegressor(loss=loss, budget=600, verbose=0)  # a busy machine may have to compile
    weighted = clone(patient).fit(X, y, sample_weight=times)
    repeated = clone(patient).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.best_loss_ == pytest.approx(repeated.best_loss_, rel=1e-9)
    assert np.allclose(weighted.predict(X), repeated.predict(X))


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_threads_do_not_change_the_answer(loss):
    X, y = _data(14 if loss == "squared" else 7)
    one = ExactReluRegressor(loss=loss, verbose=0).fit(X, y)
    two = ExactReluRegressor(loss=loss, verbose=0, n_jobs=2).fit(X, y)
    assert one.best_loss_ == pytest.approx(two.best_loss_, rel=1e-12)
    assert two.optimal_


def test_groups_bound_the_loss():
    X, y = _data(60)
    exact = ExactReluRegressor(width=2, verbose=0).fit(X, y)
    problem = Problem.of(X, y, np.ones(60), "squared", 0.0, False)
    search = Search(problem, 2, Deadline.after(600))
    merge_groups(search, search.deadline)
    assert 0.1 * exact.best_loss_ < search.lower <= exact.best_loss_ <= search.upper + 1e-9
    assert exact.lower_bound_ >= search.lower - 1e-9


def test_large_problems_end_in_time_with_an_interval_that_shrinks():
    X, y = _data(1500, 3)
    began = time.monotonic()
    model = ExactReluRegressor(width=2, verbose=0, budget=4).fit(X, y)
    assert time.monotonic() - began < 12  # one L-BFGS or one slice may be under way when time is over
    assert not model.optimal_
    # On a busy machine four seconds may be too short for a bound above zero.
    assert 0 <= model.lower_bound_ < model.best_loss_ < 0.8 * (y**2).sum()
    lower, upper = model.history_[:, 1], model.history_[:, 2]
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) <= 0).all()
    assert "no network of width 2 has less than" in model.summary()


def test_compiling_is_part_of_the_budget(monkeypatch):
    left, clock, late = [], time.monotonic, 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock() + late)

    def compiles(search: Search) -> None:
        nonlocal late
        late += 50.0

    def ended(search: Search) -> None:
        left.append(search.deadline.left)
        search.lower = search.upper = 0.0

    monkeypatch.setattr(estimators, "compile_loops", compiles)
    monkeypatch.setattr(estimators, "run", ended)
    ExactReluRegressor(verbose=0, budget=60).fit(*_data(20))
    ExactReluRegressor(verbose=0, budget=20).fit(*_data(20))  # not enough for a compiler: none begins
    assert 0 < left[0] <= 10 < left[1] <= 20


def test_penalty_of_groups_is_shared():
    X, y = _data(60)
    exact = ExactReluRegressor(width=1, ridge=0.5, verbose=0).fit(X, y)
    short = ExactReluRegressor(width=1, ridge=0.5, verbose=0, budget=0).fit(X, y)
    assert short.lower_bound_ <= exact.best_loss_ <= short.best_loss_
    slopes = np.asarray(exact.network_.layers[0].weight)
    residual = ((exact.predict(X) - y) ** 2).sum()
    assert exact.best_loss_ == pytest.approx(residual + 0.5 * (slopes**2).sum())


def test_interruption_keeps_what_was_found(monkeypatch):
    X, y = _data(20)
    y /= np.abs(y).max()  # the search has units of its own, which are one for these targets

    def interrupted(search: Search) -> None:
        search.lower = 0.25
        raise KeyboardInterrupt

    monkeypatch.setattr(estimators, "run", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        model = ExactReluRegressor(verbose=0).fit(X, y)
    assert not model.optimal_
    assert model.lower_bound_ == 0.25
    assert model.best_loss_ == pytest.approx((y**2).sum())


def test_gap_is_drawn():
    X, y = _data(30)
    axes = ExactReluRegressor(verbose=0, budget=1).fit(X, y).plot_gap()
    assert axes.get_ylabel() == "loss"
    assert len(axes.lines) == 2


class TestSpecialData:
    def test_duplicate_points_with_different_targets(self):
        model = ExactReluRegressor(width=1, verbose=0).fit([[0.0], [0.0], [1.0]], [1.0, 3.0, 5.0])
        assert model.best_loss_ == pytest.approx(2)
        assert model.predict([[0.0], [1.0]]) == pytest.approx([2, 5])

    def test_collinear_points_are_one_variable(self):
        t, y = _data(12, 1)
        along = t @ np.array([[0.3, -1.7, 0.1]]) + np.array([5.0, 1.0, 0.2])
        plane = ExactReluRegressor(width=2, verbose=0).fit(along, y)
        line = ExactReluRegressor(width=2, verbose=0).fit(t, y)
        assert plane.best_loss_ == pytest.approx(line.best_loss_, rel=1e-9)

    def test_fewer_samples_than_features(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(4, 9))
        model = ExactReluRegressor(width=1, verbose=0).fit(X, np.array([1.0, -1.0, 2.0, -2.0]))
        assert model.best_loss_ == pytest.approx(5)  # one unit has one sign
        assert ExactReluRegressor(width=2, verbose=0).fit(X, [1.0, -1.0, 2.0, -2.0]).best_loss_ < 1e-9

    @pytest.mark.parametrize("value", [0.0, 3.0, -2.0])
    def test_constant_targets(self, value):
        X, _ = _data(10)
        model = ExactReluRegressor(width=1, verbose=0).fit(X, np.full(10, value))
        assert model.best_loss_ == pytest.approx(0, abs=1e-9)
        assert model.predict([[0.1, 0.2]])[0] == pytest.approx(value, abs=1e-5)

    def test_one_sample(self):
        model = ExactReluRegressor(verbose=0).fit([[3.0, 4.0]], [-7.0])
        assert model.predict([[3.0, 4.0]])[0] == pytest.approx(-7)
        assert model.optimal_

    def test_constant_feature(self):
        t, y = _data(10, 1)
        model = ExactReluRegressor(verbose=0).fit(np.column_stack([np.full(10, 7.0), t]), y)
        assert model.best_loss_ == pytest.approx(ExactReluRegressor(verbose=0).fit(t, y).best_loss_)

    @pytest.mark.parametrize(("scale", "offset"), [(1e-8, 0.0), (1e8, 0.0), (1.0, 1e6)])
    def test_units_of_measurement_do_not_matter(self, scale, offset):
        X, y = _data(12)
        best = ExactReluRegressor(verbose=0).fit(X, y).best_loss_
        assert ExactReluRegressor(verbose=0).fit(scale * X + offset, y).best_loss_ == pytest.approx(
            best, rel=1e-6
        )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"width": 0}, "width must be an integer of at least 1; got 0"),
        ({"width": 1.5}, "width must be an integer of at least 1; got 1.5"),
        ({"width": True}, "width must be an integer"),
        ({"loss": "cubic"}, "loss must be one of 'squared', 'absolute'; got 'cubic'"),
        ({"ridge": -1}, "ridge must be a finite number"),
        ({"ridge": np.nan}, "ridge must be a finite number"),
        ({"budget": -1}, "budget must be a number of at least 0"),
        ({"budget": None}, "budget must be a number of at least 0"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        ExactReluRegressor(**parameters).fit([[0.0], [1.0]], [0.0, 1.0])


def test_wrong_data_are_named():
    with pytest.raises(ValueError, match="NaN"):
        ExactReluRegressor().fit([[0.0], [np.nan]], [0.0, 1.0])
    with pytest.raises(ValueError, match="at least one non-zero"):
        ExactReluRegressor().fit([[0.0], [1.0]], [0.0, 1.0], sample_weight=[0, 0])
    with pytest.raises(ValueError, match="two classes are needed, y has 3 classes"):
        ExactReluClassifier().fit([[0.0], [1.0], [2.0]], ["a", "b", "c"])
