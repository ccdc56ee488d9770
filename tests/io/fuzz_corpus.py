"""Sound little model files for the fuzzer to damage; together they use every operation."""

import numpy as np
import scipy.sparse as sp
from onnx import helper

from pindown import ReluNetwork
from tests.io.onnx_models import make_model

i64 = np.int64


def onnx_models():
    """Small models that together use every operation."""
    rng = np.random.default_rng(0)

    def w(*shape):
        return rng.normal(size=shape).astype("f4")

    return [
        _dense(w),
        _image(w),
        _shapes(),
        _pieces(w),
        _constants(),
        _attention(w),
        _recurrent(w),
        _upscaling(w),
        _quantised(),
        _sklearn(),
        _optimised(w),
        _fused_attention(w),
        _functions(w),
    ]


def _dense(w):
    """A classifier with a last softmax."""
    return make_model(
        [
            ("Gemm", ["x", "W", "b"], ["z"], {"transB": 1, "alpha": 1.0, "beta": 1.0}),
            ("Relu", ["z"], ["a"], {}),
            ("MatMul", ["a", "V"], ["h"], {}),
            ("Add", ["h", "c"], ["s"], {}),
            ("Softmax", ["s"], ["y"], {"axis": 1}),
        ],
        {"W": w(4, 3), "b": w(4), "V": w(4, 2), "c": w(2)},
        ["n", 3],
        ["n", 2],
    )


def _image(w):
    """Convolution, normalisation and pooling."""
    return make_model(
        [
            (
                "Conv",
                ["x", "K", "b"],
                ["c"],
                {"pads": [1, 1, 1, 1], "strides": [1, 1], "group": 1, "dilations": [1, 1]},
            ),
            ("BatchNormalization", ["c", "b", "b", "b", "v"], ["n"], {"epsilon": 1e-5}),
            ("LeakyRelu", ["n"], ["r"], {"alpha": 0.1}),
            ("MaxPool", ["r"], ["p"], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}),
            (
                "AveragePool",
                ["p"],
                ["q"],
                {"kernel_shape": [2, 2], "pads": [0, 1, 0, 1], "count_include_pad": 1},
            ),
            ("GlobalAveragePool", ["q"], ["g"], {}),
            ("Flatten", ["g"], ["y"], {"axis": 1}),
        ],
        {"K": w(2, 1, 3, 3), "b": w(2), "v": np.ones(2, "f4")},
        [1, 1, 5, 5],
        [1, 2],
    )


def _shapes():
    """Shape arithmetic as exporters write it."""
    return make_model(
        [
            ("Shape", ["x"], ["s"], {}),
            ("Gather", ["s", "zero"], ["g"], {"axis": 0}),
            ("Unsqueeze", ["g", "zeros"], ["u"], {}),
            ("Concat", ["u", "minus"], ["t"], {"axis": 0}),
            ("Reshape", ["x", "t"], ["r"], {}),
            ("Slice", ["r", "zeros", "four", "ones"], ["sl"], {}),
            ("Pad", ["sl", "pads", "value"], ["p"], {"mode": "constant"}),
            ("Transpose", ["p"], ["y"], {"perm": [1, 0]}),
        ],
        {
            "zero": np.array(0, i64),
            "zeros": np.array([0], i64),
            "minus": np.array([-1], i64),
            "ones": np.array([1], i64),
            "four": np.array([4], i64),
            "pads": np.array([0, 1, 0, 1], i64),
            "value": np.array(0.5, "f4"),
        },
        ["n", 2, 3],
    )


def _pieces(w):
    """Clipping, splitting and joining."""
    return make_model(
        [
            ("Clip", ["x", "lo", "hi"], ["c"], {}),
            ("Split", ["c", "sizes"], ["a", "b"], {"axis": 1}),
            ("PRelu", ["a", "slope"], ["p"], {}),
            ("Max", ["p", "b", "lo"], ["m"], {}),
            ("Expand", ["m", "shape"], ["e"], {}),
            ("Tile", ["e", "times"], ["t"], {}),
            ("ReduceSum", ["t", "axes"], ["r"], {"keepdims": 1}),
            ("ReduceMean", ["r"], ["mean"], {"axes": [1], "keepdims": 0}),
            ("Squeeze", ["mean", "zeros"], ["q"], {}),
            ("Cast", ["q"], ["f"], {"to": 1}),
            ("Div", ["f", "hi"], ["d"], {}),
            ("Sub", ["d", "lo"], ["y"], {}),
        ],
        {
            "lo": np.array(-1, "f4"),
            "hi": np.array(6, "f4"),
            "sizes": np.array([2, 2], i64),
            "slope": w(1),
            "shape": np.array([3, 1, 2], i64),
            "times": np.array([1, 2, 1], i64),
            "axes": np.array([0], i64),
            "zeros": np.array([0], i64),
        },
        ["n", 4],
    )


def _constants():
    """Tensors made from constants alone."""
    return make_model(
        [
            ("ConstantOfShape", ["shape"], ["c"], {}),
            ("Range", ["a", "b", "s"], ["r"], {}),
            ("Add", ["c", "r"], ["k"], {}),
            ("Equal", ["k", "r"], ["e"], {}),
            ("Where", ["e", "k", "r"], ["o"], {}),
            ("Mul", ["x", "o"], ["m"], {}),
            ("Abs", ["m"], ["v"], {}),
            ("Min", ["v", "x"], ["n"], {}),
            ("Neg", ["n"], ["g"], {}),
            ("Identity", ["g"], ["y"], {}),
        ],
        {
            "shape": np.array([3], i64),
            "a": np.array(0, "f4"),
            "b": np.array(3, "f4"),
            "s": np.array(1, "f4"),
        },
        ["n", 3],
        ["n", 3],
    )


def _attention(w):
    """A head of attention with a mask, layer norm and GELU."""
    return make_model(
        [
            ("LayerNormalization", ["x", "s", "b"], ["n"], {"axis": -1, "epsilon": 1e-5}),
            ("MatMul", ["n", "Q"], ["q"], {}),
            ("MatMul", ["n", "K"], ["k"], {}),
            ("Transpose", ["k"], ["t"], {"perm": [0, 2, 1]}),
            ("MatMul", ["q", "t"], ["z"], {}),
            ("Where", ["mask", "z", "low"], ["m"], {}),
            ("Softmax", ["m"], ["p"], {"axis": -1}),
            ("Einsum", ["p", "n"], ["o"], {"equation": "bij,bjk->bik"}),
            ("Div", ["o", "root"], ["d"], {}),
            ("Erf", ["d"], ["e"], {}),
            ("Add", ["e", "one"], ["a"], {}),
            ("Mul", ["o", "a"], ["h"], {}),
            ("Mul", ["h", "half"], ["g"], {}),
            ("ReduceMax", ["g"], ["y"], {"axes": [1], "keepdims": 0}),
        ],
        {
            "s": w(4),
            "b": w(4),
            "Q": w(4, 4),
            "K": w(4, 4),
            "mask": np.tril(np.ones((3, 3), bool)),
            "low": np.float32(-1e9),
            "root": np.float32(2**0.5),
            "one": np.float32(1),
            "half": np.float32(0.5),
        },
        ["n", 3, 4],
        opset=17,
    )


def _recurrent(w):
    """An LSTM whose last state is read."""
    return make_model(
        [
            ("Transpose", ["x"], ["t"], {"perm": [1, 0, 2]}),
            (
                "LSTM",
                ["t", "W", "R", "B"],
                ["all", "h", "c"],
                {"hidden_size": 2, "direction": "bidirectional"},
            ),
            ("GRU", ["t", "V", "S"], ["", "g"], {"hidden_size": 2, "linear_before_reset": 1}),
            ("Concat", ["h", "c", "g"], ["j"], {"axis": 0}),
            ("Tanh", ["j"], ["y"], {}),
        ],
        {"W": w(2, 8, 3), "R": w(2, 8, 2), "B": w(2, 16), "V": w(1, 6, 3), "S": w(1, 6, 2)},
        ["n", 3, 3],
        opset=14,
    )


def _upscaling(w):
    """Transposed convolution, resizing, instance norm, and functions of one number."""
    return make_model(
        [
            ("ConvTranspose", ["x", "K", "b"], ["c"], {"strides": [2, 2], "pads": [0, 0, 1, 1]}),
            ("InstanceNormalization", ["c", "s", "b"], ["n"], {"epsilon": 1e-3}),
            ("Sigmoid", ["n"], ["g"], {}),
            ("Mul", ["n", "g"], ["a"], {}),
            ("Resize", ["a", "", "scales"], ["r"], {"mode": "linear"}),
            ("HardSigmoid", ["r"], ["h"], {"alpha": 0.2, "beta": 0.5}),
            ("DepthToSpace", ["h"], ["d"], {"blocksize": 1}),
            ("ReduceLogSumExp", ["d"], ["y"], {"axes": [2, 3], "keepdims": 0}),
        ],
        {"K": w(1, 2, 2, 2), "b": w(2), "s": w(2), "scales": np.array([1, 1, 2, 0.5], "f4")},
        [1, 1, 3, 3],
    )


def _quantised():
    """Quantised weights and tensors."""
    return make_model(
        [
            ("QuantizeLinear", ["x", "sx", "zx"], ["q"], {}),
            ("DequantizeLinear", ["q", "sx", "zx"], ["d"], {}),
            ("DequantizeLinear", ["W", "sw", "zw"], ["v"], {"axis": 1}),
            ("MatMul", ["d", "v"], ["m"], {}),
            ("DynamicQuantizeLinear", ["m"], ["u", "su", "zu"], {}),
            ("MatMulInteger", ["u", "V", "zu"], ["i"], {}),
            ("Cast", ["i"], ["f"], {"to": 1}),
            ("Mul", ["f", "su"], ["y"], {}),
        ],
        {
            "sx": np.float32(0.05),
            "zx": np.uint8(128),
            "W": np.arange(-6, 6, dtype="i1").reshape(3, 4),
            "sw": np.array([0.1, 0.2, 0.3, 0.1], "f4"),
            "zw": np.zeros(4, "i1"),
            "V": np.ones((4, 2), "i1"),
        },
        ["n", 3],
    )


def _sklearn():
    """A scaler and a linear classifier."""
    return make_model(
        [
            ("ai.onnx.ml:Scaler", ["x"], ["s"], {"offset": [0.0, 1.0], "scale": [1.0, 2.0]}),
            ("ai.onnx.ml:Normalizer", ["s"], ["n"], {"norm": "L2"}),
            (
                "ai.onnx.ml:LinearClassifier",
                ["n"],
                ["label", "y"],
                {
                    "coefficients": [1.0, 2.0, -1.0, 0.5],
                    "intercepts": [0.1, 0.2],
                    "classlabels_ints": [0, 1],
                    "post_transform": "SOFTMAX",
                },
            ),
        ],
        {},
        ["n", 2],
    )


def _optimised(w):
    """Operations of onnxruntime's own."""
    return make_model(
        [
            ("com.microsoft:FusedGemm", ["x", "W", "b"], ["g"], {"activation": "Relu", "transB": 1}),
            ("com.microsoft:BiasGelu", ["g", "b"], ["e"], {}),
            ("com.microsoft:SkipLayerNormalization", ["e", "g", "b", "b"], ["y"], {"epsilon": 1e-5}),
        ],
        {"W": w(4, 3), "b": w(4)},
        ["n", 3],
    )


def _fused_attention(w):
    """Attention in one node, of one tensor and of three."""
    return make_model(
        [
            ("com.microsoft:Attention", ["x", "W", "b", "m"], ["a"], {"num_heads": 2}),
            ("MatMul", ["a", "Q"], ["q"], {}),
            ("MatMul", ["x", "Q"], ["k"], {}),
            (
                "com.microsoft:MultiHeadAttention",
                ["q", "k", "x", "b"],
                ["y"],
                {"num_heads": 2, "scale": 0.5, "mask_filter_value": -9.0},
            ),
        ],
        {"W": w(4, 12), "b": w(12), "m": np.ones((1, 3), np.int32), "Q": w(4, 4)},
        [1, 3, 4],
    )


def _functions(w):
    """A function that the file defines itself, called twice."""
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("mine", 1)]
    inner = [
        helper.make_node("Gemm", ["x", "W"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["y"]),
    ]
    model = make_model(
        [("mine:Layer", ["x", "V"], ["h"], {}), ("mine:Layer", ["h", "U"], ["y"], {})],
        {"V": w(4, 3), "U": w(2, 4)},
        ["n", 3],
        domains=[("mine", 1)],
    )
    model.functions.append(helper.make_function("mine", "Layer", ["x", "W"], ["y"], inner, opsets))
    return model


def networks():
    """Small networks for the writers: dense, sparse, with facts."""
    rng = np.random.default_rng(0)
    yield ReluNetwork.from_layers(
        [(rng.normal(size=(4, 6)), rng.normal(size=4)), (rng.normal(size=(2, 4)), np.ones(2))],
        input_shape=(2, 3),
        output_activation="softmax",
        notes=("a note",),
    )
    W = sp.random_array((5, 6), density=0.3, rng=rng, format="csr")
    yield ReluNetwork.from_layers([(W, np.zeros(5)), (rng.normal(size=(1, 5)), np.ones(1))])


def foreign_safetensors():
    from safetensors.numpy import save

    rng = np.random.default_rng(0)
    return save(
        {"0.weight": rng.normal(size=(3, 2)), "0.bias": np.ones(3), "2.weight": rng.normal(size=(1, 3))}
    )
