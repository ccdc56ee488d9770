"""Symmetric copies have one canonical form."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from pindown import ReluNetwork
from pindown.affine import dense
from pindown.equivalence.gauge_fixing import canonical, canonical_form, row_lengths
from pindown.equivalence.weight_symmetry import apply, random_symmetry
from tests.equivalence.nets import random_net


def check_same_numbers(a, b, rtol=1e-9):
    for (W, b_), (V, c) in zip(a.layers, b.layers, strict=True):
        np.testing.assert_allclose(dense(W), dense(V), rtol=rtol, atol=rtol * np.abs(dense(V)).max())
        np.testing.assert_allclose(b_, c, rtol=rtol, atol=rtol * np.abs(c).max())


@pytest.mark.parametrize("gauge", ["unit", "balanced"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_copies_have_one_form(seed, sparse, gauge):
    rng = np.random.default_rng(seed)
    net = random_net(rng, sparse=sparse)
    form = canonical_form(net, gauge)
    copy = apply(random_symmetry(net, 2.0, seed=rng), net)
    if not form.near_ties:
        check_same_numbers(canonical(copy, gauge), form.network)
    check_same_numbers(canonical(form.network, gauge), form.network)  # idempotent
    X = rng.standard_normal((1000, net.in_features))
    np.testing.assert_allclose(form.network(X), net(X), rtol=1e-10, atol=1e-10)
    check_same_numbers(apply(form.symmetry, form.merged), form.network, rtol=1e-15)


def test_unit_gauge_has_rows_of_length_one():
    net = canonical(random_net(np.random.default_rng(0), [4, 7, 6, 2]))
    for W, _ in net.layers[:-1]:
        np.testing.assert_allclose(np.linalg.norm(W, axis=1), 1.0, rtol=1e-14)


def test_balanced_gauge_is_balanced_and_smallest():
    rng = np.random.default_rng(1)
    net = random_net(rng, [4, 7, 6, 2])
    form = canonical(net, "balanced")
    for (W, b), (V, _) in zip(form.layers, form.layers[1:], strict=False):
        incoming = np.sqrt(np.sum(W**2, axis=1) + b**2)
        np.testing.assert_allclose(incoming, np.linalg.norm(V, axis=0), rtol=1e-9)

    def squares(net):
        return sum(np.sum(W**2) + np.sum(b**2) for W, b in net.layers)

    for seed in range(50):
        assert squares(apply(random_symmetry(net, 0.1, seed=seed), form)) >= squares(form)


def test_duplicates_are_near_ties():
    rng = np.random.default_rng(0)
    W, b = rng.standard_normal((5, 3)), rng.standard_normal(5)
    W[3], b[3] = 2 * W[1], 2 * b[1]
    net = ReluNetwork.from_layers([(W, b), (rng.standard_normal((1, 5)), [0])])
    form = canonical_form(net, merge=False)
    assert [layer for layer, _, _ in form.near_ties] == [1]
    rows = form.network.layers[0].weight
    np.testing.assert_allclose(rows[form.near_ties[0][1]], rows[form.near_ties[0][2]], rtol=1e-14)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("gauge", ["unit", "balanced"])
@pytest.mark.parametrize("seed", range(4))
def test_redundant_units_are_merged_before_the_form(seed, gauge, sparse):
    """Copies, constants and unread units go; all symmetric copies then have one form without ties."""
    rng = np.random.default_rng(seed)
    net = random_net(rng, [3, 6, 5, 2])
    (W1, b1), (W2, b2), (W3, b3) = ((np.array(W), np.array(b)) for W, b in net.layers)
    W1[4], b1[4] = 3.7 * W1[1], 3.7 * b1[1]  # a copy
    W2[2], b2[2] = 0.0, 1.5  # a constant
    W3[:, 3] = 0.0  # nobody reads it
    W1[5], W2[:, 5] = W1[0], -W2[:, 0]
    b1[5] = b1[0]  # cancels another unit, so both go
    layers = [(sp.csr_array(W) if sparse else W, b) for W, b in ((W1, b1), (W2, b2), (W3, b3))]
    net = ReluNetwork.from_layers(layers)
    form = canonical_form(net, gauge)
    assert form.network.widths == (3, 3, 3, 2) and form.near_ties == ()
    assert {(1, 4), (1, 0), (1, 5), (2, 2), (2, 3)} == set(form.gone)
    X = rng.standard_normal((200, 3))
    np.testing.assert_allclose(form.network(X), net(X), rtol=1e-12, atol=1e-12)
    copy = canonical_form(apply(random_symmetry(net, seed=seed), net), gauge)
    check_same_numbers(copy.network, form.network)
    again = canonical_form(form.network, gauge)
    assert again.gone == ()
    check_same_numbers(again.network, form.network)


def test_units_that_are_only_nearly_copies_stay():
    """One entry differs by far more than rounding of that entry, though not of the row."""
    net = ReluNetwork.from_layers([([[1.0, 1e-15], [1.0, 2e-15]], [0, 0]), ([[1e9, -1e9]], [0])])
    assert canonical(net).widths == (2, 2, 1)
    opposite = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, -1.0]], [0])])
    assert canonical(opposite).widths == (1, 2, 1)


def test_a_layer_that_is_all_constant_goes():
    net = ReluNetwork.from_layers(
        [(np.zeros((2, 3)), [1.0, -1.0]), (np.eye(2), [0, 5]), ([[2.0, 1.0]], [0])]
    )
    form = canonical(net)
    assert form.widths == (3, 1) and form(np.ones(3)).item() == net(np.ones(3)).item() == 7.0


def test_no_ties_at_real_width():
    net = random_net(np.random.default_rng(0), [100, 500, 500, 10])
    assert canonical_form(net).near_ties == ()


@pytest.mark.parametrize("gauge", ["unit", "balanced"])
def test_dead_constant_and_unused_units(gauge):
    W, b = [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0], [3.0, 4.0]], [1.0, 5.0, 0.0, 0.0]
    net = ReluNetwork.from_layers([(W, b), ([[1.0, 2.0, 0.0, 0.0]], [0.5])])
    form = canonical(net, gauge)
    X = np.random.default_rng(0).standard_normal((100, 2))
    np.testing.assert_allclose(form(X), net(X), rtol=1e-13)
    check_same_numbers(canonical(apply(random_symmetry(net, seed=5), net), gauge), form)


@pytest.mark.parametrize("scale", [1e-200, 1e-307, 1e150])
def test_extreme_weights(scale):
    net = ReluNetwork.from_layers([([[scale, 0.0], [1.0, 1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    lengths = row_lengths(net.layers[0].weight)
    np.testing.assert_allclose(lengths, [scale, np.sqrt(2)], rtol=1e-12)
    form = canonical(net, "unit")
    np.testing.assert_allclose(
        np.sort(np.abs(form.layers[0].weight).max(axis=1)), [0.5**0.5, 1.0], rtol=1e-3
    )


def test_unknown_gauge():
    with pytest.raises(ValueError, match="gauge must be one of 'unit', 'balanced'; got 'max'"):
        canonical(random_net(np.random.default_rng(0)), "max")


def test_lengths_beyond_float64_are_refused_in_words():
    """Two weights of 1.7e308 make a row that is too long."""
    net = ReluNetwork.from_layers([([[1.7e308, 1.7e308]], [0.0]), ([[1.0]], [0.0])])
    with pytest.raises(ValueError, match=r"hidden layer 1: the weights of a unit.* leave float64"):
        canonical(net)


def test_layers_that_nothing_reaches_or_leaves_have_a_form_too():
    """Between two layers of zeros no scales balance; the sweeps must not run out of float64."""
    inner = np.array([[0.0, 0.0, -0.4, 0.0], [0.09, -1.3, 0.7, -2.2]])
    layers = [(np.zeros((4, 3)), np.zeros(4)), (inner, [-0.2, 0.003]), (np.zeros((4, 2)), np.zeros(4))]
    net = ReluNetwork.from_layers([*layers, (np.ones((2, 4)), [0.4, -0.3])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy = canonical(net, "balanced")
    assert np.array_equal(copy(np.ones(3)), net(np.ones(3)))
