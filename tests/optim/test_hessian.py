"""Hessian-vector products against finite differences, eigenvalues against the dense matrix."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from pindown.optim import hessian_operator, hessian_spectrum


def problem(sizes=(4, 12, 8, 3), seed=0, dtype=torch.float64, layer=torch.nn.Tanh):
    torch.manual_seed(seed)
    parts = []
    for a, b in pairwise(sizes):
        parts += [torch.nn.Linear(a, b), layer()]
    net = torch.nn.Sequential(*parts[:-1]).to(dtype)
    X, y = torch.randn(30, sizes[0], dtype=dtype), torch.randn(30, sizes[-1], dtype=dtype)

    def loss():
        return ((net(X) - y) ** 2).mean()

    return net, loss


def dense(net, loss):
    params = list(net.parameters())
    grads = torch.autograd.grad(loss(), params, create_graph=True)
    flat = torch.cat([g.reshape(-1) for g in grads])
    rows = []
    for v in flat:
        row = torch.autograd.grad(v, params, retain_graph=True, materialize_grads=True)
        rows.append(torch.cat([r.reshape(-1) for r in row]))
    return torch.stack(rows).numpy()


def test_products_against_finite_differences():
    net, loss = problem()
    H = hessian_operator(loss, net.parameters())
    v = np.random.default_rng(0).normal(size=H.shape[0])
    h, params = 1e-5, list(net.parameters())
    start = torch.nn.utils.parameters_to_vector(params).detach().clone()

    def gradient(at):
        torch.nn.utils.vector_to_parameters(at, params)
        return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss(), params)]).numpy()

    shift = h * torch.as_tensor(v)
    difference = (gradient(start + shift) - gradient(start - shift)) / (2 * h)
    torch.nn.utils.vector_to_parameters(start, params)
    assert np.allclose(H @ v, difference, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("layer", [torch.nn.Tanh, torch.nn.ReLU])
def test_both_ends_against_the_dense_matrix(layer):
    net, loss = problem(layer=layer)  # 191 parameters
    values = np.linalg.eigvalsh(dense(net, loss))
    found = hessian_spectrum(loss, net.parameters(), tol=1e-8)
    assert found.converged and found.products > 0
    assert found.smallest == pytest.approx(values[0], rel=1e-6)
    assert found.largest == pytest.approx(values[-1], rel=1e-6)
    assert max(found.residuals) < 1e-6 * values[-1]
    lower = hessian_spectrum(loss, net.parameters(), ends="smallest", tol=1e-8)
    assert lower.smallest == pytest.approx(values[0], rel=1e-6) and np.isnan(lower.largest)
    assert lower.products < found.products


def test_float32_and_tiny_models():
    net, loss = problem((2, 3, 1), dtype=torch.float32)
    exact = np.linalg.eigvalsh(dense(net, loss).astype(float))
    found = hessian_spectrum(loss, net.parameters())
    assert found.smallest == pytest.approx(exact[0], abs=1e-5)
    assert found.largest == pytest.approx(exact[-1], rel=1e-4)


def test_the_parameters_and_their_gradients_are_left_alone():
    net, loss = problem()
    before = [p.detach().clone() for p in net.parameters()]
    hessian_spectrum(loss, net.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
    assert all(p.grad is None for p in net.parameters())


def test_running_out_of_products_is_said():
    """The eigenvalues are 2,000 numbers from -1 to 1: forty products cannot tell them apart."""
    spread = torch.linspace(-1, 1, 2000, dtype=torch.float64)
    w = torch.nn.Parameter(torch.ones(2000, dtype=torch.float64))
    found = hessian_spectrum(lambda: (spread * w**2).sum() / 2, [w], tol=1e-14, max_products=1)
    assert not found.converged and "not converged" in str(found)
    assert -1 - 1e-9 <= found.smallest <= found.largest <= 1 + 1e-9
    longer = hessian_spectrum(lambda: (spread * w**2).sum() / 2, [w], tol=1e-6, max_products=4000)
    assert longer.converged and longer.smallest == pytest.approx(-1, abs=1e-4)


def test_an_affine_loss_has_no_curvature():
    w = torch.nn.Parameter(torch.ones(40, dtype=torch.float64))
    assert not np.any(hessian_operator(w.sum, [w]) @ np.ones(40))
    found = hessian_spectrum(w.sum, [w])
    assert (found.smallest, found.largest, found.converged) == (0, 0, True)


def test_unused_parameters_have_zero_rows():
    a, b = (torch.nn.Parameter(torch.ones(2, dtype=torch.float64)) for _ in range(2))
    H = hessian_operator(lambda: a @ a, [a, b]) @ np.eye(4)
    assert np.array_equal(H, np.diag([2.0, 2.0, 0.0, 0.0]))


def test_bad_input_is_refused_in_words():
    w = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(ValueError, match="requires_grad"):
        hessian_operator(w.sum, [])
    with pytest.raises(ValueError, match="one finite number"):
        hessian_operator(lambda: w * 2, [w])
    with pytest.raises(ValueError, match="one finite number"):
        hessian_operator(lambda: w.sum() * float("nan"), [w])
    for constant in (None, 3.0, torch.tensor(3.0)):
        with pytest.raises(ValueError, match="depends on the parameters"):
            hessian_operator(lambda c=constant: c, [w])
    with pytest.raises(ValueError, match="tol must be"):
        hessian_spectrum(w.sum, [w], tol=-1.0)
    with pytest.raises(ValueError, match="ends must be"):
        hessian_spectrum(w.sum, [w], ends="middle")


def test_an_end_near_zero_beside_large_eigenvalues_is_approached():
    """A random vector sees the mean of the spectrum, 2e5; the smallest eigenvalue is -0.02."""
    weights = torch.linspace(0, 1, 300, dtype=torch.float64) ** 8 * 1e6
    weights[0] = -1e-2
    w = torch.nn.Parameter(torch.ones(300, dtype=torch.float64))
    found = hessian_spectrum(lambda: w @ (weights * w), [w])
    assert found.largest == pytest.approx(2e6, rel=1e-3)
    assert -0.02 - 1e-9 <= found.smallest <= 5.0
    assert not found.converged


def test_a_hessian_that_is_not_finite_is_refused():
    for n in (3, 40):
        w = torch.nn.Parameter(torch.zeros(n, dtype=torch.float64))
        with pytest.raises(ValueError, match="no second derivative"):
            hessian_spectrum(lambda w=w: (w**2).sqrt().sum(), [w])


def test_one_tensor_is_a_list_of_one_and_strangers_are_refused():
    w, other = (torch.nn.Parameter(torch.ones(3, dtype=torch.float64)) for _ in range(2))
    found = hessian_spectrum(lambda: w @ w, w)
    assert (found.smallest, found.largest) == (2.0, 2.0)
    with pytest.raises(ValueError, match="depends on none"):
        hessian_spectrum(lambda: w @ w, [other])
