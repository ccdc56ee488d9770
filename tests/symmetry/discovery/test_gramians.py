"""Gramians of orbits: permuted columns, automorphisms against brute force, what they cannot tell."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from pindown.symmetry import cyclic, dihedral, symmetric
from pindown.symmetry.discovery import (
    automorphism_orbits,
    cayley_permutations,
    gramian,
    gramian_automorphisms,
    identify,
    is_permuted_matrix,
    orbit_closure_error,
    orbit_score,
    regular_subgroups,
    separation,
    signature_distances,
    sorted_gram_penalty,
    sorted_signature,
)
from pindown.symmetry.groups import from_permutations
from tests.symmetry.discovery.samples import GROUPS, triangle_beside_square

# The multiplication table on the slide, its six elements in the order e, a, b, c, d, f.
SLIDE = ["eabcdf", "aedfbc", "bfedca", "cdfeab", "dcabfe", "fbcaed"]


@pytest.mark.parametrize("matrices", [cyclic(8).matrices, dihedral(4).matrices, *GROUPS.values()])
def test_the_gramian_of_an_orbit_has_permuted_columns(matrices):
    t = np.random.default_rng(0).standard_normal(matrices.shape[1])
    W = (matrices @ t).T
    assert is_permuted_matrix(gramian(W), 1e-10)
    assert not is_permuted_matrix(gramian(W[:, :-1]), 1e-3)  # an orbit that lacks one member


def test_entries_are_the_autocorrelation_of_the_template():
    group = symmetric(3)
    t = np.random.default_rng(1).standard_normal(6)
    G = gramian(group.orbit(t).T)
    for i, j in itertools.product(range(6), repeat=2):
        moved = group.matrices[group.table[group.inverses[i], j]] @ t
        assert G[i, j] == pytest.approx(t @ moved)


def test_the_printed_list_of_elements_has_one_twice_and_the_table_is_that_of_s3():
    printed, letters = "eabcdef", "eabcdf"
    assert len(set(printed)) == 6 < len(printed)
    table = np.array([[letters.index(x) for x in row] for row in SLIDE])
    known, _ = identify(cayley_permutations(table))
    assert known.name == "D3" and not (table == table.T).all()
    # the permutation printed for a is (12)(35)(46), counting from one
    assert (cayley_permutations(table)[1] + 1).tolist() == [2, 1, 5, 6, 3, 4]


def test_cayley_permutations_are_a_faithful_homomorphism():
    group = dihedral(5)
    rows = cayley_permutations(group.table)
    assert len({tuple(row) for row in rows}) == group.order
    for g, h in itertools.product(range(group.order), repeat=2):
        assert (rows[g][rows[h]] == rows[group.table[g, h]]).all()


def brute_force(G):
    n = len(G)
    return [p for p in itertools.permutations(range(n)) if np.allclose(G[np.ix_(p, p)], G, atol=1e-9)]


@pytest.mark.parametrize("seed", range(4))
def test_automorphisms_equal_those_found_by_trying_all(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2, (6, 6)).astype(float)
    G = values + values.T
    for matrix in (G, gramian((GROUPS["C6"] @ rng.standard_normal(6)).T)):
        found = gramian_automorphisms(matrix, 1e-9)
        assert [tuple(row) for row in found.tolist()] == brute_force(matrix)


def test_equal_columns_are_not_enough_for_an_orbit():
    G = gramian(triangle_beside_square())
    assert is_permuted_matrix(G, 1e-9)  # what the source takes for proof
    automorphisms = gramian_automorphisms(G, 1e-9)
    assert len(automorphisms) == 48
    assert automorphism_orbits(automorphisms) == [[0, 1, 2], [3, 4, 5, 6]]
    assert regular_subgroups(automorphisms) == []


def test_one_gramian_can_be_the_orbit_of_two_groups():
    W = (GROUPS["C6"] @ np.random.default_rng(0).standard_normal(6)).T
    automorphisms = gramian_automorphisms(gramian(W))
    assert len(automorphisms) == 12  # reversing the cycle changes no inner product
    names = [
        identify(from_permutations(group).table)[0].name for group in regular_subgroups(automorphisms)
    ]
    assert sorted(names) == ["C6", "D3"]


def test_regular_subgroups_move_every_point_to_every_other_once():
    everything = np.array(list(itertools.permutations(range(4))))
    found = regular_subgroups(everything)
    assert len(found) == 4  # three cyclic groups and the group of Klein
    for group in found:
        assert (np.sort(group, axis=0) == np.arange(4)[:, None]).all()


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="finite numbers"):
        gramian([[np.nan, 1.0]])
    with pytest.raises(ValueError, match="square"):
        is_permuted_matrix(np.ones((2, 3)))
    with pytest.raises(ValueError, match="too much alike"):
        gramian_automorphisms(np.eye(9), most=100)
    with pytest.raises(ValueError, match="no inverses"):
        cayley_permutations([[0, 1], [1, 1]])


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


def test_bad_columns_and_distances_are_refused():
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
