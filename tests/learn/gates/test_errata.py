"""Statements about gates that are wrong as printed: the printed form fails, ours holds."""

import math

import numpy as np
import pytest

from pindown.guarantees.bounds import supermartingale_bound
from pindown.learn.gates import (
    as_link,
    benign_risk,
    confinement,
    glmtron_excess,
    glmtron_horizon,
    solve_recursion,
)
from pindown.learn.gates.noisy_gd import gate_gradient

RELU = as_link("relu")


def test_confinement_exponent_has_k_squared():
    """Mukherjee 2020, Theorem 3.4.1: with k in place of its square the bound is not a bound.

    A fair walk whose steps have size k = 3 rises by 12 within four steps once in 16 times;
    exp(-12^2 / (2 * 4 * 3)) says once in 400. Below k = 1 the printed form is useless instead.
    """
    k, n, rise = 3.0, 4, 12.0
    happens = 0.5**n
    assert math.exp(-(rise**2) / (2 * n * k)) < happens <= supermartingale_bound(rise, [k] * n).value
    T, cut = 1000, 0.3
    small = confinement(
        1.0,
        start_distance=1.0,
        largest_norm=1.0,
        step=1e-5,
        n_steps=T,
        gradient_noise=0.1,
        second_moment=5.0,
        cut=cut,
        tail=0.0,
        variant="corrected",
    )
    printed = T * math.exp(-(small.slack**2) / (2 * T * small.difference))
    assert printed > 1 > small.failure


def test_cut_noise_needs_central_symmetry():
    """Mukherjee 2020, proof of Theorem 3.4.1: cut to a length, noise of mean zero need not keep it."""
    values, chances = np.array([-1.0, 9.0]), np.array([0.9, 0.1])
    cut = 2.0
    assert values @ chances == pytest.approx(0)
    assert abs(np.clip(values, -cut, cut) @ chances) > 0.5
    symmetric, even = np.array([-9.0, -1.0, 1.0, 9.0]), np.array([0.05, 0.45, 0.45, 0.05])
    assert np.clip(symmetric, -cut, cut) @ even == pytest.approx(0)
    # Left of w* = 0 the gate is flat: only the noise moves w. Cut, the first drifts out of the ball.
    eta, T, moment = 1e-3, 1000, 1.3
    ball = confinement(
        225.0, start_distance=0.0, largest_norm=1.0, step=eta, n_steps=T, gradient_noise=0.0,
        second_moment=moment, cut=cut, tail=0.0,
    )  # fmt: skip
    assert ball.failure < 0.05
    rng = np.random.default_rng(0)
    for noise, weights, stays in ((values, chances, False), (symmetric, even, True)):
        cut_noise = np.clip(noise, -cut, cut)
        assert weights @ cut_noise**2 <= moment * (1 + 1e-12)
        w, furthest = np.zeros(1), 0.0
        for step in rng.choice(cut_noise, size=T, p=weights):
            w = w - eta * gate_gradient(w, np.ones((1, 1)), np.zeros(1)) + math.sqrt(eta) * step
            furthest = max(furthest, abs(w.item()))
        assert (furthest <= ball.radius) is stays


def steps_needed(X, true, eps):
    w, y = np.zeros(len(true)), RELU(X @ true)
    for t in range(10**6):
        if np.mean((RELU(X @ w) - y) ** 2) < eps:
            return t
        w = w + (y - RELU(X @ w)) @ X / len(X)
    raise AssertionError("GLM-Tron did not get there")


def test_glm_tron_needs_the_squared_norm_over_eps():
    """Mukherjee 2020, Theorem 3.5.2: the norm over eps is too short, its square over eps is enough."""
    printed_fails = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((20, 5)) * np.geomspace(1, 0.03, 5)
        X /= np.linalg.norm(X, axis=1).max()
        true = rng.standard_normal(5) * 100
        norm = float(np.linalg.norm(true))
        eps = norm * rng.uniform(0.1, 1)
        needed = steps_needed(X, true, eps)
        printed_fails += needed > norm / eps
        assert needed <= glmtron_horizon(norm, eps)
    assert printed_fails >= 5


def test_training_noise_and_answers_are_not_independent():
    """Mukherjee 2020, Theorem 3.5.3: noise times answers has a positive mean, not zero."""
    S, d, theta, steps, runs = 20, 4, 0.5, 100, 300
    true = np.array([1.0, -0.5, 0.5, 0.0])
    norm = float(np.linalg.norm(true))
    cross, gaps, errors = [], [], []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((S, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        xi = rng.uniform(-theta, theta, S)
        clean, w = RELU(X @ true), np.zeros(d)
        for _ in range(steps):
            w = w + (clean + xi - RELU(X @ w)) @ X / S
        off = RELU(X @ w) - clean
        cross.append(np.mean(xi * off))
        errors.append(np.mean((off - xi) ** 2))
        gaps.append(np.mean(off**2) - errors[-1])
    variance = theta**2 / 3
    standard_error = np.std(cross) / np.sqrt(runs)
    assert np.mean(cross) > 10 * standard_error  # printed: zero
    assert np.mean(gaps) > -variance + 10 * np.std(gaps) / np.sqrt(runs)  # printed: equal
    excess = glmtron_excess(norm**2 / steps, noise_bound=theta, norm=norm)
    assert np.mean(errors) <= benign_risk(excess, variance)


def test_the_printed_sum_fails_for_noise_that_knows_the_answers():
    """The sum of excess and variance is exceeded when the product is negative; the triangle is not."""
    off, xi = np.array([0.3, -0.2]), np.array([-0.3, 0.2])
    excess, variance = float(np.mean(off**2)), float(np.mean(xi**2))
    training = float(np.mean((off - xi) ** 2))
    assert training > benign_risk(excess, variance, independent=True)
    assert training <= benign_risk(excess, variance) * (1 + 1e-12)


def test_recursion_conditions():
    """Mukherjee 2020, Lemma 3.E.1: with noise equal to growth it never gets there; no square roots."""
    b, c, target, start = 1.0, 1.0, 0.25, 1.0
    eta = b / c * target / (1 + target)  # the printed step, which the lemma allows for c2 = c1
    X = start
    for _ in range(100_000):
        X = (1 - eta * b + eta**2 * c) * X + eta**2 * c
    assert target * (1 - 1e-9) <= X
    with pytest.raises(ValueError, match=r"math domain|expected a positive"):
        math.log(target * (c - c) / (start * c - c * target))  # the printed time
    assert solve_recursion(b, c, start=start, target=target, noise=c).limit < target * 0.9
    # b^2 / c1 = 4 with target 1 meets the printed condition with equality; its contraction is zero.
    assert 1 - 4 * 1.0 / (1 + 1.0) ** 2 == 0
    # The printed condition refuses what the proof allows: nothing like it is needed for this one.
    e2, b, c1 = 0.01, 2.0, 1.001
    e = math.sqrt(e2)
    tight, needed = (math.sqrt(e) + 1 / math.sqrt(e)) ** 2, (e + 1 / e) ** 2
    assert tight < needed
    assert solve_recursion(b, c1, start=1.0, target=e2, noise=0.5).rule == "published"
