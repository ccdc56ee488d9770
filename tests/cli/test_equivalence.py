"""diff, shrink, canonical and reproduce as a user types them."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pindown import ReluNetwork, load
from pindown.equivalence.weight_symmetry import apply, random_symmetry
from pindown.model.operations.dense import Dense
from pindown.model.operations.piecewise_linear import Relu
from pindown.model.operations.pooling import MaxPool
from tests.cli.test_main import run  # noqa: F401
from tests.equivalence.shrinking.graphs import Chain, conv, single, window
from tests.equivalence.shrinking.redundancy import random_net, redundant


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(1)
    net = random_net(rng, [3, 8, 5, 2])
    other = redundant(net, rng, ["duplicate", "identity_layer", "dead"])
    for name, network in (
        ("a.onnx", net),
        ("copy.onnx", apply(random_symmetry(net, seed=rng), net)),
        ("large.onnx", other),
        ("other.onnx", random_net(rng, [3, 8, 5, 2])),
        ("small.onnx", random_net(rng, [2, 3, 2])),
    ):
        network.save(tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(("name", "code"), [("copy.onnx", 0), ("large.onnx", 0), ("other.onnx", 1)])
def test_diff_answers_by_its_exit_code(run, files, name, code):  # noqa: F811
    got, out, _ = run("diff", files / "a.onnx", files / name, "--box=-1,1")
    assert got == code
    assert out.startswith("SAME" if code == 0 else "DIFFERENT")


def test_diff_undecided(run, files):  # noqa: F811
    code, out, _ = run("diff", files / "a.onnx", files / "other.onnx", "--tol", "50", "--budget", "0")
    assert code == 2 and out.startswith("UNDECIDED")


def test_diff_with_labels_answers_about_labels(run, files):  # noqa: F811
    net = load(files / "a.onnx").relu_network()
    W, b = net.layers[-1]
    ReluNetwork((*net.layers[:-1], type(net.layers[-1])(2 * W, 2 * b))).save(files / "double.onnx")
    plain = run("diff", files / "a.onnx", files / "double.onnx", "--box=-1,1")
    labels = run("diff", files / "a.onnx", files / "double.onnx", "--box=-1,1", "--labels", "0.01")
    assert plain[0] == 1 and labels[0] in (0, 2) and "labels" in labels[1]


@pytest.fixture
def shifted(tmp_path):
    """Two models whose values differ by a half everywhere, in both outputs: classes are the same."""
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0.1, 0.2]), ([[1.0, 0.0], [0.0, 1.0]], [0, 0])])
    W, b = net.layers[-1]
    other = ReluNetwork((*net.layers[:-1], type(net.layers[-1])(W, b + 0.5)))
    net.save(tmp_path / "one.onnx")
    other.save(tmp_path / "two.onnx")
    return tmp_path / "one.onnx", tmp_path / "two.onnx"


def test_the_first_word_is_about_the_question_asked(run, shifted, tmp_path):  # noqa: F811
    code, out, _ = run("diff", *shifted, "--box=-1,1", "--labels", "0.6", "--html", tmp_path / "d.html")
    assert code == 0 and out.startswith("SAME  Proved: one.onnx and two.onnx never choose")
    assert "values        different: one.onnx and two.onnx are different functions" in out
    assert ">Same labels</h1>" in (tmp_path / "d.html").read_text()
    code, out, _ = run("diff", *shifted, "--box=-1,1", "--labels", "0.6", "--json")
    content = json.loads(out)
    told = [content[key] for key in ("verdict", "question", "gap_verdict", "kind")]
    assert code == 0 and told == ["same", "labels", "different", "exact"]
    code, out, _ = run("diff", *shifted, "--box=-1,1", "--json")
    content = json.loads(out)
    assert code == 1 and content["verdict"] == content["gap_verdict"] == "different"
    assert content["question"] == "values"


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        ((), 1, "DIFFERENT"),
        (("--tol", "9"), 130, "UNDECIDED"),
        (("--labels", "0.6"), 130, "UNDECIDED"),  # asked about labels, of which nothing is known
    ],
)
def test_an_answer_that_is_known_survives_ctrl_c(run, shifted, monkeypatch, options, code, word):  # noqa: F811
    from pindown.equivalence.comparison import _reduced_pairs as reduced_pairs
    from pindown.equivalence.comparison import methods

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(reduced_pairs, "match", interrupt)  # after the search for a witness
    monkeypatch.setattr(methods, "interval_gap", lambda *_: float("inf"))
    got, out, _ = run("diff", *shifted, "--box=-1,1", *options)
    assert got == code and out.startswith(word) and "interrupted" in out


def test_diff_writes_its_documents(run, files):  # noqa: F811
    code, _, err = run(
        *("diff", files / "a.onnx", files / "other.onnx", "--box=-1,1", "--html", files / "d.html"),
        *("--json", files / "d.json", "--witness", files / "x.npy"),
    )
    assert code == 1 and "wrote" in err
    x = np.load(files / "x.npy")
    content = json.loads((files / "d.json").read_text())
    assert content["witness"] == x.tolist() and content["names"] == ["a.onnx", "other.onnx"]
    assert "Different" in (files / "d.html").read_text()
    code, out, _ = run("diff", files / "a.onnx", files / "other.onnx", "--json")
    assert code == 1 and json.loads(out)["verdict"] == "different"


BAD = [
    (("diff", "a.onnx", "small.onnx"), "takes 3 and gives 2, the second takes 2 and gives 2"),
    (("diff", "a.onnx", "none.onnx"), "none.onnx"),
    (("diff", "a.onnx", "copy.onnx", "--box", "1"), "--box takes LOW,HIGH"),
    (("diff", "a.onnx", "copy.onnx", "--box", "1,0"), "lower <= upper"),
    (("diff", "a.onnx", "copy.onnx", "--tol", "-1"), "tol"),
    (("diff", "a.onnx", "copy.onnx", "--html", "a.onnx"), ".html"),
    (("diff", "a.onnx", "copy.onnx", "--witness", "x.csv"), ".npy"),
    (("shrink", "a.onnx", "-o", "a.onnx"), "overwrite"),
    (("shrink", "a.onnx", "-o", "b.txt"), ".onnx"),
    (("shrink", "a.onnx", "-o", "no/such/folder/b.onnx"), "no such folder"),
    (("shrink", "a.onnx", "-o", "copy.onnx/b.onnx"), "'copy.onnx/b.onnx': its folder is a file"),
    (("canonical", "a.onnx", "-o", "a.onnx"), "overwrite"),
    (("reproduce", "nothing"), "no experiment"),
    (("reproduce", "identifiability", "--jobs", "0"), "--jobs"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD)
def test_bad_input_is_one_line(run, files, monkeypatch, arguments, words):  # noqa: F811
    monkeypatch.chdir(files)
    before = (files / "a.onnx").read_bytes()
    code, out, err = run(*arguments)
    assert code == 3 and words in err and err.count("\n") == 1 and not out
    assert (files / "a.onnx").read_bytes() == before


def test_a_folder_that_turns_out_to_be_unwritable(run, files, monkeypatch):  # noqa: F811
    open_file = Path.open

    def refuse_new_ones(path, mode="r", **how):
        if "x" in mode:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return open_file(path, mode, **how)

    monkeypatch.setattr(Path, "open", refuse_new_ones)
    code, _, err = run("shrink", files / "a.onnx", "-o", files / "b.onnx")
    assert code == 3 and err == f"pindown: {files / 'b.onnx'} cannot be written: Permission denied.\n"


@pytest.mark.parametrize("command", ["shrink", "canonical"])
def test_a_full_disk_takes_the_file_and_not_what_was_found(run, files, monkeypatch, command):  # noqa: F811
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    code, out, err = run(command, files / "large.onnx", "-o", files / "b.onnx")
    assert code == 3 and out and "No space left" in err and err.count("\n") == 1
    assert not (files / "b.onnx").exists()


def test_a_box_of_the_wrong_dimension_is_refused(run, files):  # noqa: F811
    np.savez(files / "box.npz", lower=np.zeros(2), upper=np.ones(2))
    code, _, err = run("diff", files / "a.onnx", files / "copy.onnx", "--box", files / "box.npz")
    assert code == 3 and "2 dimensions" in err and "Traceback" not in err


def test_shrink_writes_a_smaller_network(run, files):  # noqa: F811
    code, out, err = run("shrink", files / "large.onnx", "-o", files / "s.onnx")
    small, large = load(files / "s.onnx"), load(files / "large.onnx")
    sizes = [model.relu_network().size for model in (small, large)]
    assert code == 0 and sizes[0] < sizes[1] and "ReLUs" in out and "wrote" in err
    X = np.random.default_rng(0).normal(size=(100, 3))
    np.testing.assert_allclose(small(X), large(X), atol=1e-9)
    code, out, _ = run("shrink", files / "large.onnx", "-o", files / "s.onnx", "--json")
    content = json.loads(out)
    assert content["after"]["relus"] == sizes[0] and content["steps"]


def test_canonical_files_of_symmetric_copies_agree(run, files):  # noqa: F811
    for name in ("a", "copy"):
        whole = ("canonical", files / f"{name}.onnx", "--dtype", "float64")
        code, out, _ = run(*whole, "-o", files / f"{name}.safetensors")
        assert code == 0 and "gauge unit" in out and "rounded" not in out
    code, out, _ = run("canonical", files / "a.onnx", "-o", files / "c.onnx", "--json")
    content = json.loads(out)
    assert code == 0 and content["fingerprint"] == load(files / "c.onnx").relu_network().fingerprint
    assert content["gauge"] == "unit" and content["near_ties"] == []
    a, b = (load(files / f"{name}.safetensors").relu_network() for name in ("a", "copy"))
    for first, second in zip(a.layers, b.layers, strict=True):
        np.testing.assert_allclose(first.weight, second.weight, rtol=1e-9, atol=1e-12)


@pytest.fixture
def pictures(tmp_path):
    """A convolutional model in float32, and one with a channel twice."""
    rng = np.random.default_rng(0)
    K, b, L = single(rng, 4, 1, 3, 3), single(rng, 4), single(rng, 6, 4, 3, 3)

    def written(name, change):
        k, c = K.copy(), b.copy()
        change(k, c)
        chain = Chain((1, 8, 8)).add(
            conv(k, c, pad=1), Relu(), MaxPool(window(2, 2)), conv(L, pad=1), Relu()
        )
        chain.flat().add(Dense(single(np.random.default_rng(1), 3, 96)))
        chain.model(dtype="float32").save(tmp_path / name)

    def twice(k, c):
        k[3], c[3] = k[2], c[2]

    written("plain.onnx", lambda k, c: None)
    written("twice.onnx", twice)
    return tmp_path


@pytest.mark.parametrize("ending", ["onnx", "onnx.gz"])
def test_shrink_copies_a_file_in_which_nothing_can_go(run, pictures, ending):  # noqa: F811
    load(pictures / "plain.onnx").save(pictures / f"model.{ending}")
    code, out, _ = run("shrink", pictures / f"model.{ending}", "-o", pictures / f"s.{ending}")
    assert code == 0 and "0 steps" in out and "copied" in out
    assert (pictures / f"s.{ending}").read_bytes() == (pictures / f"model.{ending}").read_bytes()
    code, _, err = run(
        "shrink", pictures / "plain.onnx", "-o", pictures / "d.onnx", "--dtype", "float64"
    )
    assert code == 0 and load(pictures / "d.onnx").dtype == "float64" and "parameters, " in err


def test_shrink_keeps_convolutions_and_the_type_of_the_file(run, pictures):  # noqa: F811
    code, out, _ = run("shrink", pictures / "twice.onnx", "-o", pictures / "s.onnx")
    given, small = load(pictures / "twice.onnx"), load(pictures / "s.onnx")
    assert code == 0 and small.dtype == "float32" and "channel 3: copies" in out
    assert (pictures / "s.onnx").stat().st_size < (pictures / "twice.onnx").stat().st_size
    assert [op.name for op in small.operations] == [op.name for op in given.operations]
    X = np.random.default_rng(2).normal(size=(50, 64))
    gaps = np.abs(small(X) - given(X)).max(axis=1)
    said = next(line for line in out.splitlines() if "rounded to float32" in line)
    bound = float(said.partition("at most ")[2].split()[0])
    assert 0.0 < gaps.max() <= (bound * (1.0 + np.linalg.norm(X, axis=1))).max() and bound < 1e-2
    code, out, _ = run(
        "shrink", pictures / "twice.onnx", "-o", pictures / "d.onnx", "--dtype", "float64"
    )
    assert code == 0 and "rounded" not in out
    np.testing.assert_allclose(load(pictures / "d.onnx")(X), given(X), rtol=0, atol=1e-12)
    code, out, _ = run("shrink", pictures / "twice.onnx", "-o", pictures / "s.onnx", "--json")
    content = json.loads(out)
    assert code == 0 and content["steps"][0]["counted"] == "channel"
    assert content["after"]["parameters"] < content["before"]["parameters"]


def test_weights_beside_a_file_are_not_left_behind(run, pictures):  # noqa: F811
    proto = onnx.load(pictures / "plain.onnx")
    how = {"save_as_external_data": True, "location": "w.bin", "size_threshold": 0}
    onnx.save(proto, pictures / "beside.onnx", **how)
    (pictures / "there").mkdir()
    code, _, _ = run("shrink", pictures / "beside.onnx", "-o", pictures / "there" / "s.onnx")
    assert code == 0 and load(pictures / "there" / "s.onnx") == load(pictures / "plain.onnx")


def test_a_file_never_grows_by_shrinking(run, tmp_path):  # noqa: F811
    """Two units that merge into one whose weights need float64: the file would be larger with it."""
    W = np.random.default_rng(0).normal(size=(40, 40)).astype(np.float32).astype(float)
    W[1] = W[0]
    V = np.random.default_rng(1).normal(size=(40, 40)).astype(np.float32).astype(float)
    net = ReluNetwork.from_layers([(W, np.zeros(40)), (V, np.zeros(40))])
    net.save(tmp_path / "m.onnx")
    code, out, _ = run("shrink", tmp_path / "m.onnx", "-o", tmp_path / "s.onnx")
    assert code == 0 and "1 step" in out and "rounded to float32" in out
    assert (tmp_path / "s.onnx").stat().st_size < (tmp_path / "m.onnx").stat().st_size
    small = load(tmp_path / "s.onnx")
    assert small.dtype == "float32" and small.relu_network().size == 39


def test_canonical_is_refused_where_it_would_take_more(run, pictures, tmp_path):  # noqa: F811
    for out in ("c.onnx", "c.safetensors"):
        code, said, err = run("canonical", pictures / "plain.onnx", "-o", pictures / out)
        assert code == 3 and not said and err.count("\n") == 1 and "--force" in err
        assert not (pictures / out).exists()
    code, _, _ = run("canonical", pictures / "plain.onnx", "-o", pictures / "c.onnx", "--force")
    assert code == 0 and (pictures / "c.onnx").exists()
    net = random_net(np.random.default_rng(0), [20, 30, 10])
    layers = [(np.float32(W), np.float32(b)) for W, b in net.layers]
    ReluNetwork.from_layers(layers).save(tmp_path / "m.onnx")
    code, out, _ = run("canonical", tmp_path / "m.onnx", "-o", tmp_path / "n.onnx")
    assert code == 0 and "rounded to float32" in out
    assert (tmp_path / "n.onnx").stat().st_size <= 1.1 * (tmp_path / "m.onnx").stat().st_size


@pytest.fixture
def two_heads(tmp_path):
    """Files with two inputs and two outputs, of which one is the other times two."""
    W = numpy_helper.from_array(np.eye(3, dtype=np.float32), "W")
    nodes = [
        helper.make_node("Gemm", ["x", "W"], ["h"]),
        helper.make_node("Relu", ["h"], ["first"]),
        helper.make_node("Add", ["first", "first"], ["second"]),
        helper.make_node("Sub", ["second", "y"], ["third"]),
    ]
    values = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3])
        for name in ("x", "y", "first", "second", "third")
    }
    outputs = [values[name] for name in ("first", "second")]
    graph = helper.make_graph(nodes[:3], "g", [values["x"]], outputs, [W])
    onnx.save(
        helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]),
        tmp_path / "m.onnx",
    )
    return tmp_path / "m.onnx"


def test_one_of_several_outputs_is_named(run, two_heads):  # noqa: F811
    folder = two_heads.parent
    for command in (
        ("shrink", two_heads, "-o", folder / "s.onnx"),
        ("canonical", two_heads, "-o", folder / "c.onnx"),
    ):
        code, _, err = run(*command)
        assert code == 3 and err.count("\n") == 1 and "second" in err
        code, _, _ = run(*command, "--output", "second", "--input", "x")
        assert code == 0
    assert load(folder / "s.onnx")([[1.0, -1.0, 2.0]]).tolist() == [[2.0, 0.0, 4.0]]
    box = ("--box", "0,1")
    assert run("diff", two_heads, two_heads, "--output", "second", *box)[0] == 0
    assert run("diff", two_heads, two_heads, "--output", "first", "--output", "second", *box)[0] == 1
    code, _, err = run("diff", two_heads, two_heads, "--output", "none", *box)
    assert code == 3 and err.count("\n") == 1
    code, out, _ = run("audit", two_heads, "--output", "second", "--only", "ARC-01")
    assert code == 0 and "ARC-01" in out


def test_reproduce_lists_what_there_is(run):  # noqa: F811
    code, out, _ = run("reproduce", "--list")
    assert code == 0 and "identifiability" in out and "Phuong 2021" in out
    assert "not timed" in out and " ? " not in out and "[FILE]" in run("reproduce", "--help")[1]


def test_reproduce_gives_its_result_as_json(run, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    command = ("reproduce", "harmonic-distortion", "--out", tmp_path / "runs")
    code, out, err = run(*command, "--json")
    saved = json.loads((tmp_path / "runs" / "harmonic-distortion" / "results.json").read_text())
    assert code == 0 and json.loads(out) == saved and saved["verdict"] and "wrote" in err
    code, out, _ = run(*command, "--resume", "--json", "result.json")
    assert code == 0 and saved["verdict"] in out
    assert json.loads((tmp_path / "result.json").read_text()) == saved


@pytest.mark.parametrize("command", ["diff", "shrink", "canonical", "reproduce"])
def test_help_shows_an_example(run, command):  # noqa: F811
    code, out, _ = run(command, "--help")
    assert code == 0 and f"pindown {command}" in out and "Example" in out
