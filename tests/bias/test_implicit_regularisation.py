"""The modified loss: its value, its gradient, and what the slides have wrong about it."""

import mpmath
import numpy as np
import pytest
import torch

from pindown.bias.discretisation import convergence_order
from pindown.bias.flow import gradient_flow
from pindown.bias.implicit_regularisation import (
    array_gradient,
    implicit_penalty,
    modified_gradient,
    modified_loss,
    sgd_modified_loss,
)

torch.set_num_threads(1)
POINT = torch.tensor([0.7, -0.4], dtype=torch.float64)


def loss(w):
    return (
        torch.sin(w[0]) * torch.cos(1.3 * w[1]) + 0.3 * w[0] ** 2 + 0.1 * w[1] ** 4 + 0.2 * w[0] * w[1]
    )


def pieces(w):
    w = w.clone().requires_grad_()
    g = torch.autograd.grad(loss(w), w)[0]
    return g, torch.autograd.functional.hessian(loss, w.detach())


def test_gradient_is_that_of_the_modified_loss_and_half_a_step_of_hessian_times_gradient():
    step = 0.3
    g, H = pieces(POINT)
    by_formula = g + step / 2 * H @ g
    w = POINT.clone().requires_grad_()
    by_autograd = torch.autograd.grad(modified_loss(loss, step)(w), w)[0]
    torch.testing.assert_close(modified_gradient(loss, step)(POINT), by_formula, atol=1e-12, rtol=0)
    torch.testing.assert_close(by_autograd, by_formula, atol=1e-12, rtol=0)
    np.testing.assert_allclose(array_gradient(loss, step=step)(POINT.numpy()), by_formula, atol=1e-12)
    h = 1e-6  # and by differences of the value
    for i in range(2):
        e = torch.zeros(2, dtype=torch.float64)
        e[i] = h
        slope = (modified_loss(loss, step)(POINT + e) - modified_loss(loss, step)(POINT - e)) / (2 * h)
        assert float(slope) == pytest.approx(float(by_formula[i]), abs=1e-8)


def test_half_a_step_stale():
    step = 1e-4
    stale = array_gradient(loss)(POINT.numpy() + step / 2 * array_gradient(loss)(POINT.numpy()))
    np.testing.assert_allclose(stale, array_gradient(loss, step=step)(POINT.numpy()), atol=1e-8)


def test_quadratic_loss_in_many_digits():
    """On half the square a step multiplies by 1 - h; the flows by exp(-h) and exp(-h - h^2/2)."""
    for h in (mpmath.mpf("0.1"), mpmath.mpf("0.01")):
        plain, modified = mpmath.e ** (-h) - (1 - h), mpmath.e ** (-h - h**2 / 2) - (1 - h)
        assert abs(plain / h**2) == pytest.approx(0.5, rel=0.05)
        assert abs(modified / h**3) == pytest.approx(1 / 3, rel=0.1)
        found = array_gradient(lambda w: (w**2).sum() / 2, step=float(h))(np.array([1.0]))
        assert found[0] == pytest.approx(float(1 + h / 2), rel=1e-14)


def test_printed_sign_of_the_correction_is_wrong():
    """As printed, f1 is plus the gradient of a quarter of the squared gradient: one order less."""
    g, H = pieces(POINT)
    quarter = torch.autograd.functional.jacobian(lambda w: implicit_penalty(loss, w, 1.0), POINT)
    right = -0.5 * H @ g  # f1 = -(grad f) f / 2 with f = -grad C
    assert not torch.allclose(right, quarter) and torch.allclose(right, -quarter)
    steps, printed, ours = [0.08, 0.04, 0.02], [], []
    start = POINT.numpy()
    for h in steps:
        reached = start - h * array_gradient(loss)(start)
        for sign, errors in ((-1, printed), (1, ours)):

            def field(w, sign=sign, h=h):
                plain = array_gradient(loss)(w)
                return plain + sign * (array_gradient(loss, step=h)(w) - plain)

            end = gradient_flow(field, start, time=h, method="ivp", step=h / 8, record=1).end
            errors.append(np.linalg.norm(end - reached))
    assert convergence_order(steps, printed) == pytest.approx(2, abs=0.2)
    assert convergence_order(steps, ours) == pytest.approx(3, abs=0.2)


def test_printed_expansion_with_the_old_flow_leaves_an_equation_without_solution():
    """Along w' = f nothing in the second order can be chosen: its step error is half the acceleration.

    Along w' = f + h f1 the second order is f1 + (grad f) f / 2, and the choice of f1 makes it zero.
    """
    g, H = pieces(POINT)
    f, acceleration = -g, H @ g  # (grad f) f = (-H)(-g)
    h = 1e-3
    reached = POINT + h * f
    old = POINT + h * f + h**2 / 2 * acceleration
    flow = -modified_gradient(loss, h)(POINT)
    torch.testing.assert_close(flow, f - h * acceleration / 2)  # f + h f1 with f1 = -(grad f) f / 2
    new = POINT + h * flow - h**2 / 2 * H @ flow
    assert float((old - reached).norm()) > 0.1 * h**2 * float(acceleration.norm())
    assert float((new - reached).norm()) < 10 * h**3


def test_minibatches_and_one_batch():
    parts = [lambda w, a=a: ((w - a) ** 2).sum() / 2 for a in (0.0, 1.0, 5.0)]
    w = torch.tensor([2.0], dtype=torch.float64)
    expected = np.mean([(2 - a) ** 2 / 2 + 0.1 / 4 * (2 - a) ** 2 for a in (0.0, 1.0, 5.0)])
    assert float(sgd_modified_loss(parts, 0.1)(w)) == pytest.approx(expected)
    one = sgd_modified_loss([loss], 0.2)(POINT)
    assert float(one) == pytest.approx(float(modified_loss(loss, 0.2)(POINT)))


def test_losses_without_curvature_and_bad_steps():
    linear = array_gradient(lambda w: 3 * w.sum(), step=0.5)(np.array([1.0, 2.0]))
    assert linear.tolist() == [3.0, 3.0]
    for step in (-0.1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="step must"):
            implicit_penalty(loss, POINT, step)
    with pytest.raises(ValueError, match="at least one"):
        sgd_modified_loss([], 0.1)
