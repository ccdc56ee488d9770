"""The promises of the theorems, on their own classes of functions; printed mistakes shown."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from pindown.optim import (
    AdamRule,
    Constants,
    Problem,
    RMSPropRule,
    Trace,
    adam_plan,
    bounded_well,
    dynamic_shift_holds,
    estimate_constants,
    finite_sum,
    interpolating_oracle_floor,
    interpolating_oracle_holds,
    interpolation_diagnostic,
    log_cosh,
    minimize,
    one_term,
    preconditioned_descent,
    rmsprop_plan,
    rmsprop_unshifted_plan,
    sign_constrained_plan,
    stochastic_rmsprop_conditions,
)
from pindown.optim.rmsprop_theorems import step_sum

KINDS = {"log cosh": log_cosh, "x^2/(1 + x^2)": bounded_well}
every_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())


@every_kind
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_constants_of_the_functions(make, scale):
    """L and sigma are reached by sampling and never exceeded; gradients are those of the values."""
    rng, d = np.random.default_rng(0), 3
    problem = make(d, scale=scale)
    c = problem.constants
    X = rng.uniform(-4, 4, (4000, d))
    G = np.array([problem.gradient(x) for x in X])
    assert np.linalg.norm(G, axis=1).max() <= c.gradient_bound
    steps = np.linalg.norm(np.diff(X, axis=0), axis=1)
    assert np.all(np.linalg.norm(np.diff(G, axis=0), axis=1) <= c.smoothness * steps * (1 + 1e-12))
    found = estimate_constants(problem.gradient, [np.zeros(d), np.full(d, 1 / math.sqrt(3)), X[0]])
    assert found.kind == "estimate" and found.smoothness == pytest.approx(c.smoothness, rel=1e-6)
    assert all(c.lower <= problem.value(x) <= c.upper for x in X[:100])
    for x in X[:20]:
        for i in range(d):
            e = 1e-6 * np.eye(d)[i]
            slope = (problem.value(x + e) - problem.value(x - e)) / 2e-6
            assert slope == pytest.approx(problem.gradient(x)[i], rel=1e-5, abs=1e-6 * scale)


def test_values_do_not_overflow():
    assert log_cosh(1).value(np.array([1e6])) == pytest.approx(1e6 - math.log(2))


@every_kind
@pytest.mark.parametrize("seed", range(6))
def test_rmsprop_reaches_criticality_within_the_horizon(make, seed):
    rng = np.random.default_rng(seed)
    d, scale = int(rng.integers(1, 8)), float(10 ** rng.uniform(-1, 1.5))
    problem, x = make(d, scale=scale), rng.uniform(-1.5, 1.5, d)
    shift = float(10 ** rng.uniform(-1, 1)) * scale**2
    epsilon = 0.2 * float(np.linalg.norm(problem.gradient(x)))
    plan = rmsprop_plan(
        problem.constants, problem.value(x), epsilon, decay=rng.uniform(0, 0.95), shift=shift
    )
    trace = minimize(problem, x, plan.rule, steps=min(plan.horizon, 20_000), stop_below=epsilon)
    hit = trace.first_below(epsilon)
    assert hit is not None and hit <= plan.horizon
    assert plan.broken_steps(trace) == ()


def test_the_descent_check_sees_a_step_that_is_too_long():
    problem, x = log_cosh(2), np.array([1.0, -1.0])
    plan = rmsprop_plan(problem.constants, problem.value(x), 0.01)
    trace = minimize(problem, x, RMSPropRule(60 * plan.lr, plan.decay, plan.shift), steps=50)
    assert len(plan.broken_steps(trace)) > 0


@pytest.mark.parametrize(("shift", "order"), [(0.01, 4.2e3), (0.1, 5.6e2), (1.0, 1.2e2), (10.0, 50)])
def test_a_larger_shift_is_faster_with_the_theorems_steps(shift, order):
    problem, x = log_cosh(4), np.full(4, 2.0)
    plan = rmsprop_plan(problem.constants, problem.value(x), 0.05, shift=shift)
    trace = minimize(problem, x, plan.rule, steps=6000, stop_below=0.05)
    assert trace.first_below(0.05) == pytest.approx(order, rel=0.05)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9])
def test_rmsprop_without_shift_keeps_its_bound(seed, decay):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    problem, x = bounded_well(d, scale=float(rng.uniform(0.2, 5))), rng.uniform(-3, 3, d)
    x[0] = 0.0  # no gradient there: it must stay
    plan = rmsprop_unshifted_plan(problem.constants, d, 0.5, decay=decay)
    trace = minimize(problem, x, plan.rule, steps=1000)
    best = np.minimum.accumulate(trace.gradient_norms) ** 2
    assert all(best[T - 1] <= plan.bound(T) for T in (1, 2, 5, 10, 30, 100, 300, 1000))
    assert trace.point[0] == 0.0
    assert plan.bound(plan.horizon) <= 0.25
    assert plan.horizon == 1 or plan.bound(plan.horizon - 1) > 0.25


def test_printed_sum_of_diminishing_steps_is_too_small():
    """With no memory a step moves every coordinate by exactly alpha/sqrt(t): their sum is known."""
    problem, x, alpha, T = bounded_well(3), np.array([1.0, -1.0, 0.5]), 1e-3, 400
    rule, state, moved = RMSPropRule(alpha, 0.0, 0.0, diminishing=True), {"v": np.zeros(3)}, 0.0
    for t in range(1, T + 1):
        step = rule.move(state, problem.gradient(x), t)
        x = x + step
        moved += float(step @ step) * math.sqrt(t) / alpha  # alpha_t |V^(-1/2) g|^2
    assert moved == pytest.approx(3 * alpha * sum(t**-0.5 for t in range(1, T + 1)))
    assert moved > 3 * alpha * step_sum(T, "as_printed")
    assert moved <= 3 * alpha * step_sum(T)
    for T in (2, 3, 10, 1000):
        total = sum(t**-0.5 for t in range(1, T + 1))
        assert step_sum(T, "as_printed") < total <= step_sum(T)


@every_kind
@pytest.mark.parametrize("seed", range(4))
def test_adam_reaches_criticality_within_the_horizon(make, seed):
    rng = np.random.default_rng(seed)
    d, scale = int(rng.integers(1, 5)), float(10 ** rng.uniform(-1, 2))
    problem, x = make(d, scale=scale), rng.uniform(-1.2, 1.2, d)
    epsilon = 0.5 * float(np.linalg.norm(problem.gradient(x)))
    plan = adam_plan(problem.constants, problem.value(x), epsilon, beta2=rng.uniform(0, 0.999))
    trace = minimize(problem, x, plan.rule, steps=min(plan.horizon, 30_000), stop_below=epsilon)
    hit = trace.first_below(epsilon)
    assert hit is not None and hit <= plan.horizon
    assert plan.broken_steps(trace) == ()


@pytest.mark.parametrize("part", [0.1, 0.4, 0.8])
@pytest.mark.parametrize("above", [1.1, 2.0, 10.0])
def test_adam_with_any_beta_and_shift_that_the_theorem_allows(part, above):
    problem, x, epsilon = log_cosh(3, scale=2.0), np.array([2.0, -1.0, 0.5]), 1.0
    sigma = problem.constants.gradient_bound
    beta1 = part * epsilon / (epsilon + sigma)
    shift = above * sigma / (epsilon * (1 - beta1) / (beta1 * sigma) - 1)
    plan = adam_plan(problem.constants, problem.value(x), epsilon, beta1=beta1, shift=shift)
    trace = minimize(problem, x, plan.rule, steps=min(plan.horizon, 5000), stop_below=epsilon)
    hit = trace.first_below(epsilon)
    assert hit is not None and hit <= plan.horizon and plan.broken_steps(trace) == ()


def test_printed_adam_horizon_depends_on_the_unit_of_the_loss():
    """Times s, the function has the same path; the printed horizon shrinks like 1/s^2 and fails."""
    x, hits, printed, corrected = np.array([2.0, -1.0, 1.5, 0.5]), [], [], []
    points = []
    for s in (1.0, 10.0, 100.0):
        problem, epsilon = log_cosh(4, scale=s), 0.4 * s
        gap = problem.value(x)
        plan = adam_plan(problem.constants, gap, epsilon)
        wrong = adam_plan(problem.constants, gap, epsilon, variant="as_printed")
        trace = minimize(problem, x, plan.rule, steps=2000, stop_below=epsilon)
        hits.append(trace.first_below(epsilon))
        points.append(trace.point)
        corrected.append(plan.horizon)
        printed.append(wrong.horizon)
        assert (wrong.lr, wrong.betas, wrong.shift) == (plan.lr, plan.betas, plan.shift)
    assert len(set(hits)) == 1 and len(set(corrected)) == 1
    assert np.allclose(points[0], points[1], rtol=1e-9) and np.allclose(points[0], points[2], rtol=1e-9)
    assert printed[1] < hits[1] and printed[2] < hits[2]  # the printed theorem is false
    assert hits[0] <= corrected[0]
    assert printed[0] / printed[1] == pytest.approx(100, rel=0.01)


def test_the_general_formula_gives_the_explicit_one():
    c, eps, gap = Constants(3.0, 2.0), 0.7, 5.0
    explicit = adam_plan(c, gap, eps)
    # alpha_t = |g|^2 4 eps / (3 L (1 - beta1^t)^2 (eps + 2 sigma)^2)
    assert explicit.lr * (eps + 4.0) ** 2 * 9.0 == pytest.approx(4 * eps)
    assert (explicit.betas[0], explicit.shift) == (pytest.approx(eps / (eps + 4.0)), 4.0)
    general = adam_plan(c, gap, eps, beta1=eps / (eps + 4.0), shift=4.0)
    assert explicit.horizon == math.ceil(1 + 4.5 * 3.0 * (eps + 4.0) ** 4 * gap / eps**6)
    assert explicit.horizon == general.horizon and explicit.schedule != general.schedule
    halved = adam_plan(c, gap, eps, beta1=eps / (eps + 4.0), shift=4.0, variant="as_printed")
    assert halved.horizon == pytest.approx((general.horizon - 1) / 2, abs=1)


def test_the_first_step_of_adam_descends_so_the_first_gap_will_do():
    for scale in (0.1, 1.0, 50.0):
        problem, x = bounded_well(2, scale=scale), np.array([0.8, -0.4])
        plan = adam_plan(problem.constants, problem.value(x), 0.2 * scale)
        trace = minimize(problem, x, plan.rule, steps=1)
        assert trace.values[1] < trace.values[0]


@pytest.mark.parametrize("convex", [True, False])
def test_stochastic_rmsprop_with_common_signs_keeps_its_bound(convex):
    rng = np.random.default_rng(3)
    problem = finite_sum(rng.uniform(0.2, 3, (6, 3)), convex=convex)
    x = np.array([1.0, -0.8, 0.5])
    plan = sign_constrained_plan(problem.constants, problem.value(x), horizon=300, decay=0.5, shift=0.5)
    runs = [
        minimize(problem, x, plan.rule, steps=300, oracle=one_term(problem), seed=seed)
        for seed in range(20)
    ]
    expected = np.mean([run.gradient_norms[:300] ** 2 for run in runs], axis=0)
    assert expected.min() <= plan.epsilon**2
    same = sign_constrained_plan(
        problem.constants, problem.value(x), epsilon=plan.epsilon, decay=0.5, shift=0.5
    )
    assert same.horizon == 300 and same.lr == pytest.approx(plan.lr)


def test_the_lemma_of_the_signs_holds_and_needs_its_assumption():
    rng = np.random.default_rng(0)
    for _ in range(300):
        k, d, decay = int(rng.integers(1, 6)), int(rng.integers(1, 5)), float(rng.uniform(0, 0.99))
        terms = rng.exponential(size=(k, d)) * rng.choice([-1, 1], d)
        bound, shift, t = (
            float(np.linalg.norm(terms, axis=1).max()),
            float(rng.exponential()),
            rng.integers(9),
        )
        average = (1 - decay**t) * (rng.uniform(0, bound**2, d) + shift)
        found = preconditioned_descent(terms, average, gradient_bound=bound, decay=decay, shift=shift)
        assert found.same_signs and found.holds
    mixed = preconditioned_descent(
        [[4.0], [-1.0], [-1.0]], [0.0], gradient_bound=4, decay=0.0, shift=0.01
    )
    assert not mixed.same_signs and not mixed.holds and mixed.slope < 0


def test_printed_bound_on_the_averages_of_fast_rmsprop_fails():
    """Within the printed conditions v_t exceeds sigma from the second step on; G^2 + shift holds."""
    shift, c, decay, sigma = 1.0, 2.0, 0.5, 0.2
    assert stochastic_rmsprop_conditions(
        c=c, gradient_bound=sigma, shift=shift, decay=decay, variant="as_printed"
    ).conditions_hold
    problem = log_cosh(3, scale=sigma)  # partial derivatives below sigma
    rule, state, x = RMSPropRule(0.01, decay, shift), {"v": np.zeros(3)}, np.array([1.0, -1.0, 2.0])
    for t in range(1, 20):
        x = x + rule.move(state, problem.gradient(x), t)
        assert np.all(np.sqrt(state["v"]) > math.sqrt(sigma))
        assert np.all(state["v"] <= sigma**2 + shift)
    right = stochastic_rmsprop_conditions(c=c, gradient_bound=sigma, shift=shift, decay=decay)
    assert right.conditions_hold is (c * sigma * math.sqrt(sigma**2 + shift) / shift < 0.5)


def test_corrected_fast_rmsprop_says_nothing_about_points_that_are_not_critical():
    rng, met = np.random.default_rng(1), 0
    for _ in range(3000):
        c, shift, decay = 10 ** rng.uniform(-1, 3), 10 ** rng.uniform(-3, 3), rng.uniform(0.01, 0.99)
        sigma = math.sqrt(shift) * 10 ** rng.uniform(-4, 1)
        found = stochastic_rmsprop_conditions(c=c, gradient_bound=sigma, shift=shift, decay=decay)
        met += found.conditions_hold
        assert not (found.conditions_hold and found.reachable)
        assert math.isnan(found.lr) is not found.conditions_hold
    assert met > 300


def test_interpolating_oracle_is_impossible_near_a_critical_point():
    """Printed as a property of interpolation, the condition fails below its floor, noise or not."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        k, d = int(rng.integers(1, 6)), int(rng.integers(1, 6))
        shift, c = 10 ** rng.uniform(-2, 1), float(rng.uniform(0.5, 30))
        floor = interpolating_oracle_floor(d, shift, c)
        G = rng.normal(size=(k, d))
        G *= min(floor, 10.0) * float(rng.uniform(0.01, 0.99)) / np.linalg.norm(G.mean(axis=0))
        assert not interpolating_oracle_holds(G, shift, c)
    exact = np.full((2, 4), 1.01 * interpolating_oracle_floor(4, 1.0, 9.0) / 2)
    assert interpolating_oracle_holds(exact, 1.0, 9.0)  # above the floor an exact oracle meets it


def test_printed_dynamic_shift_depends_on_the_unit_of_the_loss():
    """Loss times s, shifts times s^2: the same iterates, but the condition holds for one s only."""
    points, answers = [], []
    for s in (1.0, 0.25):
        problem = log_cosh(2, scale=s)
        points.append(minimize(problem, [2.0, -1.0], RMSPropRule(0.05, 0.9, s**2), steps=50).point)
        slope = float(np.linalg.norm(problem.gradient(np.array([2.0, -1.0]))))
        answers.append(dynamic_shift_holds(4 * s**2, s**2, 2, slope))
    assert np.allclose(*points, rtol=1e-12)
    assert answers == [True, False]


def test_strong_growth_tells_interpolation_from_noise():
    """Least squares with more unknowns than equations: bounded on the way; with noisy labels: not."""
    rng = np.random.default_rng(0)
    for n, d, interpolates in ((10, 30, True), (60, 3, False)):
        X = rng.normal(size=(n, d))
        y = X @ rng.normal(size=d) + (0 if interpolates else rng.normal(size=n))
        w, found = np.zeros(d), []
        for _ in range(3000):
            samples = (X @ w - y)[:, None] * X
            found.append(interpolation_diagnostic(samples, 1e-8).strong_growth)
            w -= 0.1 * n / np.linalg.norm(X, 2) ** 2 * samples.mean(axis=0) * 5
        assert (max(found) < 100) is interpolates
        assert (found[-1] > 1e6) is not interpolates


def test_diagnostic_where_the_mean_vanishes():
    assert interpolation_diagnostic([[1.0], [-1.0]], 1.0).strong_growth == math.inf
    assert math.isnan(interpolation_diagnostic([[0.0], [0.0]], 1.0).strong_growth)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: log_cosh(0),
        lambda: log_cosh(True),
        lambda: log_cosh(2, scale=-1),
        lambda: finite_sum([[1.0, -1.0]]),
        lambda: finite_sum([]),
        lambda: Constants(1.0, math.nan),
        lambda: Constants(1.0, 1.0, 2.0, 1.0),
        lambda: rmsprop_plan(Constants(1.0, 1.0), 1.0, 0.0),
        lambda: rmsprop_plan(Constants(1.0, 1.0), -1.0, 0.1),
        lambda: rmsprop_plan(Constants(1.0, 1.0), 1.0, 0.1, decay=1.0),
        lambda: rmsprop_plan(Constants(1.0, 1.0), 1.0, 0.1, shift=0.0),
        lambda: rmsprop_plan(Constants(1.0, 1.0), 1.0, 1e-200),
        lambda: rmsprop_unshifted_plan(Constants(1.0, 1.0), 2, 0.1),
        lambda: rmsprop_unshifted_plan(bounded_well(2).constants, 2, 0.1, variant="printed"),
        lambda: adam_plan(Constants(1.0, 1.0), 1.0, 0.1, beta1=0.9),
        lambda: adam_plan(Constants(1.0, 1.0), 1.0, 0.1, shift=0.01),
        lambda: adam_plan(Constants(1.0, 1.0), 1.0, 0.1, variant="x"),
        lambda: sign_constrained_plan(Constants(1.0, 1.0), 1.0),
        lambda: sign_constrained_plan(Constants(1.0, 1.0), 1.0, horizon=0),
        lambda: sign_constrained_plan(Constants(1.0, 1.0), 1.0, horizon=2.5),
        lambda: minimize(log_cosh(1), [1.0], RMSPropRule(0.1), steps=1.5),
        lambda: preconditioned_descent([[1.0]], [0.0, 1.0], gradient_bound=1, decay=0.5, shift=1),
        lambda: interpolation_diagnostic([[np.nan]], 1.0),
        lambda: interpolation_diagnostic(np.zeros((0, 2)), 1.0),
        lambda: stochastic_rmsprop_conditions(c=2, gradient_bound=1, shift=1, decay=1.0),
        lambda: estimate_constants(lambda x: x, np.zeros((0, 2))),
        lambda: one_term(log_cosh(2)),
        lambda: minimize(log_cosh(1), [1.0], AdamRule(0.1, schedule="cosine"), steps=2),
    ],
)
def test_bad_input_is_refused_in_words(wrong):
    with pytest.raises(ValueError, match=r"got|use|must"):
        wrong()


def test_results_print_in_a_line():
    c = bounded_well(2).constants
    assert "some iterate t <= " in str(rmsprop_plan(c, 1.0, 0.1))
    assert "not true" in str(adam_plan(c, 1.0, 0.1, variant="as_printed"))
    assert "least expected" in str(sign_constrained_plan(c, 1.0, horizon=10))
    assert "/ sqrt(t)" in str(rmsprop_unshifted_plan(c, 2, 0.1))
    assert "no convergence follows" in str(interpolation_diagnostic([[1.0]], 1.0))


def test_steps_and_horizons_are_the_best_of_the_descent_inequalities():
    """One step lowers f by what the proof says; the plans take the step that makes most of it."""
    L, sigma, gap, decay, shift, T = 3.0, 1.7, 5.0, 0.6, 0.4, 800
    c, root, least = Constants(L, sigma), math.hypot(sigma, math.sqrt(shift)), (1 - decay) * shift

    def fall(a):  # per squared gradient norm: slope against curvature, v between least and root^2
        return a / root - L * a**2 / (2 * least)

    best = minimize_scalar(lambda a: -fall(a), bounds=(0, 2 * least / L), method="bounded")
    plan = rmsprop_plan(c, gap, 0.1, decay=decay, shift=shift)
    assert plan.lr == pytest.approx(best.x, rel=1e-4) and plan.descent == pytest.approx(-best.fun)
    assert plan.horizon == math.ceil(gap / (-best.fun * 0.1**2) * (1 - 1e-9))

    def mean_square(a):  # the same inequality summed over T draws of terms of norm sigma at most
        return root * (gap / (a * T) + L * a * sigma**2 / (2 * least))

    best = minimize_scalar(mean_square, bracket=(1e-3, 1e-2))
    plan = sign_constrained_plan(c, gap, horizon=T, decay=decay, shift=shift)
    assert plan.lr == pytest.approx(best.x, rel=1e-4) and plan.epsilon**2 == pytest.approx(best.fun)
    precise = sign_constrained_plan(c, gap, epsilon=plan.epsilon / 2, decay=decay, shift=shift)
    assert precise.horizon == 16 * T  # four times the square for half the norm, twice the fourth power


def test_unshifted_bound_is_that_of_the_summed_inequality():
    """A coordinate moves by alpha_t / sqrt(1 - decay) at most, so d of them by d times its square."""
    L, sigma, low, high, alpha, decay, d = 2.0, 1.3, -0.5, 2.0, 0.3, 0.75, 4
    plan = rmsprop_unshifted_plan(Constants(L, sigma, low, high), d, 0.5, decay=decay, lr=alpha)
    for T in (1, 7, 400):
        curved = sum(L / 2 * d / (1 - decay) * alpha * t**-0.5 for t in range(1, T + 1))
        summed = sigma / T * ((high - low) * math.sqrt(T + 1) / alpha + curved)
        assert summed <= plan.bound(T) * (1 + 1e-12)
        assert plan.bound(T) - summed <= sigma / T * L / 2 * d / (1 - decay) * alpha * 0.5


def test_unshifted_bound_of_copies_of_a_function():
    """d copies of a function of one variable take d copies of its path: every term scales alike."""
    one = bounded_well(1)
    single = rmsprop_unshifted_plan(one.constants, 1, 0.2)
    for d in (2, 9):
        many = bounded_well(d)
        plan = rmsprop_unshifted_plan(many.constants, d, 0.2)
        assert plan.lr == pytest.approx(single.lr)
        assert plan.bound(50) == pytest.approx(d**1.5 * single.bound(50))
        alone = minimize(one, [0.8], single.rule, steps=30)
        beside = minimize(many, np.full(d, 0.8), plan.rule, steps=30)
        assert np.allclose(beside.point, alone.point[0])
        assert np.allclose(beside.gradient_norms, math.sqrt(d) * alone.gradient_norms)
    best = minimize_scalar(
        lambda a: rmsprop_unshifted_plan(many.constants, 9, 0.2, lr=a).bound(10**8), bracket=(0.1, 0.2)
    )
    assert best.x == pytest.approx(plan.lr, rel=1e-2)


def trace_of(falls, norms):
    values = 100 - np.concatenate([[0.0], np.cumsum(falls)])
    return Trace(values, np.array(norms), np.zeros(1), {})


def test_steps_that_fall_short_of_their_promise_are_named():
    plan, norms = rmsprop_plan(Constants(1.0, 2.0), 1.0, 0.1), np.array([2.0, 1.0, 3.0, 0.5])
    promised = plan.descent * norms**2
    kept = trace_of(promised[:3] * (1 + 1e-9), norms)
    assert plan.broken_steps(kept) == () and kept.first_below(1.0) == 2 and kept.first_below(0.5) == 4
    assert kept.first_below(0.4) is None
    assert plan.broken_steps(trace_of(promised[:3] * [1, 0.99, 1], norms)) == (2,)
    adam = adam_plan(Constants(1.0, 2.0), 1.0, 0.6)
    t = np.arange(1, 5)
    promised = adam.descent * norms**4 / (1 - adam.betas[0] ** t) ** 2
    assert adam.broken_steps(trace_of(promised[:3] * (1 + 1e-9), norms)) == ()
    # The first step is free, and so is one below epsilon.
    assert adam.broken_steps(trace_of(promised[:3] * [0, 0.99, 1], norms)) == (2,)
    assert adam.broken_steps(trace_of(promised[:3] * 0.99, [2.0, 0.5, 3.0, 0.5])) == (3,)


def test_optimal_steps_of_adam_end_at_the_bottom_of_a_parabola():
    """On L/2 |x|^2 the quadratic bound is the function: the gradient is then across the direction."""
    L = 5.0
    parabola = Problem("parabola", 2, lambda x: L / 2 * float(x @ x), lambda x: L * x, Constants(L, 9.0))
    plan = adam_plan(parabola.constants, 10.0, 1.0, beta1=0.05, shift=10.0)
    x = np.array([1.5, -0.4])
    after = minimize(parabola, x, plan.rule, steps=1).point
    assert parabola.gradient(after) @ (after - x) == pytest.approx(0, abs=1e-12)
    assert np.linalg.norm(after - x) > 0.1


def test_a_mean_of_functions_has_the_constants_of_its_terms():
    rng = np.random.default_rng(5)
    C = rng.uniform(0.2, 3, (4, 2))
    problem, X = finite_sum(C), rng.uniform(-9, 9, (2000, 2))
    terms = np.array([problem.terms(x) for x in X])
    gradients = np.array([problem.gradient(x) for x in X])
    assert np.allclose(terms.mean(axis=1), gradients)
    longest = np.linalg.norm(terms, axis=2).max()
    assert 0.999 * problem.constants.gradient_bound < longest <= problem.constants.gradient_bound
    steep = estimate_constants(problem.gradient, [np.zeros(2), X[0]])
    assert steep.smoothness == pytest.approx(problem.constants.smoothness, rel=1e-3)
    h = 1e-6 * np.eye(2)
    slopes = [(problem.value(X[0] + e) - problem.value(X[0] - e)) / 2e-6 for e in h]
    assert np.allclose(slopes, gradients[0], rtol=1e-5, atol=1e-8)
    well = finite_sum(C, convex=False)
    top = np.linalg.norm(well.terms(np.full(2, 1 / math.sqrt(3))), axis=1).max()
    assert well.constants.gradient_bound == pytest.approx(top)  # there all slopes are greatest


def test_the_oracle_draws_every_term_and_the_method_sees_it():
    problem, x = finite_sum([[1.0], [2.0], [6.0]]), np.array([0.7])
    rng = np.random.default_rng(0)
    draws = np.array([one_term(problem)(x, rng) for _ in range(900)])[:, 0]
    seen, counts = np.unique(draws, return_counts=True)
    assert np.allclose(seen, problem.terms(x)[:, 0]) and counts.min() > 240
    blind = minimize(problem, x, RMSPropRule(0.1), steps=5, oracle=lambda at, rng: np.zeros(1))
    assert blind.point == x
    rule, draw = RMSPropRule(0.1, shift=1.0), one_term(problem)
    ends = {float(minimize(problem, x, rule, steps=4, oracle=draw, seed=s).point[0]) for s in range(4)}
    assert len(ends) > 1


def test_estimates_are_the_largest_over_the_points():
    found = estimate_constants(lambda x: x**3, [[0.5], [-2.0], [1.0]])
    assert found.gradient_bound == pytest.approx(8) and found.smoothness == pytest.approx(12, rel=1e-6)


def test_diagnosis_by_hand_in_two_dimensions():
    """Terms (3, 4) and (0, 0): mean (1.5, 2) of norm 2.5, norms 5 and 0; sqrt(d xi) = 4."""
    found = interpolation_diagnostic([[3.0, 4.0], [0.0, 0.0]], shift=8.0)
    assert found.gradient_norm == pytest.approx(2.5)
    assert found.strong_growth == pytest.approx(12.5 / 6.25)
    assert found.constant == pytest.approx((12.5 + 4 * 2.5) / 6.25)
    assert found.floor == pytest.approx(4 / (3.6 - 1))
    # With equal terms the floor is where the condition of the proof is an equality.
    for norm in (0.3, 2.0):
        equal = interpolation_diagnostic(np.full((3, 4), norm / 2), shift=0.25)
        assert equal.floor == pytest.approx(norm)


def test_the_lemma_of_the_signs_is_sharp():
    """One term along one axis, no memory: the slope is the promise."""
    sharp = preconditioned_descent([[2.0, 0.0]], [0.0, 0.0], gradient_bound=2, decay=0.0, shift=0.7)
    assert sharp.holds and sharp.slope == pytest.approx(sharp.promised)
    known = {"gradient_bound": 3, "decay": 0.5, "shift": 1}
    assert preconditioned_descent([[-2.0, 1.0], [-1.0, 2.0]], [0, 0], **known).same_signs
    assert not preconditioned_descent([[-2.0, -1.0], [-1.0, 2.0]], [0, 0], **known).same_signs


def test_fast_rmsprop_from_its_descent_inequality():
    """Slope 1/sqrt(b v) less the drift, against the curvature c L a^2 / (2 xi b (1 - b))."""
    c, sigma, shift, b, L, gap, G = 0.2, 1.25, 1.0, 0.3, 2.0, 3.0, 0.5

    def both(**more):
        return stochastic_rmsprop_conditions(
            c=c, gradient_bound=sigma, shift=shift, decay=b, smoothness=L, gap=gap, **more
        )

    printed, right = both(variant="as_printed"), both(sample_bound=G)
    best = minimize_scalar(
        lambda a: (
            c * L * a**2 / (2 * shift * b * (1 - b))
            - a * ((b * (G**2 + shift)) ** -0.5 - c * sigma / shift / b / math.sqrt(1 - b))
        ),
        bracket=(0.01, 0.1),
    )
    assert right.conditions_hold and right.lr == pytest.approx(best.x, rel=1e-4)
    assert right.factor == pytest.approx(gap / -best.fun)
    # G^2 + xi = sigma here: there the two forms agree, and the printed one says
    drift = c * sigma / math.sqrt(b * shift) - math.sqrt(shift * (1 - b) / sigma)
    assert printed.factor == pytest.approx(2 * c * L * gap / drift**2) == right.factor
    assert printed.lr == pytest.approx(right.lr)


def test_conditions_of_fast_rmsprop_at_their_ends():
    c, shift, b = 3.0, 2.0, 0.3
    limit = brentq(lambda s: c * s * math.sqrt(s**2 + shift) / shift - math.sqrt(b * (1 - b)), 0, 9)
    for sigma, holds in ((0.999 * limit, True), (1.001 * limit, False)):
        found = stochastic_rmsprop_conditions(c=c, gradient_bound=sigma, shift=shift, decay=b)
        assert found.conditions_hold is holds
    first, second = (shift / (2 * c)) ** (2 / 3), (math.sqrt(b * (1 - b)) * shift / c) ** (2 / 3)
    for sigma, holds in ((0.999 * min(first, second), True), (1.001 * min(first, second), False)):
        found = stochastic_rmsprop_conditions(
            c=c, gradient_bound=sigma, shift=shift, decay=b, variant="as_printed"
        )
        assert found.conditions_hold is holds
    for sigma in (0.999, 1.001):  # sqrt(xi) / (sqrt(c) - 1) is one
        assert stochastic_rmsprop_conditions(c=9, gradient_bound=sigma, shift=4, decay=b).reachable is (
            sigma > 1
        )
    for norm in (0.999, 1.001):  # (9 - 1) / 3 against 2 sqrt(1 / 4) norm is an equality at 8 / 3
        assert dynamic_shift_holds(9, 1, 4, 8 / 3 * norm) is (norm > 1)
