"""The perceptron: the update, the mistake bound in any order, its certificates, scikit-learn's rules."""

import math
import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pindown.learn.margins import MarginPerceptron, MistakeGuarantee, hard_margin


@parametrize_with_checks([MarginPerceptron()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def planted(seed, n=200, d=5, gamma=0.1):
    """Unit samples whose classes a unit vector separates with a margin of gamma through the origin."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40 * n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    u = rng.normal(size=d)
    scores = X @ u / np.linalg.norm(u)
    wide = np.abs(scores) >= gamma
    return X[wide][:n], np.where(scores[wide][:n] > 0, 1, -1)


def naive(X, y, passes=10_000):
    """The algorithm as it is written on paper."""
    w, mistakes = np.zeros(X.shape[1]), 0
    for _ in range(passes):
        before = mistakes
        for x, label in zip(X, y, strict=True):
            if (1 if w @ x > 0 else -1) != label:
                w, mistakes = w + label * x, mistakes + 1
        if mistakes == before:
            return w, mistakes
    return w, mistakes


@pytest.mark.parametrize("seed", range(40))
def test_mistakes_stay_below_the_bound_in_any_order(seed):
    rng = np.random.default_rng(seed)
    gamma = rng.uniform(0.05, 0.3)
    X, y = planted(seed, gamma=gamma, d=int(rng.integers(2, 9)))
    for _ in range(3):
        order = rng.permutation(len(X))
        model = MarginPerceptron(max_epochs=1000, fit_intercept=False, margin=gamma).fit(
            X[order], y[order]
        )
        assert model.separated_
        assert model.refuted_at_ is None
        assert model.n_mistakes_ <= 1 / gamma**2
        assert model.guarantee_.kind == "exact"


@pytest.mark.parametrize("seed", range(10))
def test_agrees_with_the_algorithm_on_paper(seed):
    X, y = planted(seed)
    w, mistakes = naive(X, y)
    model = MarginPerceptron(fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], w, atol=1e-12)
    assert model.n_mistakes_ == mistakes


@pytest.mark.parametrize("seed", range(10))
def test_certificates_enclose_the_largest_margin(seed):
    X, y = planted(seed, n=60)
    # Mirrored samples have their largest separator through the origin.
    best = hard_margin(np.vstack([X, -X]), np.r_[y, -y]).margin
    found = MarginPerceptron(fit_intercept=False).fit(X, y).guarantee_
    assert found.margin_lower <= best * (1 + 1e-9)
    assert best <= found.margin_upper * (1 + 1e-9)
    assert found.mistakes <= found.bound
    assert found.mistakes <= (1 / best) ** 2


def test_an_update_moves_the_score_by_the_squared_length():
    X = np.array([[3.0, 4.0]])
    for normalize, change in ((True, 1.0), (False, 25.0)):
        model = MarginPerceptron(fit_intercept=False, normalize=normalize)
        model.partial_fit(X, [1], classes=[0, 1])
        scaled = X / 5 if normalize else X
        assert (scaled @ model.coef_[0])[0] == pytest.approx(change)


def test_a_score_of_zero_is_negative():
    model = MarginPerceptron().partial_fit([[1.0]], [0], classes=[0, 1])
    assert model.n_mistakes_ == 0
    assert model.predict([[5.0]])[0] == 0


def test_exclusive_or_never_ends_and_says_so():
    X, y = [[0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1]
    with pytest.warns(ConvergenceWarning, match="7 passes"):
        model = MarginPerceptron(max_epochs=7).fit(X, y)
    assert not model.separated_
    assert model.n_iter_ == 7
    assert model.guarantee_.bound == math.inf


def test_a_margin_that_is_too_large_is_refuted_while_it_runs():
    X, y = planted(0, gamma=0.05)
    model = MarginPerceptron(fit_intercept=False, margin=0.9).fit(X, y)
    assert model.refuted_at_ is not None
    assert model.refuted_at_ <= model.n_mistakes_
    assert model.guarantee_.kind == "heuristic"
    assert "refute" in str(model.guarantee_)


def test_partial_fits_in_pieces_are_one_pass():
    X, y = planted(3, n=300)
    whole = MarginPerceptron().partial_fit(X, y, classes=[-1, 1])
    pieces = MarginPerceptron()
    for part in np.array_split(np.arange(300), 7):
        pieces.partial_fit(X[part], y[part], classes=[-1, 1])
    np.testing.assert_array_equal(whole.coef_, pieces.coef_)
    assert whole.n_mistakes_ == pieces.n_mistakes_


def test_row_scaling_changes_nothing():
    X, y = planted(5)
    scales = np.random.default_rng(0).uniform(1e-3, 1e3, size=(len(X), 1))
    a, b = (MarginPerceptron(fit_intercept=False).fit(A, y) for A in (X, scales * X))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-9)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_extreme_sizes(size):
    X, y = planted(1)
    model = MarginPerceptron(fit_intercept=False).fit(size * X, y)
    assert model.separated_
    assert np.isfinite(model.guarantee_.margin_upper)


def test_pipelines_grids_and_pickles():
    X, y = planted(2)
    pipe = make_pipeline(StandardScaler(), MarginPerceptron())
    grid = GridSearchCV(pipe, {"marginperceptron__fit_intercept": [True, False]}, cv=3).fit(X, y)
    assert grid.best_score_ > 0.9
    again = pickle.loads(pickle.dumps(grid.best_estimator_))
    np.testing.assert_array_equal(again.predict(X), grid.predict(X))


@pytest.mark.parametrize(
    "parameters", [{"max_epochs": 0}, {"max_epochs": 1.5}, {"margin": 0.0}, {"margin": -1}]
)
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        MarginPerceptron(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_unknown_label_later():
    model = MarginPerceptron().partial_fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(ValueError, match="label"):
        model.partial_fit([[1.0]], [7])


def test_the_guarantee_prints_what_is_proved():
    assert "no separator is known" in str(MistakeGuarantee(3, 1.0, 0.0, 0.5, False))
    assert "if the margin is" in str(MistakeGuarantee(3, 1.0, 0.2, 0.5, True))


def test_an_interrupt_keeps_the_mistakes_so_far(monkeypatch):
    calls, real = [], MarginPerceptron._one_pass

    def one_pass(self, points, signs):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(self, points, signs)

    monkeypatch.setattr(MarginPerceptron, "_one_pass", one_pass)
    X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0]
    with pytest.warns(UserWarning, match="interrupted"):
        model = MarginPerceptron().fit(X, y)
    assert model.n_iter_ == 3 and not model.separated_ and model.n_mistakes_ > 0
    assert model.predict(X).shape == (4,)


@pytest.mark.parametrize("margin", ["a", [1.0], True])
def test_margins_of_the_wrong_kind_are_refused(margin):
    with pytest.raises(ValueError, match="margin"):
        MarginPerceptron(margin=margin).fit([[0.0], [1.0]], [0, 1])


def test_products_beyond_the_floats_are_refused():
    with pytest.raises(ValueError, match="normalize"):
        MarginPerceptron(normalize=False).fit([[1e300], [-1e300]], [0, 1])


@pytest.mark.parametrize("d", [1, 4, 9])
def test_orthogonal_samples_touch_the_bound_from_all_sides(d):
    """Each axis is a mistake once: d of them, margin 1 / sqrt(d), and no other separator is better."""
    X, y = np.vstack([np.eye(d), -np.eye(d)]), [1] * d + [0] * d
    model = MarginPerceptron(fit_intercept=False).fit(X, y)
    found = model.guarantee_
    assert model.n_mistakes_ == found.bound == d
    assert found.margin_lower == pytest.approx(1 / math.sqrt(d)) == found.margin_upper
    assert found.holds and found.kind == "exact"


def test_a_guarantee_holds_with_few_mistakes_and_a_margin_that_is_possible():
    for mistakes, upper, holds in ((25, 0.3, True), (26, 0.3, False), (25, 0.19, False)):
        assert MistakeGuarantee(mistakes, 1.0, 0.2, upper, True).holds is holds
    assert MistakeGuarantee(9, 3.0, 1.0, 2.0, False).bound == 9


def test_the_radius_of_a_stream_is_that_of_its_longest_sample():
    model = MarginPerceptron(fit_intercept=False, normalize=False, margin=0.5)
    for x in ([3.0, 4.0], [0.1, 0.0]):
        model.partial_fit([x], [1], classes=[0, 1])
    assert model.guarantee_.radius == 5.0 and model.guarantee_.bound == 100
