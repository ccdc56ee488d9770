"""Signs of slopes: zero means rounding of the own cell, not small beside others."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.facts.values_and_slopes import computed_anew, slope_jumps, slope_signs
from tests.geometry.oracles import KINDS, cube, degenerate_network, random_network


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [2, 3])
def test_signs_agree_with_exact_arithmetic(kind, d):
    net = degenerate_network(kind, d, np.random.default_rng(d), widths=(5, 4))
    cx, exact = polyhedral_complex(net, cube(d)), exact_complex(net, cube(d))
    true = {
        pattern.tobytes(): [[(a > 0) - (a < 0) for a in row[:-1]] for row in rows]
        for pattern, rows in zip(exact.patterns, exact.maps, strict=True)
    }
    for pattern, signs in zip(cx.patterns, slope_signs(cx), strict=True):
        assert signs.tolist() == true[pattern.tobytes()]


def test_a_gentle_slope_beside_a_steep_one_is_seen():
    # Slope 1e-14 left of 0 and 1 right of it: small, but no rounding.
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, -1e-14]], [0])])
    cx = polyhedral_complex(net, (-1, 1))
    assert slope_signs(cx).ravel().tolist() == [1, 1]
    assert np.all(slope_jumps(cx, cx.neighbours) > 0.9)


def test_jumps_that_cancel_are_zero():
    net = ReluNetwork.from_layers([([[1.0, 0.3]] * 3, [0, 0, 0]), ([[0.1, 0.2, -0.3]], [0])])
    cx = polyhedral_complex(net, (-1, 1))
    assert np.abs(cx.A).max() > 0  # what rounding leaves
    assert not slope_jumps(cx, cx.neighbours).any() and not slope_signs(cx).any()


def test_slopes_computed_anew_are_those_of_the_complex():
    net = random_network(np.random.default_rng(0), 3, (6, 6))
    cx = polyhedral_complex(net, (-1, 1))
    anew, ties = computed_anew(cx, np.arange(len(cx)))
    np.testing.assert_allclose(anew, cx.A, atol=1e-12)
    assert np.all(ties < 1e-9)
