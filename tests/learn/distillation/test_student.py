"""The closed-form student: equal to gradient descent, inside the span, the teacher from d inputs on."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import check_grad

from pindown.learn.distillation import (
    as_logits,
    distillation_descent,
    distillation_gradient,
    distillation_loss,
    flow_rate,
    minimum_norm,
)
from pindown.learn.distillation.student import (
    centred,
    log_probabilities,
    null_part,
    probabilities,
    span_basis,
)


def linear_problem(seed, n=6, d=15, size=1.0):
    """Inputs with singular values between 2 and 4, so that descent comes to rest soon."""
    rng = np.random.default_rng([seed, 1])
    left, _, right = np.linalg.svd(rng.standard_normal((n, d)), full_matrices=False)
    X, w = (left * np.linspace(2, 4, min(n, d))) @ right, size * rng.standard_normal(d)
    return X, w, X @ w


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [1, 6, 14, 15, 30])
def test_gradient_descent_reaches_the_closed_form(seed, n):
    X, _, z = linear_problem(seed, n, size=0.5)
    closed = minimum_norm(X, z).weights
    for options in ({"accelerated": True}, {"whitened": True}):
        done = distillation_descent(X, z, **options)
        assert done.converged
        np.testing.assert_allclose(done.weights, closed, rtol=0, atol=1e-8)


def test_plain_gradient_descent_reaches_the_closed_form():
    X, _, z = linear_problem(0)
    done = distillation_descent(X, z, accelerated=False, tol=1e-11)
    np.testing.assert_allclose(done.weights, minimum_norm(X, z).weights, rtol=0, atol=1e-8)
    assert done.converged and done.n_iter > distillation_descent(X, z, tol=1e-11).n_iter


def test_softmax_descent_reaches_the_interpolant_of_centred_logits():
    rng = np.random.default_rng(1)
    X, Z = rng.standard_normal((6, 15)), rng.standard_normal((6, 4))
    done = distillation_descent(X, Z)
    np.testing.assert_allclose(done.weights, minimum_norm(X, centred(Z)).weights, atol=1e-8)
    uncentred = X @ minimum_norm(X, Z).weights  # another name for the same answers
    np.testing.assert_allclose(probabilities(uncentred), probabilities(X @ done.weights), atol=1e-9)


def test_the_flow_itself_stays_in_the_span_below_its_envelope_and_ends_at_the_closed_form():
    X, _, z = linear_problem(2, n=4, d=8, size=0.4)
    rate = flow_rate(X, z)
    times = np.linspace(0, 400, 60)
    flow = solve_ivp(
        lambda _, w: -distillation_gradient(w, X, z),
        (0, 400),
        np.zeros(8),
        t_eval=times,
        rtol=1e-11,
        atol=1e-13,
    ).y.T
    closed = minimum_norm(X, z).weights
    losses = np.array([distillation_loss(w, X, z) for w in flow])
    assert (losses <= rate.loss(times) * (1 + 1e-6) + 1e-15).all()
    gaps = np.linalg.norm(flow - closed, axis=1)
    assert (gaps[:20] <= rate.distance(times)[:20]).all()
    assert rate.mu > 1e-3  # the envelope says something
    assert max(np.abs(null_part(X, w)).max() for w in flow) < 1e-12
    assert gaps[-1] < 1e-8


@pytest.mark.parametrize("n", [15, 40])
def test_from_d_inputs_on_the_teacher_is_found(n):
    X, w, z = linear_problem(3, n)
    student = minimum_norm(X, z)
    np.testing.assert_allclose(student.weights, w, atol=1e-10)
    assert student.complete and student.interpolates and "15 of 15" in str(student)


def test_many_inputs_of_low_rank_give_the_projection_only():
    """As many inputs as dimensions are not enough where they do not span the space."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 10))
    w = rng.standard_normal(10)
    student = minimum_norm(X, X @ w)
    basis = np.linalg.qr(X[:3].T)[0]
    np.testing.assert_allclose(student.weights, basis @ basis.T @ w, atol=1e-9)
    assert student.rank == 3 and not student.complete and student.interpolates
    assert span_basis(X).shape == (10, 3)


def test_no_other_interpolant_is_shorter():
    X, w, z = linear_problem(5)
    student = minimum_norm(X, z).weights
    other = student + null_part(X, np.random.default_rng(0).standard_normal(15))
    np.testing.assert_allclose(X @ other, z)
    assert np.linalg.norm(student) < np.linalg.norm(other)
    assert np.linalg.norm(student) < np.linalg.norm(w)
    assert distillation_loss(other, X, z) < 1e-15


def test_where_logits_cannot_be_met_the_two_solutions_differ():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((50, 3))
    z = X @ [1.0, 2.0, 0.0] + rng.standard_normal(50)
    squares, entropy = minimum_norm(X, z), distillation_descent(X, z)
    np.testing.assert_allclose(squares.weights, np.linalg.solve(X.T @ X, X.T @ z))
    assert not squares.interpolates and entropy.converged
    assert distillation_loss(entropy.weights, X, z) < distillation_loss(squares.weights, X, z)
    assert np.linalg.norm(distillation_gradient(entropy.weights, X, z)) < 1e-11
    with pytest.raises(ValueError, match="no linear student meets"):
        flow_rate(X, z)


def test_loss_is_the_cross_entropy_less_the_entropy_of_the_labels():
    X, _, z = linear_problem(7)
    u, y = X @ np.ones(15), 1 / (1 + np.exp(-z))
    s = 1 / (1 + np.exp(-u))
    plain = np.mean(-y * np.log(s) - (1 - y) * np.log(1 - s) + y * np.log(y) + (1 - y) * np.log(1 - y))
    assert distillation_loss(np.ones(15), X, z) == pytest.approx(plain)
    worst = check_grad(
        lambda w: distillation_loss(w, X, z), lambda w: distillation_gradient(w, X, z), np.ones(15)
    )
    assert worst < 1e-6


def test_softmax_of_two_columns_is_the_sigmoid_of_their_difference():
    X, w, z = linear_problem(8)
    two, weights = np.column_stack([0 * z, z]), np.column_stack([0 * w, 0.3 * w])
    one = distillation_loss(0.3 * w, X, z)
    assert distillation_loss(weights, X, two) == pytest.approx(one)
    slope = distillation_gradient(weights, X, two)
    np.testing.assert_allclose(slope[:, 1], distillation_gradient(0.3 * w, X, z))
    np.testing.assert_allclose(slope[:, 0], -slope[:, 1])


def test_the_slope_of_sure_answers_keeps_its_digits():
    """Sigmoids of 40 and 41 are both 1 in float64; their difference is not zero."""
    slope = distillation_gradient([41.0], [[1.0]], [40.0])
    exact = np.exp(-40) / (1 + np.exp(-40)) - np.exp(-41) / (1 + np.exp(-41))
    assert slope[0] == pytest.approx(exact, rel=1e-12)
    assert distillation_gradient([39.0], [[1.0]], [40.0])[0] < 0


def test_the_slope_of_several_columns_keeps_its_digits():
    """A student a billionth from its teacher: the plain difference of softmaxes has seven digits."""
    rng = np.random.default_rng(0)
    z, off = 4 * rng.standard_normal((1, 3)), 1e-9 * rng.standard_normal((1, 3))
    shares = probabilities(z)
    first = shares * (off - np.sum(shares * off))  # the derivative of the softmax
    np.testing.assert_allclose(distillation_gradient(z + off, [[1.0]], z), first, rtol=1e-6)


def test_several_columns_of_large_logits_are_met_too():
    X, W = np.random.default_rng(7).standard_normal((6, 9)), np.random.default_rng(8)
    z = centred(X @ W.standard_normal((9, 3)))
    done = distillation_descent(X, z, whitened=True)
    assert done.converged
    np.testing.assert_allclose(done.weights, minimum_norm(X, z).weights, rtol=0, atol=1e-8)


def test_labels():
    z = np.array([-3.0, 0.0, 2.0])
    np.testing.assert_allclose(as_logits(1 / (1 + np.exp(-z)), "probability"), z)
    assert as_logits([0.0, 1.0], "probability").tolist() == [-30.0, 30.0]
    assert as_logits([500.0]).tolist() == [500.0]
    chances = np.array([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]])
    found = as_logits(chances, "probability")
    np.testing.assert_allclose(probabilities(found), chances, atol=1e-12)
    np.testing.assert_allclose(np.exp(log_probabilities(z)), probabilities(z))
    np.testing.assert_allclose(np.exp(log_probabilities(found)), probabilities(found))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: minimum_norm(np.zeros((0, 3)), []), "not empty"),
        (lambda: minimum_norm([1.0], [1.0]), "must be"),
        (lambda: minimum_norm([[1.0], [2.0]], [1.0]), "must be"),
        (lambda: minimum_norm([[np.nan]], [1.0]), "finite"),
        (lambda: as_logits([0.5, 1.5], "probability"), "between 0 and 1"),
        (lambda: as_logits([[0.5, 0.6]], "probability"), "add up to 1"),
        (lambda: as_logits([0.5], "odds"), "labels must be"),
        (lambda: as_logits([np.inf]), "finite"),
        (lambda: as_logits([]), "shape"),
        (lambda: flow_rate([[1.0]], [[1.0, 2.0]]), "one column"),
        (lambda: flow_rate([[0.0]], [0.0]), "no such rate"),
        (lambda: distillation_descent([[1.0]], [1.0], max_iter=0), "max_iter"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_inputs_of_zeros_teach_nothing():
    assert not minimum_norm(np.zeros((3, 2)), np.zeros(3)).weights.any()
    for whitened in (False, True):
        done = distillation_descent(np.zeros((3, 2)), np.ones(3), whitened=whitened)
        assert done.converged and not done.weights.any()
