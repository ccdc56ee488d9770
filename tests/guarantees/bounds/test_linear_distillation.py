"""Transfer risk of linear distillation: above Monte Carlo, printed above tight, corollaries."""

import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import brute
from scipy.stats import beta as beta_distribution

from pindown.guarantees.bounds import (
    AngularProfile,
    fit_exponent,
    fit_margin,
    large_margin_bound,
    monotonicity_index,
    polynomial_angle_bound,
    transfer_risk_bound,
)
from pindown.guarantees.bounds.linear_distillation import angle_error, projected, unsigned_angle


def power_inputs(n, d, kappa, rng):
    """Inputs whose angle to the first axis has survival (1 - 2 theta / pi)**kappa."""
    a = (np.pi / 2) * (1 - rng.random(n) ** (1 / kappa))
    v = rng.standard_normal((n, d - 1))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    x = np.column_stack([rng.choice([-1, 1], n) * np.cos(a), np.sin(a)[:, None] * v])
    return x * rng.standard_normal((n, 1))


def mean_risk(rng, d, n, kappa, off=0.0, reps=60):
    w, risks = np.eye(d)[0], []
    for _ in range(reps):
        student = projected(power_inputs(n, d, kappa, rng), w)
        if off:
            u = rng.standard_normal(d)
            student = student + off * np.linalg.norm(student) * u / np.linalg.norm(u)
        X = power_inputs(400, d, kappa, rng)
        risks.append(np.mean((X @ student >= 0) != (X @ w >= 0)))
    return np.mean(risks), np.std(risks) / math.sqrt(reps)


@pytest.mark.parametrize("kappa", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("n", [2, 10])
def test_above_monte_carlo(kappa, n):
    risk, error = mean_risk(np.random.default_rng(0), 60, n, kappa)
    tight, printed = (
        transfer_risk_bound(AngularProfile.power(kappa), n, variant=f) for f in ("sharp", "as_printed")
    )
    assert risk - 3 * error <= tight.value <= printed.value
    assert tight.kind == "exact"


@pytest.mark.parametrize(("kappa", "n", "r"), [(0.5, 3, 0.0), (1.0, 20, 0.2), (2.5, 6, 0.05)])
def test_best_angle_by_a_search(kappa, n, r):
    """Theorems 5.3 and D.4, with the share of inputs that are no easy ones counted once."""
    for variant in ("sharp", "as_printed"):
        off = math.asin(r) if variant == "sharp" else math.sqrt(2 * math.pi * r)

        def risk(beta, off=off, once=variant == "sharp"):
            hard = (1 - 2 * beta / np.pi) ** kappa
            far = np.clip(2 * (off + beta) / np.pi, 0, 1) ** (kappa * n)  # p(pi/2 - off - beta)^n
            return hard + (1 - once * hard) * far

        best = brute(risk, ((0, max(np.pi / 2 - off, 0)),), Ns=2000, full_output=True)[1]
        found = transfer_risk_bound(AngularProfile.power(kappa), n, relative_error=r, variant=variant)
        if off < np.pi / 2:
            assert best * (1 - 1e-7) <= found.formula_value <= best * (1 + 1e-4)
        else:
            assert found.vacuous


def test_inexact_students_of_spanning_inputs_err_near_the_boundary_only():
    """In the plane a student off by an angle errs on half of the inputs that are as near to the edge."""
    profile = AngularProfile.power(1.0)
    for r in (0.1, 0.6):
        found = transfer_risk_bound(profile, 9, dimension=2, relative_error=r)
        assert found.value == pytest.approx(2 * math.asin(r) / np.pi)
        x = np.linspace(0, 2 * np.pi, 20_001)
        share = np.mean((np.cos(x) >= 0) != (np.cos(x - math.asin(r)) >= 0))
        assert share == pytest.approx(found.value / 2, rel=3e-3)


def test_published_check_values():
    expected = {0.5: (0.503, 0.552), 1.0: (0.182, 0.189), 2.0: (0.0203, None)}
    for kappa, (tight, printed) in expected.items():
        profile = AngularProfile.power(kappa)
        assert transfer_risk_bound(profile, 20).value == pytest.approx(tight, rel=0.01)
        if printed:
            assert transfer_risk_bound(profile, 20, variant="as_printed").value == pytest.approx(
                printed, rel=0.01
            )


def test_monotone_in_n_and_zero_from_the_dimension_on():
    values = [
        transfer_risk_bound(AngularProfile.power(1.0), n, dimension=40).value for n in range(1, 45)
    ]
    assert values == sorted(values, reverse=True)
    assert values[39] == 0.0 < values[38]


@pytest.mark.parametrize("r", [0.05, 0.3])
def test_approximate_students(r):
    risk, error = mean_risk(np.random.default_rng(1), 60, 8, 1.0, off=r)
    bound = transfer_risk_bound(AngularProfile.power(1.0), 8, relative_error=r)
    assert risk - 3 * error <= bound.value
    assert transfer_risk_bound(AngularProfile.power(1.0), 8).value <= bound.value


def test_arcsine_is_right_and_attained_and_the_printed_angle_loose():
    rng = np.random.default_rng(2)
    w = rng.standard_normal((20_000, 4))
    r = rng.random((20_000, 1)) * 0.5
    u = rng.standard_normal((20_000, 4))
    v = w + r * np.linalg.norm(w, axis=1, keepdims=True) * u / np.linalg.norm(u, axis=1, keepdims=True)
    cos = np.sum(w * v, axis=1) / np.linalg.norm(w, axis=1) / np.linalg.norm(v, axis=1)
    assert (np.arccos(np.clip(cos, -1, 1)) <= np.arcsin(r[:, 0]) + 1e-9).all()
    t = 0.3  # tangent from the end of w to the circle of radius t around it
    tangent = np.array([1 - t * t, t * math.sqrt(1 - t * t)])
    assert np.linalg.norm(tangent - [1, 0]) == pytest.approx(t)
    assert math.atan2(tangent[1], tangent[0]) == pytest.approx(angle_error(t))
    assert angle_error(0.01, "as_printed") > 25 * angle_error(0.01)


def test_printed_range_of_angles_is_empty_where_ours_says_something():
    profile = AngularProfile.power(3.0)
    assert math.sqrt(2 * math.pi * 0.45) > math.pi / 2
    assert transfer_risk_bound(profile, 50, relative_error=0.45, variant="as_printed").vacuous
    assert not transfer_risk_bound(profile, 50, relative_error=0.45).vacuous
    assert transfer_risk_bound(profile, 50, relative_error=1.5).vacuous


def test_profile_from_a_sample_bounds_the_true_one():
    rng, delta, fails = np.random.default_rng(3), 0.2, 0
    theta = np.linspace(0, np.pi / 2, 200)
    for _ in range(200):
        profile = AngularProfile.from_samples(power_inputs(100, 4, 1.0, rng), np.eye(4)[0], delta=delta)
        fails += (profile(theta) < 1 - 2 * theta / np.pi - 1e-12).any()
    assert 0 < fails <= 200 * delta + 3 * math.sqrt(200 * delta)
    bound = transfer_risk_bound(profile, 10)
    assert bound.kind == "probability" and bound.delta == delta
    shares = AngularProfile.from_samples(power_inputs(100, 4, 1.0, rng), np.eye(4)[0])
    assert transfer_risk_bound(shares, 10).kind == "estimate"


def test_uniform_directions_follow_the_beta_law():
    rng = np.random.default_rng(4)
    d = 5
    X = rng.standard_normal((50_000, d))
    profile = AngularProfile.from_samples(X, np.arange(1.0, d + 1))
    for theta in (0.3, 0.8, 1.3):
        exact = beta_distribution.cdf(math.cos(theta) ** 2, 0.5, (d - 1) / 2)
        assert float(profile(theta)) == pytest.approx(exact, abs=0.01)
    np.testing.assert_allclose(
        unsigned_angle(-7 * X[:5], np.ones(d)), unsigned_angle(X[:5], 3 * np.ones(d))
    )


@pytest.mark.parametrize("kappa", [0.5, 1, 2, 3, 5])
def test_polynomial_corollary_is_above_the_optimum(kappa):
    for n in (2, 5, 20, 100, 500):
        printed = transfer_risk_bound(AngularProfile.power(kappa), n, variant="as_printed").formula_value
        assert polynomial_angle_bound(kappa, n).formula_value >= printed * (1 - 1e-6)
    assert polynomial_angle_bound(0.0, 20).vacuous
    assert fit_exponent(AngularProfile.power(kappa)) == pytest.approx(kappa)


def test_large_margin_corollary():
    profile = AngularProfile(lambda t: np.clip(1 - t / 1.2, 0, 1))
    angle, rate = fit_margin(profile)
    assert angle == pytest.approx(1.2, abs=1e-3)
    assert transfer_risk_bound(profile, 7).value <= large_margin_bound(rate, 7).value * (1 + 1e-9)


def test_more_inputs_never_turn_the_exact_student_away():
    rng = np.random.default_rng(5)
    w = rng.standard_normal(8)
    index = monotonicity_index(
        lambda X, _: projected(X, w),
        lambda n, g: g.standard_normal((n, 8)),
        w,
        3,
        repetitions=200,
        random_state=0,
    )
    assert index == 1.0
    stuck = {"repetitions": 5, "random_state": 0}

    def count(learner, strict):
        return monotonicity_index(
            learner, lambda n, g: g.standard_normal((n, 8)), w, 3, strict=strict, **stuck
        )

    assert count(lambda X, _: np.eye(8)[0], True) == 0.0  # the angle stays: no progress
    assert count(lambda X, _: np.eye(8)[0], False) == 1.0
    assert count(lambda X, _: w + (len(X) - 3) * np.eye(8)[0], False) == 0.0


def test_exponent_is_the_largest_that_fits_everywhere():
    mixed = AngularProfile(lambda t: np.maximum((1 - 2 * t / np.pi) ** 3, 0.4 * (1 - 2 * t / np.pi)))
    kappa = fit_exponent(mixed)
    theta = np.linspace(0, np.pi / 2, 5001)[1:-1]
    slack = (1 - 2 * theta / np.pi) ** kappa - mixed(theta)
    assert slack.min() >= -1e-4
    assert ((1 - 2 * theta / np.pi) ** (1.01 * kappa) < mixed(theta)).any()


def test_more_data_can_harm_the_risk_although_not_the_angle():
    """One more input turns the student towards the teacher, and makes it wrong at x."""
    w = np.array([1.0, 1.0])
    first, second = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 1e-9]])
    w3 = np.array([1.0, 0.2, -1.1])
    few, more = np.array([[1.0, 0.0, 0.0]]), np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    few_student, more_student = projected(few, w3), projected(more, w3)
    angles = [float(unsigned_angle(s[None], w3)[0]) for s in (few_student, more_student)]
    assert angles[1] < angles[0]
    x = np.array([1.0, 1.0, 1.05])  # teacher: 1 + 0.2 - 1.155 > 0; the better student says no
    assert x @ w3 > 0 and x @ few_student > 0 and x @ more_student < 0
    assert np.allclose(projected(second, w), w, atol=1e-5) and projected(first, w)[1] == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: transfer_risk_bound(AngularProfile.power(1.0), 0),
        lambda: transfer_risk_bound(AngularProfile.power(1.0), 5, variant="other"),
        lambda: AngularProfile.from_samples([[1.0, 2.0]], [1.0]),
        lambda: AngularProfile.from_samples([[1.0]], [0.0]),
        lambda: AngularProfile.from_samples(np.ones((3, 1)), [1.0], delta=0.7),
        lambda: AngularProfile.power(-1.0),
        lambda: large_margin_bound(1.5, 3),
    ],
)
def test_refuses(call):
    with pytest.raises(ValueError, match="must"):
        call()


def test_powers_of_a_rate_are_rounded_up():
    rng = np.random.default_rng(6)
    for rate in rng.uniform(0.05, 0.99, 300):
        n = int(rng.uniform(0.5, 0.99) * 700 / -math.log(rate))
        found = large_margin_bound(rate, n).value
        with mpmath.workdps(50):
            true = mpmath.mpf(rate) ** n
            assert true <= found <= true * (1 + mpmath.mpf(10) ** -9)


def test_large_exponents_and_samples_stay_above_zero():
    assert 0.0 < polynomial_angle_bound(1e4, 10).value < 1e-300
    assert 0.0 < large_margin_bound(0.5, 5000).value < 1e-300
    assert large_margin_bound(0.0, 3).value == 0.0
