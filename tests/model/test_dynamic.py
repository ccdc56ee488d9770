"""Numbers quantised with the scale that fits them."""

from __future__ import annotations

import numpy as np
import pytest

from pindown.model.builder import Builder
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, Dense, Scale
from pindown.model.operations.dynamic import (
    DynamicProduct,
    DynamicQuantize,
    DynamicRound,
    DynamicScale,
    DynamicZero,
    as_dynamic_product,
)
from pindown.model.operations.integer_weights import IntegerProduct, IntegerWeights
from pindown.model.operations.integers import Dequantize, ToFloat
from pindown.model.operations.operation import Interval, NotPiecewiseLinearError
from pindown.model.operations.products import Multiply
from pindown.model.operations.windows import Window
from tests.model.properties import check_operation, model_of
from tests.model.runtime import run_written

DYNAMIC = [DynamicScale(), DynamicZero(), DynamicQuantize()]


@pytest.mark.parametrize("operation", DYNAMIC)
@pytest.mark.parametrize(("low", "high"), [(-3.0, 3.0), (0.5, 3.0), (-3.0, -0.5), (-1e-3, 5.0)])
def test_dynamic(operation, low, high):
    check_operation(operation, (1, 3, 2), low=low, high=high, lowers=False, smooth=False, written=False)


@pytest.mark.parametrize(("low", "high"), [(-3.0, 3.0), (0.5, 3.0), (0.0, 0.0), (-1e-30, 1e-30)])
def test_dynamic_rounding(low, high):
    check_operation(DynamicRound(), (1, 3, 2), low=low, high=high, smooth=False, written=False)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("operation", DYNAMIC)
def test_dynamic_is_the_runtime_s(operation, dtype):
    model = model_of(operation, (1, 50))
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 50)) * 10.0 ** rng.integers(-10, 10, (60, 1))
    rows[:20], rows[20:30], rows[30] = np.abs(rows[:20]), -np.abs(rows[20:30]), 0.0
    rows = rows.astype(np.float32).astype(float)
    np.testing.assert_array_equal(model(rows), run_written(model, rows, dtype))


def test_dynamic_outputs_share_a_node():
    from onnx import ModelProto

    from pindown.io._onnx.writer import onnx_bytes

    graph = Builder((1, 4))
    scale, zero = (graph.add(op, graph.input) for op in DYNAMIC[:2])
    model = graph.model(graph.add(Add(), scale, graph.add(ToFloat(), zero)))
    proto = ModelProto.FromString(onnx_bytes(model, "float32"))
    assert [node.op_type for node in proto.graph.node] == ["DynamicQuantizeLinear", "Cast", "Add"]
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32).astype(float)
    np.testing.assert_allclose(run_written(model, x, "float32"), model(x), rtol=1e-6)


@pytest.mark.parametrize("operation", DYNAMIC)
def test_dynamic_derivative_is_that_without_rounding(operation):
    def smooth(x):
        flat = x.reshape(len(x), -1)
        M, m = np.maximum(flat.max(axis=1), 0), np.maximum(-flat.min(axis=1), 0)
        s = (M + m) / 255
        if isinstance(operation, DynamicScale):
            return s
        return m / s if isinstance(operation, DynamicZero) else (x + m[:, None]) / s[:, None]

    rng = np.random.default_rng(0)
    for shift in (0.0, 3.0, -3.0):
        x, direction = rng.uniform(-1, 1, (5, 4)) + shift, rng.normal(size=(5, 4))
        form = rng.normal(size=operation(x).shape)
        (pulled,) = operation.pull_back(form, x)
        change = (smooth(x + 1e-6 * direction) - smooth(x - 1e-6 * direction)) / 2e-6
        expected = (form * change).reshape(5, -1).sum(axis=1)
        np.testing.assert_allclose((pulled * direction).sum(axis=1), expected, rtol=0.03, atol=0.5)


def test_a_range_that_may_vanish():
    box = Interval(np.array([[0.0, -1.0]]), np.array([[0.0, 0.0]]))
    scale = DynamicScale().interval(box)
    assert scale.lower == 0.0 and scale.upper == 1.0
    still = Interval(np.zeros((1, 2)), np.zeros((1, 2)))
    assert DynamicScale().interval(still).lower == 1.0 and DynamicZero().interval(still).upper == 0.0
    assert (DynamicQuantize().interval(box).lower == 0).all()


WINDOW = Window((3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
RNG = np.random.default_rng(0)
SCALES = np.float32(RNG.uniform(0.001, 0.01, 5))
MATRIX, KERNEL = RNG.integers(-60, 60, (5, 7)), RNG.integers(-60, 60, (5, 2, 3, 3))


def _convolution(kernel, bias):
    return Convolution(kernel, bias, window=WINDOW)


PRODUCTS = [
    (
        IntegerWeights.of(Dense, MATRIX, Dequantize(0.01, 3, kind="int8"), RNG.normal(size=5)),
        (1, 4, 7),
        None,
    ),
    (IntegerWeights.of(Dense, MATRIX, Dequantize(SCALES, np.zeros(5), 0, "int8")), (1, 7), SCALES),
    (
        IntegerWeights.of(
            _convolution, KERNEL, Dequantize(SCALES, np.zeros(5), 0, "int8"), RNG.normal(size=5)
        ),
        (1, 2, 4, 4),
        SCALES[:, None, None],
    ),
]


@pytest.mark.parametrize(("inner", "shape", "scales"), PRODUCTS)
def test_dynamic_product(inner, shape, scales):
    operation = DynamicProduct(inner)
    check_operation(operation, shape, lowers=False, smooth=False, written=False)
    model = model_of(operation, shape)
    rows = np.random.default_rng(1).normal(size=(20, model.in_features)).astype(np.float32).astype(float)
    np.testing.assert_allclose(run_written(model, rows, "float32"), model(rows), rtol=1e-5, atol=1e-5)
    assert operation.n_parameters == inner.n_parameters
    assert operation.multiply_adds(shape) == inner.multiply_adds(shape)


@pytest.mark.parametrize(("inner", "shape", "scales"), PRODUCTS)
def test_dynamic_product_is_found(inner, shape, scales):
    """What onnxruntime writes as five operations is one, with the same values and far better bounds."""
    graph = Builder(shape)
    grid = Dequantize(1.0, inner.weight.zero, inner.weight.axis, inner.weight.kind)
    make = Dense if isinstance(inner.inner, Dense) else _convolution
    integers = IntegerProduct(IntegerWeights.of(make, inner.integers, grid))
    q, zero, scale = (
        graph.add(op, graph.input) for op in (DynamicQuantize(), DynamicZero(), DynamicScale())
    )
    count = graph.add(ToFloat(), graph.add(integers, q, zero))
    factor = graph.add(Scale(np.array(0.01) if scales is None else scales), scale)
    found = as_dynamic_product(graph, count, factor)
    assert found is not None and found[1].index == 0
    parts = graph.model(graph.add(Multiply(), count, factor))
    whole = model_of(found[0], shape)
    rows = np.random.default_rng(1).normal(size=(20, whole.in_features))
    np.testing.assert_allclose(whole(rows), parts(rows), rtol=1e-5, atol=1e-6)
    assert as_dynamic_product(graph, count, scale) is not None
    assert as_dynamic_product(graph, scale, factor) is None
    other = graph.add(DynamicScale(), graph.add(Scale(np.array(2.0)), graph.input))
    assert as_dynamic_product(graph, count, other) is None


def test_dynamic_product_names_itself():
    with pytest.raises(NotPiecewiseLinearError, match="dynamic Dense rounds to integers"):
        model_of(DynamicProduct(PRODUCTS[0][0]), (1, 4, 7)).relu_network()
