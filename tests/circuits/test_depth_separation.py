"""Lower bounds on the size of shallow networks: against exact counts, and the printed versions."""

from fractions import Fraction
from math import ceil, comb

import numpy as np
import pytest

from pindown.box import Box
from pindown.circuits.arithmetic import size
from pindown.circuits.depth_separation import (
    composed_zigzags,
    depth_gap,
    depth_gaps,
    integer_root,
    power_gap,
)
from pindown.circuits.piecewise_1d import PiecewiseLinear1D, compile_1d
from pindown.circuits.zonotopes import sample_extremal, zonotope_network
from pindown.geometry.counts.bounds import min_size
from pindown.geometry.counts.piece_families import zonotope_min_size, zonotope_vertex_count
from pindown.geometry.exact.complex import exact_complex


@pytest.mark.parametrize(("w", "k"), [(2, 6), (3, 4), (5, 3), (7, 5)])
def test_bounds_fall_with_depth_and_allow_the_deep_network(w, k):
    gaps = depth_gaps(w, k)
    least = [gap.least for gap in gaps]
    assert least == sorted(least, reverse=True)
    assert least[-1] <= w * k == gaps[-1].size
    for gap in gaps:
        k_small = gap.shallow_layers
        printed = 0.5 * k_small * w ** (k / k_small) - 1
        assert gap.as_printed == max(0, ceil(printed - 1e-9)) <= gap.least


@pytest.mark.parametrize(("w", "k"), [(2, 2), (2, 4), (3, 3)])
def test_one_hidden_layer_needs_no_more_than_the_bound(w, k):
    """For k' = 1 the bound is met: the compiler for one variable reaches it."""
    f = PiecewiseLinear1D.from_network(composed_zigzags([[Fraction(i, w) for i in range(1, w)]] * k))
    gap = depth_gap(w, k, 1)
    assert f.n_pieces == gap.pieces and size(compile_1d(f)) == gap.least == gap.pieces - 1


@pytest.mark.parametrize("k", [2, 3, 4])
def test_printed_corollary_lacks_a_power(k):
    """Mukherjee 2020, Corollary 2.3.3 with epsilon = 1 must be Corollary 2.3.4; k * k^eps is not."""
    special = Fraction(k ** (k + 1), 2) - 1
    printed = Fraction(k * k**1, 2) - 1
    corrected = Fraction(k * k ** (k**1), 2) - 1
    assert corrected == special != printed
    gap = power_gap(k, 1)
    assert gap.as_printed == ceil(special) <= gap.least
    assert (gap.layers, gap.size) == (k**2, k**3)


def test_fractional_powers():
    gap = power_gap(4, Fraction(1, 2))  # 4^(3/2) = 8 layers of width 4
    assert (gap.layers, gap.size, gap.shallow_layers) == (8, 32, 4)
    assert gap.as_printed == 4 * 4**2 // 2 - 1
    assert power_gap(10).least > 9 * 10**10 and power_gap(10).size == 1000


def test_printed_bound_for_zonotopes_rests_on_a_lemma_for_one_variable():
    """Mukherjee 2020, Theorem 2.3.10 (ii): "p pieces need k p^(1/k) / 2 - 1 ReLUs" for n variables.

    With n > 1 that is false already for k = 1 and the support function of a zonotope.
    """
    n, m = 3, 8
    B = sample_extremal(n, m, np.random.default_rng(0))
    net = zonotope_network(B)
    pieces = exact_complex(net, Box.cube(n, -1, 1)).n_pieces
    assert pieces == zonotope_vertex_count(n, m) == 2 * sum(comb(m - 1, i) for i in range(n)) == 58
    demanded = pieces / 2 - 1
    assert net.size == 16 < demanded == 28
    # The counts for n variables are right: they ask for no more than the network has.
    assert min_size(pieces, 1, in_features=n) <= net.size
    for k in (1, 2, 3):
        for w in (2, 3, 4):
            for shallow in range(1, k + 2):
                bound = zonotope_min_size(n, k, w, m, hidden_layers=shallow)
                assert bound >= min_size(2 * w**k, shallow)  # on a line through the origin
                if shallow == k + 1:
                    assert bound <= 2 * m + w * k


@pytest.mark.parametrize("degree", [1, 2, 3, 7])
def test_integer_roots(degree):
    for number in [1, 2, 7, 8, 9, 10**6, 10**30 + 1]:
        root = integer_root(number, degree)
        assert (root - 1) ** degree < number <= root**degree


def test_printing_large_numbers():
    text = str(power_gap(6))
    assert "216 ReLUs in 36 hidden layers" in text and "1.0e28 pieces" in text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: depth_gap(1, 2, 1), "width must be an integer of at least 2"),
        (lambda: depth_gap(2, 2, 3), "layers must be an integer of at least 3"),
        (lambda: depth_gap(2, 2, 0), "shallow_layers must be"),
        (lambda: power_gap(3, Fraction(1, 2)), "integer number of layers; got 3"),
        (lambda: power_gap(3, -1), "positive; got -1"),
        (lambda: power_gap(1), "k must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
