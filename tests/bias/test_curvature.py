"""Hessians, curvature along directions, sharpness."""

import numpy as np
import pytest
import torch

from pindown.bias.curvature import (
    along,
    flat_loss,
    hessian,
    hessian_product,
    sharpness,
    top_eigenvalues,
    trace_estimate,
)
from pindown.bias.discretisation import convergence_order

torch.set_num_threads(1)


def net_loss(seed=0, width=5):
    torch.manual_seed(seed)
    net = torch.nn.Sequential(
        torch.nn.Linear(2, width), torch.nn.Tanh(), torch.nn.Linear(width, 1)
    ).double()
    X, y = torch.randn(12, 2, dtype=torch.float64), torch.randn(12, 1, dtype=torch.float64)
    return flat_loss(net, lambda f: ((f(X) - y) ** 2).mean())


def test_expansion_along_a_line_leaves_the_third_power():
    loss, w = net_loss()
    v = torch.randn(w.shape, dtype=torch.float64)
    model, unit = along(loss, w, 7 * v), v / v.norm()
    distances = [0.2, 0.1, 0.05]
    rests = [abs(float(loss(w + t * unit)) - model(t)) for t in distances]
    assert convergence_order(distances, rests) == pytest.approx(3, abs=0.2)
    h = 1e-4
    ahead, behind = float(loss(w + h * unit)), float(loss(w - h * unit))
    assert model.curvature == pytest.approx((ahead + behind - 2 * model.value) / h**2, abs=1e-5)
    assert model.slope == pytest.approx((ahead - behind) / (2 * h), abs=1e-7)


def test_matrix_products_eigenvalues_and_trace_agree():
    loss, w = net_loss(1)
    H = hessian(loss, w)
    assert float((H - H.T).abs().max()) < 1e-8
    v = torch.randn(w.shape, dtype=torch.float64)
    torch.testing.assert_close(hessian_product(loss, w, v), H @ v, atol=1e-10, rtol=0)
    values = np.linalg.eigvalsh(H.numpy())
    found = top_eigenvalues(loss, w, 3)
    np.testing.assert_allclose(found.values, values[::-1][:3], atol=1e-10)
    estimate = trace_estimate(loss, w, 200)
    assert abs(estimate.value - float(torch.trace(H))) < 4.5 * estimate.standard_error


def test_many_weights_go_through_products():
    scale = torch.linspace(0, 1, 500, dtype=torch.float64) ** 4 * 7

    def loss(w):
        return (scale * w**2).sum() / 2 + (w[0] * w[1]) ** 2

    found = top_eigenvalues(loss, torch.zeros(500, dtype=torch.float64), 2)
    np.testing.assert_allclose(found.values, np.sort(scale.numpy())[::-1][:2], rtol=1e-8)
    assert found.residual < 1e-6 and "largest eigenvalues" in str(found)


def test_module_loss_is_the_modules_and_leaves_it_alone():
    net = torch.nn.Linear(2, 1).double()
    before = [p.detach().clone() for p in net.parameters()]
    X = torch.randn(6, 2, dtype=torch.float64)
    loss, w = flat_loss(net, lambda f: (f(X) ** 2).mean() / 2)
    assert float(loss(w)) == pytest.approx(float((net(X) ** 2).mean().detach() / 2))
    ones = torch.cat([X, torch.ones(6, 1, dtype=torch.float64)], 1)
    torch.testing.assert_close(hessian(loss, w), ones.T @ ones / 6)
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))


def test_sharpness_of_a_quadratic_and_the_step_that_leaves_it():
    A = torch.diag(torch.tensor([10.0, 1.0, 0.1], dtype=torch.float64))

    def loss(w):
        return w @ A @ w / 2

    zero = torch.zeros(3, dtype=torch.float64)
    found = sharpness(loss, zero, radius=0.2, probes=4_000)
    assert found.largest == pytest.approx(10.0) and found.step_limit == pytest.approx(0.2)
    assert abs(found.rise - 0.2**2 / 6 * 11.1) < 4.5 * found.standard_error
    for step, leaves in ((0.19, False), (0.21, True)):
        w = torch.full((3,), 0.1, dtype=torch.float64)
        for _ in range(300):
            w = w - step * A @ w
        assert (float(w.norm()) > 1) == leaves
    assert sharpness(lambda w: -(w**2).sum(), zero).step_limit == np.inf


def test_refusals():
    loss, w = net_loss()
    for direction in (torch.zeros_like(w), w * float("nan"), torch.ones(2)):
        with pytest.raises(ValueError, match="direction must"):
            along(loss, w, direction)
    with pytest.raises(ValueError, match="at most"):
        top_eigenvalues(loss, w, 1_000)
    with pytest.raises(ValueError, match="at least 2"):
        trace_estimate(loss, w, 1)
    with pytest.raises(ValueError, match="finite"):
        sharpness(lambda v: v.sum() / 0, w * 0)
    with pytest.raises(ValueError, match="no trainable"):
        flat_loss(torch.nn.ReLU(), lambda f: f(torch.ones(1)).sum())


def quadratic(p=6, seed=0):
    """w' H w / 2 for a dense H, with H itself."""
    H = torch.as_tensor(np.random.default_rng(seed).standard_normal((p, p)))
    H = H + H.T
    return (lambda w: w @ H @ w / 2), H.numpy()


def test_residual_of_a_quadratic_is_rounding():
    loss, H = quadratic()
    found = top_eigenvalues(loss, torch.zeros(6, dtype=torch.float64), 3)
    assert found.residual <= 1e-12 * np.linalg.norm(H)
    np.testing.assert_allclose(
        H @ found.vectors, found.vectors * found.values, atol=1e-12 * np.linalg.norm(H)
    )


def test_standard_error_of_the_trace_is_that_of_random_signs():
    """The variance of z' H z over random signs is twice the sum of the squares off the diagonal."""
    loss, H = quadratic(seed=1)
    found = trace_estimate(loss, torch.zeros(6, dtype=torch.float64), 800)
    off = 2 * (np.sum(H**2) - np.sum(np.diag(H) ** 2))
    assert found.standard_error == pytest.approx(np.sqrt(off / 800), rel=0.15)
    assert abs(found.value - np.trace(H)) <= 4 * found.standard_error


def test_standard_error_of_the_rise_is_that_of_random_directions():
    """Over the sphere u^T H u has variance 2 (tr H^2 - (tr H)^2 / d) / (d (d + 2))."""
    H = torch.diag(torch.arange(1.0, 6.0, dtype=torch.float64))
    found = sharpness(lambda w: w @ H @ w / 2, torch.ones(5, dtype=torch.float64), probes=2000)
    variance = 2 * (55 - 15**2 / 5) / (5 * 7)
    assert found.standard_error == pytest.approx(0.1**2 / 2 * (variance / 2000) ** 0.5, rel=0.1)
    assert found.rise == pytest.approx(0.1**2 / 2 * 3, abs=5 * found.standard_error)
