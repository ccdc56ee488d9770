"""Files that no runtime accepts are not accepted here either."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from pindown.errors import ModelFileError
from tests.io.onnx_models import exact, f32, i64, make_model, one_op, refusal

rng = np.random.default_rng(0)
ONE = {"c": np.float32(1)}
PADS = {"kernel_shape": [2], "pads": [2, 0]}

CASES = {
    "an input too many": (one_op("Relu", [1, 3], ONE), "takes 1"),
    "an input too few": (one_op("Add", [1, 3]), "takes 2"),
    "an output too many": (make_model([("Relu", ["x"], ["y", "z"], {})], {}, [1, 3]), "output"),
    "a gap": (one_op("MatMul", [1, 3], names=("x", "")), "left out"),
    "float64 to float32": (one_op("Add", [1, 3], {"c": np.ones(3)}), "of one type"),
    "float16 to float32": (one_op("MatMul", [1, 3], {"c": np.ones((3, 2), "f2")}), "of one type"),
    "integers to floats": (one_op("Mul", [1, 3], {"c": np.ones(3, i64)}), "of one type"),
    "floats as a shape": (one_op("Reshape", [1, 4], {"c": np.float32([2, 2])}), "does not take"),
    "an unknown attribute": (one_op("Relu", [1, 3], alpha=0.5), "no attribute 'alpha'"),
    "an attribute of another type": (one_op("LeakyRelu", [1, 3], alpha=1), "wrong type"),
    "a missing attribute": (one_op("Concat", [1, 3], ONE), "'axis' is missing"),
    "a newer attribute": (one_op("MaxPool", [1, 1, 4], opset=9, **PADS | {"ceil_mode": 1}), "ceil_mode"),
    "a newer operation": (one_op("Where", [1, 3], opset=8, names=("x", "x", "x")), "no operation Where"),
    "a bound with axes": (one_op("Clip", [1, 3], {"low": np.zeros((1, 1), "f4")}), "one number"),
    "pads beyond the kernel": (one_op("AveragePool", [1, 1, 4], **PADS), "whole kernel"),
    "both ways to pad": (
        one_op("Conv", [1, 1, 4], {"K": f32(rng, 1, 1, 2)}, pads=[0, 0], auto_pad="SAME_UPPER"),
        "both pads",
    ),
    "a kernel that steps over the image": (
        one_op("AveragePool", [1, 1, 5], kernel_shape=[1], strides=[3], auto_pad="SAME_UPPER"),
        "runtimes disagree",
    ),
    "an order of other axes": (one_op("Transpose", [1, 3], perm=[0, 2**32 + 1]), "no order"),
    "an image without pixels": (one_op("GlobalAveragePool", [1, 3]), "no image"),
    "a maximum that repeats, too early": (one_op("Max", [1, 3], {"c": np.ones(1, "f4")}, 7), "set 8"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_runtime_refuses_is_refused(case):
    model, words = CASES[case]
    assert words in refusal(model, ModelFileError)
    with pytest.raises(Exception):  # noqa: B017 - onnxruntime has many kinds
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        entry = session.get_inputs()[0]
        session.run(None, {entry.name: np.ones(entry.shape, "f4")})


@pytest.mark.parametrize("op, extra", [("ReduceMean", {"axes": [1]}), ("Gemm", {})])
@pytest.mark.parametrize("flag", [-1, 2, 7])
def test_flags_are_0_or_1(op, extra, flag):
    name = "keepdims" if op == "ReduceMean" else "transB"
    weights = {"W": np.ones((3, 3), "f4")} if op == "Gemm" else {}
    assert "is 0 or 1" in refusal(one_op(op, [1, 3], weights, **extra, **{name: flag}), ModelFileError)


def test_declarations_have_to_be_true(tiny_model):
    tiny_model.graph.value_info.append(helper.make_tensor_value_info("z", TensorProto.DOUBLE, ["n", 4]))
    assert "'z' is declared as tensor(double)" in refusal(tiny_model, ModelFileError)


def test_an_unused_weight_is_checked_too(tiny_model):
    tensor = numpy_helper.from_array(np.ones(3, "f4"), "unused")
    tensor.dims[:] = [4]
    tiny_model.graph.initializer.append(tensor)
    assert "'unused'" in refusal(tiny_model, ModelFileError)


@pytest.mark.parametrize("version", [0, 14000, 2**40])
def test_the_version_of_the_format_exists(tiny_model, version):
    tiny_model.ir_version = version
    assert "ONNX format" in refusal(tiny_model, ModelFileError)


def test_names_are_given_once(tiny_model):
    tiny_model.graph.node[1].name = tiny_model.graph.node[0].name
    assert "same name" in refusal(tiny_model, ModelFileError)
    tiny_model.graph.node[1].name = ""
    assert exact(tiny_model).widths == (3, 4, 2)
    tiny_model.graph.node[0].output[0] = tiny_model.graph.node[1].input[0] = "W2"
    assert "'W2'" in refusal(tiny_model, ModelFileError)


def test_nodes_that_the_output_does_not_need_are_carried_out(tiny_model):
    tiny_model.graph.node.append(helper.make_node("MatMul", ["a", "W2"], ["unused"]))
    assert "(MatMul)" in refusal(tiny_model, ModelFileError)


def test_many_nodes_in_reverse_are_sorted_in_no_time():
    nodes = [("Relu", [f"t{k}"], [f"t{k + 1}"], {}) for k in range(500)]
    nodes[0] = ("Relu", ["x"], ["t1"], {})
    nodes.append(("Identity", ["t500"], ["y"], {}))
    assert exact(make_model(nodes[::-1], {}, [1, 1])).depth == 501
