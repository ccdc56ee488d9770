"""Powers of the step with which descent departs from both flows."""

import math

import numpy as np
import pytest
import torch

from pindown.bias.discretisation import convergence_order, discretisation_orders, sgd_orders
from pindown.bias.flow import gradient_flow
from pindown.bias.implicit_regularisation import array_gradient

torch.set_num_threads(1)


def bumpy(w):
    return torch.sin(w[0]) * torch.cos(1.3 * w[1]) + 0.3 * w[0] ** 2 + 0.1 * w[1] ** 4


def batches(seed=0, m=4):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(m):
        root, centre = rng.standard_normal((3, 3)), torch.tensor(rng.standard_normal(3))
        A = torch.tensor(root @ root.T / 3)
        found.append(lambda w, A=A, c=centre: (w - c) @ A @ (w - c) / 2)
    return found


def test_orders_of_gradient_descent():
    found = discretisation_orders(bumpy, [0.7, -0.4], [0.08, 0.04, 0.02])
    assert found.local_orders == pytest.approx((2, 3), abs=0.2)
    assert found.global_orders == pytest.approx((1, 2), abs=0.2)
    assert (found.local_modified < found.local_plain).all()
    assert "plain flow 2.0" in str(found)


@pytest.mark.parametrize("strength", [0.5, 2.0])
def test_no_other_multiple_of_the_penalty_will_do(strength):
    found = discretisation_orders(bumpy, [0.7, -0.4], [0.08, 0.04, 0.02], time=0.1, strength=strength)
    assert found.local_orders[1] == pytest.approx(2, abs=0.25)


def test_orders_of_minibatches_and_the_penalty_of_full_batches_is_not_theirs():
    parts, start, steps = batches(), np.array([1.0, -1.0, 0.5]), [0.02, 0.01, 0.005]
    found = sgd_orders(parts, start, steps)
    assert found.local_orders == pytest.approx((2, 3), abs=0.2)
    assert all(math.isnan(p) for p in found.global_orders)
    from itertools import permutations

    errors = []
    for h in steps:  # the flow with the penalty of full-batch descent stays of second order
        ends = []
        for turn in permutations(range(4)):
            w = start
            for k in turn:
                w = w - h * array_gradient(parts[k])(w)
            ends.append(w)
        gradient = array_gradient(lambda w: sum(p(w) for p in parts) / 4, step=h)
        end = gradient_flow(gradient, start, time=4 * h, method="ivp", step=h, record=1).end
        errors.append(np.linalg.norm(np.mean(ends, axis=0) - end))
    assert convergence_order(steps, errors) == pytest.approx(2, abs=0.2)


def test_one_minibatch_is_gradient_descent():
    a = sgd_orders(batches(m=1), [1.0, -1.0, 0.5], [0.02, 0.01])
    b = discretisation_orders(batches(m=1)[0], [1.0, -1.0, 0.5], [0.02, 0.01], time=0.02)
    np.testing.assert_allclose(a.local_modified, b.local_modified, rtol=1e-3)


def test_slopes():
    assert (
        math.isnan(convergence_order([0.1, 0.2], []))
        and convergence_order([0.1, 0.2], [0.0, 0.0]) == math.inf
    )
    assert math.isnan(convergence_order([0.1, 0.2], [1.0, 0.0]))
    assert convergence_order([1.0, 0.1, 0.01], [3.0, 3e-3, 3e-6]) == pytest.approx(3)


@pytest.mark.parametrize(
    "call",
    [
        lambda: discretisation_orders(bumpy, [0.0, 0.0], [0.1]),
        lambda: discretisation_orders(bumpy, [0.0, 0.0], [0.1, 0.1]),
        lambda: discretisation_orders(bumpy, [0.0, 0.0], [0.1, 2.0], time=1.0),
        lambda: discretisation_orders(bumpy, [np.nan, 0.0], [0.1, 0.2]),
        lambda: sgd_orders([], [0.0], [0.1, 0.2]),
        lambda: sgd_orders([bumpy] * 8, [0.0, 0.0], [0.1, 0.2]),
    ],
)
def test_bad_input(call):
    with pytest.raises(ValueError, match=r"must|needed|needs"):
        call()


def test_steps_that_diverge_are_refused():
    with pytest.raises(ValueError, match="leaves float range"):
        discretisation_orders(lambda w: 100 * (w**4).sum(), [10.0], [0.1, 0.2])
