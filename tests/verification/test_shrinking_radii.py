"""The steps of minimum-norm attacks one by one, as others make good what one of them misses."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.deadline import NEVER
from pindown.model.from_network import model_of_network
from pindown.verification import shrinking_radii as module
from pindown.verification.carlini_wagner import _slopes_averaged
from pindown.verification.classes import classifier
from pindown.verification.counterexamples import asked_of

PLANE = ReluNetwork.from_layers([([[3.0, 4.0]], [-5.0])])  # one class beyond 3 x + 4 y = 5


def about(net, X):
    model = classifier(model_of_network(net))
    return model, asked_of(model, X, None, None, None)


def recorded(distance, enough):
    """A state that only notes the radii it is asked for; a radius of ``enough`` succeeds."""
    asked = []

    def attacked(left, radii, **_):
        asked.append(float(radii[0]))
        hit = np.asarray(radii) >= enough
        state.distance[left[hit]] = np.asarray(radii)[hit]
        return hit

    given = SimpleNamespace(rows=np.ones((1, 2)), box=None)
    state = SimpleNamespace(distance=np.array([distance]), asked=given, attacked=attacked)
    return state, asked


def test_radii_double_until_one_succeeds():
    state, radii = recorded(math.inf, enough=0.1)
    module._doubled(state, 0, NEVER)
    np.testing.assert_allclose(np.divide(radii[1:], radii[:-1]), 2.0)
    assert radii[-2] < 0.1 <= radii[-1]


def test_radii_shrink_until_too_many_fail():
    state, radii = recorded(1.0, enough=0.5)
    module._shrunk(state, 0, NEVER)
    failed = [r < 0.5 for r in radii]
    assert (
        failed[-module.MAX_ATTACK_MISSES :] == [True] * module.MAX_ATTACK_MISSES
    )  # in a row, at the end
    assert sum(failed) >= module.MAX_ATTACK_MISSES > 1 and not failed[0]


def test_sliding_ends_at_the_nearest_point_of_a_plane():
    model, asked = about(PLANE, [[0.0, 0.0]])
    state = module._State(model, asked, "l2")
    state.tried(np.array([0]), np.array([[5 / 3 + 1e-9, 0.0]]), "a start")
    module._slid(state, NEVER)
    np.testing.assert_allclose(state.points[0], [0.6, 0.8], atol=1e-3)
    assert state.distance[0] == pytest.approx(1.0, rel=1e-3)


def test_corners_in_a_cell_and_by_gradients_are_one():
    """Where no unit switches on the way, the cell's own affine map and the slope at p say the same."""
    net = ReluNetwork.from_layers([(np.eye(2), [10.0, 10.0]), ([[3.0, 4.0], [0.0, 0.0]], [-75.0, 0.0])])
    model, asked = about(net, [[1.0, 2.0]])
    state, x, p = module._State(model, asked, "l2"), np.array([1.0, 2.0]), np.array([2.0, 1.0])
    rows = np.array([[1.0, -1.0]])  # 3 x + 4 y - 5 must come down to 0 from 6: along (3, 4) by 6 / 5
    found = [module._corner(state, known, x, p, rows) for known in (None, net)]
    np.testing.assert_allclose(found, [[1 - 0.72, 2 - 0.96]] * 2, atol=1e-4)


def test_the_mean_of_one_slope_is_that_slope():
    model, asked = about(PLANE, [[0.0, 0.0]])
    price, start = np.array([0.1]), np.zeros((1, 2))
    ways = [p for p, _ in _slopes_averaged(model, asked, "l2", price, start, 5, NEVER)]
    assert np.abs(ways[1]).max() > 0
    for point in ways[2:]:
        np.testing.assert_allclose(point, ways[1], rtol=1e-12)
