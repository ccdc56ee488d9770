"""Bounds from norms are attained on a line, where every norm is a number."""

import numpy as np
import pytest

from pindown.network import ReluNetwork
from pindown.relaxation.difference_network import norm_gap


def line(weights, biases):
    return ReluNetwork.from_layers([([[w]], [b]) for w, b in zip(weights, biases, strict=True)])


def gap_at_the_ends(a, b):
    """The gap at 0 and far out, relative to 1 + |x|; between them it is between these."""
    X = np.array([[0.0], [1e12]])
    return (np.abs(a(X) - b(X)) / (1 + X)).max()


@pytest.mark.parametrize("steep", [0.1, 10.0])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_bounds_from_norms_are_attained_by_pairs_of_equal_widths(depth, steep):
    rng = np.random.default_rng(depth)
    for _ in range(10):
        weights, biases = steep * (1 + rng.random(depth)), 1 + rng.random(depth)
        more, moved = weights * (1 + 0.1 * rng.random(depth)), biases * (1 + 0.1 * rng.random(depth))
        a, b = line(more, moved), line(weights, biases)
        assert norm_gap(a, b) == pytest.approx(gap_at_the_ends(a, b), rel=1e-9)
        assert norm_gap(a, b) >= gap_at_the_ends(a, b) * (1 - 1e-11)


@pytest.mark.parametrize("steep", [0.1, 10.0])
def test_bounds_from_norms_are_attained_by_pairs_of_opposite_sign(steep):
    rng = np.random.default_rng(7)
    for _ in range(10):
        a = line(steep * (1 + rng.random(3)), 1 + rng.random(3))
        b = line(-steep * (1 + rng.random(1)), -1 - rng.random(1))
        assert norm_gap(a, b) == pytest.approx(gap_at_the_ends(a, b), rel=1e-9)


def test_bounds_from_norms_hold_in_more_dimensions():
    rng = np.random.default_rng(8)
    for _ in range(20):
        layers = [(rng.normal(size=(m, n)), rng.normal(size=m)) for n, m in ((3, 5), (5, 4), (4, 2))]
        other = [
            (W + 0.1 * rng.normal(size=W.shape), b + 0.1 * rng.normal(size=b.shape)) for W, b in layers
        ]
        a, b = ReluNetwork.from_layers(layers), ReluNetwork.from_layers(other)
        X = rng.normal(size=(2000, 3)) * 10.0 ** rng.uniform(-2, 4, (2000, 1))
        seen = np.abs(a(X) - b(X)).max(axis=1) / (1 + np.linalg.norm(X, axis=1))
        assert seen.max() <= norm_gap(a, b)
