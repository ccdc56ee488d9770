"""Approximation to a tolerance: measured on other points, at the promised depth and order of size."""

from itertools import permutations
from math import inf

import numpy as np
import pytest
from scipy.integrate import trapezoid

from pindown.box import Box
from pindown.circuits.approximation import approximate, grid_network, hat_terms, interpolate
from pindown.circuits.piecewise_1d import PiecewiseLinear1D, compile_1d


def step(x):
    return (x > 0.3).astype(float)


def bump(X):
    return np.exp(-(X**2).sum(axis=1))


def independent_error(f, net, lower, upper, q, count=200_001):
    x = np.linspace(lower, upper, count)
    gaps = np.abs(f(x) - net(x[:, None]).ravel())
    return gaps.max() if q == inf else trapezoid(gaps**q, x) ** (1 / q)


@pytest.mark.parametrize("q", [1, 2, inf])
def test_sine(q):
    found = approximate(np.sin, (0, 2 * np.pi), 1e-3, q, uniformly_continuous=True)
    error = independent_error(np.sin, found.network, 0, 2 * np.pi, q)
    assert error <= 1e-3 and found.error == pytest.approx(error, rel=0.02)
    assert found.network.depth == 2 and "measured" in str(found)


def test_size_grows_like_the_root_of_the_accuracy():
    tolerances = [1e-2, 1e-3, 1e-4, 1e-5]
    sizes = [approximate(np.sin, (0, 2 * np.pi), tol, 1).network.size for tol in tolerances]
    rates = np.array(sizes) * np.sqrt(tolerances)
    assert rates.max() / rates.min() < 2.5  # intervals are halved, so sizes come in steps of two
    # Interpolation on an even grid of N steps misses by about (2 pi)^3 / (12 N^2) * 2 / pi.
    assert sizes[-1] < 2 * np.sqrt((2 * np.pi) ** 3 / 12 * 2 / np.pi / 1e-5)


def test_knots_go_where_they_are_needed():
    found = approximate(step, (0, 1), 1e-4, 1)
    assert independent_error(step, found.network, 0, 1, 1) <= 1.1e-4
    assert found.network.size <= 4  # up, flat, and down again outside the box
    root = approximate(np.sqrt, (0, 1), 1e-4, inf, uniformly_continuous=True)
    kinks = np.array(PiecewiseLinear1D.from_network(root.network).breakpoints)
    assert np.sum(kinks < 0.1) > np.sum(kinks > 0.5)


@pytest.mark.parametrize("f", [lambda X: 0 * X[:, 0], lambda X: 0 * X[:, 0] + 2.0])
def test_constants(f):
    for box in ((0, 1), ([0, 0], [1, 1])):
        found = approximate(f, box, 1e-3)
        X = found.box.sample(20, np.random.default_rng(0))
        np.testing.assert_allclose(found.network(X).ravel(), f(X), atol=1e-12)


def test_a_high_power_is_nearly_the_maximum():
    high = approximate(np.sin, (0, 6), 1e-3, 500)
    largest = independent_error(np.sin, high.network, 0, 6, inf)
    assert high.error == pytest.approx(largest, rel=0.02)


def test_far_outside_the_box_there_is_nothing():
    net = approximate(np.cos, (-1, 1), 1e-2).network
    np.testing.assert_allclose(net([[-3.0], [3.0], [50.0]]), 0, atol=1e-12)
    net = approximate(bump, ([-1, -1], [1, 1]), 1e-1).network
    np.testing.assert_allclose(net(Box.cube(2, 3, 9).sample(50, np.random.default_rng(0))), 0, atol=1e-9)


def test_printed_density_fails_in_the_maximum_norm():
    """Mukherjee 2020, Theorem 2.2.3: no continuous function is nearer to a jump of 1 than 1/2."""
    with pytest.raises(ValueError, match="maximum norm only uniformly continuous"):
        approximate(step, (0, 1), 0.4, inf)
    with pytest.raises(ValueError, match="a jump is never approximated"):
        approximate(step, (0, 1), 0.4, inf, uniformly_continuous=True)
    # However steep, a network is continuous: next to the jump it has one value, the step two.
    rng = np.random.default_rng(0)
    for tol in (0.1, 1e-3, 1e-6):
        near = approximate(step, (0, 1), tol, 1).network
        assert one_sided_gap(near) >= 0.5
    for _ in range(50):
        knots = np.sort(rng.uniform(0, 1, 4))
        steep = compile_1d(PiecewiseLinear1D.from_points(knots, rng.uniform(-0.2, 1.2, 4)))
        assert one_sided_gap(steep) >= 0.5 - 1e-9
    # For finite q the claim holds, and so it does for q = inf if the function is uniformly continuous.
    assert independent_error(step, approximate(step, (0, 1), 1e-3, 1).network, 0, 1, 1) <= 1.1e-3
    assert approximate(np.sqrt, (0, 1), 1e-3, inf, uniformly_continuous=True).error <= 1e-3


def one_sided_gap(net):
    """The supremum of the gap to the step next to its jump: the network's value there is one number."""
    value = net([0.3])[0]
    return max(abs(value - 0), abs(value - 1))


@pytest.mark.parametrize("tol", [1e-1, 1e-2])
def test_two_variables(tol):
    box = Box.cube(2, -2, 2)
    found = approximate(bump, box, tol, 2)
    X = box.sample(2_000, np.random.default_rng(0))
    gaps = bump(X) - found.network(X).ravel()
    error = np.sqrt((gaps**2).mean() * 16)
    assert error <= tol and found.error == pytest.approx(error, rel=0.1)
    assert found.network.depth - 1 == 2


def test_three_variables():
    box = Box.cube(3, -1, 1)
    found = approximate(bump, box, 0.2, 2)
    X = box.sample(500, np.random.default_rng(0))
    assert np.sqrt(((bump(X) - found.network(X).ravel()) ** 2).mean() * 8) <= 0.2
    assert found.network.depth - 1 == 2


@pytest.mark.parametrize("n", [1, 2, 3])
def test_grid_networks_interpolate(n):
    rng = np.random.default_rng(n)
    shape = (4, 3, 5)[:n]
    values = rng.normal(size=shape)
    box = Box(-np.arange(1.0, n + 1), np.arange(1.0, n + 1))
    net = grid_network(values, box)
    axes = [np.linspace(a, b, k) for a, b, k in zip(box.lower, box.upper, shape, strict=True)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, n)
    np.testing.assert_allclose(net(nodes).ravel(), values.ravel(), atol=1e-11)
    U = rng.uniform(0, 1, (500, n)) * (np.array(shape) - 1)
    X = box.lower + U * (box.upper - box.lower) / (np.array(shape) - 1)
    np.testing.assert_allclose(net(X).ravel(), interpolate(values, U), atol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_hats_are_one_at_the_middle_and_affine_on_the_simplices(n):
    def hat(u):
        return sum(
            c
            * (np.dot(base[:-1], u) + base[-1] + max([0, *(np.dot(d[:-1], u) + d[-1] for d in others)]))
            for c, base, others in hat_terms(n)
        )

    assert hat(np.zeros(n)) == 1 and max(len(others) for _, _, others in hat_terms(n)) <= n
    rng = np.random.default_rng(0)
    for order in permutations(range(n)):
        corners = np.cumsum([np.zeros(n), *np.eye(n)[list(order)]], axis=0)
        for start in -corners:  # the simplices around the origin: one of their corners is moved there
            weights = rng.dirichlet(np.ones(n + 1))
            heights = [float(not np.any(corner + start)) for corner in corners]
            assert hat(weights @ corners + start) == pytest.approx(weights @ heights, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: approximate(np.sin, (0, 1), 0), "tol must be a finite number above 0"),
        (lambda: approximate(np.sin, (0, 1), float("nan")), "tol must be"),
        (lambda: approximate(np.sin, (0, 1), 1e-2, 0.5), "q must be a number of at least 1"),
        (lambda: approximate(np.sin, (0, 1), 1e-2, float("nan")), "q must be a number of at least 1"),
        (lambda: approximate(np.sin, (1, 1), 1e-2), "box with interior"),
        (lambda: approximate(bump, ([0] * 4, [1] * 4), 1e-2), "at most 3 dimensions"),
        (lambda: approximate(lambda x: x * np.nan, (0, 1), 1e-2), "finite on the box"),
        (lambda: approximate(lambda x: 3.0, (0, 1), 1e-2), "one number for each row; got 1"),
        (lambda: approximate(np.sin, (0, 9), 1e-6, max_values=50), "max_values=50"),
        (lambda: approximate(bump, ([0, 0], [1, 1]), 1e-6, max_values=50), "max_values=50"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
