"""Steepest descent: its limit, its monotone loss, and the rate of gradient descent."""

import numpy as np
import pytest

from pindown.bias import gradient_flow, max_margin
from pindown.bias.margins import steepest_descent
from pindown.bias.margins.steepest import log_loss_gradient, steepest_direction

from .test_hard_margin import separable_points

NORMS = {"l1": 1, "l2": 2, "linf": np.inf}
DUALS = {"l1": np.inf, "l2": 2, "linf": 1}


@pytest.mark.parametrize("norm", NORMS)
def test_the_largest_margin_of_the_norm_is_reached(norm):
    X, y = separable_points(12, 8, seed=0)
    run = steepest_descent(X, y, norm, steps=10_000)
    assert 0.995 < run.ratio <= 1 + 1e-12
    assert run.margins[-1] == pytest.approx((y * (X @ run.w)).min() / np.linalg.norm(run.w, NORMS[norm]))


def test_each_method_is_best_in_its_own_norm():
    X, y = separable_points(12, 8, seed=1)
    runs = {norm: steepest_descent(X, y, norm, steps=10_000).w for norm in NORMS}
    for norm, order in NORMS.items():
        margins = {name: (y * (X @ w)).min() / np.linalg.norm(w, order) for name, w in runs.items()}
        assert max(margins, key=margins.get) == norm


@pytest.mark.parametrize("norm", NORMS)
def test_the_direction_is_steepest_among_random_ones(norm):
    rng = np.random.default_rng(0)
    g = rng.standard_normal(5)
    v = steepest_direction(g, norm)
    dual = np.linalg.norm(g, DUALS[norm])
    assert np.linalg.norm(v, NORMS[norm]) == pytest.approx(dual)
    assert g @ v == pytest.approx(dual**2)
    others = rng.standard_normal((500, 5))
    others /= np.linalg.norm(others, NORMS[norm], axis=1, keepdims=True)
    assert (others @ g).max() <= dual


@pytest.mark.parametrize("norm", NORMS)
def test_the_loss_never_rises(norm):
    X, y = separable_points(10, 4, seed=2)
    Z = y[:, None] * X
    w, step = np.zeros(4), 1 / np.linalg.norm(Z, DUALS[norm], axis=1).max() ** 2
    gradient, last = log_loss_gradient(Z), np.inf
    for _ in range(300):
        loss = np.logaddexp.reduce(-Z @ w)
        assert loss <= last + 1e-12
        w, last = w - step * steepest_direction(gradient(w), norm), loss
    np.testing.assert_allclose(steepest_descent(X, y, norm, steps=300).w, w, rtol=1e-9)


@pytest.mark.parametrize("seed", [2, 3])
def test_the_angle_falls_like_one_over_log_t(seed):
    """Gradient flow on the exponential loss: log(angle) over log(log t) has slope -1."""
    X, y = separable_points(6, 4, seed)
    Z = y[:, None] * X
    limit = max_margin(X, y)

    def loss(w):
        return float(np.exp(-Z @ w).sum())

    path = gradient_flow(
        lambda w: -np.exp(-Z @ w) @ Z, np.zeros(4), time=150 / limit.margin**2, step=0.02,
        method="normalised", loss=loss,
    )  # fmt: skip
    angles = np.arccos(np.clip(path.directions[1:] @ limit.direction, -1, 1))
    clock = np.log(path.times[1:])
    late = clock > 75
    assert late.sum() > 20
    slope = np.polyfit(np.log(clock[late]), np.log(angles[late]), 1)[0]
    assert slope == pytest.approx(-1, abs=0.03)


@pytest.mark.parametrize(
    ("arguments", "words"), [({"norm": "l3"}, "norm must be"), ({"steps": 0}, "steps must be")]
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        steepest_descent([[1.0]], [1], **arguments)


def test_what_cannot_be_separated_is_refused():
    with pytest.raises(ValueError, match="no linear classifier"):
        steepest_descent([[1.0], [1.0]], [1, -1])
