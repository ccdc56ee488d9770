"""Few different rows under the weight restriction, at any depth, and what follows from it."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import hadamard

from pindown.circuits.boolean import (
    blocks_of_sum,
    distinct_rows,
    distinct_rows_bound,
    forster_lower,
    min_bottom_width,
    output_matrix,
    random_restricted_network,
    row_blocks,
    sign_rank_bound,
    sign_rank_upper,
    size_bound,
    weight_restriction,
)
from pindown.network import ReluNetwork


def random_case(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 7))
    bound = int(rng.integers(1, 4)) if m < 6 else 2
    widths = tuple(rng.integers(1, 6, size=rng.integers(1, 4)).tolist())
    return random_restricted_network(m, widths, bound, rng), m, bound


@pytest.mark.parametrize("seed", range(100))
def test_restricted_circuits_have_few_different_rows(seed):
    """Mukherjee 2020, appendix 2.E, sharpened: 1 + w_1 m W, for depths 2 to 4 alike."""
    net, m, bound = random_case(seed)
    F = output_matrix(net)
    assert F.shape == (2**m, 2**m) and 2 <= net.depth <= 4
    limit = sign_rank_bound(net.widths[1], m, bound)
    sharp = distinct_rows_bound(net)
    assert distinct_rows(F) <= sharp <= limit
    assert distinct_rows(F.T) <= limit
    order = list(weight_restriction(net, bound).x_order.order)
    assert row_blocks(F[order]) <= sharp  # and equal rows are neighbours: the blocks of the proof


def test_without_the_cone_condition_the_bound_fails():
    # Gate i sees x_i alone: all 2^m rows differ, however small the weights.
    m = 5
    bottom = np.hstack([np.eye(m), np.eye(m)])
    net = ReluNetwork.from_layers([(bottom, np.ones(m)), ([4.0 ** np.arange(m)], [0])])
    restriction = weight_restriction(net, 1)
    assert not restriction.holds and restriction.whole and restriction.largest == 1
    assert distinct_rows(output_matrix(net)) == 2**m > sign_rank_bound(m, m, 1)
    with pytest.raises(ValueError, match="order all x alike"):
        distinct_rows_bound(net)


def test_printed_bound_grows_with_depth_and_ours_does_not():
    """Mukherjee 2020, Theorem 2.5.5: upper layers do not add rows, and their widths do not multiply."""
    for seed in range(10):
        net, m, bound = random_case(seed)
        rng = np.random.default_rng(seed)
        ours = sign_rank_bound(net.widths[1], m, bound)
        for depth in (2, 3, 4, 5):
            widths = [net.widths[1], *[4] * (depth - 2), 1]
            upper = [(rng.integers(-3, 4, (b, a)), rng.integers(-3, 4, b)) for a, b in pairwise(widths)]
            F = output_matrix(ReluNetwork.from_layers([net.layers[0], *upper]))
            assert sign_rank_upper(F) <= min(distinct_rows(F), distinct_rows(F.T)) <= ours
            printed = sign_rank_bound(widths[:-1], m, bound, variant="as_printed").value
            assert printed >= 16 ** (depth - 2) * (ours - 1)


def test_printed_bound_misses_what_ours_excludes():
    """One restricted bottom gate with weights up to 1 cannot compute the inner product of six bits.

    Nor with any number of layers above. The printed bound, constants aside, leaves it open at depth 2
    already, and the more so the deeper the circuit.
    """
    m = 6
    inner_product = hadamard(2**m)
    assert forster_lower(inner_product) > 7 == sign_rank_bound(1, m, 1)
    for widths in ((1,), (1, 4), (1, 4, 4)):
        printed = sign_rank_bound(widths, m, 1, variant="as_printed").value
        assert printed > sign_rank_upper(inner_product[:8]) == 8
    # So the printed size (d-1) (2^(m^(1/8)) / (m W))^(1/(d-1)) fades with depth; ours knows no depth.
    sizes = [size_bound(2**48, d, 1, variant="as_printed").value for d in (2, 3, 9)]
    np.testing.assert_allclose(sizes, [2**16, 2 * 2**8, 8 * 2**2])
    assert size_bound(2**20, 2, 1).value == 2 ** (32 - 20)  # the fourth root of the proof


@pytest.mark.parametrize("seed", range(10))
def test_blocks_of_a_sum(seed):
    """Mukherjee 2020, Claim 5."""
    rng = np.random.default_rng(seed)
    w, D, M = int(rng.integers(1, 5)), int(rng.integers(1, 5)), 20
    total = np.zeros((M, M), dtype=int)
    for _ in range(w):
        rows, columns = (
            np.searchsorted(
                np.sort(rng.choice(np.arange(1, M), D - 1, replace=False)), range(M), "right"
            )
            for _ in range(2)
        )
        total += rng.integers(-9, 10, (D, D))[rows][:, columns]
    assert row_blocks(total) <= blocks_of_sum(w, D) and row_blocks(total.T) <= blocks_of_sum(w, D)


def test_claim_five_is_attained():
    one = np.repeat([[0], [1]], [3, 5], axis=0)
    two = np.repeat([[0], [1]], [5, 3], axis=0)
    assert row_blocks(one + two) == blocks_of_sum(2, 2) == 3
    for n, blocks in ((1, 4), (3, 2), (4, 3)):  # every matrix changes at places of its own
        rows = np.arange(n * blocks)
        parts = [sum((rows >= j * n + i + 1).astype(int) for j in range(blocks - 1)) for i in range(n)]
        assert all(row_blocks(part[:, None]) == blocks for part in parts)
        assert row_blocks(sum(parts)[:, None]) == blocks_of_sum(n, blocks)


def test_bottom_width_of_the_function():
    assert min_bottom_width(8, 1) == 0.0  # says nothing for small n
    n, bound = 10**9, 10  # n^(1/3) / 81 - 3 = 9.35
    m = n * 1030
    assert min_bottom_width(n, bound) == pytest.approx((2 ** (1000 / 81 - 3) - 1) / (m * bound))
    with pytest.raises(ValueError, match="overflows"):
        min_bottom_width(10**16, 1)
    with pytest.raises(ValueError, match="overflows"):
        size_bound(2**90, 2, 1, variant="as_printed")


def test_bad_input():
    with pytest.raises(ValueError, match="whole weights"):
        distinct_rows_bound(ReluNetwork.from_layers([([[0.5, 1]], [0]), ([[1.0]], [0])]))
    with pytest.raises(ValueError, match="integers of at least 1"):
        sign_rank_bound(0, 1, 1)
    with pytest.raises(ValueError, match="integer of at least 1"):
        blocks_of_sum(0, 1)
    with pytest.raises(ValueError, match="integer of at least 1"):
        sign_rank_bound([], 1, 1, variant="as_printed")
    with pytest.raises(ValueError, match="depth"):
        size_bound(4, 1, 1)
