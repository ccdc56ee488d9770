"""The generative model: moments, supports, dictionaries, and why independence is needed."""

from itertools import combinations

import numpy as np
import pytest

from pindown.datasets.sparse_codes import (
    SparseCodingModel,
    coherence,
    gaussian_dictionary,
    hadamard_dictionary,
    incoherent_dictionary,
    near_dictionary,
    support_size,
)


@pytest.mark.parametrize("distribution", ["uniform", "two-point"])
def test_moments_are_those_of_the_samples(distribution):
    model = SparseCodingModel(gaussian_dictionary(5, 9), 4, 1.0, 3.0, distribution)
    Y, X = model.sample(40_000, random_state=3)
    on = X > 0
    assert (on.sum(axis=1) == 4).all()
    np.testing.assert_allclose(Y, X @ model.dictionary.T)
    values = X[on]
    assert values.min() >= 1.0
    assert values.max() <= 3.0
    error = 5 * values.std() / np.sqrt(len(values))
    assert values.mean() == pytest.approx(model.mean, abs=error)
    assert (values**2).mean() == pytest.approx(model.second_moment, abs=6 * error)
    noise = 5 / np.sqrt(len(X))
    np.testing.assert_allclose(on.mean(axis=0), model.inclusion(1), atol=noise)
    for i, j in combinations(range(9), 2):
        assert (on[:, i] & on[:, j]).mean() == pytest.approx(model.inclusion(2), abs=noise)


def test_inclusion_counts_subsets():
    model = SparseCodingModel(np.eye(6), 3)
    supports = list(combinations(range(6), 3))
    for t in (1, 2, 3, 4):
        share = np.mean([set(range(t)) <= set(S) for S in supports])
        assert model.inclusion(t) == pytest.approx(share)


def test_coherence_by_brute_force():
    opposite = np.array([[1.0, -0.96, 0.0], [0.0, 0.28, 1.0]])
    assert coherence(opposite) == pytest.approx(0.96)  # the sign of a product does not count
    A = gaussian_dictionary(6, 11, 2)
    brute = max(abs(A[:, i] @ A[:, j]) for i, j in combinations(range(11), 2))
    assert coherence(A) == pytest.approx(brute)
    model = SparseCodingModel(A, 1)
    assert 11.0**-model.coherence_exponent == pytest.approx(brute)


@pytest.mark.parametrize("n", [1, 2, 16, 64])
def test_hadamard_dictionary_has_coherence_one_over_root_n(n):
    A = hadamard_dictionary(n)
    assert A.shape == (n, 2 * n)
    assert coherence(A) == pytest.approx(1 / np.sqrt(n))


@pytest.mark.parametrize(("n", "h"), [(8, 20), (16, 16), (6, 4)])
def test_projections_lower_the_coherence_not_below_the_bound(n, h):
    rough = coherence(gaussian_dictionary(n, h))
    fine = coherence(incoherent_dictionary(n, h))
    assert np.sqrt(max(h - n, 0) / (n * (h - 1))) - 1e-9 <= fine < 0.8 * rough


def test_gaussian_dictionaries_of_the_source_have_the_stated_exponent():
    model = SparseCodingModel(gaussian_dictionary(50, 256), 1)
    assert model.coherence_exponent == pytest.approx(0.1, abs=0.03)


def test_independence_is_needed_uncorrelated_is_not_enough():
    """Entries s + t j mod 61 below 16: pairwise independent, yet the tail bound of the proof fails.

    The unit sees the same share c of all atoms in the support; it is on when the entries sum to more
    than 2 k m1. With independent entries the bound holds.
    """
    q = 61
    s, t, j = np.ogrid[:q, :q, :q]
    x = ((s + t * j) % q < 16).reshape(-1, q).astype(float)  # all draws, (q^2, k = q), entries 0 or 1
    m1 = x.mean()
    np.testing.assert_allclose(np.cov(x.T, bias=True), m1 * (1 - m1) * np.eye(q), atol=1e-12)
    bound = np.exp(-2 * q * m1**2)
    uncorrelated = (x.sum(axis=1) > 2 * q * m1).mean()
    assert uncorrelated > 10 * bound
    from scipy.stats import binom

    assert binom.sf(np.floor(2 * q * m1), q, m1) <= bound
    # The model's entries are independent: their sums have the tails of the binomial distribution.
    _, X = SparseCodingModel(np.eye(q), q, low=0.0, high=1.0, distribution="two-point").sample(20_000, 0)
    for least in (34, 37, 40):
        chance = binom.sf(least - 1, q, 0.5)
        assert abs((X.sum(axis=1) >= least).mean() - chance) < 4 * np.sqrt(chance / len(X))
        assert chance <= np.exp(-2 * q * (least / q - 0.5) ** 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"dictionary": 2 * np.eye(3)}, "norm 1"),
        ({"dictionary": np.ones(3)}, "matrix"),
        ({"sparsity": 4}, "at least 1 and at most 3"),
        ({"sparsity": True}, "integer"),
        ({"low": -1.0}, "0 <= low"),
        ({"low": 5.0, "high": 2.0}, "low <= high"),
        ({"low": 0.0, "high": 0.0}, "positive"),
        ({"high": np.inf}, "finite"),
        ({"distribution": "normal"}, "uniform"),
    ],
)
def test_bad_models_are_explained(arguments, said):
    with pytest.raises(ValueError, match=said):
        SparseCodingModel(**{"dictionary": np.eye(3), "sparsity": 1, **arguments})


def test_the_dictionary_cannot_be_changed_behind_the_model():
    A = np.eye(3)
    model = SparseCodingModel(A, 1)
    A[0, 0] = 5.0
    assert model.dictionary[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        model.dictionary[0, 0] = 2.0
    with pytest.raises(ValueError, match="n_samples"):
        model.sample(0)
    with pytest.raises(ValueError, match="n_features"):
        gaussian_dictionary(0, 3)
    with pytest.raises(ValueError, match="distance"):
        near_dictionary(np.eye(2), np.nan)
    with pytest.raises(ValueError, match="power of two"):
        hadamard_dictionary(12)


def test_sizes_and_distances():
    assert [support_size(256, p) for p in (0.01, 0.1, 0.2, 0.3, 0.5)] == [1, 2, 3, 5, 16]
    W = near_dictionary(gaussian_dictionary(7, 5), 0.25, 1)
    np.testing.assert_allclose(np.linalg.norm(W - gaussian_dictionary(7, 5).T, axis=1), 0.25)
