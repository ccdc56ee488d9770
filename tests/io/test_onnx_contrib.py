"""Files that onnxruntime has optimised or quantised, and operations of converters of scikit-learn."""

import warnings

import numpy as np
import onnx
import onnxruntime
import pytest

from pindown.errors import ModelFileError
from pindown.io import load
from tests.io.onnx_models import assert_agrees, f32, make_model, read, refusal, run_onnxruntime

rng = np.random.default_rng(0)
MS, ML = "com.microsoft:", "ai.onnx.ml:"
LINEAR = {"coefficients": [0.5, -1.0, 2.0, 0.3, 0.2, -0.1], "intercepts": [0.1, -0.2]}
TWO = {**LINEAR, "classlabels_ints": [3, 7]}


def model(*nodes, shape=("n", 3), **weights):
    return make_model(nodes, weights, list(shape))


def one(op, *inputs, shape=("n", 3), out="y", attributes=None, **weights):
    outputs = ["label", "y"] if "Classifier" in op else [out]
    return model((op, ["x", *(inputs or weights)], outputs, attributes or {}), shape=shape, **weights)


TANH = ("Tanh", ["x"], ["t"], {})
IMAGE, ROWS = ("n", 2, 5, 5), ("n", 3, 4)
PADDED = {"pads": [1, 1, 1, 1], "activation": "Relu"}
K, v4 = f32(rng, 2, 2, 3, 3), f32(rng, 4)
CASES = {
    "FusedConv": one(MS + "FusedConv", shape=IMAGE, attributes=PADDED, K=K, b=f32(rng, 2)),
    "FusedConv, sum": model(
        TANH, (MS + "FusedConv", ["x", "K", "b", "t"], ["y"], PADDED), shape=IMAGE, K=K, b=f32(rng, 2)
    ),
    "FusedConv, clip": one(
        MS + "FusedConv",
        shape=IMAGE,
        K=K,
        attributes={"activation": "Clip", "activation_params": [0.0, 6.0]},
    ),
    "FusedGemm": one(
        MS + "FusedGemm",
        W=f32(rng, 4, 3),
        b=f32(rng, 4),
        attributes={"activation": "LeakyRelu", "activation_alpha": 0.1, "transB": 1},
    ),
    "FusedMatMul": one(
        MS + "FusedMatMul", shape=ROWS, W=f32(rng, 5, 4), attributes={"alpha": 0.5, "transB": 1}
    ),
    "FusedMatMul of two": model(
        TANH, (MS + "FusedMatMul", ["x", "t"], ["y"], {"alpha": 0.5, "transB": 1}), shape=ROWS
    ),
    "Gelu": one(MS + "Gelu"),
    "QuickGelu": one(MS + "QuickGelu"),
    "FastGelu": one(MS + "FastGelu", b=f32(rng, 3)),
    "BiasGelu": one(MS + "BiasGelu", b=f32(rng, 3)),
    "SkipLayerNormalization": model(
        TANH,
        (MS + "SkipLayerNormalization", ["x", "t", "g", "b", "c"], ["y"], {"epsilon": 1e-5}),
        shape=ROWS,
        g=v4,
        b=f32(rng, 4),
        c=f32(rng, 4),
    ),
    "SkipLayerNormalization, sum": model(
        TANH,
        (MS + "SkipLayerNormalization", ["x", "t", "g"], ["n", "", "", "s"], {}),
        ("Add", ["n", "s"], ["y"], {}),
        shape=ROWS,
        g=v4,
    ),
    "SkipSimplifiedLayerNormalization": model(
        TANH, (MS + "SkipSimplifiedLayerNormalization", ["x", "t", "g"], ["y"], {}), shape=ROWS, g=v4
    ),
    "Scaler": one(ML + "Scaler", attributes={"offset": [1.0, 2.0, 3.0], "scale": [0.5, 2.0, 1.0]}),
    "Scaler, one number": one(ML + "Scaler", attributes={"offset": [1.0], "scale": [0.5]}),
    **{f"Normalizer {n}": one(ML + "Normalizer", attributes={"norm": n}) for n in ("L1", "L2", "MAX")},
    **{
        f"LinearRegressor {t}": one(
            ML + "LinearRegressor", attributes={**LINEAR, "targets": 2, "post_transform": t}
        )
        for t in ("NONE", "SOFTMAX", "LOGISTIC")
    },
    **{
        f"LinearClassifier {t}": one(ML + "LinearClassifier", attributes={**TWO, "post_transform": t})
        for t in ("NONE", "SOFTMAX", "LOGISTIC")
    },
    "LinearClassifier of one score": one(
        ML + "LinearClassifier",
        attributes={
            "coefficients": [0.5, -1.0, 2.0],
            "intercepts": [0.1],
            "classlabels_ints": [0, 1],
            "post_transform": "LOGISTIC",
        },
    ),
    "ArrayFeatureExtractor": one(ML + "ArrayFeatureExtractor", i=np.array([2, 0])),
}


@pytest.mark.parametrize("case", CASES)
def test_the_runtime_computes_the_same(case):
    assert_agrees(CASES[case], n=10)


def test_nodes_outside_the_standard_are_checked_too():
    assert "2 inputs" in refusal(one(MS + "Gelu", "x"), ModelFileError)
    assert "'other'" in refusal(one(MS + "Gelu", attributes={"other": 1}), ModelFileError)
    undeclared = one(MS + "Gelu")
    del undeclared.opset_import[1]
    assert "no operator set" in refusal(undeclared, ModelFileError)


# ---------------------------------------------------------------------- what onnxruntime's tools write


def network():
    """Two convolutions, a pool and a dense layer, with ties broken by odd numbers."""
    nodes = [
        ("Conv", ["x", "A", "a"], ["c"], {"pads": [1, 1, 1, 1]}),
        ("Relu", ["c"], ["r"], {}),
        ("Conv", ["r", "B"], ["d"], {}),
        ("Add", ["d", "shift"], ["s"], {}),
        ("Sigmoid", ["s"], ["g"], {}),
        ("Mul", ["s", "g"], ["m"], {}),
        ("GlobalAveragePool", ["m"], ["p"], {}),
        ("Flatten", ["p"], ["f"], {}),
        ("Gemm", ["f", "W", "w"], ["y"], {"transB": 1}),
    ]
    weights = {
        "A": f32(rng, 4, 2, 3, 3),
        "a": f32(rng, 4),
        "B": f32(rng, 5, 4, 3, 3),
        "shift": f32(rng, 5, 1, 1),
        "W": f32(rng, 3, 5),
        "w": f32(rng, 3),
    }
    return make_model(nodes, weights, ["n", 2, 6, 6], ["n", 3])


N_PARAMETERS = 4 * 18 + 4 + 5 * 36 + 5 + 18


@pytest.mark.parametrize("level", ["BASIC", "EXTENDED"])
def test_optimised_files(tmp_path, level):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
    options.optimized_model_filepath = str(tmp_path / "fast.onnx")
    onnxruntime.InferenceSession(
        network().SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    fast = onnx.load(tmp_path / "fast.onnx")
    if level == "EXTENDED":
        assert any(node.domain == "com.microsoft" for node in fast.graph.node)
    ours = assert_agrees(fast, n=10)
    assert ours.n_parameters == N_PARAMETERS
    assert "SiLU" in repr(ours)


class Rows:
    """Calibration data."""

    def __init__(self):
        self.rows = iter(
            [{"x": np.random.default_rng(i).normal(size=(1, 2, 6, 6)).astype("f4")} for i in range(8)]
        )

    def get_next(self):
        return next(self.rows, None)


@pytest.fixture(scope="module")
def quantization():
    warnings.simplefilter("ignore")
    return pytest.importorskip("onnxruntime.quantization")


@pytest.mark.parametrize("kind", ["QDQ", "QDQ per channel", "QOperator", "dynamic"])
def test_quantised_files(quantization, tmp_path, kind):
    path, small = tmp_path / "model.onnx", tmp_path / "small.onnx"
    onnx.save(network(), path)
    if kind == "dynamic":
        quantization.quantize_dynamic(path, small)
    else:
        quantization.quantize_static(
            path,
            small,
            Rows(),
            quant_format=getattr(quantization.QuantFormat, kind.split()[0]),
            per_channel="channel" in kind,
            weight_type=quantization.QuantType.QInt8,
        )
    ours = load(small)
    rows = np.random.default_rng(99).normal(size=(50, ours.in_features)).astype("f4")
    theirs = run_onnxruntime(small.read_bytes(), rows, ours.input_shape, optimised=False)
    gaps = np.abs(ours(rows) - theirs).max(axis=1) / np.abs(theirs).max()
    # A value half-way between two integers is one or the other by the last digit of float32.
    assert (gaps < 1e-5).mean() > 0.9 and gaps.max() < 0.05
    assert ours.n_parameters == N_PARAMETERS
    assert any(
        "uantize" in op.name or "QLinear" in op.name or "dynamic" in op.name for op in ours.operations
    )


def test_imputers_have_nothing_to_do():
    node = (
        ML + "Imputer",
        ["x"],
        ["y"],
        {"imputed_value_floats": [1.0, 2.0, 3.0], "replaced_value_float": np.nan},
    )
    imputed = read(model(node))
    assert "NaN" in imputed.notes[0] and (imputed([[1.0, 2.0, 5.0]]) == [[1.0, 2.0, 5.0]]).all()
