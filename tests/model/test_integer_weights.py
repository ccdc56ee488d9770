"""Weights that are integers in the file."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper

from pindown.io._onnx.writer import onnx_bytes
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Dense, Scale
from pindown.model.operations.integer_weights import IntegerProduct, IntegerWeights, encoded
from pindown.model.operations.integers import Dequantize, Quantize
from pindown.model.operations.windows import Window
from tests.model.properties import check_operation, model_of
from tests.model.quantising import quantised_model
from tests.model.runtime import run_written

WINDOW = Window((3, 3), (2, 1), (1, 0), (1, 1), (1, 1))
RNG = np.random.default_rng(0)
SCALES = np.float32(RNG.uniform(0.001, 0.01, 5))
MATRIX, KERNEL = RNG.integers(-60, 60, (5, 5)), RNG.integers(0, 100, (5, 2, 3, 3))
BIAS = RNG.integers(-1000, 1000, 5)
BIAS_GRID = Dequantize(1e-4, 0, kind="int32")


def _convolution(kernel, bias):
    return Convolution(kernel, bias, window=WINDOW)


def _turned(weight, bias):
    return Dense(weight, bias, -2)


PER_ROW = Dequantize(SCALES, np.zeros(5), 0, "int8")
OPERATIONS = [
    (Dense, MATRIX, Dequantize(0.01, 3, kind="int8"), (1, 5)),
    (Dense, MATRIX, PER_ROW, (1, 5)),
    (Dense, MATRIX, PER_ROW, (1, 2, 5)),
    (_turned, MATRIX, PER_ROW, (1, 5, 2)),
    (_convolution, KERNEL, Dequantize(SCALES, np.arange(5), 0, "uint8"), (1, 2, 4, 4)),
]


@pytest.mark.parametrize(("make", "integers", "grid", "shape"), OPERATIONS)
def test_it_is_the_operation_itself(make, integers, grid, shape):
    operation = IntegerWeights.of(make, integers, grid, BIAS, BIAS_GRID)
    np.testing.assert_array_equal(operation.integers, integers)
    check_operation(operation, shape, lowers=True, tolerance=1e-6)
    plain = make(operation.numbers, operation.inner.bias)
    assert operation.n_parameters == plain.n_parameters == integers.size + 5
    assert operation.multiply_adds(shape) == plain.multiply_adds(shape)
    assert operation.name == plain.name


@pytest.mark.parametrize(("make", "integers", "grid", "shape"), OPERATIONS)
def test_integers_are_written(make, integers, grid, shape):
    """The file holds the same int8 and int32 numbers, and no others but scales."""
    model = model_of(IntegerWeights.of(make, integers, grid, BIAS, BIAS_GRID), shape)
    proto = ModelProto.FromString(onnx_bytes(model, "float32"))
    arrays = [numpy_helper.to_array(t) for t in proto.graph.initializer]
    small = [a for a in arrays if a.dtype == grid.kind and a.size == integers.size]
    assert len(small) == 1 and (np.sort(small[0].ravel()) == np.sort(integers.ravel())).all()
    (bias,) = (a for a in arrays if a.dtype == np.int32)
    np.testing.assert_array_equal(bias.ravel(), BIAS)
    assert max((a.size for a in arrays if a.dtype == np.float32), default=0) <= 5
    rows = np.random.default_rng(1).normal(size=(5, model.in_features)).astype(np.float32).astype(float)
    run = run_written(model, rows, "float32", optimised=False)
    np.testing.assert_allclose(run, model(rows), rtol=1e-5, atol=1e-5)


def test_changed_weights_are_written_as_numbers():
    operation = IntegerWeights.of(Dense, MATRIX, PER_ROW)
    changed = IntegerWeights(Dense(operation.numbers + 0.3 * SCALES[0]), PER_ROW)
    assert encoded(changed.numbers, PER_ROW) is None
    model = model_of(changed, (1, 5))
    kinds = {
        t.data_type
        for t in ModelProto.FromString(onnx_bytes(model, "float32")).graph.initializer
        if len(t.dims) == 2
    }
    assert kinds == {1}
    with pytest.raises(ValueError, match="changed"):
        _ = changed.integers


def test_a_constant_that_is_added_or_multiplied():
    constant = np.arange(5)
    for operation in (
        IntegerWeights.of(lambda w, b: Scale(None, w), constant, Dequantize(0.1, 2)),
        IntegerWeights.of(lambda w, b: Scale(w), constant, Dequantize(0.1, 2)),
    ):
        check_operation(operation, (1, 5), lowers=True, tolerance=1e-6)


@pytest.mark.parametrize("zero", [0, 7])
@pytest.mark.parametrize(("make", "integers", "grid", "shape"), OPERATIONS)
def test_integer_products_are_the_runtime_s(make, integers, grid, shape, zero):
    one = Dequantize(1.0, grid.zero, grid.axis, grid.kind)
    operation = IntegerProduct(IntegerWeights.of(make, integers, one), zero)
    if make is _convolution:  # onnxruntime takes one zero point for the weights of ConvInteger
        operation = IntegerProduct(IntegerWeights.of(make, integers, Dequantize(1.0, 4)), zero)
    check_operation(operation, shape, low=0, high=255, lowers=True, written=False)
    model = quantised_model(operation, [Quantize(0.02, 100)], shape)
    rows = np.random.default_rng(1).normal(size=(20, model.in_features)).astype(np.float32).astype(float)
    np.testing.assert_array_equal(run_written(model, rows, "float32"), model(rows))
    assert operation.n_parameters == integers.size


def test_fingerprint_sees_the_integers():
    matrix = RNG.integers(-60, 60, (50, 50))  # longer than what repr shows
    other = matrix.copy()
    other[25, 25] += 1
    models = [
        model_of(IntegerWeights.of(Dense, m, Dequantize(0.01, 0, kind="int8")), (1, 50))
        for m in (matrix, other)
    ]
    assert models[0] != models[1]
