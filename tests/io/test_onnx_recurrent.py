"""LSTM, GRU and RNN, unrolled, against onnxruntime."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

from pindown.errors import ModelFileError
from pindown.io._onnx.reader import model_from_onnx
from pindown.io._onnx.writer import onnx_bytes
from pindown.model.operations.dense import Dense
from tests.io.onnx_models import assert_agrees, f32, make_model, random_inputs, read, refusal

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, INPUTS, HIDDEN = 4, 2, 3


def layer(op, direction="forward", output=0, weights=None, names=("B",), layout=0, seed=0, **attributes):
    rng = np.random.default_rng(seed)
    sides, gates = 1 + (direction == "bidirectional"), GATES[op]
    shapes = {"W": (gates * HIDDEN, INPUTS), "R": (gates * HIDDEN, HIDDEN), "B": (2 * gates * HIDDEN,)}
    stored = {name: f32(rng, sides, *shape) for name, shape in shapes.items()} | (weights or {})
    outputs = ["h", "last", "cell"][: 3 if op == "LSTM" else 2]
    outputs[output] = "y"
    attributes |= {"hidden_size": HIDDEN, "direction": direction}
    if layout:
        attributes["layout"] = 1
    turn = [] if layout else [("Transpose", ["x"], ["t"], {"perm": [1, 0, 2]})]
    node = (op, ["x" if layout else "t", "W", "R", *names], outputs, attributes)
    return make_model([*turn, node], stored, ["n", STEPS, INPUTS], opset=14)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    "op, output", [("LSTM", 0), ("LSTM", 1), ("LSTM", 2), ("GRU", 0), ("GRU", 1), ("RNN", 0)]
)
def test_every_output_in_every_direction(op, output, direction):
    model = assert_agrees(layer(op, direction, output), n=5)
    sides, gates = 1 + (direction == "bidirectional"), GATES[op]
    assert model.n_parameters == sides * gates * HIDDEN * (INPUTS + HIDDEN + 2)  # as torch counts


rng = np.random.default_rng(1)
VARIANTS = {
    "no bias": layer("LSTM", names=()),
    "reset first": layer("GRU", linear_before_reset=1),
    "reset first, no bias": layer("GRU", linear_before_reset=1, names=()),
    "clipped": layer("LSTM", clip=0.3),
    "coupled": layer("LSTM", input_forget=1),
    "peepholes": layer("LSTM", weights={"P": f32(rng, 1, 3 * HIDDEN)}, names=("B", "", "", "", "P")),
    "first states": layer(
        "LSTM",
        weights={"h0": f32(rng, 1, 1, HIDDEN), "c0": f32(rng, 1, 1, HIDDEN)},
        names=("B", "", "h0", "c0"),
    ),
    "other functions": layer("LSTM", activations=["HardSigmoid", "Relu", "Softsign"]),
    "ReLU": layer("RNN", activations=["Relu"]),
    "both ways": layer("RNN", "bidirectional", activations=["Relu", "Tanh"]),
    "whole sequences": layer("GRU", weights={"n": np.array([STEPS], "i4")}, names=("B", "n")),
}


@pytest.mark.parametrize("case", VARIANTS)
def test_variants(case):
    assert_agrees(VARIANTS[case], n=5)


def test_a_relu_rnn_has_an_exact_form():
    model = assert_agrees(layer("RNN", activations=["Relu"], output=1))
    assert model.relu_network().in_features == STEPS * INPUTS


def test_what_is_not_read():
    short = layer("GRU", weights={"n": np.array([2], "i4")}, names=("B", "n"))
    assert "other lengths" in refusal(short)
    assert "not read" in refusal(layer("LSTM", activations=["ScaledTanh", "Tanh", "Tanh"]))
    assert "do not fit" in refusal(
        layer("LSTM", weights={"R": np.ones((1, 3, 3), "f4")}), ModelFileError
    )
    long = layer("LSTM")
    long.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 100_000
    assert "too long" in refusal(long)


def test_many_layers_are_counted_with_their_steps(monkeypatch):
    monkeypatch.setattr("pindown.io._onnx.walk._MAX_UNFOLDED", 30)
    assert "unfolds" in refusal(layer("LSTM"))


# ---------------------------------------------------------------------- writing


def check_written(model):
    """Check that what is written is the model, and return which operations the file has."""
    data = onnx_bytes(model)
    rows = random_inputs(model, 5)
    np.testing.assert_allclose(model_from_onnx(data)(rows), model(rows), rtol=1e-6, atol=1e-6)
    return {node.op_type for node in onnx.load_from_string(data).graph.node}


@pytest.mark.parametrize("op", GATES)
def test_an_unrolled_layer_is_written_as_one_again(op):
    kinds = check_written(read(layer(op, "bidirectional", output=1)))
    assert op in kinds and not kinds & {"Sigmoid", "Tanh", "MatMul", "Gemm"}


def test_what_is_read_inside_is_not_written_as_one():
    """A model that ends at a gate needs what the layer's outputs do not show."""
    model = read(layer("LSTM"))
    gates = [i for i, node in enumerate(model.nodes, 1) if node.operation.name == "Sigmoid"]
    kinds = check_written(replace(model, nodes=model.nodes[: gates[-1]]))
    assert "LSTM" not in kinds and "Sigmoid" in kinds


def test_a_changed_part_is_written_as_it_is():
    model = read(layer("LSTM"))
    nodes = list(model.nodes)
    at = next(i for i, node in enumerate(nodes) if isinstance(node.operation, Dense))
    dense = nodes[at].operation
    nodes[at] = nodes[at]._replace(operation=replace(dense, weight=2.0 * dense.weight))
    changed = replace(model, nodes=tuple(nodes))
    assert not np.allclose(changed(random_inputs(model, 5)), model(random_inputs(model, 5)))
    assert "LSTM" not in check_written(changed)
