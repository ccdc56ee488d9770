"""Smooth operations, products of tensors, rare ones: each a few times, against onnxruntime."""

import numpy as np
import onnx
import onnxruntime
import pytest

from pindown.errors import ModelFileError, UnsupportedModelError
from tests.io.onnx_models import assert_agrees, f32, i64, make_model, one_op, read, refusal

rng = np.random.default_rng(0)
N = ["n", 3, 4]


def after(op, in_shape=N, before="Exp", opset=13, weights=None, **attributes):
    """A model of an operation on positive numbers, or on two tensors if it takes them."""
    weights = weights or {}
    nodes = [(before, ["x"], ["e"], {}), (op, ["e", *weights], ["y"], attributes)]
    return make_model(nodes, weights, in_shape, opset=opset)


def pair(op, in_shape=N, opset=13, other="Exp", **attributes):
    return make_model(
        [(other, ["x"], ["e"], {}), (op, ["x", "e"], ["y"], attributes)], {}, in_shape, opset=opset
    )


ENTRYWISE = {
    **{
        op: one_op(op, N, opset=17)
        for op in (
            "Sigmoid",
            "Tanh",
            "Erf",
            "Exp",
            "Sin",
            "Cos",
            "Tan",
            "Atan",
            "Sinh",
            "Cosh",
            "Asinh",
            "Softplus",
            "Softsign",
            "HardSwish",
            "Sign",
            "Floor",
            "Ceil",
            "Round",
        )
    },
    **{op: after(op, before="Tanh") for op in ("Asin", "Acos", "Atanh")},
    **{op: after(op) for op in ("Log", "Sqrt", "Reciprocal")},
    "Acosh": make_model(
        [("Exp", ["x"], ["e"], {}), ("Add", ["e", "one"], ["a"], {}), ("Acosh", ["a"], ["y"], {})],
        {"one": np.float32(1)},
        N,
    ),
    "Elu": one_op("Elu", N, alpha=0.3),
    "Selu": one_op("Selu", N),
    "Selu 2": one_op("Selu", N, alpha=1.5, gamma=2.0),
    "Celu": one_op("Celu", N, alpha=2.0),
    "Mish": one_op("Mish", N, opset=18),
    "HardSigmoid": one_op("HardSigmoid", N, alpha=0.1, beta=0.2),
    "HardSigmoid default": one_op("HardSigmoid", N),
    "Shrink": one_op("Shrink", N, lambd=0.5, bias=0.5),
    "ThresholdedRelu": one_op("ThresholdedRelu", N, alpha=0.0),
    "Gelu": one_op("Gelu", N, opset=20),
    "Gelu tanh": one_op("Gelu", N, opset=20, approximate="tanh"),
    **{f"Pow {e}": after("Pow", weights={"c": np.float32(e)}) for e in (2, 3, 0.5, -1, 1.5, 1, -0.5)},
    "Pow of a constant": one_op("Pow", N, {"c": np.float32(2)}, names=("c", "x")),
    "Clip by tensors": make_model(
        [
            ("ReduceMin", ["x"], ["l"], {"keepdims": 0}),
            ("Mul", ["l", "half"], ["m"], {}),
            ("Clip", ["x", "m"], ["y"], {}),
        ],
        {"half": np.float32(0.5)},
        [1, 5],
    ),
}

PRODUCTS = {
    **{op: pair(op) for op in ("Mul", "Div", "Add", "Sub", "Max", "Min")},
    "Mean": make_model([("Exp", ["x"], ["e"], {}), ("Mean", ["x", "e", "x"], ["y"], {})], {}, N),
    "Mul by itself": one_op("Mul", N, names=("x", "x")),
    "MatMul": pair("MatMul", ["n", 3, 3]),
    "Gemm": pair("Gemm", [3, 3], transB=1, alpha=0.5),
    "MatMul stack": one_op("MatMul", ["n", 2, 3, 4], {"W": f32(rng, 2, 4, 5)}),
    "MatMul stack left": one_op("MatMul", ["n", 2, 3, 4], {"W": f32(rng, 2, 5, 3)}, names=("W", "x")),
    "MatMul of vectors": pair("MatMul", [4]),
    **{
        f"Einsum {e}": pair("Einsum", ["n", 3, 3], equation=e)
        for e in (
            "bij,bjk->bik",
            "bij,bkj->bki",
            "bij,bij->b",
            "bij , bij -> ij",
            "bij,bkl->bijkl",
        )
    },
    "Einsum weight": one_op("Einsum", ["n", 3, 4], {"W": f32(rng, 5, 4)}, equation="bij,kj->bik"),
    "Einsum three": one_op(
        "Einsum", ["n", 3], {"A": f32(rng, 3, 4), "B": f32(rng, 4, 2)}, equation="bi,ij,jk->bk"
    ),
    "Einsum turned": one_op("Einsum", N, equation="bij->jbi"),
    "Einsum sum": one_op("Einsum", N, equation="bij->b"),
    "Einsum implicit": one_op("Einsum", ["n", 3], {"A": f32(rng, 3, 4)}, equation="bi,ij"),
    "CumSum": one_op("CumSum", N, {"a": np.array(1)}, 14),
    "Trilu": one_op("Trilu", ["n", 3, 3], opset=14, upper=0),
    "CumSum back": one_op("CumSum", N, {"a": np.array(-1)}, 14, reverse=1, exclusive=1),
    "Trilu 1": one_op("Trilu", ["n", 3, 3], {"k": np.array(1)}, opset=14),
}

AXES = {
    f"{op} {axes} {keep}": one_op(op, N, axes=axes, keepdims=keep)
    for op in (
        "ReduceMax",
        "ReduceMin",
        "ReduceSumSquare",
        "ReduceL1",
        "ReduceL2",
        "ReduceProd",
        "ReduceLogSumExp",
    )
    for axes, keep in (([1], 1), ([2], 0), ([1, 2], 0))
} | {"ReduceLogSum": after("ReduceLogSum", axes=[1])}

NORMS = {
    **{
        f"{op} {axis} {opset}": one_op(op, N, opset=opset, axis=axis)
        for op in ("Softmax", "LogSoftmax")
        for axis in (1, 2)
        for opset in (11, 13)
    },
    "LayerNormalization": one_op("LayerNormalization", N, {"s": f32(rng, 4), "b": f32(rng, 4)}, 17),
    "LayerNormalization 1": one_op("LayerNormalization", N, {"s": f32(rng, 3, 4)}, 17, axis=1),
    "LayerNormalization wide": one_op(
        "LayerNormalization", N, {"s": f32(rng, 4), "b": f32(rng, 1)}, 17, axis=1
    ),
    "LayerNormalization of onnxruntime": one_op(
        "LayerNormalization", N, {"s": f32(rng, 4), "b": f32(rng, 4)}, 13
    ),
    "RMSNormalization": one_op("RMSNormalization", N, {"s": f32(rng, 4)}, 23),
    "SimplifiedLayerNormalization": one_op("SimplifiedLayerNormalization", N, {"s": f32(rng, 4)}, 13),
    "InstanceNormalization": one_op(
        "InstanceNormalization", ["n", 3, 4, 2], {"s": f32(rng, 3), "b": f32(rng, 3)}
    ),
    "GroupNormalization 18": one_op(
        "GroupNormalization", ["n", 4, 3], {"s": f32(rng, 2), "b": f32(rng, 2)}, 18, num_groups=2
    ),
    "GroupNormalization 21": one_op(
        "GroupNormalization", ["n", 4, 3], {"s": f32(rng, 4), "b": f32(rng, 4)}, 21, num_groups=2
    ),
    **{f"LpNormalization {p}": one_op("LpNormalization", N, p=p, axis=1) for p in (1, 2)},
    "MeanVarianceNormalization": one_op("MeanVarianceNormalization", ["n", 4, 3, 2]),
    "LRN": one_op("LRN", ["n", 5, 3, 2], size=3, alpha=0.1, beta=0.7, bias=1.5),
}

IMAGES = {
    "ConvTranspose": one_op(
        "ConvTranspose",
        ["n", 2, 4, 4],
        {"k": f32(rng, 2, 3, 3, 3), "b": f32(rng, 3)},
        strides=[2, 2],
        pads=[1, 1, 1, 1],
        output_padding=[1, 1],
    ),
    "ConvTranspose groups": one_op(
        "ConvTranspose",
        ["n", 4, 4],
        {"k": f32(rng, 4, 3, 3), "b": f32(rng, 6)},
        strides=[2],
        group=2,
        dilations=[2],
    ),
    "ConvTranspose same": one_op(
        "ConvTranspose",
        ["n", 2, 4, 4],
        {"k": f32(rng, 2, 3, 3, 3)},
        strides=[2, 2],
        auto_pad="SAME_UPPER",
    ),
    "ConvTranspose shape": one_op(
        "ConvTranspose", ["n", 2, 4, 4], {"k": f32(rng, 2, 3, 3, 3)}, strides=[2, 2], output_shape=[8, 8]
    ),
    "Resize sizes": one_op(
        "Resize", ["n", 2, 4, 5], {"s": np.array([1, 2, 7, 3], i64)}, names=("x", "", "", "s")
    ),
    "Resize linear": one_op(
        "Resize",
        ["n", 2, 4, 5],
        {"s": np.array([1, 1, 2, 1.5], "f4")},
        names=("x", "", "s"),
        mode="linear",
    ),
    "Resize axes": one_op(
        "Resize",
        ["n", 2, 4, 5],
        {"s": np.array([7, 3], i64)},
        18,
        names=("x", "", "", "s"),
        axes=[2, 3],
        mode="cubic",
    ),
    "Resize 10": one_op("Resize", ["n", 2, 4, 5], {"s": np.array([1, 1, 2, 3], "f4")}, 10),
    "Upsample 7": one_op("Upsample", ["n", 2, 4, 5], opset=7, scales=[1.0, 1.0, 2.0, 3.0]),
    "Upsample 9": one_op(
        "Upsample", ["n", 2, 4, 5], {"s": np.array([1, 1, 2, 2], "f4")}, 9, mode="linear"
    ),
    "DepthToSpace": one_op("DepthToSpace", ["n", 8, 2, 3], blocksize=2),
    "DepthToSpace CRD": one_op("DepthToSpace", ["n", 8, 2, 3], blocksize=2, mode="CRD"),
    "SpaceToDepth": one_op("SpaceToDepth", ["n", 2, 4, 6], blocksize=2),
    "LpPool": one_op("LpPool", ["n", 2, 6, 6], kernel_shape=[2, 2], strides=[2, 2]),
}

MOVES = {
    "GatherElements": one_op("GatherElements", [1, 3, 4], {"i": rng.integers(-3, 3, (1, 2, 4))}, axis=1),
    "GatherND": one_op("GatherND", [1, 3, 4], {"i": np.array([[0, 1], [0, 2]])}),
    "GatherND batch": one_op(
        "GatherND", [2, 3, 4], {"i": np.array([[[1], [0]], [[2], [1]]])}, batch_dims=1
    ),
    "ScatterND": one_op("ScatterND", [4, 3], {"i": np.array([[1], [3]]), "u": f32(rng, 2, 3)}),
    "ScatterElements": one_op(
        "ScatterElements", [1, 4], {"i": np.array([[1, 3]]), "u": f32(rng, 1, 2)}, axis=1
    ),
    "Where": one_op(
        "Where",
        ["n", 3],
        {"c": np.array([True, False, True]), "b": f32(rng, 2, 1)},
        names=("c", "x", "b"),
    ),
    "Where left": one_op(
        "Where",
        ["n", 3],
        {"c": np.array([True, False, True]), "b": np.float32(2)},
        names=("c", "b", "x"),
    ),
    "a mask": make_model(
        [("Where", ["c", "x", "m"], ["h"], {}), ("Softmax", ["h"], ["y"], {})],
        {"c": np.array([True, False, True]), "m": np.float32(-np.inf)},
        ["n", 3],
    ),
    "an added mask": make_model(
        [("Add", ["x", "m"], ["h"], {}), ("Softmax", ["h"], ["y"], {})],
        {"m": np.array([[0, -np.inf, 0]], "f4")},
        ["n", 3],
    ),
    "Split in three": make_model(
        [("Split", ["x"], ["a", "b", "y"], {"axis": 1, "num_outputs": 3})], {}, ["n", 7], opset=18
    ),
    "CastLike": one_op("CastLike", ["n", 3], {"c": np.float32(1)}, 15),
}

COMPARED = {
    **{
        op: make_model(
            [(op, ["x", "c"], ["t"], {}), ("Cast", ["t"], ["y"], {"to": 1})], {"c": np.float32(0.3)}, N
        )
        for op in ("Greater", "Less", "GreaterOrEqual", "LessOrEqual")
    },
    "Where of two": make_model(
        [
            ("Tanh", ["x"], ["t"], {}),
            ("Less", ["x", "t"], ["l"], {}),
            ("Not", ["l"], ["k"], {}),
            ("Where", ["k", "x", "t"], ["y"], {}),
        ],
        {},
        N,
    ),
    "And, Or": make_model(
        [
            ("Greater", ["x", "c"], ["a"], {}),
            ("Less", ["d", "x"], ["b"], {}),
            ("And", ["a", "b"], ["e"], {}),
            ("Or", ["e", "a"], ["f"], {}),
            ("Where", ["f", "x", "c"], ["y"], {}),
        ],
        {"c": np.float32(0.3), "d": np.float32(1)},
        N,
    ),
}

TABLE = ENTRYWISE | PRODUCTS | AXES | NORMS | IMAGES | MOVES | COMPARED


@pytest.mark.parametrize("case", TABLE)
def test_the_runtime_computes_the_same(case):
    if case == "RMSNormalization":
        _needs_operator_set(23)
    ours = assert_agrees(TABLE[case], n=4)
    jumps = case in COMPARED or case in ("Sign", "Floor", "Ceil", "Round")
    assert any("jump" in note for note in ours.notes) == jumps


def _needs_operator_set(version):
    if onnx.defs.onnx_opset_version() < version or onnxruntime.__version__.split(".") < ["1", "23"]:
        pytest.skip(f"operator set {version} is not known here")


ATTENTION = {
    "plain": ([1, 2, 3, 4], {}),
    "causal": ([1, 2, 3, 4], {"is_causal": 1}),
    "scaled": ([1, 2, 3, 4], {"scale": 0.3}),
    "heads": ([1, 3, 8], {"q_num_heads": 2, "kv_num_heads": 2}),
}


@pytest.mark.parametrize("case", ATTENTION)
def test_attention_is_read_by_its_definition(case):
    _needs_operator_set(23)
    shape, attributes = ATTENTION[case]
    nodes = [("Tanh", ["x"], ["r"], {}), ("Attention", ["x", "r", "x"], ["y"], attributes)]
    model = assert_agrees(make_model(nodes, {}, shape, opset=23), n=4)
    assert model.nodes[-1].name == "node 1 'Attention_1' (Attention)"


@pytest.mark.parametrize("chosen", [True, False])
def test_a_branch_that_is_always_taken_is_read(chosen):
    from onnx import helper

    def branch(op, weight):
        node = helper.make_node(op, ["x", weight], ["z"], name=f"inner {op}")
        return helper.make_graph([node], op, [], [helper.make_tensor_value_info("z", 1, None)])

    inner = {"then_branch": branch("Mul", "w"), "else_branch": branch("Add", "w")}
    weights = {"w": f32(rng, 3), "c": np.array(chosen)}
    assert_agrees(make_model([("If", ["c"], ["y"], inner)], weights, ["n", 3]))
    nodes = [("ReduceMax", ["x"], ["m"], {"keepdims": 0}), ("Greater", ["m", "w0"], ["t"], {})]
    open_ = make_model([*nodes, ("If", ["t"], ["y"], inner)], {**weights, "w0": np.float32(0)}, [1, 3])
    assert "control flow" in refusal(open_)


REFUSED = {
    "a jump": (one_op("ThresholdedRelu", N, alpha=1.0), "jumps"),
    "a hard threshold": (one_op("Shrink", N, lambd=0.5), "soft threshold"),
    "powers": (one_op("Pow", ["n", 2], {"c": np.array([2, 3], "f4")}), "several exponents"),
    "power of two tensors": (pair("Pow"), "constant exponent"),
    "a diagonal": (one_op("Einsum", ["n", 3, 3], equation="bii->bi"), "diagonal"),
    "dots": (one_op("Einsum", ["n", 3, 3], equation="...i->..."), "without dots"),
    "positions": (
        make_model([("ArgMax", ["x"], ["a"], {}), ("Cast", ["a"], ["y"], {"to": 1})], {}, N),
        "--output",
    ),
    "integers": (
        make_model([("Cast", ["x"], ["a"], {"to": 7}), ("Cast", ["a"], ["y"], {"to": 1})], {}, N),
        "rounds",
    ),
    "antialias": (
        one_op(
            "Resize",
            ["n", 2, 4, 5],
            {"s": np.array([1, 2, 7, 3], i64)},
            18,
            names=("x", "", "", "s"),
            mode="linear",
            antialias=1,
        ),
        "antialias",
    ),
    "scatter twice": (one_op("ScatterND", [4], {"i": np.array([[1], [1]]), "u": f32(rng, 2)}), "twice"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_read_is_refused_in_one_line(case):
    model, words = REFUSED[case]
    assert words in refusal(model)


@pytest.mark.parametrize(
    "model",
    [
        one_op("DepthToSpace", ["n", 3, 2, 2], blocksize=2),
        one_op("Einsum", ["n", 3], {"A": f32(rng, 4, 4)}, equation="bi,ij->bj"),
        one_op("LayerNormalization", N, {"s": f32(rng, 5)}, 17),
        one_op("ConvTranspose", ["n", 3, 4], {"k": f32(rng, 2, 3, 3)}),
        one_op("GatherElements", [1, 3], {"i": np.array([[5]])}, axis=1),
        one_op("Resize", ["n", 2, 4], {"s": np.array([1, 0, 7], i64)}, names=("x", "", "", "s")),
    ],
)
def test_what_does_not_fit_is_refused(model):
    with pytest.raises((ModelFileError, UnsupportedModelError)):
        read(model)
