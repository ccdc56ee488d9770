"""Maxima and minima: exact values, and every ReLU accounted for."""

from fractions import Fraction
from itertools import pairwise
from math import ceil, log2

import numpy as np
import pytest
from scipy.integrate import trapezoid

from pindown import ReluNetwork
from pindown.circuits.arithmetic import (
    alike,
    compose,
    depth,
    hidden_widths,
    linear_combination,
    network,
    size,
    stack,
)
from pindown.circuits.blocks import absolute_value, affine_network, triangle
from pindown.circuits.extrema import (
    max2,
    maximum,
    min2,
    minimum,
    rectified_maxima,
)


def random_net(rng, widths, exact):
    layers = [
        (
            [[Fraction(int(v), 3) for v in row] for row in rng.integers(-6, 7, (b, a))],
            [Fraction(int(v), 2) for v in rng.integers(-6, 7, b)],
        )
        for a, b in pairwise(widths)
    ]
    if exact:
        return network(layers, exact=True)
    return network([(np.array(W, float), np.array(b, float)) for W, b in layers], exact=False)


def points(rng, n, count=60):
    return [[Fraction(int(v), 5) for v in row] for row in rng.integers(-30, 31, (count, n))]


@pytest.mark.parametrize("m", range(1, 18))
@pytest.mark.parametrize("gates", [3, 4])
def test_extrema_of_affine_maps_are_exact_and_as_large_as_said(m, gates):
    rng = np.random.default_rng(m)
    nets = [random_net(rng, (3, 1), exact=True) for _ in range(m)]
    up, down = maximum(nets, gates=gates), minimum(nets, gates=gates)
    for x in points(rng, 3):
        values = [net(x)[0] for net in nets]
        assert up.network(x) == [max(values)] and down.network(x) == [min(values)]
    for found in (up, down):
        levels = ceil(log2(m))
        assert depth(found.network) == levels + 1
        assert size(found.network) == found.size == gates * (m - 1) + found.padding
        assert found.padding <= 2 * levels  # at most one number is passed on in each layer
        assert gates * (m - 1) + found.padding <= 4 * (2 * m - 1)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("m", [2, 3, 5, 8])
def test_extrema_of_networks_of_different_depths(m, exact):
    rng = np.random.default_rng(m)
    nets = [random_net(rng, (2, *[3] * int(rng.integers(0, 4)), 1), exact) for _ in range(m)]
    found = maximum(nets)
    deepest = max(depth(net) for net in nets)
    assert depth(found.network) == deepest + ceil(log2(m))
    assert found.input_gates == sum(size(net) for net in nets) and found.tree_gates == 4 * (m - 1)
    at_the_bottom = sum(2 * (deepest - depth(net)) for net in nets)
    assert found.padding == at_the_bottom + maximum([network([([[1]], [0])], exact=True)] * m).padding
    for x in points(rng, 2):
        if exact:
            assert found.network(x)[0] == max(net(x)[0] for net in nets)
        else:
            row = np.array(x, dtype=float)
            assert found.network(row)[0] == pytest.approx(max(net(row)[0] for net in nets), abs=1e-12)


def test_printed_size_of_a_maximum_leaves_out_the_padding():
    """Mukherjee 2020, Lemma 2.A.4: sum of sizes + 4 (2 m - 1) is too small if depths differ."""
    line = network([([[1]], [0])], exact=True)
    deep = line
    for _ in range(10):
        deep = compose(absolute_value(exact=True), deep)
    found = maximum([line, deep])
    printed = size(line) + size(deep) + 4 * (2 * 2 - 1)
    assert size(found.network) == 44 > printed == 32
    assert size(found.network) == size(deep) + 4 + found.padding and found.padding == 2 * 10
    # Ten hidden layers under the tree: the shallow branch must cross each of them, with two ReLUs since
    # its sign changes.
    assert found.network([-3]) == [3] and found.network([3]) == [3]


def test_small_blocks():
    for x, y in [(3, 5), (-1, -4), (2, 2), (0, -7)]:
        for gates in (3, 4):
            assert max2(gates=gates, exact=True)([x, y]) == [max(x, y)]
            assert min2(gates=gates, exact=True)([x, y]) == [min(x, y)]
            assert max2(gates=gates)([float(x), float(y)]).tolist() == [max(x, y)]
    assert size(max2()) == 4 and size(max2(gates=3)) == size(min2(gates=3)) == 3
    assert absolute_value(exact=True)([Fraction(-1, 3)]) == [Fraction(1, 3)]
    affine = affine_network([[1, Fraction(1, 3)], [0, -2]], [1, 0])
    assert affine([3, 6]) == [6, -12] and hidden_widths(affine) == (4,)
    assert isinstance(affine_network([[1.0]], [0]), ReluNetwork)


@pytest.mark.parametrize(("a", "w"), [(0, 1), (Fraction(1, 3), Fraction(1, 7)), (-5, 3)])
def test_triangle_is_a_tent_of_unit_area(a, w):
    tent = triangle(a, w)
    assert size(tent) == 3
    for t in (-2, -1, Fraction(-1, 2), 0, Fraction(1, 3), 1, 2):
        x = a + t * w
        assert tent([x])[0] == max(0, Fraction(1) / w - abs(x - a) / Fraction(w) ** 2)
    x = np.linspace(float(a - 2 * w), float(a + 2 * w), 4001)
    assert trapezoid(tent.to_network()(x[:, None]).ravel(), x) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("m", range(1, 9))
def test_rectified_maxima_have_the_depth_of_a_tree_with_a_zero(m):
    rng = np.random.default_rng(m)
    net = rectified_maxima(m, copies=2, exact=True)
    assert depth(net) == ceil(log2(m + 1)) + 1
    for x in points(rng, 2 * m, count=40):
        assert net(x) == [max(0, *x[:m]), max(0, *x[m:])]


def test_rational_sums_agree_with_the_float_calculus():
    rng = np.random.default_rng(0)
    first, second = (random_net(rng, widths, exact=True) for widths in ((2, 3, 2), (2, 2, 4, 2)))
    outer = random_net(rng, (2, 3, 1), exact=True)
    floats = [net.to_network() for net in (first, second, outer)]
    x = np.array([0.3, -1.7])
    exact_x = [Fraction(v) for v in x]
    together = [
        (linear_combination([2, Fraction(-1, 2)], [first, second]), 2 * floats[0] - 0.5 * floats[1]),
        (compose(outer, first), floats[2] @ floats[0]),
        (stack([first, second]), None),
    ]
    for exact, floating in together[:2]:
        assert [float(v) for v in exact(exact_x)] == pytest.approx(floating(x).tolist(), abs=1e-12)
        assert hidden_widths(exact) == floating.hidden_widths
    assert together[2][0](exact_x) == [*first(exact_x), *second(exact_x)]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: maximum([]), ValueError, "at least one network"),
        (lambda: maximum([affine_network([[1], [2]], [0, 0])]), ValueError, "one output each"),
        (lambda: maximum([3]), TypeError, "got int"),
        (lambda: affine_network([1, 2], [0, 0]), ValueError, "rows of one length"),
        (lambda: max2(gates=5), ValueError, "3 or 4; got 5"),
        (lambda: triangle(0, 0), ValueError, "positive; got 0"),
        (lambda: triangle(0, float("nan")), ValueError, "finite; got nan"),
        (lambda: affine_network([[1, 2], [3]], [0, 0]), ValueError, "rows of one length"),
        (lambda: affine_network([], []), ValueError, "rows of one length"),
        (lambda: alike(["1"], "knots"), TypeError, "real numbers; got '1'"),
        (lambda: alike([True], "knots"), TypeError, "got True"),
        (
            lambda: compose(max2(exact=True), max2(exact=True)),
            ValueError,
            "it takes 2, the inner gives 1",
        ),
        (
            lambda: linear_combination([1], [max2(exact=True), min2(exact=True)]),
            ValueError,
            "1 coefficients for 2",
        ),
        (
            lambda: stack([absolute_value(exact=True), max2(exact=True)]),
            ValueError,
            "equal input sizes",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
