import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from pindown.learn.one_class.density import TYPICAL, NeighbourDensity


@pytest.mark.parametrize("d", [2, 40])
def test_the_order_is_that_of_mean_neighbour_distances(d):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, d)), rng.normal(size=(50, d)) * 2
    reference = NearestNeighbors(n_neighbors=5).fit(X).kneighbors(Y)[0].mean(1)
    scores = NeighbourDensity.of(X).log_odds(Y)
    assert np.corrcoef(np.log(reference), scores)[0, 1] == pytest.approx(-1.0, abs=1e-6)


@pytest.mark.parametrize("d", [2, 40])
def test_training_rows_are_left_out_of_their_own_score(d):
    X = np.random.default_rng(1).normal(size=(101, d)) * 3 + 5
    density = NeighbourDensity.of(X)
    apart = [
        NearestNeighbors(n_neighbors=5).fit(np.delete(X, i, 0)).kneighbors(X[i : i + 1])[0].mean()
        for i in range(101)
    ]
    assert density.distances(X) == pytest.approx(np.array(apart), rel=1e-5)
    scores = density.log_odds(X)
    assert np.median(scores) == pytest.approx(TYPICAL)
    assert np.mean(scores < 0) == pytest.approx(0.05, abs=0.011)


def test_duplicates_and_tiny_samples_have_finite_scores():
    for X in (np.zeros((10, 3)), np.array([[0.0], [1.0]]), np.repeat(np.eye(3), 20, axis=0)):
        assert np.isfinite(NeighbourDensity.of(X).log_odds(np.vstack([X, X + 1]))).all()
