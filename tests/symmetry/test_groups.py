"""Groups satisfy their axioms, damaged tables do not, and generated groups have the right order."""

import itertools

import numpy as np
import pytest

from pindown.symmetry import cyclic, dihedral, symmetric
from pindown.symmetry.axioms import check_table, element_orders, is_abelian
from pindown.symmetry.constructions import (
    alternating,
    commute_on,
    direct_product,
    generate,
    named_groups,
    octahedral,
    pyritohedral,
    quaternion,
    tetrahedral,
)
from pindown.symmetry.families import Window
from pindown.symmetry.groups import from_permutations

BUILT_IN = [
    cyclic(1), cyclic(6), dihedral(1), dihedral(5), symmetric(1), symmetric(4), tetrahedral(),
    pyritohedral(), octahedral(), quaternion(), alternating(5),
    direct_product(cyclic(2), symmetric(3)), generate([(1, 2, 3, 0), (3, 2, 1, 0)]),
]  # fmt: skip


@pytest.mark.parametrize("group", BUILT_IN, ids=lambda group: group.name)
def test_all_axioms_hold_by_brute_force(group):
    table = group.verify().table
    a, b, c = (np.arange(group.order)[part] for part in np.ix_(*[range(group.order)] * 3))
    if group.order <= 24:
        assert (table[table[a, b], c] == table[a, table[b, c]]).all()
    assert (table[np.arange(group.order), group.inverses] == 0).all()
    assert (table[group.inverses, np.arange(group.order)] == 0).all()


@pytest.mark.parametrize("group", BUILT_IN[:-4], ids=lambda group: group.name)
def test_matrices_multiply_as_the_table_says(group):
    matrices = group.matrices
    products = np.einsum("aij,bjk->abik", matrices, matrices)
    assert np.abs(products - matrices[group.table]).max() < 1e-12


def test_generators_reach_everything():
    for group in BUILT_IN:
        reached = {0}
        while True:
            more = reached | {int(group.table[i, s]) for i in reached for s in group.generators}
            if more == reached:
                break
            reached = more
        assert len(reached) == group.order


def test_every_damaged_entry_is_rejected():
    table = symmetric(3).table
    rng, rejected = np.random.default_rng(0), 0
    for i, j in itertools.product(range(6), repeat=2):
        damaged = table.copy()
        damaged[i, j] = (table[i, j] + rng.integers(1, 6)) % 6
        with pytest.raises(ValueError, match=r"no identity|no inverses|not associative"):
            check_table(damaged)
        rejected += 1
    assert rejected == 36


def test_latin_squares_that_are_no_groups_are_rejected():
    # The smallest loop that is no group has order 5: every element occurs once in each row and column.
    loop = [[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 4, 0, 1, 3], [3, 2, 4, 0, 1], [4, 3, 1, 2, 0]]
    with pytest.raises(ValueError, match="not associative"):
        check_table(loop)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0, 1], [1, 2]], "not closed"),
        ([[1, 0], [0, 1]], "no identity"),
        ([[0, 1, 2]], "holds integers"),
        ([[0.0]], "holds integers"),
        ([], "holds integers"),
    ],
)
def test_tables_that_are_none_are_refused(table, message):
    with pytest.raises(ValueError, match=message):
        check_table(table)


def test_printed_order_of_the_pyritohedral_group_is_that_of_the_rotations_alone():
    """The source says 12; the group with its reflections has 24 elements, its rotations are 12."""
    whole, rotations = pyritohedral(), tetrahedral()
    determinants = np.linalg.det(whole.matrices).round(9)
    assert whole.order == 24 and rotations.order == 12
    assert (determinants == 1).sum() == 12 and (determinants == -1).sum() == 12
    # It is the product of the rotations with the inversion.
    assert sorted(element_orders(whole.table)) == sorted(
        element_orders(direct_product(rotations, cyclic(2)).table)
    )


def test_element_orders_tell_groups_of_one_order_apart():
    found = {group.name: sorted(element_orders(group.table)) for group in named_groups(8)}
    assert found["Q8"] == [1, 2, 4, 4, 4, 4, 4, 4] and found["D4"] == [1, 2, 2, 2, 2, 2, 4, 4]
    assert is_abelian(cyclic(8).table) and not is_abelian(quaternion().table)


def test_the_table_by_rows_is_the_table_by_composition():
    group = symmetric(4)
    points = group.points
    composed = points[:, points]  # g[h[i]]
    expected = np.array(
        [[np.flatnonzero((points == p).all(axis=1))[0] for p in row] for row in composed]
    )
    assert (group.table == expected).all()
    assert from_permutations(points.tolist()).generators != ()


def test_permutations_that_are_not_closed_or_not_generated_are_refused():
    with pytest.raises(ValueError, match="not closed"):
        from_permutations([(0, 1, 2), (1, 2, 0)])
    with pytest.raises(ValueError, match="reach 3 of 6"):
        from_permutations(list(itertools.permutations(range(3))), generators=(3,))
    with pytest.raises(ValueError, match="2 labels for 6"):
        from_permutations(list(itertools.permutations(range(3))), labels=["a", "b"])


def test_generated_groups_are_the_known_ones():
    turn, mirror = np.array([[0, -1], [1, 0]]), np.diag([1, -1])
    assert generate([turn, mirror]).order == 8
    sixth = 2 * np.pi / 6
    rotation = [[np.cos(sixth), -np.sin(sixth)], [np.sin(sixth), np.cos(sixth)]]
    assert sorted(element_orders(generate([rotation]).table)) == [1, 2, 3, 3, 6, 6]
    assert generate([(1, 0, 2, 3, 4), (1, 2, 3, 4, 0)]).order == 120
    for n, order in ((3, 3), (4, 12), (5, 60)):  # the even permutations, of determinant 1
        even = alternating(n).permuting().matrices
        assert len(even) == order and np.linalg.det(even) == pytest.approx(1)


@pytest.mark.parametrize(
    ("generators", "message"),
    [
        ([[[np.cos(1), -np.sin(1)], [np.sin(1), np.cos(1)]]], "more than 100 elements"),
        ([(1, 1)], "must be a permutation"),
        ([1.0, 2.0], "permutations"),
        ([[[np.nan]]], "finite"),
    ],
)
def test_what_generates_no_finite_group_is_refused(generators, message):
    with pytest.raises(ValueError, match=message):
        generate(generators, largest=100)


@pytest.mark.parametrize("acting", ["sum", "tensor"])
def test_products_act_by_both_groups(acting):
    product = direct_product(cyclic(2), dihedral(3).permuting(), acting).verify()
    assert product.degree == (5 if acting == "sum" else 6)
    a, b = np.array([1.0, 2.0]), np.array([3.0, 5.0, 7.0])
    x = np.concatenate([a, b]) if acting == "sum" else np.outer(a, b).ravel()
    moved_a, moved_b = cyclic(2).act(1, a), dihedral(3).permuting().act(4, b)
    expected = (
        np.concatenate([moved_a, moved_b]) if acting == "sum" else np.outer(moved_a, moved_b).ravel()
    )
    assert np.allclose(product.act(1 * 6 + 4, x), expected)


def test_products_of_commuting_actions_are_actions():
    shift = cyclic(4)
    sign = cyclic(2).acting_by(lambda s, X: -X if s else X)
    both, x = direct_product(shift, sign, "together"), np.array([[1.0, 2.0, 3.0, 4.0]])
    assert commute_on(shift, sign, x) == 0.0 and commute_on(shift, dihedral(4).permuting(), x) > 0
    for i, j in itertools.product(range(8), repeat=2):
        assert np.array_equal(both.act(i, both.act(j, x)), both.act(int(both.table[i, j]), x))
    with pytest.raises(ValueError, match="at most 5040"):
        direct_product(symmetric(7), cyclic(2))
    with pytest.raises(ValueError, match="'sum'"):
        direct_product(shift, sign, "twice")


def test_the_first_matrix_must_be_the_identity_and_all_must_be_real():
    """Zeros and projections multiply as any group does, and are no representation."""
    for idempotent in (np.zeros((2, 2)), np.diag([1.0, 0.0])):
        with pytest.raises(ValueError, match="first matrix must be the identity"):
            cyclic(3).acting_by([idempotent] * 3)
    with pytest.raises(ValueError, match="real here"):
        cyclic(4).acting_by(np.array([[[1j**k]] for k in range(4)]))


@pytest.mark.parametrize("group", [dihedral(5), symmetric(4), quaternion().regular()])
def test_the_regular_action_is_that_of_its_matrices(group):
    X = np.random.default_rng(0).standard_normal((3, group.order))
    for g in range(group.order):
        assert np.array_equal(group.act(g, X), X @ group.matrices[g].T)


def test_large_groups_act_without_matrices_and_refuse_to_make_them():
    x = np.arange(1500.0)
    assert np.array_equal(cyclic(1500).act(7, x), np.roll(x, 7))
    with pytest.raises(ValueError, match="too many to hold"):
        dihedral(1000).permuting()


def test_fractions_are_no_permutations_and_no_members_of_a_window():
    with pytest.raises(ValueError, match="must be a permutation"):
        from_permutations([(0, 1), (1.2, 0.3)])
    with pytest.raises(TypeError):
        Window.of(cyclic(4), [1.7])
