"""ONNX's QLinear family: integers equal to the runtime's, bounds that hold."""

from __future__ import annotations

import numpy as np
import pytest

from pindown.model.builder import Builder
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, Dense, Reduce, Scale
from pindown.model.operations.integer_weights import IntegerWeights
from pindown.model.operations.integers import RANGES, Dequantize, Quantize
from pindown.model.operations.moves import Concat, Constant, Fill
from pindown.model.operations.operation import NotPiecewiseLinearError
from pindown.model.operations.piecewise_linear import LeakyRelu
from pindown.model.operations.pooling import AveragePool
from pindown.model.operations.products import MatrixProduct, Multiply
from pindown.model.operations.quantised import Quantized
from pindown.model.operations.smooth import Sigmoid
from pindown.model.operations.softmax import Softmax
from pindown.model.operations.windows import Window
from tests.model.properties import model_of
from tests.model.quantising import check_on_integers, quantised_model
from tests.model.runtime import run_written

WINDOW = Window((3, 3), (1, 2), (1, 0), (1, 1), (1, 1))
HALVES = Window((2, 2), (2, 2), (0, 0), (0, 0), (1, 1))
RNG = np.random.default_rng(0)


def _convolution(kernel, bias):
    return Convolution(kernel, bias, window=WINDOW)


def _turned(weight, bias):
    return Dense(weight, bias, -2)


def _scales(n):
    return np.float32(RNG.uniform(0.001, 0.01, n))


def _random(kind, wide=1.0):
    low, high = RANGES[kind]
    return float(np.float32(RNG.uniform(0.01, 0.03) * wide)), float(RNG.integers(low // 2, high // 2))


# Weights of seven bits: with eight, onnxruntime saturates on processors without VNNI.
MATRIX, KERNEL, BIAS = (
    RNG.integers(-64, 64, (5, 7)),
    RNG.integers(-64, 64, (5, 3, 3, 3)),
    RNG.integers(-2000, 2000, 5),
)
CASES = {
    "convolution per channel": (
        "QLinearConv",
        [(1, 3, 5, 6)],
        _convolution,
        KERNEL,
        Dequantize(_scales(5), np.zeros(5), 0, "int8"),
        BIAS,
    ),
    "convolution": (
        "QLinearConv",
        [(1, 3, 5, 6)],
        _convolution,
        KERNEL,
        Dequantize(0.005, 0, kind="int8"),
        None,
    ),
    "matrix": ("QLinearMatMul", [(1, 4, 7)], Dense, MATRIX, Dequantize(0.01, 0, kind="int8"), None),
    "matrix per column": (
        "QLinearMatMul",
        [(1, 4, 7)],
        Dense,
        MATRIX,
        Dequantize(_scales(5), np.zeros(5), 0, "int8"),
        None,
    ),
    "matrix from the left": (
        "QLinearMatMul",
        [(1, 7, 4)],
        _turned,
        MATRIX + 64,
        Dequantize(0.01, 64),
        None,
    ),
    "gemm": ("QGemm", [(1, 7)], Dense, MATRIX, Dequantize(_scales(5), np.zeros(5), 0, "int8"), BIAS),
    "gemm without bias": ("QGemm", [(1, 7)], Dense, MATRIX, Dequantize(0.01, 0, kind="int8"), None),
    "add": ("QLinearAdd", [(1, 40), (1, 40)], Add()),
    "add, broadcast": ("QLinearAdd", [(1, 3, 40), (40,)], Add()),
    "add a constant": (
        "QLinearAdd",
        [(1, 5)],
        IntegerWeights.of(lambda w, b: Scale(None, w), np.arange(5), Dequantize(0.2, 2)),
    ),
    "multiply": ("QLinearMul", [(1, 40), (1, 40)], Multiply()),
    "product of tensors": ("QLinearMatMul", [(1, 4, 7), (1, 7, 6)], MatrixProduct()),
    "sigmoid": ("QLinearSigmoid", [(1, 40)], Sigmoid()),
    "leaky": ("QLinearLeakyRelu", [(1, 40)], LeakyRelu(0.01)),
    "join": ("QLinearConcat", [(1, 20), (1, 30)], Concat(1)),
    "softmax": ("QLinearSoftmax", [(1, 20)], Softmax(1)),
    "global average": ("QLinearGlobalAveragePool", [(1, 6, 4, 5)], Reduce((2, 3), mean=True)),
    "average": ("QLinearAveragePool", [(1, 3, 4, 6)], AveragePool(HALVES)),
}


def _case(name, kind):
    """Return an operation, quantizers for its inputs, and their shapes."""
    operator, shapes, inner, *weights = CASES[name]
    if weights and weights[1].kind == "uint8" and kind == "int8":
        pytest.skip("onnxruntime takes no int8 times uint8")
    inputs = [_random(kind) for _ in shapes]
    grids = tuple(Dequantize(*pair, kind=kind) for pair in inputs)
    bounded = operator in ("QLinearSigmoid", "QLinearSoftmax")
    output = Quantize(1 / 256, RANGES[kind][0], kind) if bounded else Quantize(*_random(kind, 2.0), kind)
    if weights:
        integers, grid, bias = weights
        operation = Quantized.product(operator, inner, integers, grid, bias, grids[0], output)
    elif isinstance(inner, IntegerWeights) and kind == "int8":
        pytest.skip("one type for all inputs")
    else:
        operation = Quantized(inner, grids, output, operator)
    return operation, [Quantize(*pair, kind) for pair in inputs], shapes


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("name", CASES)
def test_integers_are_the_runtime_s(name, kind):
    """Equal, but for sums at exact halves, where processors differ: one in ten thousand, by one."""
    operation, quantizers, shapes = _case(name, kind)
    model = quantised_model(operation, quantizers, *shapes)
    rows = np.random.default_rng(1).normal(size=(60, model.in_features)).astype(np.float32).astype(float)
    ours, theirs = model(rows), run_written(model, rows, "float32")
    assert np.abs(ours - theirs).max() <= (name.startswith("add"))
    assert (ours != theirs).mean() <= 5e-4
    assert len(np.unique(ours)) > 3


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("name", CASES)
def test_bounds(name, kind):
    operation, _, shapes = _case(name, kind)
    low, high = RANGES[kind]
    check_on_integers(operation, *shapes, low=low, high=high)


@pytest.mark.parametrize("name", CASES)
def test_derivative_is_that_of_the_numbers(name):
    """Inside the range: the inner derivative times the input's scale over the output's."""
    operation, _, shapes = _case(name, "uint8")
    wide = Quantized(operation.inner, operation.inputs, Quantize(5.0, 128), operation.operator)
    rng = np.random.default_rng(0)
    points = [rng.integers(60, 180, (2, *shape)).astype(float) for shape in shapes]
    form = rng.normal(size=(2, *wide.shape(*shapes)))
    numbers = [grid(x) for grid, x in zip(wide.inputs, points, strict=True)]
    expected = operation.inner.pull_back(form, *numbers)
    for given, inner, grid in zip(wide.pull_back(form, *points), expected, wide.inputs, strict=True):
        np.testing.assert_allclose(given, inner * grid.scale / 5.0, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("scales", [(0.3, 0.01, 0.006), (0.07, 0.003, 0.0006), (0.01, 0.025, 0.0005)])
def test_float32_decides_what_is_a_half(scales):
    """Ratios next to a half and three halves: half of all counts are halves, in float32 alone."""
    x, w, y = scales
    weight = Dequantize(w, 0, kind="int8")
    grid, output = Dequantize(x, 0), Quantize(y, 3)
    operation = Quantized.product(
        "QGemm", Dense, np.ones((300, 1)), weight, np.arange(300) - 50, grid, output
    )
    model = quantised_model(operation, [Quantize(x, 0)], (1, 1))
    rows = float(np.float32(x)) * np.arange(0, 200, 7.0)[:, None]
    np.testing.assert_array_equal(run_written(model, rows, "float32"), model(rows))
    check_on_integers(operation, (1, 1), low=0, high=255)
    counts = (np.arange(300) - 50) * (float(np.float32(x)) * float(np.float32(w)) / float(np.float32(y)))
    # Without float32 on the way there would be other integers.
    assert (operation(np.zeros((1, 1, 1)))[0, 0] != np.clip(np.rint(counts) + 3, 0, 255)).any()


def test_gemm_may_leave_numbers():
    x = Dequantize(0.02, 128)
    weight = Dequantize(0.01, 0, kind="int8")
    operation = Quantized.product("QGemm", Dense, MATRIX, weight, BIAS, x, None)
    model = quantised_model(operation, [Quantize(0.02, 128)], (1, 7))
    rows = np.random.default_rng(1).normal(size=(20, 7)).astype(np.float32).astype(float)
    np.testing.assert_allclose(run_written(model, rows, "float32"), model(rows), rtol=1e-5, atol=1e-5)
    check_on_integers(operation, (1, 7), low=0, high=255)


def test_constants_beside_integers_are_written_as_integers():
    """A frame of integers, and a constant operand that is not a weight."""
    graph = Builder((1, 2, 3))
    integers = graph.add(Fill((0, 0, 1), (0, 1, 1), 7.0), graph.add(Quantize(0.02, 7), graph.input))
    grid = Dequantize(0.02, 7)
    constant = graph.add(Constant(np.arange(5.0)), graph.input)
    made = graph.add(Quantized(Add(), (grid, grid), Quantize(0.03, 7), "QLinearAdd"), integers, constant)
    model = graph.model(graph.add(Dequantize(0.03, 7), made), input_shape=(2, 3))
    rows = np.random.default_rng(1).normal(size=(5, 6)).astype(np.float32).astype(float)
    np.testing.assert_allclose(run_written(model, rows, "float32"), model(rows), rtol=1e-6, atol=1e-7)


def test_counts_are_a_framework_s():
    operation, _, _ = _case("convolution per channel", "uint8")
    assert operation.n_parameters == 5 * 27 + 5
    assert operation.multiply_adds((1, 3, 5, 6)) == operation.inner.inner.multiply_adds((1, 3, 5, 6))


def test_message_names_the_operator():
    operation, _, _ = _case("gemm", "uint8")
    with pytest.raises(NotPiecewiseLinearError, match="QGemm rounds to integers: it jumps"):
        model_of(operation, (1, 7)).relu_network()
