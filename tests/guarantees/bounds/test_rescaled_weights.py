"""Copies compute the same function; bounds of the function do not change with the copy given."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.guarantees.bounds import spectral_margin_bound
from pindown.guarantees.bounds.rescaled_weights import (
    REPRESENTATIVES,
    WeightList,
    homogeneous,
    homogeneous_rows,
    representative,
)


def random_net(rng, widths, biases=True):
    pairs = itertools.pairwise(widths)
    return ReluNetwork.from_layers(
        [(rng.standard_normal((m, n)), biases * rng.standard_normal(m)) for n, m in pairs]
    )


def rescaled(net, rng):
    layers, scale = [], np.ones(net.in_features)
    for i, (W, b) in enumerate(net.layers):
        new = 10 ** rng.uniform(-2, 2, len(b)) if i < net.depth - 1 else np.ones(len(b))
        layers.append((W / scale * new[:, None], b * new))
        scale = new
    return ReluNetwork.from_layers(layers)


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("which", REPRESENTATIVES)
def test_every_copy_is_the_same_function(which, biases):
    rng = np.random.default_rng(0)
    net = random_net(rng, (3, 6, 5, 2), biases)
    X = rng.standard_normal((20, 3))
    copy = representative(homogeneous(net), which)
    np.testing.assert_allclose(copy(homogeneous_rows(net, X)), net(X), atol=1e-12)


def test_equal_norms_and_least_sum_of_squares():
    rng = np.random.default_rng(1)
    weights = homogeneous(random_net(rng, (3, 6, 5, 2), False))
    assert weights.frobenius == pytest.approx(np.linalg.norm(weights.vector))
    norms = representative(weights, "layers").norms
    np.testing.assert_allclose(norms, norms[0], rtol=1e-6)
    noise = [np.sqrt(p) + np.sqrt(q) for p, q in weights.shapes]

    def to_first_order(copy):
        return copy.frobenius * sum(t / s for t, s in zip(noise, copy.norms, strict=True))

    best = to_first_order(representative(weights, "scaled"))
    for _ in range(50):  # no other scaling of layers is better
        c = np.exp(rng.standard_normal(3))
        c /= np.exp(np.mean(np.log(c)))
        other = WeightList("other", tuple(W * x for W, x in zip(weights.matrices, c, strict=True)))
        assert to_first_order(other) >= best * (1 - 1e-6)


def exact_outputs(matrices, x):
    a = [Fraction(float(v)) for v in x]
    for i, W in enumerate(matrices):
        a = [sum(Fraction(float(w)) * v for w, v in zip(row, a, strict=True)) for row in W]
        a = [max(v, 0) for v in a] if i < len(matrices) - 1 else a
    return a


def nearly_orthogonal(rng, scale):
    """Two layers that magnify what the first one loses: its rows cancel on the input."""
    x = rng.standard_normal(3)
    W = rng.standard_normal((4, 3))
    W -= np.outer(W @ x, x) / (x @ x)  # products with x are rounding alone
    return WeightList("given", (np.vstack([W, -W]), scale * rng.standard_normal((2, 8)))), x


def test_rounding_of_every_layer_is_bounded():
    rng, largest = np.random.default_rng(5), 0.0
    for scale in 10.0 ** rng.integers(0, 9, 60):
        net, x = nearly_orthogonal(rng, scale)
        found, bound = net(x[None])[0], float(net.rounding(x[None])[0])
        lost = max(
            abs(a - Fraction(float(b)))
            for a, b in zip(exact_outputs(net.matrices, x), found, strict=True)
        )
        assert lost <= Fraction(bound)
        largest = max(largest, float(lost) / bound)
    assert largest > 0.02  # and the bound is not far from it


def test_bound_does_not_change_with_the_scale_of_units():
    rng = np.random.default_rng(2)
    net = random_net(rng, (4, 8, 3))
    X = rng.standard_normal((200, 4))
    y = net(X).argmax(axis=1)
    other = rescaled(net, rng)
    for variant in ("sharp", "corrected"):
        ours, theirs = (
            spectral_margin_bound(n, X, y, variant=variant, representative="units").formula_value
            for n in (net, other)
        )
        # the scale of the prior is rounded down to a list, which takes up to 4.4 %
        assert theirs == pytest.approx(ours, rel=0.045 if variant == "sharp" else 1e-6)
    given, best = (
        spectral_margin_bound(other, X, y, representative=which).formula_value
        for which in ("given", "best")
    )
    assert best < given / 3  # what the choice of the copy gains on a badly scaled one


def test_printed_form_changes_with_the_scale_of_layers():
    rng = np.random.default_rng(3)
    net = random_net(rng, (4, 8, 3), biases=False)
    X = rng.standard_normal((50, 4))
    y = net(X).argmax(axis=1)
    (W, b), (V, c) = net.layers
    other = ReluNetwork.from_layers([(10 * W, b), (V / 10, c)])
    printed = [
        spectral_margin_bound(n, X, y, variant="as_printed", margin=1.0).formula_value
        for n in (net, other)
    ]
    assert printed[1] > 2 * printed[0]
    corrected = [
        spectral_margin_bound(
            n, X, y, variant="corrected", margin=1.0, representative="layers"
        ).formula_value
        for n in (net, other)
    ]
    assert corrected[1] == pytest.approx(corrected[0], rel=1e-6)


def test_zero_layers_stay():
    weights = WeightList("given", (np.zeros((2, 2)), np.eye(2)))
    assert all(representative(weights, which).matrices == weights.matrices for which in REPRESENTATIVES)


def test_refuses():
    weights = WeightList("given", (np.eye(2), np.eye(2)))
    with pytest.raises(ValueError, match="representative must be"):
        representative(weights, "other")
    with pytest.raises(ValueError, match="has biases"):
        homogeneous(ReluNetwork.from_layers([([[1.0]], [1.0])]), biases=False)
