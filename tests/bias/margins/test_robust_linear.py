"""The most robust linear classifiers: radii against programs that know nothing of dual norms."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from pindown.bias.margins import (
    linear_robustness,
    max_fourier_margin,
    max_margin,
    most_robust_classifier,
    robustness_table,
    spectrum,
    train_linear_network,
)
from pindown.bias.margins.robust_linear import CHANGES, change_length, dual_length, worst_change
from pindown.learn.margins import NotSeparableError
from pindown.probes.linear_attacks import linear_distance, linear_minimum_norm_attack

NORMS = ("l1", "l2", "linf")
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def separable(n, d, seed, offset=0.0):
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(d)
    X = rng.standard_normal((4 * n, d))
    X = X[np.abs(X @ w) > 0.3][:n]
    y = np.where(X @ w > 0, 1, -1)
    return X + offset * w / (w @ w), y


def shortest_change(w, score, norm, shape=None):
    """The least length of a change with w d <= -score, by a program over the change itself."""
    d = len(w)
    if norm == "l2":
        found = minimize(
            lambda r: r @ r, -score * w / (w @ w) + 0.1, jac=lambda r: 2 * r, method="SLSQP",
            constraints={"type": "ineq", "fun": lambda r: -score - w @ r, "jac": lambda _: -w},
            options={"ftol": 1e-15, "maxiter": 500},
        )  # fmt: skip
        return np.linalg.norm(found.x)
    if norm == "l1":  # d = p - q
        answer = linprog(np.ones(2 * d), A_ub=np.r_[w, -w][None], b_ub=[-score], options=TIGHT)
        return answer.fun
    if norm == "linf":
        rows = np.vstack([
            np.r_[w, 0], *(np.r_[s * np.eye(d)[i], -1] for i in range(d) for s in (1, -1))
        ])  # fmt: skip
        bounds = [(None, None)] * d + [(0, None)]
        answer = linprog(
            np.eye(d + 1)[d],
            A_ub=rows,
            b_ub=np.r_[-score, np.zeros(2 * d)],
            bounds=bounds,
            options=TIGHT,
        )
        return answer.fun
    transform = spectrum(
        np.eye(d), shape
    ).T  # moduli by a polygon of 2000 sides: 1.3e-6 too short at most
    angles = np.exp(-2j * np.pi * np.arange(2000) / 2000)
    rows = np.vstack([np.hstack([(a * transform).real, -np.ones((d, 1))]) for a in angles])
    answer = linprog(
        np.eye(d + 1)[d], A_ub=np.vstack([np.r_[w, 0], rows]), b_ub=np.r_[-score, np.zeros(len(rows))],
        bounds=[(None, None)] * d + [(0, None)], options=TIGHT,
    )  # fmt: skip
    return answer.fun


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_radius_is_the_shortest_attack_over_all_samples(norm, bias, seed):
    X, y = separable(12, 5, seed, offset=1.0 if bias else 0.0)
    best = most_robust_classifier(X, y, norm, bias=bias)
    shortest = [shortest_change(best.w, s, norm) for s in y * (X @ best.w + best.b)]
    np.testing.assert_allclose(best.radii, shortest, rtol=1e-6)
    assert (
        best.radius == pytest.approx(min(shortest), rel=1e-6) and best.radii[best.weakest] == best.radius
    )
    closed = linear_minimum_norm_attack(best.w, best.b, X, norm=norm, overshoot=0.0)
    assert best.radius == pytest.approx(closed.distance.min(), rel=1e-9)
    np.testing.assert_allclose(best.radii, linear_distance(best.w, best.b, X, norm=norm), rtol=1e-9)


def test_radius_in_frequencies_is_the_shortest_attack():
    X, y = separable(6, 5, 0)
    best = most_robust_classifier(X, y, "fourier")
    scores = y * (X @ best.w)
    i = best.weakest
    assert best.radius == pytest.approx(shortest_change(best.w, scores[i], "fourier"), rel=3e-6)
    assert scores[i] == pytest.approx(scores.min(), rel=1e-6)  # several points support it
    assert best.upper == pytest.approx(best.radius, rel=1e-6)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(3))
def test_no_classifier_has_a_larger_radius(norm, seed):
    """The form with the radius as objective, ||w||_* <= 1: a program that is not that of least norms."""
    X, y = separable(15, 4, seed)
    best = most_robust_classifier(X, y, norm)
    n, d = X.shape
    Z = y[:, None] * X
    if norm == "l2":
        found = minimize(
            lambda v: -v[-1], np.r_[best.w / np.linalg.norm(best.w) * 0.5, 0.0], method="SLSQP",
            constraints=[
                {"type": "ineq", "fun": lambda v: Z @ v[:d] - v[-1]},
                {"type": "ineq", "fun": lambda v: 1 - v[:d] @ v[:d]},
            ],
            options={"ftol": 1e-14, "maxiter": 1000},
        )  # fmt: skip
        value = -found.fun
    elif norm == "l1":  # |w_j| <= 1
        bounds = [(-1, 1)] * d + [(None, None)]
        answer = linprog(
            -np.eye(d + 1)[d], A_ub=np.hstack([-Z, np.ones((n, 1))]), b_ub=np.zeros(n), bounds=bounds
        )
        value = -answer.fun
    else:  # sum of |w_j| <= 1
        rows = np.vstack([np.hstack([-Z, Z, np.ones((n, 1))]), np.r_[np.ones(2 * d), 0]])
        answer = linprog(
            -np.eye(2 * d + 1)[-1], A_ub=rows, b_ub=np.r_[np.zeros(n), 1],
            bounds=[(0, None)] * (2 * d) + [(None, None)],
        )  # fmt: skip
        value = -answer.fun
    assert best.radius == pytest.approx(value, rel=1e-6)
    assert best.radius <= best.upper * (1 + 1e-12) and best.upper == pytest.approx(best.radius, rel=1e-6)


@pytest.mark.parametrize("norm", CHANGES)
def test_attacks_below_the_radius_fail_and_above_succeed(norm):
    X, y = separable(20, 6, 4)
    best = most_robust_classifier(X, y, norm)
    for share, crossed in ((0.999, False), (1.001, True)):
        changes = np.array([worst_change(best.w, label, share * best.radius, norm) for label in y])
        sides = y * ((X + changes) @ best.w + best.b)
        assert (sides.min() < 0) == crossed
        assert max(change_length(c, norm) for c in changes) == pytest.approx(share * best.radius)


@pytest.mark.parametrize("norm", CHANGES)
def test_dual_norm_is_the_largest_product(norm):
    rng = np.random.default_rng(0)
    w = rng.standard_normal(6)
    attained = w @ worst_change(w, -1, 1.0, norm)
    assert attained == pytest.approx(dual_length(w, norm), rel=1e-12)
    assert w @ worst_change(w, 1, 1.0, norm) == pytest.approx(-attained)
    for _ in range(300):
        r = rng.standard_normal(6)
        assert w @ r / change_length(r, norm) <= attained * (1 + 1e-12)


def test_each_classifier_is_best_in_its_own_norm():
    for seed in range(4):
        X, y = separable(10, 6, seed)
        table = robustness_table(X, y).radii
        assert (table.argmax(axis=0) == np.arange(4)).all() or np.allclose(
            table.max(axis=0), table.diagonal()
        )


def test_images_have_their_own_transform():
    X, y = separable(8, 12, 1)
    flat, image = (most_robust_classifier(X, y, "fourier", shape=s) for s in (None, (3, 4)))
    assert image.radius >= linear_robustness(flat.w, 0.0, X, y, "fourier", shape=(3, 4)).radius
    change = worst_change(image.w, 1, 0.5, "fourier", shape=(3, 4))
    assert np.abs(np.fft.fft2(change.reshape(3, 4), norm="ortho")).max() == pytest.approx(0.5)


def test_two_convolutions_are_led_to_the_most_robust_filter_in_frequencies():
    X, y = separable(4, 16, 0)
    trained = train_linear_network(X, y, "convolution", 2, steps=3000, seed=0)
    mine = linear_robustness(trained.beta[-1], 0.0, X, y, "fourier").radius
    best = most_robust_classifier(X, y, "fourier").radius
    euclidean = linear_robustness(max_margin(X, y).w, 0.0, X, y, "fourier").radius
    assert euclidean < 0.8 * best and 0.96 * best < mine <= best * (1 + 1e-9)


def test_radii_are_rounded_down():
    """Against rational arithmetic: the stated radius times the norm is at most the score."""
    from fractions import Fraction

    rng = np.random.default_rng(0)
    for _ in range(100):
        w, x, b = rng.standard_normal(20), 1e3 * rng.standard_normal(20), float(rng.standard_normal())
        score = sum(
            Fraction(float(a)) * Fraction(float(c)) for a, c in zip(w, x, strict=True)
        ) + Fraction(b)
        label = 1 if score > 0 else -1
        for norm, size in (
            ("linf", sum(abs(Fraction(float(a))) for a in w)),
            ("l1", Fraction(np.abs(w).max())),
        ):
            radius = linear_robustness(w, b, x[None], [label], norm).radius
            exact = abs(score) / size
            assert Fraction(radius) <= exact and float(exact) == pytest.approx(radius, rel=1e-9)


def test_wrong_sides_zero_weights_and_one_class():
    found = linear_robustness([1.0, 0.0], 0.0, [[2.0, 0.0], [3.0, 0.0]], [1, -1])
    assert found.radius == pytest.approx(-3) and found.weakest == 1
    nothing = linear_robustness([0.0, 0.0], 1.0, [[2.0, 0.0]], [1])
    assert nothing.radius == np.inf
    assert linear_robustness([0.0, 0.0], 1.0, [[2.0, 0.0]], [-1]).radius == -np.inf
    alone = most_robust_classifier([[1.0], [2.0]], [1, 1], bias=True)
    assert alone.radius == np.inf


def test_printed_margin_has_the_norm_of_the_change_where_its_dual_belongs():
    X, y = separable(12, 8, 0)
    best = most_robust_classifier(X, y, "linf")
    printed = (y * (X @ best.w)).min() / np.abs(best.w).max()  # over the linf norm of w
    i = best.weakest
    for radius, crossed in ((0.999 * best.radius, False), (0.999 * printed, True)):
        moved = X[i] + worst_change(best.w, y[i], radius, "linf")
        assert (y[i] * (moved @ best.w) < 0) == crossed
    assert printed > 1.5 * best.radius


def test_printed_worst_change_forgets_the_label():
    w = np.array([1.0, -2.0])
    printed = worst_change(w, 1, 0.5, "linf")  # the infimum of w d alone
    assert -1 * (w @ printed) > 0  # moves a negative sample to safety
    assert -1 * (w @ worst_change(w, -1, 0.5, "linf")) == pytest.approx(w @ printed)


def test_printed_scaling_leaves_the_offset_behind():
    X, y = separable(30, 3, 2, offset=2.0)
    best = most_robust_classifier(X, y, "l2", bias=True)
    unit = dual_length(best.w, "l2")
    w, b, radius = best.w / unit, best.b / unit, best.radius  # ||w|| = 1, products at least the radius
    assert (y * (X @ (w / radius) + b / radius)).min() == pytest.approx(1)
    assert (y * (X @ (w / radius) + b)).min() < 0.99  # as printed


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: most_robust_classifier([[1.0], [-1.0]], [1, -1], "l3"),
            "l1, l2, linf, fourier; got 'l3'",
        ),
        (lambda: most_robust_classifier([[1.0], [-1.0]], [1, -1], "fourier", bias=True), "no offset"),
        (lambda: most_robust_classifier([[1.0], [-1.0]], [1, -1], "l2", shape=(1,)), "shape belongs"),
        (lambda: most_robust_classifier([[1.0], [2.0]], [1, -1]), "no linear classifier"),
        (lambda: most_robust_classifier([[np.nan], [2.0]], [1, -1]), "NaN|finite"),
        (lambda: linear_robustness([1.0], 0.0, [[1.0, 2.0]], [1]), r"w must be \(d,\)"),
        (lambda: linear_robustness([1.0], 0.0, np.zeros((0, 1)), []), r"w must be \(d,\)"),
        (lambda: linear_robustness([np.inf], 0.0, [[1.0]], [1]), "finite"),
        (lambda: linear_robustness([1.0], 0.0, [[1.0]] * 3, [1, 2, 3]), "two classes"),
        (lambda: worst_change([1.0], 0, 1.0, "l2"), "label"),
        (lambda: worst_change([1.0], 1, -1.0, "l2"), "radius"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_refusal_carries_its_proof():
    with pytest.raises(NotSeparableError) as refusal:
        most_robust_classifier([[1.0, 0.0], [2.0, 0.0]], [1, -1], "l1")
    weights = refusal.value.weights
    assert weights @ np.array([[1.0, 0.0], [-2.0, 0.0]]) == pytest.approx(np.zeros(2))


def test_answers_print_themselves():
    X, y = separable(10, 3, 0)
    text = str(most_robust_classifier(X, y))
    assert "in linf" in text and "no linear classifier exceeds" in text and "exact" in text
    assert max_fourier_margin(X, y).margin == pytest.approx(
        most_robust_classifier(X, y, "fourier").radius
    )


def test_scales_at_the_ends_of_float64():
    """Squares of these weights vanish, which made the radius infinite."""
    for norm in ("l1", "l2", "linf", "fourier"):
        unit = linear_robustness([1.0, 1.0], 1.0, [[0.0, 0.0]], [1], norm).radius
        tiny = linear_robustness([1e-180, 1e-180], 1e-180, [[0.0, 0.0]], [1], norm).radius
        assert tiny == pytest.approx(unit)
    with pytest.raises(ValueError, match="leave float64"):
        linear_robustness([1e200, 1e200], 0.0, [[1e200, 0.0]], [1])
