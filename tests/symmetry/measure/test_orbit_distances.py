"""Selectivity: constant, identity, sorting, power spectrum and bispectrum."""

import numpy as np
import pytest

from pindown.symmetry import cyclic, symmetric
from pindown.symmetry.actions import illumination
from pindown.symmetry.measure.orbit_distances import orbit_report
from tests.symmetry.measure.test_errors import bispectrum, power_spectrum

RNG = np.random.default_rng(0)
X = RNG.standard_normal((12, 7))


def test_a_constant_is_invariant_and_tells_nothing_apart():
    found = orbit_report(lambda X: np.zeros(len(X)), cyclic(7), X)
    assert (found.max_intra, found.min_inter, found.auc, found.selectivity) == (0.0, 0.0, 0.5, 0.0)


def test_the_identity_tells_apart_and_is_not_invariant():
    found = orbit_report(lambda X: X, cyclic(7), X)
    assert found.min_inter > 0 and found.max_intra > found.min_inter and 0.3 < found.auc < 0.9


@pytest.mark.parametrize(
    ("features", "group"),
    [(np.sort, symmetric(4).permuting()), (power_spectrum, cyclic(4)), (bispectrum, cyclic(4))],
)
def test_invariants_separate_generic_orbits(features, group):
    found = orbit_report(features, group, X[:, :4])
    assert found.max_intra < 1e-10 < found.min_inter
    assert found.auc == 1.0 and found.selectivity == 1.0 and found.ratio < 1e-10


def test_the_power_spectrum_is_not_complete_and_the_bispectrum_tells_the_mirror_image():
    x = RNG.standard_normal(7)
    mirrored = x[::-1]  # no shift of x, but of equal power spectrum
    pair = np.array([x, mirrored])
    assert orbit_report(lambda X: X, cyclic(7), pair).n_orbits == 2
    power = orbit_report(power_spectrum, cyclic(7), pair)
    both = orbit_report(bispectrum, cyclic(7), pair)
    assert power.max_intra < 1e-10 and power.min_inter < 1e-10 and power.selectivity == 0.0
    assert both.max_intra < 1e-10 and both.min_inter > 0.1 and both.selectivity == 1.0


def test_phases_at_random_keep_the_power_spectrum():
    phases = np.exp(2j * np.pi * RNG.random(3))
    spectrum = np.fft.rfft(X[0])
    other = np.fft.irfft(np.concatenate([spectrum[:1], spectrum[1:] * phases]), 7)
    pair = np.array([X[0], other])
    assert orbit_report(power_spectrum, cyclic(7), pair).min_inter < 1e-10
    assert orbit_report(bispectrum, cyclic(7), pair).min_inter > 1e-3


def test_auc_and_distances_by_brute_force():
    W = RNG.standard_normal((2, 7))
    found = orbit_report(lambda X: X @ W.T, cyclic(7), X[:4])
    features = [[np.roll(x, k) @ W.T for k in range(7)] for x in X[:4]]
    flat = [(i, f) for i, orbit in enumerate(features) for f in orbit]
    pairs = [
        (a[0] == b[0], np.linalg.norm(a[1] - b[1])) for i, a in enumerate(flat) for b in flat[i + 1 :]
    ]
    inside, outside = ([d for same, d in pairs if same is kind] for kind in (True, False))
    assert found.max_intra == pytest.approx(max(inside))
    assert found.min_inter == pytest.approx(min(outside))
    gaps = [
        min(np.linalg.norm(f - g) for f in features[i] for g in features[j])
        for i in range(4) for j in range(i)
    ]  # fmt: skip
    assert found.selectivity == pytest.approx(np.mean([gap > max(inside) for gap in gaps]))
    assert found.ratio == pytest.approx(np.mean(inside) / np.mean(outside))
    wins = np.mean([(a < b) + (a == b) / 2 for a in inside for b in outside])
    assert found.auc == pytest.approx(wins) and "4 orbits of C7" in str(found)


def test_samples_of_one_orbit_count_as_one():
    twice = np.concatenate([X[:3], np.roll(X[:3], 2, axis=1)])
    assert orbit_report(np.sort, cyclic(7), twice).n_orbits == 3
    assert orbit_report(np.sort, twice, cyclic(7)).n_orbits == 3  # either order of the two


def test_families_and_many_elements_work_and_one_orbit_is_refused():
    positive = np.abs(X)
    scaled = orbit_report(
        lambda X: X / X.sum(axis=1, keepdims=True), illumination([0.5, 1.0, 2.0]), positive
    )
    assert scaled.max_intra < 1e-12 and scaled.selectivity == 1.0
    many = orbit_report(np.sort, symmetric(5).permuting(), RNG.standard_normal((40, 5)))
    assert many.n_features == 2000 and many.max_intra == 0.0
    with pytest.raises(ValueError, match="at least two orbits"):
        orbit_report(np.sort, cyclic(7), twice_one())


def twice_one():
    return np.array([X[0], np.roll(X[0], 3)])
