"""The exact form is compared with the model: a fault in a rule is noticed before it is handed out."""

import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.affine import Affine
from pindown.errors import UnsupportedModelError
from pindown.io._onnx.ops import RULES
from pindown.model import _expression as expression
from pindown.model import _lowering as lowering
from pindown.model import agreement
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import BatchNorm, Reduce, Scale
from pindown.model.operations.maxima import Maximum
from pindown.model.operations.moves import Gather, Reshape, Slice, Tile, Transpose
from pindown.model.operations.operation import as_fractions
from pindown.model.operations.piecewise_linear import Clip, LeakyRelu
from pindown.model.operations.pooling import AveragePool
from tests.io.fuzz_corpus import onnx_models
from tests.io.onnx_models import exact, f32, i64, make_model, read

IMAGE, PIECES = onnx_models()[1], onnx_models()[3]


def test_the_guide_lists_exactly_the_operations_that_are_read():
    guide = (Path(__file__).parents[2] / "docs/models.md").read_text("utf-8")
    listed = guide.split("By their ONNX names:")[1].split(". Comparisons")[0]
    assert set(re.findall(r"\b[A-Z]\w+", listed)) == {op for rules in RULES.values() for op in rules}


def message(model):
    with pytest.raises(UnsupportedModelError) as caught:
        exact(model)
    return str(caught.value)


def _off(rule, factor=1.0 + 1e-6, shift=0.0):
    """Return the rule with a fault that is hard to see: a millionth of its result."""
    return lambda *arguments: rule(*arguments).scale(np.array(factor)).shift(np.array(shift))


@pytest.mark.parametrize(
    "kind, op",
    [
        (Convolution, "Conv"),
        (BatchNorm, "BatchNormalization"),
        (LeakyRelu, "LeakyRelu"),
        (AveragePool, "AveragePool"),
        (Reshape, "Flatten"),
    ],
)
def test_a_fault_in_a_rule_is_noticed_and_named(kind, op, monkeypatch):
    assert exact(IMAGE).out_features == 2
    monkeypatch.setattr(kind, "lower", _off(kind.lower))
    text = message(IMAGE)
    assert f"({op}): output" in text and "no proof may rest" in text


@pytest.mark.parametrize(
    "kind, op",
    [
        (Clip, "Clip"),
        (LeakyRelu, "PRelu"),
        (Maximum, "Max"),
        (Tile, "Tile"),
        (Reduce, "ReduceSum"),
        (Scale, "Div"),
    ],
)
def test_a_small_constant_too_much_is_noticed(kind, op, monkeypatch):
    monkeypatch.setattr(kind, "lower", _off(kind.lower, 1.0, 1e-6))
    assert f"({op}): output" in message(PIECES)


def _wrong_sign(self, x, slope):
    return self.relu(x).add(self.relu(x).scale(slope))


def _no_upper_bound(self, x, low, high):
    return self.maximum(expression.constant(np.full(x.shape, low)), x)


def _wrong_order(self, x, y):
    return x.add(self.relu(x.add(y.scale(np.array(-1.0)))))


def _lost_sign(state, keep, make=lowering._passed_on):
    weight, bias = make(state, keep)
    return abs(weight), bias


def _other_blocks(parts, make=lowering._stacked):
    return make(parts[::-1])


FAULTS = [
    (lowering.Lowering, "leaky_relu", _wrong_sign),
    (lowering.Lowering, "clip", _no_upper_bound),
    (lowering.Lowering, "maximum", _wrong_order),
    (lowering, "_passed_on", _lost_sign),
    (lowering, "_stacked", _other_blocks),
]


@pytest.mark.parametrize("where, name, wrong", FAULTS)
def test_a_fault_in_the_machinery_is_noticed(where, name, wrong, monkeypatch):
    rng = np.random.default_rng(0)
    nodes = [
        ("BatchNormalization", ["x", "s", "b", "m", "v"], ["n"], {}),
        ("LeakyRelu", ["n"], ["l"], {"alpha": 0.1}),
        ("AveragePool", ["l"], ["a"], {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}),
        ("MaxPool", ["a"], ["p"], {"kernel_shape": [2, 2]}),
        ("Clip", ["p", "low", "high"], ["c"], {}),
        ("Flatten", ["c"], ["f"], {}),
        ("Flatten", ["x"], ["g"], {}),
        ("Concat", ["f", "g"], ["y"], {"axis": 1}),
    ]
    weights = {k: f32(rng, 2) for k in "sbm"} | {"v": np.ones(2, "f4")}
    weights |= {"low": np.float32(-0.1), "high": np.float32(0.2)}
    model = make_model(nodes, weights, [1, 2, 3, 3])
    assert exact(model).out_features == 36
    monkeypatch.setattr(where, name, wrong)
    with pytest.raises((UnsupportedModelError, ValueError)):
        exact(model)


@pytest.mark.parametrize("kind", [Transpose, Slice, Gather])
def test_entries_that_were_moved_wrongly_are_noticed(kind, monkeypatch):
    extra = {
        Transpose: ({}, {"perm": [0, 2, 1]}),
        Slice: ({"s": np.array([0], i64), "e": np.array([2], i64), "a": np.array([1], i64)}, {}),
        Gather: ({"index": np.array([2, 0], i64)}, {"axis": 1}),
    }
    weights, attributes = extra[kind]
    model = make_model([(kind.__name__, ["x", *weights], ["y"], attributes)], weights, ["n", 3, 4])
    assert exact(model).size == 0
    right = kind.lower
    monkeypatch.setattr(
        kind, "lower", lambda self, to, x: right(self, to, x.rearrange(lambda i: i[:, ::-1]))
    )
    assert f"({kind.__name__}): output" in message(model)


# ---------------------------------------------------------------------- what float64 cannot hold

CHAINS = {
    "a constant that is added and taken away": [("Add", "far"), ("Add", "three"), ("Sub", "far")],
    "a factor that is too": [("Mul", "far"), ("Add", "x"), ("Add", "x"), ("Sub", "farx")],
}


@pytest.mark.parametrize("chain", CHAINS)
def test_chains_that_lose_what_they_add_are_refused(chain):
    weights = {"far": np.float32(1e17), "three": np.float32(3)}
    nodes, last = [("Mul", ["x", "far"], ["farx"], {})], "x"
    for k, (op, other) in enumerate(CHAINS[chain]):
        nodes.append((op, [last, other], [f"t{k}"], {}))
        last = f"t{k}"
    nodes.append(("Identity", [last], ["y"], {}))
    assert "no proof may rest" in message(make_model(nodes, weights, ["n", 2]))


def test_a_large_network_that_hangs_on_its_last_digits_says_so():
    weights = {"W": np.eye(80, dtype="f4"), "far": np.float32(1e17), "three": np.float32(3)}
    nodes = [
        ("MatMul", ["x", "W"], ["h"], {}),
        ("Add", ["h", "far"], ["a"], {}),
        ("Add", ["a", "three"], ["b"], {}),
        ("Sub", ["b", "far"], ["y"], {}),
    ]
    shaky = exact(make_model(nodes, weights, ["n", 80]))
    assert "changes its outputs altogether" in shaky.notes[0]
    firm = exact(make_model([nodes[0], ("Add", ["h", "three"], ["y"], {})], weights, ["n", 80]))
    assert firm.notes == ()


def test_rounding_alone_is_no_reason_to_refuse():
    """A deep chain of badly conditioned products, whose outputs lose many digits."""
    rng = np.random.default_rng(0)
    nodes, weights, last = [], {}, "x"
    for k in range(12):
        weights[f"W{k}"] = (np.ones((8, 8)) + 1e-4 * rng.normal(size=(8, 8))).astype("f4")
        nodes += [("MatMul", [last, f"W{k}"], [f"h{k}"], {}), ("LeakyRelu", [f"h{k}"], [f"r{k}"], {})]
        last = f"r{k}"
    weights["pairs"] = np.kron(np.eye(4), [[1.0], [-1.0]]).astype("f4")
    nodes.append(("MatMul", [last, "pairs"], ["y"], {}))
    assert exact(make_model(nodes, weights, ["n", 8])).out_features == 4


def test_overflow_everywhere_is_no_agreement():
    net = ReluNetwork((Affine.of([[1e308]], [1e308]), Affine.of([[1e308]], [0.0])))
    with pytest.raises(UnsupportedModelError, match="overflows"):
        agreement.require_agreement(net, lambda row, noise: np.array([math.inf]))


def test_a_model_is_exact_on_rationals():
    nodes = [
        ("Conv", ["x", "K"], ["c"], {}),
        ("MaxPool", ["c"], ["m"], {"kernel_shape": [2]}),
        ("AveragePool", ["m"], ["y"], {"kernel_shape": [3]}),
    ]
    weights = {"K": np.float32([[[0.1, 1e8, -1e8]]])}
    model = read(make_model(nodes, weights, [1, 1, 6]))

    x = np.array([Fraction(k, 3) for k in (1, 2, 2, 5, 5, 5)], dtype=object)
    a, b, c = as_fractions(weights["K"][0, 0])
    sums = [a * x[i] + b * x[i + 1] + c * x[i + 2] for i in range(4)]
    truth = sum(max(sums[i], sums[i + 1]) for i in range(3)) / 3
    assert model.evaluate(x[None]).item() == truth
