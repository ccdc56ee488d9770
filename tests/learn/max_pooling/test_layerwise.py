"""The lemmas by simulation, on the theorem's own assumptions, and what was printed wrong."""

import numpy as np
import pytest
from scipy.stats import binom

from pindown.datasets.synthetic import pattern_detection
from pindown.guarantees.bounds import linear_margin_bound, max_pooling_bound
from pindown.learn.max_pooling.layerwise import (
    LayerwiseSchedule,
    UnitSets,
    class_patterns,
    class_share_failure,
    data_assumptions,
    layerwise_schedule,
    learns_pattern,
    seen_patterns,
    separating_weights,
    unit_set_failure,
    unit_sets,
)
from pindown.learn.max_pooling.pooling import first_phase, initial_weights, pooled


@pytest.mark.parametrize("d", [3, 4, 6, 9])
def test_enough_units_start_on_the_right_pattern(d):
    """The sizes stay within k/(4d) and k/d in at least a share 1 - 4 e^-d of the draws."""
    schedule = layerwise_schedule(d)
    patterns = np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))[0]
    draws, failures, shares = 150, 0, []
    for seed in range(draws):
        W, a = initial_weights(schedule, d, np.random.default_rng(seed))
        sets = unit_sets(W, a, patterns)
        failures += not sets.holds
        shares += [sets.positive.mean(), sets.negative.mean()]
    assert failures <= binom.ppf(0.999, draws, unit_set_failure(d))
    expected = (1 - 2.0 ** (1 - d)) / (2 * (d - 1))
    assert np.mean(shares) == pytest.approx(expected, abs=4 * np.std(shares) / np.sqrt(len(shares)))


def test_too_few_units_break_the_lemma():
    patterns = np.eye(6)
    held = [
        unit_sets(
            *initial_weights(layerwise_schedule(6, n_units=12), 6, np.random.default_rng(s)), patterns
        ).holds
        for s in range(50)
    ]
    assert np.mean(held) < 0.9


@pytest.mark.parametrize("d", [3, 4, 6])
@pytest.mark.parametrize("seed", range(8))
def test_units_learn_their_pattern_and_the_rest_is_separable(d, seed):
    X, y, patterns = pattern_detection(300, n_patterns=d, random_state=seed)
    schedule = layerwise_schedule(d)
    W0, a = initial_weights(schedule, d, np.random.default_rng(seed))
    sets = unit_sets(W0, a, patterns)
    assert sets.holds
    steps, largest = [], []

    def watch(t, W, outputs):
        steps.append(
            learns_pattern(W, t, sets.positive, patterns, 0, schedule)
            and learns_pattern(W, t, sets.negative, patterns, 1, schedule)
        )
        largest.append(np.abs(outputs).max())

    W = first_phase(X, y, W0, a, schedule, watch)
    assert all(steps)
    assert len(steps) == schedule.n_steps + 1
    assert max(largest) <= 0.5
    fresh, labels, _ = pattern_detection(2000, patterns=patterns, random_state=100 + seed)
    margins = labels * (pooled(fresh, W) @ separating_weights(sets, schedule))
    assert margins.min() > 1.0
    # Norms that the error bound is made of.
    limit = 160 * np.sqrt(2 * d)
    norm = np.linalg.norm(separating_weights(sets, schedule))
    assert norm * np.linalg.norm(pooled(fresh, W), axis=1).max() <= limit


def test_a_large_radius_breaks_the_lemma():
    """The condition on the radius is used: units that start far out do not turn to the pattern."""
    X, y, patterns = pattern_detection(300, n_patterns=4)
    schedule = layerwise_schedule(4, radius=1.0)
    W0, a = initial_weights(schedule, 4, np.random.default_rng(0))
    sets = unit_sets(W0, a, patterns)
    W = first_phase(X, y, W0, a, schedule)
    fresh, labels, _ = pattern_detection(500, patterns=patterns, random_state=1)
    turned = W[sets.positive] @ patterns[0] / np.linalg.norm(W[sets.positive], axis=1)
    assert turned.mean() < 0.9
    careful = layerwise_schedule(4)
    W = first_phase(X, y, W0 * careful.radius, a, careful)
    turned = W[sets.positive] @ patterns[0] / np.linalg.norm(W[sets.positive], axis=1)
    assert turned.min() > 0.9
    assert (labels * (pooled(fresh, W) @ separating_weights(sets, careful))).min() > 1


def test_printed_class_share_is_impossible():
    """Printed: |S1+| / m1 >= m1 / 3, false as soon as m1 > 3; ours: |S1+| >= m1 / 3."""
    m1, draws = 200, 2000
    rng = np.random.default_rng(0)
    positives = rng.binomial(m1, 0.5, draws)
    both = np.minimum(positives, m1 - positives)
    assert not (both / m1 >= m1 / 3).any()
    assert (both < m1 / 3).mean() <= class_share_failure(m1)
    # 4 e^(-m/36) with m = 2 m1 is the two-sided bound for both classes: m is right there, not m1.
    assert class_share_failure(m1) == pytest.approx(4 * np.exp(-2 * m1 / 36))
    for size in (12, 24, 48):
        exact = 2 * binom.cdf(np.ceil(size / 3) - 1, size, 0.5)
        assert exact <= class_share_failure(size)


def test_error_bounds_fall_like_one_over_root_m():
    ratio = max_pooling_bound(5, 4 * 10**8).value / max_pooling_bound(5, 16 * 10**8).value
    assert ratio == pytest.approx(2.0)
    assert max_pooling_bound(20, 10**10).value > max_pooling_bound(5, 10**10).value
    assert linear_margin_bound(-1.0, 1.0, 100).value == 1.0
    assert linear_margin_bound(1e-300, 1.0, 100).value == 1.0
    assert linear_margin_bound(0.3, 1.0, 10**5).value < linear_margin_bound(0.1, 1.0, 10**5).value < 1.0


def test_the_margin_bound_holds_for_linear_classifiers():
    """On margin data in the disc the true error of the learnt line is below the bound."""
    from pindown.learn.max_pooling._max_margin import max_margin_descent

    rng = np.random.default_rng(0)

    def draw(m):
        angle = rng.uniform(0, 2 * np.pi, 4 * m)
        Z = np.c_[np.cos(angle), np.sin(angle)]
        Z = Z[np.abs(Z[:, 0]) > 0.2][:m]
        return Z, np.sign(Z[:, 0])

    for _ in range(10):
        Z, y = draw(2000)
        found = max_margin_descent(Z, y, max_iter=300)
        fresh, labels = draw(4000)
        error = (np.sign(fresh @ found.weights) != labels).mean()
        assert error <= linear_margin_bound(found.margin, 1.0, 2000).value < 1.0


def test_patterns_in_data_are_seen():
    X, y, patterns = pattern_detection(100, n_patterns=5, random_state=2)
    assert len(seen_patterns(X)) == 5
    assert seen_patterns(np.random.default_rng(0).normal(size=(10, 2, 3))) is None
    checks, ordered = data_assumptions(X, y.astype(float))
    assert all(checks.values())
    np.testing.assert_allclose(ordered[:2], patterns[:2])
    mixed = y.astype(float)
    mixed[0] *= -1
    assert class_patterns(X, mixed, patterns) is None
    assert data_assumptions(X, mixed)[1] is None
    skew = X @ np.diag([1, 1, 1, 1, 0.5])
    assert not data_assumptions(skew, y)[0]["patterns are orthonormal"]


def test_the_first_lemma_counts_from_a_quarter_of_k_over_d_to_k_over_d():
    d, k = 3, 216
    for liked, holds in ((17, False), (18, True), (72, True), (73, False)):
        W, a = np.full((k, d), -1.0), np.ones(k)
        a[100:] = -1
        W[:liked, 0], W[100 : 100 + liked, 1] = 1.0, 1.0
        sets = unit_sets(W, a, np.eye(d))
        assert (sets.positive.sum(), sets.negative.sum(), sets.holds) == (liked, liked, holds)
    few, enough = np.arange(k) < 17, np.arange(k) < 18
    assert UnitSets(enough, enough, 18.0, 72.0).holds
    assert not UnitSets(few, enough, 18.0, 72.0).holds
    assert not UnitSets(enough, few, 18.0, 72.0).holds
    W[0, 1] = 2.0  # the other class's pattern does not compete
    assert unit_sets(W, a, np.eye(d)).positive[0]
    W[0, 2] = 2.0  # a third one does
    assert not unit_sets(W, a, np.eye(d)).positive[0]


def test_the_second_lemma_asks_for_a_ninth_of_a_step_per_step():
    schedule, units = LayerwiseSchedule(3, 216, 20, 0.01, 0.001, 1.0), np.array([True, False])
    for t in (1, 7, 20):
        for own in (0, 1):
            W = np.zeros((2, 3))
            W[0] = 0.001
            for share, holds in ((1 + 1e-9, True), (1 - 1e-9, False)):
                W[0, own] = share * t * 0.01 / 9
                assert learns_pattern(W, t, units, np.eye(3), own, schedule) is holds
            W[0] = 0.00101
            W[0, own] = 1.0
            assert not learns_pattern(W, t, units, np.eye(3), own, schedule)


@pytest.mark.parametrize("d", [3, 5])
def test_separating_weights_in_the_worst_case_of_the_lemmas(d):
    """A quarter of k/d units at T eta/9 for the class, k/d units at the radius against it."""
    k, T, eta = 8 * d**3, 20, 1e-3
    schedule = LayerwiseSchedule(d, k, T, eta, eta * T / 80, 1.0)
    units = np.arange(k)
    quarter, whole = k // (4 * d), k // d
    for own in (0, 1):
        mine, theirs = units < quarter, (units >= quarter) & (units < quarter + whole)
        sets = UnitSets(*((mine, theirs) if own == 0 else (theirs, mine)), k / (4 * d), k / d)
        assert sets.holds
        W = np.zeros((k, d))
        W[mine, own], W[theirs, own] = T * eta / 9, schedule.radius
        point = np.eye(d)[None, [own]]
        margin = (1 - 2 * own) * (pooled(point, W) @ separating_weights(sets, schedule))[0]
        assert margin == pytest.approx(80 / 36 - 1)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"n_units": 8 * 64 - 1, "output_step": 1.0}, "width at least 8 d^3"),
        ({"step": 0.5 / (8 * 64 * 21) * 1.0001}, "outputs at most 1/2 in the first phase"),
        ({"radius": 1e-5 / 9, "n_steps": 9}, "radius below step / 9"),
        ({"radius": 1e-5 / 80 * 1.0001, "n_steps": 1}, "radius at most step * steps / 80"),
        ({"output_step": 8.0 * 8 * 64}, "output step below 8 k"),
        ({"n_patterns": 2}, "three patterns or more"),
    ],
)
def test_each_condition_of_the_theorem_at_its_end(change, name):
    usual = {"n_patterns": 4, "n_units": 8 * 64, "n_steps": 20, "step": 1e-5, "radius": 1e-5 / 81}
    good = LayerwiseSchedule(**{**usual, "output_step": 8.0 * 8 * 64 - 1})
    assert all(good.conditions().values())
    bad = LayerwiseSchedule(**{**usual, "output_step": 8.0 * 8 * 64 - 1, **change})
    assert [key for key, holds in bad.conditions().items() if not holds] == [name]


def test_the_lemmas_fail_with_the_printed_probabilities():
    assert unit_set_failure(5) == pytest.approx(4 * np.exp(-5)) and unit_set_failure(1) == 1.0
    for m in (50, 200):  # Hoeffding for a sixth away from the mean, two classes
        assert class_share_failure(m) == pytest.approx(min(1, 2 * 2 * np.exp(-2 * m / 6**2)))
