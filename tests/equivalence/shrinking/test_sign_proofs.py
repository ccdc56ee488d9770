"""Signs that only a search can prove, and what happens when it cannot."""

from __future__ import annotations

import time

import numpy as np
import pytest

from pindown.box import Box
from pindown.deadline import Deadline
from pindown.equivalence.comparison import diff, methods
from pindown.equivalence.shrinking import shrink
from pindown.equivalence.shrinking._sign_proofs import signs_by_splitting
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import interval_bounds
from pindown.relaxation.linear import linear_bounds
from tests.equivalence.shrinking.redundancy import random_net


def dependent_dead_unit(d):
    """Holds relu(|x| - relu(x + 1) - relu(1 - x) - 0.1), never positive; intervals say up to 1.9."""
    first = np.zeros((5, d))
    first[:4, 0] = 1.0, -1.0, 1.0, -1.0
    first[4] = 1.0
    second = [[1.0, 1.0, -1.0, -1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0, -1.0]]
    layers = [(first, [0, 0, 1, 1, 0.3]), (second, [-0.1, -0.2, 0.1]), ([[3.0, 1.0, 1.0]], [0])]
    return ReluNetwork.from_layers(layers)


@pytest.mark.parametrize("d", [1, 2, 8])
def test_dead_units_that_intervals_miss(d):
    net, box = dependent_dead_unit(d), Box.cube(d, -2, 2)
    assert interval_bounds(net, box)[1].upper[0] > 0
    result = shrink(net, box=box, budget=20.0)
    assert any(step.rule == "dead" and step.layer == 2 for step in result.steps)
    X = box.sample(10_000, np.random.default_rng(0))
    np.testing.assert_allclose(result.network(X), net(X), atol=1e-9)


def test_units_proved_by_splitting_have_that_sign_everywhere():
    box, checked = Box.cube(2, -1, 1), 0
    X = box.sample(20_000, np.random.default_rng(1))
    for seed in range(10):
        net = random_net(np.random.default_rng(seed), [2, 6, 6, 6, 1])
        z = net.by_layer(net.preactivations(X[:50]))
        dead, on = [(part.max(axis=0) <= 0) for part in z], [(part.min(axis=0) >= 0) for part in z]
        proved = signs_by_splitting(net, box, dead, on, Deadline.after(5.0))
        many = net.by_layer(net.preactivations(X))
        for part, off, always in zip(many, *proved, strict=True):
            assert (part[:, off] <= 0).all() and (part[:, always] >= 0).all()
            checked += int(off.sum() + always.sum())
    assert checked > 20


def test_a_unit_that_is_positive_somewhere_stays():
    """It shows only on a strip 1e-3 wide, which samples may miss."""
    net = ReluNetwork.from_layers(
        [
            ([[1.0], [1.0], [1.0]], [0, -0.0005, -0.001]),
            ([[1.0, -2.0, 1.0], [1.0, 0.0, 0.0]], [-0.0002, 0.0]),
            ([[1.0, 1.0]], [0]),
        ]
    )
    x = np.array([0.0005])
    result = shrink(net, box=([-1], [1]), budget=5.0)
    assert net(x) > 0.00075
    np.testing.assert_allclose(result.network(x), net(x), atol=1e-12)


def test_budget_is_kept_and_nothing_is_lost():
    net = random_net(np.random.default_rng(0), [5, 60, 60, 60, 60, 3], scale=0.3)
    layers = [(np.array(W), np.array(b)) for W, b in net.layers]
    layers[0][0][:7], layers[0][1][:7] = 0.0, -1.0  # seven dead units
    start = time.monotonic()
    result = shrink(ReluNetwork.from_layers(layers), box=(-1, 1), budget=2.0)
    assert time.monotonic() - start < 4.0  # 2 s on an idle machine
    assert result.saved >= 7
    assert shrink(ReluNetwork.from_layers(layers), box=(-1, 1), budget=0.0).complete is False


def test_what_rests_on_a_solver_says_so(monkeypatch):
    """Where only programs prove units dead, shrink and diff name the solver; elsewhere they do not."""
    left = tuple(method for method in methods.ON_WEIGHTS if method.name == "search")
    monkeypatch.setattr(methods, "ON_WEIGHTS", left)  # cells and boxes would prove it without one
    rng = np.random.default_rng(4)
    W, b, V = rng.normal(size=(6, 4)), 0.3 * rng.normal(size=6), rng.normal(size=(3, 6))
    box = Box.cube(4, -1, 1)
    units = ReluNetwork.from_layers([(W, b), (V, np.zeros(3))])
    reached, bound = units(box.sample(10_000, rng)).max(axis=0), linear_bounds(units, box)[-1].upper
    net = ReluNetwork.from_layers(
        [(W, b), (V, -0.65 * reached - 0.35 * bound), (np.ones((1, 3)), [0.0])]
    )
    nothing = ReluNetwork.from_layers([(np.zeros((1, 4)), [0.0])])
    small, answer = shrink(net, box=box), diff(net, nothing, box=box)
    assert small.network.size == 0 and answer.verdict == "same"
    assert "HiGHS" in small.assumptions[-1] and "HiGHS" in answer.assumptions[-1]
    assert "HiGHS" in str(answer)
    assert shrink(units, box=box).assumptions == () == diff(units, units, box=box).assumptions
