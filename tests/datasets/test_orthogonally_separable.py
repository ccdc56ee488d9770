"""Orthogonally separable points: the recipe, its distribution, bad input."""

import numpy as np
import pytest

from pindown.datasets.orthogonally_separable import orthogonally_separable


def test_the_recipe():
    X, y = orthogonally_separable(200, n_features=6, balanced=True, random_state=1)
    assert ((X * y[:, None]) > 0).all() and (X @ np.tile([1, -1], 3) >= 0).all() and y.sum() == 0
    again = orthogonally_separable(200, n_features=6, balanced=True, random_state=1)
    assert (X == again.X).all() and (y == again.y).all()
    other = orthogonally_separable(201, n_features=6, balanced=True, random_state=2)
    assert (other.X[:200] != X).all() and other.y.sum() == 1  # one more of the positive ones


def test_the_distribution_is_that_of_plain_rejection():
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(0)
    draws = rng.standard_normal((40_000, 2))
    kept = draws[((draws > 0).all(axis=1) | (draws < 0).all(axis=1)) & (draws @ [1, -1] >= 0)]
    X, y = orthogonally_separable(5000, n_features=2)
    for column in range(2):
        assert ks_2samp(X[:, column], kept[:, column]).pvalue > 1e-3
    assert abs((y > 0).mean() - 0.5) < 0.03


@pytest.mark.parametrize("arguments", [{"n_samples": 0}, {"n_features": 3}, {"n_features": 0}])
def test_bad_input_is_refused(arguments):
    with pytest.raises(ValueError, match="must be"):
        orthogonally_separable(**arguments)
