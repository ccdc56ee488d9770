"""Each operation, in many random configurations, against onnxruntime."""

import tracemalloc

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.reader import model_from_onnx
from pindown.io._onnx.writer import onnx_bytes
from tests.io.onnx_models import (
    OPSETS,
    assert_agrees,
    assert_exact,
    f32,
    i64,
    make_model,
    many,
    one_op,
    read,
    refusal,
)

# ---------------------------------------------------------------------- matrix products, arithmetic


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("bias", [None, (), (1,), (4,), (1, 4), (1, 1)])
def test_gemm(opset, bias):
    rng = np.random.default_rng(0)
    if bias is None and opset < 11:
        pytest.skip("the bias became optional in operator set 11")
    weights = {"W": f32(rng, 4, 3)} | ({} if bias is None else {"c": f32(rng, *bias)})
    assert_exact(one_op("Gemm", ["n", 3], weights, opset, transB=1, alpha=0.5, beta=-2.0))


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("tensor_first", [True, False])
def test_gemm_transposed_and_with_the_weight_on_either_side(trans_a, trans_b, tensor_first):
    rng = np.random.default_rng(0)
    x_shape = [4, 3]
    x_seen = x_shape[::-1] if (trans_a if tensor_first else trans_b) else x_shape
    weight = (x_seen[1], 5) if tensor_first else (5, x_seen[0])
    if trans_b if tensor_first else trans_a:
        weight = weight[::-1]
    names = ["x", "W"] if tensor_first else ["W", "x"]
    nodes = [("Gemm", names, ["y"], {"transA": trans_a, "transB": trans_b})]
    net = assert_exact(make_model(nodes, {"W": f32(rng, *weight)}, x_shape))
    assert net.input_shape == (4, 3)  # no batch: the first length does not reach the output


@pytest.mark.parametrize(
    "x, W",
    [
        ((5,), (5, 3)),
        ((5,), (1, 5, 3)),
        ((5,), (5,)),
        ((1, 5), (5, 3)),
        ((1, 5), (5,)),
        ((1, 4, 5), (5, 3)),
        ((1, 2, 4, 5), (1, 5, 3)),
        ((1, 5), (1, 1, 5, 3)),
    ],
)
@pytest.mark.parametrize("opset", (7, 9, 13))
def test_matmul_on_both_sides(x, W, opset):
    rng = np.random.default_rng(0)
    assert_exact(make_model([("MatMul", ["x", "W"], ["y"], {})], {"W": f32(rng, *W)}, x, opset=opset))
    left = W if len(W) == 1 else (*W[:-2], W[-1], W[-2])
    turned = x if len(x) == 1 else (*x[:-2], x[-1], x[-2])
    if len(turned) > 1:
        turned = (1, *turned)
    nodes = [("MatMul", ["W", "x"], ["y"], {})]
    assert_exact(make_model(nodes, {"W": f32(rng, *left)}, turned, opset=opset))


@many
@given(data=st.data(), op=st.sampled_from(["Add", "Sub", "Mul", "Div"]), opset=st.sampled_from(OPSETS))
def test_arithmetic_with_constants_broadcasts(data, op, opset):
    shape = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    cut = data.draw(st.integers(0, len(shape)))
    constant = [data.draw(st.sampled_from([1, n])) for n in shape[cut:]]
    constant = data.draw(st.lists(st.integers(1, 2), max_size=1)) + constant if cut == 0 else constant
    first = op != "Div" and data.draw(st.booleans())
    c = np.random.default_rng(0).uniform(0.5, 2.0, size=constant).astype("f4")
    nodes = [(op, ["c", "x"] if first else ["x", "c"], ["y"], {})]
    assert_exact(make_model(nodes, {"c": c}, [1, *shape], opset=opset))


@pytest.mark.parametrize("op", ["Add", "Sub", "Max", "Min", "Sum"])
@pytest.mark.parametrize("opset", (8, 13, 17))
def test_two_tensors(op, opset):
    rng = np.random.default_rng(0)
    nodes = [
        ("MatMul", ["x", "W"], ["h"], {}),
        ("Relu", ["h"], ["r"], {}),
        ("MatMul", ["r", "V"], ["v"], {}),
        (op, ["x", "v"], ["y"], {}),
    ]
    weights = {"W": f32(rng, 3, 4), "V": f32(rng, 4, 3)}
    assert_exact(make_model(nodes, weights, ["n", 3], opset=opset))


@pytest.mark.parametrize("op", ["Max", "Min", "Sum"])
def test_any_number_of_tensors_and_constants(op):
    rng = np.random.default_rng(0)
    nodes = [("Neg", ["x"], ["v"], {}), (op, ["x", "c", "v", "d"], ["y"], {})]
    assert_exact(make_model(nodes, {"c": f32(rng, 3), "d": f32(rng, 1)}, ["n", 3]))


def test_max_with_zero_is_one_relu():
    net = assert_exact(one_op("Max", ["n", 3], {"zero": np.zeros((), "f4")}))
    assert net.widths == (3, 3, 3)


@pytest.mark.parametrize("depth", [1, 3])
def test_residual_blocks(depth):
    rng = np.random.default_rng(0)
    nodes, weights, last = [], {}, "x"
    for k in range(depth):
        nodes += [
            ("MatMul", [last, f"W{k}"], [f"h{k}"], {}),
            ("Add", [f"h{k}", f"b{k}"], [f"z{k}"], {}),
            ("Relu", [f"z{k}"], [f"r{k}"], {}),
            ("MatMul", [f"r{k}", f"V{k}"], [f"v{k}"], {}),
            ("Add", [f"v{k}", last], [f"s{k}"], {}),
        ]
        weights |= {f"W{k}": f32(rng, 3, 4), f"b{k}": f32(rng, 4), f"V{k}": f32(rng, 4, 3)}
        last = f"s{k}"
    nodes.append(("Identity", [last], ["y"], {}))
    assert_exact(make_model(nodes, weights, ["n", 3]), n=100)


# ---------------------------------------------------------------------- piecewise linear


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    "op, attributes",
    [("Relu", {}), ("LeakyRelu", {}), ("LeakyRelu", {"alpha": 0.3}), ("LeakyRelu", {"alpha": 1.5}),
     ("Neg", {}), ("Abs", {}), ("Identity", {})],
)  # fmt: skip
def test_elementwise(op, attributes, opset):
    assert_exact(one_op(op, ["n", 2, 3], opset=opset, **attributes))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("slope", [(1,), (3, 1, 1), (1, 2), (3, 2, 2)])
def test_prelu(slope, opset):
    rng = np.random.default_rng(0)
    assert_exact(one_op("PRelu", ["n", 3, 2, 2], {"slope": f32(rng, *slope)}, opset))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("low, high", [(0, 6), (-0.5, 0.25), (None, 0.5), (-0.5, None), (None, None)])
def test_clip(low, high, opset):
    if opset < 11:
        bounds = {"min": low, "max": high}
        model = one_op(
            "Clip", ["n", 4], opset=opset, **{k: float(v) for k, v in bounds.items() if v is not None}
        )
    else:
        weights = {k: np.array(v, "f4") for k, v in {"low": low, "high": high}.items() if v is not None}
        names = ["x", *(k if k in weights else "" for k in ("low", "high"))]
        model = one_op("Clip", ["n", 4], weights, opset, names=names)
    assert_exact(model, n=50)


# ---------------------------------------------------------------------- sums over axes


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("op", ["ReduceMean", "ReduceSum"])
@pytest.mark.parametrize("axes", [None, [1], [-1], [1, 2], [2, 1]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions(op, axes, keepdims, opset):
    as_input = axes is not None and opset >= (13 if op == "ReduceSum" else 18)
    weights = {"axes": np.array(axes, i64)} if as_input else {}
    attributes = {} if as_input or axes is None else {"axes": axes}
    if opset < 11 and axes is not None and min(axes) < 0:
        pytest.skip("negative axes came with operator set 11")
    assert_exact(one_op(op, ["n", 3, 4], weights, opset, keepdims=keepdims, **attributes))


def test_reduction_that_does_nothing():
    assert_exact(one_op("ReduceSum", ["n", 3], {"axes": np.zeros(0, i64)}, noop_with_empty_axes=1))


# ---------------------------------------------------------------------- moves


@pytest.mark.parametrize("opset", OPSETS)
def test_reshape_flatten_squeeze_unsqueeze_transpose(opset):
    """Every rearrangement in one model, then a matrix that would notice one wrong entry."""
    rng = np.random.default_rng(0)
    axes_are_inputs = opset >= 13
    weights = {"shape": np.array([0, 2, -1], i64), "W": f32(rng, 24, 5), "axes": np.array([1, 3], i64)}
    squeeze = (["u", "axes"], {}) if axes_are_inputs else (["u"], {"axes": [1, 3]})
    unsqueeze = (["r", "axes"], {}) if axes_are_inputs else (["r"], {"axes": [1, 3]})
    nodes = [
        ("Reshape", ["x", "shape"], ["r"], {}),
        ("Unsqueeze", unsqueeze[0], ["u"], unsqueeze[1]),
        ("Squeeze", squeeze[0], ["s"], squeeze[1]),
        ("Transpose", ["s"], ["t"], {"perm": [0, 2, 1]}),
        ("Dropout", ["t"], ["d"], {}),
        ("Flatten", ["d"], ["f"], {"axis": 1}),
        ("Cast", ["f"], ["c"], {"to": 1}),
        ("MatMul", ["c", "W"], ["y"], {}),
    ]
    assert_exact(make_model(nodes, weights, ["n", 4, 6], opset=opset))


@many
@given(data=st.data(), opset=st.sampled_from(OPSETS))
def test_slice(data, opset):
    shape = data.draw(st.lists(st.integers(2, 5), min_size=1, max_size=3))
    axes = data.draw(st.lists(st.integers(1, len(shape)), min_size=1, unique=True))
    starts, ends, steps = [], [], []
    for axis in axes:
        n = shape[axis - 1]
        start = data.draw(st.integers(0, n - 1))
        backwards = opset >= 10 and data.draw(st.booleans())
        if backwards:
            starts.append(start - data.draw(st.sampled_from([0, n])))
            ends.append(data.draw(st.sampled_from([-(2**31), -(2**62)])))
            steps.append(-data.draw(st.integers(1, 2)))
        else:
            starts.append(start)
            ends.append(data.draw(st.sampled_from([start + 1, n, 2**31 - 1, 2**63 - 1])))
            steps.append(data.draw(st.integers(1, 2)) if opset >= 10 else 1)
    if opset < 10:
        model = one_op("Slice", ["n", *shape], opset=opset, starts=starts, ends=ends, axes=axes)
    else:
        weights = {"s": starts, "e": ends, "a": axes, "t": steps}
        weights = {k: np.array(v, i64) for k, v in weights.items()}
        model = one_op("Slice", ["n", *shape], weights, opset)
    assert_exact(model, n=2)


@many
@given(
    data=st.data(), opset=st.sampled_from(OPSETS), mode=st.sampled_from(["constant", "edge", "reflect"])
)
def test_pad(data, opset, mode):
    shape = data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    rank = len(shape) + 1
    low = -1 if mode == "constant" else 0
    pads = [0] * (2 * rank)
    for axis in range(1, rank):
        pads[axis], pads[rank + axis] = data.draw(st.integers(low, 1)), data.draw(st.integers(0, 1))
    if opset < 11:
        value = {"value": 0.5} if mode == "constant" else {}
        model = one_op("Pad", ["n", *shape], opset=opset, mode=mode, pads=pads, **value)
    elif opset >= 18:
        chosen = list(range(1, rank))
        short = [pads[a] for a in chosen] + [pads[rank + a] for a in chosen]
        weights = {
            "pads": np.array(short, i64),
            "value": np.array(0.5, "f4"),
            "axes": np.array(chosen, i64),
        }
        model = one_op("Pad", ["n", *shape], weights, opset, mode=mode)
    else:
        weights = {"pads": np.array(pads, i64), "value": np.array(0.5, "f4")}
        model = one_op("Pad", ["n", *shape], weights, opset, mode=mode)
    assert_exact(model, n=2)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("axis", [1, 2])
def test_concat_of_tensors_and_constants(axis, opset):
    rng = np.random.default_rng(0)
    nodes = [("Relu", ["x"], ["r"], {}), ("Concat", ["x", "c", "r"], ["y"], {"axis": axis})]
    assert_exact(make_model(nodes, {"c": f32(rng, 1, 3, 3)}, [1, 3, 3], opset=opset))


@pytest.mark.parametrize("opset", OPSETS)
def test_split_and_use_all_parts(opset):
    split = {"split": [1, 3]} if opset < 13 else {}
    weights = {"sizes": np.array([1, 3], i64)} if opset >= 13 else {}
    nodes = [
        ("Split", ["x", *weights], ["a", "b"], {"axis": 1, **split}),
        ("Mul", ["b", "two"], ["c"], {}),
        ("Concat", ["c", "a"], ["y"], {"axis": 1}),
    ]
    assert_exact(make_model(nodes, weights | {"two": np.array(2.0, "f4")}, ["n", 4], opset=opset))


@pytest.mark.parametrize("opset", (8, 13, 17))
def test_expand_tile_gather(opset):
    weights = {
        "shape": np.array([2, 1, 4], i64),
        "times": np.array([1, 3, 1], i64),
        "index": np.array([[3, 0], [-1, 1]], i64),
    }
    nodes = [
        ("Expand", ["x", "shape"], ["e"], {}),
        ("Tile", ["e", "times"], ["t"], {}),
        ("Gather", ["t", "index"], ["y"], {"axis": 2}),
    ]
    if opset < 11:
        weights["index"] = np.abs(weights["index"])
    assert_exact(make_model(nodes, weights, [1, 1, 4], opset=opset))


@pytest.mark.parametrize("opset", OPSETS)
def test_integer_arithmetic_on_shapes_is_folded(opset):
    """What ``x.view(x.size(0), -1)`` and ``x.view(-1, x.size(1) * x.size(2))`` export to."""
    axes = {"axes": [0]} if opset < 13 else {}
    zero = [] if opset < 13 else ["zero1"]
    nodes = [
        ("Shape", ["x"], ["s"], {}),
        ("Gather", ["s", "one"], ["n1"], {"axis": 0}),
        ("Gather", ["s", "two"], ["n2"], {"axis": 0}),
        ("Mul", ["n1", "n2"], ["p"], {}),
        ("Cast", ["p"], ["p64"], {"to": 7}),
        ("Unsqueeze", ["p64", *zero], ["u"], axes),
        ("Concat", ["minus", "u"], ["shape"], {"axis": 0}),
        ("Reshape", ["x", "shape"], ["r"], {}),
        ("MatMul", ["r", "W"], ["y"], {}),
    ]
    weights = {
        "one": np.array(1, i64),
        "two": np.array(2, i64),
        "minus": np.array([-1], i64),
        "zero1": np.array([0], i64),
        "W": f32(np.random.default_rng(0), 12, 3),
    }
    assert_exact(make_model(nodes, weights, ["n", 3, 4], opset=opset))


@pytest.mark.parametrize("numerator, denominator", [(7, 2), (-7, 2), (7, -2)])
def test_integer_division_rounds_towards_zero(numerator, denominator):
    nodes = [
        ("Div", ["a", "b"], ["q"], {}),
        ("Cast", ["q"], ["c"], {"to": 1}),
        ("Add", ["x", "c"], ["y"], {}),
    ]
    weights = {"a": np.array(numerator, i64), "b": np.array(denominator, i64)}
    assert_exact(make_model(nodes, weights, ["n", 2]))


@pytest.mark.parametrize(
    "attributes",
    [{"value_float": 2.5}, {"value_floats": [1.0, 2.0]}, {"value_int": 3}, {"value_ints": [1, 2]}],
)
def test_constants_in_attributes(attributes):
    nodes = [
        ("Constant", [], ["k"], attributes),
        ("Cast", ["k"], ["c"], {"to": 1}),
        ("Add", ["x", "c"], ["y"], {}),
    ]
    assert_exact(make_model(nodes, {}, ["n", 2]))


def test_constants_made_by_operations():
    nodes = [
        ("ConstantOfShape", ["shape"], ["ones"], {"value": _tensor(np.array([1.5], "f4"))}),
        ("Sqrt", ["four"], ["root"], {}),
        ("Pow", ["root", "four"], ["power"], {}),
        ("Reciprocal", ["power"], ["part"], {}),
        ("Equal", ["shape", "shape"], ["same"], {}),
        ("Where", ["same", "part", "four"], ["picked"], {}),
        ("Range", ["zero", "two", "one"], ["range"], {}),
        ("Add", ["x", "ones"], ["a"], {}),
        ("Mul", ["a", "picked"], ["b"], {}),
        ("Add", ["b", "range"], ["y"], {}),
    ]
    weights = {"shape": np.array([2], i64), "four": np.array(4.0, "f4")}
    weights |= {k: np.array(v, "f4") for k, v in {"zero": 0, "one": 1, "two": 2}.items()}
    assert_exact(make_model(nodes, weights, ["n", 2]))


@pytest.mark.parametrize(
    "to, rounded",
    [
        (1, np.float32([0.1, -1 / 3, 70.1])),
        (10, np.float16([0.1, -1 / 3, 70.1])),
        (16, [0.10009765625, -0.333984375, 70.0]),  # bfloat16 keeps eight digits
    ],
)
def test_casting_constants_rounds_them(to, rounded):
    nodes = [
        ("Cast", ["c"], ["h"], {"to": to}),
        ("Cast", ["h"], ["d"], {"to": 1}),
        ("Add", ["x", "d"], ["y"], {}),
    ]
    net = assert_exact(make_model(nodes, {"c": np.array([0.1, -1 / 3, 70.1])}, ["n", 3]), tol=1e-6)
    assert (net.layers[0].bias == rounded).all()


def _tensor(array):
    from onnx import numpy_helper

    return numpy_helper.from_array(array)


# ---------------------------------------------------------------------- whole networks, refusals


def test_convolutional_network_with_everything():
    rng = np.random.default_rng(0)
    nodes = [
        ("Sub", ["x", "mean"], ["c0"], {}),
        ("Div", ["c0", "std"], ["c1"], {}),
        ("Conv", ["c1", "K1"], ["h1"], {"pads": [1, 1, 1, 1]}),
        ("BatchNormalization", ["h1", "g", "b", "m", "v"], ["n1"], {}),
        ("Relu", ["n1"], ["r1"], {}),
        ("Conv", ["r1", "K2", "g"], ["h2"], {"pads": [1, 1, 1, 1], "group": 2}),
        ("Add", ["h2", "r1"], ["s"], {}),
        ("Clip", ["s", "lo", "hi"], ["r6"], {}),
        ("MaxPool", ["r6"], ["p"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("GlobalAveragePool", ["p"], ["q"], {}),
        ("Flatten", ["q"], ["f"], {}),
        ("Gemm", ["f", "W"], ["y"], {}),
    ]
    weights = {
        "mean": f32(rng, 3, 1, 1), "std": np.full((3, 1, 1), 0.25, "f4"), "K1": f32(rng, 4, 3, 3, 3),
        "K2": f32(rng, 4, 2, 3, 3), "g": f32(rng, 4), "b": f32(rng, 4), "m": f32(rng, 4),
        "v": rng.uniform(0.5, 1, 4).astype("f4"), "W": f32(rng, 4, 3),
        "lo": np.array(0, "f4"), "hi": np.array(6, "f4"),
    }  # fmt: skip
    assert_exact(make_model(nodes, weights, ["n", 3, 6, 6]), n=50, tol=1e-4)


@pytest.mark.parametrize("op", ["Mul", "MatMul", "Div"])
def test_products_of_tensors_are_read_and_have_no_exact_form(op):
    nodes = [("Exp", ["x"], ["e"], {}), (op, ["x", "e"], ["y"], {})]
    model = assert_agrees(make_model(nodes, {}, [3, 3]))
    with pytest.raises(UnsupportedModelError, match=r"node 0 'Exp_0' \(Exp\)"):
        model.relu_network()


def test_indices_of_max_pool_are_refused():
    nodes = [
        ("MaxPool", ["x"], ["p", "i"], {"kernel_shape": [2]}),
        ("Cast", ["i"], ["c"], {"to": 1}),
        ("Add", ["p", "c"], ["y"], {}),
    ]
    with pytest.raises(UnsupportedModelError, match="output 2"):
        model_from_onnx(make_model(nodes, {}, ["n", 1, 4]).SerializeToString())


@pytest.mark.parametrize("op, weights", [("MaxPool", {}), ("Conv", {"K": np.ones((1, 1, 2), "f4")})])
def test_automatic_padding_with_dilations_is_refused(op, weights):
    model = one_op(op, ["n", 1, 5], weights, kernel_shape=[2], dilations=[2], auto_pad="SAME_UPPER")
    with pytest.raises(UnsupportedModelError, match="runtimes disagree"):
        model_from_onnx(model.SerializeToString())


def test_training_mode_is_refused():
    weights = {k: np.ones(3, "f4") for k in ("s", "b", "m", "v")}
    nodes = [("BatchNormalization", ["x", *weights], ["y", "m2", "v2"], {"training_mode": 1})]
    with pytest.raises(UnsupportedModelError, match="evaluation mode"):
        model_from_onnx(make_model(nodes, weights, ["n", 3], opset=15).SerializeToString())


@pytest.mark.parametrize("low, high", [(-1e30, 0.5), (-1e30, None), (None, 1e30), (-1e10, 1e10)])
def test_a_far_bound_does_not_hide_the_digits_of_what_it_bounds(low, high):
    bounds = {"low": low, "high": high}
    weights = {name: np.float32(bound) for name, bound in bounds.items() if bound is not None}
    names = ("x", *(name if bound is not None else "" for name, bound in bounds.items()))
    assert_exact(one_op("Clip", ["n", 4], weights, names=names), tol=1e-6)


@pytest.mark.parametrize("op, constant", [("Max", -1e30), ("Min", 1e30)])
def test_a_far_constant_does_not_hide_the_digits_of_a_tensor(op, constant):
    model = one_op(op, ["n", 4], {"c": np.float32(constant)}, names=("c", "x"))
    assert_exact(model, tol=1e-6)


def test_clipping_to_infinity_is_refused():
    model = one_op("Clip", ["n", 4], {"low": np.float32(np.inf)}, names=("x", "low"))
    with pytest.raises(UnsupportedModelError, match="min <= max"):
        model_from_onnx(model.SerializeToString())


def test_slices_begin_and_end_at_lists():
    weights = {"start": np.array(0), "end": np.array([2])}
    assert "needs lists" in refusal(one_op("Slice", ["n", 4], weights), ModelFileError)


def test_bounds_of_a_clip_are_single_numbers():
    nodes = [("Abs", ["x"], ["a"], {}), ("Clip", ["x", "a"], ["y"], {})]
    assert "one number" in refusal(make_model(nodes, {}, ["n", 4]), ModelFileError)
    nodes = [
        ("ReduceMin", ["x"], ["low"], {"keepdims": 0}),
        ("Mul", ["low", "half"], ["a"], {}),
        ("Clip", ["x", "a"], ["y"], {}),
    ]
    assert_agrees(make_model(nodes, {"half": np.float32(0.5)}, [1, 4]))


def test_outputs_of_training_put_batch_normalization_into_training_mode():
    weights = {name: np.ones(4, "f4") for name in "sbmv"}
    nodes = [("BatchNormalization", ["x", *"sbmv"], ["y", "m2", "v2", "m3", "v3"], {})]
    model = make_model(nodes, weights, ["n", 4], opset=9)
    with pytest.raises(UnsupportedModelError, match="training mode"):
        model_from_onnx(model.SerializeToString())


_PADS = [1999] * 4


@pytest.mark.parametrize(
    "op, image, kernel, attributes",
    [
        ("Conv", [1, 1, 1, 1], (1000, 1, 1, 1), {"pads": _PADS}),
        ("Conv", [1, 1000, 40, 40], (1, 1000, 3, 3), {"pads": [900] * 4}),
        ("AveragePool", [1, 1000, 1, 1], None, {"kernel_shape": [2000, 2000], "pads": _PADS}),
        ("MaxPool", [1, 1, 2000, 2000], None, {"kernel_shape": [1000, 1000]}),
    ],
)
def test_small_files_that_ask_for_gigabytes_are_refused_before_they_get_them(
    op, image, kernel, attributes
):
    if kernel is None:
        model = one_op(op, image, **{"kernel_shape": [1, 1], **attributes})
    else:
        weights = {"W": np.ones(kernel, "f4")}
        model = one_op(op, image, weights, names=("x", "W"), **attributes)
    tracemalloc.start()
    with pytest.raises(UnsupportedModelError, match="limit"):
        model_from_onnx(model.SerializeToString()).relu_network()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**30


@pytest.mark.parametrize(("kind", "dtype"), [(1, np.float32), (10, np.float16), (11, np.float64)])
def test_constants_are_computed_in_their_own_type(kind, dtype):
    """As a runtime does it: what is made of two stored numbers is rounded to their type."""
    weights = {"a": np.array([0.1, 0.3], dtype), "b": np.array([0.7, 0.9], dtype)}
    nodes = [("Mul", ["a", "b"], ["c"], {}), ("Add", ["x", "c"], ["y"], {})]
    model = read(make_model(nodes, weights, ["n", 2], kind=kind))
    product = (weights["a"] * weights["b"]).astype(float)
    assert (model(np.zeros(2)) == product).all()
    exact = weights["a"].astype(float) * weights["b"].astype(float)
    assert (product == exact).all() == (kind == 11)


def test_a_division_is_written_as_one():
    """By the file's own number; a product with its inverse would be rounded once more."""
    model = read(one_op("Div", ["n", 2], {"c": np.array([3.0, 1.4140625], "f4")}))
    written = onnx.load_from_string(onnx_bytes(model))
    assert [node.op_type for node in written.graph.node] == ["Div"]
    assert (numpy_helper.to_array(written.graph.initializer[0]) == [3.0, 1.4140625]).all()
    assert read(written) == model
