"""Dimension of clouds of points from their two nearest neighbours."""

import numpy as np
import pytest
import torch

from pindown.bias.intrinsic_dimension import intrinsic_dimension, layer_dimensions

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


def test_interval_covers_on_a_torus_without_edges():
    """On a flat torus intervals of 95 % hold the dimension most of the time."""
    hits = 0
    for seed in range(40):
        angles = 2 * np.pi * np.random.default_rng(seed).uniform(size=(400, 2))
        X = np.column_stack([np.cos(angles), np.sin(angles)])
        low, high = intrinsic_dimension(X).interval
        hits += low <= 2 <= high
    assert hits >= 32


def test_edges_of_a_cube_in_ten_dimensions_pull_the_estimate_down():
    X = np.random.default_rng(0).uniform(size=(2000, 10))
    assert 8.0 < intrinsic_dimension(X).value < 9.5


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
