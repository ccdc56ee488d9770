"""Second moments of full orbits commute with the group, so their eigenspaces are kept by it."""

from __future__ import annotations

import numpy as np
import pytest

from pindown.symmetry import cyclic, dihedral, symmetric
from pindown.symmetry.plasticity import (
    commutator_norm,
    eigenspaces,
    is_invariant_subspace,
    mirrored_covariance,
    oja,
    orbit_covariance,
    orbit_span,
    parity_of_components,
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


MIRROR = np.arange(8)[::-1]
R = np.eye(8)[MIRROR]


def samples(n=20, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 8)) * np.linspace(2, 0.5, 8)


def test_moments_of_mirrored_data_commute():
    X = samples()
    C = mirrored_covariance(X, MIRROR)
    both = np.concatenate([X, X @ R.T])
    assert np.allclose(C, both.T @ both)
    assert np.abs(C @ R - R @ C).max() < 1e-10
    assert np.abs(X.T @ X @ R - R @ X.T @ X).max() > 1


def test_plain_eigenvectors_are_even_or_odd():
    """Without our rotation within eigenspaces: simple eigenvalues do not need it."""
    _, vectors = np.linalg.eigh(mirrored_covariance(samples(), R))
    signs = [np.sign(w @ R @ w) for w in vectors.T]
    for w, sign in zip(vectors.T, signs, strict=True):
        assert np.abs(R @ w - sign * w).max() < 1e-10
    assert set(signs) == {-1.0, 1.0}


def test_parities_values_and_responses():
    X = samples(seed=1)
    found = parity_of_components(X, MIRROR)
    assert found.asymmetry < 1e-10 and not found.degenerate.any()
    values = np.linalg.eigvalsh(mirrored_covariance(X, R))[::-1]
    assert np.allclose(found.eigenvalues, values)
    assert sorted(found.parities.tolist()) == [-1] * 4 + [1] * 4  # the trace of R is zero
    x = np.random.default_rng(2).standard_normal(8)
    assert np.allclose((found.components @ x) ** 2, (found.components @ R @ x) ** 2)
    assert len(parity_of_components(X, R, 3).components) == 3


def test_printed_gram_matrix_has_the_size_of_the_sample():
    """D^T D of printed is n by n; even for n = d it does not commute with the mirror, D D^T does."""
    F = samples(4, seed=3)
    D = np.concatenate([F, F @ R.T]).T  # columns, 8 by 8
    wrong, right = D.T @ D, D @ D.T
    assert np.abs(wrong @ R - R @ wrong).max() > 0.5
    assert np.abs(right @ R - R @ right).max() < 1e-10
    assert np.allclose(right, mirrored_covariance(F, R))


def test_printed_claim_of_even_components_only_fails():
    """R w = w is one of two cases: antisymmetric data have an odd leading component."""
    half = np.random.default_rng(4).standard_normal((10, 4))
    odd = np.concatenate([half, -half[:, ::-1]], axis=1)
    found = parity_of_components(odd + 0.01 * samples(10), MIRROR, 1)
    w = found.components[0]
    assert found.parities.tolist() == [-1]
    assert np.abs(R @ w + w).max() < 1e-8 and np.abs(R @ w - w).max() > 0.3


def test_shared_eigenvalues_are_told_and_resolved():
    found = parity_of_components(np.eye(8), R)
    assert found.degenerate.all() and found.asymmetry < 1e-10
    assert sorted(found.parities.tolist()) == [-1] * 4 + [1] * 4
    mixture = found.components[found.parities == 1][0] + found.components[found.parities == -1][0]
    assert np.abs(R @ mixture - mixture).max() > 0.1  # an eigenvector that is neither


def test_oja_on_mirrored_data_becomes_symmetric():
    rng = np.random.default_rng(5)
    slope, hill = np.linspace(-1, 1, 8), np.cos(np.linspace(-1, 1, 8))
    for strong, weak, parity in ((slope, hill, -1), (hill, slope, 1)):
        X = rng.standard_normal((200, 2)) @ [strong, 0.3 * weak] + 0.1 * samples(200, seed=6)
        both = np.stack([X, X @ R.T], axis=1).reshape(-1, 8)
        w = oja(both, rng.standard_normal(8), epochs=40, random_state=0).weights
        assert parity_of_components(X, R, 1).parities[0] == parity
        assert np.linalg.norm(R @ w - parity * w) < 0.02 * np.linalg.norm(w)


def test_bad_reflections_are_refused():
    X = samples()
    with pytest.raises(ValueError, match="own inverse"):
        parity_of_components(X, np.roll(np.arange(8), 1))
    with pytest.raises(ValueError, match="permutation of 0 to 7"):
        parity_of_components(X, np.eye(7))
    with pytest.raises(ValueError, match="n_components"):
        parity_of_components(X, R, 9)
