"""The estimator: shapes, selection, network, plot, bad input, odd data."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from pindown.learn import SegmentedRegressor
from pindown.learn.segmented import _convex, _squared


@parametrize_with_checks([
    SegmentedRegressor(2, feature=0),
    SegmentedRegressor(feature=0, max_pieces=3),
    SegmentedRegressor(2, loss="absolute", feature=0, budget=1.0),
    SegmentedRegressor(2, loss="huber", feature=0, budget=1.0),
])  # fmt: skip
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def data(n=60, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6, n)
    return x, np.interp(x, [0, 2, 4, 6], [0, 2, 1, 4]) + noise * rng.normal(size=n)


def test_column_vector_and_list_are_the_same():
    x, y = data()
    first = SegmentedRegressor(3).fit(x, y)
    second = SegmentedRegressor(3).fit(x[:, None], list(y))
    third = SegmentedRegressor(3, feature=1).fit(np.c_[0 * x, x], y)
    np.testing.assert_array_equal(first.breakpoints_, second.breakpoints_)
    np.testing.assert_array_equal(third.predict(np.c_[x, x]), first.predict(x))
    assert third.network_.in_features == 2
    np.testing.assert_allclose(third.network_(np.c_[0 * x, x])[:, 0], third.predict(np.c_[0 * x, x]))


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_attributes_agree_with_each_other(loss):
    x, y = data()
    model = SegmentedRegressor(3, loss=loss, budget=None).fit(x, y)
    assert model.n_pieces_ == len(model.slopes_) == len(model.breakpoints_) + 1 == 3
    t = model.breakpoints_
    for side in (0, 1):  # the lines on both sides of a breakpoint have the same value there
        lines = model.intercepts_[side : side + 2] + model.slopes_[side : side + 2] * t
        np.testing.assert_allclose(lines, model.values_, atol=1e-9)
    error = np.abs(y - model.predict(x))
    assert model.best_loss_ == pytest.approx(np.sum(error**2 if loss == "squared" else error))
    assert model.optimal_
    assert 0.0 <= model.gap_ <= 1e-6 * model.best_loss_


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-8])
def test_fitted_means_fitted_to_rounding(loss, noise):
    x = np.linspace(0, 6, 25)
    y = np.interp(x, [0, 2, 4, 6], [0, 2, 1, 4]) + noise * np.random.default_rng(3).normal(size=25)
    model = SegmentedRegressor(3, loss=loss, budget=None).fit(x, y)
    assert model.optimal_ == (noise == 0.0)  # errors of 1e-12 are ten thousand times rounding
    moved = SegmentedRegressor(3, loss=loss, budget=None).fit(x + 2.0**20, y)  # now they are not
    assert moved.optimal_ == (noise <= 1e-12)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("noise", [0.0, 1e-13])
def test_a_corner_at_the_origin_is_fitted_to_rounding(scale, noise):
    x = np.linspace(-1, 1, 51)
    y = scale * (np.abs(x) + noise * np.sin(99 * np.arange(51)))
    assert SegmentedRegressor(2, budget=None).fit(x, y).optimal_ == (noise == 0.0)


@pytest.mark.parametrize("n_pieces", [1, 2, 4])
def test_network_is_the_function_and_is_small(n_pieces):
    x, y = data()
    model = SegmentedRegressor(n_pieces).fit(x, y)
    far = np.linspace(-100, 100, 501)
    np.testing.assert_allclose(model.network_(far[:, None])[:, 0], model.predict(far), atol=1e-9)
    assert model.network_.size <= model.n_pieces_


@pytest.mark.parametrize("selection", ["bic", "cv"])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_number_of_pieces_is_found(selection, loss):
    x, y = data(n=80 if loss == "squared" else 50)
    model = SegmentedRegressor(
        loss=loss, selection=selection, max_pieces=4, cv=3, random_state=1, budget=None
    ).fit(x, y)
    assert model.n_pieces_ == 3
    assert model.optimal_
    path = model.selection_path_
    assert [trial.n_pieces for trial in path] == [1, 2, 3, 4]
    assert min(path, key=lambda trial: trial.score).n_pieces == 3
    assert all(trial.lower_bound <= trial.loss + 1e-12 for trial in path)


def test_bic_of_more_pieces_is_proved_not_to_win():
    """The bound of each number of pieces alone decides: no better fit could change the choice."""
    x, y = data(n=200, noise=0.3)
    model = SegmentedRegressor(max_pieces=5).fit(x, y)
    n = len(x)
    score = n * np.log(model.best_loss_ / n) + 2 * model.n_pieces_ * np.log(n)
    for trial in model.selection_path_:
        assert n * np.log(trial.lower_bound / n) + 2 * trial.n_pieces * np.log(n) >= score - 1e-6


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_scores_of_numbers_of_pieces(loss):
    """BIC of normal or Laplace noise: a scale that is fitted, and 2 K numbers; or held-out losses."""
    from pindown.deadline import NEVER
    from pindown.learn.segmented import Loss
    from pindown.learn.segmented.estimator import by_cross_validation

    x, y = data(n=40)
    fitted = SegmentedRegressor(loss=loss, max_pieces=3).fit(x, y)
    for trial in fitted.selection_path_:
        spread = trial.loss / 40
        half = 20 * np.log(spread) if loss == "squared" else 40 * np.log(spread)
        assert trial.score == pytest.approx(2 * (half + trial.n_pieces * np.log(40)))
    folds = [(np.arange(0, 40, 2), np.arange(1, 40, 2)), (np.arange(1, 40, 2), np.arange(0, 40, 2))]
    _, trials = by_cross_validation(x, y, np.ones(40), Loss(loss), 2, NEVER, folds)
    for trial in trials:
        total = 0.0
        for train, test in folds:
            model = SegmentedRegressor(trial.n_pieces, loss=loss).fit(x[train], y[train])
            total += np.sum(np.abs(model.predict(x[test]) - y[test]) ** (2 if loss == "squared" else 1))
        assert trial.score == pytest.approx(total, rel=1e-6)


def test_straight_and_exact_data_choose_few_pieces():
    x = np.linspace(0, 1, 30)
    assert SegmentedRegressor().fit(x, 3 * x - 1).n_pieces_ == 1
    assert SegmentedRegressor().fit(x, np.abs(x - 0.3)).n_pieces_ == 2
    assert SegmentedRegressor(5).fit(x, np.full(30, 2.5)).slopes_ == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_few_points(loss):
    one = SegmentedRegressor(3, loss=loss).fit([2.0], [5.0])
    assert one.predict([0.0, 9.0]) == pytest.approx([5.0, 5.0])
    two = SegmentedRegressor(3, loss=loss).fit([0.0, 1.0], [1.0, 3.0])
    assert two.predict([2.0]) == pytest.approx([5.0])
    more = SegmentedRegressor(9, loss=loss).fit([3.0, 1.0, 2.0], [0.0, 1.0, -1.0])
    assert more.best_loss_ == pytest.approx(0.0, abs=1e-9)
    same = SegmentedRegressor(2, loss=loss).fit([1.0, 1.0, 1.0], [0.0, 1.0, 5.0])
    assert same.best_loss_ == pytest.approx(14.0 if loss == "squared" else 5.0)


def test_points_without_weight_do_not_matter():
    x, y = data()
    outlier = SegmentedRegressor(2).fit(
        np.r_[x, 3.0], np.r_[y, 1e6], sample_weight=np.r_[np.ones(60), 0.0]
    )
    assert outlier.best_loss_ == pytest.approx(SegmentedRegressor(2).fit(x, y).best_loss_)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_budget_ends_with_a_true_interval(loss):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=150), rng.normal(size=150)
    hurried = SegmentedRegressor(4, loss=loss, budget=0.0).fit(x, y)
    patient = SegmentedRegressor(4, loss=loss, budget=20.0).fit(x, y)
    assert hurried.lower_bound_ <= patient.best_loss_ <= hurried.best_loss_ + 1e-9
    assert hurried.gap_ > 0
    assert not hurried.optimal_


def test_huge_and_tiny_numbers():
    x, y = data()
    reference = SegmentedRegressor(3).fit(x, y)
    for scale in (1e-150, 1e150):
        model = SegmentedRegressor(3).fit(x * scale, y)
        np.testing.assert_allclose(model.breakpoints_ / scale, reference.breakpoints_, rtol=1e-9)
    with pytest.raises(ValueError, match="exceeds the largest float"):
        SegmentedRegressor(2).fit(x, y * 1e200)


def test_plot_shows_data_and_breakpoints():
    import matplotlib

    matplotlib.use("Agg")
    x, y = data()
    model = SegmentedRegressor(3).fit(x, y)
    ax = model.plot(x, y)
    points, line, knots = ax.lines
    assert len(points.get_xdata()) == 60
    np.testing.assert_allclose(line.get_ydata(), model.predict(line.get_xdata()))
    np.testing.assert_array_equal(knots.get_xdata(), model.breakpoints_)
    assert model.plot(ax=ax) is ax
    assert SegmentedRegressor(1).fit(x, y).plot() is not None


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_pieces": 0}, "n_pieces must be an integer of at least 1; got 0"),
        ({"n_pieces": 2.5}, "n_pieces must be an integer"),
        ({"n_pieces": True}, "n_pieces must be an integer"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"loss": "huber", "threshold": 0.0}, "threshold must be"),
        ({"loss": "quantile", "quantile": 1.0}, "quantile must be"),
        ({"selection": "aic"}, "selection must be one of"),
        ({"max_pieces": None}, "max_pieces must be"),
        ({"cv": 1}, "cv must be an integer of at least 2"),
        ({"budget": -1}, "budget must be a number of at least 0"),
        ({"feature": "age"}, "feature must be the number of a column"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        SegmentedRegressor(**parameters).fit([0.0, 1.0], [0.0, 1.0])


def test_bad_data():
    model = SegmentedRegressor(2)
    with pytest.raises(ValueError, match=r"one variable, of shape \(n,\) or \(n, 1\); got \(3, 2\)"):
        model.fit(np.zeros((3, 2)), np.zeros(3))
    with pytest.raises(ValueError, match="NaN"):
        model.fit([0.0, np.nan], [0.0, 1.0])
    with pytest.raises(ValueError, match="infinity"):
        model.fit([0.0, 1.0], [0.0, np.inf])
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.fit([0.0, 1.0], [0.0, 1.0], sample_weight=[0.0, 0.0])
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit([0.0, 1.0], [0.0])
    with pytest.raises(ValueError, match="no column feature=5"):
        SegmentedRegressor(2, feature=5).fit(np.zeros((3, 2)), np.zeros(3))
    with pytest.raises(ValueError, match="minimum of 1"):
        model.fit([], [])


def test_clone_keeps_parameters():
    model = SegmentedRegressor(4, loss="absolute", budget=None, feature=2)
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize(
    ("place", "after"),
    [("grow", 0), ("grow", 1), ("run", 0), ("run", 1), ("screening", 0), ("table", 0)],
)
@pytest.mark.parametrize(
    "how", [{"n_pieces": 4}, {"max_pieces": 4}, {"max_pieces": 3, "selection": "cv"}], ids=str
)
def test_ctrl_c_keeps_what_is_known(monkeypatch, how, place, after):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 80)
    y = np.abs(x - 5) + np.sin(x) + 0.3 * rng.normal(size=80)
    loss = "absolute" if place == "table" else "squared"
    owner, name = {
        "grow": (_squared._Tree, "grow"),
        "run": (_squared._Tree, "run"),
        "screening": (_squared, "possible_gaps"),
        "table": (_convex._Problem, "fill"),
    }[place]
    real, calls = getattr(owner, name), []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == after + 1:
            raise KeyboardInterrupt
        return real(*args)

    whole = SegmentedRegressor(**how, loss=loss).fit(x, y)
    monkeypatch.setattr(owner, name, interrupted)
    with pytest.warns(UserWarning, match="interrupted: the best fit so far is kept"):
        model = SegmentedRegressor(**how, loss=loss).fit(x, y)
    assert len(calls) <= after + 3  # the search does not go on
    error = np.abs(model.predict(x) - y)
    assert model.best_loss_ == pytest.approx(error.sum() if loss == "absolute" else (error**2).sum())
    if model.n_pieces_ >= whole.n_pieces_:
        assert model.best_loss_ >= whole.lower_bound_
    if how == {"n_pieces": 4}:
        assert model.lower_bound_ <= whole.best_loss_ * (1 + 1e-9)


@pytest.mark.parametrize(("n", "grids"), [(100, 2), (1_000, 2), (3_000, 1)])
def test_a_coarse_grid_is_searched_once(monkeypatch, n, grids):
    """Where there are many points both grids have as many gaps as they may."""
    tried, real = [], _squared._upper_bound

    def counted(*args):
        tried.append(args[5])
        return real(*args)

    monkeypatch.setattr(_squared, "_upper_bound", counted)
    monkeypatch.setattr(_squared._Tree, "prove", lambda *_: (0.0, 0, False))  # patience is over
    x = np.linspace(-1, 1, n)
    model = SegmentedRegressor(2).fit(x, np.abs(x) + np.sin(50 * x))
    assert len(tried) == len(set(tried)) == grids and not model.optimal_
