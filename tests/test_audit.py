"""The audit as a whole: it answers, keeps to its time, and refuses what does not fit."""

import itertools
import json
import math
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown._audit import audit
from pindown.evidence import Assumption
from pindown.findings import CATALOGUE
from pindown.findings.questions import QUESTIONS

DATA = Path(__file__).parent / "data"
PATIENT = 300.0  # seconds: enough for everything, compilers on their first run included


def random_net(widths, seed=0):
    rng = np.random.default_rng(seed)
    pairs = itertools.pairwise(widths)
    return ReluNetwork.from_layers(
        [(rng.standard_normal((m, n)) / np.sqrt(n), 0.1 * rng.standard_normal(m)) for n, m in pairs]
    )


@pytest.fixture(scope="module")
def classified():
    net = random_net((6, 12, 8, 3))
    X = np.random.default_rng(1).standard_normal((300, 6))
    return net, X, (net(X) + np.random.default_rng(2).standard_normal((300, 3))).argmax(axis=1)


@pytest.fixture(scope="module")
def whole(classified):
    """Everything there is to say about it."""
    return audit(*classified, budget=PATIENT)


def test_all_questions_are_answered(whole):
    result = whole
    assert [f.code for f in result.findings] == [q.code for q in CATALOGUE]
    assert all(f.reading and f.scale and f.number for f in result.findings if f.answered)
    no_images_no_sets_no_start = {"FRQ-01", "FRQ-02", "SYM-02", "SYM-03", "BIAS-06"}
    assert {f.code for f in result.findings if not f.answered} == no_images_no_sets_no_start
    assert "6 inputs to 3 outputs through 20 ReLUs" in result.description
    assert "ARC-01" in str(result)
    assert f"{len(CATALOGUE) - 5} of {len(CATALOGUE)} questions" in repr(result)
    assert "ACC-01" in result._repr_html_()


def test_same_seed_same_answer(classified, whole):
    a, b = whole, audit(*classified, budget=PATIENT)
    assert a.findings == b.findings and a.to_html() == b.to_html() and a.to_json() == b.to_json()


def test_muting_one_question_does_not_change_another(classified, whole):
    for code in ("LIP-01", "GEO-03", "GEO-05"):
        part = audit(*classified, only=[code], budget=PATIENT)
        assert [f.code for f in part.findings] == [code] and part[code] == whole[code]
    muted = audit(*classified, ignore=["LIP-01", "ARC-01", "BND", "ROB", "GEO"])
    assert [f.code for f in muted.findings] == [
        f.code for f in whole.findings if f.code[:3] not in ("LIP", "ARC", "BND", "ROB", "GEO")
    ]
    with pytest.raises(KeyError, match="no finding 'ARC-01'"):
        muted["ARC-01"]


def test_without_data_some_questions_do_not_apply():
    result = audit(random_net((4, 5, 2)))
    reasons = {f.code: f.verdict for f in result.findings if f.status == "not applicable"}
    assert reasons["UNIT-01"] == "not applicable, because no data were given"
    of_labels = {f"BND-0{i}" for i in (1, 2, 3)} | {f"BIAS-0{i}" for i in (1, 2, 3, 5)}
    of_labels |= {"ACC-01", "ACC-02", "ACC-03", "CAL-01", "DAT-02"}
    of_data = {"UNIT-01", "GEO-02", "GEO-04", "ROB-01", "ROB-02", "ROB-03", "SYM-03", "DAT-01"}
    of_data |= {"DAT-03", "OUT-03", "SEN-01", "SEN-02"}
    assert set(reasons) == of_labels | of_data | {"BIAS-06", "FRQ-01", "FRQ-02", "SYM-02"}
    assert {reasons[code] for code in of_labels} == {"not applicable, because no labels were given"}
    assert "no images" in reasons["FRQ-01"] and "before training" in reasons["BIAS-06"]
    affine = audit(random_net((4, 2)), np.zeros((2, 4)))
    assert "it has no ReLU" in affine["UNIT-01"].verdict and affine["LIP-01"].answered


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X": np.zeros((0, 6))}, "X is empty; give at least one row"),
        ({"X": np.zeros((2, 5))}, r"X: the network takes inputs of shape \(n, 6\)"),
        (
            {"X": np.full((2, 6), np.nan)},
            "inputs must be finite; 2 of 2 rows hold NaN or infinity, row 0",
        ),
        ({"X": [["a"] * 6]}, "X: inputs must be real numbers"),
        ({"y": [0, 1]}, "y was given without X"),
        ({"X": np.zeros((2, 6)), "y": [0]}, "got 1 rows for 2 inputs"),
        ({"X": np.zeros((2, 6)), "y": [0, 3]}, "classes 0 to 2"),
        ({"X": np.zeros((2, 6)), "y": [0, math.nan]}, "NaN"),
        ({"X": np.zeros((2, 6)), "test": (np.zeros((2, 6)), [0, 9])}, "the test y must hold classes"),
        ({"test": (np.zeros((1, 2)), None)}, "the test X: the network takes"),
        ({"box": (0, [1, 2])}, "equal length"),
        ({"box": ([1] * 6, [0] * 6)}, "lower <= upper"),
        (
            {"only": ["ARC-99"]},
            "only names unknown findings ARC-99; known are ACC-01 to 03, ARC-01, BIAS",
        ),
        ({"only": [3]}, "only takes codes of findings, as text; got 3"),
        ({"ignore": ["GE"]}, "ignore names unknown findings GE; known are .*or a family such as GEO"),
        (
            {"before": random_net((6, 4, 2))},
            "as many inputs and outputs as the network; got 6 and 2 for",
        ),
        ({"ignore": ["x"]}, "ignore names unknown findings x"),
        ({"budget": 0}, "budget must be a number above 0; got 0"),
        ({"budget": math.nan}, "budget must be a number above 0; got nan"),
        ({"budget": "soon"}, "got 'soon'"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(given, message):
    with pytest.raises(ValueError, match=message) as caught:
        audit(random_net((6, 4, 3)), **given)
    assert len(str(caught.value)) < 300 and "\n" not in str(caught.value)


def test_only_networks_are_audited():
    with pytest.raises(TypeError, match=r"audit takes a Model, a ReluNetwork, .* got int"):
        audit(5)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.zeros((1, 6)), [1]),  # one row
        (np.random.default_rng(0).random((20, 6)), [2] * 20),  # one class
        (np.ones((20, 6)), [0, 1] * 10),  # constant data: a flat box
        (np.random.default_rng(0).random((20, 6)) * 1e-300, [0] * 20),
        (np.random.default_rng(0).random((20, 6)) * 1e150, [0] * 20),
        (np.zeros(6), None),  # one input without a batch axis
    ],
)
def test_unusual_data_still_get_answers(X, y):
    result = audit(random_net((6, 8, 3)), X, y)
    assert not [f.verdict for f in result.findings if f.status == "error"]
    json.loads(result.to_json())
    result.to_html()


def test_unusual_networks_still_get_answers():
    constant = ReluNetwork.from_layers([(np.zeros((3, 2)), [1, 2, 3]), (np.zeros((2, 3)), [5, 5])])
    huge = ReluNetwork.from_layers([(np.full((2, 2), 1e200), [0, 0]), (np.full((2, 2), 1e150), [0, 0])])
    one = ReluNetwork.from_layers([([[1.0]], [0])])
    for net in (constant, huge, one):
        d = net.in_features
        result = audit(net, np.eye(4, d) + 1, [0, 1, 0, 1])
        assert not [f.verdict for f in result.findings if f.status == "error"]
        json.loads(result.to_json())
        result.to_html()
    assert "constant" in audit(constant)["LIP-01"].reading
    assert audit(huge, np.ones((1, 2)))["UNIT-01"].verdict.endswith("overflows float64 on this data")


def test_a_real_model_raises_no_error_finding():
    from pindown.io import load

    net = load(DATA / "tll_2d_n16_0.onnx.gz")
    result = audit(net, np.random.default_rng(0).uniform(-2, 2, (500, 2)))
    assert not [f.verdict for f in result.findings if f.status == "error"]
    assert result["SYM-01"].number.value > 0


def test_the_budget_is_kept_by_a_large_network():
    net = random_net((784, 2048, 2048, 10))
    X = np.random.default_rng(0).random((60_000, 784), dtype=np.float32)
    y = np.zeros(60_000, dtype=int)
    start = time.thread_time()  # a clock on the wall would measure who else uses the machine
    result = audit(net, X, y, budget=2.0)
    assert time.thread_time() - start <= 1.1 * 2.0 + 1.0
    assert not [f.verdict for f in result.findings if f.status == "error"]
    if result["UNIT-01"].answered:
        assert "of 60,000 rows (time ran out)" in result["UNIT-01"].reading
        assert result["UNIT-01"].hypotheses[0].status == "violated"


def test_questions_that_do_not_fit_are_said_to_be_not_run(classified):
    result = audit(*classified, budget=1e-9)
    asked = {f.verdict for f in result.findings if f.status != "not applicable"}
    assert asked == {"not run, because the budget of 1e-09 s was used up"}
    assert not any(f.answered for f in result.findings)
    assert result.to_html() and "because the budget of 1e-09 s was used up" in result.description


def test_ctrl_c_keeps_what_was_finished(classified):
    def press(title, done, total):
        if done == 3:
            raise KeyboardInterrupt

    result = audit(*classified, progress=press)
    left = len(CATALOGUE) - 3
    assert result.interrupted and [f.answered for f in result.findings] == [True] * 3 + [False] * left
    assert result.findings[-1].verdict == "not run, because the audit was interrupted"
    assert "interrupted" in result.to_html() and json.loads(result.to_json())["interrupted"]


def test_a_failing_question_is_named_and_the_others_answer(classified, monkeypatch):
    def fail(subject):
        raise RuntimeError("<boom>")

    broken = replace(QUESTIONS["UNIT-02"], ask=fail)
    monkeypatch.setattr(
        sys.modules["pindown._audit"], "CATALOGUE", (QUESTIONS["ARC-01"], broken, QUESTIONS["ACC-01"])
    )
    result = audit(*classified)
    assert [f.status for f in result.findings] == ["answered", "error", "answered"]
    assert result["UNIT-02"].verdict == "failed with RuntimeError: <boom>"
    assert "&lt;boom&gt;" in result.to_html()


def test_progress_counts_up(classified):
    calls = []
    audit(*classified, progress=lambda title, done, total: calls.append((done, total)))
    total = len(CATALOGUE)
    assert calls == [(i, total) for i in range(total + 1)]


def test_findings_are_handed_out_as_they_come(classified):
    came = []
    result = audit(*classified, only=["ARC", "UNIT", "SYM"], found=came.append)
    assert tuple(came) == result.findings and len(came) == 6


def test_codes_and_families_in_any_case(classified):
    net = classified[0]
    assert [f.code for f in audit(net, only=["arc", " geo-03 "]).findings] == ["ARC-01", "GEO-03"]
    left = audit(net, only="GEO", ignore=["geo-05", "GEO-01"])
    assert [f.code for f in left.findings] == ["GEO-02", "GEO-03", "GEO-04"]


def test_without_data_or_a_box_the_box_is_named_and_assumed():
    result = audit(random_net((4, 6, 2)), only=["UNIT-02", "GEO", "OUT", "EQV", "DEP", "INP"])
    assert result.box_name == "the reference box [-1, 1]^4" in result.given
    for finding in result.findings:
        if finding.answered and finding.code != "EQV-01":
            words = "inputs in [-1, 1]^4, because neither data nor a box was given"
            assert Assumption(words, "assumed") in finding.hypotheses
    assert "for every input" in result["EQV-01"].hypotheses[0].text  # worth more than any box
    given = audit(random_net((4, 6, 2)), box=(-1, 1), only=["UNIT-02"])
    assert given.box_name == "the given box [-1, 1]^4" and len(given["UNIT-02"].hypotheses) == 2


@pytest.mark.parametrize(
    ("shape", "inputs"), [((3,), "[-1, 1]^3"), ((2, 5, 5), "[0, 1]^50"), ((784, 1), "[0, 1]^784")]
)
def test_pixels_lie_between_0_and_1(shape, inputs):
    d = math.prod(shape)
    net = ReluNetwork.from_layers([(np.ones((1, d)), [0])], input_shape=shape)
    assert audit(net, only="ARC").box_name == f"the reference box {inputs}"


@pytest.mark.parametrize("seed", [-1, 0.5, "a"])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(ValueError, match="seed must be an integer of at least 0; got"):
        audit(random_net((2, 2)), seed=seed)


def test_no_question_left_is_refused():
    for codes in ({"only": []}, {"only": ["ARC-01"], "ignore": ["ARC-01"]}):
        with pytest.raises(ValueError, match="leave no question"):
            audit(random_net((2, 2)), **codes)


def test_a_file_is_called_by_its_name(tmp_path):
    net = ReluNetwork.from_layers([(np.eye(2), [0, 0])])
    net.save(tmp_path / "mine.onnx")
    for given in (tmp_path / "mine.onnx", str(tmp_path / "mine.onnx")):
        assert audit(given, only=["ARC-01"]).name == "mine.onnx"
        assert audit(given, only=["ARC-01"], name="yours").name == "yours"
    assert audit(net, only=["ARC-01"]).name == "network"


def test_names_and_notes_from_files_cannot_command_a_terminal(tmp_path):
    net = ReluNetwork.from_layers([(np.eye(2), [0, 0])], notes=("node \x1b[2J",))
    result = audit(net, name="a\x1b[31m\udcff.onnx")
    result.to_json(tmp_path / "a.json")  # a lone surrogate has no UTF-8
    result.to_html(tmp_path / "a.html")
    assert result.name == "a?[31m?.onnx" and "\x1b" not in str(result)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-308, 1e-200, 1e160, 1e300])
def test_weights_at_the_ends_of_float64_still_make_a_page(scale):
    net = ReluNetwork.from_layers([(scale * np.array([[1.0, 2], [3, 4], [0, 1]]), [0, 0, 0])])
    result = audit(net, np.eye(2), [0, 1])
    assert not [f.verdict for f in result.findings if f.status == "error"]
    assert not re.search(r"\bnan\b", result.to_html())


def test_the_page_of_a_very_deep_network_is_small():
    result = audit(random_net([4] * 1001), np.ones((3, 4)), budget=20)
    page = result.to_html()
    assert len(page.encode()) < 500_000 and "and 800 more; all are in the JSON" in page
    assert len(result["ARC-01"].verdict) < 200


def test_failed_findings_are_told_first_and_the_exit_code_says_so(tmp_path, monkeypatch, capsys):
    """Also those about the checkpoint before, and a distance that failed: all else is written."""
    from pindown import _audit as checkpoints
    from pindown.cli.main import main

    def fail(*_):
        raise RuntimeError("boom")

    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    model, page = tmp_path / "net.onnx", tmp_path / "net.json"
    net.save(model)
    broken = replace(QUESTIONS["UNIT-02"], ask=fail)
    monkeypatch.setattr(sys.modules["pindown._audit"], "CATALOGUE", (QUESTIONS["ARC-01"], broken))
    with pytest.raises(SystemExit) as ended:
        main(["audit", str(model), "--json", str(page)])
    said = capsys.readouterr()
    assert ended.value.code == 4 and "itself, at UNIT-02; all else is answered" in said.err
    assert "1 question failed by an error in pindown itself." in said.out
    found = json.loads(page.read_text())["findings"]
    assert [finding["status"] for finding in found] == ["answered", "error"]

    monkeypatch.setattr(checkpoints, "distance_between", fail)
    compared = audit(net, before=2.0 * net, budget=5)
    assert compared.failed == ("UNIT-02", "UNIT-02", "distance")
    assert compared.comparison is not None and "RuntimeError: boom" in compared.comparison.notes[-1]
    assert audit(net, only="ARC").failed == ()
