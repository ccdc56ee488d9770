"""Hard and soft margins.

Optimality by a second solver, duals, conditions, limits, errata of the slides.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import make_circles, make_moons
from sklearn.gaussian_process.kernels import RBF
from sklearn.svm import SVC, LinearSVC

from pindown.learn.kernels import Laplace, gram
from pindown.learn.margins import (
    NotSeparableError,
    dual_report,
    hard_margin,
    margin,
    separable,
    soft_margin,
    stationarity_residual,
    svm_report,
)

SINGLE = 1e-4  # libsvm keeps kernel values in single precision: its conditions hold no better than that


def blobs(seed, gap=3.0, n=30, d=2):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1, -1)
    return rng.normal(size=(n, d)) + gap * y[:, None], y


def by_quadratic_program(X, y, C=None):
    """Solve the primal, with slack if C is given, by another solver; return w, b and the slack."""
    n, d = X.shape
    slack = 0 if C is None else n

    def value(v):
        return 0.5 * v[:d] @ v[:d] + (0 if C is None else C * v[d + 1 :].sum())

    def slope(v):
        return np.r_[v[:d], 0.0, np.full(slack, C or 0.0)]

    rows = np.hstack([y[:, None] * X, y[:, None], np.eye(n)[:, :slack]])
    start = np.r_[np.zeros(d + 1), np.ones(slack)] if slack else np.r_[2 * X.T @ y / n, 0.0]
    found = minimize(
        value, start, jac=slope, method="SLSQP", bounds=[(None, None)] * (d + 1) + [(0, None)] * slack,
        constraints={"type": "ineq", "fun": lambda v: rows @ v - 1, "jac": lambda v: rows},
        options={"maxiter": 500, "ftol": 1e-14},
    )  # fmt: skip
    return found.x[:d], found.x[d], found.x[d + 1 :]


@pytest.mark.parametrize("seed", range(8))
def test_hard_margin_against_a_quadratic_program(seed):
    X, y = blobs(seed)
    report = hard_margin(X, y)
    w, b, _ = by_quadratic_program(X, y)
    np.testing.assert_allclose(report.w, w, atol=1e-5)
    assert report.offset == pytest.approx(b, abs=1e-5)
    assert margin(X, y, report.w, report.offset) * np.linalg.norm(report.w) == pytest.approx(
        1.0, abs=1e-9
    )
    assert 0 <= report.gap + 1e-12 < 1e-6 * report.primal
    assert report.violation < 1e-6
    assert set(y[report.support]) == {-1, 1}


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_hard_margin_scales_with_the_samples(scale):
    X, y = blobs(1)
    expected = hard_margin(X, y).margin
    found = hard_margin(scale * X + 5 * scale, y)
    assert found.margin == pytest.approx(scale * expected, rel=1e-6)
    assert margin(scale * X + 5 * scale, y, found.w, found.offset) == pytest.approx(
        found.margin, rel=1e-6
    )


def test_small_margins_are_found():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1e-4], [1.0, 1e-4]])
    report = hard_margin(X, [-1, -1, 1, 1])
    assert report.margin == pytest.approx(0.5e-4, rel=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_not_separable_is_a_typed_failure(seed):
    X, y = blobs(seed, gap=0.1, n=60)
    assert not separable(X, y)
    with pytest.raises(NotSeparableError):
        hard_margin(X, y)


def test_two_points_decide():
    report = hard_margin([[0.0, 0.0], [0.0, 4.0]], [-1, 1])
    np.testing.assert_allclose(report.w, [0, 0.5], atol=1e-9)
    assert report.margin == pytest.approx(2.0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_soft_margin_against_a_quadratic_program(seed, C):
    X, y = blobs(seed, gap=0.7, n=20)
    report = soft_margin(X, y, C)
    w, _, slack = by_quadratic_program(X, y, C)
    assert report.primal == pytest.approx(0.5 * w @ w + C * slack.sum(), rel=1e-5)
    np.testing.assert_allclose(report.w, w, atol=2e-4)
    # Slack and hinge forms have one value, and the gap proves it.
    hinge = np.maximum(0, 1 - y * (X @ report.w + report.offset)).sum()
    assert report.primal == pytest.approx(0.5 * report.w @ report.w + C * hinge, rel=1e-9)
    assert -1e-9 < report.gap < 1e-5 * max(1, report.primal)


def test_price_of_slack_is_monotone_and_ends_at_the_hard_margin():
    X, y = blobs(0, gap=1.6)
    reports = [soft_margin(X, y, C) for C in np.logspace(-3, 4, 12)]
    norms, slacks = [r.norm for r in reports], [r.slack.sum() for r in reports]
    assert all(np.diff(norms) > -1e-7)
    assert all(np.diff(slacks) < 1e-7)
    assert norms[-1] == pytest.approx(hard_margin(X, y).norm, rel=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", RBF(0.5), Laplace(2.0), lambda A, B: (1 + A @ B.T) ** 3])
def test_conditions_hold_for_any_kernel(kernel):
    X, y = make_moons(80, noise=0.2, random_state=0)
    report = soft_margin(X, 2 * y - 1, 2.0, kernel=kernel)
    assert report.violation < SINGLE
    assert abs(report.gap) < 1e-5 * report.primal
    margins = (2 * y - 1) * report.decision
    assert (margins[report.alpha == 0] >= 1 - SINGLE).all()
    np.testing.assert_allclose(margins[report.free], 1, atol=SINGLE)
    assert (margins[report.bound] <= 1 + SINGLE).all()
    assert abs(report.alpha @ (2 * y - 1)) < 1e-9


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", RBF(0.7)])
def test_report_of_a_fitted_machine(kernel):
    X, y = make_moons(100, noise=0.2, random_state=1)
    machine = SVC(kernel=kernel, C=3.0, tol=1e-8).fit(X, np.array(["a", "b"])[y])
    report = svm_report(machine, X, np.array(["a", "b"])[y])
    np.testing.assert_allclose(report.decision, machine.decision_function(X), atol=1e-9)
    np.testing.assert_array_equal(report.support, np.sort(machine.support_))
    assert report.violation < SINGLE
    same = dual_report(
        gram(kernel, X, gamma=machine._gamma, degree=3, coef0=0), 2 * y - 1, report.alpha, 3.0
    )
    assert same.offset == pytest.approx(report.offset, abs=SINGLE)


def test_precomputed_is_the_kernel():
    X, y = make_moons(200, noise=0.1, random_state=0)
    machine = SVC(kernel="rbf", gamma=2.0).fit(X, y)
    other = SVC(kernel="precomputed").fit(gram("rbf", X, gamma=2.0), y)
    assert (machine.predict(X) == y).mean() >= 0.95
    a, b = svm_report(machine, X, y), svm_report(other, gram("rbf", X, gamma=2.0), y)
    np.testing.assert_allclose(a.decision, b.decision, atol=1e-9)


def test_removing_a_sample_that_is_no_support_vector_changes_nothing():
    X, y = blobs(2, gap=1.0)
    whole = soft_margin(X, y, 1.0)
    rest = np.setdiff1d(np.arange(len(X)), whole.support)
    fewer = soft_margin(np.delete(X, rest, axis=0), np.delete(y, rest), 1.0)
    np.testing.assert_allclose(whole.w, fewer.w, atol=1e-6)


def test_circles_need_a_feature():
    X, y = make_circles(200, noise=0.05, factor=0.4, random_state=0)
    lifted = np.c_[X, (X**2).sum(axis=1)]
    assert (SVC(kernel="linear").fit(X, y).predict(X) == y).mean() <= 0.7
    assert separable(lifted, 2 * y - 1)


def test_linear_svc_solves_another_problem():
    X, y = blobs(0, gap=0.7)
    X = X + 10.0
    other = LinearSVC(loss="hinge", C=1.0, max_iter=200_000, tol=1e-8, random_state=0).fit(X, y)
    ours = soft_margin(X, y, 1.0)
    hinge = np.maximum(0, 1 - y * (X @ other.coef_[0] + other.intercept_[0])).sum()
    assert 0.5 * other.coef_[0] @ other.coef_[0] + hinge > ours.primal * 1.01


def test_lagrange_example_and_a_multiplier_of_zero():
    x = np.linalg.solve([[-2, 0, 1], [0, -2, 1], [1, 1, 0]], [0, 0, 1])
    np.testing.assert_allclose(x, [0.5, 0.5, 1.0], atol=1e-12)
    assert stationarity_residual(-2 * x[:2], [x[:2].sum() - 1], [[1, 1]], [x[2]]) < 1e-12
    # The unconstrained optimum may lie on the surface: then the multiplier is zero.
    assert stationarity_residual([0.0, 0.0], [0.0], [[1, 1]], [0.0]) == 0.0
    assert stationarity_residual([0.0, 0.0], [0.0], [[1, 1]], [1.0]) == 1.0


def test_printed_maximum_of_the_norm_is_a_minimum():
    X, y = blobs(3)
    best = hard_margin(X, y)
    for factor in (2.0, 5.0):  # feasible for the constraints, longer, and of no larger margin
        w, b = factor * best.w, factor * best.offset
        assert (y * (X @ w + b) >= 1 - 1e-9).all()
        assert np.linalg.norm(w) > best.norm
    tilted = by_quadratic_program(X[:, ::-1], y)[0][::-1]
    assert np.linalg.norm(tilted) >= best.norm - 1e-6


def test_printed_chain_of_equal_values_has_equal_optimisers_only():
    for seed in range(4):
        X, y = blobs(seed)
        best = hard_margin(X, y)

        def feasible(
            turn, X=X, y=y, best=best
        ):  # the shortest multiple of a direction that is without slack
            w = best.w + turn
            high, low = (X[y > 0] @ w).min(), (X[y < 0] @ w).max()
            return 2 * w / (high - low) if high > low else None

        rng = np.random.default_rng(seed)
        turned = [
            feasible(s * rng.normal(size=best.w.shape)) for s in (0.0, 0.01, 0.1, 0.3) for _ in range(9)
        ]
        lengths = np.array([np.linalg.norm(w) for w in turned if w is not None])
        assert len(lengths) > 15
        # One optimiser for the three printed programs ...
        assert (1 / lengths).argmax() == lengths.argmin() == (lengths**2).argmin() < 9
        # ... and three values, which the slides equate.
        values = [best.margin, best.norm, best.norm**2]
        assert np.abs(np.subtract.outer(values, values))[~np.eye(3, dtype=bool)].min() > 1e-2
        assert best.margin * best.norm == pytest.approx(1)


def test_printed_forms_of_the_soft_margin_differ_by_two_in_their_price():
    X, y = blobs(1, gap=0.7, n=20)
    for C in (0.1, 1.0):  # w'w + C sum is twice 1/2 w'w + (C/2) sum
        w, _, _ = by_quadratic_program(X, y, C / 2)
        np.testing.assert_allclose(soft_margin(X, y, C / 2).w, w, atol=2e-4)
        assert np.abs(soft_margin(X, y, C).w - w).max() > 1e-3


def test_printed_rule_counts_every_sample_as_a_support_vector():
    report = soft_margin(*blobs(2, gap=1.5), 1.0)
    printed = np.flatnonzero((report.alpha >= 0) & (report.alpha <= 1.0))
    assert len(printed) == 30
    assert 0 < len(report.support) < 30
    # Support vectors are those with a tight constraint, slack included, not those that satisfy it.
    margins = np.where(np.arange(30) % 2, 1, -1) * report.decision + report.slack
    np.testing.assert_allclose(margins[report.support], 1.0, atol=1e-6)
    assert (margins[np.setdiff1d(np.arange(30), report.support)] > 1 + 1e-6).any()


def test_multipliers_of_the_slack_are_what_the_price_leaves():
    X, y = blobs(1, gap=0.7)
    report = soft_margin(X, y, 2.0)
    beta = 2.0 - report.alpha
    assert (beta >= 0).all()
    assert np.abs(beta * report.slack).max() < 1e-5


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: hard_margin([[0.0], [1.0]], [1, 1]), ValueError),
        (lambda: hard_margin([[0.0], [0.0]], [1, -1]), NotSeparableError),
        (lambda: soft_margin([[0.0], [1.0]], [1, -1], 0.0), ValueError),
        (lambda: soft_margin([[0.0], [1.0]], [1, -1], np.inf), ValueError),
        (lambda: soft_margin([[0.0], [1.0]], [1, 0]), ValueError),
        (lambda: soft_margin([[0.0], [1.0]], [1, -1], kernel="none"), ValueError),
        (lambda: soft_margin([[0.0], [1.0]], [1, -1], kernel=3), TypeError),
        (lambda: svm_report(LinearSVC(), [[0.0]], [1]), TypeError),
        (
            lambda: svm_report(
                SVC().fit([[0.0], [1.0], [2.0]], [0, 1, 2]), [[0.0], [1.0], [2.0]], [0, 1, 2]
            ),
            ValueError,
        ),
        (lambda: svm_report(SVC().fit([[0.0], [1.0]], [0, 1]), [[0.0]], [0]), ValueError),
        (lambda: svm_report(SVC().fit([[0.0], [1.0]], [0, 1]), [[0.0], [1.0]], [1, 0]), ValueError),
        (lambda: dual_report(np.eye(2), [1, -1], [2.0, 0.0], 1.0), ValueError),
    ],
)
def test_bad_input(call, error):
    with pytest.raises(error):
        call()


def test_dual_variables_that_bound_nothing_are_not_taken_for_a_proof():
    with pytest.raises(ValueError, match="balance"):
        dual_report(np.eye(2), [1, -1], [1.0, 0.0], np.inf)
    # Half-way to the hard margin: the multiple without slack is what is feasible.
    report = dual_report(np.eye(2), [1, -1], [0.1, 0.1], np.inf)
    assert report.primal == pytest.approx(1.0) and report.gap >= 0
    # A matrix of no kernel has no dual: nothing is said about the optimum.
    X, y = blobs(1, gap=0.7)
    report = soft_margin(X, y, kernel="sigmoid", gamma=5.0, coef0=-3.0)
    assert np.isinf(report.gap) and "no bound" in str(report)


@pytest.mark.parametrize("C", [1.0, 1e3, 1e6])
def test_high_prices_are_solved(C):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 4)) + 50.0
    y = np.where(X[:, 0] - 50 + rng.normal(size=120) > 0, 1, -1)
    report = soft_margin(X, y, C)
    assert -1e-9 * report.primal <= report.gap <= 1e-6 * report.primal
    np.testing.assert_allclose(X @ report.w + report.offset, report.decision, atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_hard_margins_are_exact(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 5)) * 10.0 ** rng.uniform(-3, 3)
    report = hard_margin(X, np.where(X @ rng.normal(size=5) > 0, 1, -1))
    assert report.gap <= 1e-7 * report.primal
    assert report.violation < 1e-6


@pytest.mark.parametrize(
    ("a", "C", "violation"),
    [(0.5, np.inf, 0.0), (0.8, np.inf, 0.6), (0.3, np.inf, 0.4), (0.3, 0.3, 0.0), (0.8, 0.8, 0.6)],
)
def test_violations_are_those_of_the_conditions(a, C, violation):
    """Samples 1 and -1 with equal multipliers a have margins 2 a: >= 1 below C, <= 1 above 0."""
    report = dual_report(np.array([[1.0, -1.0], [-1.0, 1.0]]), [1, -1], [a, a], C)
    assert report.decision == pytest.approx([2 * a, -2 * a])
    assert report.violation == pytest.approx(violation)
    assert report.dual == pytest.approx(2 * a - 2 * a**2)
    if np.isfinite(C):
        assert report.primal == pytest.approx(2 * a**2 + 2 * C * max(0, 1 - 2 * a))
    else:
        assert report.primal == pytest.approx(0.5 * max(2 * a, 1) ** 2)  # stretched until feasible


@pytest.mark.parametrize("seed", range(30))
def test_separable_means_separated_beyond_rounding(seed):
    """Two equal samples in both classes, moved apart by as little as floats allow: never a guess."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 3))
    X[3:] = X[:3]
    y = np.array([1, 1, 1, -1, -1, -1])
    assert not separable(X, y)
    assert not separable(np.nextafter(X, np.where(y > 0, 9.0, -9.0)[:, None]), y)
    assert separable(X + 1e-3 * y[:, None] * np.array([1.0, 0, 0]) + y[:, None] * [0, 5.0, 0], y)
