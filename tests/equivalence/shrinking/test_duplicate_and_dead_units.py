"""With a tolerance, nearly superfluous units go too, and the proved gap says what that costs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pindown.box import Box
from pindown.equivalence.shrinking import shrink
from pindown.equivalence.shrinking._proposals import error_bound
from pindown.network import ReluNetwork
from tests.equivalence.shrinking.redundancy import pairs, random_net


def with_near_copy(seed, noise):
    rng = np.random.default_rng(seed)
    (W, b), (V, c), last = pairs(random_net(rng, [3, 5, 4, 2]))
    W = np.vstack([W, 1.5 * W[1] + noise * rng.standard_normal(3)])
    V = np.hstack([V, rng.standard_normal((4, 1))])
    return ReluNetwork.from_layers([(W, np.append(b, 1.5 * b[1])), (V, c), last])


@pytest.mark.parametrize("box", [None, (-1, 1)])
def test_near_copies_need_a_tolerance(box):
    for seed in range(10):
        net = with_near_copy(seed, 1e-6)
        width = shrink(net, box=box, budget=2.0).network.hidden_widths[0]
        result = shrink(net, box=box, tol=1e-2, budget=2.0)
        assert result.network.hidden_widths[0] < width
        assert 0.0 < result.gap_upper <= 1e-2
        X = np.random.default_rng(seed).uniform(-1, 1, (2000, 3))
        size = 1.0 + np.linalg.norm(X, axis=1, keepdims=True) if box is None else 1.0
        assert np.all(np.abs(net(X) - result.network(X)) <= result.gap_upper * size)


def test_the_gap_never_passes_the_tolerance():
    for tol in (1e-9, 1e-6, 1e-3, 1.0):
        for seed in range(5):
            net, box = random_net(np.random.default_rng(seed), [2, 8, 8, 1]), Box.cube(2, -1, 1)
            result = shrink(net, box=box, tol=tol, budget=2.0)
            X = box.sample(5000, np.random.default_rng(seed))
            assert np.abs(net(X) - result.network(X)).max() <= result.gap_upper + 1e-12
            assert result.gap_upper <= max(tol, 1e-12)


def test_a_large_tolerance_leaves_little():
    net = random_net(np.random.default_rng(0), [2, 8, 8, 1], scale=0.1)
    assert shrink(net, box=(-1, 1), tol=100.0, budget=5.0).network.size == 0


def test_error_bound_is_attained_by_one_path():
    """At x = -3 all errors of one path add up, and nothing cancels."""
    net = ReluNetwork.from_layers([([[-2.0]], [0.5]), ([[-5.0]], [0.25])])
    off = ReluNetwork.from_layers([([[-2.1]], [0.7]), ([[-5.1]], [-0.05])])
    errors = {0: (np.array([[0.1]]), np.array([0.2])), 1: (np.array([[0.1]]), np.array([0.3]))}
    bound = error_bound(net, errors, Box([-3], [1]))
    assert bound == pytest.approx(abs(off([-3.0]) - net([-3.0]))[0], rel=1e-12)


def test_error_bound_without_a_box_counts_the_bias():
    net = ReluNetwork.from_layers([([[0.1]], [3.0]), ([[1.0]], [0])])
    assert error_bound(net, {1: (np.array([[0.5]]), 0.0)}, None) >= 0.5 * 3.0


def test_error_bound_is_rounded_up():
    """Beside 1, terms of 2^-54 are lost one by one, and together they are many."""
    row = np.full((1, 4000), 2.0**-54)
    row[0, 0] = 1.0
    net = ReluNetwork.from_layers([(np.ones((4000, 1)), np.zeros(4000)), (row, [0])])
    bound = error_bound(net, {0: (0.0, np.ones(4000))}, Box([0], [1]))
    assert Fraction(bound) >= 1 + 3999 * Fraction(1, 2**54)


@pytest.mark.parametrize("box", [None, Box.cube(3, -2, 2)])
def test_error_bound_holds_for_networks_off_by_the_errors(box):
    rng = np.random.default_rng(0)
    for _ in range(20):
        net = random_net(rng, [3, 6, 5, 2])
        errors = {
            i: (1e-3 * rng.random(layer.weight.shape), 1e-3 * rng.random(layer.out_features))
            for i, layer in enumerate(net.layers)
        }
        bound = error_bound(net, errors, box)
        signs = [
            (rng.choice([-1, 1], e[0].shape), rng.choice([-1, 1], e[1].shape)) for e in errors.values()
        ]
        other = ReluNetwork.from_layers(
            (W + s * e[0], b + t * e[1])
            for (W, b), (s, t), e in zip(net.layers, signs, errors.values(), strict=True)
        )
        X = rng.uniform(-2, 2, (500, 3)) * (1.0 if box is not None else 50.0)
        gap = np.abs(net(X) - other(X))
        if box is None:
            gap /= 1.0 + np.linalg.norm(X, axis=1, keepdims=True)
        assert 0.0 < gap.max() <= bound
