"""verify as a user types it: the competition's word, exit codes, files, one line for bad input."""

import csv
import json
import re

import numpy as np
import pytest

from pindown import ReluNetwork, load
from pindown.report import json_schema
from pindown.verification import falsification, portfolio, read_vnnlib
from tests.cli.test_main import run  # noqa: F401
from tests.equivalence.shrinking.redundancy import random_net
from tests.test_audit_json import problems

BOX = "(declare-const X_0 Real) (declare-const X_1 Real) (declare-const Y_0 Real)\n" + "".join(
    f"(assert (>= X_{i} -3)) (assert (<= X_{i} 1.5))\n" for i in range(2)
)
TWO = """(vnnlib-version <2.0>)
(declare-network f (declare-input X_f real [2]) (declare-output Y_f real [1]))
(declare-network g (isomorphic-to f) (declare-input X_g real [2]) (declare-output Y_g real [1]))
(assert (== X_f[0] X_g[0])) (assert (== X_f[1] X_g[1]))
(assert (<= -1 X_f[0] 1)) (assert (<= -1 X_f[1] 1))
(assert (>= Y_f[0] (+ Y_g[0] {})))
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """|x_1| + |x_2| on [-3, 1.5]^2, where it is at most 6; a copy that is 0.25 lower; properties."""
    layers = [(np.vstack([np.eye(2), -np.eye(2)]), np.zeros(4)), (np.ones((1, 4)), [0.0])]
    ReluNetwork.from_layers(layers).save(tmp_path / "norm.onnx")
    ReluNetwork.from_layers([layers[0], (np.ones((1, 4)), [-0.25])]).save(tmp_path / "low.onnx")
    random_net(np.random.default_rng(0), [3, 5, 2]).save(tmp_path / "other.onnx")
    texts = {
        "above6.vnnlib": f"{BOX}(assert (>= Y_0 6.001))",
        "above5.vnnlib": f"{BOX}(assert (>= Y_0 5.5))",
        "apart.vnnlib": TWO.format(0.5),
        "near.vnnlib": TWO.format(0.2),
        "syntax.vnnlib": f"{BOX}\n(assert (>= Y_0 6)",
        "open.vnnlib": "(declare-const X_0 Real) (declare-const Y_0 Real) (assert (<= X_0 1))",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("prop", "options", "code", "word", "line"),
    [
        ("above6.vnnlib", (), 0, "unsat", "holds       norm.onnx: for all 2 inputs"),
        ("above5.vnnlib", (), 1, "sat", "violated    norm.onnx: for all 2 inputs"),
        ("above6.vnnlib", ("--budget", "0"), 2, "unknown", "undecided   norm.onnx: for all 2 inputs"),
    ],
)
def test_the_first_line_and_the_exit_code_are_the_answer(run, place, prop, options, code, word, line):  # noqa: F811
    got, out, err = run("verify", "norm.onnx", prop, "--jobs", "1", *options)
    lines = out.splitlines()
    assert got == code and lines[0] == word and lines[1].startswith(line) and not err
    assert re.match(r"method      .*, (no|[\d,]+) parts?, [\d.]+ s$", lines[2])
    assert ("1 of 1 unsafe set" in out) == (code == 2)
    if code == 1:
        found = re.search(r"margin (\S+) in float64, (\S+) in float32 \(\w+\); proved by \w+", out)
        assert float(found[1]) <= 0.0 and float(found[1]) == pytest.approx(float(found[2]), abs=1e-4)


def test_names_of_properties_are_taken(run, place):  # noqa: F811
    """A constant network: COC has the score 0, the others 1, so that property 3 is violated."""
    ReluNetwork.from_layers([(np.zeros((5, 5)), [0, 1, 1, 1, 1])]).save("advice.onnx")
    code, out, _ = run("verify", "advice.onnx", "acas-xu-3")
    assert code == 1 and "COC has not the smallest score (ACAS Xu 3)" in out
    assert run("verify", "advice.onnx", "ACASXU_4")[0] == 1
    assert run("verify", "advice.onnx", "acas-xu-2")[0] == 0
    code, out, err = run("verify", "advice.onnx", "acas-xu-11")
    assert code == 3 and "acas-xu-1 to acas-xu-10" in err and err.count("\n") == 1


@pytest.mark.parametrize(("prop", "code"), [("apart.vnnlib", 0), ("near.vnnlib", 1)])
def test_two_networks(run, place, prop, code):  # noqa: F811
    got, out, _ = run("verify", "norm.onnx", "low.onnx", prop, "--jobs", "1", "--witness", "w.json")
    assert got == code and "norm.onnx and low.onnx" in out
    assert (place / "w.json").exists() == (code == 1)
    if code:
        found = json.loads((place / "w.json").read_text())
        assert found["x"][:2] == found["x"][2:] and found["y"][0] - found["y"][1] == pytest.approx(0.25)


def read_text(path):
    """A counterexample as the competition's own checker reads it: names and numbers in parentheses."""
    text = path.read_text()
    assert text.startswith("((X_0 ") and text.endswith("))\n")
    return {name: float(value) for name, value in re.findall(r"\((\w+) ([^()\s]+)\)", text)}


def read_table(path):
    with path.open() as file:
        return {row["name"]: float(row["value"]) for row in csv.DictReader(file)}


def read_arrays(path):
    given = np.load(path) if path.suffix == ".npz" else json.loads(path.read_text())
    return {f"{n.upper()}_{i}": float(v) for n in "xy" for i, v in enumerate(given[n])}


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("w.txt", read_text),
        ("w.counterexample", read_text),
        ("w.csv", read_table),
        ("w.npz", read_arrays),
        ("w.json", read_arrays),
    ],
)
def test_a_witness_is_written_with_every_digit(run, place, name, read):  # noqa: F811
    code, _, err = run("verify", "norm.onnx", "above5.vnnlib", "--witness", name)
    found = read(place / name)
    assert code == 1 and f"wrote {name}" in err and list(found) == ["X_0", "X_1", "Y_0"]
    x = np.array([found["X_0"], found["X_1"]])
    y = load("norm.onnx")(x)
    assert y[0] == found["Y_0"] and read_vnnlib("above5.vnnlib").violated_by(x, [y])


def test_no_witness_no_file(run, place):  # noqa: F811
    code, _, err = run("verify", "norm.onnx", "above6.vnnlib", "--witness", "w.txt")
    assert code == 0 and not (place / "w.txt").exists() and "w.txt was not written" in err


def test_the_witness_of_npy_is_the_input(run, place):  # noqa: F811
    assert run("verify", "norm.onnx", "above5.vnnlib", "--witness", "w.npy")[0] == 1
    assert np.abs(np.load("w.npy")).sum() >= 5.5


@pytest.mark.parametrize("prop", ["above5.vnnlib", "above6.vnnlib"])
def test_json_alone_goes_to_stdout_and_follows_its_schema(run, place, prop):  # noqa: F811
    code, out, err = run("verify", "norm.onnx", prop, "--json", "--budget", "30")
    content, schema = json.loads(out), json_schema("verify")
    assert list(problems(content, schema, schema)) == [] and not err
    assert code == {"sat": 1, "unsat": 0}[content["word"]] and content["budget"] == 30
    assert content["names"] == ["norm.onnx"] and content["property"]["name"] == prop
    if content["witness"]:
        assert np.abs(content["witness"]["inputs"][0]).sum() == content["witness"]["outputs"][0][0]


def test_documents_are_written(run, place):  # noqa: F811
    code, out, err = run(
        *("verify", "norm.onnx", "above5.vnnlib", "--html", "v.html", "--json", "v.json"),
        *("--input", "input", "--output", "output", "--seed", "3"),
    )
    assert code == 1 and out.startswith("sat\n") and err.count("wrote") == 2
    assert json.loads((place / "v.json").read_text())["verdict"] == "violated"
    assert ">Violated</h1>" in (place / "v.html").read_text()


BAD = [
    (("norm.onnx",), "one or two models and then a property; got 1 file"),
    (("norm.onnx", "low.onnx", "other.onnx", "near.vnnlib"), "got 4 files"),
    (("above5.vnnlib", "norm.onnx"), "the property comes last"),
    (("norm.onnx", "missing.vnnlib"), "missing.vnnlib: there is no such file"),
    (("norm.onnx", "syntax.vnnlib"), "line 5, column 1: this parenthesis is never closed"),
    (("norm.onnx", "open.vnnlib"), "X_0 has no lower bound"),
    (("other.onnx", "above5.vnnlib"), "2 inputs and 1 output; the model has 3 inputs and 2 outputs"),
    (("norm.onnx", "near.vnnlib"), "the property is about 2 models; got 1"),
    (("norm.onnx", "low.onnx", "above5.vnnlib"), "the property is about 1 model; got 2"),
    (("missing.onnx", "above5.vnnlib"), "missing.onnx"),
    (("above6.vnnlib", "above5.vnnlib"), "above6.vnnlib"),
    (("norm.onnx", "above5.vnnlib", "--budget", "-1"), "budget"),
    (("norm.onnx", "above5.vnnlib", "--jobs", "0"), "--jobs"),
    (("norm.onnx", "above5.vnnlib", "--witness", "no/such/w.txt"), "no such folder"),
    (("norm.onnx", "above5.vnnlib", "--html", "norm.onnx"), ".html"),
    (("norm.onnx", "above5.vnnlib", "--output", "nothing"), "nothing"),
    (("norm.onnx", "above5.vnnlib", "--input", "a", "--input", "b"), "once"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD)
def test_bad_input_is_one_line(run, place, arguments, words):  # noqa: F811
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    code, out, err = run("verify", *arguments)
    assert code == 3 and words in err and err.count("\n") == 1 and not out
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


def test_ctrl_c_leaves_what_was_proved(run, place, monkeypatch):  # noqa: F811
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(portfolio.BoxSplitting, "round", interrupt)
    code, out, err = run("verify", "norm.onnx", "above6.vnnlib", "--json", "v.json")
    assert code == 130 and out.startswith("unknown\n") and "interrupted: this is what was proved" in out
    assert "pindown: interrupted." in err
    content = json.loads((place / "v.json").read_text())
    assert content["interrupted"] and content["verdict"] == "undecided" and content["open_sets"] == 1


def test_an_answer_that_is_known_survives_ctrl_c(run, place, monkeypatch):  # noqa: F811
    """The witness is found before the first box is cut, and Ctrl-C comes while it is told."""

    found = []
    note = portfolio.Run._note

    def noted(self, *given):
        note(self, *given)
        found.append(self.example)
        raise KeyboardInterrupt

    monkeypatch.setattr(portfolio.Run, "_note", noted)
    code, out, _ = run("verify", "norm.onnx", "above5.vnnlib")
    assert code == 1 and out.startswith("sat\n") and found[0].proved and "interrupted" in out


def test_an_error_of_our_own_has_its_own_code(run, place, monkeypatch):  # noqa: F811
    def fail(*_, **__):
        raise RuntimeError("two proofs contradict each other")

    monkeypatch.setattr(portfolio, "Falsifier", fail)
    code, out, err = run("verify", "norm.onnx", "above5.vnnlib")
    assert code == 4 and not out and "please report it" in err and err.count("\n") == 1


def test_what_only_float64_sees_is_told_and_decides_nothing(run, place, monkeypatch):  # noqa: F811
    """Without a proof a witness is none: the verdict stays open, and its margins are shown."""
    monkeypatch.setattr(falsification, "proved_violation", lambda *_, **__: "")
    options = ("--budget", "0.3", "--html", "v.html", "--witness", "w.txt")
    code, out, _ = run("verify", "norm.onnx", "above5.vnnlib", *options)
    assert code == 2 and out.startswith("unknown\n") and "not proved: rounding may decide it" in out
    assert "that is no proof" in (place / "v.html").read_text() and not (place / "w.txt").exists()


def test_help_shows_an_example(run):  # noqa: F811
    out = run("verify", "--help")[1]
    assert "pindown verify model.onnx property.vnnlib" in " ".join(out.split())
    assert "verify" in run("--help")[1]


def test_equal_networks_may_be_given_once_or_each(run, place):  # noqa: F811
    """As competitions list them; files that differ are refused."""
    text = TWO.replace("isomorphic-to", "equal-to").replace("(assert (== X_f[0] X_g[0])) ", "")
    (place / "grows.vnnlib").write_text(text.format(0.5) + "(assert (<= X_f[0] X_g[0] 1))")
    (place / "copy.onnx").write_bytes((place / "norm.onnx").read_bytes())
    for second in ((), ("norm.onnx",), ("copy.onnx",)):
        got, out, err = run("verify", "norm.onnx", *second, "grows.vnnlib", "--jobs", "1")
        assert (got, out.splitlines()[0], err) == (1, "sat", "")
    for second, words in (
        ("low.onnx", "equal; norm.onnx and low.onnx differ"),
        ("no.onnx", "no.onnx: "),
    ):
        got, out, err = run("verify", "norm.onnx", second, "grows.vnnlib")
        assert (got, out, len(err.splitlines())) == (3, "", 1) and words in err
