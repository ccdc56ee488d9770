"""Ordering cones: the checker against all pairs of vertices, and the generator against the checker."""

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest

from pindown.circuits.boolean import (
    common_order,
    cone_members,
    random_restricted_network,
    vertices,
    weight_restriction,
)
from pindown.network import ReluNetwork


def agree_naively(vectors):
    """No two vectors order two vertices in opposite ways."""
    values = [
        [sum(a * s for a, s in zip(w, x, strict=True)) for x in vertices(len(w)).tolist()]
        for w in vectors
    ]
    return not any(
        (one[u] - one[v]) * (two[u] - two[v]) < 0
        for one, two in combinations(values, 2)
        for u, v in combinations(range(len(one)), 2)
    )


def check_order(vectors, order):
    assert sorted(order) == list(range(2 ** len(vectors[0])))
    for w in vectors:
        values = [
            sum(a * s for a, s in zip(w, x, strict=True)) for x in vertices(len(w))[list(order)].tolist()
        ]
        assert values == sorted(values)


def check_violation(vectors, found):
    (falling, rising), (u, v) = found.gates, found.pair
    step = np.subtract(v, u)
    assert np.dot(vectors[falling], step) < 0 < np.dot(vectors[rising], step)


@pytest.mark.parametrize("m", range(1, 6))
def test_checker_agrees_with_all_pairs(m):
    rng = np.random.default_rng(m)
    verdicts = []
    for _ in range(40):
        vectors = rng.integers(-2, 3, (rng.integers(1, 4), m)).tolist()
        found = common_order(vectors)
        verdicts.append(found.holds)
        assert found.holds == agree_naively(vectors)
        if found.holds:
            check_order(vectors, found.order)
        else:
            check_violation(vectors, found)
    assert len(set(verdicts)) == 2


def test_two_bits_against_all_permutations():
    """The definition itself: some permutation of the four vertices suits all vectors."""
    rng = np.random.default_rng(0)
    cube = vertices(2).astype(int)
    for _ in range(60):
        vectors = rng.integers(-2, 3, (3, 2))
        values = cube @ vectors.T
        exists = any((np.diff(values[list(s)], axis=0) >= 0).all() for s in permutations(range(4)))
        assert common_order(vectors.tolist()).holds == exists


@pytest.mark.parametrize("m", range(1, 6))
def test_positive_multiples_pass_and_opposites_fail(m):
    rng = np.random.default_rng(m)
    for _ in range(10):
        w = rng.standard_normal(m)
        exact = [Fraction(x) for x in w]
        assert common_order([exact, [3 * x for x in exact], [x / 7 for x in exact], [0] * m]).holds
        found = common_order([w, -w])
        assert not found.holds and "opposite" in repr(found)
    assert common_order([[0] * m, [0] * m]).holds


def test_printed_remark_cones_are_not_disjoint():
    """Mukherjee 2020, remark after Definition 12: cones meet in their faces."""
    one, two, shared = [1, 2], [2, 1], [1, 1]
    assert not common_order([one, two]).holds
    assert common_order([one, shared]).holds and common_order([two, shared]).holds


def test_rounding_does_not_decide():
    # In float64, 1e16 + 1 - 1e16 is 0, and the vectors would seem to tie.
    vectors = [[1e16, 1.0], [-1e16, 1.0], [0, 1]]
    assert not common_order(vectors).holds
    assert common_order([[10**30, 1], [10**30, 2]]).holds


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_members_are_all_that_agree_with_the_reference(m):
    rng = np.random.default_rng(m)
    reference = rng.standard_normal(m)
    members = {tuple(row) for row in cone_members(reference, 2).tolist()}
    candidates = np.stack(np.meshgrid(*[range(-2, 3)] * m), axis=-1).reshape(-1, m).tolist()
    expected = {tuple(w) for w in candidates if common_order([reference.tolist(), w]).holds}
    assert members == expected and (0,) * m in members


def test_weight_restriction_names_what_is_broken():
    def net(bottom):
        return ReluNetwork.from_layers([(bottom, np.zeros(2)), ([[1.0, 1.0]], [0])])

    good = net([[1.0, 2, 0, 1], [1, 3, 1, 1]])
    assert weight_restriction(good, 3).holds
    assert weight_restriction(good.as_fractions(), 3).holds
    assert "size 3 > 2" in repr(weight_restriction(good, 2))
    assert "size 3 > 2" in repr(weight_restriction(net([[-1.0, -2, 0, -1], [-1, -3, -1, -1]]), 2))
    assert "not whole" in repr(weight_restriction(net([[0.5, 2, 0, 1], [1, 3, 1, 1]]), 3))
    assert "weights of x" in repr(weight_restriction(net([[1.0, 2, 0, 1], [2, 1, 1, 1]]), 3))
    assert "weights of y" in repr(weight_restriction(net([[1.0, 2, 0, 1], [1, 3, 1, -1]]), 3))


@pytest.mark.parametrize("seed", range(5))
def test_generated_networks_are_restricted(seed):
    rng = np.random.default_rng(seed)
    for m in (1, 4, 6):
        net = random_restricted_network(m, (5, 3), 2, rng)
        assert net.widths == (2 * m, 5, 3, 1) and weight_restriction(net, 2).holds
        assert net.layers[0].weight[:, :m].any(axis=1).all()
        assert net.layers[0].weight[:, m:].any(axis=1).all()


def test_bad_input():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="equal length"):
        common_order([])
    with pytest.raises(ValueError, match="equal length"):
        common_order([[1, 2], [1]])
    with pytest.raises(ValueError, match="at most 16"):
        common_order([[1] * 17])
    with pytest.raises(ValueError, match="finite"):
        common_order([[float("nan"), 1]])
    with pytest.raises(ValueError, match="too many"):
        cone_members(rng.standard_normal(12), 5)
    with pytest.raises(ValueError, match="finite numbers"):
        cone_members([np.inf, 1], 1)
    with pytest.raises(ValueError, match="2m inputs"):
        weight_restriction(ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])]), 1)
    with pytest.raises(ValueError, match="bound must be an integer of at least 1"):
        random_restricted_network(2, (3,), 0, rng)
    with pytest.raises(ValueError, match="hidden widths"):
        random_restricted_network(2, (), 1, rng)
