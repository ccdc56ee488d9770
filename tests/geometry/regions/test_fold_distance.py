"""Distances to the nearest fold against half-spaces and against walking there."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from pindown import ReluNetwork
from pindown.geometry.regions import fold_distance
from pindown.geometry.regions.fold_distance import distance_to_nearest_fold
from pindown.geometry.regions.point_location import unit_forms


def random_net(rng, widths):
    return ReluNetwork.from_layers(
        [
            (rng.standard_normal((m, n)) / np.sqrt(n), rng.standard_normal(m) / 3)
            for n, m in pairwise(widths)
        ]
    )


def by_forms(net, x):
    G, g = unit_forms(net, net.pattern(x))
    lengths = np.linalg.norm(G, axis=1)
    gaps = np.where(lengths > 0, np.abs(G @ x + g) / np.where(lengths > 0, lengths, 1), np.inf)
    return gaps.min(), int(gaps.argmin())


@pytest.mark.parametrize(
    "widths", [(2, 5, 3, 1), (1, 4, 4, 1), (30, 7, 6, 5, 2), (9, 80, 70, 2), (3, 4, 1)]
)
def test_distance_is_that_to_the_nearest_zero_set(widths):
    rng = np.random.default_rng(0)
    net, X = random_net(rng, widths), rng.standard_normal((40, widths[0]))
    found = distance_to_nearest_fold(net, X)
    expected = [by_forms(net, x) for x in X]
    np.testing.assert_allclose(found.distance, [gap for gap, _ in expected], rtol=1e-9)
    assert found.label.tolist() == [unit for _, unit in expected]


def test_the_pattern_is_constant_within_and_changes_at_the_distance():
    rng = np.random.default_rng(1)
    net, X = random_net(rng, (4, 12, 9, 1)), rng.standard_normal((30, 4))
    found = distance_to_nearest_fold(net, X)
    for x, gap, unit in zip(X, found.distance, found.label, strict=True):
        G, g = unit_forms(net, net.pattern(x))
        step = -np.sign(G[unit] @ x + g[unit]) * G[unit] / np.linalg.norm(G[unit])
        assert (net.pattern(x + 0.999999 * gap * step) == net.pattern(x)).all()
        assert net.pattern(x + 1.000001 * gap * step)[unit] != net.pattern(x)[unit]
        U = rng.standard_normal((50, 4))
        inside = x + 0.999 * gap * U / np.linalg.norm(U, axis=1, keepdims=True)
        assert (net.pattern(inside) == net.pattern(x)).all()


def test_sides_of_the_box_count_when_asked():
    net = ReluNetwork.from_layers([([[1.0, 0.0]], [0]), ([[1.0]], [0])])
    X = [[0.5, 0.0], [0.9, 0.0], [0.5, -0.8]]
    found = distance_to_nearest_fold(net, X, (-1, 1))
    np.testing.assert_allclose(found.distance, [0.5, 0.1, 0.2])
    assert found.label.tolist() == [0, 2, 3]
    with pytest.raises(ValueError, match="1 of 2 inputs lie outside"):
        distance_to_nearest_fold(net, [[0.0, 0.0], [2.0, 0.0]], (-1, 1))


def test_units_that_never_move_have_no_fold():
    dead = ReluNetwork.from_layers([([[0.1], [0.3]], [0, 0]), ([[3.0, -1.0]], [1]), ([[1.0]], [0])])
    found = distance_to_nearest_fold(dead, [[2.0]])  # 3 * 0.1 - 0.3 is rounding, not a slope
    assert found.label.tolist() == [0] and found.distance[0] == pytest.approx(2)
    affine = distance_to_nearest_fold(ReluNetwork.from_layers([([[1.0]], [0])]), [[1.0], [2.0]])
    assert np.isinf(affine.distance).all() and affine.label.tolist() == [-1, -1]
    zero = ReluNetwork.from_layers([([[0.0]], [1]), ([[1.0]], [0])])
    assert np.isinf(distance_to_nearest_fold(zero, [1.0]).distance).all()


def test_on_a_fold_and_without_inputs():
    net = ReluNetwork.from_layers([([[1.0, 1.0]], [-1]), ([[1.0]], [0])])
    assert distance_to_nearest_fold(net, [[0.5, 0.5]]).distance.tolist() == [0]
    assert repr(distance_to_nearest_fold(net, np.zeros((0, 2)))) == "FoldDistances(0 inputs)"


def test_small_blocks_and_sparse_layers_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    W = sp.random_array((300, 250), density=0.02, rng=rng, format="csr")
    rest = [(rng.standard_normal((5, 300)), rng.standard_normal(5)), (np.ones((1, 5)), [0])]
    X = rng.standard_normal((7, 250))
    whole = distance_to_nearest_fold(ReluNetwork.from_layers([(W.toarray(), np.ones(300)), *rest]), X)
    monkeypatch.setattr(fold_distance, "GRADIENT_NUMBERS_PER_BLOCK", 1)
    sparse = ReluNetwork.from_layers([(W, np.ones(300)), *rest])
    assert sp.issparse(sparse.layers[0].weight)
    found = distance_to_nearest_fold(sparse, X)
    np.testing.assert_allclose(found.distance, whole.distance, rtol=1e-9)
