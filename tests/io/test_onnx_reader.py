"""How whole ONNX models are read: batch axes, last activations, stored tensors, torch exports."""

import warnings

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io import load
from pindown.io._onnx.reader import model_from_onnx
from pindown.model import _lowering as lowering
from pindown.model import limits
from tests.io.onnx_models import (
    assert_agrees,
    dense_model,
    exact,
    make_model,
    read,
    refusal,
    relative_gap,
    run_onnxruntime,
)

i64 = np.int64


# ---------------------------------------------------------------------- the model's ends


@pytest.mark.parametrize(
    "in_shape, out_shape, sample",
    [
        (["n", 3], ["n", 2], (3,)),
        ([None, 3], [None, 2], (3,)),
        ([1, 3], [1, 2], (3,)),
        ([3], [2], (3,)),
        ([8, 3], [8, 2], (3,)),
        ([8, 3], [4, 4], (8, 3)),
        ([8, 3], None, (8, 3)),
        (["n", 4, 3], None, (4, 3)),
    ],
)
def test_which_axis_is_the_batch(in_shape, out_shape, sample):
    net = read(dense_model(in_shape, out_shape))
    assert net.input_shape == sample
    assert bool(net.notes) == (in_shape == [8, 3] and sample == (3,))


def test_symbolic_axis_that_is_not_the_batch_is_named():
    assert "'width'" in refusal(dense_model(["n", "width", 3]))
    assert "'d'" in refusal(dense_model(["d"]))


def test_fixed_batch_that_is_built_into_a_reshape_is_explained():
    nodes = [("Reshape", ["x", "shape"], ["y"], {})]
    model = make_model(nodes, {"shape": np.array([4, 6], i64)}, [4, 2, 3], [4, 6])
    assert "fixed batch of 4" in refusal(model, ModelFileError)


_ROWS = {"start": np.array([-1], i64), "end": np.array([-9], i64), "zero": np.array([0], i64)}


@pytest.mark.parametrize(
    "nodes, weights",
    [
        ([("Add", ["x", "c"], ["y"], {})], {"c": np.ones((3, 4), "f4")}),
        (
            [("ReduceMean", ["x"], ["m"], {"axes": [0]}), ("Sub", ["x", "m"], ["y"], {})],
            {},
        ),
        ([("Slice", ["x", "start", "end", "zero", "start"], ["y"], {})], _ROWS),
    ],
    ids=["a constant for every row", "centred rows", "reversed rows"],
)
def test_a_first_axis_whose_rows_are_not_treated_alike_is_no_batch(nodes, weights):
    model = make_model(nodes, weights, [3, 4], [3, 4])
    assert "one by one" in refusal(model)


def test_images_of_a_fixed_batch_are_read_one_by_one():
    rng = np.random.default_rng(0)
    nodes = [
        ("Conv", ["x", "W", "b"], ["a"], {"pads": [1, 1, 1, 1]}),
        ("Relu", ["a"], ["h"], {}),
        ("MaxPool", ["h"], ["m"], {"kernel_shape": [2, 2]}),
        ("AveragePool", ["m"], ["p"], {"kernel_shape": [2, 2]}),
        ("Flatten", ["p"], ["y"], {}),
    ]
    weights = {"W": rng.normal(size=(3, 2, 3, 3)).astype("f4"), "b": rng.normal(size=3).astype("f4")}
    fixed = read(make_model(nodes, weights, [5, 2, 6, 6], [5, 12]))
    assert fixed == read(make_model(nodes, weights, ["n", 2, 6, 6]))


def test_a_model_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(limits, "MAX_READING_SECONDS", -1.0)
    assert "seconds" in refusal(dense_model(["n", 3]))


def test_many_shortcuts_are_counted_with_everything_they_store(monkeypatch):
    depth, width = 40, 300
    nodes = [("Relu", [f"a{k}" if k else "x"], [f"a{k + 1}"], {}) for k in range(depth)]
    nodes.append(("Sum", [f"a{k + 1}" for k in range(depth)], ["y"], {}))
    # One weight and one bias for every row: bare weights alone would pass.
    monkeypatch.setattr(lowering, "MAX_TOTAL_ENTRIES", width * depth * (depth + 1) // 2 + 100_000)
    with pytest.raises(UnsupportedModelError, match="the limit"):
        exact(make_model(nodes, {}, ["n", width]))


def test_weights_that_are_listed_as_inputs_are_weights(tiny_model):
    for tensor in tiny_model.graph.initializer:
        tiny_model.graph.input.append(helper.make_tensor_value_info(tensor.name, 1, tensor.dims))
    assert exact(tiny_model).widths == (3, 4, 2)


def test_two_inputs_or_outputs_are_named(tiny_model):
    two_in = onnx.ModelProto()
    two_in.CopyFrom(tiny_model)
    two_in.graph.input.append(helper.make_tensor_value_info("mask", 1, [1, 3]))
    assert "'x', 'mask'" in refusal(two_in) and "input=NAME" in refusal(two_in)
    tiny_model.graph.output.append(helper.make_tensor_value_info("a", 1, ["n", 4]))
    assert "'y', 'a'" in refusal(tiny_model) and "--output NAME" in refusal(tiny_model)


def test_an_input_of_integers_is_refused(tiny_model):
    tiny_model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    assert "float" in refusal(tiny_model)


@pytest.mark.parametrize("opset", (7, 11, 13, 17))
@pytest.mark.parametrize(
    "op, name", [("Softmax", "softmax"), ("LogSoftmax", "log_softmax"), ("Sigmoid", "sigmoid")]
)
@pytest.mark.parametrize("identity", [False, True])
def test_last_activation_is_cut_off_and_remembered(op, name, identity, opset):
    weights = {"W": np.random.default_rng(0).normal(size=(3, 4)).astype("f4")}
    nodes = [
        ("MatMul", ["x", "W"], ["z"], {}),
        (op, ["z"], ["p"], {} if op == "Sigmoid" else {"axis": 1}),
    ]
    nodes.append(("Identity", ["p"], ["y"], {}))
    if not identity:
        nodes = [nodes[0], (op, ["z"], ["y"], nodes[1][3])]
    model = make_model(nodes, weights, ["n", 3], opset=opset)
    ours = read(model)
    assert ours.relu_network().output_activation == name

    rows = np.random.default_rng(1).normal(size=(20, 3)).astype("f4")
    assert relative_gap(ours(rows), run_onnxruntime(model.SerializeToString(), rows, (3,))) < 1e-5
    z = rows @ weights["W"].astype(float)
    np.testing.assert_allclose(ours.relu_network()(rows), z)


@pytest.mark.parametrize("opset", (11, 13))
def test_a_last_activation_may_be_followed_by_another_shape(opset):
    nodes = [
        ("Relu", ["x"], ["r"], {}),
        ("Softmax", ["r"], ["p"], {"axis": 1}),
        ("Flatten", ["p"], ["y"], {}),
    ]
    net = exact(make_model(nodes, {}, ["n", 3, 1, 1], opset=opset))
    assert net.output_activation == "softmax" and net.widths == (3, 3, 3)
    # Before operator set 13 it is over all axes, also of this one.
    wide = make_model([*nodes[:1], ("Softmax", ["r"], ["y"], {"axis": 1})], {}, ["n", 3, 2], opset=11)
    assert exact(wide).output_activation == "softmax"


def test_softmax_elsewhere_has_no_exact_form():
    nodes = [("Softmax", ["x"], ["p"], {}), ("Relu", ["p"], ["y"], {})]
    model = assert_agrees(make_model(nodes, {}, ["n", 3]))
    with pytest.raises(UnsupportedModelError, match=r"node 0 'Softmax_0' \(Softmax\)"):
        model.relu_network()


@pytest.mark.parametrize("opset", (11, 13))
@pytest.mark.parametrize("axis", (0, 1, 2))
def test_softmax_over_pixels(axis, opset):
    nodes = [("Softmax", ["x"], ["y"], {"axis": axis})]
    assert_agrees(make_model(nodes, {}, [1, 3, 5], opset=opset))
    # Before operator set 13 the same node flattened all axes from this one on.
    assert_agrees(make_model(nodes, {}, [2, 3, 5], opset=opset))


def test_nodes_that_the_output_does_not_need_do_not_matter(tiny_model):
    tiny_model.graph.node.append(helper.make_node("Det", ["a"], ["unused"]))
    assert exact(tiny_model).widths == (3, 4, 2)
    assert "does not need" in read(tiny_model).notes[0]


def test_output_that_is_the_input_or_a_constant():
    assert np.allclose(
        read(make_model([("Identity", ["x"], ["y"], {})], {}, ["n", 2]))([[1, 2]]), [[1, 2]]
    )
    constant = make_model([("Identity", ["c"], ["y"], {})], {"c": np.array([[5.0]], "f4")}, ["n", 2])
    assert read(constant)([[1, 2]]) == 5.0


# ---------------------------------------------------------------------- stored tensors

NUMBERS = np.array([[0.5, -1.25], [3.0, 0.0078125]])
TYPES = {
    TensorProto.FLOAT: np.float32,
    TensorProto.DOUBLE: np.float64,
    TensorProto.FLOAT16: np.float16,
    TensorProto.BFLOAT16: None,
}


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("kind", TYPES)
def test_float_types_are_read_exactly(kind, raw):
    if raw:
        if kind == TensorProto.BFLOAT16:
            data = (NUMBERS.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
        else:
            data = NUMBERS.astype(TYPES[kind]).tobytes()
        tensor = helper.make_tensor("W", kind, (2, 2), data, raw=True)
    else:
        tensor = helper.make_tensor("W", kind, (2, 2), NUMBERS.ravel().tolist())
    model = make_model([("MatMul", ["x", "W"], ["y"], {})], {}, ["n", 2], kind=kind)
    model.graph.initializer.append(tensor)
    assert (exact(model).layers[0].weight == NUMBERS.T).all()


@pytest.mark.parametrize(
    "kind", ["INT8", "UINT8", "INT16", "UINT16", "INT32", "INT64", "UINT32", "UINT64", "BOOL"]
)
@pytest.mark.parametrize("raw", [True, False])
def test_integer_types_are_read(kind, raw):
    dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, kind))
    values = np.array([1, 0]).astype(dtype)
    content = values.tobytes() if raw else values.tolist()
    tensor = helper.make_tensor("k", getattr(TensorProto, kind), (2,), content, raw=raw)
    nodes = [("Cast", ["k"], ["c"], {"to": 1}), ("Add", ["x", "c"], ["y"], {})]
    model = make_model(nodes, {}, ["n", 2])
    model.graph.initializer.append(tensor)
    assert (exact(model).layers[0].bias == [1, 0]).all()


def test_float32_weights_are_upcast_exactly(tiny_model):
    weight = numpy_helper.to_array(tiny_model.graph.initializer[0])
    assert (exact(tiny_model).layers[0].weight == weight.astype(np.float64)).all()


@pytest.fixture
def external(tiny_model, tmp_path):
    """The tiny model with its weights in a file beside it, and a function that edits where they lie."""
    path = tmp_path / "model.onnx"
    moved = onnx.ModelProto()
    moved.CopyFrom(tiny_model)  # saving moves the weights out of the model it is given
    onnx.save_model(
        moved, path, save_as_external_data=True, location="model.onnx.data", size_threshold=0
    )

    def edit(**facts):
        model = onnx.load(path, load_external_data=False)
        entries = {entry.key: entry for entry in model.graph.initializer[0].external_data}
        for key, value in facts.items():
            entries[key].value = value
        path.write_bytes(model.SerializeToString())
        return path

    return path, edit


def test_weights_in_a_file_beside_the_model_are_read(external, tiny_model):
    assert load(external[0]) == read(tiny_model)


@pytest.mark.parametrize(
    "location",
    ["../secret.data", "/etc/passwd", "sub/model.data", "..", ".", "", "C:\\w.data", "a\\b", "a\0b"],
)
def test_weights_are_read_from_no_other_place(external, tmp_path, location):
    (tmp_path.parent / "secret.data").write_bytes(bytes(1000))
    with pytest.raises(ModelFileError, match="own directory"):
        load(external[1](location=location))


def test_links_out_of_the_directory_are_not_followed(external, tmp_path_factory):
    path, edit = external
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.data"
    secret.write_bytes(bytes(1000))
    (path.parent / "linked.data").symlink_to(secret)
    with pytest.raises(ModelFileError, match="link"):
        load(edit(location="linked.data"))


@pytest.mark.parametrize(
    "facts",
    [{"offset": "100000"}, {"offset": "-8"}, {"length": "99999999999"}, {"length": "4"}, {"offset": "x"},
     {"length": "-1"}, {"offset": "9" * 5000}],
)  # fmt: skip
def test_places_outside_the_data_file_are_refused(external, facts):
    with pytest.raises(ModelFileError, match="W1"):
        load(external[1](**facts))


def test_missing_data_file_is_named(external):
    (external[0].parent / "model.onnx.data").unlink()
    with pytest.raises(ModelFileError, match=r"model\.onnx\.data"):
        load(external[0])


def test_models_in_memory_have_no_files_beside_them(external):
    with pytest.raises(ModelFileError, match="path"):
        model_from_onnx(external[0].read_bytes())


# ---------------------------------------------------------------------- what torch exports


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("opset", (9, 11, 13, 17))
def test_what_torch_exports(torch, tmp_path, dynamic, opset):
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(2, 4, 3, padding=1)
            self.norm = nn.BatchNorm2d(4)
            self.pool = nn.MaxPool2d(2, ceil_mode=opset > 9)
            self.head = nn.Sequential(nn.Linear(36, 8), nn.LeakyReLU(0.1), nn.Dropout(), nn.Linear(8, 3))

        def forward(self, x):
            x = torch.relu(self.norm(self.conv((x - 0.5) / 0.25)))
            x = torch.nn.functional.relu6(x + x.mean(dim=(2, 3), keepdim=True))
            x = self.pool(x)
            return torch.log_softmax(self.head(x.view(x.size(0), -1)), dim=1)

    torch.manual_seed(0)
    net, path = Net().eval(), tmp_path / "net.onnx"
    sample = torch.randn(1, 2, 6, 6) if not dynamic else torch.randn(3, 2, 6, 6)
    axes = {"dynamic_axes": {"x": {0: "batch"}}} if dynamic else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                net,
                (sample,),
                path,
                opset_version=opset,
                input_names=["x"],
                dynamo=False,
                verbose=False,
                **axes,
            )
    except (ImportError, ModuleNotFoundError) as error:
        pytest.skip(f"torch cannot export here: {error}")
    ours = load(path)
    assert ours.relu_network().output_activation == "log_softmax" and ours.input_shape == (2, 6, 6)
    folded = sum(p.numel() for p in net.norm.parameters())  # into the convolution, by the exporter
    assert ours.n_parameters == sum(p.numel() for p in net.parameters()) - folded
    X = torch.randn(20, 2, 6, 6)
    with torch.no_grad():
        theirs = net(X).numpy()
    assert relative_gap(ours(X.numpy()), theirs) < 1e-4


def test_notes_say_what_a_half_precision_cast_means():
    nodes = [("Cast", ["x"], ["h"], {"to": TensorProto.FLOAT16}), ("Cast", ["h"], ["y"], {"to": 1})]
    assert any("16-bit" in note for note in read(make_model(nodes, {}, ["n", 2])).notes)
    assert_agrees(make_model([("Cast", ["x"], ["y"], {"to": 1})], {}, ["n", 2]))
