"""shrink removes what was put in, changes nothing, and says by how much at most."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp

from pindown.box import Box
from pindown.equivalence.shrinking import Shrunk, shrink
from pindown.network import ReluNetwork
from tests.equivalence.shrinking.redundancy import KINDS, dyadic_points, random_net, redundant

LOW, HIGH = -2.0, 2.0
ANYWHERE = [kind for kind in KINDS if kind != "always_on"]  # what can be undone without a box


def check_same_function(result: Shrunk, X, *, relative: bool):
    """The gap seen at the points, in float64, lies within the proved one and rounding of evaluation."""
    before, after = result.original(X), result.network(X)
    size = 1.0 + np.linalg.norm(X, axis=1, keepdims=True) if relative else 1.0
    allowed = result.gap_upper * size + 1e-9 * max(1.0, np.abs(before).max())
    assert np.all(np.abs(before - after) <= allowed)


def check_exactly_same(result: Shrunk, X):
    """With gap 0 the two networks agree in rational arithmetic."""
    assert result.gap_upper == 0.0
    f, g = result.original.as_fractions(), result.network.as_fractions()
    assert all(f(x) == g(x) for x in X)


def check_fixed_point(result: Shrunk, box):
    again = shrink(result.network, box=box, budget=30.0)
    assert again.steps == () and again.network is result.network


def random_case(seed):
    rng = np.random.default_rng(seed)
    hidden = rng.integers(2, 7, rng.integers(1, 4)).tolist()
    widths = [int(rng.integers(1, 5)), *hidden, int(rng.integers(1, 4))]
    return rng, random_net(rng, widths, integers=seed % 2 == 0)


@pytest.mark.parametrize("block", range(4))
def test_what_was_put_in_comes_out_everywhere(block):
    for seed in range(25 * block, 25 * (block + 1)):
        rng, net = random_case(seed)
        base = shrink(net).network
        result = shrink(redundant(net, rng, rng.choice(ANYWHERE, size=rng.integers(1, 5)).tolist()))
        assert result.network.size <= base.size and result.network.depth <= base.depth
        X = dyadic_points(rng, 50, net.in_features)
        check_same_function(result, 100.0 * X, relative=True)
        if seed % 2 == 0:
            check_exactly_same(result, X[:3])
        check_fixed_point(result, None)


@pytest.mark.parametrize("block", range(4))
def test_what_was_put_in_comes_out_on_a_box(block):
    for seed in range(25 * block, 25 * (block + 1)):
        rng, net = random_case(1000 + seed)
        box = Box.cube(net.in_features, LOW, HIGH)
        # No time for proofs by search: they are tested below, and depend on the clock.
        rules_only = {"box": box, "budget": 1.0}
        base = shrink(net, **rules_only).network
        kinds = rng.choice(list(KINDS), size=rng.integers(1, 5)).tolist()
        result = shrink(redundant(net, rng, kinds), **rules_only)
        if result.complete:
            assert result.network.size <= base.size and result.network.depth <= base.depth
        X = dyadic_points(rng, 50, net.in_features, LOW, HIGH)
        check_same_function(result, X, relative=False)
        if result.gap_upper == 0.0 and seed % 2 == 0:
            check_exactly_same(result, X[:3])
        if result.complete:
            check_fixed_point(result, box)


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_alone(kind):
    rng = np.random.default_rng(7)
    net = random_net(rng, [3, 5, 4, 2])
    box = Box.cube(3, LOW, HIGH)
    grown = redundant(net, rng, [kind])
    assert grown.size > net.size
    result = shrink(grown, box=box, budget=5.0)
    assert result.network.widths == shrink(net, box=box, budget=5.0).network.widths
    check_same_function(result, box.sample(10_000, rng), relative=False)


@pytest.mark.parametrize("box", [None, (LOW, HIGH)])
def test_nothing_to_do(box):
    net = random_net(np.random.default_rng(0), [4, 6, 2])
    result = shrink(net, box=box)
    assert result.network is net and result.steps == () and result.gap_upper == 0.0
    assert str(result) == "6 -> 6 ReLUs, 2 -> 2 layers, 0 steps, gap <= 0"


def test_an_affine_network_stays():
    net = ReluNetwork.from_layers([([[1.0, 2.0]], [3.0])])
    assert shrink(net, box=(0, 1)).network is net


def test_all_dead_leaves_a_constant():
    layers = [([[1.0], [2.0]], [-9.0, -9.0]), ([[1.0, 1.0]], [0.5]), ([[2.0]], [1.0])]
    result = shrink(ReluNetwork.from_layers(layers), box=(-1, 1))
    assert result.network.widths == (1, 1)
    assert result.network([0.3]) == 2.0
    assert result.gap_upper == 0.0


def test_a_network_without_inputs_is_constant_everywhere():
    layers = [(np.zeros((3, 2)), [1.0, -1.0, 2.0]), (np.eye(3), np.zeros(3)), (np.ones((2, 3)), [0, 1])]
    result = shrink(ReluNetwork.from_layers(layers))
    assert result.network.depth == 1 and result.gap_upper == 0.0
    np.testing.assert_array_equal(result.network([5.0, -7.0]), [3.0, 4.0])


@pytest.mark.parametrize("scale", [1.0, -1.0, 1e-3])
def test_width_one(scale):
    net = ReluNetwork.from_layers([([[scale]], [0.5]), ([[1.0]], [0.0]), ([[3.0]], [1.0])])
    result = shrink(net)
    assert result.network.widths == (1, 1, 1)
    check_exactly_same(result, np.array([[-2.0], [0.25], [8.0]]))


def test_opposite_pairs_need_a_box_or_a_whole_layer():
    pair = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, -1.0]], [0])])
    assert shrink(pair).network.depth == 1  # relu(x) - relu(-x) = x
    with_kink = ReluNetwork.from_layers([([[1.0], [-1.0], [1.0]], [0, 0, 1]), ([[2.0, -2.0, 1.0]], [0])])
    assert shrink(with_kink).steps == ()
    result = shrink(with_kink, box=([-3], [3]))
    assert result.network.size == 2
    check_exactly_same(result, np.array([[-3.0], [-0.5], [3.0]]))


def test_almost_cancelling_pairs_stay():
    C = [[1.0, -np.nextafter(1.0, 2.0)]]
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), (C, [0])])
    assert shrink(net).steps == () and shrink(net, box=(-1, 1)).steps == ()


def test_almost_copies_stay():
    W = [[1.0, 0.1], [3.0, 3.0 * 0.1]]  # 3.0 * 0.1 is rounded: not a multiple
    assert shrink(ReluNetwork.from_layers([(W, [0, 0]), ([[1.0, 1.0]], [0])])).steps == ()


def test_a_rounded_factor_is_paid_for():
    W, C = [[3.0, 1.5], [1.0, 0.5], [7.0, 3.5]], [[0.1, 0.7, 0.3]]
    result = shrink(ReluNetwork.from_layers([(W, [0, 0, 0]), (C, [0])]))
    assert result.network.size == 1 and 0.0 < result.gap_upper < 1e-14
    x = [1, 1]
    f, g = result.original.as_fractions()(x)[0], result.network.as_fractions()(x)[0]
    assert abs(f - g) <= result.gap_upper * (1.0 + np.sqrt(2.0))


def test_zero_on_touch_counts_as_dead():
    """A unit whose largest value on the box is exactly 0 never does anything."""
    net = ReluNetwork.from_layers([([[1.0], [1.0]], [-1.0, 0.0]), ([[5.0, 1.0]], [0])])
    assert shrink(net, box=([-1], [1])).network.size == 1


def test_flat_box():
    net = random_net(np.random.default_rng(3), [3, 5, 4, 2])
    x = np.array([0.5, -0.25, 1.0])
    result = shrink(net, box=Box(x, x))
    assert result.network.size == 0
    np.testing.assert_allclose(result.network(x), net(x), atol=1e-12)


def test_sparse_layers():
    rng = np.random.default_rng(5)
    W = sp.random_array((600, 500), density=0.01, rng=rng, format="csr")
    W.data = np.round(W.data * 64) / 64 - 0.5
    both = sp.vstack([W, -W, 2.0 * W[:100]], format="csr")
    read = sp.hstack([sp.eye_array(600), -sp.eye_array(600), sp.csr_array((600, 100))], format="csr")
    outer = np.round(rng.standard_normal((3, 600)) * 8) / 8
    net = ReluNetwork.from_layers([(both, np.zeros(1300)), (read, np.ones(600)), (outer, np.zeros(3))])
    result = shrink(net)
    assert result.network.depth == 2 and result.network.size <= 600 and result.gap_upper < 1e-12
    assert sp.issparse(result.network.layers[0].weight)
    check_same_function(result, rng.standard_normal((200, 500)), relative=True)


def test_conv_like_sparse_layers_merge_and_narrow():
    rng = np.random.default_rng(6)
    W = sp.csr_array(np.kron(np.eye(300), [[1.0, 1.0], [2.0, 2.0]]))  # every unit twice
    C = sp.random_array((400, 600), density=0.02, rng=rng, format="csr")
    net = ReluNetwork.from_layers([(W, np.zeros(600)), (C, np.ones(400)), (np.ones((1, 400)), [0])])
    result = shrink(net, box=(-1, 1))
    assert result.network.widths[1] <= 300
    check_same_function(result, rng.uniform(-1, 1, (200, 600)), relative=False)


def test_progress_speaks_and_steps_add_up():
    rng = np.random.default_rng(11)
    heard = []
    grown = redundant(random_net(rng, [2, 4, 3, 1]), rng, ["dead", "duplicate", "identity_layer"])
    result = shrink(grown, progress=lambda text, count, _: heard.append((text, count)))
    assert [count for _, count in heard] == list(range(1, len(result.steps) + 1))
    assert sum(step.saved for step in result.steps) == result.saved > 0
    assert all(step.reason and step.layer >= 1 for step in result.steps)
    assert sum(step.gap for step in result.steps) == result.gap_upper == 0.0


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"box": (0, [1, 2, 3])}, ValueError, "dimensions|equal length"),
        ({"box": Box([0], [1])}, ValueError, "1 dimensions"),
        ({"tol": -1.0}, ValueError, "tol"),
        ({"tol": float("nan")}, ValueError, "tol"),
        ({"tol": float("inf")}, ValueError, "tol"),
        ({"budget": -1}, ValueError, "budget"),
        ({"budget": "long"}, TypeError, "budget"),
    ],
)
def test_bad_input(arguments, error, words):
    net = random_net(np.random.default_rng(0), [2, 3, 1])
    with pytest.raises(error, match=words):
        shrink(net, **arguments)


def test_not_a_network():
    with pytest.raises(TypeError, match="ReluNetwork"):
        shrink([[1.0]])


def test_shape_and_activation_survive():
    net = ReluNetwork.from_layers(
        [(np.ones((2, 4)), [0, 0]), (np.ones((2, 2)), [0, 0])],
        input_shape=(2, 2),
        output_activation="softmax",
    )
    small = shrink(net).network
    assert small.size == 1 and small.input_shape == (2, 2) and small.output_activation == "softmax"


def test_large_dense_network_in_seconds():
    rng = np.random.default_rng(0)
    net = random_net(rng, [784, 2048, 2048, 2048, 10], scale=0.03)
    start = time.process_time()
    assert shrink(net).steps == ()
    assert time.process_time() - start < 5.0


def test_copies_of_near_copies_are_not_lost():
    """Unit 2 is an exact multiple of unit 1, which nearly is unit 0: all three do the work of one."""
    row = np.array([0.3, -0.7, 1.1])
    near = row * (1 + 1e-12 * np.array([1.0, -2.0, 3.0]))
    W = np.array([row, near, 2 * near, -near, -0.5 * near])
    b = np.array([0.1, 0.1, 0.2, -0.1, -0.05])
    net = ReluNetwork.from_layers([(W, b), ([[1.0, 2.0, 3.0, 4.0, 5.0]], [0.0])])
    result = shrink(net, tol=1e-6)
    assert result.network.size == 2
    X = np.random.default_rng(0).normal(size=(500, 3))
    assert np.abs(net(X) - result.network(X)).max() < 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_a_box_never_leaves_more_than_none(seed):
    """What holds for every input is found first, so that a budget that ends early has it."""
    rng = np.random.default_rng(seed)
    kinds = ["dead", "duplicate", "identity_layer"]
    grown = redundant(random_net(rng, [2, 5, 4, 1]), rng, kinds)
    everywhere, heard = shrink(grown), []
    box = Box.cube(2, -1, 1)
    on_box = shrink(grown, box=box, progress=lambda text, *_: heard.append(text))
    assert everywhere.saved and on_box.network.size <= everywhere.network.size
    assert heard[: len(everywhere.steps)] == [str(step) for step in everywhere.steps]
    X = box.sample(300, rng)
    np.testing.assert_allclose(on_box.network(X), grown(X), atol=1e-9 + on_box.gap_upper)
