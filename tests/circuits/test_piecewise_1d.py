"""Functions of one variable: evaluation, false knots, and the way back from a network."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.circuits.arithmetic import network
from pindown.circuits.piecewise_1d import PiecewiseLinear1D
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.slices.segment import count_pieces_on_line
from pindown.rational import RationalNetwork


def random_net(rng, widths):
    return ReluNetwork.from_layers(
        [(rng.integers(-8, 9, (b, a)) / 4, rng.integers(-8, 9, b) / 4) for a, b in pairwise(widths)]
    )


def test_values_between_knots_are_those_of_numpy():
    rng = np.random.default_rng(0)
    x, y = np.sort(rng.normal(size=9)), rng.normal(size=9)
    f = PiecewiseLinear1D.from_points(x, y)
    t = rng.normal(size=(20, 3)) * 2
    np.testing.assert_allclose(f(t), np.interp(t, x, y), atol=1e-12)
    assert [f.at(v) for v in t[0]] == pytest.approx(np.interp(t[0], x, y), abs=1e-12)


def test_slopes_outside():
    f = PiecewiseLinear1D([0, 2], [1, 5], left_slope=-3, right_slope=Fraction(1, 2))
    assert [f.at(x) for x in (-2, 0, 1, 2, 6)] == [7, 1, 3, 5, 7]
    assert f.exact and f.slopes == (-3, 2, Fraction(1, 2)) and f.n_pieces == 3
    assert not PiecewiseLinear1D([0, 2.0], [1, 5], -3, 1).exact


def test_knots_without_a_kink_are_merged():
    exact = PiecewiseLinear1D([0, 1, 2, 3], [0, 1, 2, 0], 1, 0)
    assert exact.breakpoints == (2, 3) and exact.n_pieces == 3
    assert exact.simplified().knots == (2, 3)
    assert [exact.at(x) for x in range(-3, 6)] == [exact.simplified().at(x) for x in range(-3, 6)]
    # In floats 0.1 + 0.2 is not 0.3: slopes differ by rounding, and are the same.
    x = np.arange(11) * 0.1
    assert PiecewiseLinear1D(x, 3 * x, 3.0, 3.0).n_pieces == 1
    assert PiecewiseLinear1D(x, 3 * x, 3.0, 3.0).as_fractions().n_pieces > 1
    line = PiecewiseLinear1D([0, 1], [5, 5], 0, 0)
    assert line.n_pieces == 1 and line.simplified().knots == (0,) and line.at(7) == 5


@pytest.mark.parametrize("widths", [(1, 1), (1, 3, 1), (1, 4, 3, 1), (1, 3, 3, 3, 1), (1, 6, 5, 1)])
@pytest.mark.parametrize("seed", range(5))
def test_networks_become_the_functions_they_are(widths, seed):
    net = random_net(np.random.default_rng(seed), widths)
    f = PiecewiseLinear1D.from_network(net.as_fractions())
    reach = 2 + max((abs(a) for a in f.breakpoints), default=1)
    for x in [*f.breakpoints, *(Fraction(v, 7) for v in range(-40, 41)), -reach, reach]:
        assert f.at(x) == net.as_fractions()([x])[0]
    # Independent routes: the exact cells of the geometry on an interval that holds all kinks.
    span = float(np.ceil(float(reach)))
    assert exact_complex(net, ([-span], [span])).n_pieces == f.n_pieces
    assert count_pieces_on_line(net, [0.0], [1.0], (-span, span)) == f.n_pieces
    rounded = PiecewiseLinear1D.from_network(net)
    assert not rounded.exact and rounded.n_pieces == f.n_pieces
    assert rounded.breakpoints == pytest.approx([float(a) for a in f.breakpoints], abs=1e-12)


def test_weights_that_are_no_floats():
    third = RationalNetwork.from_layers([([[Fraction(1, 3)]], [-1]), ([[3]], [Fraction(1, 7)])])
    f = PiecewiseLinear1D.from_network(third)
    assert f.breakpoints == (3,) and f.at(6) == Fraction(1, 7) + 3 and f.slopes == (0, 1)


def test_units_that_cancel_leave_no_kink():
    net = network([([[1], [1], [-1]], [0, 0, 0]), ([[1, -1, 0]], [2])], exact=True)
    f = PiecewiseLinear1D.from_network(net)
    assert f.n_pieces == 1 and f.at(-9) == f.at(9) == 2


def test_pieces_on_an_interval_and_picture():
    f = PiecewiseLinear1D([0, 1, 2], [0, 1, 0], 0, 0)
    assert f.on(0, 2) == 2 and f.on(-1, 3) == 4 and f.on(Fraction(1, 4), Fraction(1, 2)) == 1
    ax = f.plot(-1, 3)
    assert len(ax.lines[1].get_xdata()) == 3
    with pytest.raises(ValueError, match="lower < upper"):
        f.plot(1, 1)


def test_rounding_merges_knots_that_are_one_float():
    near = Fraction(1) + Fraction(1, 2**80)
    f = PiecewiseLinear1D([1, near], [0, 0], -1, 1).rounded()
    assert f.knots == (1.0,) and f(0.0) == 1 and f(2.0) == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: PiecewiseLinear1D([], [], 0, 0), ValueError, "got 0 knots and 0 values"),
        (lambda: PiecewiseLinear1D([0, 1], [0], 0, 0), ValueError, "2 knots and 1 values"),
        (lambda: PiecewiseLinear1D([1, 1], [0, 0], 0, 0), ValueError, "ascend; got 1 before 1"),
        (lambda: PiecewiseLinear1D([0], [float("inf")], 0, 0), ValueError, "finite; got inf"),
        (lambda: PiecewiseLinear1D([0, 1e-300], [-1e300, 1e300], 0, 0), ValueError, "overflows float64"),
        (lambda: PiecewiseLinear1D([10**400, 0.5], [0, 0], 0, 0), ValueError, "must fit float64"),
        (lambda: PiecewiseLinear1D.from_network("net"), TypeError, "got str"),
        (lambda: PiecewiseLinear1D(["a"], [0], 0, 0), TypeError, "real numbers; got 'a'"),
        (
            lambda: PiecewiseLinear1D.from_network(network([([[1, 2]], [0])], exact=True)),
            ValueError,
            r"this network has \(2, 1\)",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
