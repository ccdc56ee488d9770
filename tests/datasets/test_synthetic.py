"""Orthogonally separable points: the recipe, its distribution, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from pindown.datasets.synthetic import digit_patterns, orthogonally_separable, pattern_detection


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


@pytest.mark.parametrize("d", [3, 5, 9])
@pytest.mark.parametrize("n_patches", [1, 4])
def test_each_class_holds_its_pattern_and_never_the_other(d, n_patches):
    X, y, patterns = pattern_detection(
        300, n_patterns=d, n_patches=n_patches, repeat=0.2, random_state=d
    )
    np.testing.assert_allclose(patterns @ patterns.T, np.eye(d), atol=1e-12)
    held = np.isclose(X @ patterns.T, 1.0).sum(axis=1)  # (m, d): how often each pattern occurs
    assert (held.sum(axis=1) == n_patches).all()  # every patch is exactly one pattern
    for own, other, label in ((0, 1, 1), (1, 0, -1)):
        assert (held[y == label, own] >= 1).all()
        assert (held[y == label, other] == 0).all()


def test_labels_are_fair_and_positions_uniform():
    X, y, patterns = pattern_detection(8000, n_patterns=4, n_patches=4, random_state=1)
    assert abs(y.mean()) < 4 / np.sqrt(len(y))
    own = np.where((y == 1)[:, None], X @ patterns[0], X @ patterns[1]) > 0.5
    assert (own.sum(axis=1) == 1).all()
    assert np.abs(own.mean(axis=0) - 0.25).max() < 4 * np.sqrt(0.25 * 0.75 / len(y))


def test_repeats_come_as_often_as_asked():
    X, y, patterns = pattern_detection(4000, n_patterns=5, n_patches=6, repeat=0.3, random_state=2)
    own = np.where((y == 1)[:, None], X @ patterns[0], X @ patterns[1]) > 0.5
    assert own.sum(axis=1).mean() == pytest.approx(1 + 5 * 0.3, abs=4 * np.sqrt(5 * 0.21 / 4000))
    rest = np.isclose(X @ patterns[2:].T, 1.0).mean(axis=(0, 1))
    np.testing.assert_allclose(rest, rest.mean(), rtol=0.1)  # the other patterns are alike


def test_the_seed_decides_and_patterns_can_be_given():
    first, second = (pattern_detection(20, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(first.X, second.X)
    again = pattern_detection(20, patterns=first.patterns, random_state=8)
    assert {tuple(p) for p in again.X.reshape(-1, 6)} <= {tuple(p) for p in first.patterns}


def test_pictures_leave_the_theory():
    X, y, means = digit_patterns(50, positive=1, negative=7)
    np.testing.assert_allclose(np.linalg.norm(X, axis=2), 1.0)
    assert means.shape == (10, 64)
    assert (means[0] @ means[1]) > 0.3  # far from orthogonal
    assert set(y) == {1, -1}
    images, labels = load_digits(return_X_y=True)
    images = images / np.linalg.norm(images, axis=1, keepdims=True)
    for own, other, digit in ((y == 1, 7, 1), (y == -1, 1, 7)):
        held = [labels[np.isclose(images @ patch, 1.0).argmax()] for patch in X[own].reshape(-1, 64)]
        shown = np.reshape(held, (own.sum(), -1))
        assert ((shown == digit).sum(axis=1) == 1).all() and (shown != other).all()
    np.testing.assert_allclose(
        means[0], images[labels == 1].sum(0) / np.linalg.norm(images[labels == 1].sum(0))
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n_samples": 0}, "n_samples"),
        ({"n_patterns": 2}, "at least 3"),
        ({"n_patches": 1.5}, "n_patches"),
        ({"repeat": 2.0}, "repeat must be a number"),
        ({"patterns": np.eye(2)}, "3 or more"),
        ({"patterns": np.full((3, 3), np.nan)}, "finite"),
    ],
)
def test_bad_input_is_explained(arguments, said):
    with pytest.raises(ValueError, match=said):
        pattern_detection(**{"n_samples": 5, **arguments})


def test_digits_must_differ():
    with pytest.raises(ValueError, match="two different digits"):
        digit_patterns(5, positive=3, negative=3)
