"""Statements about distillation that are wrong as printed: the printed form fails, ours holds."""

import numpy as np
from scipy.integrate import solve_ivp

from pindown.learn.distillation import (
    deep_limit,
    deep_start,
    distillation_gradient,
    distillation_loss,
    error_bound,
    flow_rate,
    minimum_norm,
)


def orthonormal_problem(n=10, d=20, size=0.1):
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.standard_normal((d, n)))[0].T
    return X, X @ (size * rng.standard_normal(d))


def test_the_hessian_has_one_over_n_and_without_it_the_rate_is_too_good():
    """Phuong 2021, (D.8): without 1/n the loss would have to fall n times faster than it does."""
    X, z = orthonormal_problem()
    n, rate = len(X), flow_rate(X, z)
    printed = n * rate.mu  # the constant of Theorem D.3 with the printed Hessian
    w, step = np.zeros(X.shape[1]), 1e-4
    direction = X[0]
    numeric = (
        distillation_gradient(w + step * direction, X, z)
        - distillation_gradient(w - step * direction, X, z)
    ) @ direction / (2 * step)  # fmt: skip
    assert abs(numeric - 0.25 / n) < 1e-6 and numeric < printed
    slope, loss = distillation_gradient(w, X, z), distillation_loss(w, X, z)
    assert rate.mu * loss <= 0.5 * slope @ slope < printed * loss
    time = 20.0
    end = solve_ivp(lambda _, v: -distillation_gradient(v, X, z), (0, time), w, rtol=1e-10, atol=1e-12)
    left = distillation_loss(end.y[:, -1], X, z)
    assert left > loss * np.exp(-printed * time)
    assert left <= rate.loss(time)


def test_twice_the_printed_exponent_holds_and_is_nearly_attained():
    """Phuong 2021, (D.20): the flow falls like exp(-2ct), where exp(-ct) is proved."""
    X, z = orthonormal_problem()
    rate, time = flow_rate(X, z), 60.0
    end = solve_ivp(
        lambda _, v: -distillation_gradient(v, X, z), (0, time), np.zeros(20), rtol=1e-10, atol=1e-12
    )
    left = distillation_loss(end.y[:, -1], X, z)
    assert (
        0.5 * rate.loss(time) < left <= rate.loss(time) < 0.3 * rate.start_loss * np.exp(-rate.mu * time)
    )


def test_the_gram_matrix_of_many_inputs_has_no_inverse():
    """Phuong 2021, (D.17): for n > d the printed inverse does not exist; the projection does."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((9, 4))
    assert np.linalg.matrix_rank(X @ X.T) == X.shape[1] < len(X)
    z = X @ rng.standard_normal(4)
    slope, loss = distillation_gradient(np.zeros(4), X, z), distillation_loss(np.zeros(4), X, z)
    assert flow_rate(X, z).mu * loss <= 0.5 * slope @ slope


def test_the_printed_error_of_deep_students_does_not_vanish_with_the_start_and_can_be_exceeded():
    """Phuong 2021, (D.41): a power of the student's norm stands where that of the start belongs."""

    def printed(start, hat, depth):
        return np.sqrt(hat ** (2 + 2 / depth) / (hat ** (2 / depth) - start ** (2 / depth)) * hat**2)

    assert printed(1e-12, 1.0, 2) > 0.99 and error_bound(1e-12, 1.0, 2) < 1e-5
    rng = np.random.default_rng(2)
    X = rng.standard_normal((4, 10))
    z = X @ (0.02 * rng.standard_normal(10))
    hat = float(np.linalg.norm(minimum_norm(X, z).weights))
    limit = deep_limit(X, z, deep_start(X, z, 0.05 * hat, 0), 2)
    assert limit.kind == "exact"
    assert printed(0.05 * hat, hat, 2) < limit.error <= error_bound(0.05 * hat, hat, 2)
