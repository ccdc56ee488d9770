"""diff with data from the command line: what it says, its documents, and the codes it ends with."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import pindown as pn
from pindown import ReluNetwork
from pindown.report import json_schema
from tests.cli.test_main import run  # noqa: F401 - a fixture
from tests.test_audit_json import problems


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Two models whose classes differ between 0 and 0.5, two with one output, and some rows."""
    for name, biases in (("old", [0, 0]), ("new", [-0.5, 0.5])):
        ReluNetwork.from_layers([([[1.0], [-1.0]], biases)]).save(tmp_path / f"{name}.onnx")
        ReluNetwork.from_layers([([[1.0]], biases[:1])]).save(tmp_path / f"{name}1.onnx")
    np.savez(tmp_path / "safe.npz", X=np.array([[-2.0], [-1.0], [2.0]]))
    np.savez(tmp_path / "near.npz", X=np.array([[-2.0], [-0.1]]))
    np.savez(tmp_path / "flip.npz", X=np.array([[-2.0], [0.25]]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--data", "safe.npz"), 0),
        (("--data", "flip.npz"), 1),
        (("--data", "flip.npz", "--labels", "--radius", "0.1"), 1),
        (("--data", "near.npz", "--labels", "--radius", "0.2"), 0),  # refuted nearby, no row flips
        (("--data", "near.npz", "--radius", "0.2", "--fail-on", "unproved"), 1),
        (("--data", "near.npz", "--radius", "0.05", "--fail-on", "unproved"), 0),
        (("--data", "safe.npz", "--radius", "0.1", "--fail-on", "unproved", "--budget", "0"), 2),
        (("--data", "safe.npz", "--fail-on", "gap"), 1),
        (("--data", "safe.npz", "--fail-on", "gap", "--tol", "0.6"), 0),
        (("--data", "safe.npz", "--fail-on", "gap", "--rtol", "0.5"), 0),
        (("--data", "safe.npz", "--fail-on", "flips", "--fail-on", "gap"), 1),
    ],
)
def test_the_exit_code_follows_the_condition(run, files, options, code):  # noqa: F811
    assert run("diff", "old.onnx", "new.onnx", "--budget", "5", *options)[0] == code


@pytest.mark.parametrize(("data", "word"), [("flip.npz", "flips"), ("safe.npz", "no flips")])
def test_json_begins_with_what_the_terminal_says(run, files, data, word):  # noqa: F811
    # The option may stand before the files, too.
    _, out, _ = run(
        "diff", "--labels", "old.onnx", "new.onnx", "--data", data, "--budget", "5", "--json"
    )
    assert json.loads(out)["rows"]["verdict"] == word
    _, out, _ = run("diff", "old.onnx", "new.onnx", "--data", data, "--budget", "5", "--json")
    assert json.loads(out)["rows"]["same_label"] is None
    assert pn.diff("old.onnx", "new.onnx", data=data, budget=5).rows.verdict == word


def test_without_classes_the_gap_decides(run, files):  # noqa: F811
    code, out, _ = run("diff", "old1.onnx", "new1.onnx", "--data", "safe.npz", "--budget", "2")
    assert code == 1 and "flip" not in out.split("on all inputs")[0].replace("flipped", "")
    options = ("--data", "safe.npz", "--tol", "0.6", "--budget", "2")
    assert run("diff", "old1.onnx", "new1.onnx", *options)[0] == 0


def test_the_answer_begins_with_the_data_and_its_documents_agree(run, files):  # noqa: F811
    code, out, err = run(
        *("diff", "old.onnx", "new.onnx", "--data", "flip.npz", "--radius", "0.1", "--labels"),
        *("--html", "d.html", "--json", "d.json", "--junit", "d.xml", "--budget", "5"),
    )
    assert code == 1 and "wrote d.xml" in err
    assert out.startswith("FLIPS  1 of 2 rows flipped")
    order = [out.index(words) for words in ("on the rows", "new rows", "around rows", "on all inputs")]
    assert order == sorted(order) and "row 1 (1 to 0" not in out and "row 1 (0 to 1, gap 0.5)" in out
    assert "(probability)" in out and "independent" in out
    content = json.loads((files / "d.json").read_text())
    schema = json_schema("diff")
    assert list(problems(content, schema, schema)) == []
    rows = content["rows"]
    assert rows["flips"] == [1] and rows["same_label"] == ["proved", "refuted"]
    assert rows["witnesses"][0]["row"] == 1 and rows["gap_quantile"] is None
    page = (files / "d.html").read_text()
    assert page.index("On the data") < page.index("For all inputs") and "Row 1 keeps no class" in page
    suite = ElementTree.parse(files / "d.xml").getroot()
    assert suite.get("tests") == suite.get("failures") == "1"
    assert suite.find("testcase/failure").text == "1 of 2 rows: 1"


def test_every_kind_of_json_follows_the_schema(run, files):  # noqa: F811
    schema = json_schema("diff")
    for options in ((), ("--labels", "0.1", "--box=-1,1"), ("--data", "safe.npz")):
        _, out, _ = run("diff", "old.onnx", "new.onnx", *options, "--budget", "2", "--json")
        content = json.loads(out)
        assert list(problems(content, schema, schema)) == []
        for key in ("rows", "allowed", "history"):
            assert list(problems({k: v for k, v in content.items() if k != key}, schema, schema))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--radius", "0.1"), "--radius is about rows"),
        (("--fail-on", "flips"), "--fail-on is about rows"),
        (("--junit", "d.xml"), "--junit is about rows"),
        (("--data", "safe.npz", "--fail-on", "everything"), "flips, gap, unproved; got 'everything'"),
        (("--data", "safe.npz", "--junit", "d.txt"), ".xml"),
        (("--data", "none.npz"), "none.npz"),
        (("--data", "wide.npz"), "shape (n, 1)"),
        (("--data", "nan.npz"), "NaN"),
        (("--data", "safe.npz", "--box", "0,1"), "row 0 does not"),
        (("--data", "safe.npz", "--radius", "-1"), "radius"),
        (("--data", "safe.npz", "--rtol", "nan"), "rtol"),
    ],
)
def test_bad_input_is_one_line(run, files, options, words):  # noqa: F811
    np.savez(files / "wide.npz", X=np.ones((2, 3)))
    np.savez(files / "nan.npz", X=np.full((2, 1), np.nan))
    code, out, err = run("diff", "old.onnx", "new.onnx", *options)
    assert code == 3 and not out and words in err and len(err.splitlines()) == 1
