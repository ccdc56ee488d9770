"""Orbits as weight matrices: circulant matrices, correlations, and deep stacks of them."""

import numpy as np
import pytest
from scipy.linalg import circulant

from pindown.symmetry import cyclic, dihedral
from pindown.symmetry.signatures import deep_orbit_features, orbit_matrix, orbit_projections


def test_cyclic_orbit_is_a_circulant_matrix_and_a_correlation():
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((2, 9))
    W = orbit_matrix(w, cyclic(9))
    assert np.array_equal(W, circulant(w))
    correlation = np.fft.ifft(np.conj(np.fft.fft(w)) * np.fft.fft(x)).real
    assert np.abs(W.T @ x - correlation).max() < 1e-12


def test_printed_third_column_is_no_shift():
    """The matrix shows w_1, w_2, ..., w_(d-3) as its third column: the layer is then not equivariant."""
    d = 6
    w, x = np.random.default_rng(1).standard_normal((2, d))
    ours = orbit_matrix(w, cyclic(d))
    printed = ours.copy()
    printed[:, 2] = np.r_[w[:2], ours[2:-1, 2], w[d - 4]]
    assert np.array_equal(ours[:, 2], np.roll(w, 2))
    for k in range(d):
        assert np.abs(ours.T @ np.roll(x, k) - np.roll(ours.T @ x, k)).max() < 1e-12
    assert (
        max(np.abs(printed.T @ np.roll(x, k) - np.roll(printed.T @ x, k)).max() for k in range(d)) > 0.1
    )


@pytest.mark.parametrize("group", [cyclic(6), dihedral(3), dihedral(4).permuting()])
def test_deep_orbit_layers_move_with_the_sample(group):
    rng = np.random.default_rng(2)
    filters = [rng.standard_normal(group.degree), *rng.standard_normal((2, group.order))]
    X = rng.standard_normal((5, group.degree))
    still = deep_orbit_features(X, filters, group)
    for index in range(group.order):
        moved = deep_orbit_features(group.act(index, X), filters, group)
        for before, after in zip(still, moved, strict=True):
            assert np.abs(after - group.regular().act(index, before)).max() < 1e-10
            assert np.abs(after.sum(axis=1) - before.sum(axis=1)).max() < 1e-10
    assert all(layer.any() for layer in still)


def test_projections_of_any_action_are_those_of_moved_samples():
    rng = np.random.default_rng(3)
    change = rng.standard_normal((3, 3))
    group = cyclic(3).acting_by(change @ cyclic(3).matrices @ np.linalg.inv(change))
    X, T = rng.standard_normal((4, 3)), rng.standard_normal((2, 3))
    expected = np.stack([group.act(i, X) @ T.T for i in range(3)], axis=2)
    assert np.abs(orbit_projections(X, T, group) - expected).max() < 1e-12
    function = cyclic(3).acting_by(lambda i, Y: Y @ group.matrices[i].T)
    assert np.abs(orbit_projections(X, T, function) - expected).max() < 1e-12


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="vectors of 4 numbers"):
        orbit_projections(np.ones((2, 3)), np.ones((1, 3)), cyclic(4))
    with pytest.raises(ValueError, match="must agree"):
        orbit_projections(np.ones((2, 3)), np.ones((1, 4)), cyclic(3))
    with pytest.raises(ValueError, match="finite"):
        orbit_projections([[np.nan, 1.0]], np.ones((1, 2)), cyclic(2))
    with pytest.raises(ValueError, match="samples by features"):
        orbit_projections(np.ones((0, 2)), np.ones((1, 2)), cyclic(2))
    with pytest.raises(TypeError, match="Group"):
        orbit_projections(np.ones((1, 2)), np.ones((1, 2)), "C2")
