"""All maps that commute: counted by characters, found by three routes, and known in special cases."""

import numpy as np
import pytest
import torch
from scipy.linalg import circulant, null_space

from pindown.symmetry import cyclic, dihedral, symmetric
from pindown.symmetry.layers import (
    convolution_matrix,
    coset_representation,
    direct_sum,
    equivariant_basis,
    expected_dimension,
    invariant_basis,
    left_cosets,
    tensor_product,
    trivial,
)
from pindown.symmetry.layers.sets import PermEquivariant
from tests.symmetry.layers.actions import polygon, rotations, skewed


def sign(n):
    group = symmetric(n)
    return np.linalg.det(group.permuting().matrices).round()[:, None, None]


S3, S4, C6, D4 = symmetric(3), symmetric(4), cyclic(6), dihedral(4)
# rep_in, rep_out, dimension worked out by hand where it is known
CASES = {
    "trivial": (trivial(1, 3), trivial(1, 2), 6),
    "C6 regular": (C6, C6, 6),
    "S3 regular": (S3, S3, 6),
    "S4 regular": (S4, S4, 24),
    "D4 regular": (D4, D4, 8),
    "S3 points": (S3.permuting(), S3.permuting(), 2),
    "S4 points": (S4.permuting(), S4.permuting(), 2),
    "D4 corners": (D4.permuting(), D4.permuting(), 3),
    "S4 points to functions": (S4.permuting(), S4, 4),
    "sign to points": (sign(4), S4.permuting().matrices, 0),
    "sign to functions": (sign(4), S4.matrices, 1),
    "S4 pairs of points": (tensor_product(S4.permuting(), S4.permuting()), S4.permuting().matrices, 5),
    "S4 pairs to pairs": (
        tensor_product(S4.permuting(), S4.permuting()),
        tensor_product(S4.permuting(), S4.permuting()),
        15,
    ),
    "C6 turns of the plane": (C6.acting_by(rotations(6)), C6.acting_by(rotations(6)), 2),
    "C6 turns from functions": (C6, C6.acting_by(rotations(6)), 2),
    "plane with mirrors": (polygon(4), polygon(4), 1),
    "sum of plane and corners": (
        direct_sum(polygon(4), D4.permuting()),
        direct_sum(polygon(4), D4.permuting()),
        None,
    ),
    "plane squared": (tensor_product(polygon(4), polygon(4)), polygon(4).matrices, 0),
    "skewed plane": (skewed(polygon(4), 0), skewed(polygon(4), 1), 1),
    "skewed S3 functions": (skewed(S3, 2), S3.matrices, 6),
    "skewed S4 points": (S4.acting_by(skewed(S4.permuting(), 3)), S4.permuting(), 2),
    "skewed sum with sign": (
        skewed(direct_sum(sign(4), S4.permuting(), S4.permuting()), 4),
        skewed(direct_sum(sign(4), S4.permuting()), 5),
        5,
    ),
}

LARGE = ("S4 regular", "S4 pairs to pairs", "S4 points to functions")  # for the textbook equations


def matrices(rep):
    return rep if isinstance(rep, np.ndarray) else rep.matrices


def commutes(basis, rep_in, rep_out):
    return max(
        np.abs(b @ basis - basis @ a).max(initial=0.0)
        for a, b in zip(matrices(rep_in), matrices(rep_out), strict=True)
    )


@pytest.mark.parametrize("name", CASES)
def test_dimension_is_that_of_the_characters_and_all_maps_commute(name):
    rep_in, rep_out, known = CASES[name]
    basis = equivariant_basis(rep_in, rep_out)
    assert len(basis) == expected_dimension(rep_in, rep_out)
    assert known is None or len(basis) == known
    assert commutes(basis, rep_in, rep_out) < 1e-10
    flat = basis.reshape(len(basis), basis.shape[1] * basis.shape[2])
    assert np.abs(flat @ flat.T - np.eye(len(basis))).max(initial=0.0) < 1e-12


def test_characters_were_tried_on_twenty_representations():
    assert len(CASES) >= 20


@pytest.mark.parametrize("name", [name for name in CASES if name not in LARGE])
def test_three_routes_and_the_textbook_equations_span_one_space(name):
    rep_in, rep_out, _ = CASES[name]
    inner, outer = matrices(rep_in), matrices(rep_out)
    eye_in, eye_out = np.eye(inner.shape[1]), np.eye(outer.shape[1])
    equations = [np.kron(b, eye_in) - np.kron(eye_out, a.T) for a, b in zip(inner, outer, strict=True)]
    known = null_space(np.concatenate(equations), rcond=1e-9)
    for method in ("auto", "average", "null"):
        flat = equivariant_basis(rep_in, rep_out, method=method).reshape(-1, known.shape[0])
        assert flat.shape[0] == known.shape[1]
        assert np.abs(flat.T @ flat - known @ known.T).max() < 1e-9


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_permutation_layer_is_the_family_of_two_parameters(m):
    basis = equivariant_basis(symmetric(m).permuting())
    family = np.stack([np.eye(m), np.ones((m, m))]).reshape(2, -1)
    assert len(basis) == 2
    weights = np.linalg.lstsq(family.T, basis.reshape(2, -1).T, rcond=None)[0]
    assert np.abs(weights.T @ family - basis.reshape(2, -1)).max() < 1e-12


def test_printed_diagonal_of_the_permutation_layer_forgets_the_second_parameter():
    """With lambda I + gamma 11^T the diagonal is lambda + gamma; the proof says lambda."""
    own, common = 2.0, 3.0
    theta = own * np.eye(4) + common * np.ones((4, 4))
    printed = np.where(np.eye(4) == 1, own, common)
    assert not np.array_equal(theta, printed)
    assert np.array_equal(theta, np.where(np.eye(4) == 1, own + common, common))
    layer = PermEquivariant(1, 1, "sum", bias=False).double()
    layer.own.data.fill_(own)
    layer.common.data.fill_(common)
    with torch.no_grad():
        assert np.array_equal(layer(torch.eye(4).double()[:, :, None])[:, :, 0].numpy(), theta)


def test_printed_product_of_transpositions_does_not_join_all_pairs_of_indices():
    """The product (j' j)(i i') is said to carry (i, j) to (i', j'); with j' = i it does not."""

    def swap(first, second, m):
        perm = np.arange(m)
        perm[[first, second]] = perm[[second, first]]
        return perm

    m, failures, others = 4, 0, 0
    group = symmetric(m)
    pairs = [(i, j) for i in range(m) for j in range(m) if i != j]
    for i, j in pairs:
        for a, b in pairs:
            if i == a or j == b:
                continue
            product = swap(b, j, m)[swap(i, a, m)]
            good = (product[i], product[j]) == (a, b)
            failures += not good and b == i
            others += not good and b != i and a != j
            # the corrected argument: some permutation carries any ordered pair to any other
            assert ((group.points[:, i] == a) & (group.points[:, j] == b)).any()
    assert failures > 0 and others == 0
    # for two things the printed product is the identity and proves nothing
    assert np.array_equal(swap(0, 1, 2)[swap(0, 1, 2)], [0, 1])


@pytest.mark.parametrize("group", [cyclic(5), S3, D4, symmetric(4)], ids=lambda g: g.name)
def test_on_the_group_itself_right_convolutions_are_all(group):
    basis = equivariant_basis(group).reshape(-1, group.order**2)
    convolutions = np.stack([convolution_matrix(w, group) for w in np.eye(group.order)])
    convolutions = convolutions.reshape(group.order, -1)
    assert len(basis) == group.order == np.linalg.matrix_rank(convolutions)
    assert np.abs(convolutions - convolutions @ basis.T @ basis).max() < 1e-12


def test_for_shifts_convolution_is_circular():
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((2, 7))
    by_fourier = np.fft.ifft(np.fft.fft(w) * np.fft.fft(x)).real
    assert np.allclose(convolution_matrix(w, cyclic(7)) @ x, by_fourier, atol=1e-12)
    assert np.array_equal(convolution_matrix(w, cyclic(7)), circulant(w))


def double_cosets(group, subgroup):
    seen = {
        frozenset(group.table[group.table[np.ix_(subgroup, [u])][:, 0]][:, subgroup].ravel().tolist())
        for u in range(group.order)
    }
    return len(seen)


@pytest.mark.parametrize(
    ("group", "subgroup"),
    [
        (S3, [0, 1]),
        (D4, [0, 4]),
        (D4, [0, 2]),
        (S4, [g for g in range(24) if S4.points[g, 0] == 0]),
        (S4, [g for g in range(24) if set(S4.points[g, :2]) == {0, 1}]),
        (C6, [0, 2, 4]),
    ],
)
def test_on_a_homogeneous_space_double_cosets_are_counted(group, subgroup):
    acting = coset_representation(group, subgroup)
    assert acting.degree * len(subgroup) == group.order
    assert len(equivariant_basis(acting)) == double_cosets(group, subgroup)


def test_cosets_partition_the_group_and_bad_subgroups_are_refused():
    assert np.array_equal(np.sort(left_cosets(D4, [0, 4]).ravel()), np.arange(8))
    for bad in ([0, 1], [], [0, 99], [-1]):
        with pytest.raises(ValueError, match="closed under products"):
            left_cosets(D4, bad)


def test_invariant_vectors_are_what_averaging_leaves():
    rep = skewed(direct_sum(S4.permuting(), sign(4), S4.permuting()), 7)
    vectors = invariant_basis(rep)
    mean = rep.mean(axis=0)
    assert len(vectors) == round(np.trace(mean)) == 2
    assert np.abs(vectors @ mean.T - vectors).max() < 1e-12
    assert invariant_basis(polygon(5)).shape == (0, 2)
    assert invariant_basis(polygon(5), method="null").shape == (0, 2)


def test_generators_alone_and_infinite_groups_are_enough():
    group = symmetric(4).permuting()
    some = group.matrices[list(group.generators)]
    assert len(equivariant_basis(some)) == 2
    turn = np.array([[[np.cos(1.0), -np.sin(1.0)], [np.sin(1.0), np.cos(1.0)]]])  # never comes back
    basis = equivariant_basis(turn)
    assert len(basis) == 2 and commutes(basis, turn, turn) < 1e-12
    shear = np.array([[[1.0, 1.0], [0.0, 1.0]]])
    assert len(equivariant_basis(shear)) == 2
    with pytest.raises(ValueError, match="closed under products"):
        equivariant_basis(shear, method="average")
    with pytest.raises(ValueError, match="not an integer"):
        expected_dimension(turn * 1.1)


def test_sixty_four_dimensions():
    group = dihedral(32)
    rep = group.acting_by(skewed(direct_sum(group.permuting(), group.permuting()), 0))
    basis = equivariant_basis(rep)
    assert basis.shape == (68, 64, 64) and commutes(basis, rep, rep) < 1e-10
    assert len(equivariant_basis(cyclic(64))) == 64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((cyclic(3), cyclic(4)), "one group"),
        ((cyclic(6), symmetric(3)), "one group"),
        ((np.eye(2)[None], trivial(2)), "matrix for each element"),
        ((np.ones((2, 3)),), "shape"),
        ((np.full((1, 2, 2), np.nan),), "finite"),
        ((cyclic(2), np.stack([np.eye(2), 2 * np.eye(2)])), "do not multiply"),
    ],
)
def test_bad_representations_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        equivariant_basis(*arguments)


def test_methods_that_do_not_apply_are_refused():
    with pytest.raises(ValueError, match="permutation matrices"):
        equivariant_basis(polygon(3), method="orbits")
    with pytest.raises(ValueError, match="method must be"):
        equivariant_basis(cyclic(3), method="magic")
    with pytest.raises(ValueError, match="too many"):
        equivariant_basis(np.random.default_rng(0).standard_normal((1, 70, 70)))
    with pytest.raises(ValueError, match="numbers"):
        equivariant_basis(trivial(1, 200))
    with pytest.raises(ValueError, match="one number of matrices"):
        direct_sum(trivial(2), trivial(3))
    with pytest.raises(ValueError, match="at least one"):
        tensor_product()


def test_matrices_that_rounding_has_blurred_are_refused():
    """With entries up to 1e7 the answer would be a guess: five maps where there are eight."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((8, 8)))[0] for _ in range(2))
    rep = direct_sum(S4.permuting(), S4.permuting())
    for spread, refused in ((1e4, False), (1e8, True)):
        S = left @ np.diag(np.geomspace(1, spread, 8)) @ right
        blurred = S @ rep @ np.linalg.inv(S)
        if refused:
            with pytest.raises(ValueError, match="badly conditioned"):
                equivariant_basis(blurred)
            with pytest.raises(ValueError, match="badly conditioned"):
                equivariant_basis(blurred, method="null")
        else:
            assert len(equivariant_basis(blurred)) == 8


def test_all_elements_given_as_generators_change_nothing():
    """Hundreds of elements carry a pair to the same place; counting them must not wrap around."""
    group = symmetric(6).permuting()
    basis = equivariant_basis(group.matrices)
    assert len(basis) == 2 and np.allclose(basis, equivariant_basis(group))
