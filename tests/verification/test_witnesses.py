"""What a witness is worth: what is called proved holds in rational numbers, and float32 is told."""

import gzip
from fractions import Fraction

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.model.builder import Builder
from pindown.model.from_network import model_of_network
from pindown.model.operations.dense import Dense
from pindown.model.operations.piecewise_linear import Relu
from pindown.model.operations.products import Multiply
from pindown.model.operations.smooth import Sigmoid
from pindown.verification import witnesses
from pindown.verification.properties import UnsafeSet
from pindown.verification.witnesses import (
    Float32,
    examined,
    in_float32,
    proved_violation,
    rounded_outputs,
)
from tests.verification.nets import random_network


def line(weights, bias=0.0):
    return model_of_network(ReluNetwork.from_layers([([weights], [bias])]))


def sigmoid_model():
    graph = Builder((1, 1))
    return graph.model(graph.add(Sigmoid(), graph.input), input_shape=(1,))


def below(x, rows, limits, **more):
    return UnsafeSet(x, x, np.atleast_2d(rows), np.atleast_1d(limits), **more)


def truth(net, unsafe, x):
    """The same in rational numbers, by the network's own exact form."""
    y = net.as_fractions()([Fraction(v) for v in x.tolist()])
    for i, row in enumerate(unsafe.rows.tolist()):
        total = sum(Fraction(r) * v for r, v in zip(row, y, strict=True))
        if unsafe.input_rows is not None:
            total += sum(
                Fraction(r) * Fraction(v)
                for r, v in zip(unsafe.input_rows[i].tolist(), x.tolist(), strict=True)
            )
        limit = Fraction(float(unsafe.limits[i]))
        if total > limit or (unsafe.strict is not None and unsafe.strict[i] and total == limit):
            return False
    return True


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e150])
def test_what_is_proved_is_so_in_rational_numbers_also_at_near_ties(scale):
    """Limits a few last places around the value: neither too much nor too little is proved."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(60):
        net = random_network(rng, [3, 5, 2])
        net = ReluNetwork.from_layers(
            [(W * (scale if i else 1), b * (scale if i else 1)) for i, (W, b) in enumerate(net.layers)]
        )
        model, x = model_of_network(net), rng.standard_normal(3)
        rows = rng.standard_normal((2, 2))
        values = rows @ net(x)
        limits = values + rng.integers(-2, 3, 2) * np.spacing(np.abs(values))
        strict = rng.random(2) < 0.5
        unsafe = UnsafeSet(x - 1, x + 1, rows, limits, strict=strict)
        proof = proved_violation(model, unsafe, x)
        assert bool(proof) == truth(net, unsafe, x)
        hits += bool(proof)
    assert 5 < hits < 55


def test_forms_of_inputs_count():
    rng = np.random.default_rng(1)
    for _ in range(30):
        net, x = random_network(rng, [3, 4, 2]), rng.standard_normal(3)
        rows, own = rng.standard_normal((1, 2)), rng.standard_normal((1, 3))
        value = rows @ net(x) + own @ x
        limit = value + rng.integers(-2, 3, 1) * np.spacing(np.abs(value))
        unsafe = UnsafeSet(x, x, rows, limit, own)
        assert bool(proved_violation(model_of_network(net), unsafe, x)) == truth(net, unsafe, x)


def test_a_point_outside_the_box_proves_nothing():
    unsafe = UnsafeSet(np.zeros(1), np.ones(1), np.eye(1), np.array([5.0]))
    model = line([1.0])
    assert proved_violation(model, unsafe, np.ones(1)) == "intervals"
    assert proved_violation(model, unsafe, np.array([np.nextafter(1.0, 2.0)])) == ""
    assert proved_violation(model, unsafe, np.array([np.nan])) == ""


def test_strict_rows_must_be_strictly_below():
    x = np.array([0.25])
    weak, strong = below(x, [1.0], 0.25), below(x, [1.0], 0.25, strict=np.array([True]))
    assert proved_violation(line([1.0]), weak, x) == "rationals"
    assert proved_violation(line([1.0]), strong, x) == ""
    found = examined(line([1.0]), strong, x)
    assert found.margin == 0.0 and not found.proved and not found.float32_violates
    assert examined(line([1.0]), weak, x).float32_violates


def test_a_set_without_rows_is_reached_anywhere_in_its_box():
    unsafe = UnsafeSet(np.zeros(1), np.ones(1), np.zeros((0, 1)), np.zeros(0))
    assert proved_violation(line([1.0]), unsafe, np.zeros(1)) == "intervals"
    assert examined(line([1.0]), unsafe, np.zeros(1)).margin == -np.inf


def test_the_inner_set_counts():
    inner = UnsafeSet(np.zeros(1), np.ones(1), np.eye(1), np.array([0.5]))
    outer = UnsafeSet(np.zeros(1), np.ones(1), np.eye(1), np.array([0.6]), inner=inner)
    assert proved_violation(line([1.0]), outer, np.array([0.5]))
    assert not proved_violation(line([1.0]), outer, np.array([0.55]))


def test_smooth_models_are_proved_by_intervals_or_not_at_all():
    x, model = np.array([0.3]), sigmoid_model()
    value = float(model(x)[0])
    assert proved_violation(model, below(x, [1.0], value + 1e-12), x) == "intervals"
    assert proved_violation(model, below(x, [1.0], value), x) == ""


def test_denormals_and_overflow_are_no_proof_and_no_warning():
    tiny = 5e-324
    x = np.array([tiny])
    with np.errstate(all="raise"):
        assert proved_violation(line([1.0]), below(x, [1.0], tiny), x) == "rationals"
        assert proved_violation(line([1.0]), below(x, [1.0], 0.0), x) == ""
        # x^2 underflows to zero in float64 and is not zero.
        graph = Builder((1, 1))
        square = graph.model(graph.add(Multiply(), graph.input, graph.input), input_shape=(1,))
        assert float(square(x)[0]) == 0.0
        assert proved_violation(square, below(x, [1.0], 0.0), x) == ""
        assert proved_violation(square, below(x, [-1.0], 0.0), x) == "rationals"
        # Infinity minus infinity on the way: the real value is 0, which rationals see.
        graph = Builder((1, 1))
        big = graph.add(Dense(np.array([[1e308], [1e308]]), None), graph.input)
        apart = graph.model(graph.add(Dense(np.array([[1e10, -1e10]]), None), big), input_shape=(1,))
        y = np.array([1.0])
        assert proved_violation(apart, below(y, [1.0], 0.0), y) == "rationals"
        found = examined(apart, below(y, [1.0], 0.0), y)
        assert found.margin == np.inf and found.proved and not found.float32_violates


def test_rationals_are_not_asked_of_large_models(monkeypatch):
    x = np.array([0.25])
    monkeypatch.setattr(witnesses, "WITNESS_MAX_RATIONAL_WORK", 0)
    assert proved_violation(line([1.0]), below(x, [1.0], 0.25), x) == ""
    assert proved_violation(line([1.0]), below(x, [1.0], 0.3), x) == "intervals"


def test_witness_tells_both_margins():
    """1 + 1e-9 is above 1, and in float32 it is 1."""
    x = np.array([1 + 1e-9])
    found = examined(line([-1.0], 1.0), below(x, [1.0], 0.0, strict=np.array([True])), x)
    assert found.proved and found.margin < 0 and found.float32_margin == 0.0
    assert not found.float32_violates
    assert "proved" in str(found) and "onnxruntime" in str(found)
    assert not found.x.flags.writeable


# ---------------------------------------------------------------------- float32


@pytest.mark.parametrize("ending", [".onnx", ".onnx.gz"])
def test_the_file_itself_is_run(tmp_path, ending):
    rng = np.random.default_rng(3)
    model = model_of_network(random_network(rng, [4, 6, 3]))
    model.save(tmp_path / f"model{ending}", dtype="float32")
    x = rng.standard_normal(4)
    (made, runtime), (written, _) = Float32(model, tmp_path / f"model{ending}")(x), Float32(model)(x)
    assert runtime == "onnxruntime"
    np.testing.assert_array_equal(made, written)
    np.testing.assert_allclose(made, model(x), rtol=1e-4, atol=1e-5)
    assert not np.array_equal(made, model(x))


def test_a_file_that_is_not_there_or_broken_is_written_anew(tmp_path):
    model, x = line([2.0]), np.array([3.0])
    for name, data in (
        ("gone.onnx", None),
        ("bad.onnx", b"nonsense"),
        ("bad.onnx.gz", b"x"),
        ("cut.onnx.gz", gzip.compress(b"abc")[:-6]),
    ):
        if data is not None:
            (tmp_path / name).write_bytes(data)
        assert Float32(model, tmp_path / name)(x)[0][0] == 6.0


def test_without_onnxruntime_numpy_rounds(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(witnesses, "import_module", missing)
    made, runtime = Float32(line([1.0], -1.0))(np.array([1 + 1e-9]))
    assert runtime == "NumPy" and made[0] == 0.0


def test_weights_beyond_float32_are_rounded_by_numpy():
    model, x = line([1e300]), np.array([1.0])
    made, runtime = Float32(model)(x)
    assert runtime == "NumPy" and np.isinf(made[0])
    found = examined(model, below(x, [1.0], 2e300), x)
    assert found.proved and not found.float32_violates and found.float32_margin == np.inf


def test_numpy_and_onnxruntime_round_alike():
    rng = np.random.default_rng(4)
    model = model_of_network(random_network(rng, [5, 20, 20, 3]))
    X = rng.standard_normal((20, 5))
    run = Float32(model)
    theirs, ours = np.array([run(x)[0] for x in X]), rounded_outputs(model, X)
    exact = model(X)
    assert 0 < np.abs(theirs - exact).max() < 1e-5
    np.testing.assert_allclose(ours, theirs, atol=4 * np.abs(theirs - exact).max())


def test_float32_inputs_stay_in_the_box():
    rng = np.random.default_rng(5)
    lower = rng.standard_normal(400) * 10.0 ** rng.integers(-3, 4, 400)
    upper = lower + rng.choice([0.0, 1e-12, 1e-7, 1e-3, 1.0], 400) * np.abs(lower)
    unsafe = UnsafeSet(lower, upper, np.zeros((1, 1)), np.zeros(1))
    for x in (lower, upper, np.clip(lower + rng.random(400) * (upper - lower), lower, upper)):
        near = in_float32(unsafe, x)
        assert ((near >= lower) & (near <= upper)).all()
        short = near == near.astype(np.float32)
        assert short[upper - lower >= 1e-6 * np.abs(lower)].all()
        np.testing.assert_array_equal(near[~short], x[~short])
        assert (np.abs(near - x) <= 2 * np.spacing(np.abs(x).astype(np.float32))).all()


def test_relu_models_in_rationals_agree_with_the_network():
    rng = np.random.default_rng(6)
    graph = Builder((1, 2))
    hidden = graph.add(Relu(), graph.add(Dense(rng.standard_normal((3, 2)), None), graph.input))
    model = graph.model(graph.add(Dense(rng.standard_normal((1, 3)), None), hidden), input_shape=(2,))
    x = rng.standard_normal(2)
    (value,) = witnesses._exact_outputs(model, x)
    assert value == model.relu_network().as_fractions()([Fraction(v) for v in x.tolist()])[0]
    assert float(value) == pytest.approx(float(model(x)[0]), rel=1e-12)


def test_floats_on_the_way_are_no_rationals():
    """An operation that leaves the rationals may come back to numbers that look exact."""

    class Rounding(Relu):
        def __call__(self, *inputs):
            return (
                np.asarray(inputs[0], dtype=float).astype(object)
                if inputs[0].dtype == object
                else inputs[0]
            )

    graph = Builder((1, 1))
    rounded = graph.add(Rounding(), graph.add(Dense(np.array([[1 / 3]]), None), graph.input))
    model = graph.model(graph.add(Dense(np.array([[3.0]]), None), rounded), input_shape=(1,))
    assert witnesses._exact_outputs(model, np.array([0.1])) is None


def test_files_in_float64_take_inputs_of_float32(tmp_path):
    """What is told is what a user sees who feeds float32 numbers."""
    model = line([1.0], -1.0)
    model.save(tmp_path / "double.onnx", dtype="float64")
    made, runtime = Float32(model, tmp_path / "double.onnx")(np.array([1 + 1e-9]))
    assert runtime == "onnxruntime" and made[0] == 0.0
