"""The network value: evaluation, patterns, local maps, truncation and refusal of bad input."""

import copy
import pickle
import tracemalloc
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from pindown import ReluNetwork


def random_network(widths, seed=0, sparse=False):
    rng = np.random.default_rng(seed)
    layers = []
    for i, o in pairwise(widths):
        W = rng.normal(size=(o, i)) / np.sqrt(i)
        layers.append(
            (sp.csr_array(W * (rng.random(W.shape) < 0.5)) if sparse else W, rng.normal(size=o))
        )
    return ReluNetwork.from_layers(layers)


def plainly(net, x):
    """Evaluate by the definition, with nothing shared with the implementation."""
    for W, b in net.layers[:-1]:
        x = np.array([max(0.0, v) for v in W @ x + b])
    W, b = net.layers[-1]
    return W @ x + b


widths = st.lists(st.integers(1, 6), min_size=2, max_size=6)


@given(widths, st.integers(0, 999), st.booleans())
def test_evaluation_follows_the_definition(shape, seed, sparse):
    net = random_network(shape, seed, sparse)
    X = np.random.default_rng(seed).normal(size=(7, shape[0]))
    np.testing.assert_allclose(net(X), [plainly(net, x) for x in X], atol=1e-12)
    np.testing.assert_allclose(net(X[0]), plainly(net, X[0]), atol=1e-12)


@given(widths, st.integers(0, 999), st.booleans())
def test_the_local_map_is_the_network_on_the_pattern(shape, seed, sparse):
    net = random_network(shape, seed, sparse)
    X = np.random.default_rng(seed).normal(size=(5, shape[0]))
    A, c = net.local_affine(X)
    np.testing.assert_allclose(np.einsum("nkd,nd->nk", A, X) + c, net(X), rtol=1e-12, atol=1e-12)
    one_A, one_c = net.local_affine(X[2])
    np.testing.assert_allclose(one_A, A[2], atol=1e-14)
    np.testing.assert_allclose(one_c, c[2], atol=1e-14)
    # The map is the derivative where the network is smooth: compare a step that keeps the pattern.
    step = 1e-7 * np.random.default_rng(seed + 1).normal(size=shape[0])
    if np.array_equal(net.pattern(X[0] + step), net.pattern(X[0])):
        np.testing.assert_allclose(net(X[0] + step) - net(X[0]), A[0] @ step, atol=1e-12)


@given(widths, st.integers(0, 999))
def test_rational_evaluation_agrees_and_is_exact(shape, seed):
    net = random_network(shape, seed)
    exact = net.as_fractions()
    x = np.random.default_rng(seed).normal(size=shape[0])
    value = exact(x)
    assert all(isinstance(v, Fraction) for v in value)
    np.testing.assert_allclose(np.array(value, float), net(x), rtol=1e-12, atol=1e-12)
    A, c = exact.local_affine(x)
    assert list(A @ np.array([Fraction(v) for v in x], dtype=object) + c) == value
    np.testing.assert_array_equal(exact.pattern(x), net.pattern(x))
    assert exact.to_network() == net


def test_counts_follow_the_conventions():
    net = random_network((3, 5, 4, 2))
    assert (net.widths, net.hidden_widths) == ((3, 5, 4, 2), (5, 4))
    assert (net.depth, net.size) == (3, 9)
    assert (net.in_features, net.out_features) == (3, 2)
    assert net.n_parameters == 3 * 5 + 5 + 5 * 4 + 4 + 4 * 2 + 2
    assert repr(net) == "ReluNetwork(3 -> 5 -> 4 -> 2, 54 parameters)"


def test_patterns_count_zero_as_on_and_split_by_layer():
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [-1]), ([[1.0]], [0])])
    assert net.pattern([0.0]).tolist() == [True, True, False]
    assert net.pattern([[2.0], [-0.5]]).tolist() == [[True, False, True], [False, True, False]]
    first, second = net.by_layer(net.preactivations([[2.0], [-0.5]]))
    assert first.tolist() == [[2, -2], [-0.5, 0.5]]
    assert second.tolist() == [[1], [-0.5]]


def test_rational_patterns_count_zero_as_on():
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    assert net.as_fractions().pattern([0]).tolist() == net.pattern([0.0]).tolist() == [True, True]
    A, c = net.as_fractions().local_affine([0])
    assert (A.tolist(), c.tolist()) == ([[0]], [0])


def test_a_factor_multiplies_weights_and_offsets():
    net = random_network((3, 5, 4, 2))
    X = np.random.default_rng(1).normal(size=(20, 3))
    np.testing.assert_allclose((-2.5 * net)(X), -2.5 * net(X), rtol=1e-12)
    np.testing.assert_allclose((-net)(X), -net(X), rtol=1e-12)


def test_fingerprints_see_where_numbers_are():
    """A permutation has the same numbers, biases and shape; only the places differ."""
    first, second = (ReluNetwork.from_layers([(np.eye(3)[p], [0] * 3)]) for p in ([0, 1, 2], [1, 0, 2]))
    assert first.fingerprint != second.fingerprint and first != second


def test_an_affine_network_has_no_units():
    net = random_network((3, 2))
    assert net.size == 0
    assert net.pattern(np.ones((4, 3))).shape == (4, 0)
    assert net.by_layer(net.pattern(np.ones(3))) == []


def test_truncation_gives_the_preactivations():
    net = random_network((3, 5, 4, 2))
    X = np.random.default_rng(0).normal(size=(6, 3))
    z = net.trace(X)
    for level in range(1, 4):
        np.testing.assert_allclose(net[:level](X), z[level - 1], atol=1e-12)
    np.testing.assert_allclose(net[1:](np.maximum(z[0], 0)), net(X), atol=1e-12)
    with pytest.raises(TypeError, match="slices"):
        net[0]
    with pytest.raises(ValueError, match="at least one"):
        net[2:2]


def test_chunks_do_not_change_the_answer(monkeypatch):
    net = random_network((3, 9, 9, 2), sparse=True)
    X = np.random.default_rng(0).normal(size=(1000, 3))
    whole = net(X)
    monkeypatch.setattr("pindown.network._CHUNK_ROWS", 7)
    np.testing.assert_allclose(net(X), whole, atol=1e-13)
    assert [part.stop - part.start for part in net.chunks(16)] == [7, 7, 2]
    monkeypatch.setattr("pindown.network._CHUNK_BYTES", 1)
    assert next(net.chunks(5)) == slice(0, 1)


def test_images_are_flattened():
    W = np.arange(12.0).reshape(1, 12)
    net = ReluNetwork.from_layers([(W, [0])], input_shape=(3, 2, 2))
    x = np.random.default_rng(0).normal(size=(3, 2, 2))
    assert net(x).shape == (1,)
    assert net(x[None]).shape == (1, 1)
    np.testing.assert_allclose(net(x), net(x.ravel()), rtol=1e-15)
    assert net(np.zeros((0, 12))).shape == (0, 1)
    with pytest.raises(ValueError, match="another order"):
        net(np.zeros((5, 2, 2, 3)))
    row = ReluNetwork.from_layers([(W, [0])], input_shape=(1, 12))
    assert row(np.ones((1, 12))).shape == (1, 1)  # a batch of one, not one image of one row


def test_a_network_is_a_value():
    W = np.ones((2, 2))
    net = ReluNetwork.from_layers([(W, [0, 0])])
    W[0, 0] = 5
    assert net.layers[0].weight[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        net.layers[0].weight[0, 0] = 2
    with pytest.raises(AttributeError):
        net.layers = ()
    same = ReluNetwork.from_layers([(np.ones((2, 2)), [-0.0, 0])])
    other = ReluNetwork.from_layers([(np.ones((2, 2)), [0, 1e-300])])
    assert net == same
    assert hash(net) == hash(same)
    assert net != other
    sparse = ReluNetwork.from_layers([(sp.csr_array(np.eye(2)), [0, 0])])
    assert sparse == ReluNetwork.from_layers([(np.eye(2), [0, 0])])  # however it is stored
    long = sp.csr_array((np.ones(2), np.arange(2, dtype=np.int64), np.arange(3, dtype=np.int64)))
    assert sparse == ReluNetwork.from_layers([(long, [0, 0])])
    with pytest.raises(ValueError, match="read-only"):
        sparse.layers[0].weight.data[0] = 2


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ([], "at least one affine layer"),
        ([([[1.0, np.nan]], [0])], "layer 1: weight must be finite; 1 of 2"),
        ([([[1.0]], [np.inf])], "bias must be finite"),
        ([([[1.0]], [0, 1])], r"W \(1, 1\) and b \(2,\)"),
        ([([1.0], [0])], "shape"),
        ([(np.zeros((0, 3)), [])], "at least one input and output"),
        ([([[1.0]], [0]), ([[1.0, 2.0]], [0])], "layer 1 gives 1 values, layer 2 takes 2"),
        ([(sp.csr_array(np.array([[np.inf]])), [0])], "weight must be finite"),
    ],
)
def test_bad_layers_are_refused(layers, words):
    with pytest.raises(ValueError, match=words):
        ReluNetwork.from_layers(layers)


def test_other_bad_input_is_refused():
    net = random_network((3, 2, 1))
    with pytest.raises(TypeError, match="real numbers"):
        ReluNetwork.from_layers([([[1j]], [0])])
    with pytest.raises(TypeError, match="real numbers"):
        ReluNetwork.from_layers([([["a"]], [0])])
    with pytest.raises(ValueError, match=r"shape \(n, 3\); got \(5, 2\)"):
        net(np.zeros((5, 2)))
    with pytest.raises(ValueError, match="got \\(\\)"):
        net(1.0)
    with pytest.raises(ValueError, match="1 of 2 rows hold NaN"):
        net([[0, 1, 2], [0, np.nan, 0]])
    with pytest.raises(TypeError, match="real numbers"):
        net([["a", "b", "c"]])
    with pytest.raises(ValueError, match="input_shape"):
        ReluNetwork.from_layers([([[1.0]], [0])], input_shape=(2, 2))
    with pytest.raises(ValueError, match="overflows"):
        ReluNetwork.from_layers([([[1e300]], [0]), ([[1e300]], [0])])([1e10])
    with pytest.raises(ValueError, match="pattern has 2 entries"):
        net.affine_of_pattern(np.ones(3, bool))
    assert net(np.full((2, 3), 1e200)).shape == (2, 1)  # large sums that are finite pass


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_and_pickles_are_equal_and_read_only_too(copied, sparse):
    net = random_network((4, 3, 2), sparse=sparse)
    again = copied(net)
    assert again == net
    W, b = again.layers[0]
    for part in (W.data if sparse else W, b):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 1.0


def test_sparse_entries_that_cancel_are_no_entries():
    twice = sp.csr_array(([1.0, -1.0, 2.0], [0, 0, 1], [0, 3]), shape=(1, 2))
    net = ReluNetwork.from_layers([(twice, [0])])
    assert net == ReluNetwork.from_layers([([[0.0, 2.0]], [0])])
    assert net.n_parameters == 2


def test_numbers_that_are_not_float64_are_refused():
    with pytest.raises(TypeError, match="real numbers"):
        ReluNetwork.from_layers([(sp.csr_array([[1j]]), [0])])
    with pytest.raises(ValueError, match="fit float64"):
        ReluNetwork.from_layers([([[10**400]], [0])])


def test_the_constructor_takes_affine_maps_only():
    net = random_network((3, 2))
    assert ReluNetwork(list(net.layers)).layers == net.layers  # a tuple: nobody can append to it
    with pytest.raises(TypeError, match="from_layers"):
        ReluNetwork([(np.eye(2), np.zeros(2))])
    with pytest.raises(ValueError, match="positive"):
        ReluNetwork(net.layers, input_shape=(-1, -3))


def test_arithmetic_with_anything_else_is_a_type_error():
    net = random_network((2, 2))
    for calculate in (
        lambda: net + 3,
        lambda: net - None,
        lambda: net @ "net",
        lambda: None * net,
    ):
        with pytest.raises(TypeError):
            calculate()


@pytest.mark.parametrize("shape", [(3, 2), (3, 4, 2)])
@pytest.mark.parametrize("sparse", [False, True])
def test_no_rows_have_no_local_maps(shape, sparse):
    A, c = random_network(shape, sparse=sparse).local_affine(np.zeros((0, 3)))
    assert A.shape == (0, 2, 3)
    assert c.shape == (0, 2)


def test_evaluation_memory_does_not_grow_with_the_depth():
    peaks = []
    for depth in (3, 60):
        net = random_network([200] * depth)
        X = np.ones((1000, 200))
        tracemalloc.start()
        net(X)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


def test_a_deep_network_prints_itself_in_a_line():
    text = repr(random_network([1] * 1000))
    assert len(text) < 200
    assert "984 more" in text


def test_fractions_hold_no_integers_that_overflow():
    net = ReluNetwork.from_layers([([[2.0**60]], [0]), ([[2.0**60]], [0])])
    assert net.as_fractions()([np.int64(3)]) == [3 * 2**120]
    assert net.as_fractions()([np.float32(0.5)]) == [2**119]


@pytest.mark.parametrize(
    ("indices", "indptr"),
    [([0, 1], [0, 1000, 0]), ([0, 1], [0, 2, 1]), ([0, 5], [0, 1, 2]), ([0, -1], [0, 1, 2])],
)
def test_damaged_sparse_matrices_are_refused_before_compiled_code_follows_them(indices, indptr):
    W = sp.csr_array((2, 2))
    W.data, W.indices, W.indptr = np.ones(2), np.array(indices), np.array(indptr)
    with pytest.raises(ValueError, match="damaged"):
        ReluNetwork.from_layers([(W, [0, 0])])
