"""A layer of an orbit of filters, pooled: what the slides print and what holds."""

import itertools

import numpy as np
import pytest

from pindown.symmetry import cyclic, dihedral, equivariance, invariance, symmetric
from pindown.symmetry.constructions import tetrahedral

RNG = np.random.default_rng(0)


def layer(w, group):
    filters = group.orbit(w)
    return lambda X: np.maximum(X @ filters.T - 0.1, 0)


@pytest.mark.parametrize(
    "group", [cyclic(5), dihedral(5).permuting(), tetrahedral()], ids=["C5", "D5", "T"]
)
def test_a_layer_of_an_orbit_permutes_and_its_pool_is_invariant(group):
    X, w = RNG.standard_normal((8, group.degree)), RNG.standard_normal(group.degree)
    F = layer(w, group)
    assert equivariance(F, group, group.regular(), X).error < 1e-10
    for pool in (np.sum, np.max):
        assert invariance(lambda X, pool=pool: pool(F(X), axis=1), group, X).error < 1e-10
    # The permutations multiply as the group does.
    P = group.regular().matrices
    assert np.array_equal(np.einsum("aij,bjk->abik", P, P), P[group.table])


def test_printed_convolution_is_a_cross_correlation():
    """<g_i w, x> sums w[k - i] x[k]; convolving takes the flipped filter."""
    x, w = RNG.standard_normal((2, 7))
    ours = cyclic(7).orbit(w) @ x

    def convolve(a, b):
        return np.fft.ifft(np.fft.fft(a) * np.fft.fft(b)).real

    flipped = np.roll(w[::-1], 1)  # w at minus k
    assert np.allclose(ours, convolve(x, flipped)) and np.abs(ours - convolve(x, w)).max() > 0.1


def test_printed_permuted_layer_repeats_one_response():
    """P_g [s<w, gx>, ..., s<w, gx>] is constant; at gx the layer is P_g [s<g_1 w, x>, ...]."""
    group, x, w = cyclic(5), RNG.standard_normal(5), RNG.standard_normal(5)
    F = layer(w, group)
    for g in range(5):
        P = group.matrices[g]
        at_moved = F(group.act(g, x)[None])[0]
        printed = P @ np.full(5, np.maximum(w @ group.act(g, x) - 0.1, 0))
        assert np.allclose(at_moved, P @ F(x[None])[0])
        assert np.abs(at_moved - printed).max() > 0.1


def test_printed_diagonal_of_the_permutation_layer_is_not_its_first_parameter():
    """Theta = lambda I + gamma 1 1' has lambda + gamma on the diagonal."""
    first, second = 0.7, 0.2
    theta = first * np.eye(4) + second * np.ones((4, 4))
    assert theta[0, 0] == pytest.approx(first + second) and theta[0, 0] != pytest.approx(first)
    X = RNG.standard_normal((6, 4))
    assert equivariance(lambda X: np.tanh(X @ theta.T), symmetric(4).permuting(), X).error < 1e-12


def test_printed_product_of_transpositions_fails_where_indices_meet_and_transitivity_holds():
    """(i i')(j j') carries (i, j) to (i', j') except where the pairs share an index."""
    group = symmetric(4)

    def swapped(a, b, k):
        return b if k == a else a if k == b else k

    failures = 0
    for (i, j), (p, q) in itertools.product(itertools.permutations(range(4), 2), repeat=2):
        after = tuple(swapped(i, p, swapped(j, q, k)) for k in (i, j))
        failures += after != (p, q)
        assert any(g[i] == p and g[j] == q for g in group.points)  # some permutation always does it
    assert failures > 0


def test_without_a_nonlinearity_the_pool_sees_the_mean_alone():
    group, w = cyclic(6), RNG.standard_normal(6)
    X = RNG.standard_normal((10, 6))
    pooled = (X @ group.orbit(w).T).sum(axis=1)
    assert np.allclose(pooled, w.sum() * X.sum(axis=1))
