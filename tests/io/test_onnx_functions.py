"""Functions that a file defines itself."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from pindown.errors import ModelFileError
from tests.io.onnx_models import assert_agrees, f32, make_model, read, refusal

rng = np.random.default_rng(0)
STANDARD, OWN = helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)


def function(name, inputs, outputs, nodes, attributes=()):
    """A function of the domain "mine" from tuples (domain:op, inputs, outputs, attributes)."""
    made = []
    for op, into, out, facts in nodes:
        domain, _, kind = op.rpartition(":")
        node = helper.make_node(kind, into, out, domain=domain)
        for key, value in facts.items():
            if isinstance(value, str) and value.startswith("@"):  # taken from the call
                attribute = node.attribute.add()
                attribute.name, attribute.ref_attr_name, attribute.type = key, value[1:], 1
            else:
                node.attribute.append(helper.make_attribute(key, value))
        made.append(node)
    return helper.make_function("mine", name, inputs, outputs, made, [STANDARD, OWN], list(attributes))


def model(nodes, functions, weights=None, shape=("n", 3), opset=17):
    made = make_model(nodes, weights or {}, list(shape), opset=opset, domains=[("mine", 1)])
    made.functions.extend(functions)
    return made


LAYER = function(
    "Layer",
    ["x", "W", "b"],
    ["y"],
    [
        ("Gemm", ["x", "W", "b"], ["h"], {"transB": 1}),
        ("mine:Bend", ["h"], ["y"], {"slope": "@slope"}),
    ],
    ["slope"],
)
BEND = function("Bend", ["x"], ["y"], [("LeakyRelu", ["x"], ["y"], {"alpha": "@slope"})], ["slope"])


def two_layers():
    weights = {"V": f32(rng, 4, 3), "c": f32(rng, 4), "U": f32(rng, 2, 4), "d": f32(rng, 2)}
    nodes = [
        ("mine:Layer", ["x", "V", "c"], ["h"], {"slope": 0.25}),
        ("mine:Layer", ["h", "U", "d"], ["y"], {"slope": -0.5}),
    ]
    return model(nodes, [LAYER, BEND], weights)


def test_calls_are_replaced_by_what_they_stand_for():
    ours = assert_agrees(two_layers())
    assert [op.name for op in ours.operations] == ["Dense", "LeakyReLU", "Dense", "LeakyReLU"]
    assert ours.n_parameters == 12 + 4 + 8 + 2
    assert [float(op.slope) for op in ours.operations[1::2]] == [0.25, -0.5]


def test_a_function_inside_a_branch():
    yes, no = (
        helper.make_graph(
            [helper.make_node(kind, ["x"], ["z"], domain=domain, **facts)],
            kind,
            [],
            [onnx.ValueInfoProto(name="z")],
        )
        for kind, domain, facts in (("Bend", "mine", {"slope": 0.5}), ("Neg", "", {}))
    )
    node = ("If", ["c"], ["y"], {"then_branch": yes, "else_branch": no})
    ours = read(model([node], [BEND], {"c": np.array(True)}))
    np.testing.assert_array_equal(ours([2.0, -2.0, 0.0]), [2.0, -1.0, 0.0])


CHANGES = {
    "more inputs": lambda m: m.graph.node[0].input.append("x"),
    "more outputs": lambda m: m.graph.node[0].output.append("z"),
    "fewer outputs": lambda m: m.functions[0].output.append("h"),
    "an attribute twice": lambda m: m.graph.node[0].attribute.append(m.graph.node[0].attribute[0]),
    "an attribute of another type": lambda m: setattr(m.graph.node[0].attribute[0], "type", 2),
    "no operator set around it": lambda m: m.opset_import.pop(),
    "no operator set": lambda m: m.functions[0].ClearField("opset_import"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_calls_that_do_not_fit_are_refused(change):
    made = two_layers()
    CHANGES[change](made)
    assert "function 'Layer'" in refusal(made, ModelFileError)
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])


def test_what_calls_itself_is_refused():
    circle = function("Bend", ["x"], ["y"], [("mine:Bend", ["x"], ["y"], {})])
    assert "calls itself" in refusal(model([("mine:Bend", ["x"], ["y"], {})], [circle]), ModelFileError)


def test_functions_that_grow_are_refused_before_they_do():
    """Thirty functions, each of which calls the next one twice: a billion nodes."""
    functions = [
        function(
            f"F{i}",
            ["x"],
            ["y"],
            [(f"mine:F{i + 1}", ["x"], ["h"], {}), (f"mine:F{i + 1}", ["h"], ["y"], {})],
        )
        for i in range(30)
    ]
    functions.append(function("F30", ["x"], ["y"], [("Relu", ["x"], ["y"], {})]))
    assert "more than" in refusal(model([("mine:F0", ["x"], ["y"], {})], functions))
    chain = [function(f"F{i}", ["x"], ["y"], [(f"mine:F{i + 1}", ["x"], ["y"], {})]) for i in range(100)]
    assert "nested too deeply" in refusal(model([("mine:F0", ["x"], ["y"], {})], chain))


@pytest.mark.parametrize("damage", ["inputs", "name", "missing"])
def test_damaged_functions_are_refused_in_one_line(damage):
    made = two_layers()
    if damage == "inputs":
        made.functions[0].node[0].input[0] = "nowhere"
    elif damage == "name":
        made.functions[1].name = "Other"
    else:
        made.functions[0].node[0].output[0] = "elsewhere"
    with pytest.raises(Exception) as caught:
        read(made)
    assert type(caught.value).__name__ in ("ModelFileError", "UnsupportedModelError")
    assert "\n" not in str(caught.value)


def test_top_k_is_refused_in_one_line():
    nodes = [("TopK", ["x", "k"], ["y", "i"], {})]
    words = refusal(make_model(nodes, {"k": np.array([2])}, ["n", 3]))
    assert words.startswith("node 0 'TopK_0' (TopK): TopK returns positions") and "--output" in words
