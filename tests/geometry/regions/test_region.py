"""Cells around points: against exact rationals, and against what a step across a facet shows."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import pindown as pn
from pindown import ReluNetwork
from pindown.box import Box
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.regions.fold_distance import distance_to_nearest_fold
from pindown.geometry.regions.neighbours import crossings, neighbours
from pindown.geometry.regions.point_location import unit_forms
from pindown.geometry.regions.region import Region, region_at
from pindown.geometry.slices.segment import along_segments
from tests.geometry.oracles import (
    KINDS,
    cube,
    degenerate_network,
    exact_pattern,
    random_network,
    scaled_layers,
)

MNIST = Path("../shared/models/mnist_256x4.onnx.gz")

ABS = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])


def random_net(rng, widths):
    return ReluNetwork.from_layers(
        [
            (rng.standard_normal((m, n)) / np.sqrt(n), rng.standard_normal(m) / 3)
            for n, m in pairwise(widths)
        ]
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_cell_of_a_point_is_the_exact_one(kind, d):
    rng = np.random.default_rng(7)
    net, box = degenerate_network(kind, d, rng, widths=(5, 4)), cube(d)
    exact = exact_complex(net, box)
    number = {tuple(pattern): i for i, pattern in enumerate(exact.patterns)}
    for x in rng.uniform(-1, 1, (6, d)):
        region = region_at(net, x, box)
        i = number[tuple(region.pattern)]
        assert len(region.facets) == len(exact.facets[i])
        for label, units in zip(region.facets, region.facet_units, strict=True):
            (whole,) = (facet for facet in exact.facets[i] if label in facet)
            assert label >= net.size or set(units) == {unit for unit in whole if unit < net.size}
            # Where a fold runs along a side of the box the side is the label.
            assert label >= net.size or max(whole) < net.size
        assert region.volume == pytest.approx(float(exact.volumes[i]), rel=1e-9)
        assert len(region.vertices) == len(exact.vertices[i])


@pytest.mark.parametrize("seed", range(5))
def test_map_and_membership_agree_with_the_network(seed):
    rng = np.random.default_rng(seed)
    net = random_net(rng, (4, 8, 6, 3))
    region = region_at(net, rng.standard_normal(4), Box.cube(4, -5, 5))
    X = region.cell.sample(50, rng)
    assert region.contains(X).all() and region.contains(region.vertices).all()
    np.testing.assert_allclose(region(X), net(X), atol=1e-10)
    assert (net.pattern(X) == region.pattern).all()
    np.testing.assert_allclose(np.linalg.norm(region.halfspaces[:, :-1], axis=1), 1)
    center, radius = region.chebyshev
    assert region.distance_to_facets(center).min() == pytest.approx(radius)


@pytest.mark.parametrize("seed", range(4))
def test_first_fold_on_random_rays_is_a_facet(seed):
    rng = np.random.default_rng(seed)
    net, x = random_net(rng, (12, 20, 16, 2)), rng.standard_normal(12)
    region = region_at(net, x)
    check_rays(net, x, region, rng.standard_normal((200, 12)))


def check_rays(net, x, region, U):
    folds = along_segments(net, np.repeat(x[None], len(U), axis=0), x + 30 * U)
    reached = set()
    for ray in folds:
        first = ray.units[ray.t == ray.t[0]] if len(ray.t) else []
        reached |= set(first)
        assert not len(first) or set(first) & set(region.facets)
    nearest = distance_to_nearest_fold(net, x)
    assert region.distance_to_facets(x).min() == pytest.approx(nearest.distance[0], rel=1e-9)
    assert nearest.label[0] in region.facets and reached


@pytest.mark.parametrize("kind", [*KINDS, "general"])
@pytest.mark.parametrize("d", [2, 3])
def test_neighbours_are_what_a_rational_step_shows(kind, d):
    rng = np.random.default_rng(3)
    net = (
        random_network(rng, d, (5, 4)) if kind == "general" else degenerate_network(kind, d, rng, (5, 4))
    )
    region = region_at(net, rng.uniform(-1, 1, d), cube(d))
    ways = list(crossings(region))
    assert [way.label for way in ways] == [label for label in region.facets if label < net.size]
    for way, other in zip(ways, neighbours(region), strict=True):
        just_beyond = way.point + 2.0**-30 * way.outward
        assert exact_pattern(net, just_beyond) == tuple(other.pattern)
        assert exact_pattern(net, other.inner) == tuple(other.pattern)
        # Both sides hold the facet, and the maps agree on it.
        assert region.contains(way.point) and other.contains(way.point)
        np.testing.assert_allclose(region(way.point), other(way.point), atol=1e-12)
        back = [
            pattern
            for pattern in (w.pattern for w in crossings(other))
            if (pattern == region.pattern).all()
        ]
        assert len(back) == 1


def test_deeper_units_switch_with_the_fold_they_share():
    # Unit 2 repeats unit 0, unit 3 is its opposite, unit 1 sits elsewhere.
    net = ReluNetwork.from_layers(
        [([[1.0], [1.0]], [0, -5]), ([[1.0, 0], [-1, 0]], [0, 0]), ([[1.0, 1.0]], [0])]
    )
    region = region_at(net, [1.0])
    assert [units.tolist() for units in region.facet_units] == [[0, 2, 3], [1]]
    left = neighbours(region)[0]
    # Below zero units 2 and 3 are zero throughout, and zero counts as on.
    assert region.pattern.tolist() == [True, False, True, False]
    assert left.pattern.tolist() == [False, False, True, True]


def test_on_a_fold_zero_counts_as_on_if_that_cell_has_an_interior():
    net = ReluNetwork.from_layers([([[1.0, 0.0], [0.0, 1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    assert region_at(net, [0.0, -1.0]).pattern.tolist() == [True, False]
    assert region_at(net, [0.0, 0.0]).pattern.tolist() == [True, True]


def test_on_a_fold_without_such_a_cell_a_step_decides():
    region = region_at(ABS, [0.0])  # both units on only at 0
    assert region.pattern.sum() == 1 and region.contains([0.0])
    assert (region_at(ABS, [0.0]).pattern == region.pattern).all()


@pytest.mark.parametrize("kind", ["zero_bias", "integer", "handmade", "opposite", "through_corner"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_points_on_many_folds_and_box_corners(kind, d):
    rng = np.random.default_rng(1)
    net, box = degenerate_network(kind, d, rng, (5, 4)), cube(d)
    cells = {tuple(pattern) for pattern in exact_complex(net, box).patterns}
    for x in [np.zeros(d), np.ones(d), -np.ones(d), *rng.integers(-1, 2, (6, d)).astype(float)]:
        region = region_at(net, x, box)
        assert tuple(region.pattern) in cells
        assert region.contains(x) and region.volume > 0


def test_sides_of_the_box_and_all_of_space():
    net = ReluNetwork.from_layers([([[1.0, 0.0]], [0]), ([[1.0]], [0])])
    region = region_at(net, [1.0, 0.0], (-2, 3))
    assert region.facets.tolist() == [0, 2, 3, 4]
    np.testing.assert_allclose(
        region.halfspaces, [[-1, 0, 0], [1, 0, -3], [0, -1, -2], [0, 1, -3]], atol=1e-15
    )
    assert region.volume == pytest.approx(15)
    assert region_at(net, [1.0, 0.0]).facets.tolist() == [0]
    with pytest.raises(ValueError, match="unbounded"):
        _ = region_at(net, [1.0, 0.0]).vertices


def test_dead_units_and_networks_without_units():
    dead = ReluNetwork.from_layers([([[0.0, 0.0], [0.0, 0.0]], [-1, 0]), ([[1.0, 1.0]], [0])])
    region = region_at(dead, [0.3, 0.4])
    assert region.facets.size == 0 and region.pattern.tolist() == [False, True]
    assert neighbours(region) == [] and region.contains([[1e9, -1e9]]).all()
    affine = ReluNetwork.from_layers([([[2.0, 1.0]], [3])])
    assert region_at(affine, [0.0, 0.0]).A.tolist() == [[2, 1]]
    assert region_at(affine, [0.0, 0.0], (0, 1)).volume == pytest.approx(1)


def test_order_and_scale_of_units_do_not_matter():
    rng = np.random.default_rng(0)
    net, x = random_net(rng, (5, 9, 7, 2)), rng.standard_normal(5)
    (W1, b1), (W2, b2), last = net.layers
    order = rng.permutation(9)
    shuffled = ReluNetwork.from_layers([(W1[order], b1[order]), (W2[:, order], b2), last])
    scaled = ReluNetwork.from_layers(scaled_layers([tuple(layer) for layer in net.layers], rng))
    facets = set(region_at(net, x).facets)
    assert facets == set(region_at(scaled, x).facets)
    back = np.concatenate([order, 9 + np.arange(7)])
    assert facets == {back[label] for label in region_at(shuffled, x).facets}


def test_sparse_layers():
    rng = np.random.default_rng(0)
    W = sp.random_array((300, 250), density=0.02, rng=rng, format="csr")
    dense, b = W.toarray(), rng.standard_normal(300)
    last = (rng.standard_normal((1, 300)), [0])
    x = rng.standard_normal(250)
    net = ReluNetwork.from_layers([(W, b), last])
    assert sp.issparse(net.layers[0].weight)
    expected = region_at(ReluNetwork.from_layers([(dense, b), last]), x).facets
    assert region_at(net, x).facets.tolist() == expected.tolist()


def test_unit_forms_are_the_preactivations():
    rng = np.random.default_rng(0)
    net, X = random_net(rng, (3, 5, 4, 2)), rng.standard_normal((20, 3))
    chosen = np.array([7, 0, 3, 8])
    for x in X:
        G, g = unit_forms(net, net.pattern(x))
        np.testing.assert_allclose(G @ x + g, net.preactivations(x), atol=1e-12)
        some, offsets = unit_forms(net, net.pattern(x), chosen)
        np.testing.assert_allclose(some, G[chosen]), np.testing.assert_allclose(offsets, g[chosen])


def test_given_vertices_are_kept_and_results_are_frozen():
    region = Region(ABS, Box([-1], [1]), [True, False], [0, 3], vertices=[[0.0], [1.0]])
    assert region.vertices.ravel().tolist() == [0, 1] and region.volume == 1
    for array in (region.vertices, region.A, region.halfspaces, region.pattern, region.facets):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        region.box = None


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="outside the box"):
        region_at(ABS, [2.0], (0, 1))
    with pytest.raises(ValueError, match="flat in coordinate 0"):
        region_at(ABS, [1.0], (1, 1))
    with pytest.raises(ValueError, match="one input"):
        region_at(ABS, [[1.0], [2.0]])
    with pytest.raises(ValueError, match="finite"):
        region_at(ABS, [np.nan])
    with pytest.raises(ValueError, match="2 entries"):
        Region(ABS, None, [True], [0])
    with pytest.raises(ValueError, match="labels go from 0 to 1"):
        Region(ABS, None, [True, False], [2])
    with pytest.raises(ValueError, match="2 dimensions"):
        region_at(ABS, [0.0], Box.cube(2, 0, 1))


def test_rational_pattern_of_the_inner_point():
    rng = np.random.default_rng(5)
    net = random_net(rng, (3, 6, 5, 1))
    for x in rng.standard_normal((10, 3)):
        region = region_at(net, x)
        exact = net.as_fractions().pattern([Fraction(v) for v in region.inner])
        assert (exact == region.pattern).all() and region.contains(x)


@pytest.mark.skipif(not MNIST.exists(), reason="the public networks are not beside the project")
def test_a_network_with_784_inputs():
    net = pn.load(MNIST).relu_network()
    rng = np.random.default_rng(0)
    x = np.zeros(784)
    x[rng.integers(0, 784, 150)] = rng.random(150)
    region = region_at(net, x)
    check_rays(net, x, region, rng.standard_normal((100, 784)))
    way = next(iter(crossings(region)))
    assert (net.pattern(way.point + 1e-9 * way.outward) == way.pattern).all()
