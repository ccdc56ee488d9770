"""Linear bounds make fewer units open and cut nothing off."""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from pindown.deadline import NEVER
from pindown.geometry import Box
from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.relaxation import mixed_integer as module
from pindown.relaxation.intervals import interval_bounds
from pindown.relaxation.mixed_integer import encode


def largest(encoding, output):
    row = encoding.output.weight[[output]].toarray().reshape(-1)
    result = milp(
        -row,
        constraints=LinearConstraint(encoding.rows, encoding.row_lower, encoding.row_upper),
        bounds=Bounds(encoding.lower, encoding.upper),
        integrality=encoding.integrality,
    )
    assert result.status == 0
    return -result.fun + encoding.output.bias[output]


def test_the_maximum_is_that_of_the_plain_encoding_with_fewer_open_units():
    rng = np.random.default_rng(0)
    saved = 0
    for _ in range(10):
        sizes = ((5, 3), (5, 5), (1, 5))
        net = ReluNetwork.from_layers([(rng.normal(size=s), rng.normal(size=s[0])) for s in sizes])
        box = Box.cube(3, -1, 1)
        plain, tight = encode(net, box), module.tight_encoding(net, box, deadline=NEVER)
        np.testing.assert_allclose(largest(tight, 0), largest(plain, 0), atol=1e-6)
        saved += ((tight.lower == tight.upper) & (tight.integrality == 1)).sum()
    assert saved > 0


def test_a_unit_that_is_zero_everywhere_leaves_no_contradiction(monkeypatch):
    """The unit of layer 2 is x - x: intervals leave it open, the best bounds there are say 0 to 0."""
    first = np.array([[1.0], [-1.0]]), np.array([5.0, 5.0])  # x + 5 and 5 - x, both on
    second = np.array([[1.0, 1.0]]), np.array([-10.0])
    net = ReluNetwork.from_layers([first, second, ([[1.0]], [3.0])])
    box = Box.cube(1, -1, 1)
    bounds = interval_bounds(net, box)
    exact = [bounds[0], Interval(np.zeros(1), np.zeros(1)), bounds[2]]
    monkeypatch.setattr(module, "linear_bounds", lambda *_args, **_settings: exact)
    tight = module.tight_encoding(net, box, deadline=NEVER)
    assert (tight.lower <= tight.upper).all()
    assert abs(largest(tight, 0) - 3.0) < 1e-6


def test_what_a_unit_that_is_never_on_feeds_is_left_out():
    """relu(x) + w relu(x / 1000 - 1) - 1/2 does not depend on w for |x| <= 2, nor does the program."""
    box = Box([-2], [2])
    for w in (1.0, 1e30):
        layers = [([[1.0], [1e-3]], [0, -1.0]), ([[1.0, w]], [-0.5]), ([[1.0]], [-0.25])]
        program = encode(ReluNetwork.from_layers(layers), box)
        assert abs(program.rows).max() <= 2.0
        assert abs(largest(program, 0) - 1.25) <= program.error[0]


def test_coefficients_that_the_solver_refuses_are_not_encoded():
    """relu(x - 1), of size 3 off and 1e-15 on, less half of that: the ratio is what a row would hold."""
    net = ReluNetwork.from_layers([([[1.0]], [-1.0]), ([[1.0]], [-5e-16]), ([[1.0]], [0])])
    assert encode(net, Box([-2], [1 + 1e-15])) is None
    assert abs(encode(net, Box([-2], [2])).rows).max() < 10
