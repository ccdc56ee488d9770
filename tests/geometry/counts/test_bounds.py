"""Bounds on cells and sizes: attained where they can be, never exceeded, equal to plain search."""

from itertools import product

import numpy as np
import pytest

from pindown.box import Box
from pindown.geometry.counts.bounds import (
    max_pieces,
    max_pieces_1d,
    max_regions,
    min_size,
    zaslavsky,
)
from pindown.geometry.exact.complex import exact_complex, exact_count
from pindown.network import ReluNetwork
from tests.geometry.oracles import KINDS, cube, degenerate_network, random_network


def shares(total, parts):
    """All ways to give every part one or more."""
    return [s for s in product(range(1, total + 1), repeat=parts) if sum(s) == total]


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_hyperplanes_in_general_position_attain_zaslavsky(n, d):
    rng = np.random.default_rng(10 * n + d)
    W, far = rng.standard_normal((n, d)), Box.cube(d, -1e6, 1e6)
    layer = ReluNetwork.from_layers([(W, rng.standard_normal(n)), (np.ones((1, n)), [0])])
    assert exact_count(layer, far) == (zaslavsky(n, d), True)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_no_network_exceeds_the_bound(d):
    rng = np.random.default_rng(d)
    for seed in range(20):
        widths = tuple(rng.integers(1, 6, 2)) if d < 3 else tuple(rng.integers(1, 4, 2))
        net = random_network(rng, d, widths)
        if seed % 2:
            net = degenerate_network(KINDS[seed % len(KINDS)], d, rng, (3, 3))
        found = exact_complex(net, cube(d))
        assert found.n_pieces <= found.n_regions <= max_regions(d, net.hidden_widths)


def test_the_bound_is_attained_by_composed_folds():
    # |x| - 1 folded again and again: each layer of two units doubles; with a third it triples.
    zigzag = ReluNetwork.from_layers([([[1.0], [1], [1]], [0, -0.25, -0.5]), ([[4, -8, 6]], [0])])
    for k, net in ((1, zigzag), (2, zigzag @ zigzag)):
        assert exact_complex(net, ([0], [1])).n_pieces == 3**k <= max_regions(1, [3] * k) == 4**k
    assert exact_count(random_network(np.random.default_rng(0), 3, (1,)), cube(3)) == (
        max_regions(3, [1]),
        True,
    )


def test_a_narrow_layer_limits_the_layers_after_it():
    assert max_regions(5, [2, 10]) == 4 * zaslavsky(10, 2)
    rng = np.random.default_rng(0)
    for _ in range(10):
        found = exact_complex(random_network(rng, 3, (1, 6)), cube(3))
        assert found.n_regions <= max_regions(3, [1, 6]) == 2 * 7


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_equal_shares_are_best(n, k):
    for size in range(k, 10):
        best = max(max_regions(n, widths) for widths in shares(size, k))
        assert max_pieces(size, k, n) == best
        if n == 1:
            assert max_pieces(size, k, variant="as_printed") == max(
                max_pieces_1d(w) for w in shares(size, k)
            )


@pytest.mark.parametrize("k", range(1, 6))
def test_size_and_pieces_are_dual(k):
    for size in range(k, 16):
        for n in (1, 2, 3):
            assert min_size(max_pieces(size, k, n), k, n) == size
            assert min_size(max_pieces(size, k, n) + 1, k, n) == size + 1
        assert min_size(max_pieces(size, k, variant="as_printed"), k, variant="as_printed") == size


@pytest.mark.parametrize("k", range(1, 9))
def test_printed_trade_off_holds_though_its_derivation_does_not_give_it(k):
    derivation_is_weaker = False
    for size in range(k, 60):
        printed = (2 * size) ** k  # both sides times k^k: exact integers
        assert max_pieces(size, k, variant="as_printed") * k**k <= printed
        derivation_is_weaker |= (2 * (size + 1)) ** k > 2 * printed
        assert max_pieces(size, k) <= max_pieces(size, k, variant="as_printed")
    assert derivation_is_weaker == (k > 1)


def test_sharper_real_bounds_follow_from_the_integer_ones():
    for k in range(1, 6):
        for p in (1, 2, 10, 1000, 10**9):
            least = min_size(p, k)
            assert least >= min_size(p, k, variant="as_printed")
            assert (min_size(p, k, variant="as_printed") + 1) * (1 + 1e-12) >= k / 2 * (2 * p) ** (1 / k)
            assert (least + k) * (1 + 1e-12) >= k * p ** (1 / k)


def test_size_bound_of_large_counts_is_quick_and_exact():
    assert min_size(10**30, 1) == 10**30 - 1
    assert min_size(10**30, 2) == 2 * 10**15 - 2
    # One hidden layer in the plane: s lines make 1 + s + s (s - 1) / 2 parts.
    s = min_size(10**12, 1, in_features=2)
    assert zaslavsky(s, 2) >= 10**12 > zaslavsky(s - 1, 2)


def test_printed_bound_on_a_line_is_attained_by_one_layer_and_doubles_with_the_width_of_each_more():
    for w in (1, 2, 5):
        bends = ReluNetwork.from_layers([(np.ones((w, 1)), -np.arange(w)), (np.ones((1, w)), [0])])
        assert max_pieces_1d([w]) == exact_complex(bends, ([-1], [w])).n_pieces
        assert max_pieces_1d([w, 3]) == 2 * 3 * max_pieces_1d([w])
        assert max_pieces_1d([w, 3, 4]) == 2 * 4 * max_pieces_1d([w, 3])


def test_depth_pays():
    sizes = [min_size(4**6, k) for k in range(1, 7)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] <= 4 * 6  # six zigzags of width four have that many pieces


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: zaslavsky(-1, 2), "n_hyperplanes must be an integer of at least 0"),
        (lambda: max_regions(0, [3]), "in_features must be"),
        (lambda: max_regions(2, [3, 0]), "hidden_widths must be"),
        (lambda: max_pieces(2, 3), "need as many ReLUs"),
        (lambda: max_pieces(2, 3, variant="as_printed"), "need as many ReLUs"),
        (lambda: min_size(0, 3), "pieces must be"),
        (lambda: min_size(4, 0), "hidden_layers must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_widths_must_be_integers():
    with pytest.raises(TypeError, match="integer"):
        max_regions(2, [3.5])


def test_no_hidden_layer_is_one_region():
    assert max_regions(3, []) == max_pieces_1d([]) == 1
