"""LSTM, GRU and RNN, unrolled, against onnxruntime."""

import numpy as np
import pytest

from pindown.errors import ModelFileError
from tests.io.onnx_models import assert_agrees, f32, make_model, refusal

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
