"""The classifier: scikit-learn's rules, the theorem's promise, shapes, networks, bad input."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pindown.datasets.synthetic import digit_patterns, pattern_detection
from pindown.guarantees.bounds import linear_margin_bound
from pindown.learn.max_pooling import MaxPoolClassifier, pooling
from pindown.learn.max_pooling import _max_margin as max_margin
from pindown.learn.max_pooling.layerwise import independent_halves


@parametrize_with_checks([MaxPoolClassifier()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("d", [3, 4, 6])
@pytest.mark.parametrize("seed", range(3))
def test_theory_keeps_its_promise(d, seed):
    X, y, patterns = pattern_detection(300, n_patterns=d, random_state=seed)
    model = MaxPoolClassifier(random_state=seed).fit(X, y)
    assert model.guarantee_, str(model.guarantee_)
    assert model.guarantee_.n_patterns == d
    fresh, labels, _ = pattern_detection(3000, patterns=patterns, random_state=50 + seed)
    error = 1 - model.score(fresh, labels)
    assert error <= model.guarantee_.error_bound
    assert error == 0.0
    assert 0 < model.margin_ <= model.margin_upper_
    assert model.margin_ >= 0.9 * model.margin_upper_
    assert model.patterns_[1] @ patterns[0] > 0.99  # rows follow classes_: -1, then 1
    assert model.patterns_[0] @ patterns[1] > 0.99


def test_network_is_the_decision_function():
    X, y, _ = pattern_detection(100, n_patterns=3, n_patches=6, random_state=1)
    for model in (MaxPoolClassifier(), MaxPoolClassifier(schedule="joint", max_iter=50)):
        model.fit(3.0 * X, y)
        points = np.random.default_rng(0).normal(size=(500, 6, 3))
        scores = model.decision_function(points)
        np.testing.assert_allclose(
            model.to_network()(points)[:, 0], scores, rtol=0, atol=1e-11 * np.abs(scores).max()
        )
        assert model.network_.input_shape == (6, 3)


def test_flat_rows_and_patches_are_the_same():
    X, y, _ = pattern_detection(80, n_patterns=4, n_patches=5)
    first = MaxPoolClassifier().fit(X, y)
    second = MaxPoolClassifier(n_patches=5).fit(X.reshape(80, -1), y)
    np.testing.assert_array_equal(
        first.decision_function(X), second.decision_function(X.reshape(80, -1))
    )
    np.testing.assert_array_equal(first.decision_function(X), first.decision_function(X.reshape(80, -1)))
    np.testing.assert_array_equal(first.decision_function(X), first.decision_function(X.tolist()))
    assert first.n_patches_ == second.n_patches_ == 5


def test_scale_of_the_data_does_not_matter():
    X, y, _ = pattern_detection(80, n_patterns=4)
    first, second = (MaxPoolClassifier().fit(c * X, y) for c in (1.0, 1024.0))
    np.testing.assert_allclose(first.decision_function(X), second.decision_function(1024 * X))
    assert second.guarantee_  # patches of one length are scaled to length one


def test_patches_can_be_permuted():
    X, y, _ = pattern_detection(120, n_patterns=4)
    model = MaxPoolClassifier().fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), model.decision_function(X[:, ::-1]))


def test_words_as_classes_pickles_and_clones():
    X, y, _ = pattern_detection(80, n_patterns=3)
    words = np.where(y == 1, "yes", "no")
    model = MaxPoolClassifier(n_patches=5).fit(X, words)
    assert set(model.predict(X)) == {"yes", "no"}
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(clone(model).fit(X, words).predict(X), model.predict(X))


def test_grid_search_in_a_pipeline():
    X, y, _ = pattern_detection(120, n_patterns=3)
    search = GridSearchCV(
        make_pipeline(StandardScaler(with_mean=False), MaxPoolClassifier(n_patches=5, n_units=60)),
        {"maxpoolclassifier__n_steps": [1, 10]},
        cv=2,
    ).fit(X.reshape(120, -1), y)
    assert search.best_score_ > 0.95


def test_joint_training_claims_nothing():
    X, y, _ = pattern_detection(200, n_patterns=3)
    model = MaxPoolClassifier(schedule="joint", max_iter=400).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.guarantee_.kind == "heuristic"
    assert model.schedule_ is None
    assert "one after the other" in str(model.guarantee_)
    layerwise = model.set_params(schedule="layerwise").fit(X, y)
    assert layerwise.schedule_ is not None


def test_real_pictures_are_learnt_but_not_promised():
    X, y, _ = digit_patterns(300, n_patches=3, random_state=0)
    fresh, labels, _ = digit_patterns(300, n_patches=3, random_state=1)
    model = MaxPoolClassifier(n_units=300).fit(X, y)
    assert model.guarantee_.failed == ("patches are few patterns",)
    assert model.score(fresh, labels) > 0.8


def test_broken_assumptions_are_named():
    X, y, _ = pattern_detection(200, n_patterns=4)
    assert "width" in str(MaxPoolClassifier(n_units=20).fit(X, y).guarantee_)
    assert "radius" in str(MaxPoolClassifier(radius=1.0).fit(X, y).guarantee_)
    noisy = X + 1e-3 * np.random.default_rng(0).normal(size=X.shape)
    assert "few patterns" in str(MaxPoolClassifier().fit(noisy, y).guarantee_)
    rare = np.flatnonzero(y == 1)[:3]
    keep = np.sort(np.r_[rare, np.flatnonzero(y == -1)])
    assert "third" in str(MaxPoolClassifier().fit(X[keep], y[keep]).guarantee_)


def test_two_points_and_zero_data():
    model = MaxPoolClassifier().fit(np.array([[1.0, 0.0], [0.0, 1.0]]), [0, 1])
    assert model.predict([[1.0, 0.0], [0.0, 1.0]]).tolist() == [0, 1]
    assert not model.guarantee_
    zero = MaxPoolClassifier().fit(np.zeros((6, 2)), [0, 1] * 3)
    assert np.isfinite(zero.decision_function(np.zeros((2, 2)))).all()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n_patches": 3}, "not 3 patches"),
        ({"n_patches": 0}, "n_patches"),
        ({"n_units": 2.5}, "n_units"),
        ({"schedule": "both"}, "layerwise"),
        ({"n_steps": 0}, "n_steps"),
        ({"step": -1.0}, "step"),
        ({"tol": 0.0}, "tol"),
        ({"delta": 1.0}, "delta"),
        ({"learning_rate": np.nan}, "learning_rate"),
    ],
)
def test_bad_parameters_are_explained(arguments, said):
    with pytest.raises(ValueError, match=said):
        MaxPoolClassifier(**arguments).fit(np.eye(4), [0, 1, 0, 1])


def test_bad_data_is_explained():
    X, y, _ = pattern_detection(20, n_patterns=3)
    with pytest.raises(ValueError, match="leave n_patches out"):
        MaxPoolClassifier(n_patches=3).fit(X, y)
    with pytest.raises(ValueError, match="two classes"):
        MaxPoolClassifier().fit(X, np.arange(20) % 3)
    with pytest.raises(ValueError, match="NaN"):
        MaxPoolClassifier().fit(np.where(X > 0, np.nan, X), y)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="scale X down"):
        MaxPoolClassifier().fit(np.full((20, 2, 3), 1.7e308), y)
    with pytest.raises(ValueError, match="4 patches"):
        MaxPoolClassifier().fit(X, y).predict(X[:, :4])


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_scales_at_the_ends_of_floating_point(factor):
    X, y, _ = pattern_detection(100, n_patterns=3)
    model = MaxPoolClassifier().fit(factor * X, y)
    assert model.guarantee_ and model.score(factor * X, y) == 1.0


def test_units_do_not_depend_on_points_of_the_second_half():
    """The margin bound needs features that were fixed before the second half was looked at."""
    X, y, _ = pattern_detection(100, n_patterns=3)
    first, second, _ = independent_halves(np.where(y == 1, 1.0, -1.0), _generator())
    changed = X.copy()
    changed[second] = 3.0 * np.random.default_rng(5).normal(size=X[second].shape)
    models = [MaxPoolClassifier(max_iter=5).fit(Z, y) for Z in (X, changed)]
    assert np.array_equal(models[0].units_, models[1].units_)
    assert models[0].scale_ == models[1].scale_ == pytest.approx(1.0)
    changed[first] = 0.5
    other = MaxPoolClassifier(max_iter=5).fit(changed, y)
    assert not np.array_equal(models[0].units_, other.units_[: len(models[0].units_)])


@pytest.mark.parametrize(("longer", "doublings"), [(1.0, 0), (1.9, 1), (3.0, 2)])
def test_the_bound_is_that_of_the_margin_with_a_share_of_delta_for_every_length(longer, doublings):
    """Lengths up to a power of two; the powers share delta: a quarter, an eighth, and so on."""
    X, y, _ = pattern_detection(3000, n_patterns=3, random_state=0)
    _, second, _ = independent_halves(np.where(y == 1, 1.0, -1.0), _generator())
    X[second[0]] *= longer
    model = MaxPoolClassifier(n_units=40, delta=0.1).fit(X, y)
    bound = linear_margin_bound(model.margin_, 2.0**doublings, 1500, 0.1 / 2 ** (doublings + 2)).value
    assert model.guarantee_.error_bound == pytest.approx(bound, rel=1e-6)
    assert bound < 1 and model.guarantee_.confidence == pytest.approx(0.9)
    assert model.margin_ <= model.margin_upper_ <= 1


def _generator():
    from sklearn.utils import check_random_state

    return np.random.default_rng(check_random_state(0).randint(2**31 - 1))


@pytest.mark.parametrize("schedule", ["layerwise", "joint"])
def test_an_interruption_keeps_what_was_learnt(schedule, monkeypatch):
    X, y, _ = pattern_detection(100, n_patterns=3)

    def three_steps(steps, what, *, verbose):
        yield from range(3)
        raise KeyboardInterrupt

    monkeypatch.setattr(pooling, "watched", three_steps)
    with pytest.warns(UserWarning, match="interrupted"):
        model = MaxPoolClassifier(schedule=schedule).fit(X, y)
    assert not model.guarantee_
    assert model.predict(X).shape == y.shape
    if schedule == "joint":
        assert model.n_iter_ == 3
    else:
        assert "training was not interrupted" in model.guarantee_.failed


def test_an_interruption_of_the_second_phase_keeps_the_best_weights(monkeypatch):
    X, y, _ = pattern_detection(100, n_patterns=3)

    def some_steps(steps, what, *, verbose):
        yield from range(30)
        raise KeyboardInterrupt

    monkeypatch.setattr(max_margin, "watched", some_steps)
    with pytest.warns(UserWarning, match="interrupted"):
        model = MaxPoolClassifier(tol=1e-9).fit(X, y)
    assert model.n_iter_ == 30 and model.score(X, y) == 1.0 and not model.guarantee_


def test_training_that_leaves_the_numbers_is_told():
    X, y, _ = pattern_detection(60, n_patterns=3)
    with pytest.raises(ValueError, match="smaller one"):
        MaxPoolClassifier(schedule="joint", learning_rate=1e300).fit(X, y)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="smaller step or radius"):
        MaxPoolClassifier(radius=1e300).fit(X, y)
    with pytest.raises(ValueError, match="step must be"):
        MaxPoolClassifier(step="a").fit(X, y)
