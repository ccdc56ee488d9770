"""Hand-made relations are found, and nothing else is."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from pindown import ReluNetwork
from pindown.equivalence import unit_relations
from pindown.equivalence.related_units import _same_products


def layer_of(W, b, out=None):
    W = np.asarray(W, dtype=float)
    out = np.ones((1, len(W))) if out is None else out
    return unit_relations(ReluNetwork.from_layers([(W, b), (out, np.zeros(len(out)))]))[0]


def planted(rng, as_matrix=np.asarray):
    """Return a layer of 60 random units with every relation planted."""
    W, b = rng.standard_normal((60, 40)).astype(np.float32).astype(float), rng.standard_normal(60)
    W *= rng.random(W.shape) < 0.3
    W[7], b[7] = W[3], b[3]  # duplicate
    W[20], b[20] = 4 * W[3], 4 * b[3]  # proportional
    W[30], b[30] = -2 * W[5], -2 * b[5]  # opposite
    W[41] = 0.0  # constant
    W[50], b[50] = np.float32(0.3) * W[9] * (1 + 3e-8), np.float32(0.3) * b[9]  # to rounding
    out = rng.standard_normal((4, 60))
    out[:, 11] = 0.0  # unused
    return ReluNetwork.from_layers([(as_matrix(W), b), (out, np.zeros(4))])


@pytest.mark.parametrize("as_matrix", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("seed", range(5))
def test_planted_relations_are_found_and_nothing_else(seed, as_matrix):
    (layer,) = unit_relations(planted(np.random.default_rng(seed), as_matrix))
    assert layer.constant == (41,) and layer.unused == (11,)
    groups = {group.units: group for group in layer.parallel}
    assert set(groups) == {(3, 7, 20), (5, 30), (9, 50)}
    assert groups[3, 7, 20].factors == (1.0, 1.0, 4.0) and all(groups[3, 7, 20].exact)
    assert groups[5, 30].factors == (1.0, -2.0) and all(groups[5, 30].exact)
    assert groups[9, 50].exact == (True, False)
    assert groups[9, 50].factors[1] == pytest.approx(0.3, rel=1e-6)
    assert layer.redundant == (7, 11, 20, 41)
    assert [layer.count(k, exact=True) for k in ("duplicate", "proportional", "opposite")] == [1, 1, 1]
    assert layer.count("proportional", exact=False) == 1


def test_removing_redundant_units_leaves_the_function():
    rng = np.random.default_rng(0)
    net = planted(rng)
    (W, b), (V, c) = net.layers
    V, c = V.copy(), c.copy()
    V[:, 3] += V[:, 7] + 4 * V[:, 20]
    c += V[:, 41] * max(b[41], 0.0)
    keep = np.setdiff1d(np.arange(60), unit_relations(net)[0].redundant)
    small = ReluNetwork.from_layers([(W[keep], b[keep]), (V[:, keep], c)])
    X = rng.standard_normal((50, 40))
    np.testing.assert_allclose(net(X), small(X), rtol=1e-12, atol=1e-12)


def test_an_unused_unit_does_not_take_over_its_duplicate():
    layer = layer_of([[1, 2], [1, 2], [1, 2]], [3, 3, 3], out=np.array([[0.0, 1.0, 1.0]]))
    assert layer.unused == (0,) and layer.redundant == (0, 2)


def test_bias_counts():
    assert layer_of([[1, 2], [1, 2]], [0, 1]).parallel == ()
    assert layer_of([[1, 2], [2, 4]], [1, 1]).parallel == ()
    assert len(layer_of([[1, 2], [2, 4]], [1, 2]).parallel) == 1


def test_near_is_not_exact_and_far_is_nothing():
    near = layer_of([[1, 2], [1, 2 + 1e-15]], [3, 3]).parallel[0]
    assert near.exact == (True, False) and near.mergeable() == ()
    assert layer_of([[1, 2], [1, 2 + 1e-4]], [3, 3]).parallel == ()


def test_exact_products_are_told_from_rounded_ones():
    a = np.array([1 + 2.0**-52, 3.0])
    assert _same_products(a, 7.0, 7.0 * np.array([1.0, 3.0]) * 0 + a, 7.0)
    third = 1.0 / 3.0  # 3 * third rounds to 1 but is not 1
    assert 3.0 * third == 1.0 and not _same_products(np.array([third]), 3.0, np.array([1.0]), 1.0)


def test_permuting_units_permutes_the_answer():
    rng = np.random.default_rng(0)
    net = planted(rng)
    order = rng.permutation(60)
    (W, b), (V, c) = net.layers
    moved = unit_relations(ReluNetwork.from_layers([(W[order], b[order]), (V[:, order], c)]))[0]
    original = unit_relations(net)[0]
    back = {frozenset(order[list(group.units)].tolist()) for group in moved.parallel}
    assert back == {frozenset(group.units) for group in original.parallel}
    assert len(moved.redundant) == len(original.redundant)


def test_many_equal_and_many_different_units_are_fast():
    rng = np.random.default_rng(0)
    different, equal = rng.standard_normal((4000, 50)), np.ones((4000, 50))
    start = time.process_time()
    assert layer_of(different, np.zeros(4000)).parallel == ()
    assert len(layer_of(equal, np.zeros(4000)).parallel[0].units) == 4000
    assert time.process_time() - start < 5.0


def test_affine_network_has_no_hidden_layer():
    assert unit_relations(ReluNetwork.from_layers([(np.eye(2), [0, 0])])) == ()


@pytest.mark.parametrize("scale", [1e-323, 1e-200, 1e-160, 1.0, 1e160, 1e200])
def test_relations_at_the_ends_of_float64(scale):
    rows = scale * np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0], [-2.0, -4.0]])
    layer = layer_of(rows, np.zeros(4))
    assert [group.units for group in layer.parallel] == [(0, 2, 3)]
    assert layer.parallel[0].factors == (1.0, 1.0, -2.0) and all(layer.parallel[0].exact)
    assert layer.redundant == (2,)


@pytest.mark.parametrize("as_matrix", [np.asarray, sp.csr_array])
def test_multiples_across_scales_are_found(as_matrix):
    t = np.array([1.0, 2.0**600, -(2.0**-600), 2.0**-600])
    W, b = t[:, None] * np.array([1.0, 3.0]), t
    net = ReluNetwork.from_layers([(as_matrix(W), b), (np.ones((1, 4)), [0])])
    (group,) = unit_relations(net)[0].parallel
    assert all(group.exact) and group.factors == tuple(t)
    tiny_and_huge = layer_of([[1e-200, 0], [1e200, 0], [-1e200, 0]], np.zeros(3))
    assert tiny_and_huge.redundant == (1,)  # the factors leave float64, their signs do not


def test_exact_duplicates_are_found_beside_a_near_one():
    layer = layer_of([[1 + 1e-8, 2], [1, 2], [1, 2]], [3, 3, 3])
    assert layer.redundant == (2,)
    assert [layer.count("duplicate", exact=e) for e in (True, False)] == [1, 1]


def test_many_units_that_hand_values_through_keep_to_the_budget():
    net = ReluNetwork.from_layers(
        [(sp.eye_array(30_000, format="csr"), np.zeros(30_000)), (np.ones((1, 30_000)), [0])]
    )
    start = time.process_time()
    assert unit_relations(net)[0].parallel == ()
    assert time.process_time() - start < 10.0
    with pytest.raises(TimeoutError):
        unit_relations(
            ReluNetwork.from_layers([(np.ones((50, 2)), np.ones(50)), (np.ones((1, 50)), [0])]), budget=0
        )
