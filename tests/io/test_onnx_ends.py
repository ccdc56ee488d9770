"""Which input varies, what the others are, and which output is meant."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tests.io.onnx_models import f32, make_model, read, refusal

ML = "ai.onnx.ml:"
rng = np.random.default_rng(0)
X = rng.normal(size=(4, 3)).astype("f4")


def tensor(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def two_heads():
    """A trunk with two heads, 2 and 4 wide."""
    nodes = [
        ("Gemm", ["x", "W"], ["h"], {}),
        ("Relu", ["h"], ["r"], {}),
        ("Gemm", ["r", "A"], ["y"], {}),
        ("Gemm", ["r", "B"], ["boxes"], {}),
    ]
    model = make_model(
        nodes, {"W": f32(rng, 3, 5), "A": f32(rng, 5, 2), "B": f32(rng, 5, 4)}, ["n", 3], ["n", 2]
    )
    model.graph.output.append(tensor("boxes", ["n", 4]))
    return model


def runtime(model, output, **inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run([output], inputs)[0]


@pytest.mark.parametrize("name", ["y", "boxes"])
def test_a_head_is_chosen_by_its_name(name):
    model = two_heads()
    np.testing.assert_allclose(read(model, output=name)(X), runtime(model, name, x=X), atol=1e-5)


def test_several_heads_are_listed_with_what_to_do():
    message = refusal(two_heads())
    assert "'y', 'boxes'" in message and "output=NAME" in message and "--output NAME" in message
    assert "'y', 'boxes'" in refusal(two_heads(), output="nothing")


def test_labels_beside_scores_are_left_out_with_a_note():
    model = make_model(
        [("Gemm", ["x", "W"], ["y"], {}), ("ArgMax", ["y"], ["label"], {"axis": 1})],
        {"W": f32(rng, 3, 4)},
        ["n", 3],
        ["n", 4],
    )
    model.graph.output.insert(0, tensor("label", ["n", 1], TensorProto.INT64))
    ours = read(model)
    np.testing.assert_allclose(ours(X), runtime(model, "y", x=X), atol=1e-5)
    assert "'y' was read" in ours.notes[0]
    assert "does not hold floats" in refusal(model, output="label")


def sklearn_classifier(zip_map=True):
    """What skl2onnx writes for a pipeline of StandardScaler and LogisticRegression."""
    nodes = [
        (ML + "Scaler", ["x"], ["scaled"], {"offset": [0.1, 0.2, 0.3], "scale": [2.0, 1.0, 0.5]}),
        (
            ML + "LinearClassifier",
            ["scaled"],
            ["label", "raw"],
            {
                "coefficients": [float(v) for v in rng.normal(size=9)],
                "intercepts": [0.5, -0.5, 0.0],
                "classlabels_ints": [0, 1, 2],
                "multi_class": 1,
                "post_transform": "SOFTMAX",
            },
        ),
        (ML + "Normalizer", ["raw"], ["y"], {"norm": "L1"}),
        ("Cast", ["label"], ["out_label"], {"to": 7}),
    ]
    if zip_map:
        nodes.append((ML + "ZipMap", ["y"], ["out_probability"], {"classlabels_int64s": [0, 1, 2]}))
    model = make_model(nodes, {}, ["n", 3], ["n", 3])
    del model.graph.output[:]
    model.graph.output.append(tensor("out_label", ["n"], TensorProto.INT64))
    if zip_map:
        value = onnx_map()
        model.graph.output.append(helper.make_value_info("out_probability", value))
    else:
        model.graph.output.append(tensor("y", ["n", 3]))
    return model


def onnx_map():
    value = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    return helper.make_sequence_type_proto(helper.make_map_type_proto(TensorProto.INT64, value))


@pytest.mark.parametrize("zip_map", [False, True])
def test_classifiers_as_scikit_learn_converters_write_them(zip_map):
    model = sklearn_classifier(zip_map)
    ours = read(model)
    if zip_map:
        theirs = [[row[k] for k in range(3)] for row in runtime(model, "out_probability", x=X)]
    else:
        theirs = runtime(model, "y", x=X)
    np.testing.assert_allclose(ours(X), theirs, atol=1e-5)
    assert any("'out_label'" in note for note in ours.notes)
    assert ours.n_parameters == 12


# ---------------------------------------------------------------------- inputs


def two_inputs(kind=TensorProto.FLOAT):
    """``x * mask + x``, the mask of floats, integers or truth values."""
    nodes = [
        ("Cast", ["mask"], ["m"], {"to": 1}),
        ("Mul", ["x", "m"], ["p"], {}),
        ("Add", ["p", "x"], ["y"], {}),
    ]
    model = make_model(nodes, {}, ["n", 3], ["n", 3])
    model.graph.input.append(tensor("mask", ["n", 3], kind))
    return model


@pytest.mark.parametrize("kind, dtype", [(1, "f4"), (TensorProto.INT64, "i8"), (TensorProto.BOOL, bool)])
@pytest.mark.parametrize("rank", [1, 2])
def test_other_inputs_are_given_values(kind, dtype, rank):
    model = two_inputs(kind)
    mask = np.array([[1, 0, 1]]).astype(dtype)
    ours = read(model, input="x", fixed={"mask": mask if rank == 2 else mask[0]})
    theirs = np.concatenate([runtime(model, "y", x=row[None], mask=mask) for row in X])
    np.testing.assert_allclose(ours(X), theirs, atol=1e-6)
    assert read(model, fixed={"mask": mask}) == ours


def test_two_inputs_that_both_vary_are_refused_with_what_to_do():
    model = two_inputs()
    assert "input=NAME" in refusal(model) and "fixed={name: array}" in refusal(model)
    assert "'mask'" in refusal(model, input="x")
    assert "'nothing'" in refusal(model, fixed={"nothing": 1.0})
    assert "(1, 2)" in refusal(model, fixed={"mask": np.ones((1, 2))})
    assert "both" in refusal(model, input="x", fixed={"x": np.ones((1, 3)), "mask": np.ones((1, 3))})
    assert "no input that varies" in refusal(
        model, fixed={"x": np.ones((1, 3)), "mask": np.ones((1, 3))}
    )
    assert "numbers" in refusal(model, fixed={"mask": np.array([["a", "b", "c"]])})
    assert "does not take" in refusal(
        two_inputs(TensorProto.INT64), fixed={"mask": np.full((1, 3), 0.5)}
    )


def test_an_input_of_integers_is_refused_with_a_hint():
    model = two_inputs(TensorProto.INT64)
    message = refusal(model, input="mask", fixed={"x": np.ones((1, 3))})
    assert "float type" in message and "embedding" in message


def test_the_type_of_the_input_is_remembered():
    for kind, name in ((1, "float32"), (10, "float16"), (11, "float64"), (16, "bfloat16")):
        model = make_model([("Relu", ["x"], ["y"], {})], {}, ["n", 3], kind=kind)
        assert read(model).dtype == name


# ---------------------------------------------------------------------- what is counted


def test_parameters_are_counted_as_a_framework_counts_them():
    nodes = [
        ("Div", ["x", "std"], ["n"], {}),  # one number: it normalises
        ("MatMul", ["n", "W"], ["h"], {}),
        ("Add", ["h", "b"], ["z"], {}),
        ("Add", ["z", "table"], ["p"], {}),  # an initialiser with more than one entry
        ("PRelu", ["p", "slope"], ["r"], {}),
        ("MatMul", ["r", "V"], ["v"], {}),
        ("MatMul", ["v", "V"], ["u"], {}),  # shared
        ("Add", ["u", "table"], ["y"], {}),  # counted before
    ]
    weights = {
        "std": np.float32(2),
        "W": f32(rng, 4, 6),
        "b": f32(rng, 6),
        "table": f32(rng, 1, 5, 6),
        "slope": f32(rng, 6),
        "V": f32(rng, 6, 6),
    }
    model = read(make_model(nodes, weights, ["n", 5, 4]))
    assert model.n_parameters == 4 * 6 + 6 + 5 * 6 + 6 + 36
    assert [op.name for op in model.operations][:3] == ["Div", "Dense", "Add"]


def test_weights_that_nodes_share_are_held_once():
    W = f32(rng, 50, 50)
    nodes = [("MatMul", ["x" if k == 0 else f"h{k}", "W"], [f"h{k + 1}"], {}) for k in range(4)]
    nodes.append(("Relu", ["h4"], ["y"], {}))
    model = read(make_model(nodes, {"W": W}, ["n", 50]))
    assert len({id(op) for op in model.operations}) == 2 and model.nbytes == 8 * 2500
