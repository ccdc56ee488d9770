"""Numbers rounded to a grid and back."""

from __future__ import annotations

import numpy as np
import pytest

from pindown.model.builder import Builder
from pindown.model.operations.integers import RANGES, Dequantize, Quantize, ToFloat
from pindown.model.operations.operation import Interval, NotPiecewiseLinearError, as_fractions
from tests.model.properties import check_operation, model_of
from tests.model.runtime import run_written

SCALES = np.array([0.02, 0.1, 0.3])
QUANTIZERS = [
    Quantize(0.02, 128, "uint8"),
    Quantize(0.05, 0, "uint8"),
    Quantize(0.01, -3, "int8"),
    Quantize(1e-3, 100, "int16"),
    Quantize(1e-4, 30_000, "uint16"),
    Quantize(0.5, 2, "int4"),
    Quantize(1.7, 5, "uint4"),
    Quantize(SCALES, [128, 0, 7], "uint8", axis=1),
    Quantize(SCALES[:2], 0, "int8", axis=-1),
]


@pytest.mark.parametrize("operation", QUANTIZERS)
def test_quantize(operation):
    plain = operation.kind not in ("int4", "uint4")
    check_operation(operation, (1, 3, 2), lowers=False, smooth=False, written=plain)


@pytest.mark.parametrize("operation", QUANTIZERS)
def test_quantize_is_the_definition(operation):
    """Half to even, then shift, then saturate; also at the ends of float32."""
    rng = np.random.default_rng(0)
    scale, zero = operation.grid(3)
    x = rng.normal(size=(50, 1, 3, 2)).astype(np.float32) * scale * 100
    x[0], x[1], x[2] = (np.float32(v * scale) for v in (0.5, 1.5, -2.5))
    x[3], x[4] = 3e38, -3e38
    with np.errstate(over="ignore"):
        quotient = (x.astype(np.float32) / scale.astype(np.float32)).astype(float)
    quotient = np.clip(quotient, -1e9, 1e9)
    halves = np.abs(quotient - np.trunc(quotient)) == 0.5
    away = np.trunc(quotient) + np.sign(quotient)
    rounded = np.where(
        halves & (away % 2 == 0), away, np.where(halves, np.trunc(quotient), np.floor(quotient + 0.5))
    )
    low, high = RANGES[operation.kind]
    np.testing.assert_array_equal(
        operation(x.astype(float)), np.minimum(np.maximum(rounded + zero, low), high)
    )


@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int16"])
def test_quantize_is_the_runtime_s(kind):
    """Equal integers on 60,000 numbers, among them halves that only float32 makes halves."""
    low, high = RANGES[kind]
    scale, zero = 3.0 / (high - low), (low + high) // 2
    model = model_of(Quantize(scale, zero, kind), (1, 20_000))
    rng = np.random.default_rng(1)
    rows = np.stack(
        [
            rng.uniform(-2, 2, 20_000),
            (rng.integers(low, high, 20_000) + 0.5 - zero) * scale,
            rng.normal(size=20_000) * 10.0 ** rng.integers(-30, 30, 20_000),
        ]
    ).astype(np.float32)
    np.testing.assert_array_equal(model(rows.astype(float)), run_written(model, rows, "float32"))


@pytest.mark.parametrize("operation", [Dequantize(0.1, 12), Dequantize(SCALES, [1, 2, 3], 1, "int8")])
def test_dequantize(operation):
    check_operation(operation, (1, 3, 2), low=-20, high=20, lowers=True, written=False)
    integers = np.arange(12.0).reshape(2, 1, 3, 2)
    exact = operation.interval(Interval(integers, integers))
    np.testing.assert_array_equal(exact.lower, operation(integers))
    np.testing.assert_array_equal(exact.upper, operation(integers))


def test_dequantize_rounds_outwards():
    rng = np.random.default_rng(0)
    operation = Dequantize(SCALES, [1, 2, 3], 1, "int8")
    low, high = np.sort(rng.normal(size=(2, 50, 1, 3, 2)) * 100, axis=0)
    bounds = operation.interval(Interval(low, high))
    exact = [operation(as_fractions(end)) for end in (low, high)]
    assert (as_fractions(bounds.lower) <= exact[0]).all() and (
        exact[1] <= as_fractions(bounds.upper)
    ).all()
    np.testing.assert_allclose(bounds.upper, operation(high), rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_there_and_back_is_written(dtype):
    graph = Builder((1, 3, 4))
    quantize = Quantize(SCALES, [128, 0, 7], "uint8", axis=1)
    integers = graph.add(quantize, graph.input)
    made = graph.add(Dequantize(SCALES, [128, 0, 7], 1, "uint8"), integers)
    model = graph.model(made, input_shape=(3, 4))
    x = np.random.default_rng(0).normal(size=(5, 12)).astype(np.float16).astype(float)
    np.testing.assert_allclose(
        run_written(model, x, dtype), model(x), rtol=1e-3 if dtype == "float16" else 1e-6
    )


def test_lines_are_half_a_step_away():
    """Inside the range the lines have the slope of the map without rounding and lie a step apart."""
    quantize = Quantize(0.5, 10, "uint8")
    box = Interval(np.array([[0.0, -100.0, 500.0, 0.1]]), np.array([[40.0, 100.0, 900.0, 0.2]]))
    lower, below, upper, above = quantize.lines(box)
    np.testing.assert_allclose([lower[0, 0], upper[0, 0]], 2.0)
    np.testing.assert_allclose([below[0, 0], above[0, 0]], [9.5, 10.5], atol=1e-3)
    # Wider than the range at its lower end only: a chord above, half a step below the map below.
    np.testing.assert_allclose([lower[0, 1], upper[0, 1]], [2.0, (200.5 + 10) / 400 / 0.5], rtol=1e-4)
    assert (lower[0, 2], below[0, 2], upper[0, 2], above[0, 2]) == (0, 255, 0, 255)
    assert (lower[0, 3], below[0, 3], upper[0, 3], above[0, 3]) == (0, 10, 0, 10)


def test_derivative_goes_straight_through():
    quantize = Quantize(0.5, 10, "uint8")
    (form,) = quantize.pull_back(np.ones((1, 3)), np.array([[0.3, -5.1, 500.0]]))
    np.testing.assert_array_equal(form, [[2.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Quantize(0.0, 0), "positive"),
        (lambda: Quantize(1.0, 300), "uint8"),
        (lambda: Quantize(1.0, 0, "int7"), "int7"),
        (lambda: Quantize([1.0, 2.0], 0), "axis"),
        (lambda: Dequantize(1.0, 0.5), "integer"),
        (lambda: Quantize([1.0, 2.0], 0, axis=1).shape((1, 3)), "do not fit"),
    ],
)
def test_what_does_not_fit_is_refused(make, word):
    with pytest.raises(ValueError, match=word):
        make()


def test_message_says_that_it_jumps():
    with pytest.raises(NotPiecewiseLinearError, match="Quantize rounds to integers: it jumps"):
        model_of(Quantize(1.0, 0), (1, 2)).relu_network()


def test_cast_changes_nothing():
    check_operation(ToFloat(), (1, 3), lowers=True, written=False)
