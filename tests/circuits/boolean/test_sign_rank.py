"""Sign-rank between Forster's bound and the rank, and the rank without rounding."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.linalg import hadamard

from pindown.circuits.boolean import (
    distinct_rows,
    exact_rank,
    forster_lower,
    output_matrix,
    random_restricted_network,
    row_blocks,
    sign_rank_bounds,
    sign_rank_upper,
)
from pindown.network import ReluNetwork


def random_network(seed):
    rng = np.random.default_rng(seed)
    return random_restricted_network(4, (3, 4), 2, rng)


def test_rank_of_a_block_constant_matrix_is_not_the_number_of_blocks():
    rng = np.random.default_rng(0)
    M = np.repeat(np.repeat(rng.integers(-9, 10, (3, 5)), 4, axis=0), 2, axis=1)
    assert row_blocks(M) * row_blocks(M.T) == 15 and exact_rank(M) <= 3


@pytest.mark.parametrize("seed", range(8))
def test_exact_rank_agrees_with_numpy(seed):
    rng = np.random.default_rng(seed)
    r = int(rng.integers(1, 6))
    M = rng.integers(-3, 4, (9, r)) @ rng.integers(-3, 4, (r, 12))
    assert exact_rank(M) == np.linalg.matrix_rank(M) == exact_rank(M.T)
    assert exact_rank([[Fraction(1, 3), Fraction(2, 3)], [1, 2 + Fraction(1, 10**30)]]) == 2


def test_rank_zero_and_one_entry():
    assert exact_rank(np.zeros((3, 4))) == 0 and exact_rank([[5]]) == 1


@pytest.mark.parametrize("seed", range(15))
def test_forster_is_below_the_rank(seed):
    rng = np.random.default_rng(seed)
    M = rng.integers(-2, 3, (8, 8))
    bounds = sign_rank_bounds(M)
    assert forster_lower(M) <= bounds.lower <= bounds.upper <= exact_rank(M) + 1
    net = random_network(seed)
    F = output_matrix(net)
    assert forster_lower(F) <= sign_rank_upper(F) <= min(distinct_rows(F), distinct_rows(F.T))


def test_forster_on_hadamard_matrices():
    for k in range(1, 6):
        assert forster_lower(hadamard(2**k)) == pytest.approx(2 ** (k / 2))


def test_two_by_two_sign_ranks():
    """All sixteen sign matrices: the sign-rank is 1 exactly if the product of the signs is +."""
    for a, b, c, d in product((1, -1), repeat=4):
        assert sign_rank_upper([[a, b], [c, d]]) == (1 if a * b * c * d == 1 else 2)


def test_zero_entries_count_as_positive():
    # Rank 1 as it stands, but the signs are those of [[+, -], [+, +]]: sign-rank 2.
    M = [[0, -1], [0, 0]]
    assert exact_rank(M) == 1 and sign_rank_upper(M) == 2
    for a, b, c, d in product((1, 0, -1), repeat=4):
        signs = [1 if v >= 0 else -1 for v in (a, b, c, d)]
        assert sign_rank_upper([[a, b], [c, d]]) >= (1 if np.prod(signs) == 1 else 2)
    assert sign_rank_upper([[0, -1], [-1, 0]]) == 1


def test_output_matrix_in_rationals():
    net = random_restricted_network(3, (4, 2), 2, np.random.default_rng(0))
    exact = output_matrix(net.as_fractions())
    assert exact.tolist() == output_matrix(net).tolist()
    assert distinct_rows(exact) == distinct_rows(output_matrix(net))
    assert sign_rank_upper(exact) == sign_rank_upper(output_matrix(net))


def test_bad_input():
    odd = ReluNetwork.from_layers([([[1.0, 1, 1]], [0])])
    with pytest.raises(ValueError, match="even"):
        output_matrix(odd)
    with pytest.raises(ValueError, match="at most 20"):
        output_matrix(ReluNetwork.from_layers([(np.ones((1, 22)), [0])]))
    with pytest.raises(TypeError, match="real numbers"):
        distinct_rows([["a"]])
    for empty in ([], [[]], [1, 2]):
        with pytest.raises(ValueError, match="at least one entry"):
            distinct_rows(empty)
    with pytest.raises(ValueError, match="128"):
        exact_rank(np.random.default_rng(0).standard_normal((150, 150)))
    for function in (sign_rank_upper, forster_lower, distinct_rows):
        with pytest.raises(ValueError, match="finite"):
            function([[np.nan, 1]])
