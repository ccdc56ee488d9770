"""Averages over groups: projections that never hurt, of functions, modules and estimators."""

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

from pindown.symmetry import GroupSmoothed, cyclic, dihedral, orbit_variance, smoothed, symmetric
from pindown.symmetry.actions import flattened, image_rotations, image_turns
from pindown.symmetry.smoothing import GroupAverage
from tests.symmetry.layers.actions import polygon, skewed

torch.set_num_threads(1)
CORNERS = dihedral(4).permuting()


def rough(X):
    return np.sin(3 * X[:, 0]) * X[:, 1] + np.abs(X[:, 2])


def samples(n=40, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def test_an_average_is_invariant_and_averaging_again_changes_nothing():
    X = samples()
    average = smoothed(rough, CORNERS)
    assert average.kind == "exact" and np.abs(average(X) - rough(X)).max() > 0.1
    for g in range(8):
        assert np.abs(average(CORNERS.act(g, X)) - average(X)).max() < 1e-12
    assert np.abs(smoothed(average, CORNERS)(X) - average(X)).max() < 1e-12
    length = lambda X: np.linalg.norm(X, axis=1)  # noqa: E731
    assert np.abs(smoothed(length, CORNERS)(X) - length(X)).max() < 1e-12


@pytest.mark.parametrize(
    ("group", "out"),
    [(CORNERS, polygon(4)), (polygon(4), CORNERS), (CORNERS.acting_by(skewed(CORNERS, 0)), CORNERS)],
)
def test_outputs_that_move_make_an_equivariant_average(group, out):
    rng = np.random.default_rng(0)
    W = rng.standard_normal((group.degree, out.degree))
    average = smoothed(
        lambda X: np.tanh(X @ W + 0.3) ** 2 @ np.diag(np.arange(out.degree) + 1.0), group, out
    )
    X = samples(d=group.degree)
    for g in range(8):
        assert np.abs(average(group.act(g, X)) - out.act(g, average(X))).max() < 1e-10
    assert average(X).std() > 1e-3 and "equivariant" in str(average)


def test_smoothing_takes_the_variance_over_orbits_off_the_error():
    """On data that are closed under the group the identity is exact, for any model."""
    orbits = np.concatenate([CORNERS.orbit(x) for x in samples(12)])
    truth = np.cos(orbits).sum(axis=1)
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(samples(60), samples(60)[:, 0])
    average = smoothed(model.predict, CORNERS)
    before = np.mean((model.predict(orbits) - truth) ** 2)
    after = np.mean((average(orbits) - truth) ** 2)
    gap = orbit_variance(model.predict, CORNERS, orbits).mean()
    assert after <= before and gap > 1e-3
    assert before - after == pytest.approx(gap, rel=1e-9)


def test_an_invariant_lipschitz_function_is_lipschitz_between_orbits():
    """|f(x) - f(z)| <= min over g of |x - g z|, which a function that is not averaged breaks."""
    lipschitz = lambda X: np.abs(X[:, 0] - 0.4 * X[:, 1]) / np.sqrt(1.16)  # noqa: E731
    average = smoothed(lipschitz, CORNERS)
    X, Z = samples(200), samples(200, seed=1)
    nearest = np.min([np.linalg.norm(X - CORNERS.act(g, Z), axis=1) for g in range(8)], axis=0)
    assert (np.abs(average(X) - average(Z)) <= nearest + 1e-12).all()
    moved = CORNERS.act(1, X)
    assert np.abs(lipschitz(X) - lipschitz(moved)).max() > 0.1


def test_parts_of_a_group_come_nearer_with_more_elements():
    group = symmetric(6).permuting()
    X = samples(30, 6)
    exact = smoothed(rough, group)(X)
    errors = []
    for m in (4, 64, 720):
        average = smoothed(rough, group, n_elements=m)
        assert len(average.elements) == m and average.kind == ("exact" if m == 720 else "estimate")
        errors.append(np.abs(average(X) - exact).mean())
    assert errors[0] > 2 * errors[1] > errors[2] and errors[2] < 1e-12
    half = smoothed(rough, CORNERS, elements=[0, 1, 2, 3])  # the rotations are a group of their own
    assert np.abs(half(CORNERS.act(1, X[:, :4])) - half(X[:, :4])).max() < 1e-12
    assert "4 of the 8" in str(half)


def test_bad_averages_are_refused():
    for keywords in ({"elements": []}, {"elements": [9]}, {"elements": [0.5]}, {"elements": [-1]}):
        with pytest.raises(ValueError, match="indices of D4"):
            smoothed(rough, CORNERS, **keywords)
    with pytest.raises(ValueError, match="not both"):
        smoothed(rough, CORNERS, elements=[0], n_elements=1)
    with pytest.raises(ValueError, match="at least 1"):
        smoothed(rough, CORNERS, n_elements=0)
    with pytest.raises(ValueError, match="one group"):
        smoothed(rough, CORNERS, cyclic(8))
    with pytest.raises(TypeError, match="GroupSmoothed"):
        smoothed(LinearRegression(), CORNERS)


@pytest.mark.parametrize("out", [None, polygon(4)])
def test_modules_stay_modules_with_gradients(out):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).double()
    average = smoothed(module, CORNERS, out)
    X = samples()
    inputs = torch.as_tensor(X)
    same = smoothed(lambda X: module(torch.as_tensor(X)), CORNERS, out)(X)
    assert np.allclose(average(inputs).detach().numpy(), same, atol=1e-12)
    for g in range(8):
        moved = average(torch.as_tensor(CORNERS.act(g, X))).detach().numpy()
        assert np.abs(moved - (same if out is None else out.act(g, same))).max() < 1e-10
    average(inputs).square().sum().backward()
    assert float(module[0].weight.grad.abs().sum()) > 0
    with pytest.raises(ValueError, match="takes tensors"):
        average(torch.ones(3, 5, dtype=torch.float64))


def test_the_estimator_follows_scikit_learn():
    for result in check_estimator(GroupSmoothed(), on_skip=None):
        assert result["status"] in ("passed", "skipped", "xfail")


@pytest.mark.parametrize("inner", [LinearSVC(), KNeighborsClassifier(3)])
def test_classifiers_follow_scikit_learn_too(inner):
    failed = [
        r for r in check_estimator(GroupSmoothed(inner), on_fail=None, on_skip=None) if r["exception"]
    ]
    assert [r["check_name"] for r in failed if r["status"] == "failed"] == []


def test_a_regressor_becomes_invariant_and_better():
    X, fresh = samples(80, 6), samples(400, 6, seed=1)
    truth = lambda X: np.cos(X).sum(axis=1)  # noqa: E731
    plain = KNeighborsRegressor(3).fit(X, truth(X))
    model = GroupSmoothed(KNeighborsRegressor(3), group=cyclic).fit(X, truth(X))
    assert model.kind_ == "exact" and model.group_.order == 6
    for g in range(6):
        assert np.abs(model.predict(model.group_.act(g, fresh)) - model.predict(fresh)).max() < 1e-12
    assert model.score(fresh, truth(fresh)) > plain.score(fresh, truth(fresh)) + 0.1
    some = GroupSmoothed(KNeighborsRegressor(3), group=cyclic, elements=[0, 2]).fit(X, truth(X))
    by_hand = (plain.predict(fresh) + plain.predict(some.group_.act(2, fresh))) / 2
    np.testing.assert_allclose(some.predict(fresh), by_hand)
    pairs = np.column_stack([truth(X), X.sum(axis=1)])
    assert GroupSmoothed(LinearRegression(), cyclic).fit(X, pairs).predict(fresh).shape == (400, 2)


@pytest.mark.parametrize("inner", [LogisticRegression(), LinearSVC(), KNeighborsClassifier(3)])
def test_a_classifier_becomes_invariant(inner):
    X = samples(90, 4)
    y = np.array(["low", "mid", "top"])[np.digitize(X.sum(axis=1), [-1, 1])]
    model = GroupSmoothed(inner, CORNERS).fit(X, y)
    assert list(model.classes_) == ["low", "mid", "top"] and model.score(X, y) > 0.7
    for g in range(8):
        assert (model.predict(CORNERS.act(g, X)) == model.predict(X)).all()
    if hasattr(inner, "predict_proba"):
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1) and not hasattr(
            model, "decision_function"
        )
    else:
        assert model.decision_function(X).shape == (90, 3) and not hasattr(model, "predict_proba")
    two = GroupSmoothed(inner, CORNERS).fit(X, X.sum(axis=1) > 0)
    assert two.score(X, X.sum(axis=1) > 0) > 0.8


class Nearest(ClassifierMixin, BaseEstimator):
    """A classifier that says its class and nothing more."""

    def fit(self, X, y):
        self.classes_, self.X_, self.y_ = np.unique(y), X, y
        return self

    def predict(self, X):
        return self.y_[np.argmin(((X[:, None] - self.X_) ** 2).sum(-1), axis=1)]


def test_a_classifier_without_scores_is_decided_by_votes():
    X = samples(60, 4)
    y = np.where(X.sum(axis=1) > 0, "yes", "no")
    model = GroupSmoothed(Nearest(), CORNERS).fit(X, y)
    votes = np.mean([Nearest().fit(X, y).predict(CORNERS.act(g, X)) == "yes" for g in range(8)], axis=0)
    assert (model.predict(X) == np.where(votes > 0.5, "yes", "no")).all()
    assert not hasattr(model, "predict_proba") and not hasattr(model, "decision_function")


def test_pipelines_grids_clones_and_fitted_estimators():
    X, y = samples(60, 4), np.cos(samples(60, 4)).sum(axis=1)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), GroupSmoothed(KNeighborsRegressor(), cyclic)),
        {
            "groupsmoothed__estimator__n_neighbors": [1, 5],
            "groupsmoothed__group": [cyclic, CORNERS, None],
        },
        cv=3,
    ).fit(X, y)
    assert search.best_params_["groupsmoothed__group"] is not None
    assert len(cross_val_score(clone(GroupSmoothed(LinearRegression(), CORNERS)), X, y, cv=3)) == 3
    fitted = LinearRegression().fit(X, y)
    frozen = GroupSmoothed(FrozenEstimator(fitted), CORNERS).fit(X, y)
    assert np.allclose(frozen.predict(X), smoothed(fitted.predict, CORNERS)(X))
    weighted = GroupSmoothed(LinearRegression()).fit(X, y, sample_weight=np.arange(60) + 1.0)
    assert np.allclose(weighted.predict(X), LinearRegression().fit(X, y, np.arange(60) + 1.0).predict(X))


def test_bad_estimators_and_groups_are_refused():
    X, y = samples(10), samples(10)[:, 0]
    with pytest.raises(TypeError, match="regressor or a classifier"):
        GroupSmoothed(StandardScaler()).fit(X, y)
    with pytest.raises(ValueError, match="acts here on vectors of 3"):
        GroupSmoothed(LinearRegression(), cyclic(3)).fit(X, y)
    with pytest.raises(TypeError, match="group must be"):
        GroupSmoothed(LinearRegression(), lambda d: d).fit(X, y)
    sampled = GroupSmoothed(LinearRegression(), symmetric(4).permuting(), n_elements=3).fit(X, y)
    assert sampled.kind_ == "estimate" and len(sampled.elements_) == 3


def test_only_a_whole_average_of_an_exact_action_is_called_exact():
    for repeated in ([0, 0, 1], [0, 1, 2, 3, 3]):
        with pytest.raises(ValueError, match="each once"):
            smoothed(rough, CORNERS, elements=repeated)
    assert GroupAverage(rough, cyclic(2), None, (0, 0, 1)).kind == "estimate"
    images, turns = np.random.default_rng(0).random((3, 6, 6)), image_turns(8)
    average = smoothed(lambda X: X[:, 0, 0], turns)
    # Interpolated turns do not compose: the average over all of them still changes.
    assert np.abs(average(turns.act(1, images)) - average(images)).max() > 0.05
    assert average.kind == "estimate" and "nearly" in str(average)
    assert smoothed(rough, flattened(turns, (2, 2))).kind == "estimate"
    assert smoothed(rough, image_rotations()).kind == "exact"


def test_whole_numbers_are_not_moved_by_rounded_matrices():
    module = smoothed(torch.nn.Identity(), polygon(8))
    with pytest.raises(ValueError, match="tensors of floats"):
        module(torch.tensor([[10, 3]]))


def test_a_class_does_not_depend_on_the_other_rows_of_the_batch():
    X = np.array([[1.0, 0.5], [-1.0, -0.5], [2.0, 1.0], [-2.0, -1.0]])
    model = GroupSmoothed(LinearSVC(), group=cyclic).fit(X, [1, 0, 1, 0])
    ordinary, huge = np.array([[1.0, 1.0]]), np.array([[1e15, 1e15]])
    assert model.predict(ordinary) == [1]
    assert model.predict(np.concatenate([ordinary, huge])).tolist() == [1, 1]
    more = [*X, [0.1, -0.1], [-0.1, 0.1]]
    three = GroupSmoothed(LinearSVC(), group=cyclic).fit(more, [1, 0, 1, 0, 2, 2])
    alone = three.predict(ordinary).tolist()
    assert alone == [1] and three.predict(np.concatenate([ordinary, huge]))[:1].tolist() == alone


def test_a_group_that_is_none_is_refused():
    with pytest.raises(TypeError, match="a Group or a function that makes one; got 5"):
        GroupSmoothed(LinearRegression(), group=5).fit(samples(), rough(samples()))
