"""Symmetric copies are matched with the symmetry that made them; others are not."""

import time
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from pindown import ReluNetwork
from pindown.affine import dense
from pindown.deadline import Deadline
from pindown.equivalence.comparison.matching import match
from pindown.equivalence.weight_symmetry import Symmetry, apply, inverse, random_symmetry
from tests.equivalence.nets import changed, random_net


def check_changes_hold(found, a, b):
    """The changes, in exact rationals, hold the difference of the moved copy of b and a."""
    p = [np.arange(a.in_features), *found.symmetry.permutations, np.arange(a.out_features)]
    m = [np.ones(a.in_features), *found.symmetry.scales, np.ones(a.out_features)]
    for i, (mine, theirs) in enumerate(zip(a.layers, b.layers, strict=True)):
        W, V = dense(mine.weight), dense(theirs.weight)
        change = found.changes.get(i)
        for r in range(W.shape[0]):
            left = Fraction(m[i + 1][r])
            bias = left * Fraction(theirs.bias[p[i + 1][r]]) - Fraction(mine.bias[r])
            known = (Fraction(change.bias[r]), Fraction(change.bias_slack[r])) if change else (0, 0)
            assert abs(bias - known[0]) <= known[1]
            for c in range(W.shape[1]):
                true = left * Fraction(V[p[i + 1][r], p[i][c]]) / Fraction(m[i][c]) - Fraction(W[r, c])
                known = (0, 0)
                if change:
                    known = (
                        Fraction(dense(change.weight)[r, c]),
                        Fraction(dense(change.weight_slack)[r, c]),
                    )
                assert abs(true - known[0]) <= known[1]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(50))
def test_the_sampled_symmetry_is_found(seed, sparse):
    rng = np.random.default_rng(seed)
    net = random_net(rng, [6, *rng.integers(3, 12, size=rng.integers(1, 5)), 2], sparse=sparse)
    symmetry = random_symmetry(net, seed=rng)
    found = match(apply(symmetry, net), net)
    assert found.matched and found.failed_layer is None and max(found.residuals) < 1e-10
    for ours, sampled in zip(found.symmetry.permutations, symmetry.permutations, strict=True):
        np.testing.assert_array_equal(ours, sampled)
    for ours, sampled in zip(found.symmetry.scales, symmetry.scales, strict=True):
        np.testing.assert_allclose(ours, sampled, rtol=1e-10)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_changes_are_proved(seed, sparse):
    rng = np.random.default_rng(seed)
    net = random_net(rng, [3, 5, 4, 2], sparse=sparse)
    copy = changed(apply(random_symmetry(net, 3.0, seed=rng), net), rng, 1e-8)
    check_changes_hold(match(net, copy), net, copy)


def test_changes_of_denormal_weights_are_proved():
    net = ReluNetwork.from_layers(
        [([[3e-310, 1.0], [1.0, 7e-320]], [5e-324, 0.1]), ([[1.0, 3e-309]], [0])]
    )
    copy = apply(Symmetry([[1, 0]], [[3.0, 0.3]]), net)
    check_changes_hold(match(net, copy), net, copy)


def test_equal_and_power_of_two_copies_have_no_changes():
    net = random_net(np.random.default_rng(0), [4, 9, 8, 2])
    assert not match(net, net).changes
    rng = np.random.default_rng(1)
    symmetry = Symmetry(
        [rng.permutation(9), rng.permutation(8)], [2.0 ** rng.integers(-9, 9, n) for n in (9, 8)]
    )
    assert not match(net, apply(symmetry, net)).changes


@pytest.mark.parametrize("size", [0.1, 1e-3, 3e-6])
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_one_changed_weight_fails_at_its_layer(size, layer):
    rng = np.random.default_rng(layer)
    net = random_net(rng, [6, 10, 8, 3])
    copy = apply(random_symmetry(net, seed=3), net)
    layers = [(W.copy(), b) for W, b in copy.layers]
    i = np.unravel_index(np.argmax(np.abs(layers[layer][0])), layers[layer][0].shape)
    layers[layer][0][i] *= 1 + 4 * size
    found = match(net, ReluNetwork.from_layers(layers), rtol=1e-6)
    assert not found.matched and found.failed_layer == layer + 1 and f"layer {layer + 1}" in found.reason
    assert match(net, ReluNetwork.from_layers(layers), rtol=1.0).matched


def test_a_flipped_sign_fails():
    rng = np.random.default_rng(0)
    net = random_net(rng, [6, 10, 3])
    (W, b), (V, c) = [(W.copy(), b.copy()) for W, b in net.layers]
    W[4], b[4], V[:, 4] = -W[4], -b[4], -V[:, 4]
    found = match(net, ReluNetwork.from_layers([(W, b), (V, c)]), rtol=10.0)
    assert not found.matched and found.failed_layer == 1 and "opposite sign" in found.reason


def test_different_widths_are_no_error():
    rng = np.random.default_rng(0)
    found = match(random_net(rng, [3, 4, 1]), random_net(rng, [3, 5, 1]))
    assert not found.matched and found.symmetry is None and "widths" in repr(found)


@pytest.mark.parametrize("hidden", [1, 2])
@pytest.mark.parametrize("seed", range(20))
def test_duplicate_units_are_told_apart_by_what_they_feed(seed, hidden):
    rng = np.random.default_rng(seed)
    net = random_net(rng, [5, *[8] * hidden, 2])
    layers = [(W.copy(), b.copy()) for W, b in net.layers]
    W, b = layers[0]
    W[[3, 6]], b[[3, 6]] = W[1], b[1]
    W[6] *= 2.5
    b[6] *= 2.5
    W[4], b[4] = W[5] * (1 + 1e-11), b[5]  # nearly parallel
    net = ReluNetwork.from_layers(layers)
    copy = apply(random_symmetry(net, seed=rng), net)
    found = match(net, copy)
    assert found.matched and max(found.residuals) < 1e-9


def wired(rng):
    """Return a network whose units read few of many copies of the same three functions."""
    rows = rng.standard_normal((3, 3))[np.repeat([0, 1, 2], 6)]
    layers, n = [(rows[:, :2], rows[:, 2])], 18
    for m in (12, 8):
        W = np.zeros((m, n))
        for row in W:
            row[rng.choice(n, 2, replace=False)] = rng.choice([-1.0, 1.0], 2)
        layers.append((W, np.full(m, 0.25)))
        n = m
    return ReluNetwork.from_layers([*layers, (rng.standard_normal((1, n)), [0])])


def test_copies_of_few_functions_are_told_apart_by_who_reads_them():
    """By rows, and what units feed in no order, 24 of these are found."""
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        net = wired(rng)
        found += match(apply(random_symmetry(net, seed=rng), net), net).matched
    assert found >= 36


def test_zero_units_do_not_disturb():
    rng = np.random.default_rng(3)
    net = random_net(rng, [5, 8, 6, 2])
    layers = [(W.copy(), b.copy()) for W, b in net.layers]
    layers[0][0][[2, 5]] = 0.0
    layers[0][1][[2, 5]] = 0.0
    layers[1][0][:, [2, 5]] = 0.0
    net = ReluNetwork.from_layers(layers)
    assert match(net, apply(random_symmetry(net, seed=1), net)).matched


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_quantised_copies_keep_their_pairing(dtype):
    rng = np.random.default_rng(0)
    net = random_net(rng, [30, 60, 50, 5])
    symmetry = random_symmetry(net, seed=1)
    copy = apply(symmetry, net)
    rounded = ReluNetwork.from_layers([(W.astype(dtype), b.astype(dtype)) for W, b in copy.layers])
    found = match(net, rounded)
    for ours, sampled in zip(found.symmetry.permutations, inverse(symmetry).permutations, strict=True):
        np.testing.assert_array_equal(ours, sampled)
    assert 0 < max(found.residuals) < 4 * np.finfo(dtype).eps


def test_a_changed_bias_changes_nothing_else():
    rng = np.random.default_rng(0)
    net = random_net(rng, [6, 10, 8, 3])
    layers = [(W, b.copy()) for W, b in net.layers]
    layers[0][1][4] += 1e-4
    found = match(net, ReluNetwork.from_layers(layers))
    assert list(found.changes) == [0]
    assert not found.changes[0].moves_weights and np.count_nonzero(found.changes[0].bias) == 1


@pytest.mark.parametrize("std", [5.0, 100.0])
def test_scales_far_apart(std):
    rng = np.random.default_rng(0)
    net = random_net(rng, [6, 30, 20, 3])
    symmetry = random_symmetry(net, std, seed=1)
    found = match(apply(symmetry, net), net)
    assert found.matched and max(found.residuals) < 1e-10
    for ours, sampled in zip(found.symmetry.permutations, symmetry.permutations, strict=True):
        np.testing.assert_array_equal(ours, sampled)


def test_sparse_against_dense():
    rng = np.random.default_rng(0)
    net = random_net(rng, [6, 30, 20, 3], sparse=True)
    full = ReluNetwork.from_layers([(W.toarray(), b) for W, b in net.layers])
    for pair in ((net, full), (full, net)):
        assert match(*pair).matched and not match(*pair).changes


def test_large_sparse_layers_in_the_same_order_are_fast():
    rng = np.random.default_rng(0)
    W = sp.random_array((4096, 3072), density=0.01, rng=rng, format="csr")
    V = sp.random_array((2048, 4096), density=0.01, rng=rng, format="csr")
    net = ReluNetwork.from_layers(
        [(W, np.ones(4096)), (V, np.ones(2048)), (np.ones((10, 2048)), np.zeros(10))]
    )
    start = time.process_time()
    found = match(net, changed(net, rng, 1e-7))
    assert found.matched and time.process_time() - start < 5.0
    assert all((p == np.arange(len(p))).all() for p in found.symmetry.permutations)


def test_weights_near_the_end_of_float64_do_not_crash():
    for size in (1e308, 1e-300):
        net = ReluNetwork.from_layers([([[size, size], [size, -size]], [0, 1]), ([[1.0, 1.0]], [0])])
        copy = ReluNetwork.from_layers([([[size, -size], [size, size]], [1, 0]), ([[1.0, 1.0]], [0])])
        found = match(net, copy)
        assert found.symmetry is not None and found.matched


def test_bad_tolerance():
    net = random_net(np.random.default_rng(0), [2, 3, 1])
    with pytest.raises(ValueError, match="rtol must be a number of at least 0; got -1"):
        match(net, net, rtol=-1.0)


def test_a_late_match_gives_up():
    rng = np.random.default_rng(0)
    a = random_net(rng, [3, 8, 8, 2])
    with pytest.raises(TimeoutError, match="no time left"):
        match(a, apply(random_symmetry(a), a), deadline=Deadline.after(0))
    one, other = random_net(rng, [1, 3000, 1]), random_net(rng, [1, 3000, 1])
    began = time.process_time()
    with pytest.raises(TimeoutError, match="no time left"):  # an assignment of 3000 units takes seconds
        match(one, other, deadline=Deadline.after(0.5))
    assert time.process_time() - began < 2.0
