"""Deep linear students: the exact limit against the integrated flow, and what is promised."""

import numpy as np
import pytest

from pindown.learn.distillation import (
    balanced_factors,
    deep_limit,
    deep_linear_flow,
    deep_start,
    error_bound,
    minimum_norm,
    start_norm_for,
)
from pindown.learn.distillation.deep_linear import imbalance, product


def linear_problem(seed, n=4, d=10):
    """Inputs with singular values between 2 and 4, so that flows come to rest soon."""
    rng = np.random.default_rng([seed, 1])
    left, _, right = np.linalg.svd(rng.standard_normal((n, d)), full_matrices=False)
    X, w = (left * np.linspace(2, 4, min(n, d))) @ right, rng.standard_normal(d)
    return X, X @ w


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", [0.1, 0.01])
def test_limit_is_where_the_flow_of_the_factors_ends(depth, norm):
    X, z = linear_problem(depth)
    start = deep_start(X, z, norm, 100)
    limit = deep_limit(X, z, start, depth)
    run = deep_linear_flow(X, z, balanced_factors(start, depth, width=3, random_state=0))
    np.testing.assert_allclose(run.weights, limit.weights, rtol=0, atol=1e-8)
    assert run.imbalance < 1e-8 and run.invariant_drift < 1e-8
    assert limit.kind == "exact" and limit.error <= limit.guarantee
    np.testing.assert_allclose(X @ limit.weights, z, atol=1e-9)


def test_general_balanced_factors_have_the_same_limit():
    """Balanced factors that are not the chain of rank one: rotated between the layers."""
    X, z = linear_problem(5)
    start = deep_start(X, z, 0.05, 0)
    chain = balanced_factors(start, 3, width=4, random_state=1)
    rotations = [np.linalg.qr(np.random.default_rng(s).standard_normal((4, 4)))[0] for s in (0, 1)]
    turned = [
        rotations[0] @ chain[0],
        rotations[1] @ chain[1] @ rotations[0].T,
        chain[2] @ rotations[1].T,
    ]
    assert imbalance(turned) < 1e-15
    np.testing.assert_allclose(product(turned), start, atol=1e-15)
    run = deep_linear_flow(X, z, turned)
    np.testing.assert_allclose(run.weights, deep_limit(X, z, start, 3).weights, rtol=0, atol=1e-8)


def test_imbalance_is_the_largest_difference_of_neighbouring_gram_matrices():
    a, b, c = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[3.0, 0.0]]), np.array([[2.0]])
    # a a' = [[5, 2], [2, 1]] against b'b = [[9, 0], [0, 0]]; b b' = 9 against c'c = 4.
    assert imbalance([a, b]) == 4.0 and imbalance([b, c]) == imbalance([a, b, c]) == 5.0
    assert imbalance([a]) == 0.0


@pytest.mark.parametrize("depth", [2, 4])
def test_flows_of_uneven_inputs_come_to_rest_too(depth):
    """Inputs of sizes from 0.1 to 30 make the flow stiff."""
    X = np.random.default_rng(0).standard_normal((3, 4)) * [1.0, 30.0, 0.1, 5.0]
    z = X[:, 0]
    start = deep_start(X, z, 0.01, 0)
    run = deep_linear_flow(X, z, balanced_factors(start, depth))
    assert run.converged and "at rest" in str(run)
    np.testing.assert_allclose(run.weights, deep_limit(X, z, start, depth).weights, rtol=0, atol=1e-8)


def test_the_flow_towards_a_teacher_of_zeros_ends():
    X, start = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0.1, 0.05])
    run = deep_linear_flow(X, np.zeros(2), balanced_factors(start, 2))
    assert run.converged and np.abs(run.weights).max() < 1e-6


def test_a_flow_that_is_stopped_early_says_so():
    X, z = linear_problem(6)
    start = balanced_factors(deep_start(X, z, 0.1, 0), 2)
    run = deep_linear_flow(X, z, start, method="gd", max_iter=3)
    assert not run.converged and "not at rest" in str(run)


def test_small_steps_come_near_the_limit_of_the_flow():
    X, z = linear_problem(6)
    start = deep_start(X, z, 0.1, 0)
    run = deep_linear_flow(X, z, balanced_factors(start, 2), method="gd", step=0.02, tol=1e-6)
    limit = deep_limit(X, z, start, 2)
    assert np.linalg.norm(run.weights - limit.weights) < 0.02 * limit.error
    assert "gd flow of 2 factors" in str(run)


def test_one_layer_from_zero_is_the_closed_form():
    X, z = linear_problem(7)
    limit = deep_limit(X, z, np.zeros(10), 1)
    np.testing.assert_array_equal(limit.weights, minimum_norm(X, z).weights)
    assert limit.error == 0.0


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_inputs_that_span_the_space_leave_no_trace_of_the_start(depth):
    X, z = linear_problem(8, n=12)
    limit = deep_limit(X, z, deep_start(X, z, 0.1, 0), depth)
    np.testing.assert_array_equal(limit.weights, limit.shallow)


def test_deeper_students_keep_more_of_their_start():
    X, z = linear_problem(9)
    start = deep_start(X, z, 0.01, 0)
    errors = [deep_limit(X, z, start, depth).error for depth in (1, 2, 3, 4, 6)]
    assert errors == sorted(errors) and errors[3] > 10 * errors[0]


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_an_admissible_start_ends_within_the_promise(depth, seed):
    X, z = linear_problem(seed)
    length = np.linalg.norm(minimum_norm(X, z).weights)
    eps = 0.1 * length
    norm = start_norm_for(eps, length, depth)
    # The minimum in the printed condition is never its first term.
    printed = eps**depth * (eps**2 * length ** (-2 / depth) + length ** (2 - 2 / depth)) ** (-depth / 2)
    assert norm == pytest.approx(printed) and norm < length
    limit = deep_limit(X, z, deep_start(X, z, norm, seed), depth)
    assert limit.kind == "exact" and 0.3 * eps < limit.error <= eps * (1 + 1e-12)
    assert error_bound(norm, length, depth) == pytest.approx(eps)


def test_a_start_inside_the_span_ends_at_the_closed_form():
    X, z = linear_problem(12)
    start = 0.1 * X[0] / np.linalg.norm(X[0]) * np.sign(z[0])
    np.testing.assert_allclose(
        deep_limit(X, z, start, 3).weights, minimum_norm(X, z).weights, atol=1e-12
    )
    run = deep_linear_flow(X, z, balanced_factors(start, 3))
    np.testing.assert_allclose(run.weights, minimum_norm(X, z).weights, atol=1e-8)
    assert run.invariant_drift < 1e-12


def test_a_start_of_larger_loss_is_named():
    X, z = linear_problem(10)
    start = -deep_start(X, z, 0.01, 0)
    limit = deep_limit(X, z, start, 2)
    assert limit.kind == "heuristic" and "violated" in str(limit)


@pytest.mark.parametrize("norm", [1e-6, 1e-20, 1e-90])
def test_tiny_starts_keep_to_the_power_law(norm):
    """Losses at such a start and at zero round to one number; the error is norm^(1/L) all the same."""
    X, z = linear_problem(13)
    limit, other = (deep_limit(X, z, deep_start(X, z, r, 0), 2) for r in (norm, 100 * norm))
    assert limit.kind == "exact" and other.error / limit.error == pytest.approx(10.0, rel=1e-2)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_units_do_not_matter(scale):
    """Inputs in other units: weights in the inverse units."""
    X, z = linear_problem(11)
    start = deep_start(X, z, 0.01, 0)
    a = deep_limit(X, z, start, 3).weights
    b = deep_limit(X * scale, z, start / scale, 3).weights
    np.testing.assert_allclose(b * scale, a, rtol=1e-9)


def test_a_teacher_of_zeros():
    limit = deep_limit([[1.0, 0.0]], [0.0], [0.0, 0.1], 2)
    np.testing.assert_allclose(limit.weights, [0.0, 0.1])
    assert limit.guarantee == np.inf and limit.relative_error == np.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: deep_limit([[1.0, 0.0]], [1.0], [0.0, 0.0], 2), "never moves"),
        (lambda: deep_limit([[1.0, 0.0]], [1.0], [1.0], 2), "start"),
        (lambda: deep_limit([[1.0, 0.0]], [1.0], [1.0, 0.0], 0), "depth"),
        (lambda: deep_limit([[1.0], [1.0]], [1.0, 2.0], [1.0], 2), "no linear student"),
        (lambda: balanced_factors([[1.0]], 2), "vector"),
        (lambda: deep_linear_flow([[1.0]], [1.0], [np.ones((2, 1))]), "one output"),
        (lambda: deep_linear_flow([[1.0]], [1.0], [np.ones((1, 1))], method="rk"), "method"),
        (
            lambda: deep_linear_flow([[9.0]], [1.0], [np.ones((1, 1))] * 4, method="gd", step=1e3),
            "left the floats",
        ),
        (lambda: start_norm_for(0.0, 1.0, 2), "error"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
