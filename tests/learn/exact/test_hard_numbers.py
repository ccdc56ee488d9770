"""Numbers that float64 finds hard: a certificate must stay true, or not be given."""

import numpy as np
import pytest

from pindown.compiling import by
from pindown.learn import ExactReluRegressor
from pindown.learn.exact import dichotomies
from pindown.learn.exact._search import can_list


def _fit(X, y, weight=None, **parameters):
    return ExactReluRegressor(verbose=0, budget=10, **parameters).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("size", [1e-70, 1e70])
def test_units_of_targets_and_weights_do_not_matter(loss, size):
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(6, 1)), rng.normal(size=6), rng.uniform(0.5, 2, 6)
    plain = _fit(X, y, weight, loss=loss)
    scaled = _fit(X, size * y, weight / size, loss=loss)
    assert plain.optimal_
    assert scaled.optimal_
    expected = plain.best_loss_ * (size if loss == "squared" else 1.0)
    assert scaled.best_loss_ == pytest.approx(expected, rel=1e-7)
    assert scaled.predict(X) == pytest.approx(size * plain.predict(X), rel=1e-4)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_units_of_a_penalty_follow_those_of_targets_and_weights(loss, size):
    """Slopes have the units of targets: the penalty on their squares is in those of loss / target^2."""
    rng = np.random.default_rng(1)
    X, weight = rng.normal(size=(6, 1)), rng.uniform(0.5, 2, 6)
    y = 2 * X[:, 0] + 0.3 * rng.normal(size=6)
    plain = _fit(X, y, weight, loss=loss, width=1, ridge=0.5)
    unit = 1 / size if loss == "squared" else size**-2
    scaled = _fit(X, size * y, weight / size, loss=loss, width=1, ridge=0.5 * unit)
    free = _fit(X, y, weight, loss=loss, width=1)
    assert free.best_loss_ < 0.99 * plain.best_loss_
    assert scaled.best_loss_ == pytest.approx(plain.best_loss_ * size**2 * unit, rel=1e-6)
    assert scaled.predict(X) == pytest.approx(size * plain.predict(X), rel=1e-3)


def test_bounds_of_programs_that_are_left_open_are_the_least_of_them():
    from types import SimpleNamespace

    from pindown.learn.exact._polish import close

    left = SimpleNamespace(counts=np.array([9, 9, 3]), open_bound=np.array([0.5, 0.2, 0.4, np.inf]))
    assert close(None, left, 0.1) == (0.2, [])
    nothing = SimpleNamespace(counts=np.array([9, 9, 0]), open_bound=np.full(4, np.inf))
    assert close(None, nothing, 0.1) == (np.inf, [])


def test_a_constant_feature_that_is_not_its_float_mean():
    X = np.full((6, 1), 3.0032992837)
    y = np.random.default_rng(1).normal(size=6)
    model = _fit(X, y)
    assert model.best_loss_ == pytest.approx(((y - y.mean()) ** 2).sum(), rel=1e-9)
    assert np.abs(np.asarray(model.network_.layers[0].weight)).max() == 0


@pytest.mark.parametrize("size", [1e7, 1e9])
def test_an_outlier_does_not_hide_the_others(size):
    x = np.arange(8.0)
    y = np.array([1.0, 4.0, 1.0, 5.0, 1.0, 4.0, 1.0, size])
    model = _fit(x[:, None], y, width=2)
    bend = np.maximum(x - 6, 0)  # a unit for the outlier, another for the line through the others
    A = np.column_stack([np.ones(8), x, bend])
    reached = float(((A @ np.linalg.lstsq(A, y, rcond=None)[0] - y) ** 2).sum())
    assert model.lower_bound_ <= reached * (1 + 1e-6)
    assert not model.optimal_ or model.best_loss_ <= reached * (1 + 1e-6)


def test_near_duplicates_with_squared_loss():
    x = np.array([-1.0, 0.0, 1e-7, 1.0, 1.5])
    y = np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    step = 1e7 * (np.maximum(x, 0) - np.maximum(x - 1e-7, 0))  # fits all points, with large weights
    reached = float(((step - y) ** 2).sum())
    model = _fit(x[:, None], y, width=2)
    assert reached < 1e-9
    assert model.lower_bound_ <= reached
    assert not model.optimal_ or model.best_loss_ <= 1e-9


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_samples_about_a_merging_radius_apart(seed, loss):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(3, 2))
    X = centres[rng.integers(3, size=8)] + 10.0 ** rng.integers(-10, -7) * rng.normal(size=(8, 2))
    y = rng.integers(-2, 3, size=8).astype(float)
    model = _fit(X, y, width=1, loss=loss, output_bias=True)
    flat = _fit(np.round(X, 5), y, width=1, loss=loss, output_bias=True)
    network = flat.network_(X)[:, 0]
    reached = ((network - y) ** 2).sum() if loss == "squared" else np.abs(network - y).sum()
    assert model.lower_bound_ <= reached * (1 + 1e-7) + 1e-9


@pytest.mark.parametrize("gap", [1e-7, 1e-8, 3e-9, 1e-9])
def test_cells_of_near_duplicates_form_a_graph(gap):
    rng = np.random.default_rng(3)
    base = rng.normal(size=(4, 3))
    graph = dichotomies(np.vstack([base, base[:3] + gap * rng.normal(size=(3, 3))]))
    assert (graph.across < len(graph)).all()
    assert (graph.parent[1:] < np.arange(1, len(graph))).all()


def test_time_for_listing_cells_counts():
    assert can_list(700, 2, 60.0)
    assert not can_list(700, 2, 0.0)


def test_too_large_for_a_float():
    with pytest.raises(ValueError, match="exceeds the largest float"):
        _fit([[0.0], [1.0], [2.0]], [1e200, -1e200, 1e200], width=1)


def test_one_sample_compiles_nothing_again():
    from pindown.learn.exact._compiled.convex import descend_convex

    with by("compiled"):
        _fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0], loss="absolute", width=1)
        before = len(descend_convex.dispatcher.signatures)
        assert _fit([[3.0]], [2.0], loss="absolute", width=1).optimal_
    assert len(descend_convex.dispatcher.signatures) == before == 1


@pytest.mark.parametrize("size", [1e-160, 1e-150, 1e150])
def test_units_of_samples_do_not_matter(size):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(6, 2)), rng.normal(size=6)
    plain, scaled = _fit(X, y, width=1), _fit(size * X, y, width=1)
    assert scaled.optimal_
    assert scaled.best_loss_ == pytest.approx(plain.best_loss_, rel=1e-7)
