"""What pooled templates can and cannot tell: rectified units, thresholds, laws of orbits, moments."""

import itertools

import numpy as np
import pytest

from pindown.symmetry import cyclic, dihedral, symmetric
from pindown.symmetry.signatures import (
    find_confusable,
    moment_signature,
    orbit_benchmark,
    orbit_distance,
    orbit_mmd,
    orbit_projections,
    orbit_sliced_distance,
    relu_pool_ambiguity,
    relu_pool_signature,
    threshold_signature,
    values_from_power_sums,
)
from pindown.symmetry.signatures.projections import unit_templates


def centred(d, seed=0):
    x = np.random.default_rng(seed).standard_normal(d)
    return x - x.mean()


# -- rectified units ---------------------------------------------------------------------------------


def test_printed_selectivity_of_rectified_units_fails_for_all_weights():
    """x and -x of mean zero lie in different orbits and share every pooled rectified unit."""
    group, x = cyclic(10), centred(10)
    assert orbit_distance(x, -x, group) > 1
    weights = np.random.default_rng(1).standard_normal((500, 10))
    with pytest.warns(UserWarning, match="without biases"):
        first, second = relu_pool_signature([x, -x], weights, group)
    assert np.abs(first - second).max() < 1e-12
    biased = relu_pool_signature([x, -x], weights, group, biases=np.linspace(-2, 2, 8))
    assert np.abs(biased[0] - biased[1]).max() > 0.5
    assert relu_pool_ambiguity(x, group).confused


@pytest.mark.filterwarnings("ignore:rectified units")
def test_without_biases_the_mean_and_the_even_part_are_what_is_seen():
    group, rng = dihedral(4), np.random.default_rng(2)
    x, weights = rng.standard_normal(8), rng.standard_normal((50, 8))
    first, second = relu_pool_signature([x, -x], weights, group)
    assert np.allclose(first - second, weights @ group.orbit(x).sum(axis=0))
    even = np.abs(orbit_projections([x], weights, group)).sum(axis=2)[0]
    assert np.allclose(first + second, even)


def test_ambiguity_is_asked_of_the_orbit():
    assert not relu_pool_ambiguity(np.arange(5.0), cyclic(5)).confused  # the mean is seen
    x = np.array([1.0, 2.0, -1.0, -2.0])
    assert not relu_pool_ambiguity(x, cyclic(4)).confused  # -x is x shifted by two
    assert relu_pool_ambiguity([1.0, 2.0, -3.0, 0.0], cyclic(4)).confused
    assert not relu_pool_ambiguity(np.zeros(3), cyclic(3)).confused
    assert "confused" in str(relu_pool_ambiguity(centred(5), cyclic(5)))


# -- thresholds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [cyclic(6), dihedral(3), cyclic(5).permuting(), dihedral(4)])
def test_printed_selectivity_of_one_template_fails(group):
    """All thresholds of one template agree on two samples of different orbits; a second one differs."""
    rng = np.random.default_rng(3)
    x, w, other = rng.standard_normal((3, group.degree))
    found = find_confusable(x, w, group)
    assert found.reason == "permuted projections"
    assert found.signature_difference < 1e-9 and found.orbit_distance > 0.1
    assert orbit_distance(x, found.sample, group) == pytest.approx(found.orbit_distance)
    levels = np.linspace(-3, 3, 40)
    counts = threshold_signature([x, found.sample], [w], group, levels)
    assert np.array_equal(counts[0], counts[1])
    both = threshold_signature([x, found.sample], [w, other], group)
    assert np.abs(both[0] - both[1]).max() > 0.1


def test_counts_of_whole_numbers_are_equal_on_the_orbit():
    X = np.random.default_rng(3).integers(0, 4, (30, 7)).astype(float)
    counts = threshold_signature(X, np.eye(7)[:1], cyclic(7), [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(counts, [[np.sum(row > z) for z in (0.0, 1.0, 2.0)] for row in X])
    nothing = threshold_signature(np.zeros((1, 7)), np.eye(7)[:1], cyclic(7), [-1.0, 0.0])
    assert nothing.tolist() == [[7.0, 0.0]]  # what equals a threshold is not above it


def test_what_is_orthogonal_to_the_orbit_is_invisible():
    group = cyclic(2).acting_by([np.eye(5), np.eye(5)[::-1]])
    x, w = np.random.default_rng(4).standard_normal((2, 5))
    found = find_confusable(x, w, group)
    assert found.reason == "orthogonal to the orbit"
    assert found.signature_difference < 1e-12 and found.orbit_distance > 0.5
    # an orbit may span less than it has elements
    flat = find_confusable(x, np.ones(5), cyclic(5))
    assert flat.reason == "orthogonal to the orbit" and flat.signature_difference < 1e-12


def test_three_templates_merge_no_random_pair():
    rng = np.random.default_rng(5)
    group = cyclic(6)
    X, Y = rng.standard_normal((2, 10_000, 6))
    templates = unit_templates(3, 6, rng)
    first, second = (threshold_signature(Z, templates, group) for Z in (X, Y))
    assert np.abs(first - second).max(axis=1).min() > 1e-3


def test_more_elements_than_features_and_special_samples_are_refused():
    group = symmetric(3).permuting()
    with pytest.raises(ValueError, match="6 elements on 3 features"):
        find_confusable([1.0, 2.0, 3.0], [1.0, 0.0, 0.5], group)
    with pytest.raises(ValueError, match="special"):
        find_confusable(np.ones(4), [1.0, 0.5, 0.0, 0.0], cyclic(4))
    with pytest.raises(ValueError, match="exact"):
        threshold_signature([[1.0, 2.0]], [[1.0, 0.0]], cyclic(2), "all")
    with pytest.raises(ValueError, match="thresholds"):
        threshold_signature([[1.0, 2.0]], [[1.0, 0.0]], cyclic(2), [np.nan])


# -- measures of orbits ------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [cyclic(7), dihedral(4), symmetric(4).permuting()])
def test_distances_vanish_exactly_on_orbits(group):
    rng = np.random.default_rng(6)
    d = group.degree
    directions = rng.standard_normal((d, d))
    for _ in range(10):
        x, other = rng.standard_normal((2, d))
        same = group.orbit(x)[rng.integers(group.order)]
        assert orbit_mmd(x, same, group) < 1e-6 < orbit_mmd(x, other, group)
        nearest = min(np.linalg.norm(x - group.act(g, other)) for g in range(group.order))
        assert orbit_distance(x, same, group) < 1e-12
        assert orbit_distance(x, other, group) == pytest.approx(nearest)
        assert orbit_sliced_distance(x, same, group, directions) < 1e-12
        assert orbit_sliced_distance(x, other, group, directions) > 1e-3


def test_distances_tell_a_sample_from_its_negative():
    group, x = cyclic(8), centred(8)
    assert orbit_mmd(x, -x, group) > 1e-3
    assert orbit_sliced_distance(x, -x, group, np.random.default_rng(0).standard_normal((8, 8))) > 1e-2

    def rectified(p, q):  # the kernel of rectified features, which is not characteristic
        weights = np.random.default_rng(1).standard_normal((200, 8))
        return np.maximum(p @ weights.T, 0) @ np.maximum(q @ weights.T, 0).T

    assert orbit_mmd(x, -x, group, kernel=rectified) < 1e-5


def test_one_sum_is_enough_for_an_isotropic_kernel():
    group = dihedral(4).permuting()
    x, y = np.random.default_rng(7).standard_normal((2, 4))
    gamma = 0.3

    def k(a, b):
        return np.exp(-gamma * ((a - b) ** 2).sum(axis=1)).mean()

    one_sum = k(x, group.orbit(x)) + k(y, group.orbit(y)) - 2 * k(x, group.orbit(y))
    assert orbit_mmd(x, y, group, gamma=gamma) ** 2 == pytest.approx(one_sum, rel=1e-10)


def test_printed_equivalence_of_laws_is_equality():
    """Laws that are merely equal up to a relabelling of values (equivalent, not equal) are no orbit."""
    group, x = cyclic(6), centred(6)
    # 2 x has a law on equally many atoms, carried to that of x by a bijection, yet another orbit
    assert orbit_distance(x, 2 * x, group) > 0.5
    assert orbit_mmd(x, 2 * x, group) > 1e-3


def test_directions_live_on_the_sphere_of_the_features():
    """A direction has as many numbers as a sample: one more, as printed, does not even multiply."""
    x, y = np.random.default_rng(8).standard_normal((2, 5))
    with pytest.raises(ValueError, match="agree"):
        orbit_sliced_distance(x, y, cyclic(5), np.ones((1, 6)))
    directions = np.random.default_rng(9).standard_normal((7, 5))
    scaled = orbit_sliced_distance(x, y, cyclic(5), 10 * directions)
    assert scaled == pytest.approx(orbit_sliced_distance(x, y, cyclic(5), directions))


def test_sliced_distance_agrees_with_scipy():
    from scipy.stats import wasserstein_distance

    group, rng = dihedral(3), np.random.default_rng(10)
    x, y, t = rng.standard_normal((3, 6))
    unit = t / np.linalg.norm(t)
    expected = wasserstein_distance(group.orbit(x) @ unit, group.orbit(y) @ unit)
    assert orbit_sliced_distance(x, y, group, [t]) == pytest.approx(expected)


def test_bad_measures_are_refused():
    with pytest.raises(ValueError, match="gamma"):
        orbit_mmd([1.0, 2.0], [2.0, 3.0], cyclic(2), gamma=-1.0)
    with pytest.raises(ValueError, match="zeros"):
        orbit_sliced_distance([1.0, 2.0], [2.0, 3.0], cyclic(2), [[0.0, 0.0]])
    with pytest.raises(ValueError, match="one vector"):
        orbit_distance(np.ones((2, 2)), [1.0, 2.0], cyclic(2))
    with pytest.raises(ValueError, match="3 numbers"):
        orbit_distance([1.0, 2.0], [1.0, 2.0], cyclic(3))


# -- moments -----------------------------------------------------------------------------------------


def test_moments_are_invariant_and_equal_their_definition():
    group, rng = dihedral(3), np.random.default_rng(11)
    X, T = rng.standard_normal((4, 6)), rng.standard_normal((2, 6))
    found = moment_signature(X, T, group, 5)
    for index in range(group.order):
        assert np.abs(moment_signature(group.act(index, X), T, group, 5) - found).max() < 1e-9
    by_hand = sum((X[1] @ g.T @ T[1]) ** 3 for g in group.matrices)
    assert found.reshape(4, 2, 5)[1, 1, 2] == pytest.approx(by_hand)
    scaled = moment_signature(X, T, group, 2, standardise=True).reshape(4, 2, 2)
    assert scaled[:, :, 1].mean() == pytest.approx(group.order)


@pytest.mark.parametrize("group", [cyclic(2), cyclic(4), cyclic(6), dihedral(3)])
def test_sorted_projections_come_back_from_power_sums(group):
    rng = np.random.default_rng(12)
    for _ in range(20):
        x, t = rng.standard_normal((2, group.order))
        sums = moment_signature([x], [t], group, group.order)[0]
        expected = np.sort(orbit_projections([x], [t], group)[0, 0])
        gap = np.diff(expected).min()
        # roots of a polynomial lose digits as they approach one another
        assert np.abs(values_from_power_sums(sums) - expected).max() < 1e-9 / gap**2


def test_power_sums_of_equal_and_few_values():
    assert values_from_power_sums([5.0]) == pytest.approx([5.0])
    assert values_from_power_sums([4.0, 8.0]) == pytest.approx([2.0, 2.0])
    assert values_from_power_sums([3.0, 9.0, 27.0]) == pytest.approx([0.0, 0.0, 3.0], abs=1e-4)
    assert values_from_power_sums([0.0, 0.0, 0.0]) == pytest.approx([0.0, 0.0, 0.0])


def test_moments_of_one_template_confuse_what_one_template_confuses():
    group, rng = cyclic(5), np.random.default_rng(13)
    x, w = rng.standard_normal((2, 5))
    other = find_confusable(x, w, group).sample
    first, second = moment_signature([x, other], [w], group, 5)
    assert np.allclose(first, second, rtol=1e-8)


def test_bad_moments_are_refused():
    with pytest.raises(ValueError, match="no real numbers"):
        values_from_power_sums([0.0, -1.0])
    with pytest.raises(ValueError, match="1 to 12"):
        values_from_power_sums(np.ones(13))
    with pytest.raises(ValueError, match="overflow"):
        moment_signature([[1e100, 0.0]], [[1.0, 0.0]], cyclic(2), 4)
    with pytest.raises(ValueError, match="n_moments"):
        moment_signature([[1.0, 0.0]], [[1.0, 0.0]], cyclic(2), 0)


# -- the benchmark -----------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [cyclic(12), dihedral(6)])
def test_thresholds_raise_separability_and_never_split_orbits(group):
    X = np.random.default_rng(14).standard_normal((12, 12))
    table = orbit_benchmark(X, group, (1, 2, 4, 8, 16, 32))
    assert all(report.max_intra <= 1e-10 for report in table.values())
    areas = [report.auc for report in table.values()]
    assert areas[0] < 0.99 and areas[-1] == 1.0
    assert all(later > earlier - 0.02 for earlier, later in itertools.pairwise(areas))
