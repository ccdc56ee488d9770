"""Penalties: zero on orbits, never negative, the printed sign pushes the wrong way, gradients."""

import numpy as np
import pytest
import torch

from pindown.symmetry import cyclic, dihedral, symmetric
from pindown.symmetry.discovery import (
    gram_symmetry_penalty,
    is_permuted_matrix,
    soft_sort,
    sorted_gram_penalty,
)
from tests.symmetry.discovery.samples import triangle_beside_square


def tensor(values):
    return torch.from_numpy(np.asarray(values, dtype=float))


def printed_penalty(W, sigma=1.0):
    """The sum as printed, term by term, weights 1 - n delta_ij."""
    G, n, total = (W.T @ W).numpy(), W.shape[1], 0.0
    for i in range(n):
        for j in range(n):
            weight = 1 - n * (i == j)
            total += weight * np.exp(-((G[i][:, None] - G[j]) ** 2) / sigma**2).sum()
    return total


@pytest.mark.parametrize("group", [cyclic(8), dihedral(4), symmetric(3)])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 10.0])
def test_orbits_have_no_penalty_at_any_width(group, sigma):
    rng = np.random.default_rng(0)
    t = rng.standard_normal(group.order)
    W = tensor(group.orbit(t / np.linalg.norm(t)).T)
    assert abs(float(gram_symmetry_penalty(W, sigma))) < 1e-10
    assert float(sorted_gram_penalty(W)) < 1e-24
    rough = tensor(rng.standard_normal(W.shape))
    assert float(gram_symmetry_penalty(rough, sigma)) > 1e-3
    assert float(sorted_gram_penalty(rough)) > 1.0


def test_the_printed_weights_have_the_wrong_sign():
    rng = np.random.default_rng(0)
    for _ in range(5):
        W = tensor(rng.standard_normal((5, 6)))
        ours = float(gram_symmetry_penalty(W))
        assert printed_penalty(W) == pytest.approx(-ours) and ours > 0 > printed_penalty(W)
    # minimising what is printed drives the columns of the Gramian apart
    W = tensor(rng.standard_normal((5, 6))).requires_grad_()
    before = float(sorted_gram_penalty((W / W.norm(dim=0)).detach()))
    optimiser = torch.optim.SGD([W], lr=0.02)
    for _ in range(100):
        optimiser.zero_grad()
        (-gram_symmetry_penalty(W / W.norm(dim=0))).backward()
        optimiser.step()
    assert float(sorted_gram_penalty((W / W.norm(dim=0)).detach())) > 2 * before


def test_zero_of_both_penalties_is_the_same_set_and_larger_than_orbits():
    rng = np.random.default_rng(3)
    for _ in range(200):
        values = tensor(rng.integers(-1, 2, (2, 3)))  # small integers: zeros are hit often
        smooth, ordered = float(gram_symmetry_penalty(values)), float(sorted_gram_penalty(values))
        alike = is_permuted_matrix((values.T @ values).numpy())
        assert (smooth < 1e-9) == (ordered < 1e-9) == alike
    no_orbit = tensor(triangle_beside_square())
    assert abs(float(gram_symmetry_penalty(no_orbit))) < 1e-9


def test_the_order_of_columns_does_not_matter():
    W = tensor(np.random.default_rng(1).standard_normal((4, 5)))
    for penalty in (gram_symmetry_penalty, sorted_gram_penalty):
        assert float(penalty(W[:, [3, 1, 4, 0, 2]])) == pytest.approx(float(penalty(W)))


def test_sorted_penalty_is_the_sum_over_pairs_of_columns():
    W = tensor(np.random.default_rng(2).standard_normal((4, 5)))
    s = np.sort((W.T @ W).numpy(), axis=0).T
    pairs = sum(((s[i] - s[j]) ** 2).sum() for i in range(5) for j in range(i))
    assert float(sorted_gram_penalty(W)) == pytest.approx(pairs)


def test_gradients():
    W = tensor(np.random.default_rng(0).standard_normal((3, 4))).requires_grad_()
    assert torch.autograd.gradcheck(lambda W: gram_symmetry_penalty(W, 2.0), (W,))
    assert torch.autograd.gradcheck(sorted_gram_penalty, (W,))
    assert torch.autograd.gradcheck(lambda W: sorted_gram_penalty(W, soft=0.5), (W,))


def test_soft_sort_is_a_projection_on_the_orders_of_a_row():
    from scipy.optimize import minimize

    row = np.array([2.0, -1.0, 0.5])
    for strength in (0.2, 0.7, 3.0):
        target = np.arange(1, 4) / strength
        orders = np.array(
            [row[list(p)] for p in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0])]
        )
        best = minimize(
            lambda w, orders=orders, target=target: ((w @ orders - target) ** 2).sum(),
            np.full(6, 1 / 6),
            bounds=[(0, 1)] * 6,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert soft_sort(tensor(row[None]), strength)[0].numpy() == pytest.approx(
            best.x @ orders, abs=1e-4
        )


def test_bad_input_is_refused():
    with pytest.raises(TypeError, match="torch tensor"):
        sorted_gram_penalty(np.eye(2))
    with pytest.raises(ValueError, match="sigma must be a number above 0"):
        gram_symmetry_penalty(torch.eye(2), 0.0)
    with pytest.raises(ValueError, match="strength must be a number above 0"):
        soft_sort(torch.eye(2), -1.0)
