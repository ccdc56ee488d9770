"""Dimension of clouds of points from their two nearest neighbours."""

import numpy as np
import pytest
import torch

from pindown.bias.dimension_estimate import intrinsic_dimension, layer_dimensions
from pindown.bias.tuning import SHARED_NEIGHBOURS

torch.set_num_threads(1)


@pytest.mark.parametrize("method", ["likelihood", "fit"])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_cubes_in_fifty_dimensions(d, method):
    rng = np.random.default_rng(d)
    frame, _ = np.linalg.qr(rng.standard_normal((50, d)))
    X = rng.uniform(size=(2000, d)) @ frame.T
    found = intrinsic_dimension(X, method=method)
    assert abs(found.value - d) < 0.1 * d
    turn, _ = np.linalg.qr(rng.standard_normal((50, 50)))
    moved = intrinsic_dimension(1e3 * X @ turn, method=method)
    assert moved.value == pytest.approx(found.value, rel=1e-3)


def circles(rng, n, d):
    angles = rng.uniform(0, 2 * np.pi, (n, d))
    return np.column_stack([np.cos(angles), np.sin(angles)])


def sphere(rng, n, d):
    X = rng.standard_normal((n, d + 1))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


CLOUDS = {
    "cube": lambda rng, n, d: rng.uniform(size=(n, d)),
    "ball": lambda rng, n, d: sphere(rng, n, d - 1) * rng.uniform(size=(n, 1)) ** (1 / d),
    "normal": lambda rng, n, d: rng.standard_normal((n, d)),
    "sphere": sphere,
    "simplex": lambda rng, n, d: rng.dirichlet(np.ones(d + 1), n),
    "circles": circles,
}


def held(cloud, n, d, runs):
    hits = 0
    for seed in range(runs):
        low, high = intrinsic_dimension(cloud(np.random.default_rng([seed, n, d]), n, d)).interval
        hits += low <= d <= high
    return hits / runs


@pytest.mark.parametrize("kind", CLOUDS)
@pytest.mark.parametrize("d", [2, 5, 10])
def test_the_interval_holds_the_dimension_as_often_as_it_says(kind, d):
    assert held(CLOUDS[kind], 300, d, 20) >= 0.9


def test_neighbours_that_points_share_widen_the_interval():
    """On a circle there are no edges and next to no curvature: independent ratios would give 0.89."""
    assert held(circles, 60, 1, 400) > 0.925


def test_the_interval_of_many_points_is_that_of_the_normal_law_at_95_percent():
    """In one dimension the biases vanish, and the logarithm has a variance of that share over n."""
    low, high = intrinsic_dimension(circles(np.random.default_rng(0), 2000, 1)).interval
    assert np.log(high / low) == pytest.approx(2 * 1.96 * np.sqrt(SHARED_NEIGHBOURS / 2000), rel=0.03)


def test_edges_of_a_cube_in_ten_dimensions_pull_the_estimate_down_and_not_out_of_the_interval():
    for seed in range(3):
        found = intrinsic_dimension(np.random.default_rng(seed).uniform(size=(2000, 10)))
        low, high = found.interval
        assert 7.9 < found.value < 9.5
        assert 6.5 < low < 8.0 and 10 < high < 13


def test_duplicates_are_left_out_and_degenerate_clouds_refused():
    X = np.random.default_rng(0).standard_normal((200, 3))
    found = intrinsic_dimension(np.vstack([X, X[:50]]))
    assert found.duplicates == 50 and found.value == pytest.approx(intrinsic_dimension(X).value)
    with pytest.raises(ValueError, match="different points"):
        intrinsic_dimension(np.ones((100, 3)))
    with pytest.raises(ValueError, match="a grid"):
        intrinsic_dimension(np.stack(np.meshgrid(range(9), range(9)), -1).reshape(-1, 2))
    with pytest.raises(ValueError, match="method must"):
        intrinsic_dimension(X, method="other")
    with pytest.raises(ValueError, match="X must"):
        intrinsic_dimension(X * np.nan)


def test_layers_of_a_network():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(10, 2), torch.nn.Linear(2, 30))
    net.train()
    found = layer_dimensions(net, torch.randn(500, 10))
    assert list(found) == ["input", "0", "1"] and net.training
    assert found["input"].value > 5 and abs(found["0"].value - 2) < 0.4
    assert found["1"].value == pytest.approx(found["0"].value, rel=0.2)
    assert list(layer_dimensions(net, torch.randn(50, 10), ["1"])) == ["input", "1"]
    with pytest.raises(ValueError, match="layers must name"):
        layer_dimensions(net, torch.randn(50, 10), ["7"])


@pytest.mark.parametrize("scale, shift", [(1e-200, 0.0), (1e200, 0.0), (1.0, 1e6)])
def test_dimension_is_free_of_place_and_scale(scale, shift):
    X = np.random.default_rng(0).uniform(size=(200, 20))
    moved = intrinsic_dimension(scale * X + shift)
    assert moved.value == pytest.approx(intrinsic_dimension(X).value, rel=1e-6)


def test_frozen_parts_keep_their_mode():
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3).eval())
    layer_dimensions(module, np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32))
    assert module.training and module[0].training and not module[1].training
