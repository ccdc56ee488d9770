"""Linearised models, lazy and rich training, and kernels beside networks."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from pindown import ReluNetwork
from pindown.bias.tangent_kernel import (
    Linearised,
    empirical_ntk,
    kernel_alignment,
    kernel_distance,
    kernel_versus_network,
    laziness,
    tangent_network,
    target_alignment,
)

torch.set_num_threads(1)


def descend(model, X, y, steps, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        (0.5 * torch.sum((model(X)[:, 0] - y) ** 2)).backward()
        optimizer.step()
    return model


def problem(n=16, d=4):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return torch.as_tensor(X / np.linalg.norm(X, axis=1, keepdims=True)), torch.as_tensor(
        np.sign(rng.standard_normal(n))
    )


def test_the_first_order_model_touches_the_network():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 7), nn.Tanh(), nn.Linear(7, 2)).double()
    X = problem()[0]
    model = Linearised(net)
    torch.testing.assert_close(model(X), net(X))
    ours = torch.autograd.grad(model(X)[:, 0].sum(), list(model.parameters()))
    theirs = torch.autograd.grad(net(X)[:, 0].sum(), list(net.parameters()))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)
    gaps = []
    for step in (1e-2, 1e-3):
        moved, there = copy.deepcopy(net), Linearised(net)
        with torch.no_grad():
            for p, q in zip(moved.parameters(), there.parameters(), strict=True):
                direction = torch.ones_like(p)
                p.add_(step * direction)
                q.add_(step * direction)
            gaps.append(float(torch.abs(moved(X) - there(X)).max()))
    assert gaps[1] == pytest.approx(gaps[0] / 100, rel=0.2)


def test_training_the_first_order_model_follows_its_kernel_exactly():
    from pindown.bias.tangent_kernel import ntk_predict

    X, y = problem()
    net = tangent_network([4, 30, 1])
    K, f0 = empirical_ntk(net, X), net(X)[:, 0].detach().numpy()
    lr = 1.0 / float(np.linalg.eigvalsh(K)[-1])
    model = descend(Linearised(net), X, y, 40, lr)
    wanted = ntk_predict(K, y.numpy(), 40, f0=f0, lr=lr, mode="gd").train[0]
    np.testing.assert_allclose(model(X)[:, 0].detach().numpy(), wanted, atol=1e-10)


def test_wide_networks_are_lazy_and_movement_falls_as_the_root_of_the_width():
    X, y = problem()
    widths, reports = (64, 256, 1024, 4096), []
    for m in widths:
        start = tangent_network([4, m, 1], random_state=3)
        lr = 0.5 / float(np.linalg.eigvalsh(empirical_ntk(start, X))[-1])
        end = descend(copy.deepcopy(start), X, y, 150, lr)
        reports.append(laziness(start, end, X))
    movement = [r.movement for r in reports]
    assert -0.6 < np.polyfit(np.log(widths), np.log(movement), 1)[0] < -0.4
    assert reports[-1].verdict == "lazy" and reports[-1].kernel_alignment > 0.99
    assert reports[-1].function_gap < reports[0].function_gap / 3
    assert reports[0].kernel_change > 3 * reports[-1].kernel_change


def test_small_weights_make_training_rich():
    X, y = problem()
    start = tangent_network([4, 50, 1], random_state=0)
    with torch.no_grad():
        for p in start.parameters():
            p.mul_(0.1)
    end = descend(copy.deepcopy(start), X, y, 1000, 0.3)
    found = laziness(start, end, X)
    assert found.verdict == "rich" and found.movement > 1
    assert "rich: parameters moved by" in str(found)


def test_networks_compare_as_modules_do():
    rng = np.random.default_rng(0)

    def net(shift):
        return ReluNetwork.from_layers([(W + shift, b) for W, b in layers])

    layers = [(rng.standard_normal((6, 3)), np.zeros(6)), (rng.standard_normal((1, 6)), np.zeros(1))]
    X = rng.standard_normal((5, 3))
    ours, theirs = laziness(net(0), net(0.1), X), laziness(net(0).to_torch(), net(0.1).to_torch(), X)
    assert ours == theirs and 0 < ours.movement < 0.2
    still = laziness(net(0), net(0), X)
    assert still.movement == still.kernel_change == still.function_gap == 0.0
    with pytest.raises(TypeError, match="both be networks"):
        laziness(net(0), net(0).to_torch(), X)
    with pytest.raises(ValueError, match="same parameters"):
        laziness(net(0), net(0)[:1], X)
    with pytest.raises(TypeError, match="got int"):
        laziness(1, 2, X)


def test_alignment_of_kernels():
    rng = np.random.default_rng(0)
    A, B = (M @ M.T for M in rng.standard_normal((2, 8, 8)))
    H = np.eye(8) - 1 / 8
    wanted = np.sum((H @ A @ H) * (H @ B @ H)) / np.linalg.norm(H @ A @ H) / np.linalg.norm(H @ B @ H)
    assert kernel_alignment(A, B) == pytest.approx(wanted)
    assert kernel_alignment(A, 1e300 * A) == 1.0 and kernel_alignment(A, A + 5) == pytest.approx(1)
    assert kernel_alignment(A, A + 5, centred=False) < 0.99
    y = rng.standard_normal(8)
    assert target_alignment(np.outer(y, y), y) == pytest.approx(1)
    assert target_alignment(A, np.ones(8)) == 0.0
    assert kernel_distance(A, A) == 0 and kernel_distance(np.zeros((2, 2)), np.eye(2)) == np.inf
    assert kernel_alignment([[2.0]], [[3.0]]) == 0.0  # one row has no direction once its mean is gone
    with pytest.raises(ValueError, match="same inputs"):
        kernel_alignment(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match="same inputs"):
        kernel_distance(np.eye(2), np.eye(3))


def test_comparison_of_a_network_that_is_its_own_kernel_machine():
    # A linear model fitted by least squares and its kernels, which never move, agree.
    rng = np.random.default_rng(0)
    X, Z, w = rng.standard_normal((40, 3)), rng.standard_normal((20, 3)), rng.standard_normal(3)
    net = ReluNetwork.from_layers([(w[None], [0.0])])
    start = ReluNetwork.from_layers([(np.zeros((1, 3)), [0.0])])
    found = kernel_versus_network(start, net, X, X @ w, Z, Z @ w)
    assert found.network == pytest.approx(0, abs=1e-20) and found.initial < 1e-10
    assert found.final == found.initial and found.alignment == pytest.approx(1)
    assert found.infinite < 1e-10 and "test error" in str(found)
    with pytest.raises(ValueError, match="two rows"):
        kernel_versus_network(start, net, X[:1], [1.0], Z, Z @ w)


def test_antisymmetric_networks_start_at_zero_with_the_same_kernel():
    X = problem()[0]
    plain, twin = tangent_network([4, 20, 1]), tangent_network([4, 20, 1], antisymmetric=True)
    assert float(twin(X).detach().abs().max()) == 0.0
    np.testing.assert_allclose(empirical_ntk(twin, X), empirical_ntk(plain, X), rtol=1e-10)


@pytest.mark.parametrize("change", [{"widths": [3]}, {"widths": [3, 0, 1]}, {"weight_std": -1.0}])
def test_impossible_networks_are_refused(change):
    with pytest.raises(ValueError, match=r"widths|weight_std|bias_std"):
        tangent_network(**{"widths": [2, 3, 1], **change})


class _LikeNames(torch.nn.Module):
    """Two parts whose parameters would have one name if dots were dashes; linear in each."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.ModuleDict({"b_c": torch.nn.Linear(3, 1)})
        self.a_b = torch.nn.ModuleDict({"c": torch.nn.Linear(3, 1)})

    def forward(self, x):
        return self.a["b_c"](x) + 2 * self.a_b["c"](x)


def test_parameters_of_like_names_stay_apart():
    X = np.random.default_rng(0).standard_normal((6, 3))
    assert len(list(Linearised(_LikeNames()).parameters())) == 4
    assert laziness(_LikeNames(), _LikeNames(), X).function_gap < 1e-5  # a linear model is its tangent


def test_the_infinite_kernel_has_the_depth_of_a_sequential():
    deep = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((12, 3)), rng.standard_normal((9, 3))
    data = (deep, deep, X, X[:, 0] * X[:, 1], Z, Z[:, 0] * Z[:, 1])
    assert kernel_versus_network(*data) == kernel_versus_network(*data, depth=3)
    assert kernel_versus_network(*data).infinite != kernel_versus_network(*data, depth=2).infinite
    with pytest.raises(ValueError, match="one column per output"):
        kernel_versus_network(deep, deep, X, X[:, :2], Z, Z[:, :2])


def test_a_product_of_two_weights_becomes_its_tangent_plane():
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)).double()
    a, b = (p.item() for p in net.parameters())
    model = Linearised(net)
    with torch.no_grad():
        for p, value in zip(model.parameters(), (a + 2.0, b - 3.0), strict=True):
            p.fill_(value)
    x = torch.tensor([[1.5]], dtype=torch.float64)
    assert model(x).item() == pytest.approx(1.5 * (a * b + 2.0 * b - 3.0 * a))


def test_distance_of_kernels_does_not_depend_on_their_scale():
    rng = np.random.default_rng(0)
    A, B = (Z @ Z.T for Z in rng.standard_normal((2, 4, 4)))
    expected = np.linalg.norm(B - A) / np.linalg.norm(A)
    for scale in (1.0, 1e-180, 1e180):
        assert kernel_distance(scale * A, scale * B) == pytest.approx(expected)
