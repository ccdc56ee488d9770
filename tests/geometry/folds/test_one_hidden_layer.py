"""One hidden layer: what flattens flattens back, and what does not has a line that proves it."""

from itertools import product

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.box import Box
from pindown.calculus import pad_depth
from pindown.geometry.folds._bends import charts_of_space, homogenise
from pindown.geometry.folds.one_hidden_layer import flatten_to_one_hidden
from tests.geometry.fold_nets import gaussian
from tests.geometry.oracles import KINDS, degenerate_network

relu = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
max_of_two = ReluNetwork.from_layers([([[1.0, -1], [0, 1], [0, -1]], [0, 0, 0]), ([[1.0, 1, -1]], [0])])
max_with_zero = relu @ max_of_two  # max{0, x_1, x_2}


def points_of_plane(rng, d, n=400):
    """Points at all distances from 1e-3 to 1e4."""
    return rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 4, (n, 1))


def check_same(one, two, X):
    gaps = np.abs(one(X) - two(X)) / (1 + np.abs(X).max(axis=1, keepdims=True))
    assert gaps.max() < 1e-9


def check_certificate(net, line, reach=1e-4):
    """The claimed jumps, by finite differences: across the line at both points."""
    assert np.isclose(np.linalg.norm(line.normal), 1) and not np.allclose(*line.jumps)
    for point, jump in zip(line.points, line.jumps, strict=True):
        assert abs(line.normal @ point + line.offset) < 1e-9 * (1 + np.abs(point).max())
        h = reach * line.normal
        kink = (net(point + h) + net(point - h) - 2 * net(point)) / reach
        np.testing.assert_allclose(kink, jump, atol=1e-6 * (1 + np.abs(jump).max()))


def test_maximum_with_zero_has_a_certificate():
    """Mukherjee 2020, Proposition 2.5.2."""
    for box in (None, (-1, 1), ([-0.25, -3], [2, 0.5])):
        found = flatten_to_one_hidden(max_with_zero, box)
        assert found.representable is False and found.certificate is not None
        check_certificate(max_with_zero, found.certificate)
        assert 0 in found.certificate.jumps and "impossible" in repr(found)
        with pytest.raises(ValueError, match="no network with one hidden layer"):
            _ = found.network


def test_it_is_a_matter_of_the_domain():
    # Away from the origin only one of the three rays is left, and it crosses the box.
    box = Box([1, 1], [2, 2])
    found = flatten_to_one_hidden(max_with_zero, box)
    assert found.representable and len(found.offsets) == 1
    check_same(found.network, max_with_zero, box.sample(200, np.random.default_rng(0)))


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("extra", [0, 1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_shallow_networks_in_disguise_flatten_back(outputs, extra, seed):
    rng = np.random.default_rng(seed)
    net = gaussian(rng, (2, 5, outputs))
    deep = pad_depth(net, net.depth + extra)
    found = flatten_to_one_hidden(deep)
    assert found.representable and len(found.offsets) == 5 and found.network.depth == 2
    check_same(found.network, net, points_of_plane(rng, 2))
    (W, b), _ = net.layers
    rows = np.column_stack([W, b]) / np.linalg.norm(W, axis=1, keepdims=True)
    planes = np.column_stack([found.normals, found.offsets])
    gaps = np.minimum(*(np.abs(planes[:, None] - sign * rows).max(axis=2) for sign in (1, -1)))
    assert (gaps.min(axis=0) < 1e-9).all()


@pytest.mark.parametrize("seed", range(4))
def test_every_function_of_one_variable_flattens(seed):
    rng = np.random.default_rng(seed)
    net = gaussian(rng, (1, 4, 4, 3, 2))
    found = flatten_to_one_hidden(net)
    assert found.representable
    check_same(found.network, net, points_of_plane(rng, 1))
    inside = flatten_to_one_hidden(net, (-1, 2))
    check_same(inside.network, net, rng.uniform(-1, 2, (300, 1)))
    assert len(inside.offsets) <= len(found.offsets)


@pytest.mark.parametrize("seed", range(6))
def test_deep_random_networks_do_not_flatten(seed):
    net = gaussian(np.random.default_rng(seed), (2, 3, 3, 1))
    found = flatten_to_one_hidden(net)
    assert found.representable is False
    check_certificate(net, found.certificate, reach=1e-5)


@pytest.mark.parametrize("m", [2, 3, 5])
def test_zonotope_gauges_flatten_to_their_lines(m):
    """Mukherjee 2020, section 2.3: sum_i |<b_i, x>| is m lines, here behind an idle second layer."""
    rng = np.random.default_rng(m)
    B = rng.standard_normal((m, 2))
    gauge = ReluNetwork.from_layers([(np.vstack([B, -B]), np.zeros(2 * m)), (np.ones((1, 2 * m)), [0])])
    found = flatten_to_one_hidden(relu @ gauge)  # the sum is never negative
    assert found.representable and len(found.offsets) == m
    np.testing.assert_allclose(np.sort(found.coefficients[0]), np.sort(2 * np.linalg.norm(B, axis=1)))
    check_same(found.network, gauge, points_of_plane(rng, 2))


def test_kinks_can_cancel():
    """So the folds of a sum of gates are a union of *some* of the gates' lines (Mukherjee 2020, 2.B)."""
    W, b = [[1, 2], [-1, -2], [1, -1]], [1, -1, 0.5]
    net = ReluNetwork.from_layers(
        [(W, b), ([[1.0, -1.0, 3.0]], [0])]
    )  # the first two make x_1 + 2 x_2 + 1
    found = flatten_to_one_hidden(net)
    assert found.representable and len(found.offsets) == 1
    np.testing.assert_allclose(np.abs(found.slope), [[1, 2]])
    check_same(found.network, net, points_of_plane(np.random.default_rng(0), 2))


def test_affine_and_constant_functions():
    rng = np.random.default_rng(0)
    affine = ReluNetwork.from_layers([([[1.0, 2], [0, 0]], [3, 4])])
    found = flatten_to_one_hidden(affine)
    assert found.representable and len(found.offsets) == 0
    check_same(found.network, affine, points_of_plane(rng, 2))
    constant = ReluNetwork.from_layers([([[1.0, 2]], [-1]), ([[0.0]], [7])])
    found = flatten_to_one_hidden(constant)
    assert found.network.depth == 1
    check_same(found.network, constant, points_of_plane(rng, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_networks_that_are_not_in_general_position(kind):
    for seed, box in product(range(2), (None, Box.cube(2, -1, 1))):
        rng = np.random.default_rng(seed)
        net = degenerate_network(kind, 2, rng, (3, 3))
        found = flatten_to_one_hidden(net, box)
        if found.representable:
            check_same(
                found.network, net, points_of_plane(rng, 2) if box is None else box.sample(300, rng)
            )
        else:
            check_certificate(net, found.certificate, reach=1e-6)


@pytest.mark.parametrize("axis", [[1.0, 0], [0, 1], [1, 1], [1, -1]])
@pytest.mark.parametrize("offset", [0.0, 1.0, -1.25, 2.5])
def test_lines_along_the_edges_of_the_charts(axis, offset):
    rng = np.random.default_rng(0)
    W = np.array([axis, [0.3, -0.7]])
    net = ReluNetwork.from_layers([(W, [offset, 0.5]), ([[1.0, -2.0]], [0.25])])
    found = flatten_to_one_hidden(pad_depth(net, 3))
    assert found.representable and len(found.offsets) == 2
    check_same(found.network, net, points_of_plane(rng, 2))


def test_parallel_lines_far_apart():
    net = ReluNetwork.from_layers([([[1.0, 0], [1, 0], [1, 0]], [-1e-3, 1, 1e3]), ([[1.0, 1, 1]], [0])])
    found = flatten_to_one_hidden(pad_depth(net, 3))
    assert found.representable and np.allclose(np.sort(np.abs(found.offsets)), [1e-3, 1, 1e3])


def test_a_fold_that_ends_far_away_is_seen():
    # relu(x_2 - relu(x_1 - 1000)): straight on all of [-100, 100]^2, bent at x_1 = 1000.
    inner = ReluNetwork.from_layers(
        [([[1.0, 0], [0, 1], [0, -1]], [-1000, 0, 0]), ([[-1.0, 1, -1]], [0])]
    )
    net = relu @ inner
    assert flatten_to_one_hidden(net, (-100, 100)).representable
    assert flatten_to_one_hidden(net).representable is False


def test_charts_cover_the_plane_and_infinity():
    rng = np.random.default_rng(0)
    charts = list(charts_of_space(2, 3.0))
    assert len(charts) == 5
    for x in [*points_of_plane(rng, 2), *(np.array(p) * 3.0 for p in product((-1, 1), repeat=2))]:
        hits = 0
        for chart in charts:
            # (x, 1) = scale * (matrix u + offset) for some scale > 0 and u in the box
            system = np.column_stack([chart.matrix, chart.offset])
            u = np.linalg.solve(system, np.append(x, 1.0))
            hits += u[2] > 0 and bool(chart.box.contains(u[:2] / u[2]))
        assert hits >= 1


def test_homogeneous_networks():
    rng = np.random.default_rng(0)
    net = gaussian(rng, (2, 3, 4, 2))
    x, s = rng.standard_normal((50, 2)), rng.uniform(0.1, 5, (50, 1))
    np.testing.assert_allclose(homogenise(net)(np.column_stack([x, s])), s * net(x / s), atol=1e-12)


def test_bad_input():
    with pytest.raises(ValueError, match="takes 3"):
        flatten_to_one_hidden(gaussian(np.random.default_rng(0), (3, 2, 1)))
    with pytest.raises(ValueError, match="the box has 1 dimension"):
        flatten_to_one_hidden(max_with_zero, Box([0], [1]))


def test_no_time_gives_no_verdict():
    net = gaussian(np.random.default_rng(0), (2, 60, 60, 1))
    found = flatten_to_one_hidden(net, (-1, 1), budget=0.0)
    assert found.representable is None and "not decided" in repr(found)
