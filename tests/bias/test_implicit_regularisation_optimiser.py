"""A wrapper of gradient descent that adds or cancels its implicit penalty."""

import numpy as np
import pytest
import torch

from pindown.bias.discretisation import convergence_order
from pindown.bias.flow import gradient_flow
from pindown.bias.implicit_regularisation import (
    ImplicitRegularisation,
    array_gradient,
    emulating_multiple,
    modified_gradient,
)

torch.set_num_threads(1)


def loss(w):
    return torch.sin(w[0]) * torch.cos(1.3 * w[1]) + 0.3 * w[0] ** 2 + 0.1 * w[1] ** 4


def start():
    return torch.nn.Parameter(torch.tensor([0.7, -0.4], dtype=torch.float64))


def test_a_step_is_that_of_the_modified_gradient():
    w, h = start(), 0.2
    before = w.detach().clone()
    value = ImplicitRegularisation(torch.optim.SGD([w], lr=h), "add", 3.0).step(lambda: loss(w))
    expected = before - h * modified_gradient(loss, 3 * h)(before)
    torch.testing.assert_close(w.detach(), expected, atol=1e-14, rtol=0)
    assert float(value) == pytest.approx(float(loss(before)))
    assert not value.requires_grad


def test_cancelled_descent_follows_the_flow_one_order_closer():
    steps, plain, cancelled = [0.08, 0.04, 0.02], [], []
    for h in steps:
        n = round(0.64 / h)
        end = gradient_flow(
            array_gradient(loss), [0.7, -0.4], time=n * h, method="ivp", step=h, record=1
        ).end
        for effect, multiple, errors in (("add", 0.0, plain), ("cancel", 1.0, cancelled)):
            w = start()
            descent = ImplicitRegularisation(torch.optim.SGD([w], lr=h), effect, multiple)
            for _ in range(n):
                descent.step(lambda w=w: loss(w))
            errors.append(np.linalg.norm(w.detach().numpy() - end))
    assert convergence_order(steps, plain) == pytest.approx(1, abs=0.2)
    assert convergence_order(steps, cancelled) == pytest.approx(2, abs=0.2)


def test_small_steps_do_what_large_ones_would():
    large, small, n = 0.16, 0.01, 6
    ends = {}
    for name, h, multiple in (
        ("large", large, 0.0),
        ("small", small, 0.0),
        ("emulated", small, emulating_multiple(small, large)),
    ):
        w = start()
        descent = ImplicitRegularisation(torch.optim.SGD([w], lr=h), "add", multiple)
        for _ in range(round(n * large / h)):
            descent.step(lambda w=w: loss(w))
        ends[name] = w.detach()
    near = float((ends["emulated"] - ends["large"]).norm())
    assert 3 * near < float((ends["small"] - ends["large"]).norm())
    assert emulating_multiple(0.3, 0.3) == 0.0  # a step does what it would, without help


def test_emulation_is_right_to_the_second_order_of_the_step():
    gaps = []
    for large in (0.08, 0.04):
        ends = []
        for h, multiple in ((large, 0.0), (large / 2, emulating_multiple(large / 2, large))):
            w = start()
            descent = ImplicitRegularisation(torch.optim.SGD([w], lr=h), "add", multiple)
            for _ in range(round(0.48 / h)):
                descent.step(lambda w=w: loss(w))
            ends.append(w.detach())
        gaps.append(float((ends[0] - ends[1]).norm()))
    assert 3.4 < gaps[0] / gaps[1] < 4.6


def test_groups_with_steps_of_their_own_and_weight_decay():
    """One step from a flow with a diagonal matrix of steps and a decay, by the general correction."""
    rates, decay = torch.tensor([0.03, 0.07], dtype=torch.float64), 0.5
    a = torch.nn.Parameter(torch.tensor([0.7], dtype=torch.float64))
    b = torch.nn.Parameter(torch.tensor([-0.4], dtype=torch.float64))
    groups = [{"params": [a], "lr": 0.03}, {"params": [b], "lr": 0.07}]
    inner = torch.optim.SGD(groups, lr=1.0, weight_decay=decay)
    w = torch.cat([a.detach(), b.detach()])

    def penalised(v):
        return loss(v) + decay / 2 * (v**2).sum()

    g = torch.func.grad(penalised)(w)
    H = torch.autograd.functional.hessian(penalised, w)
    expected = w - rates * (g - H @ (rates * g) / 2)
    ImplicitRegularisation(inner, "cancel").step(lambda: loss(torch.cat([a, b])))
    torch.testing.assert_close(torch.cat([a.detach(), b.detach()]), expected, atol=1e-14, rtol=0)


def test_a_network_trains_with_parameters_that_are_not_used():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    unused = torch.nn.Parameter(torch.ones(3))
    X, y = torch.randn(30, 2), torch.randn(30, 1)
    descent = ImplicitRegularisation(torch.optim.SGD([*net.parameters(), unused], lr=0.05))
    losses = [float(descent.step(((net(X) - y) ** 2).mean)) for _ in range(60)]
    assert losses[-1] < losses[0] and unused.tolist() == [1.0] * 3
    kept = descent.state_dict()
    other = ImplicitRegularisation(torch.optim.SGD([*net.parameters(), unused], lr=0.5), "cancel", 2.0)
    other.load_state_dict(kept)
    assert other.effect == "add" and other.param_groups[0]["lr"] == 0.05
    other.zero_grad()
    assert all(p.grad is None for p in net.parameters()) and "SGD, add" in repr(other)


def test_a_linear_loss_has_no_penalty():
    w = torch.nn.Parameter(torch.zeros(2))
    ImplicitRegularisation(torch.optim.SGD([w], lr=1.0)).step(w.sum)
    assert w.tolist() == [-1.0, -1.0]


def test_refusals():
    w = start()
    with pytest.raises(TypeError, match="torch optimiser"):
        ImplicitRegularisation(w)
    with pytest.raises(ValueError, match="'add', 'cancel'"):
        ImplicitRegularisation(torch.optim.SGD([w], lr=0.1), "remove")
    for inner in (torch.optim.Adam([w]), torch.optim.SGD([w], lr=0.1, momentum=0.9)):
        assert not ImplicitRegularisation(inner).plain
        with pytest.raises(ValueError, match="only plain gradient descent"):
            ImplicitRegularisation(inner, "cancel")
    descent = ImplicitRegularisation(torch.optim.SGD([w], lr=0.1))
    with pytest.raises(ValueError, match="without calling backward"):
        descent.step(lambda: None)
    with pytest.raises(ValueError, match="finite"):
        descent.step(lambda: w.sum() * float("nan"))
    with pytest.raises(ValueError, match="multiple must"):
        ImplicitRegularisation(torch.optim.SGD([w], lr=0.1), multiple=-1.0)
    with pytest.raises(ValueError, match="emulated must"):
        emulating_multiple(0.1, 0.05)


def test_momentum_that_is_switched_on_later_is_refused():
    w = torch.nn.Parameter(torch.ones(2))
    plain = torch.optim.SGD([w], lr=0.1)
    descent = ImplicitRegularisation(plain, "cancel")
    plain.param_groups[0]["momentum"] = 0.9
    with pytest.raises(ValueError, match="only plain gradient descent"):
        descent.step(lambda: (w**2).sum() / 2)
