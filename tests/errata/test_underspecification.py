"""Phuong 2021: statements that are wrong as printed, beside the corrected ones."""

import math

import numpy as np
import pytest

from pindown.bias import orthogonal_separability
from pindown.bias.flow import gradient_flow
from pindown.equivalence import functional_dimension, identifiable_network
from pindown.geometry import Box
from pindown.geometry.folds.canonical_surface import canonical_surface
from pindown.geometry.folds.fold_set import fold_set
from pindown.guarantees.bounds.linear_distillation import angle_error, projected
from tests.geometry.fold_nets import gaussian

SQUARE = Box.cube(2, -1, 1)


def crossings(one, two):
    """How many segments of one set properly cross segments of the other."""

    def side(a, b, c):
        return np.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))

    return sum(
        side(*s, t[0]) * side(*s, t[1]) < 0 and side(*t, s[0]) * side(*t, s[1]) < 0
        for s in one
        for t in two
    )


@pytest.mark.parametrize("seed", [3, 5])
def test_union_of_surfaces_does_not_cut_lines_by_the_later_pieces_of_the_other(seed):
    """(A.1): with max{l - 1, k_2} a line of level 1 would be cut by pieces of level 2 that cross it."""
    rng = np.random.default_rng(seed)
    flat, bent = gaussian(rng, (2, 3, 1)), gaussian(rng, (2, 3, 3, 1))
    one, two = (canonical_surface(fold_set(net, SQUARE).segments, SQUARE) for net in (flat, bent))
    lines, later = one.ends[one.levels == 1], two.ends[two.levels == 2]
    assert crossings(lines, later) > 0  # so the two readings differ here
    union = canonical_surface(np.concatenate([one.ends, two.ends]), SQUARE)
    whole = {frozenset(map(tuple, ends)) for ends in union.ends[union.levels == 1].round(6)}
    assert {frozenset(map(tuple, ends)) for ends in lines.round(6)} <= whole


def test_units_of_the_rest_of_a_network_are_counted_by_their_own_layer():
    """(2.11), (A.67): unit j of h^{l:l-1+k} runs to d_{l-1+k}; d_k names units that do not exist."""
    widths, layer = (3, 3, 2, 1), 2
    net = gaussian(np.random.default_rng(0), widths)
    rest = net[layer - 1 :]  # h^{2:3}, defined on what layer 1 gives out
    folds = fold_set(rest, Box.cube(3, -5, 5))
    units = sorted(set(folds.units.tolist()))
    assert len(units) == widths[layer - 1 + 1] == 2 < widths[1] == 3
    with pytest.raises(IndexError):
        _ = rest[:1](np.zeros(3))[widths[1] - 1]


def test_cells_in_the_construction_are_images_of_one_layer_less():
    """Lemma A.17: h^{l:l+lambda-1} of X_lambda^+ is said to be P_{l+lambda}; that is one layer late.

    P_2 holds positive vectors only. With lambda = 1 and l = 1 the set X_1^+ is the whole box, which the
    first layer folds: its image has negative entries. With one layer less, h^{1:1} of the inputs that
    switch layer 1 on is P_2, and the rows of layer 2 change sign there, as (A.53) asks.
    """
    net = identifiable_network((2, 2, 2, 1), seed=0)
    X = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    first, second, _ = net.trace(X)
    assert first.min() < 0  # so h^{1:1}(X_1^+) is not P_2
    on = (first > 0).all(axis=1)
    assert 0 < on.sum() < len(X)
    on_second = second[on]
    assert (on_second.min(axis=0) < 0).all() and (on_second.max(axis=0) > 0).all()


@pytest.mark.parametrize(("widths", "seed"), [((2, 3, 4, 1), 2), ((2, 4, 3, 1), 8)])
def test_wider_later_layers_need_not_bring_hidden_symmetries(widths, seed):
    """Conjectured: unique parameters fail unless widths fall. These rise and have no flat direction.

    The flat directions are those of rescaling units and no others, as Grigsby, Lindsey and Rolnick 2023
    prove to be possible whenever no layer is narrower than the input.
    """
    net = gaussian(np.random.default_rng(seed), widths)
    found = functional_dimension(net, Box.cube(2, -3, 3))
    assert found.hidden == 0 and found.stable and not found.lower_bound
    with pytest.raises(ValueError, match="widths must be"):
        identifiable_network(widths)  # its proof is for falling widths only


def test_pairwise_acute_vectors_need_not_fit_into_an_orthant_of_any_dimension():
    """Section 3.2: vectors of one orthant have a completely positive Gram matrix; this one is not.

    Horn's form is copositive: its product with every completely positive matrix is at least zero.
    """
    angles = np.arange(5) * 2 * np.pi / 5
    cone = np.stack([np.cos(angles), np.sin(angles), np.full(5, 1.02)], axis=1)
    assert orthogonal_separability(cone, np.ones(5)).ok
    horn = np.array([[(1, -1, 1, 1, -1)[(j - i) % 5] for j in range(5)] for i in range(5)])
    assert (horn * (cone @ cone.T)).sum() < -0.5
    rng = np.random.default_rng(0)
    for _ in range(200):  # and orthants give no such value
        B = np.abs(rng.standard_normal((5, int(rng.integers(1, 9)))))
        assert (horn * (B @ B.T)).sum() >= -1e-9


def test_the_complement_is_of_the_span_of_differences():
    """(B.22)-(B.25): the complement sign stands inside the braces; then the velocity is not unique.

    At (0, 0) the loss x + relu(y) has the subgradients (1, t), t from 0 to 1, and their differences
    span the y axis. The flow is the one negative subgradient at right angles to it.
    """
    subgradients = np.stack([np.ones(101), np.linspace(0, 1, 101)], axis=1)
    differences = subgradients[:, None] - subgradients[None]
    span = np.linalg.svd(differences.reshape(-1, 2), full_matrices=False)[2][:1]
    ours = [-g for g in subgradients if np.abs(span @ g).max() < 1e-12]
    np.testing.assert_allclose(ours, [[-1.0, 0.0]], atol=1e-12)
    # As printed: the subgradients less their own complement, which is {0}, and the span of that.
    complement = [v for v in np.eye(2) if np.abs(subgradients @ v).max() < 1e-12]
    assert complement == []
    assert np.linalg.matrix_rank(subgradients) == 2  # all of the plane: every subgradient qualifies
    path = gradient_flow(lambda w: np.array([1.0, float(w[1] > 0)]), [0.0, 0.0], time=1.0, step=0.1)
    np.testing.assert_allclose(path.end, ours[0], atol=1e-12)


def test_a_constant_accuracy_is_no_accuracy_for_short_students():
    """Theorem D.4: epsilon is a constant below half of |w_hat| for every training set; there is none.

    |w_hat| depends on the draw and comes near zero; then an epsilon-close student may have any angle.
    What bounds the angle is the relative error.
    """
    rng = np.random.default_rng(0)
    w = np.eye(6)[0]
    lengths = np.array([np.linalg.norm(projected(rng.standard_normal((1, 6)), w)) for _ in range(3_000)])
    epsilon = 0.05
    assert lengths.min() < epsilon < 0.5 * np.median(lengths)
    short = lengths.min() * np.array([1.0, 0.0])
    opposite = -(epsilon - lengths.min()) * np.array([1.0, 0.0])
    assert np.linalg.norm(opposite - short) <= epsilon * (1 + 1e-12)
    assert short @ opposite < 0  # at angle pi, though epsilon-close
    for length in (0.1, 1.0):  # one relative error, one angle
        close = length * np.array([1 - 0.2**2, 0.2 * math.sqrt(1 - 0.2**2)])
        assert np.linalg.norm(close - [length, 0]) == pytest.approx(0.2 * length)
        assert math.atan2(close[1], close[0]) == pytest.approx(angle_error(0.2))
