"""Smallest and largest values: proved bounds against exact rationals, points against sampling."""

from fractions import Fraction

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry import Box
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.facts.extrema import output_range
from tests.geometry.exact_extrema import exact_cell_values
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
