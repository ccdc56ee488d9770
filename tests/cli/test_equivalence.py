"""diff, shrink, canonical and reproduce as a user types them."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from pindown import ReluNetwork, load
from pindown.equivalence.weight_symmetry import apply, random_symmetry
from tests.cli.test_main import run  # noqa: F401
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
    net = load(files / "a.onnx")
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

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(reduced_pairs, "match", interrupt)  # after the search for a witness
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
    assert code == 0 and small.size < large.size and "ReLUs" in out and "wrote" in err
    X = np.random.default_rng(0).normal(size=(100, 3))
    np.testing.assert_allclose(small(X), large(X), atol=1e-9)
    code, out, _ = run("shrink", files / "large.onnx", "-o", files / "s.onnx", "--json")
    content = json.loads(out)
    assert content["after"]["relus"] == small.size and content["steps"]


def test_canonical_files_of_symmetric_copies_agree(run, files):  # noqa: F811
    for name in ("a", "copy"):
        code, out, _ = run("canonical", files / f"{name}.onnx", "-o", files / f"{name}.safetensors")
        assert code == 0 and "gauge unit" in out
    code, out, _ = run("canonical", files / "a.onnx", "-o", files / "c.onnx", "--json")
    content = json.loads(out)
    assert code == 0 and content["fingerprint"] == load(files / "c.onnx").fingerprint
    assert content["gauge"] == "unit" and content["near_ties"] == []
    a, b = (load(files / f"{name}.safetensors") for name in ("a", "copy"))
    for first, second in zip(a.layers, b.layers, strict=True):
        np.testing.assert_allclose(first.weight, second.weight, rtol=1e-9, atol=1e-12)


def test_reproduce_lists_what_there_is(run):  # noqa: F811
    code, out, _ = run("reproduce", "--list")
    assert code == 0 and "identifiability" in out and "Phuong 2021" in out
    assert " ? " not in out and "[FILE]" in run("reproduce", "--help")[1]


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
