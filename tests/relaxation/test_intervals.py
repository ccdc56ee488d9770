"""Interval bounds enclose the exact real-number network."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp

from pindown import ReluNetwork
from pindown.geometry import Box, interval_bounds


def random_net(rng, widths, scale=1.0):
    pairs = pairwise(widths)
    return ReluNetwork.from_layers(
        [(scale * rng.standard_normal((m, n)), rng.standard_normal(m)) for n, m in pairs]
    )


def corners(box):
    return product(*zip(box.lower, box.upper, strict=True))


def check_enclosed(net, box, points):
    bounds, exact = interval_bounds(net, box), net.as_fractions()
    for x in points:
        for z, interval in zip(exact.trace(list(x)), bounds, strict=True):
            for value, low, high in zip(z, interval.lower, interval.upper, strict=True):
                assert Fraction(low) <= value <= Fraction(high)


@pytest.mark.parametrize("seed", range(20))
def test_bounds_enclose_exact_values_at_corners_and_inside(seed):
    rng = np.random.default_rng(seed)
    net = random_net(rng, (3, 5, 4, 2), scale=10.0 ** rng.integers(-4, 4))
    box = Box.around(rng.standard_normal((2, 3)))
    check_enclosed(net, box, [*corners(box), *box.sample(5, rng)])


@pytest.mark.parametrize("seed", range(20))
def test_bounds_enclose_where_everything_cancels(seed):
    # Rows that sum to almost nothing at a point box: rounding is all there is to see.
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(6)
    W = rng.standard_normal((8, 6))
    W[:, -1] = -(W[:, :-1] @ x[:-1]) / x[-1]
    net = ReluNetwork.from_layers([(W, np.zeros(8)), (rng.standard_normal((2, 8)), [1e-17, 0])])
    check_enclosed(net, Box(x, x), [x])


def test_bounds_enclose_numbers_near_underflow():
    net = ReluNetwork.from_layers([([[1e-200, -3e-200]], [0]), ([[1e-150]], [0])])
    box = Box([1e-160, 1e-170], [3e-150, 2e-150])
    check_enclosed(net, box, list(corners(box)))


def test_bounds_enclose_a_product_that_is_rounded_among_the_smallest_numbers():
    # 1.5 quanta are rounded to 2: upwards, where a lower bound must not go.
    net = ReluNetwork.from_layers([([[2.0**-600], [-(2.0**-600)]], [0, 0])])
    box = Box([1.5 * 2.0**-474], [1.0])
    check_enclosed(net, box, list(corners(box)))


def test_first_layer_is_attained():
    rng = np.random.default_rng(0)
    net, box = random_net(rng, (4, 6)), Box.around(rng.standard_normal((2, 4)))
    values = net(np.array(list(corners(box))))
    (z,) = interval_bounds(net, box)
    np.testing.assert_allclose(z.lower, values.min(axis=0), rtol=1e-12)
    np.testing.assert_allclose(z.upper, values.max(axis=0), rtol=1e-12)


def test_what_a_relu_cuts_off_does_not_reach_the_next_layer():
    net = ReluNetwork.from_layers([([[1.0], [-1.0], [1.0]], [0, 0, -9]), ([[5.0, 7.0, 11.0]], [1])])
    low, high = interval_bounds(net, Box([-2], [3]))[-1]
    assert low == pytest.approx([1]) and high == pytest.approx([1 + 5 * 3 + 7 * 2])


def test_zeros_stay_exact():
    # Non-negative inputs and weights: proved always on, although the lower end is exactly 0.
    net = ReluNetwork.from_layers([([[0.1, 0.7], [0, 0]], [0, 0]), ([[0.3, 1]], [0])])
    first, last = interval_bounds(net, Box([0, 0], [0.3, 0.9]))
    assert first.lower.tolist() == [0, 0] and first.upper[1] == 0 and last.lower.tolist() == [0]


def test_sparse_and_dense_agree():
    rng = np.random.default_rng(0)
    W = sp.random_array((300, 400), density=0.01, rng=rng, format="csr")
    W.data -= 0.5
    b, V = rng.standard_normal(300), rng.standard_normal((3, 300))
    sparse = ReluNetwork.from_layers([(W, b), (V, np.zeros(3))])
    assert sp.issparse(sparse.layers[0].weight)
    full = ReluNetwork.from_layers([(W.toarray(), b), (V, np.zeros(3))])
    box = Box.cube(400, -1, 1)
    for a, c in zip(interval_bounds(sparse, box), interval_bounds(full, box), strict=True):
        np.testing.assert_allclose(a.lower, c.lower, rtol=1e-9)
        np.testing.assert_allclose(a.upper, c.upper, rtol=1e-9)


def test_overflow_gives_infinite_bounds_not_wrong_ones():
    net = ReluNetwork.from_layers([([[1e300, 1e300]], [0]), ([[1.0]], [0]), ([[-1.0]], [0])])
    first, *later = interval_bounds(net, Box.cube(2, 0, 1e300))
    assert first.upper[0] == np.inf
    assert all(z.lower[0] == -np.inf and z.upper[0] == np.inf for z in later)


def test_wrong_dimension_is_named():
    net = random_net(np.random.default_rng(0), (3, 2))
    with pytest.raises(ValueError, match="the box has 2 dimensions; the network takes 3"):
        interval_bounds(net, Box.cube(2, 0, 1))
