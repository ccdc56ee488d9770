"""Real networks: split ones come back, pruned ones lose their dead units."""

from __future__ import annotations

import time

import numpy as np
import pytest

from pindown.box import Box
from pindown.equivalence.shrinking import shrink
from pindown.io import load
from tests.io.onnx_models import SHARED


def shared(name):
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not in the shared models folder")
    return load(path)


@pytest.mark.parametrize(
    ("split", "whole"),
    [
        ("mnist_256x4_split_a.onnx.gz", "mnist_256x4.onnx.gz"),
        ("mnist_256x4_split_b.onnx.gz", "mnist_256x4.onnx.gz"),
        ("cifar_conv_base_split.onnx.gz", "cifar_conv_base.onnx.gz"),
    ],
)
def test_split_networks_come_back(split, whole):
    net, original = shared(split), shared(whole).relu_network()
    start = time.process_time()
    result = shrink(net)
    assert time.process_time() - start < 3.0
    assert result.network.widths == original.widths and result.gap_upper == 0.0
    for (W, b), (V, c) in zip(result.network.layers, original.layers, strict=True):
        assert abs(W - V).max() == 0.0  # number for number
        np.testing.assert_allclose(b, c, atol=1e-6)  # a sum of two float32 biases
    X = np.random.default_rng(0).random((200, net.in_features))
    np.testing.assert_allclose(result.network(X), net(X), atol=1e-9)
    assert shrink(result.network).steps == () == shrink(result.model).steps


@pytest.mark.parametrize("pair", [1, 2])
@pytest.mark.parametrize("percent", [5, 10, 30])
def test_pruned_networks_lose_their_dead_units(pair, percent):
    net = shared(f"acasxu_1_{pair}_pruned{percent}.onnx")
    layers = net.relu_network().layers[:-1]
    idle = sum(int(np.count_nonzero(~W.any(axis=1) & (b <= 0))) for W, b in layers)
    result = shrink(net)
    assert result.saved >= idle > 0 and result.gap_upper == 0.0
    for (W, b), (V, _) in zip(result.network.layers, result.network.layers[1:], strict=False):
        assert W.any(axis=1).all() and V.any(axis=0).all() and len(b) == V.shape[1]
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (10_000, 5))
    np.testing.assert_allclose(result.network(X), net(X), atol=1e-9)


def test_lattice_network_shrinks_exactly():
    net = shared("tll_2d_n16_0.onnx.gz")
    box = Box.cube(2, -2, 2)
    result = shrink(net, box=box, budget=4.0)
    assert result.network.size < 300  # of 1020
    X = box.sample(10_000, np.random.default_rng(0))
    assert np.abs(result.network(X) - net(X)).max() <= result.gap_upper + 1e-9
    if result.gap_upper == 0.0:
        f, g = net.relu_network().as_fractions(), result.network.as_fractions()
        assert all(f(x) == g(x) for x in np.round(X[:2] * 64) / 64)


@pytest.mark.slow
def test_box_proofs_find_more_dead_units():
    net = shared("acasxu_1_1_pruned5.onnx")
    on_box = shrink(net, box=(-0.5, 0.5), budget=30.0)
    assert on_box.network.size < shrink(net).network.size
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (10_000, 5))
    np.testing.assert_allclose(on_box.network(X), net(X), atol=1e-9)
