"""Second moments of full orbits commute with the group, so their eigenspaces are kept by it."""

import numpy as np
import pytest

from pindown.symmetry import cyclic, dihedral, symmetric
from pindown.symmetry.plasticity import (
    commutator_norm,
    eigenspaces,
    is_invariant_subspace,
    orbit_covariance,
    orbit_span,
)

GROUPS = [cyclic(7), dihedral(4), dihedral(5).permuting(), symmetric(4).permuting()]


@pytest.mark.parametrize("group", GROUPS)
def test_moments_of_orbits_commute_and_eigenspaces_are_kept(group):
    T = np.random.default_rng(0).standard_normal((2, group.degree))
    C = orbit_covariance(T, group)
    assert commutator_norm(C, group) < 1e-10
    data = np.concatenate([group.orbit(t) for t in T])
    assert np.allclose(C, data.T @ data / len(data))
    for space in eigenspaces(C):
        assert is_invariant_subspace(space.basis, group)
        w = space.basis @ np.random.default_rng(1).standard_normal(space.dimension)
        assert orbit_span(w, group) <= space.dimension
        moved = group.orbit(w)
        assert np.allclose(moved @ C, space.value * moved, atol=1e-10)


def test_half_an_orbit_does_not_commute():
    group, t = cyclic(6), np.random.default_rng(2).standard_normal(6)
    part = group.orbit(t)[:3]
    plain = commutator_norm(part.T @ part, group)
    assert plain > 0.1 and commutator_norm(1e6 * part.T @ part, group) == pytest.approx(plain)
    # An orbit spans the waves that its template holds, however weak: here all, or all but the last.
    assert orbit_span(t, group) == 6
    assert orbit_span(np.fft.irfft(np.fft.rfft(t) * [1, 1, 0.01, 0], 6), group) == 5
    # nor do full orbits of an action that is not orthogonal
    skew = cyclic(2).acting_by([np.eye(2), [[0.0, 2.0], [0.5, 0.0]]])
    assert commutator_norm(orbit_covariance([[1.0, 0.3]], skew), skew) > 0.1


def test_eigenvectors_under_shifts_are_waves():
    n = 9
    C = orbit_covariance(np.random.default_rng(3).standard_normal((2, n)), cyclic(n))
    spaces = eigenspaces(C)
    assert sorted(space.dimension for space in spaces) == [1, 2, 2, 2, 2]
    for space in spaces:
        power = np.abs(np.fft.rfft(space.basis, axis=0)) ** 2
        assert (power.sum(axis=1) > 1e-9 * power.sum()).sum() == 1  # one frequency


def test_printed_span_of_an_orbit_needs_an_irreducible_eigenspace():
    """Orbits of a constant and of a wave of twice its size: one eigenspace of dimension 3 leads."""
    n = 5
    wave = 2 * np.cos(2 * np.pi * np.arange(n) / n)
    space = eigenspaces(orbit_covariance([np.ones(n), wave], cyclic(n)))[0]
    assert space.dimension == 3
    for w, span in ((np.ones(n), 1), (wave, 2), (np.ones(n) + wave, 3)):
        assert np.allclose(space.basis @ (space.basis.T @ w), w)  # w is a leading eigenvector
        assert orbit_span(w, cyclic(n)) == span <= space.dimension
    # generic data: the leading space is irreducible and every orbit in it spans it
    rng = np.random.default_rng(4)
    space = eigenspaces(orbit_covariance(rng.standard_normal((2, n)), cyclic(n)))[0]
    for _ in range(20):
        w = space.basis @ rng.standard_normal(space.dimension)
        assert orbit_span(w, cyclic(n)) == space.dimension


def test_bad_matrices_are_refused():
    with pytest.raises(ValueError, match="square"):
        eigenspaces(np.ones((2, 3)))
    with pytest.raises(ValueError, match="symmetric"):
        commutator_norm([[0.0, 1.0], [0.0, 0.0]], cyclic(2))
    with pytest.raises(ValueError, match="columns"):
        is_invariant_subspace(np.ones(3), cyclic(3))
    with pytest.raises(ValueError, match="vectors of 2"):
        commutator_norm(np.eye(3), cyclic(2))
    assert orbit_span(np.zeros(3), cyclic(3)) == 0
    assert commutator_norm(np.zeros((3, 3)), cyclic(3)) == 0.0
