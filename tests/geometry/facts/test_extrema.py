"""Smallest and largest values: proved bounds against exact rationals, points against sampling."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry import Box
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.facts.extrema import local_maxima, local_minima, output_range
from tests.geometry.exact_extrema import exact_cell_values, exact_local_maxima
from tests.geometry.hostile import HOSTILE, hostile_network
from tests.geometry.oracles import KINDS, cube, degenerate_network, random_network, reference_network
from tests.geometry.partial import first_cells


def check_proved(net, box):
    found = output_range(net, box, certified=True)
    values = [v for cell in exact_cell_values(net, box).values() for v in cell]
    high, low = found.maxima[0], found.minima[0]
    assert Fraction(high.lower) <= max(values) <= Fraction(high.upper)
    assert Fraction(low.lower) <= min(values) <= Fraction(low.upper)
    for end in (high, low):
        assert end.status == "proved" and end.exact
        assert end.lower <= end.value <= end.upper and end.upper - end.lower < 1e-9
        assert box.contains(end.point) and net(end.point)[0] == pytest.approx(end.value, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_proved_bounds_hold_and_are_tight_on_degenerate_networks(kind, d):
    check_proved(degenerate_network(kind, d, np.random.default_rng(d), widths=(6, 4)), cube(d))


@pytest.mark.parametrize("seed", range(6))
def test_proved_bounds_hold_on_random_networks(seed):
    rng = np.random.default_rng(seed)
    d = 1 + seed % 3
    box = Box.around(10.0 ** rng.uniform(-2, 2) * rng.standard_normal((2, d)))
    net = random_network(rng, d, (5, 5))
    values = [v for cell in exact_cell_values(net, box).values() for v in cell]
    found = output_range(net, box, certified=True)
    for end, truth in ((found.maxima[0], max(values)), (found.minima[0], min(values))):
        assert Fraction(end.lower) <= truth <= Fraction(end.upper)
        assert end.upper - end.lower <= 1e-10 * (1 + abs(end.value))


@pytest.mark.parametrize("family", HOSTILE)
@pytest.mark.parametrize("d", [1, 1, 2])
def test_proved_intervals_hold_value_and_rational_truth(family, d, request):
    rng = np.random.default_rng([d, len(request.node.nodeid), HOSTILE.index(family)])
    net, box = hostile_network(rng, d, family)
    values = [v for cell in exact_cell_values(net, box).values() for v in cell]
    found = output_range(net, box, certified=True)
    for end, truth in ((found.maxima[0], max(values)), (found.minima[0], min(values))):
        assert end.lower <= truth <= end.upper and end.lower <= end.value <= end.upper


def test_a_value_that_rounding_spoils_is_shown_as_its_interval():
    """relu(x) times 1e16 + 2 minus relu(x) times 1e16: float64 sums are off by 2 units of 1."""
    net = ReluNetwork.from_layers([([[0.1], [0.1]], [0, 0]), ([[1e16 + 2, -1e16]], [0.0])])
    high = output_range(net, (0, 1), certified=True).maxima[0]
    truth = 2 * Fraction(0.1)
    assert Fraction(high.lower) == truth and high.lower <= high.value <= high.upper
    assert high.exact and high.text.startswith("[0.2, ") and high.text in repr(high)


@pytest.mark.parametrize("widths", [(1, 20, 20, 2), (2, 20, 20, 2), (3, 10, 10, 2), (5, 6, 6, 2)])
def test_no_sample_is_outside_and_many_come_near(widths):
    net, rng = reference_network(widths, 0), np.random.default_rng(0)
    box = Box.cube(widths[0], -1, 1)
    found = output_range(net, box)
    values = net(box.sample(20_000, rng))
    for k in range(2):
        low, high = found.minima[k], found.maxima[k]
        assert low.value <= values[:, k].min() and values[:, k].max() <= high.value
        assert np.ptp(values[:, k]) > 0.6 * (high.value - low.value)
        assert low.status == "float64" and low.lower <= low.value <= high.value <= high.upper
    np.testing.assert_array_equal(found.upper, [high.upper for high in found.maxima])


def test_hidden_units_may_be_scaled_and_permuted():
    rng = np.random.default_rng(0)
    net = reference_network((2, 12, 12, 1), 3)
    (W1, b1), (W2, b2), (W3, b3) = net.layers
    order, scale = rng.permutation(12), 2.0 ** rng.integers(-6, 6, 12)
    other = ReluNetwork.from_layers(
        [((W1 * scale[:, None])[order], (b1 * scale)[order]), ((W2 / scale)[:, order], b2), (W3, b3)]
    )
    a, b = (output_range(n, (-1, 1)) for n in (net, other))
    assert a.maxima[0].value == pytest.approx(b.maxima[0].value, rel=1e-12)
    assert a.minima[0].value == pytest.approx(b.minima[0].value, rel=1e-12)


def test_an_unfinished_search_still_proves_its_bounds():
    net = reference_network((2, 16, 16, 1), 0)
    whole = polyhedral_complex(net, (-1, 1))
    truth = output_range(whole)
    part = output_range(first_cells(whole, len(whole) // 3))
    nothing = output_range(net, (-1, 1), budget=0)
    for found in (part, nothing):
        assert not found.exact and "not complete" in repr(found)
        assert found.lower[0] <= truth.minima[0].value and truth.maxima[0].value <= found.upper[0]
        assert found.maxima[0].value <= truth.maxima[0].value + 1e-12
    assert nothing.maxima[0].point.tolist() == [0, 0]


def test_affine_networks_and_prints():
    net = ReluNetwork.from_layers([([[1.0, -2.0], [0.0, 0.0]], [1, 5])])
    found = output_range(net, (0, 1), certified=True)
    assert repr(found) == "OutputRange(-1 .. 2, 5 .. 5; proved)"
    assert repr(found.maxima[0]).startswith("maximum of output 0: 2 at (1, 0) (proved; surely in [2,")
    assert found.minima[0].point.tolist() == [0, 1]


def test_numbers_too_small_to_bound_fall_back_to_intervals():
    net = ReluNetwork.from_layers([([[1e-200]], [1e-200]), ([[1e-100]], [1])])
    high = output_range(net, (-1, 1), certified=True).maxima[0]
    assert high.status == "float64" and high.lower <= 1 <= high.upper < 1.001


def test_bad_input():
    net = reference_network((2, 4, 1), 0)
    with pytest.raises(TypeError, match="not certified"):
        output_range(polyhedral_complex(net, (-1, 1)), certified=True)
    with pytest.raises(TypeError, match="without box and budget"):
        output_range(polyhedral_complex(net, (-1, 1)), budget=1.0)
    with pytest.raises(ValueError, match="flat in coordinate 0"):
        output_range(net, (1, 1))


def as_points(vertices):
    return np.array(sorted(tuple(map(float, v)) for v in vertices))


def check_equals_exact(net, box):
    found = local_maxima(net, box)
    true = exact_local_maxima(net, box)
    assert len(found) == len(true)
    by_value = sorted(true, key=lambda entry: (-entry[0], min(entry[1])))
    left = [(float(value), as_points(vertices)) for value, vertices in by_value]
    for value, vertices in zip(found.values, found.vertices, strict=True):
        own = np.array(sorted(map(tuple, vertices)))
        matches = [
            i
            for i, (v, points) in enumerate(left)
            if abs(v - value) < 1e-9
            and len(points) == len(own)
            and all(np.abs(points - p).max(axis=1).min() < 1e-7 for p in own)
        ]
        assert matches
        left.pop(matches[0])
    assert not left


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_equals_exact_arithmetic_on_degenerate_networks(kind, d):
    net = degenerate_network(kind, d, np.random.default_rng(d), widths=(5, 4))
    check_equals_exact(net, cube(d))
    check_equals_exact(-net, cube(d))


@pytest.mark.parametrize("seed", range(12))
def test_equals_exact_arithmetic_on_random_networks(seed):
    rng = np.random.default_rng(seed)
    d = 1 + seed % 3
    check_equals_exact(random_network(rng, d, (6, 5)), cube(d))


@pytest.mark.parametrize("seed", range(5))
def test_minima_are_maxima_of_the_negative(seed):
    net = random_network(np.random.default_rng(seed), 2, (12, 12))
    low, high = local_minima(net, (-1, 1)), local_maxima(-net, (-1, 1))
    np.testing.assert_allclose(low.points, high.points, atol=1e-9)
    np.testing.assert_allclose(low.values, -high.values, atol=1e-12)
    np.testing.assert_array_equal(low.dims, high.dims)


@pytest.mark.parametrize("seed", range(5))
def test_nothing_near_a_maximum_is_higher_and_hill_climbing_ends_at_one(seed):
    rng = np.random.default_rng(seed)
    net, box = random_network(rng, 2, (10, 10)), cube(2)
    found = local_maxima(net, box)
    for point, value in zip(found.points, found.values, strict=True):
        near = np.clip(point + 1e-6 * rng.standard_normal((200, 2)), box.lower, box.upper)
        assert net(near).max() <= value + 1e-12
    # Random search climbs: it must not get stuck anywhere but at a maximum that was listed.
    x = box.sample(20, rng)
    for step in np.geomspace(0.3, 1e-7, 3000):
        y = np.clip(x + step * rng.standard_normal(x.shape), box.lower, box.upper)
        x = np.where(net(y) > net(x), y, x)
    gaps = np.abs(x[:, None] - found.points).max(axis=2).min(axis=1)
    flat = found.is_plateau.any()
    assert flat or gaps.max() < 1e-4


@pytest.mark.parametrize(("d", "dim"), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3)])
def test_plateaus_have_their_dimension(d, dim):
    # 1 - relu(|x_1| - 1/2) - ... - |x_d|: flat in the first coordinates, a ridge in the others.
    eye = np.eye(d)
    flat, sharp = eye[:dim], eye[dim:]
    W = np.vstack([flat, -flat, sharp, -sharp])
    b = np.concatenate([np.full(2 * dim, -0.5), np.zeros(2 * (d - dim))])
    net = ReluNetwork.from_layers([(W, b), (-np.ones((1, 2 * d)), [1])])
    found = local_maxima(net, (-1, 1))
    assert found.dims.tolist() == [dim] and found.values.tolist() == [1]
    assert not found.on_boundary.any() and len(found.vertices[0]) >= 2**dim
    assert np.abs(found.vertices[0][:, :dim]).max() == pytest.approx(0.5)


def test_boundary_maxima_can_be_left_out():
    tent = ReluNetwork.from_layers(
        [([[1.0], [1.0]], [0, 1]), ([[-2.0, 1.0]], [0])]
    )  # top at 0, right down
    valley = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    assert local_maxima(tent, (-2, 1), interior_only=True).points.tolist() == [[0.0]]
    assert len(local_maxima(valley, (-1, 1))) == 2
    assert len(local_maxima(valley, (-1, 1), interior_only=True)) == 0
    assert "0 local maxima" in repr(local_maxima(valley, (-1, 1), interior_only=True))


def test_a_plateau_with_a_way_up_is_no_maximum():
    relu = ReluNetwork.from_layers([([[1.0, 0.0]], [0]), ([[1.0]], [0])])
    found = local_maxima(relu, (-1, 1))
    assert found.values.tolist() == [1] and found.dims.tolist() == [1]  # the right side only


def test_a_constant_is_one_plateau():
    net = ReluNetwork.from_layers([([[1.0, 2.0], [0, 1]], [0, 0]), ([[0.0, 0.0], [1, 1]], [3, 0])])
    for found in (local_maxima(net, (-1, 1)), local_minima(net, (-1, 1))):
        assert len(found) == 1 and found.dims.tolist() == [2] and found.values.tolist() == [3]
    assert local_maxima(net, (-1, 1), output=1).values.tolist() == [4]


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_unseen_cells_are_not_judged(d, seed):
    net = random_network(np.random.default_rng(seed), d, (12, 8))
    whole = polyhedral_complex(net, (-1, 1))
    part = first_cells(whole, 3 * len(whole) // 4)
    all_found, found = local_maxima(whole), local_maxima(part)
    assert all_found.exact and not found.exact and "not complete" in repr(found)
    assert {tuple(p) for p in found.points.round(9) + 0.0} <= {
        tuple(p) for p in all_found.points.round(9) + 0.0
    }


@pytest.mark.parametrize("seed", range(5))
def test_maxima_with_all_their_cells_are_found_although_others_are_missing(seed):
    net = random_network(np.random.default_rng(seed), 2, (12, 8))
    whole = polyhedral_complex(net, (-1, 1))
    part = first_cells(whole, 3 * len(whole) // 4)
    found = {tuple(p) for p in local_maxima(part).points.round(9) + 0.0}
    owner = np.repeat(np.arange(len(whole)), np.diff(whole.offsets))
    for x in local_maxima(whole).points:
        around = owner[np.abs(whole.cell_vertices - x).max(axis=1) < 1e-9]
        assert (tuple(x.round(9) + 0.0) in found) == bool(np.all(around < len(part)))


def test_no_cell_no_maximum():
    nothing = local_maxima(random_network(np.random.default_rng(0), 2, (4,)), (-1, 1), budget=0)
    assert len(nothing) == 0 and not nothing.exact


def test_bad_input_of_local_extrema():
    net = random_network(np.random.default_rng(0), 2, (4,))
    with pytest.raises(TypeError, match="needs a box"):
        local_maxima(net)
    with pytest.raises(TypeError, match="its own box"):
        local_maxima(polyhedral_complex(net, (-1, 1)), (-1, 1))
    with pytest.raises(ValueError, match="output must be an integer of at least 0 and at most 0; got 1"):
        local_maxima(net, (-1, 1), output=1)
    with pytest.raises(TypeError, match="ReluNetwork or a PolyhedralComplex"):
        local_maxima(np.eye(2), Box([0], [1]))
