"""Redundant channels of models go, convolutions stay, and so does the function, number for number."""

from __future__ import annotations

import numpy as np
import pytest

from pindown import Box, shrink
from pindown.deadline import Deadline
from pindown.equivalence.shrinking import channels
from pindown.equivalence.shrinking.models import _by_channels, stored_numbers
from pindown.errors import UnsupportedModelError
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.dense import Add, BatchNorm, Dense, Reduce
from pindown.model.operations.moves import Concat, Fill, Move
from pindown.model.operations.piecewise_linear import Abs, Clip, LeakyRelu, PiecewiseLinear, Relu
from pindown.model.operations.pooling import AveragePool, MaxPool
from pindown.model.operations.products import Multiply
from pindown.model.operations.smooth import Gelu, HardSwish, Sigmoid, Silu, Tanh
from pindown.model.operations.softmax import LogSoftmax, Softmax
from tests.equivalence.shrinking.graphs import (
    Chain,
    conv,
    dyadic_rows,
    exact_values,
    random_graph,
    scaled_by_chance,
    single,
    window,
)

EXACT = (Relu, MaxPool, Add, Concat, Fill)  # beside affine and piecewise-linear functions, in rationals


def check(model, result, box=None):
    """The model is smaller, and the same at random points, in rationals if the proof says so."""
    rng = np.random.default_rng(9)
    X = dyadic_rows(model, rng, 20, *((-2.0, 2.0) if box is None else (box.lower[0], box.upper[0])))
    before, after = model(X), result.model(X)
    size = 1.0 if box is not None else 1.0 + np.linalg.norm(X, axis=1).max()
    assert np.abs(before - after).max() <= result.gap_upper * size + 1e-9 * max(
        1.0, np.abs(before).max()
    )
    assert (
        stored_numbers(result.model) < stored_numbers(model) if result.steps else result.model is model
    )
    assert result.model.dtype == model.dtype and result.model.input_shape == model.input_shape
    if result.gap_upper == 0.0:
        exact = all(
            isinstance(op, (AffineOperation, Move, PiecewiseLinear, *EXACT)) for op in model.operations
        )
        assert not exact or (exact_values(model, X[:1]) == exact_values(result.model, X[:1])).all()


def kernels(model):
    return [op.kernel.shape[:2] for op in model.operations if hasattr(op, "kernel")]


# ---------------------------------------------------------------------- one convolution after the other


def lenet(rng, plant, pad=0, activation=None, pool=None):
    """Two convolutions and two dense layers; ``plant`` may change the numbers of the convolutions."""
    K, b, L, c = single(rng, 6, 1, 3, 3), single(rng, 6), single(rng, 5, 6, 3, 3), single(rng, 5)
    plant(K, b, L, c)
    chain = Chain((1, 6, 6)).add(conv(K, b, pad=pad), activation or Relu(), pool or MaxPool(window(2)))
    chain.add(conv(L, c, pad=pad), activation or Relu()).flat()
    n = chain.x.shape[1]
    chain.add(Dense(single(rng, 7, n), single(rng, 7)), Relu(), Dense(single(rng, 3, 7), single(rng, 3)))
    return chain.model(dtype="float32")


def dead(K, b, L, c):
    K[2], b[2] = 0.0, -1.0


def unread(K, b, L, c):
    L[:, 4] = 0.0


def duplicate(K, b, L, c):
    K[3], b[3] = K[1], b[1]


def scaled(K, b, L, c):
    K[3], b[3] = 4.0 * K[1], 4.0 * b[1]


def constant(K, b, L, c):
    K[5], b[5] = 0.0, 0.5


def behind_relus(K, b, L, c):
    """Never positive, because what it reads is not negative."""
    L[3], c[3] = -np.abs(L[3]), -0.25


@pytest.mark.parametrize("pool", [MaxPool(window(2)), AveragePool(window(2))], ids=["max", "average"])
@pytest.mark.parametrize(
    ("plant", "rule", "left"),
    [
        (dead, "dead", [(5, 1), (5, 5)]),
        (unread, "unused", [(5, 1), (5, 5)]),
        (duplicate, "merged", [(5, 1), (5, 5)]),
        (scaled, "merged", [(5, 1), (5, 5)]),
        (constant, "constant", [(5, 1), (5, 5)]),
        (behind_relus, "dead", [(6, 1), (4, 6)]),
    ],
)
def test_planted_channels_go(plant, rule, left, pool):
    model = lenet(np.random.default_rng(0), plant, pool=pool)
    result = shrink(model)
    assert {step.rule for step in result.steps} == {rule} and kernels(result.model) == left
    assert all(step.counted == "channel" for step in result.steps) and result.gap_upper == 0.0
    check(model, result)
    f, g = model.relu_network(), result.network
    X = np.random.default_rng(1).normal(size=(20, 36))
    np.testing.assert_allclose(f(X), g(X), rtol=1e-10, atol=1e-10)
    assert result.saved == f.size - g.size if isinstance(pool, AveragePool) else result.saved > 0


def test_a_step_is_one_line():
    result = shrink(lenet(np.random.default_rng(0), duplicate))
    assert [str(step) for step in result.steps] == [
        "layer 1, merged, channel 3: copies of other channels"
    ]
    assert str(result) == "401 -> 346 parameters, 1 step, gap <= 0"


def test_nothing_goes_that_is_needed():
    model = lenet(np.random.default_rng(0), lambda *_: None)
    result = shrink(model)
    assert result.model is model and result.steps == () and result.gap_upper == 0.0
    assert result.complete and result.network == model.relu_network()


def test_a_constant_stays_where_zeros_are_padded():
    """At the border the next convolution sees zeros instead: no bias can make up for that."""
    model = lenet(np.random.default_rng(0), constant, pad=1)
    assert shrink(model).steps == ()
    assert [step.rule for step in shrink(lenet(np.random.default_rng(0), dead, pad=1)).steps] == ["dead"]


def test_of_several_constants_one_stays_for_all():
    def plant(K, b, L, c):
        K[2], b[2], K[5], b[5], K[0], b[0] = 0.0, 0.25, 0.0, 0.5, 0.0, 4.0

    model = lenet(np.random.default_rng(0), plant, pad=1)
    result = shrink(model)
    assert [step.rule for step in result.steps] == ["merged"] and kernels(result.model) == [
        (4, 1),
        (5, 4),
    ]
    check(model, result)


def test_a_constant_goes_before_a_dense_layer_whatever_was_padded():
    def plant(K, b, L, c):
        L[2], c[2] = 0.0, 1.5

    model = lenet(np.random.default_rng(0), plant, pad=1)
    result = shrink(model)
    assert [step.rule for step in result.steps] == ["constant"] and kernels(result.model) == [
        (6, 1),
        (4, 6),
    ]
    check(model, result)


def test_a_border_that_is_overlooked_is_noticed(monkeypatch):
    monkeypatch.setattr(channels, "_takes_constants", lambda operation: True)
    with pytest.raises(RuntimeError, match="contradicts"):
        shrink(lenet(np.random.default_rng(0), constant, pad=1))


@pytest.mark.parametrize(
    "activation", [LeakyRelu(0.25), Abs(), Clip(0.0, 6.0), Gelu(), Silu(), Tanh(), HardSwish()]
)
def test_copies_go_behind_any_function_and_multiples_behind_those_that_keep_them(activation):
    model = lenet(np.random.default_rng(0), duplicate, activation=activation)
    result = shrink(model)
    assert [step.rule for step in result.steps] == ["merged"]
    check(model, result)
    other = lenet(np.random.default_rng(0), scaled, activation=activation)
    assert bool(shrink(other).steps) == isinstance(activation, (LeakyRelu, Abs))
    check(other, shrink(other))


@pytest.mark.parametrize("activation", [Gelu(), Silu(), Tanh(), HardSwish(), Relu()])
def test_zero_stays_zero(activation):
    def plant(K, b, L, c):
        K[2], b[2] = 0.0, 0.0

    model = lenet(np.random.default_rng(0), plant, pad=1, activation=activation)
    result = shrink(model)
    assert [step.rule for step in result.steps] == ["dead"]
    check(model, result)


def test_a_value_that_is_rounded_is_charged():
    def plant(K, b, L, c):
        K[2], b[2] = 0.0, 0.3

    model = lenet(np.random.default_rng(0), plant, activation=Sigmoid(), pool=AveragePool(window(2)))
    result = shrink(model)
    assert [step.rule for step in result.steps] == ["constant"]
    assert 0.0 < result.steps[0].gap <= result.gap_upper < 1e-10
    check(model, result)
    with pytest.raises(UnsupportedModelError, match="Sigmoid"):
        _ = result.network


# ---------------------------------------------------------------------- on a box


def test_what_is_off_or_clipped_on_the_box_goes():
    def plant(K, b, L, c):
        b[0], b[1] = -50.0, 80.0

    box = Box.cube(36, 0.0, 1.0)
    model = lenet(np.random.default_rng(0), plant, activation=Clip(0.0, 6.0))
    assert shrink(model).steps == ()
    result = shrink(model, box=box)
    assert {step.rule for step in result.steps} == {"dead", "constant"}
    assert kernels(result.model) == [(4, 1), (5, 4)]
    check(model, result, box)
    wider = shrink(model, box=Box.cube(36, -99.0, 99.0))
    assert wider.steps == ()


# ---------------------------------------------------------------------- batch norm


def vgg(rng, plant):
    """Blocks of convolution, batch norm and ReLU, and a mean over the picture at the end."""
    chain, inputs = Chain((2, 6, 6)), 2
    for block in range(3):
        K, n = single(rng, 4, inputs, 3, 3), 4
        norm = {
            "scale": single(rng, n),
            "shift": single(rng, n),
            "mean": single(rng, n),
            "variance": np.full(n, 4.0),
        }
        plant(block, K, norm)
        chain.add(conv(K, pad=1 if block < 2 else 0), BatchNorm(**norm, epsilon=0.0), Relu())
        inputs = n
    chain.add(Reduce((2, 3), mean=True)).flat()
    return chain.add(Dense(single(rng, 3, 4), single(rng, 3)), Softmax(1)).model()


@pytest.mark.parametrize(
    ("factor", "gamma", "shift", "goes"),
    [
        (1.0, 1.0, 1.0, True),
        (4.0, 0.25, 1.0, True),  # the norm takes back what the kernel does
        (2.0, 1.0, 2.0, True),
        (1.0, -1.0, -1.0, False),  # opposite
        (1.0, 1.0, 1.5, False),
        (2.0, 1.0, 1.0, False),
    ],
)
def test_copies_are_followed_through_batch_norm(factor, gamma, shift, goes):
    def plant(block, K, norm):
        norm["mean"][:] = 0.0
        if block == 1:
            K[3] = factor * K[0]
            norm["scale"][3], norm["shift"][3] = gamma * norm["scale"][0], shift * norm["shift"][0]

    model = vgg(np.random.default_rng(0), plant)
    result = shrink(model)
    assert bool(result.steps) == goes
    check(model, result)


def test_a_scale_of_zero_makes_a_constant():
    def plant(block, K, norm):
        norm["scale"][1] = norm["scale"][2] = 0.0
        norm["shift"][1], norm["shift"][2] = -1.0, 0.25

    model = vgg(np.random.default_rng(0), plant)
    result = shrink(model)
    # What is zero goes everywhere; the constant only where the next layer has no border.
    assert kernels(result.model) == [(3, 2), (2, 3), (2, 2)]
    check(model, result)


# ---------------------------------------------------------------------- residual sums


def residual(rng, plant):
    """A first convolution, two blocks added to what goes round them, and a dense layer."""
    first, b = single(rng, 5, 2, 3, 3), single(rng, 5)
    blocks = [
        [single(rng, 4, 5, 3, 3), single(rng, 4), single(rng, 5, 4, 3, 3), single(rng, 5)]
        for _ in range(2)
    ]
    last = single(rng, 3, 5)
    plant(first, b, blocks, last)
    chain = Chain((2, 5, 5)).add(conv(first, b, pad=1), Relu())
    for K, k, L, c in blocks:
        start = chain.x
        end = chain.add(conv(K, k, pad=1), Relu(), conv(L, c, pad=1)).x
        chain.x = chain.graph.add(Add(), end, start)
        chain.add(Relu())
    chain.add(Reduce((2, 3), mean=True)).flat()
    return chain.add(Dense(last, single(rng, 3))).model()


def test_a_channel_inside_a_block_goes():
    def plant(first, b, blocks, last):
        blocks[0][0][2], blocks[0][1][2] = blocks[0][0][1], blocks[0][1][1]
        blocks[1][2][:, 3] = 0.0

    model = residual(np.random.default_rng(0), plant)
    result = shrink(model)
    assert kernels(result.model) == [(5, 2), (3, 5), (5, 3), (3, 5), (5, 3)]
    check(model, result)


def test_a_sum_that_nobody_reads_goes_with_all_its_parts():
    def plant(first, b, blocks, last):
        for K, _, _, _ in blocks:
            K[:, 3] = 0.0
        last[:, 3] = 0.0

    model = residual(np.random.default_rng(0), plant)
    result = shrink(model)
    assert kernels(result.model) == [(4, 2), (4, 4), (4, 4), (4, 4), (4, 4)]
    assert [(step.layer, step.units) for step in result.steps] == [(1, (3,)), (3, (3,)), (5, (3,))]
    assert result.saved == 3 * 25  # the first ReLU and those behind the sums
    check(model, result)


def test_sums_are_copies_only_if_all_their_parts_are():
    def agree(first, b, blocks, last):
        first[4], b[4] = first[1], b[1]
        for _, _, L, c in blocks:
            L[4], c[4] = L[1], c[1]

    def differ(first, b, blocks, last):
        agree(first, b, blocks, last)
        blocks[1][3][4] += 1.0

    def scale(first, b, blocks, last):
        agree(first, b, blocks, last)
        first[4], b[4] = 2.0 * first[1], 2.0 * b[1]

    model = residual(np.random.default_rng(0), agree)
    assert [kernel[0] for kernel in kernels(shrink(model).model)] == [4, 4, 4, 4, 4]
    check(model, shrink(model))
    for plant in (differ, scale):
        assert shrink(residual(np.random.default_rng(0), plant)).steps == ()


def test_a_part_of_a_sum_that_is_zero_stays():
    def plant(first, b, blocks, last):
        blocks[0][2][3], blocks[0][3][3] = 0.0, 0.0

    assert shrink(residual(np.random.default_rng(0), plant)).steps == ()


# ---------------------------------------------------------------------- channels kept apart


def mobile(rng, plant):
    """Wider, depthwise, narrower; two of these."""
    chain = Chain((2, 6, 6)).add(conv(single(rng, 3, 2, 3, 3), single(rng, 3), pad=1), Clip(0.0, 6.0))
    for block in range(2):
        parts = [single(rng, 8, 3, 1, 1), single(rng, 8), single(rng, 8, 1, 3, 3), single(rng, 8)]
        plant(block, *parts)
        wide, b, deep, c = parts
        chain.add(conv(wide, b), Clip(0.0, 6.0), conv(deep, c, 2 - block, 1, groups=8), Clip(0.0, 6.0))
        chain.add(conv(single(rng, 3, 8, 1, 1), single(rng, 3)))
    return chain.flat().add(Dense(single(rng, 2, 27), single(rng, 2))).model()


def test_depthwise_convolutions_lose_their_own_channel():
    def plant(block, wide, b, deep, c):
        wide[1], b[1], deep[1], c[1] = wide[0], b[0], deep[0], c[0]  # a copy all the way
        wide[3], b[3] = wide[2], b[2]  # a copy, until it is weighed differently
        deep[4], c[4] = 0.0, -1.0  # dead behind the second function
        wide[6], b[6], c[6] = 0.0, 0.0, 0.0  # dead behind the first

    model = mobile(np.random.default_rng(0), plant)
    result = shrink(model)
    assert kernels(result.model) == [(3, 2), *[(5, 3), (5, 1), (3, 5)] * 2]
    assert [op.groups for op in result.model.operations if hasattr(op, "groups")] == [
        1,
        1,
        5,
        1,
        1,
        5,
        1,
    ]
    check(model, result)


def test_a_depthwise_bias_tells_channels_apart():
    def plant(block, wide, b, deep, c):
        wide[1], b[1], deep[1] = wide[0], b[0], deep[0]

    assert shrink(mobile(np.random.default_rng(0), plant)).steps == ()


def test_slopes_tell_channels_apart():
    for slopes, goes in (([0.5, 0.25, 0.25, 1.0], True), ([0.5, 0.25, 0.125, 1.0], False)):
        rng = np.random.default_rng(0)
        W = single(rng, 4, 3)
        W[2] = 2.0 * W[1]
        chain = Chain((3,)).add(Dense(W), LeakyRelu(np.array(slopes)), Tanh(), Dense(single(rng, 2, 4)))
        assert shrink(chain.model()).steps == ()  # the tanh behind takes no multiples
        W[2] = W[1]
        model = (
            Chain((3,))
            .add(Dense(W), LeakyRelu(np.array(slopes)), Tanh(), Dense(single(rng, 2, 4)))
            .model()
        )
        assert bool(shrink(model).steps) == goes
        check(model, shrink(model))


def test_channels_of_several_branches_keep_their_places():
    rng = np.random.default_rng(0)
    K, L = single(rng, 4, 2, 3, 3), single(rng, 3, 2, 1, 1)
    K[1], L[2] = 0.0, 0.0
    chain = Chain((2, 4, 4))
    start = chain.x
    first = chain.add(conv(K, pad=1), Relu()).x
    chain.x = start
    second = chain.add(conv(L), Tanh()).x
    chain.x = chain.graph.add(Concat(1), first, start, second)
    model = (
        chain.add(conv(single(rng, 3, 9, 3, 3)), Relu()).flat().add(Dense(single(rng, 2, 12))).model()
    )
    result = shrink(model)
    assert kernels(result.model) == [(3, 2), (2, 2), (3, 7)]
    check(model, result)


def test_what_is_added_to_the_input_stays():
    rng = np.random.default_rng(0)
    K, last = single(rng, 3, 3, 3, 3), single(rng, 2, 3, 3, 3)
    last[:, 1] = 0.0
    chain = Chain((3, 4, 4))
    start = chain.x
    chain.x = chain.graph.add(Add(), chain.add(conv(K, pad=1)).x, start)
    model = chain.add(Relu(), conv(last)).flat().add(Dense(single(rng, 2, 8))).model()
    assert shrink(model).steps == ()


def test_what_is_added_to_a_part_of_the_input_stays():
    rng = np.random.default_rng(0)
    last = single(rng, 2, 3, 3, 3)
    last[:, 1:] = 0.0
    chain = Chain((1, 4, 4))
    start = chain.x
    first = chain.add(conv(single(rng, 2, 1, 3, 3), pad=1)).x
    joined = chain.graph.add(Concat(1), first, start)
    chain.x = start
    second = chain.add(conv(single(rng, 3, 1, 3, 3), pad=1)).x
    chain.x = chain.graph.add(Add(), joined, second)
    model = chain.add(Relu(), conv(last)).flat().add(Dense(single(rng, 2, 8))).model()
    result = shrink(model)
    assert kernels(result.model) == [(1, 1), (2, 1), (2, 2)]  # of the two that nobody reads, one
    check(model, result)


@pytest.mark.parametrize(
    ("between", "goes"),
    [
        (AveragePool(window(2, 1, 1), count_padding=True), False),
        (AveragePool(window(2, 1, 1)), True),
        (Fill((0, 0, 1, 1), (0, 0, 0, 0), 0.25), False),
        (Fill((0, 0, 1, 1), (0, 0, 0, 0), 0.5), True),
    ],
)
def test_a_constant_is_none_where_zeros_or_others_are_put_in(between, goes):
    rng = np.random.default_rng(0)
    K, b = single(rng, 3, 1, 3, 3), single(rng, 3)
    K[1], b[1] = 0.0, 0.5
    chain = (
        Chain((1, 5, 5)).add(conv(K, b), Relu(), between, conv(single(rng, 2, 3, 2, 2)), Relu()).flat()
    )
    model = chain.add(Dense(single(rng, 2, chain.x.shape[1]))).model()
    result = shrink(model)
    assert [step.rule for step in result.steps] == ["constant"] * goes
    check(model, result)


def test_signs_say_nothing_of_inputs_of_any_sign():
    def plant(K, b, L, c):
        K[3], b[3] = -np.abs(K[3]), -0.25

    assert shrink(lenet(np.random.default_rng(0), plant)).steps == ()
    rng = np.random.default_rng(0)
    chain = Chain((4,)).add(
        Dense(single(rng, 4, 4)), LeakyRelu(0.5), Dense(-np.abs(single(rng, 4, 4))), Relu()
    )
    assert shrink(chain.add(Dense(single(rng, 2, 4))).model()).steps == ()


def split(rng, fault=0.0):
    """A convolution as opposite pairs, whose differences a convolution of size one takes."""
    K, b, eye = single(rng, 4, 2, 3, 3), single(rng, 4), np.eye(4)[:, :, None, None]
    take = np.concatenate([eye, -0.5 * eye], axis=1)
    take[0, 4] += fault
    chain = Chain((2, 6, 6)).add(
        conv(np.concatenate([K, -2.0 * K]), np.concatenate([b, -2.0 * b]), pad=1), Relu()
    )
    chain.add(conv(take, single(rng, 4)), Gelu(), conv(single(rng, 3, 4, 3, 3), pad=1)).flat()
    return chain.add(Dense(single(rng, 2, 108))).model()


def test_a_layer_of_opposite_pairs_becomes_part_of_the_next():
    model = split(np.random.default_rng(0))
    result = shrink(model)
    assert [step.rule for step in result.steps] == ["layer removed"]
    assert kernels(result.model) == [(4, 2), (3, 4)]
    check(model, result)
    assert shrink(split(np.random.default_rng(0), fault=0.25)).steps == ()


def test_what_is_multiplied_or_normalised_stays():
    rng = np.random.default_rng(0)
    W = single(rng, 4, 3)
    W[1] = W[0]
    for last in (Softmax(1), LogSoftmax(1)):
        chain = Chain((3,)).add(Dense(W), last, Dense(single(rng, 2, 4)))
        assert shrink(chain.model()).steps == ()
    chain = Chain((3,)).add(Dense(W))
    chain.x = chain.graph.add(Multiply(), chain.x, chain.x)
    assert shrink(chain.add(Dense(single(rng, 2, 4))).model()).steps == ()


def test_units_that_act_on_every_row_go():
    """As between the two dense layers of a transformer's block, whose rows are words."""
    rng = np.random.default_rng(0)
    W, b = single(rng, 6, 3), single(rng, 6)
    W[4], b[4], W[2], b[2] = W[1], b[1], 0.0, 0.0
    model = Chain((5, 3)).add(Dense(W, b), Gelu(), Dense(single(rng, 3, 6), single(rng, 3))).model()
    result = shrink(model)
    assert [op.weight.shape for op in result.model.operations if isinstance(op, Dense)] == [
        (4, 3),
        (3, 4),
    ]
    assert result.saved == 2 * 5
    check(model, result)


def test_numbers_that_are_used_twice_stay():
    rng = np.random.default_rng(0)
    W = single(rng, 3, 3)
    W[1] = W[0]
    shared = Dense(W)
    model = Chain((3,)).add(shared, Tanh(), shared, Tanh(), Dense(single(rng, 2, 3))).model()
    assert shrink(model).steps == ()
    apart = Chain((3,)).add(Dense(W), Tanh(), Dense(W), Tanh(), Dense(single(rng, 2, 3))).model()
    assert len(shrink(apart).steps) == 2
    check(apart, shrink(apart))


def test_a_layer_that_is_all_dead_keeps_one_channel():
    def plant(K, b, L, c):
        K[:], b[:] = 0.0, -1.0

    model = lenet(np.random.default_rng(0), plant)
    result = shrink(model)
    assert min(n for shape in kernels(result.model) for n in shape) == 1
    check(model, result)


# ---------------------------------------------------------------------- by chance


@pytest.mark.parametrize("start", range(0, 24, 12))
def test_what_random_graphs_lose_by_rounding_is_bounded(start):
    charged = 0
    for seed in range(start, start + 12):
        rng = np.random.default_rng(seed)
        model = scaled_by_chance(random_graph(rng), rng)
        box = Box.cube(model.in_features, -1.0, 1.0) if seed % 2 else None
        result = _by_channels(model, box, 0.0, Deadline.after(60.0), None)
        charged += result.gap_upper > 0.0
        X = dyadic_rows(model, rng, 1, -1.0, 1.0)
        gap = np.abs(exact_values(model, X) - exact_values(result.model, X)).max()
        assert gap <= result.gap_upper * (1.0 if box is not None else 1.0 + np.linalg.norm(X))
    assert charged


@pytest.mark.parametrize("start", range(0, 36, 12))
def test_random_graphs_keep_their_function_number_for_number(start):
    found = 0
    for seed in range(start, start + 12):
        rng = np.random.default_rng(seed)
        model = random_graph(rng)
        box = Box.cube(model.in_features, -1.0, 1.0) if seed % 2 else None
        result = _by_channels(model, box, 0.0, Deadline.after(60.0), None)
        found += len(result.steps)
        check(model, result, box)
    assert found > 12
