"""The exact Lipschitz constant: between difference quotients and the bounds from layer norms."""

from math import inf

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.facts.lipschitz import lipschitz_constant
from pindown.guarantees.robustness import lipschitz_bounds
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


def test_partial_search_gives_a_lower_bound():
    whole = polyhedral_complex(reference_network((2, 16, 16, 2), 0), (-1, 1))
    part = lipschitz_constant(first_cells(whole, 5))
    assert not part.exact and part.value <= lipschitz_constant(whole).value
    assert repr(part).startswith("LipschitzConstant(at least")
    nothing = lipschitz_constant(whole.net, (-1, 1), budget=0)
    assert nothing.value == 0 and nothing.cell == -1 and not nothing.exact


def test_bad_norm():
    with pytest.raises(ValueError, match='"l1", "l2" or "linf"; got 3'):
        lipschitz_constant(reference_network((2, 4, 1), 0), (-1, 1), norm=3)
