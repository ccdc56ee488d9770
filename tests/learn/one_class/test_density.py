"""test_density."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.neighbors import NearestNeighbors

from pindown.learn.one_class._density import TYPICAL, NeighbourDensity, learned_weights
from pindown.learn.one_class.tuning import N_NEIGHBOURS, WEIGHT_SHRINKAGE


def mean_distances(X, Y):
    """By brute force: a column for each number of neighbours."""
    found = NearestNeighbors(n_neighbors=max(N_NEIGHBOURS), algorithm="brute").fit(X).kneighbors(Y)[0]
    return np.stack([found[:, :k].mean(1) for k in N_NEIGHBOURS], 1)


@pytest.mark.parametrize("d", [2, 40])
@pytest.mark.parametrize("learned", [False, True])
def test_scores_are_weighted_means_of_log_distances(d, learned):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, d)), rng.normal(size=(50, d)) * 2
    density = NeighbourDensity.of(X, 4 * X if learned else None, steps=50)
    assert density.weights.sum() == pytest.approx(1.0) and (density.weights > 0).all()
    assert (density.weights == 0.5).all() != learned
    logs = np.log(mean_distances(X, Y)) @ density.weights
    assert np.corrcoef(logs, density.log_odds(Y))[0, 1] == pytest.approx(-1.0, abs=1e-6)


@pytest.mark.parametrize("d", [2, 40])
def test_training_rows_are_left_out_of_their_own_score(d):
    X = np.random.default_rng(1).normal(size=(101, d)) * 3 + 5
    density = NeighbourDensity.of(X)
    apart = [mean_distances(np.delete(X, i, 0), X[i : i + 1])[0] for i in range(101)]
    assert density.distances(X) == pytest.approx(np.array(apart), rel=1e-5)
    scores = density.log_odds(X)
    assert np.median(scores) == pytest.approx(TYPICAL)
    assert np.mean(scores < 0) == pytest.approx(0.05, abs=0.011)


def test_without_weights_all_points_are_alike():
    X = np.random.default_rng(0).normal(size=(50, 3))
    density = NeighbourDensity.of(X, weights=np.zeros(2))
    assert np.array_equal(density.log_odds(np.vstack([X, 100 * X])), np.zeros(100))


@pytest.mark.parametrize("d", [4, 30])  # by a tree, and by matrix products that round
@pytest.mark.parametrize("outside", [True, False])
def test_copies_of_rows_do_not_count_as_neighbours(d, outside):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, d))
    density = NeighbourDensity.of(np.repeat(X, 3, axis=0), 3 * X if outside else None, 50)
    assert density.weights.tolist() == [0.0, 1.0]
    assert density.units[1] > 0.1
    if d == 4:  # in many dimensions 5 neighbours are not enough for 3 copies either
        assert np.mean(density.log_odds(rng.normal(size=(200, d))) > 0) > 0.2
    few = NeighbourDensity.of(np.vstack([X, X[:2]]), 3 * X, 50)  # four of 102 rows have a copy
    assert few.weights[0] > 0


def test_duplicates_and_tiny_samples_have_finite_scores():
    for X in (np.zeros((10, 3)), np.array([[0.0], [1.0]]), np.repeat(np.eye(3), 20, axis=0)):
        for outside in (None, X + 1):
            scores = NeighbourDensity.of(X, outside, 50).log_odds(np.vstack([X, X + 1]))
            assert np.isfinite(scores).all()


def price(inside, outside, place):
    """The objective, written out."""
    w, b = place[:-1], place[-1]
    rows = np.mean([np.log1p(np.exp(-(w @ f + b))) for f in inside])
    others = np.mean([np.log1p(np.exp(w @ f + b)) for f in outside])
    return rows + others + WEIGHT_SHRINKAGE * w @ w


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_they_are_the_solution_of_the_convex_problem(seed, k):
    rng = np.random.default_rng(seed)
    inside, outside = rng.normal(size=(20, k)), rng.normal(size=(30, k)) - rng.uniform(-1, 2, k)
    found = learned_weights(inside, outside, 200)
    best = min(
        (
            minimize(
                lambda place: price(inside, outside, place),
                start,
                method="SLSQP",
                bounds=[(0, None)] * k + [(None, None)],
                options={"ftol": 1e-12, "maxiter": 500},
            )
            for start in (np.zeros(k + 1), np.ones(k + 1))
        ),
        key=lambda result: result.fun,
    ).x[:-1]
    if best.sum() < 1e-3:  # nothing tells them apart: shares of nothing
        return
    assert found == pytest.approx(best / best.sum(), abs=2e-3)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_no_distance_is_ever_turned_round(seed, steps):
    rng = np.random.default_rng(seed)
    inside, outside = rng.normal(size=(9, 3)), rng.normal(size=(7, 3)) + rng.normal(size=3)
    found = learned_weights(inside, outside, steps)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1.0)


def test_one_step_already_tells_near_from_far():
    near, far = np.ones((5, 2)), -np.ones((5, 2))
    assert learned_weights(near, far, 1) == pytest.approx([0.5, 0.5])


def test_made_up_rows_that_are_nearer_than_rows_teach_nothing():
    assert learned_weights(-np.ones((5, 2)), np.ones((5, 2)), 50).tolist() == [0.5, 0.5]
