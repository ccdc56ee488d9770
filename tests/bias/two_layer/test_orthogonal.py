"""Orthogonal separability against the definition, its invariances, layers, and class margins."""

import numpy as np
import pytest

from pindown.bias import orthogonal_separability
from pindown.bias.two_layer import class_margins, layer_separability
from pindown.datasets.synthetic import orthogonally_separable
from pindown.network import ReluNetwork


def by_definition(X, y):
    return all(
        (X[i] @ X[j] > 0) if y[i] == y[j] else (X[i] @ X[j] <= 0)
        for i in range(len(X))
        for j in range(len(X))
    )


@pytest.mark.parametrize("seed", range(30))
def test_against_the_definition(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-2, 3, (4, 3)).astype(float), rng.choice([-1, 1], 4)
    found = orthogonal_separability(X, y)
    assert found.ok == by_definition(X, y)
    same = [X[i] @ X[j] for i in range(4) for j in range(4) if y[i] == y[j]]
    cross = [X[i] @ X[j] for i in range(4) for j in range(4) if y[i] != y[j]]
    assert found.min_same == min(same) and found.max_cross == max(cross, default=-np.inf)
    assert found.same_violations == pytest.approx(np.mean([value <= 0 for value in same]))
    assert found.cross_violations == pytest.approx(np.mean([v > 0 for v in cross]) if cross else 0.0)
    assert found.violations == max(found.same_violations, found.cross_violations)


def test_the_published_data_pass_and_a_shift_fails():
    X, y = orthogonally_separable()
    found = orthogonal_separability(X, y)
    assert found.ok and 1 < found.min_same < 5 and -6 < found.max_cross < -1
    assert not orthogonal_separability(X + 10, y)
    assert (
        found.cross.shape == (5000,) and (found.within_positive > 0).all() and (found.cross <= 0).all()
    )


def test_rotation_and_lengths_do_not_matter():
    X, y = orthogonally_separable(60, n_features=4)
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    lengths = rng.uniform(1e-6, 1e6, (60, 1))
    assert orthogonal_separability(lengths * (X @ Q.T), y).ok


def test_opposite_orthants_are_not_needed():
    """The text says that the classes lie in opposite orthants; these vectors fit into none, in any "
    "basis."""
    # Five vectors around an axis of a cone with a half-angle just below 45 degrees: all pairs are acute.
    angles = np.arange(5) * 2 * np.pi / 5
    cone = np.stack([np.cos(angles), np.sin(angles), np.full(5, 1.02)], axis=1)
    assert orthogonal_separability(cone, np.ones(5)).ok
    # An orthant of R^3 is a cone of three orthonormal vectors: the Gram matrix would be B B^T with B >=
    # 0 in three columns. A random search over rotations finds none.
    rng = np.random.default_rng(0)
    rotations = np.linalg.qr(rng.standard_normal((20_000, 3, 3)))[0]
    assert (
        not (np.abs(np.sign(np.einsum("nij,kj->nki", rotations, cone)).sum(axis=1)) == 5)
        .all(axis=1)
        .any()
    )


def test_special_cases():
    assert orthogonal_separability([[1.0, 0.0]], [1]).ok
    assert not orthogonal_separability([[0.0, 0.0]], [1]).ok
    assert orthogonal_separability(
        [[1.0, 0.0], [0.0, 1.0]], [1, -1]
    ).ok  # orthogonal is allowed between classes
    assert not orthogonal_separability([[1.0, 0.0], [0.0, 1.0]], [1, 1]).ok
    with pytest.raises(ValueError, match="NaN"):
        orthogonal_separability([[np.nan]], [1])
    with pytest.raises(ValueError, match="at most two classes"):
        orthogonal_separability([[1.0], [1.0], [1.0]], [0, 1, 2])
    with pytest.raises(ValueError, match="max_samples"):
        orthogonal_separability([[1.0]], [1], max_samples=0)


def test_drawn_samples_are_an_estimate():
    X, y = orthogonally_separable(100, n_features=4)
    assert orthogonal_separability(X, y, max_samples=20).kind == "estimate"
    assert orthogonal_separability(X, y).kind == "exact"
    net = ReluNetwork.from_layers([(np.eye(4), np.zeros(4)), (np.ones((1, 4)), np.zeros(1))])
    for most, kind in ((20, "estimate"), (None, "exact")):
        found = layer_separability(net, X, y, max_samples=most)
        assert {part.kind for part in found.values()} == {kind}


def test_layers_of_a_network_and_of_its_module_agree():
    rng = np.random.default_rng(0)
    layers = [
        (rng.standard_normal((5, 4)), rng.standard_normal(5)),
        (rng.standard_normal((3, 5)), np.zeros(3)),
    ]
    net = ReluNetwork.from_layers([*layers, (rng.standard_normal((1, 3)), np.zeros(1))])
    X, y = orthogonally_separable(40, n_features=4)
    ours, theirs = layer_separability(net, X, y), layer_separability(net.to_torch(), X, y)
    assert list(ours) == ["input", "layer 1", "layer 2"]
    for mine, other in zip(ours.values(), theirs.values(), strict=True):
        assert mine.min_same == pytest.approx(other.min_same, rel=1e-5)
        assert mine.max_cross == pytest.approx(other.max_cross, rel=1e-5)
    z = X @ layers[0][0].T + layers[0][1]  # before the ReLU
    assert ours["layer 1"].max_cross == pytest.approx((z[y > 0] @ z[y < 0].T).max())
    with pytest.raises(TypeError, match="torch module"):
        layer_separability("model", X, y)


def test_class_margins_on_orthogonally_separable_data():
    X, y = orthogonally_separable()
    found = class_margins(X, y)
    for sign, part in ((1, found.positive), (-1, found.negative)):
        assert (X[y == sign] @ part.w).min() == pytest.approx(1, abs=1e-10)
        assert (X[y != sign] @ part.w).max() <= 0
        assert part.w == pytest.approx(found.alpha[y == sign] @ X[y == sign], abs=1e-10)
        assert np.abs(found.alpha[y == sign] * (X[y == sign] @ part.w - 1)).max() < 1e-10
        assert (y[part.support] == sign).all()
    assert -0.95 < found.positive.direction @ found.negative.direction < -0.75


def test_the_support_of_the_published_data_does_not_span_the_space():
    """The theorem assumes it, its own experiment does not meet it."""
    X, y = orthogonally_separable()
    found = class_margins(X, y)
    assert found.spans == (False, False)
    assert len(found.positive.support) < 20 and len(found.negative.support) < 20


def test_products_with_the_own_class_are_positive_for_both_vectors():
    """Equation B.50 prints y_i (w_- x_i) > 0 for negative samples; the factor y_i turns it round."""
    X, y = orthogonally_separable(100, n_features=6)
    w = class_margins(X, y).negative.w
    own = X[y < 0] @ w
    assert (own > 0).all() and not (y[y < 0] * own > 0).any()


def test_a_class_around_zero_is_refused():
    with pytest.raises(ValueError, match="convex hull of the negative samples") as caught:
        class_margins([[1.0], [-1.0], [2.0]], [1, -1, -1])
    assert caught.value.weights[0] == 0 and caught.value.weights.sum() == pytest.approx(1)
    assert class_margins([[1.0]], [1]).negative is None


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_signs_of_inner_products_at_every_scale(scale):
    X, y = np.array([[1.0, 0.5], [0.5, 1.0], [-1.0, -2.0]]), [1, 1, -1]
    found = orthogonal_separability(scale * X, y)
    assert found.ok and found.min_same_cosine == pytest.approx(0.8)
    near = orthogonal_separability(scale**0.5 * X, y)  # whose products are floats
    assert near.min_same == pytest.approx(scale) and near.max_cross == pytest.approx(-2 * scale)
    assert near.cross == pytest.approx([-2 * scale, -2.5 * scale])
    assert not orthogonal_separability(scale * np.abs(X), y).ok
