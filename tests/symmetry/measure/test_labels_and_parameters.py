"""Symmetries of labels, and of parameters: permuted, rescaled and flipped units."""

from itertools import pairwise

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.symmetry import cyclic
from pindown.symmetry.actions import illumination
from pindown.symmetry.measure.labels import LabelSymmetry, is_label_symmetry, label_symmetry
from pindown.symmetry.measure.parameters import (
    canonical_units,
    flip_hidden,
    forward,
    match_units,
    permute_hidden,
    rescale_hidden,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 5))


def layers(widths=(5, 8, 6, 3)):
    return [(RNG.standard_normal((m, n)), RNG.standard_normal(m)) for n, m in pairwise(widths)]


def test_labels_that_no_shift_changes():
    assert is_label_symmetry(lambda X: X.max(axis=1) > 1, cyclic(5), X)
    found = label_symmetry(lambda X: X[:, 0] > 0, cyclic(5), X)
    by_hand = np.mean([(np.roll(X, k, 1)[:, 0] > 0) == (X[:, 0] > 0) for k in range(1, 5)])
    assert found.agreement == pytest.approx(by_hand) and not found.holds
    assert found.per_element[0] == 1.0
    words = label_symmetry(lambda X: np.where(X.sum(axis=1) > 0, "up", "down"), cyclic(5), X)
    assert words.holds and "100.0% of labels" in str(words)


def test_decisions_of_networks_and_classifiers():
    from sklearn.linear_model import LogisticRegression

    net = ReluNetwork.from_layers([(RNG.standard_normal((3, 5)), np.zeros(3))])
    assert label_symmetry(net, illumination([0.5, 2.0]), X).agreement == 1.0  # no bias, no scale
    assert label_symmetry(net, cyclic(5), X).agreement < 1.0
    single = ReluNetwork.from_layers([(np.ones((1, 5)), [0.0])])
    assert label_symmetry(single, illumination([0.5, 2.0]), X).agreement == 1.0  # the sign stays
    model = LogisticRegression().fit(X, np.where(X[:, 0] > 0, "a", "b"))
    assert label_symmetry(model, cyclic(5), X).agreement < 1.0
    with pytest.raises(ValueError, match="one label per sample"):
        label_symmetry(lambda X: [1], cyclic(5), X)


def relu(z):
    return np.maximum(z, 0)


@pytest.mark.parametrize("hidden", [0, 1])
def test_three_symmetries_leave_the_function(hidden):
    net = layers()
    width = len(net[hidden][1])
    order = RNG.permutation(width).tolist()
    for activation in (np.tanh, relu):
        first = forward(net, X, activation)
        moved = permute_hidden(net, hidden, order)
        assert np.abs(forward(moved, X, activation) - first).max() < 1e-12
        assert np.abs(moved[hidden][0] - net[hidden][0]).max() > 0.1
    scaled = rescale_hidden(net, hidden, RNG.uniform(0.1, 10, width))
    assert np.abs(forward(scaled, X, relu) - forward(net, X, relu)).max() < 1e-11
    assert np.abs(forward(scaled, X, np.tanh) - forward(net, X, np.tanh)).max() > 0.01
    flipped = flip_hidden(net, hidden, RNG.choice([-1, 1], width))
    assert np.abs(forward(flipped, X, np.tanh) - forward(net, X, np.tanh)).max() < 1e-12
    assert np.abs(forward(flipped, X, relu) - forward(net, X, relu)).max() > 0.01


def test_renumbered_copies_become_bitwise_equal():
    net = layers()
    copy = permute_hidden(permute_hidden(net, 0, RNG.permutation(8)), 1, RNG.permutation(6))
    for (W, b), (V, c) in zip(canonical_units(net), canonical_units(copy), strict=True):
        assert np.array_equal(W, V) and np.array_equal(b, c)


def test_matching_recovers_planted_orders_under_noise():
    net = layers()
    copy = permute_hidden(permute_hidden(net, 0, RNG.permutation(8)), 1, RNG.permutation(6))
    noisy = [(W + 0.01 * RNG.standard_normal(W.shape), b) for W, b in copy]
    orders = match_units(net, noisy)
    aligned = noisy
    for hidden, order in enumerate(orders):
        aligned = permute_hidden(aligned, hidden, order)
    assert max(np.abs(W - V).max() for (W, _), (V, _) in zip(net, aligned, strict=True)) < 0.06


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net: permute_hidden(net, 2, [0]), "hidden layers are 0 to 1"),
        (lambda net: permute_hidden(net, 0, [0, 0]), "permutation"),
        (lambda net: rescale_hidden(net, 0, [0.0] * 8), "positive"),
        (lambda net: rescale_hidden(net, 0, [1.0]), "one number per unit"),
        (lambda net: flip_hidden(net, 0, [0.5] * 8), "1 or -1"),
        (lambda net: forward([], X), "shapes chain"),
        (lambda net: match_units(net, layers((5, 4, 3))), "same widths"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(layers())


def test_nearly_all_labels_are_not_called_all():
    found = LabelSymmetry(0.9998, np.ones(2), (0, 1), 5000, "C2")
    assert "99.9%" in str(found) and not found.holds
