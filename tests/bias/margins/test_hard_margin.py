"""Classifiers of largest margin: against scikit-learn, exact rationals, linear programs, and their "
"proofs."""

from fractions import Fraction

import numpy as np
import pytest

from pindown.bias import max_margin
from pindown.bias.margins import NoMarginError, signed_labels
from pindown.bias.margins.robust_linear import worst_change

NORMS = {"l1": 1, "l2": 2, "linf": np.inf}
DUALS = {"l1": np.inf, "l2": 2, "linf": 1}


def separable_points(n, d, seed, *, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    w = rng.standard_normal(d)
    return X + offset, np.where(X @ w > 0, 1, -1)


def check_optimal(found, X, y, tolerance):
    """Feasible, and no better than the bound that convex weights prove for every classifier."""
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    values = y * (X @ found.w + found.offset)
    assert values.min() == pytest.approx(1, abs=1e-12)
    assert found.weights.min() >= 0 and found.weights.sum() == pytest.approx(1, abs=1e-12)
    upper = np.linalg.norm((found.weights * y) @ X, DUALS[found.norm])
    assert found.margin == pytest.approx(1 / np.linalg.norm(found.w, NORMS[found.norm]), rel=1e-12)
    assert found.margin <= upper * (1 + 1e-12)
    assert upper - found.margin <= tolerance * found.margin
    assert set(found.support) == set(np.flatnonzero(values <= 1 + 1e-8))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("n", "d"), [(1, 3), (3, 1), (12, 8), (60, 5), (10, 200), (700, 4)])
def test_the_margin_attains_the_bound_proved_for_every_classifier(norm, n, d):
    X, y = separable_points(n, d, seed=n + d)
    check_optimal(max_margin(X, y, norm), X, y, 1e-8)


@pytest.mark.parametrize("norm", NORMS)
def test_with_an_offset_weights_of_the_classes_balance(norm):
    X, y = separable_points(40, 4, seed=1, offset=3.0)
    found = max_margin(X, y, norm, bias=True)
    assert abs(found.weights @ y) < 1e-10
    check_optimal(found, X, y, 1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_stationarity_and_complementarity_below_1e_8(seed):
    X, y = separable_points(40, 6, seed)
    found = max_margin(X, y)
    alpha = found.weights / found.margin**2
    assert np.linalg.norm(found.w - (alpha * y) @ X) < 1e-8 * np.linalg.norm(found.w)
    assert np.abs(alpha * (y * (X @ found.w) - 1)).max() < 1e-8 * alpha.max()


def test_against_the_support_vector_machine_of_scikit_learn():
    from sklearn.svm import SVC

    X, y = separable_points(50, 5, seed=3, offset=1.0)
    machine = SVC(kernel="linear", C=1e8, tol=1e-10).fit(X, y)
    found = max_margin(X, y, bias=True)
    assert found.w == pytest.approx(machine.coef_[0], rel=1e-4)
    assert found.offset == pytest.approx(machine.intercept_[0], rel=1e-4)
    # Its own answer violates the constraints a little; made feasible, its margin is not larger.
    least = (y * machine.decision_function(X)).min()
    assert found.margin >= least / np.linalg.norm(machine.coef_) * (1 - 1e-12)


def test_exact_small_case():
    # Nearest point of the segment from (3, 1) to (1, 2) to the origin, in rationals: (1, 2) + t (2,
    # -1), t = 0.
    X, y = [[3, 1], [1, 2], [-4, -4]], [1, 1, -1]
    a, b = np.array([Fraction(3), Fraction(1)]), np.array([Fraction(1), Fraction(2)])
    t = -((a - b) @ b) / ((a - b) @ (a - b))
    nearest = b + max(t, Fraction(0)) * (a - b)
    w = nearest / (nearest @ nearest)
    assert max_margin(X, y).w == pytest.approx([float(part) for part in w], abs=1e-15)


@pytest.mark.parametrize("norm", NORMS)
def test_duplicates_order_and_scale_do_not_matter(norm):
    X, y = separable_points(15, 3, seed=5)
    plain = max_margin(X, y, norm)
    doubled = max_margin(np.vstack([X, X[::-1]]), np.r_[y, y[::-1]], norm)
    assert doubled.margin == pytest.approx(plain.margin, rel=1e-9)
    assert len(doubled.support) == 2 * len(plain.support)
    for scale in (1e-9, 1e9):
        assert max_margin(scale * X, y, norm).margin == pytest.approx(scale * plain.margin, rel=1e-9)


def test_rotation_turns_the_euclidean_answer_with_it():
    X, y = separable_points(20, 4, seed=6)
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    assert max_margin(X @ Q.T, y).w == pytest.approx(Q @ max_margin(X, y).w, abs=1e-10)


def test_rank_deficient_points_give_w_in_their_span():
    X, y = separable_points(20, 2, seed=7)
    lifted = X @ np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 1.0, 3.0]])
    found = max_margin(lifted, y)
    check_optimal(found, lifted, y, 1e-10)
    assert np.linalg.matrix_rank(np.vstack([lifted, found.w]), tol=1e-8) == 2


def test_one_sample_and_one_class():
    assert max_margin([[3.0, 4.0]], [1]).w == pytest.approx([0.12, 0.16])
    assert max_margin([[3.0, 4.0]], [-1]).w == pytest.approx([-0.12, -0.16])
    assert max_margin([[3.0, 4.0]], [0]).w == pytest.approx([-0.12, -0.16])
    flat = max_margin([[3.0, 4.0], [1.0, 0.0]], ["yes", "yes"], bias=True)
    assert not flat.w.any() and flat.offset == 1 and flat.margin == np.inf


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bias", [False, True])
def test_what_cannot_be_separated_is_refused_with_a_proof(norm, bias):
    X, y = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), np.array([1, 1, -1, -1])
    with pytest.raises(ValueError, match="no linear classifier with") as caught:
        max_margin(X, y, norm, bias=bias)
    weights = caught.value.weights
    assert weights.min() >= 0 and weights.sum() == pytest.approx(1)
    assert np.abs((weights * y) @ X).max() < 1e-10
    assert not bias or abs(weights @ y) < 1e-10


def test_a_sample_at_zero_needs_an_offset():
    X, y = [[0.0, 0.0], [1.0, 2.0]], [-1, 1]
    with pytest.raises(NoMarginError, match="indices 0") as caught:
        max_margin(X, y)
    assert caught.value.weights.tolist() == [1.0, 0.0]
    assert max_margin(X, y, bias=True).w == pytest.approx([0.4, 0.8])


@pytest.mark.parametrize("seed", range(20))
def test_the_decision_agrees_with_a_linear_program(seed):
    from scipy.optimize import linprog

    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((7, 3)), rng.choice([-1, 1], 7)
    Z = y[:, None] * X
    program = linprog(np.zeros(3), A_ub=-Z, b_ub=-np.ones(7), bounds=[(None, None)] * 3, method="highs")
    try:
        max_margin(X, y)
        decided = True
    except NoMarginError:
        decided = False
    assert decided == (program.status == 0)


@pytest.mark.parametrize(
    ("X", "y", "norm", "words"),
    [
        ([[1.0, np.nan]], [1], "l2", "NaN"),
        ([], [], "l2", "n, d >= 1"),
        ([[1.0]], [1, -1], "l2", "one label for each"),
        ([[1.0], [2.0], [3.0]], [0, 1, 2], "l2", "at most two classes"),
        ([[1.0]], [1], "l3", "norm must be"),
        ([[1.0]], [np.nan], "l2", "NaN or infinite labels"),
    ],
)
def test_bad_input_is_refused(X, y, norm, words):
    with pytest.raises(ValueError, match=words):
        max_margin(X, y, norm)


def test_labels_of_two_classes_are_ordered():
    assert signed_labels([False, True], 2).tolist() == [-1, 1]
    assert signed_labels([5, 3], 2).tolist() == [1, -1]


def test_printed_margin_uses_the_wrong_norm_of_w():
    """The course divides by the norm of the perturbation where its dual belongs."""
    X, y = separable_points(12, 8, seed=0)
    found = max_margin(X, y, "l1")  # perturbations in linf
    printed = 1 / np.linalg.norm(found.w, np.inf)
    i = int(found.support[0])
    worst = -y[i] * np.sign(found.w)  # of linf length 1
    for radius, crossed in (
        (0.999 * found.margin, False),
        (1.001 * found.margin, True),
        (0.999 * printed, True),
    ):
        assert (y[i] * ((X[i] + radius * worst) @ found.w) < 0) == crossed
    # So the printed radius promises too much.
    assert printed > 1.001 * found.margin
    assert found.distance_norm == "linf" and max_margin(X, y, "linf").distance_norm == "l1"


def test_scaling_the_classifier_scales_its_offset():
    """The course divides w by the margin and leaves b as it is; then the constraints fail."""
    X, y = separable_points(30, 3, seed=2, offset=2.0)
    found = max_margin(X, y, bias=True)
    unit, b = found.w * found.margin, found.offset * found.margin  # norm 1, products at least the margin
    eps = found.margin
    assert (y * (X @ (unit / eps) + b / eps)).min() == pytest.approx(1)
    assert (y * (X @ (unit / eps) + b)).min() < 0.99


def test_the_worst_perturbation_follows_the_label():
    """The course takes the infimum of w d without the label; same value, another minimiser."""
    w, radius = np.array([1.0, -2.0]), 0.5
    for label in (-1, 1):
        worst = worst_change(w, label, radius, "linf")
        assert label * (w @ worst) == pytest.approx(-radius * np.abs(w).sum())
    printed = -radius * np.sign(w)  # for a negative sample the printed one helps
    assert -1 * (w @ printed) > 0 > -1 * (w @ worst_change(w, -1, radius, "linf"))


@pytest.mark.parametrize("seed", range(70, 100))
@pytest.mark.parametrize("bias", [False, True])
def test_mixed_scales_end_with_a_proof_either_way(seed, bias):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 30), rng.integers(1, 8)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, (1, d) if seed % 2 else (n, 1))
    y = np.where(X @ rng.standard_normal(d) > 0, 1, -1)
    try:
        found = max_margin(X, y, bias=bias)
        assert found.margin == np.inf or found.gap < 1e-5
    except NoMarginError as refusal:
        assert refusal.residual < 1e-10


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_margins_scale_with_the_data_over_all_floats(norm, scale):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((6, 3))
    y = np.sign(X[:, 0])
    plain, scaled = max_margin(X, y, norm), max_margin(scale * X, y, norm)
    assert scaled.margin / scale == pytest.approx(plain.margin) and abs(scaled.gap) < 1e-9
    assert np.linalg.norm(scaled.direction) == pytest.approx(1.0)


def test_numbers_too_small_for_a_classifier_and_other_norms_are_refused():
    with pytest.raises(ValueError, match="too small for floats"):
        max_margin([[1e-310]], [1])
    with pytest.raises(ValueError, match="norm must be"):
        max_margin([[1.0]], [1], norm=[1])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("seed", range(6))
def test_both_ends_hold_in_rational_arithmetic(norm, bias, seed):
    """The margin of w from below and the bound of the weights from above, without rounding."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((9, 3)) * 10.0 ** rng.integers(-2, 3, 3)
    X[1] = -X[0]
    y = np.where(X @ rng.standard_normal(3) > 0, 1, -1)
    found = max_margin(X + 100.0 * bias, y, norm, bias=bias)
    rows = [[Fraction(v) for v in x] for x in (X + 100.0 * bias).tolist()]
    w, offset = [Fraction(v) for v in found.w.tolist()], Fraction(found.offset)
    size = sum(map(abs, w)) if norm == "l1" else max(map(abs, w))
    least = min(
        s * (sum(a * b for a, b in zip(x, w, strict=True)) + offset)
        for x, s in zip(rows, y.tolist(), strict=True)
    )
    assert found.margin <= least / size
    a = [Fraction(v) for v in found.weights.tolist()]
    if bias:  # made even, which an exact dual solution is
        for sign in (-1, 1):
            part = sum(v for v, s in zip(a, y.tolist(), strict=True) if s == sign)
            a = [v / part / 2 if s == sign else v for v, s in zip(a, y.tolist(), strict=True)]
    mixed = [sum(v * s * x[j] for v, s, x in zip(a, y.tolist(), rows, strict=True)) for j in range(3)]
    dual = max(map(abs, mixed)) if norm == "l1" else sum(map(abs, mixed))
    assert dual / sum(a) <= found.upper * (1 + Fraction(1, 10**14) * bias)
    assert 0.0 <= found.gap < 1e-7
