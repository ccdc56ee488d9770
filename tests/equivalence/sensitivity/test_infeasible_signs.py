"""Proofs that no input has certain signs, against inputs that have them."""

import numpy as np
import pytest

from pindown.box import Box
from pindown.deadline import Deadline
from pindown.equivalence.sensitivity._infeasible_signs import no_such_input
from pindown.network import ReluNetwork
from tests.equivalence.nets import random_net


def signs_at(net, x, share, rng):
    """Return some of the signs that an input gives."""
    signs, a = [], x
    for W, b in net.layers[:-1]:
        z = W @ a + b
        signs.append(np.where(rng.random(len(z)) < share, np.where(z >= 0.0, 1.0, -1.0), 0.0))
        a = np.maximum(z, 0.0)
    return signs


@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("widths", [[2, 5, 1], [3, 6, 5, 1], [4, 5, 5, 5, 2]])
@pytest.mark.parametrize("seed", range(8))
def test_signs_that_an_input_has_are_never_ruled_out(seed, widths, share):
    rng = np.random.default_rng(seed)
    net = random_net(rng, widths)
    box = Box.cube(widths[0], -1, 1)
    for x in box.sample(4, rng):
        assert not no_such_input(net, box, signs_at(net, x, share, rng))


@pytest.mark.parametrize("seed", range(8))
def test_most_signs_that_no_input_of_a_grid_has_are_ruled_out(seed):
    rng = np.random.default_rng(seed)
    net = random_net(rng, [2, 4, 4, 1])
    box = Box.cube(2, -1, 1)
    axis = np.linspace(-1, 1, 201)
    X = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    z1 = X @ net.layers[0].weight.T + net.layers[0].bias
    z2 = np.maximum(z1, 0) @ net.layers[1].weight.T + net.layers[1].bias
    seen = {tuple(row) for row in np.where(np.hstack([z1, z2]) >= 0, 1.0, -1.0)}
    absent = proved = 0
    for _ in range(20):
        signs = rng.choice([-1.0, 1.0], 8)
        ruled_out = no_such_input(net, box, [signs[:4], signs[4:]])
        if tuple(signs) in seen:
            assert not ruled_out
        else:
            absent, proved = absent + 1, proved + ruled_out
    # With the signs of all units known the program is exact; a grid misses small cells.
    assert proved >= 0.8 * absent


def test_signs_that_touch_are_possible():
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0.0, 0.0]), ([[1.0, 1.0]], [0.0])])
    assert not no_such_input(net, Box([-1.0], [1.0]), [np.ones(2)])  # both are zero at zero
    apart = ReluNetwork.from_layers([([[1.0], [-1.0]], [-1e-9, 0.0]), ([[1.0, 1.0]], [0.0])])
    assert no_such_input(apart, Box([-1.0], [1.0]), [np.ones(2)])


def test_no_signs_no_time_or_a_point_for_a_box():
    net = random_net(np.random.default_rng(0), [3, 4, 4, 1])
    box = Box.cube(3, -1, 1)
    assert not no_such_input(net, box, [np.zeros(4), np.zeros(4)])
    apart = ReluNetwork.from_layers([([[1.0], [-1.0]], [-0.1, -0.1]), ([[1.0, 1.0]], [0.0])])
    for seconds in (-1.0, 10.0):
        deadline = Deadline.after(seconds)
        assert no_such_input(apart, Box([-1.0], [1.0]), [np.ones(2)], deadline=deadline) == (seconds > 0)
    point = Box(np.full(3, 0.25), np.full(3, 0.25))
    z = net.layers[0].weight @ point.lower + net.layers[0].bias
    assert no_such_input(net, point, [-np.sign(z), np.zeros(4)])
    assert not no_such_input(net, point, [np.sign(z), np.zeros(4)])
