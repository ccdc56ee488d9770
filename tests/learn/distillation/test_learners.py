"""Strong monotonicity, and learners that lack it."""

import numpy as np
import pytest

from pindown.bias import max_margin
from pindown.learn.distillation import (
    distilled,
    hard_target,
    minimum_norm,
    monotonicity,
    power_angle_task,
    unbiased,
)

TASK = power_angle_task(1.0, 40)


def angles_to(w, students):
    """Angles between rows and w, by the arctangent."""
    axis = w / np.linalg.norm(w)
    along = students @ axis
    across = np.linalg.norm(students - along[:, None] * axis, axis=1)
    return np.arctan2(across, np.abs(along))


def test_more_data_never_turn_the_student_away_in_ten_thousand_trials():
    """The angle with all inputs is at most that with the first ones, for samples of all kinds."""
    rng, trials, d = np.random.default_rng(0), 10_000, 7
    w = rng.standard_normal(d)
    before, after = np.empty((trials, d)), np.empty((trials, d))
    for i in range(trials):
        n = int(rng.integers(2, d + 4))
        few = int(rng.integers(1, n))
        X = (
            rng.standard_normal((n, d))
            if i % 2
            else rng.standard_t(1.5, (n, d)) * rng.exponential(size=d)
        )
        before[i] = minimum_norm(X[:few], X[:few] @ w).weights
        after[i] = minimum_norm(X, X @ w).weights
    gap = angles_to(w, after) - angles_to(w, before)
    # Inputs with heavy tails are badly conditioned: their students are right to fewer digits.
    assert gap[1::2].max() < 1e-9
    assert gap[::2].max() < 1e-6
    assert np.mean(gap < -1e-6) > 0.9


def test_cosine_of_the_angle_is_the_length_of_the_projection():
    rng = np.random.default_rng(1)
    X, w = rng.standard_normal((4, 9)), rng.standard_normal(9)
    Q = np.linalg.qr(X.T)[0]
    angle = angles_to(w, minimum_norm(X, X @ w).weights[None])[0]
    assert np.cos(angle) == pytest.approx(np.linalg.norm(Q.T @ w) / np.linalg.norm(w))


def test_index_of_distillation_is_one_and_of_others_less():
    exact = monotonicity(distilled, TASK, 5, repetitions=300, random_state=0)
    assert exact.index == 1.0 and exact.tied == 0.0 and exact.standard_error == 0.0
    loose = monotonicity(unbiased(0.5), TASK, 5, repetitions=300, random_state=0)
    assert 0.4 < loose.index < 0.8 and loose.tied == 0.0
    hits = np.r_[np.ones(round(300 * loose.index)), np.zeros(300 - round(300 * loose.index))]
    assert loose.standard_error == pytest.approx(hits.std() / np.sqrt(300))
    assert exact.after < exact.before and "index 1.000" in str(exact)


def test_ties_count_as_failures():
    """A separator that does not rest on the new point stays: the angle is the same up to rounding."""
    hard = monotonicity(hard_target, TASK, 5, repetitions=300, random_state=0)
    assert hard.tied > 0.4 and hard.index < 0.4
    assert hard.index + hard.tied <= 1.0
    still = monotonicity(lambda X, z, rng: np.ones(40), TASK, 3, repetitions=5, random_state=0)
    assert still.index == 0.0 and still.tied == 1.0


def test_hard_target_is_the_hard_margin_separator():
    rng = np.random.default_rng(2)
    for n, d in ((5, 20), (12, 4), (1, 3)):
        X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
        found = hard_target(X, X @ w)
        other = max_margin(X, np.where(X @ w >= 0, 1, -1)).w if n > 1 else X[0] * np.sign(X[0] @ w)
        np.testing.assert_allclose(
            found / np.linalg.norm(found), other / np.linalg.norm(other), atol=1e-6
        )
        assert (np.sign(X @ w) * (X @ found)).min() == pytest.approx(1.0)


def test_students_without_the_bias_meet_all_logits():
    rng = np.random.default_rng(3)
    X, w = rng.standard_normal((4, 9)), rng.standard_normal(9)
    z, hat = X @ w, minimum_norm(X, X @ w).weights
    for bias in (0.0, 0.5, 20.0):
        student = unbiased(bias)(X, z, np.random.default_rng(0))
        np.testing.assert_allclose(X @ student, z, atol=1e-9)
        assert np.linalg.norm(student - hat) == pytest.approx(bias * np.linalg.norm(hat))
    full = rng.standard_normal((9, 9))
    np.testing.assert_allclose(unbiased(5.0)(full, full @ w, rng), w)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hard_target([[1.0], [1.0]], [1.0, -1.0]), "not separated"),
        (lambda: hard_target(np.zeros((2, 2)), [1.0, -1.0]), "all inputs are zero"),
        (lambda: unbiased(-1.0), "bias"),
        (lambda: monotonicity(distilled, TASK, 0), "n must be"),
        (lambda: monotonicity(distilled, TASK, 3, repetitions=0), "repetitions"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
