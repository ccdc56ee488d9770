"""The exact Lipschitz constant: between difference quotients and the bounds from layer norms."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.facts.lipschitz import _enclosed, _operator_norms, lipschitz_constant
from pindown.relaxation import lipschitz_bounds
from tests.geometry.hostile import HOSTILE, hostile_network
from tests.geometry.oracles import KINDS, cube, degenerate_network, reference_network
from tests.geometry.partial import first_cells

ORDERS = {"l1": 1, "l2": 2, "linf": inf}


@pytest.mark.parametrize("norm", ORDERS)
@pytest.mark.parametrize("widths", [(1, 10, 10, 3), (2, 12, 12, 3), (3, 8, 8, 2), (2, 16, 1)])
def test_no_difference_quotient_is_larger_and_one_is_equal(norm, widths):
    net, box = reference_network(widths, 0), cube(widths[0])
    found = lipschitz_constant(net, box, norm=norm)
    rng = np.random.default_rng(0)
    x, y = box.sample(20_000, rng), box.sample(20_000, rng)
    near = np.clip(x + 1e-3 * (y - x), box.lower, box.upper)
    for other in (y, near):
        rise = np.linalg.norm(net(other) - net(x), ord=ORDERS[norm], axis=1)
        run = np.linalg.norm(other - x, ord=ORDERS[norm], axis=1)
        assert np.max(rise / run) <= found.value * (1 + 1e-9)
    step = 1e-7 * found.direction  # inside the steepest cell
    rise = np.linalg.norm(net(found.point + step) - net(found.point - step), ord=ORDERS[norm])
    assert np.linalg.norm(found.direction, ord=ORDERS[norm]) == pytest.approx(1)
    assert rise / np.linalg.norm(2 * step, ord=ORDERS[norm]) == pytest.approx(found.value, rel=1e-6)
    assert found.exact and found.norms.max() == found.value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [2, 3])
def test_layer_norms_bound_it(kind, d):
    net = degenerate_network(kind, d, np.random.default_rng(d), widths=(6, 6))
    exact, bounds = lipschitz_constant(net, (-1, 1)), lipschitz_bounds(net, box=cube(d))
    assert exact.value <= bounds.upper * (1 + 1e-9)


def test_matrices_have_their_operator_norms():
    A = np.array([[1.0, -2.0, 0.5], [3.0, 0.0, -4.0]])
    net = ReluNetwork.from_layers([(A, [0, 0])])
    for norm, order in ORDERS.items():
        assert lipschitz_constant(net, (-1, 1), norm=norm).value == pytest.approx(
            np.linalg.norm(A, ord=order)
        )
    assert lipschitz_constant(net, (-1, 1), output=1).value == pytest.approx(5)
    assert lipschitz_constant(net, (-1, 1), norm=inf, output=0).value == pytest.approx(3.5)


@pytest.mark.parametrize("family", HOSTILE)
@pytest.mark.parametrize("d", [1, 1, 1, 2, 3])
def test_the_bounds_hold_the_rational_constant_and_meet(family, d, request):
    rng = np.random.default_rng([d, len(request.node.nodeid), HOSTILE.index(family)])
    net, box = hostile_network(rng, d, family)
    slopes = [rows[0][:-1] for rows in exact_complex(net, box).maps]
    powers = {
        "l1": lambda slope: max(map(abs, slope)),
        "linf": lambda slope: sum(map(abs, slope)),
        "l2": lambda slope: sum(a * a for a in slope),
    }
    for norm, power in powers.items():
        found, truth = lipschitz_constant(net, box, norm=norm), max(map(power, slopes))
        low, high = (Fraction(end) ** (2 if norm == "l2" else 1) for end in (found.lower, found.upper))
        assert low <= truth <= high, norm
        assert found.exact and found.lower <= found.value <= found.upper
        assert found.upper - found.lower <= 1e-9 * found.upper


@pytest.mark.parametrize(
    ("layers", "box", "constant"),
    [
        ([([[1.0], [1.0]], [0, -1e-12]), ([[1e12, -1e12]], [0.0])], 1, 1e12),  # a cell of width 1e-12
        ([([[1.0], [1.0]], [0, -1.0]), ([[1.0, -1.0]], [0.0])], 1e12, 1),
        ([([[1.0], [1.0]], [0.7, 0.7]), ([[1e15, 1 - 1e15]], [0.0])], 1, 1),  # slopes that cancel
        ([([[1.0], [1.0]], [0, 0]), ([[1e17, -1e17]], [0.0])], 1, 0),
    ],
)
def test_thin_cells_and_cancelling_slopes(layers, box, constant):
    found = lipschitz_constant(ReluNetwork.from_layers(layers), (-box, box))
    assert found.exact and found.value == constant and found.lower <= constant <= found.upper


def test_spectral_norms_are_enclosed():
    net = reference_network((3, 6, 6, 4), 1)
    found = lipschitz_constant(net, (-1, 1))
    maps = np.array(exact_complex(net, (-1, 1)).maps, dtype=float)[:, :, :-1]
    assert found.exact and found.upper - found.lower < 1e-11
    assert found.lower <= np.linalg.norm(maps, ord=2, axis=(1, 2)).max() * (1 + 1e-14)
    assert found.upper >= np.linalg.norm(maps, ord=2, axis=(1, 2)).max() * (1 - 1e-14)


@pytest.mark.parametrize("order", [1, 2, inf])
def test_norms_with_errors_are_enclosed(order):
    """Errors along the stretched direction move the norm most; in l1 and linf by all they have."""
    rng = np.random.default_rng(2)
    A = rng.normal(size=(30, 3, 4))
    error = 1e-3 * rng.random(A.shape)
    lower, upper = _enclosed(A, error, order, _operator_norms(A, order))
    for matrix, off, low, high in zip(A, error, lower, upper, strict=True):
        u, _, v = np.linalg.svd(matrix)
        worst = np.sign(np.outer(u[:, 0], v[0]) if order == 2 else matrix) * off
        top, bottom = (np.linalg.norm(matrix + sign * worst, ord=order) for sign in (1, -1))
        assert low <= bottom and top <= high
        if order != 2:
            assert high <= top * (1 + 1e-12) and low >= bottom * (1 - 1e-12)
        assert high - low < 0.02


def test_signs_that_are_not_proved_prove_no_constant():
    layers = [([[1.0], [1.0]], [0, -1e-12]), ([[1e12, -1e12]], [0.0])]
    plain = polyhedral_complex(ReluNetwork.from_layers(layers), (-1, 1))
    found = lipschitz_constant(plain)
    assert found.status == "float64" and not found.exact
    assert found.lower <= 1e12 <= found.upper < 2.1e12 and "surely in [0, 2e+12]" in repr(found)


def test_cells_that_are_not_where_they_should_be_prove_nothing():
    """Slopes 0, 2 and 1; with all vertices where the slope is 0, only that cell is surely there."""
    net = ReluNetwork.from_layers([([[1.0], [1.0]], [0, -1]), ([[2.0, -1.0]], [0])])
    plain = polyhedral_complex(net, (-1, 4))
    assert lipschitz_constant(plain).lower == pytest.approx(2)
    plain.cells.coords[:] = -0.5
    found = lipschitz_constant(plain)
    assert found.lower == 0.0 and found.upper >= 2.0 and not found.exact


def test_numbers_beyond_float64():
    net = ReluNetwork.from_layers([([[1e200]], [0]), ([[1e200], [1.0]], [0, 0])])
    found = lipschitz_constant(net, (-1, 1))
    assert found.upper == inf and not found.exact
    assert lipschitz_constant(net, (-1, 1), output=1).exact


def test_partial_search_gives_a_lower_bound():
    whole = polyhedral_complex(reference_network((2, 16, 16, 2), 0), (-1, 1))
    part = lipschitz_constant(first_cells(whole, 5))
    assert not part.exact and part.value <= lipschitz_constant(whole).value
    assert repr(part).startswith("LipschitzConstant(at least")
    nothing = lipschitz_constant(whole.net, (-1, 1), budget=0)
    assert nothing.value == 0 and nothing.cell == -1 and not nothing.exact


def test_bad_norm():
    with pytest.raises(ValueError, match="norm must be one of 'l1', 'l2', 'linf'; got 3"):
        lipschitz_constant(reference_network((2, 4, 1), 0), (-1, 1), norm=3)
