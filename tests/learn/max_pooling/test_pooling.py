"""The network and its first phase against loops and automatic differentiation."""

import numpy as np
import pytest

from pindown.learn.max_pooling import pooling
from pindown.learn.max_pooling.layerwise import layerwise_schedule
from pindown.learn.max_pooling.pooling import first_phase, initial_weights, max_pool_network, pooled


def problem(seed, m=7, n=4, d=3, k=5):
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(m, n, d)), rng.normal(size=(k, d))
    return X, np.where(rng.random(m) < 0.5, 1.0, -1.0), W, np.where(rng.random(k) < 0.5, 1.0, -1.0)


def test_pooling_by_loops(monkeypatch):
    X, _, W, _ = problem(0)
    slow = [[max(0.0, *(w @ patch for patch in x)) for w in W] for x in X]
    np.testing.assert_allclose(pooled(X, W), slow)
    monkeypatch.setattr("pindown.learn.max_pooling.pooling.MAX_CHUNK_NUMBERS", 1)  # one point at a time
    np.testing.assert_allclose(pooled(X, W), slow)


@pytest.mark.parametrize("seed", range(5))
def test_one_step_is_the_gradient_that_torch_finds(seed):
    import torch

    X, y, W, a = problem(seed)
    schedule = layerwise_schedule(3, n_units=5, n_steps=1, step=0.3)
    weights = torch.tensor(W, requires_grad=True)
    outputs = torch.relu(torch.tensor(X) @ weights.T).amax(dim=1) @ torch.tensor(a)
    torch.nn.functional.softplus(-torch.tensor(y) * outputs).mean().backward()
    moved = first_phase(X, y, W, a, schedule)
    np.testing.assert_allclose(moved, W - 0.3 * weights.grad.numpy(), atol=1e-14)


def test_start_is_on_the_sphere_with_fair_signs():
    schedule = layerwise_schedule(4, n_units=4000)
    W, a = initial_weights(schedule, 4, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(W, axis=1), schedule.radius)
    assert set(a) == {1.0, -1.0}
    assert abs(a.mean()) < 4 / np.sqrt(4000)
    assert np.abs(W.mean(axis=0)).max() < 4 * schedule.radius / np.sqrt(4000)


@pytest.mark.parametrize("n_patches", [1, 2, 3, 5, 8])
def test_conversion_is_exact(n_patches):
    """With small whole weights there is no rounding: the network is the classifier to the last bit."""
    rng = np.random.default_rng(n_patches)
    W, a = rng.integers(-8, 9, (6, 3)).astype(float), rng.integers(-8, 9, 6).astype(float)
    X = rng.integers(-8, 9, (200, n_patches, 3)).astype(float)
    net = max_pool_network(W, a, n_patches, bias=3.0)
    np.testing.assert_array_equal(net(X)[:, 0], pooled(X, W) @ a + 3.0)
    assert net.input_shape == (n_patches, 3)
    assert len(net.hidden_widths) == int(np.ceil(np.log2(n_patches + 1)))
    exact = net.as_fractions()
    x = X[0].ravel().astype(int).tolist()
    assert exact(x)[0] == int(pooled(X[:1], W)[0] @ a) + 3


def test_schedules_meet_the_conditions_and_say_when_not():
    for d in range(3, 12):
        for steps in (1, 5, 20, 200):
            assert all(layerwise_schedule(d, n_steps=steps).conditions().values()), (d, steps)
    narrow = layerwise_schedule(5, n_units=10)
    assert not narrow.conditions()["width at least 8 d^3"]
    assert "not met: width" in str(narrow)
    assert "radius" in str(layerwise_schedule(5, radius=1.0))
    for bad in ({"n_patterns": 0}, {"n_patterns": 3, "n_steps": 0}, {"n_patterns": 3, "step": -1.0}):
        with pytest.raises(ValueError, match="must be"):
            layerwise_schedule(**bad)


def test_chunks_of_points_change_nothing(monkeypatch):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(23, 4, 3)), np.where(rng.random(23) < 0.5, 1.0, -1.0)
    schedule = layerwise_schedule(3, n_units=10, n_steps=5, step=0.3, radius=0.1)
    W, a = initial_weights(schedule, 3, rng)
    whole = first_phase(X, y, W, a, schedule), pooled(X, W)
    monkeypatch.setattr(pooling, "MAX_CHUNK_NUMBERS", 150)
    parts = first_phase(X, y, W, a, schedule), pooled(X, W)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
