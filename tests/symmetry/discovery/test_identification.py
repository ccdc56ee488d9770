"""Naming groups: isomorphisms against trying all bijections, all groups of small order told apart."""

import itertools

import numpy as np
import pytest

from pindown.symmetry import cyclic, dihedral, pyritohedral, quaternion, symmetric, tetrahedral
from pindown.symmetry.axioms import check_table
from pindown.symmetry.discovery import identify, isomorphism, known_groups, product_table

# How many groups there are of orders 1 to 15.
NUMBERS = [1, 1, 1, 2, 1, 2, 1, 5, 2, 2, 1, 5, 1, 2, 1]


@pytest.mark.parametrize("order", range(1, 16))
def test_all_groups_of_small_order_are_known_and_differ(order):
    groups = known_groups(order)
    assert len(groups) == NUMBERS[order - 1]
    for one, two in itertools.combinations(groups, 2):
        assert isomorphism(one.table, two.table) is None


@pytest.mark.parametrize("order", [16, 20, 24, 36, 48, 60])
def test_larger_tables_are_groups_and_no_name_is_given_twice(order):
    groups = known_groups(order)
    for group in groups:
        check_table(group.table)
    if order <= 24:
        for one, two in itertools.combinations(groups, 2):
            assert isomorphism(one.table, two.table) is None


def by_trying_all(a, b):
    n = len(a)
    images = (np.array((0, *rest)) for rest in itertools.permutations(range(1, n)))
    return any((image[a] == b[np.ix_(image, image)]).all() for image in images)


def test_isomorphism_agrees_with_trying_all_bijections():
    tables = [group.table for order in (4, 6) for group in known_groups(order)] + [symmetric(3).table]
    for a, b in itertools.product(tables, repeat=2):
        if len(a) == len(b):
            assert (isomorphism(a, b) is not None) == by_trying_all(a, b)


@pytest.mark.parametrize(
    ("group", "name"),
    [
        (dihedral(6), "D6"),
        (tetrahedral(), "T"),
        (pyritohedral(), "Th"),
        (quaternion(), "Q8"),
        (symmetric(4), "S4"),
    ],
)
def test_a_shuffled_table_is_recognised(group, name):
    shuffle = np.r_[0, 1 + np.random.default_rng(0).permutation(group.order - 1)]
    inverse = np.argsort(shuffle)
    table = shuffle[group.table[np.ix_(inverse, inverse)]]
    known, image = identify(table)
    assert known.name == name
    assert (image[known.table] == table[np.ix_(image, image)]).all()


def test_the_pyritohedral_group_has_24_elements_and_its_rotations_12():
    printed = 12
    assert pyritohedral().order == 24 == 2 * printed
    assert tetrahedral().order == 12
    assert (
        isomorphism(pyritohedral().table, product_table(tetrahedral().table, cyclic(2).table))
        is not None
    )


def test_a_group_without_a_name_is_none():
    # order 27, exponent three, not abelian: none of the families
    triples = list(itertools.product(range(3), repeat=3))
    index = {triple: number for number, triple in enumerate(triples)}
    table = [
        [index[(a + d) % 3, (b + e) % 3, (c + f + a * e) % 3] for d, e, f in triples]
        for a, b, c in triples
    ]
    assert identify(table) is None
