"""Linear bounds make fewer units open and cut nothing off."""

from math import inf

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from pindown.geometry import Box
from pindown.geometry.conditions import tight_encoding as module
from pindown.geometry.conditions.big_m import encode
from pindown.geometry.intervals import Interval, interval_bounds
from pindown.network import ReluNetwork


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
        plain, tight = encode(net, box), module.tight_encoding(net, box, deadline=inf)
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
    tight = module.tight_encoding(net, box, deadline=inf)
    assert (tight.lower <= tight.upper).all()
    assert abs(largest(tight, 0) - 3.0) < 1e-6
