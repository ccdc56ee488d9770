"""Sound little model files for the fuzzer to damage; together they use every operation."""

import numpy as np
import scipy.sparse as sp

from pindown import ReluNetwork
from tests.io.onnx_models import make_model

i64 = np.int64


def onnx_models():
    """Small models that together use every operation."""
    rng = np.random.default_rng(0)

    def w(*shape):
        return rng.normal(size=shape).astype("f4")

    return [_dense(w), _image(w), _shapes(), _pieces(w), _constants()]


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
