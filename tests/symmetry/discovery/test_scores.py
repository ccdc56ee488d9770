"""Distances from an orbit: against trying all permutations, and on what should and should not pass."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from pindown.symmetry import cyclic
from pindown.symmetry.discovery import (
    orbit_closure_error,
    orbit_score,
    separation,
    signature_distances,
    sorted_gram_penalty,
    sorted_signature,
)
from tests.symmetry.discovery.samples import GROUPS, triangle_beside_square


def test_closure_error_equals_the_best_of_all_permutations():
    rng = np.random.default_rng(0)
    W, matrices = rng.standard_normal((4, 4)), cyclic(4).matrices
    squares = [
        min(((g @ W - W[:, list(p)]) ** 2).sum() for p in itertools.permutations(range(4)))
        for g in matrices
    ]
    assert orbit_closure_error(W, cyclic(4)) == pytest.approx(np.sqrt(np.mean(squares) / (W**2).sum()))


@pytest.mark.parametrize("name", GROUPS)
def test_orbits_are_closed_and_others_are_not(name):
    rng = np.random.default_rng(1)
    W = (GROUPS[name] @ rng.standard_normal(6)).T
    assert orbit_closure_error(W, GROUPS[name]) < 1e-12 and orbit_score(W) < 1e-12
    rough = rng.standard_normal(W.shape)
    assert orbit_closure_error(rough, GROUPS[name]) > 0.3 and orbit_score(rough) > 0.05


def test_a_score_of_zero_names_no_group():
    W = triangle_beside_square()
    assert orbit_score(W) < 1e-12
    turn = cyclic(7).matrices
    assert orbit_closure_error(W, turn) > 0.1


def test_signature_is_invariant_exactly_when_the_atoms_are_an_orbit():
    rng = np.random.default_rng(2)
    x, other = rng.standard_normal((2, 6))
    W = (GROUPS["C6"] @ rng.standard_normal(6)).T
    signatures = sorted_signature(GROUPS["C6"] @ x, W)
    assert np.ptp(signatures, axis=0).max() < 1e-12
    assert np.linalg.norm(signatures[0] - sorted_signature(other[None], W)[0]) > 0.1
    assert np.ptp(sorted_signature(GROUPS["C6"] @ x, rng.standard_normal((6, 6))), axis=0).max() > 0.1


def test_orthonormal_atoms_are_invariant_to_too_much():
    x = np.random.default_rng(3).standard_normal(6)
    swapped = x[[1, 0, 2, 3, 4, 5]]  # no rotation of six points
    assert orbit_closure_error(np.eye(6), GROUPS["C6"]) == 0.0
    assert (sorted_signature([x], np.eye(6)) == sorted_signature([swapped], np.eye(6))).all()


def test_separation_is_the_area_under_the_curve():
    rng = np.random.default_rng(4)
    near, far = rng.normal(0, 1, 50).round(1), rng.normal(1, 1, 70).round(1)
    truth = np.r_[np.zeros(50), np.ones(70)]
    assert separation(near, far) == pytest.approx(roc_auc_score(truth, np.r_[near, far]))


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="columns of 5 numbers"):
        orbit_closure_error(np.eye(5), cyclic(4))
    with pytest.raises(ValueError, match="both kinds"):
        separation([], [1.0])
    assert orbit_score(np.zeros((2, 3))) == 0.0


def test_score_is_the_penalty_of_sorted_columns_per_entry():
    """n^2 pairs of columns in the penalty, against the size of the Gramian."""
    import torch

    W = np.random.default_rng(5).standard_normal((4, 6))
    penalty = float(sorted_gram_penalty(torch.from_numpy(W)))
    size = ((W.T @ W) ** 2).sum()
    assert orbit_score(W) == pytest.approx(np.sqrt(penalty / 6 / size)) == orbit_score(-3 * W)


def test_distances_of_signatures_are_relative():
    X, others = np.random.default_rng(6).standard_normal((2, 5, 3))
    found = signature_distances(lambda Z: Z, X, others)
    np.testing.assert_allclose(found, [np.linalg.norm(x / np.linalg.norm(x) - y / np.linalg.norm(x))
                                       for x, y in zip(X, others, strict=True)])  # fmt: skip
    np.testing.assert_allclose(signature_distances(lambda Z: 7 * Z, X, others), found)
