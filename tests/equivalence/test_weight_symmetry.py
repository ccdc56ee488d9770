"""Symmetries form a group that leaves the function alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from pindown import ReluNetwork
from pindown.affine import dense
from pindown.equivalence.weight_symmetry import (
    Symmetry,
    apply,
    compose,
    identity,
    inverse,
    random_symmetry,
)
from tests.equivalence.nets import random_net


def as_matrices(symmetry):
    """Return T = M P of every hidden layer as a dense matrix."""
    pairs = zip(symmetry.permutations, symmetry.scales, strict=True)
    return [np.diag(m) @ np.eye(len(p))[p] for p, m in pairs]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_apply_is_the_matrix_formula(seed, sparse):
    rng = np.random.default_rng(seed)
    net = random_net(rng, sparse=sparse)
    symmetry = random_symmetry(net, seed=rng)
    T = [np.eye(net.in_features), *as_matrices(symmetry), np.eye(net.out_features)]
    copy = apply(symmetry, net)
    for (W, b), (V, c), left, right in zip(net.layers, copy.layers, T[1:], T[:-1], strict=True):
        np.testing.assert_allclose(
            dense(V), left @ dense(W) @ np.linalg.inv(right), rtol=1e-12, atol=1e-13
        )
        np.testing.assert_allclose(c, left @ b, rtol=1e-12)
        assert sp.issparse(V) == sp.issparse(W)


@pytest.mark.parametrize("std", [0.0, 1.0, 3.0])
def test_the_function_stays(std):
    rng = np.random.default_rng(1)
    net = random_net(rng, [6, 20, 15, 10, 3])
    copy = apply(random_symmetry(net, std, seed=2), net)
    X = rng.standard_normal((10_000, 6))
    np.testing.assert_allclose(copy(X), net(X), rtol=0, atol=1e-10 * np.abs(net(X)).max())


def test_powers_of_two_change_no_value_at_all():
    rng = np.random.default_rng(2)
    net = random_net(rng, [3, 5, 4, 2])
    symmetry = Symmetry(
        [rng.permutation(5), rng.permutation(4)], [2.0 ** rng.integers(-9, 9, n) for n in (5, 4)]
    )
    copy = apply(symmetry, net)
    assert apply(inverse(symmetry), copy) == net
    x = rng.standard_normal(3)
    assert net.as_fractions()(x) == copy.as_fractions()(x)


@pytest.mark.parametrize("seed", range(10))
def test_group_laws(seed):
    rng = np.random.default_rng(seed)
    net = random_net(rng)
    s, t = random_symmetry(net, seed=rng), random_symmetry(net, seed=rng)
    for ours, second, first in zip(*map(as_matrices, (compose(t, s), t, s)), strict=True):
        np.testing.assert_allclose(ours, second @ first, rtol=1e-14)
    for ours, there in zip(as_matrices(inverse(s)), as_matrices(s), strict=True):
        np.testing.assert_allclose(ours @ there, np.eye(len(ours)), atol=1e-14)
    back = apply(inverse(s), apply(s, net))
    for (W, b), (V, c) in zip(net.layers, back.layers, strict=True):
        np.testing.assert_allclose(W, V, rtol=1e-14)
        np.testing.assert_allclose(b, c, rtol=1e-14)
    assert apply(identity(net), net) == net


def test_scales_are_capped():
    net = random_net(np.random.default_rng(0), [2, 400, 1])
    m = random_symmetry(net, log_scale_std=100.0).scales[0]
    assert np.exp(-20.0) * 0.999 <= m.min() and m.max() <= np.exp(20.0) * 1.001 and m.max() > 1e8


def test_equal_and_hash():
    net = random_net(np.random.default_rng(0), [2, 4, 1])
    assert random_symmetry(net, seed=3) == random_symmetry(net, seed=3)
    assert hash(random_symmetry(net, seed=3)) == hash(random_symmetry(net, seed=3))
    assert random_symmetry(net, seed=3) != random_symmetry(net, seed=4)


@pytest.mark.parametrize(
    ("permutations", "scales", "message"),
    [
        ([[0, 1]], [], "one permutation and one set of scales"),
        ([[0, 0]], [[1.0, 1.0]], "not a permutation"),
        ([[0, 1]], [[1.0]], "one entry per unit"),
        ([[0, 1]], [[1.0, -1.0]], "positive and finite"),
        ([[0, 1]], [[1.0, np.nan]], "positive and finite"),
    ],
)
def test_bad_symmetries_are_refused(permutations, scales, message):
    with pytest.raises(ValueError, match=message):
        Symmetry(permutations, scales)


def test_bad_use_is_refused():
    net = random_net(np.random.default_rng(0), [2, 4, 1])
    other = random_net(np.random.default_rng(0), [2, 5, 1])
    with pytest.raises(ValueError, match="hidden widths"):
        apply(identity(other), net)
    with pytest.raises(ValueError, match="hidden widths"):
        compose(identity(other), identity(net))
    with pytest.raises(ValueError, match="log_scale_std"):
        random_symmetry(net, -1.0)
    huge = ReluNetwork.from_layers([([[1e300]], [0]), ([[1.0]], [0])])
    with pytest.raises(ValueError, match="finite"):
        apply(Symmetry([[0]], [[1e20]]), huge)
