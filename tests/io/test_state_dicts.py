"""Bare tensors: plain MLPs are inferred, everything else is refused, and no pickle is ever run."""

import contextlib
import json
import pickle
import struct
import zipfile
from functools import partial

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch_file
from torch import nn

from pindown import Model, ReluNetwork, audit, canonical, diff, shrink
from pindown.cli.main import main
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io import load as load_file
from pindown.io._safetensors import read_safetensors
from pindown.io._state_dicts import read_torch_file

load = partial(load_file, activation="relu")


@pytest.fixture
def mlp():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2, bias=False)
    )


def assert_computes(net, module):
    X = torch.randn(20, 3, dtype=torch.float64)
    with torch.no_grad():
        assert np.allclose(net(X.numpy()), module.double()(X).numpy(), rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------------- what is read


@pytest.mark.parametrize("ending", [".pt", ".pth"])
@pytest.mark.parametrize("nested", [None, "state_dict", "model_state_dict"])
@pytest.mark.parametrize("zipped", [True, False])
def test_torch_files(tmp_path, mlp, ending, nested, zipped):
    path = tmp_path / f"weights{ending}"
    content = mlp.state_dict() if nested is None else {"epoch": 3, nested: mlp.state_dict()}
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    net = load(path)
    assert_computes(net, mlp)
    assert (
        len(net.notes) == 1
        and "as told by activation='relu'; a state dict does not say." in net.notes[0]
    )


def test_safetensors_are_ordered_by_number(tmp_path):
    torch.manual_seed(0)
    layers = [nn.Linear(3, 3) for _ in range(12)]  # "10" sorts before "2" as text; shapes tell nothing
    module = nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())), nn.Linear(3, 3))
    save_torch_file(module.state_dict(), tmp_path / "net.safetensors")
    assert_computes(load(tmp_path / "net.safetensors"), module)


def test_one_number_may_vary_among_several(tmp_path):
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(2, 2)) for _ in range(3)]
    save_file({f"block1.fc{k}.weight": W for k, W in enumerate(weights)}, tmp_path / "net.safetensors")
    net = load(tmp_path / "net.safetensors").relu_network()
    assert all((layer.weight == W).all() for layer, W in zip(net.layers, weights, strict=True))


def test_safetensors_are_ordered_by_shape_where_names_do_not_tell(tmp_path):
    tensors = {
        "out.weight": np.ones((1, 5)),
        "in.weight": np.ones((4, 3)),
        "mid.weight": np.ones((5, 4)),
    }
    save_file(tensors, tmp_path / "net.safetensors")
    assert load(tmp_path / "net.safetensors").relu_network().widths == (3, 4, 5, 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_precisions_are_read_exactly(tmp_path, mlp, dtype):
    state = {name: tensor.to(dtype) for name, tensor in mlp.state_dict().items()}
    torch.save(state, tmp_path / "net.pt")
    save_torch_file(state, tmp_path / "net.safetensors")
    for name in ("net.pt", "net.safetensors"):
        model = load(tmp_path / name)
        weight = model.operations[0].weight
        assert model.dtype == "float32"  # which holds all of them
        assert (weight == state["0.weight"].double().numpy()).all()


def test_transposed_weights_are_read(tmp_path):
    W = torch.randn(3, 2).T
    torch.save({"weight": W}, tmp_path / "net.pt")
    assert (load(tmp_path / "net.pt").operations[0].weight == W.double().numpy()).all()


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "module, tensor",
    [
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2)), "'0.weight'"),
        (nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), "'1."),
        (nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2)), "'1."),
        (nn.LSTM(3, 2), "'weight_"),
        (
            nn.ModuleDict({"embedding": nn.Embedding(3, 2), "head": nn.Linear(3, 2)}),
            "'embedding.weight'",
        ),
    ],
)
def test_other_architectures_are_refused_by_tensor(tmp_path, module, tensor):
    torch.save(module.state_dict(), tmp_path / "net.pt")
    save_torch_file(module.state_dict(), tmp_path / "net.safetensors")
    for name in ("net.pt", "net.safetensors"):
        with pytest.raises(UnsupportedModelError, match=r"torch\.onnx\.export") as caught:
            load(tmp_path / name)
        assert tensor in str(caught.value)


@pytest.mark.parametrize(
    "shapes", [[(5, 5), (5, 5)], [(4, 3), (7, 6)], [(3, 2), (2, 3), (3, 2), (2, 3)]]
)
def test_order_that_cannot_be_inferred(tmp_path, shapes):
    tensors = {f"{name}.weight": np.ones(shape) for name, shape in zip("abcd", shapes, strict=False)}
    save_file(tensors, tmp_path / "net.safetensors")
    with pytest.raises(UnsupportedModelError, match="chain"):
        load(tmp_path / "net.safetensors")


@pytest.mark.timeout(20)
def test_search_for_the_order_ends(tmp_path):
    names = [f"{chr(97 + k % 26)}{chr(97 + k // 26)}" for k in range(60)]
    shapes = [(3, 2), (2, 3)] * 29 + [(9, 8), (8, 9)]
    save_file(
        {f"{name}.weight": np.ones(shape) for name, shape in zip(names, shapes, strict=True)},
        tmp_path / "net.safetensors",
    )
    with pytest.raises(UnsupportedModelError):
        load(tmp_path / "net.safetensors")


def test_layers_that_do_not_chain(tmp_path):
    torch.save(nn.ModuleList([nn.Linear(3, 4), nn.Linear(5, 2)]).state_dict(), tmp_path / "net.pt")
    with pytest.raises(UnsupportedModelError, match="'0' gives 4 values, '1' takes 5"):
        load(tmp_path / "net.pt")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(tmp_path, mlp, bad):
    state = mlp.state_dict()
    state["2.bias"][1] = bad
    torch.save(state, tmp_path / "net.pt")
    save_torch_file(state, tmp_path / "net.safetensors")
    for name in ("net.pt", "net.safetensors"):
        with pytest.raises(ModelFileError, match=r"'2\.bias'"):
            load(tmp_path / name)


@pytest.mark.parametrize(
    "content", [{}, {"lr": 0.1}, [torch.ones(2, 2)], torch.ones(2, 2), {"a": torch.ones(2, 2)}]
)
def test_files_without_layers(tmp_path, content):
    torch.save(content, tmp_path / "net.pt")
    with pytest.raises(UnsupportedModelError):
        load(tmp_path / "net.pt")


def test_a_tensor_that_claims_more_than_it_stores(tmp_path):
    torch.save({"weight": torch.ones(1).expand(10**6, 10**6)}, tmp_path / "net.pt")
    with pytest.raises((ModelFileError, UnsupportedModelError), match="weight"):
        load(tmp_path / "net.pt")
    torch.save({"weight": torch.ones(1).expand(100, 100)}, tmp_path / "net.pt")
    with pytest.raises(ModelFileError, match="more than it stores"):
        load(tmp_path / "net.pt")


def test_compressed_archives_are_refused(tmp_path, mlp):
    torch.save(mlp.state_dict(), tmp_path / "net.pt")
    with (
        zipfile.ZipFile(tmp_path / "net.pt") as plain,
        zipfile.ZipFile(tmp_path / "bomb.pt", "w") as packed,
    ):
        for member in plain.infolist():
            packed.writestr(member.filename, plain.read(member), zipfile.ZIP_DEFLATED)
    with pytest.raises(ModelFileError, match="compressed"):
        load(tmp_path / "bomb.pt")


# ---------------------------------------------------------------------- pickles


class Hostile:
    """What an attacker pickles: opening it would create a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("name", ["evil.pkl", "evil.pickle", "evil.joblib", "evil.pt", "evil.pth"])
def test_hostile_pickles_are_not_executed(tmp_path, name):
    proof, path = tmp_path / "executed", tmp_path / name
    path.write_bytes(pickle.dumps(Hostile(proof)))
    pickle.loads(path.read_bytes()).close()  # the attack is real
    proof.unlink()
    with pytest.raises(
        (ModelFileError, UnsupportedModelError), match=r"pickle can run code|not a torch file"
    ):
        load(path)
    assert not proof.exists()


@pytest.mark.parametrize("zipped", [True, False])
def test_hostile_torch_files_are_not_executed(tmp_path, zipped):
    proof, path = tmp_path / "executed", tmp_path / "evil.pt"
    torch.save(
        {"weight": torch.ones(2, 2), "x": Hostile(proof)}, path, _use_new_zipfile_serialization=zipped
    )
    torch.load(path, weights_only=False)["x"].close()
    proof.unlink()
    with pytest.raises(UnsupportedModelError, match="pickle can run code"):
        load(path)
    assert not proof.exists()


def test_pickled_modules_are_refused_with_the_way_out(tmp_path, mlp):
    torch.save(mlp, tmp_path / "module.pt")
    with pytest.raises(UnsupportedModelError, match=r"torch\.save\(model\.state_dict\(\)"):
        load(tmp_path / "module.pt")


# ---------------------------------------------------------------------- damaged files


def header(fields, data=b""):
    text = json.dumps(fields).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    "content",
    [
        b"x",
        b"\xff" * 8,
        struct.pack("<Q", 10 * 2**30) + b"{}",
        header({"weight": {"dtype": "F32", "shape": [50_000, 50_000], "data_offsets": [0, 10**10]}}),
        header({"weight": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 8]}}, bytes(8)),
        header(
            {"weight": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 16]}}, bytes(16)
        ),
        header({"weight": {"dtype": "F99", "shape": [2, 2], "data_offsets": [0, 16]}}, bytes(16)),
        struct.pack("<Q", 40_000) + b"[" * 40_000,
    ],
)
def test_safetensors_that_lie(tmp_path, content):
    path = tmp_path / "net.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="not a safetensors file"):
        load(path)


def own_file(tmp_path, tensors, facts):
    save_file(tensors, tmp_path / "net.safetensors", metadata={"pindown": facts})
    return tmp_path / "net.safetensors"


SPARSE = {
    "layers.1.data": np.ones(2),
    "layers.1.indices": np.array([0, 1]),
    "layers.1.indptr": np.array([0, 1, 2]),
    "layers.1.shape": np.array([2, 3]),
    "layers.1.bias": np.zeros(2),
}
FACTS = json.dumps({"format": 1, "input_shape": [3], "output_activation": None, "notes": []})


def test_own_sparse_files_are_read(tmp_path):
    assert load(own_file(tmp_path, SPARSE, FACTS)).relu_network().widths == (3, 2)


def test_own_files_stay_sparse(tmp_path):
    wide = SPARSE | {"layers.1.shape": np.array([2, 3_000_000])}
    assert load(own_file(tmp_path, wide, FACTS.replace("[3]", "[3000000]"))).in_features == 3_000_000
    many = {
        "layers.1.data": np.ones(200),
        "layers.1.indices": np.arange(200),
        "layers.1.indptr": np.arange(201),
        "layers.1.shape": np.array([200, 3_000_000]),
        "layers.1.bias": np.zeros(200),
    }
    model = load(own_file(tmp_path, many, FACTS.replace("[3]", "[3000000]")))
    assert model.in_features == 3_000_000 and model.nbytes < 10_000


@pytest.mark.parametrize(
    "changed",
    [
        {"layers.1.indices": np.array([0, 7])},
        {"layers.1.indices": np.array([0, -1])},
        {"layers.1.indptr": np.array([0, 2, 1])},
        {"layers.1.indptr": np.array([0, 1, 9])},
        {"layers.1.shape": np.array([2, 10**12])},
        {"layers.1.shape": np.array([10**12, 3])},
        {"layers.1.shape": np.array([2])},
        {"layers.1.shape": np.array([-2, 3])},
        {"layers.1.data": np.array([1.0, np.nan])},
        {"layers.1.bias": np.zeros((2, 1))},
        {"layers.2.extra": np.zeros(2)},
    ],
)
def test_own_files_that_are_damaged(tmp_path, changed):
    with pytest.raises((ModelFileError, UnsupportedModelError)):
        load(own_file(tmp_path, SPARSE | changed, FACTS))


@pytest.mark.parametrize(
    "facts",
    ["", "[]", "{}", "[" * 100_000, '{"format": 99}', FACTS.replace("[3]", "[4]"),
     FACTS.replace("[3]", '"ab"'), FACTS.replace("[3]", "[NaN]"), FACTS.replace("null", "5"),
     FACTS.replace('"notes": []', '"notes": 3')],
)  # fmt: skip
def test_own_files_with_damaged_facts(tmp_path, facts):
    with pytest.raises((ModelFileError, UnsupportedModelError)):
        load(own_file(tmp_path, SPARSE, facts))


@pytest.mark.parametrize("zipped", [True, False])
def test_mutated_torch_files(tmp_path, mlp, zipped):
    path = tmp_path / "net.pt"
    torch.save(mlp.state_dict(), path, _use_new_zipfile_serialization=zipped)
    whole, rng, read = path.read_bytes(), np.random.default_rng(0), 0
    for k in range(400):
        data = bytearray(whole if k % 4 else whole[: rng.integers(len(whole))])
        for _ in range(int(rng.integers(1, 6))):
            if data:
                data[rng.integers(len(data))] = rng.integers(256)
        path.unlink()  # overwriting waits for the disk
        path.write_bytes(bytes(data))
        with contextlib.suppress(ModelFileError, UnsupportedModelError):
            read += load(path).in_features == mlp[0].in_features
    assert 0 < read < 400  # some changes only touch a weight


def test_the_assumed_order_is_noted(tmp_path):
    module = nn.ModuleDict({"last": nn.Linear(3, 3), "first": nn.Linear(3, 3)})
    torch.save(module.state_dict(), tmp_path / "net.pt")
    assert "2 layers were taken in the order of the file" in load(tmp_path / "net.pt").notes[0]


# ---------------------------------------------------------------------- what a state dict does not say


@pytest.fixture
def tanh_pair(tmp_path):
    """Return the files of two tanh networks that would be one function if they had ReLUs."""
    torch.manual_seed(0)
    first, second = (
        nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)).double() for _ in range(2)
    )
    scale = {"0.weight": 4.0, "0.bias": 4.0, "2.weight": 0.25, "2.bias": 1.0}
    second.load_state_dict({key: scale[key] * value for key, value in first.state_dict().items()})
    X = torch.rand(100, 4, dtype=torch.float64)
    assert (first(X) - second(X)).abs().max() > 0.1
    torch.save(first.state_dict(), tmp_path / "a.pt")
    torch.save(second.state_dict(), tmp_path / "b.pt")
    save_torch_file(first.state_dict(), tmp_path / "a.safetensors")
    return tmp_path / "a.pt", tmp_path / "b.pt"


def test_a_state_dict_names_no_activation_and_is_asked_for_it(tanh_pair):
    a, b = tanh_pair
    questions = (
        lambda: load_file(a),
        lambda: load_file(a.with_suffix(".safetensors")),
        lambda: diff(a, b, box=(0, 1)),
        lambda: shrink(a),
        lambda: canonical(a),
        lambda: audit(a, only=["ARC-01"]),
    )
    for ask in questions:
        with pytest.raises(UnsupportedModelError, match="does not say") as caught:
            ask()
        assert 'activation="relu", on the command line --activation relu' in str(caught.value)


@pytest.mark.parametrize("activation", ["tanh", "ReLU", ""])
def test_no_other_activation_is_taken(tanh_pair, activation):
    with pytest.raises(ValueError, match="must be 'relu'; got") as caught:
        diff(*tanh_pair, activation=activation)
    assert not isinstance(caught.value, UnsupportedModelError)


def test_what_was_told_is_part_of_every_answer(tanh_pair, tmp_path):
    told = "ead as Linear, ReLU, Linear, as told by activation='relu'; a state dict does not say."
    a, b = tanh_pair
    answer = diff(a, b, box=(0, 1), activation="relu")
    assert answer.verdict == "same"  # which it is, for ReLUs
    assert told in str(answer) and told in json.loads(answer.to_json())["assumptions"][0]
    assert told.replace("'", "&#39;") in answer.to_html()
    assert told in shrink(a, activation="relu").original.notes[0]
    assert told in canonical(a, activation="relu").notes[0]
    report = audit(a, only=["ARC-01"], activation="relu")
    assert told in report.description and told in json.loads(report.to_json())["network"]["notes"][0]
    assert report["ARC-01"].reading.endswith("no function after the last layer.")
    other = audit(without_notes(a), only=["ARC-01"], before=load(b).relu_network())
    assert any(told in note for note in other.comparison.notes)


def test_what_one_file_leaves_open_is_said_of_that_file(tanh_pair):
    a, b = tanh_pair
    load(b).save(b.with_suffix(".onnx"))
    for pair in ((a, b.with_suffix(".onnx")), (b.with_suffix(".onnx"), a)):
        (said,) = diff(*pair, box=(0, 1), activation="relu").assumptions
        assert said.startswith("a.pt: Read as Linear, ReLU, Linear")


def without_notes(path):
    """Return a network that rests on nothing, with the sizes of the file's."""
    return ReluNetwork.from_layers(load(path).relu_network().layers)


def test_commands_ask_for_the_activation(tanh_pair, tmp_path, capsys):
    a, b = map(str, tanh_pair)
    out = str(tmp_path / "out.onnx")
    commands = (("diff", a, b, "--box", "0,1"), ("shrink", a, "-o", out), ("canonical", a, "-o", out),
                ("audit", a, "--only", "ARC-01"))  # fmt: skip
    for command in commands:
        for more, code in (((), 3), (("--activation", "tanh"), 3), (("--activation", "relu"), 0)):
            with pytest.raises(SystemExit) as ended:
                main([*command, *more])
            said, complaint = capsys.readouterr()
            assert ended.value.code == code, command
            if code:
                assert len(complaint.splitlines()) == 1 and "relu" in complaint and not said
            else:
                assert "as told by activation='relu'" in " ".join(said.split())


def test_one_linear_layer_needs_no_activation(tmp_path):
    torch.save(nn.Linear(3, 2).state_dict(), tmp_path / "net.pt")
    assert load_file(tmp_path / "net.pt").notes == (
        "Read as Linear; a state dict does not say whether anything without weights, such as a softmax, "
        "comes before or after it.",
    )


def test_files_that_say_it_themselves_need_no_activation(tanh_pair, tmp_path):
    net = load(tanh_pair[0])
    for name in ("net.onnx", "net.safetensors"):
        net.save(tmp_path / name)
        assert load_file(tmp_path / name) == net == load(tmp_path / name)
    assert load_file(tmp_path / "net.safetensors").notes == net.notes  # what it rests on stays with it


# ---------------------------------------------------------------------- with the module


class Image(nn.Sequential):
    """Layers that bare tensors do not tell."""

    def __init__(self):
        super().__init__(nn.Linear(3, 6), nn.BatchNorm1d(6), nn.GELU(), nn.Linear(6, 2))
        self[1].running_mean.normal_()
        self[1].running_var.uniform_(0.5, 2.0)


@pytest.mark.parametrize("prefix", ["", "model.", "module._orig_mod."])
def test_with_the_module_any_layers_are_read(tmp_path, prefix):
    torch.manual_seed(0)
    trained, module = Image(), Image()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    state = {prefix + name: tensor for name, tensor in trained.state_dict().items()}
    if prefix:
        state["metric.total"] = torch.ones(2)  # what a trainer keeps beside the model's own
    torch.save({"state_dict": state, "epoch": 3}, tmp_path / "net.pt")
    save_torch_file(state, tmp_path / "net.safetensors")
    for name in ("net.pt", "net.safetensors"):
        model = load_file(tmp_path / name, module=module)
        assert_computes(model, trained.eval())
        assert model.n_parameters == sum(p.numel() for p in module.parameters())
        assert model.notes == (
            "The weights are the file's; what is done with them is what the given Image does.",
        )
    for name, tensor in module.state_dict().items():  # a copy got the weights
        assert torch.equal(tensor, before[name])


def test_the_weights_keep_the_digits_of_the_file(tmp_path):
    state = {
        name: t / 3 if t.is_floating_point() else t for name, t in Image().double().state_dict().items()
    }
    torch.save(state, tmp_path / "net.pt")
    model = load_file(tmp_path / "net.pt", module=Image())
    assert (model.operations[0].weight == state["0.weight"].numpy()).all() and model.dtype == "float64"


def test_a_module_with_images_needs_their_shape(tmp_path):
    module = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2)
    )
    torch.save(module.state_dict(), tmp_path / "net.pt")
    save_torch_file(module.state_dict(), tmp_path / "net.safetensors")
    wanted = Model.from_torch(module, (1, 4, 4))
    for read, name in ((read_torch_file, "net.pt"), (read_safetensors, "net.safetensors")):
        assert read(tmp_path / name, module=module, input_shape=(1, 4, 4)) == wanted
        with pytest.raises(ValueError, match="input_shape"):
            read(tmp_path / name, module=module)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: state.pop("3.bias"), r"the file has no tensor '3\.bias', which Image needs"),
        (
            lambda state: state.update({"4.bias": torch.ones(2)}),
            r"Image has no place for the tensor '4\.bias'",
        ),
        (
            lambda state: state.update({"3.bias": torch.ones(3)}),
            r"'3\.bias' has shape \(3,\) in the file and \(2,\)",
        ),
        (lambda state: state.update({"3.bias": 1.0}), r"'3\.bias' is a float"),
        (lambda state: state["3.bias"].fill_(float("nan")), "NaN"),
    ],
)
def test_weights_of_another_module_are_refused(tmp_path, change, words):
    state = Image().state_dict()
    change(state)
    torch.save(state, tmp_path / "net.pt")
    with pytest.raises((ModelFileError, UnsupportedModelError), match=words):
        load_file(tmp_path / "net.pt", module=Image())


def test_a_batch_norm_without_its_module_asks_for_it(tmp_path):
    torch.save(Image().state_dict(), tmp_path / "net.pt")
    save_torch_file(Image().state_dict(), tmp_path / "net.safetensors")
    for name in ("net.pt", "net.safetensors"):
        with pytest.raises(
            UnsupportedModelError, match=r"batch normalisation.*load\(path, module=model\)"
        ):
            load(tmp_path / name)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_archives_that_hold_more_than_weights_are_named(tmp_path, mlp):
    torch.jit.trace(mlp, torch.ones(1, 3)).save(str(tmp_path / "script.pt"))
    with zipfile.ZipFile(tmp_path / "program.pt", "w") as archive:  # as torch.export.save lays it out
        archive.writestr("program/archive_format", "pt2")
        archive.writestr("program/models/model.json", "{}")
    for name, kind in (("script", "a TorchScript file"), ("program", "an exported program")):
        with pytest.raises(UnsupportedModelError, match=f"this is {kind}.*torch.onnx.export"):
            load(tmp_path / f"{name}.pt")


def test_the_order_is_said(tmp_path):
    names = (("0", "2", "in the order of the numbers"), ("x", "y", "in the only order that fits"))
    for first, second, words in names:
        tensors = {f"{first}.weight": np.ones((3, 2)), f"{second}.weight": np.ones((1, 3))}
        save_file(tensors, tmp_path / "net.safetensors")
        assert words in load(tmp_path / "net.safetensors").notes[0]
