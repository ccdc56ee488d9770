"""Two checkpoints of one model: what changed, and by how much."""

import json

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown._audit import audit, compare_audits
from pindown.cli.main import main
from pindown.findings import Quantity
from pindown.findings.comparison import Change, Comparison

ONLY = ["ARC", "UNIT-02", "EQV-01", "ACC-01"]


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    layers = [
        (rng.standard_normal((6, 3)), rng.standard_normal(6)),
        (rng.standard_normal((2, 6)), [0, 0]),
    ]
    net = ReluNetwork.from_layers(layers)
    W, b = np.array(layers[0][0]), np.array(layers[0][1])
    W[0], b[0] = 0.0, 0.0  # one unit pruned
    X = rng.uniform(-1, 1, (60, 3))
    return net, ReluNetwork.from_layers([(W, b), layers[1]]), X, net(X).argmax(axis=1)


def test_what_changed_and_by_how_much(pair):
    old, new, X, y = pair
    result = audit(new, X, y, before=old, only=ONLY, name="new", before_name="old")
    found = result.comparison
    rows = {change.code: change for change in found.changes}
    assert (found.before, found.after, list(rows)) == ("old", "new", [f.code for f in result.findings])
    assert rows["ARC-01"].status == "same" and rows["ARC-01"] not in found.changed
    assert (rows["EQV-01"].status, rows["EQV-01"].difference) == ("changed", -1.0)
    assert rows["EQV-01"].text == "−1 ReLU" and rows["EQV-01"].before_number.value == 6
    drop = rows["ACC-01"].after_number.value - 1.0
    assert rows["ACC-01"].difference == pytest.approx(drop) and drop < 0
    assert found.sentence in result.description and found.sentence.startswith(
        "Since old, 3 of 4 findings"
    )


def test_a_network_is_as_it_was_whatever_the_clock_allows(pair):
    old, new, X, _ = pair
    asked = []
    found = audit(
        new, X, before=new, only="ARC", progress=lambda title, *_: asked.append(title)
    ).comparison
    assert not found.changed and found.distance.verdict == "same"
    assert not any(title.startswith("before: ") for title in asked)  # once is enough for one network
    audit(new, X, before=old, only="ARC", progress=lambda title, *_: asked.append(title))
    assert any(title.startswith("before: ") for title in asked)


def test_an_answer_for_one_network_only_is_no_change():
    def change(status):
        return Change("X-01", "x", "a", "b", None, None, status)

    rows = [change(status) for status in ("same", "changed", "lost", "new", "neither")]
    assert Comparison("old", "new", tuple(rows)).sentence == (
        "Since old, 1 of 2 findings changed; for one of the two only, 2 questions got an answer."
    )
    assert Comparison("old", "new", tuple(rows[:1])).sentence == "Since old, no finding changed."


def test_bounds_have_no_difference_and_noise_is_called_so():
    def change(a, b):
        return Change("X-01", "x", "a", "b", a, b, "changed")

    assert change(Quantity(3, "exact", bound="lower"), Quantity(5, "exact", bound="lower")).text == ""
    a = Quantity(0.50, "estimate", "%", standard_error=0.01)
    near, far = (Quantity(v, "estimate", "%", standard_error=0.01) for v in (0.52, 0.56))
    assert change(a, near).text == "+2 percentage points, within the noise"
    assert change(a, far).text == "+6 percentage points"
    assert change(a, Quantity(float("inf"), "estimate", "%")).difference is None


def test_the_distance_encloses_the_gap(pair):
    old, new, X, y = pair
    found = audit(new, X, y, before=old, only="ARC").comparison.distance
    points = np.random.default_rng(1).uniform(X.min(axis=0), X.max(axis=0), (20_000, 3))
    gap = np.abs(old(points) - new(points)).max()
    assert found.verdict == "different" and found.place == "the bounding box of the data"
    assert found.lower > 0 and gap <= found.upper and found.lower <= found.upper
    assert found.text.startswith("Somewhere on the bounding box of the data their outputs differ by")


def test_an_audit_can_stand_for_the_network_and_a_network_is_its_own_equal(pair):
    old, new, X, y = pair
    first = audit(old, X, y, only=ONLY, name="first")
    assert audit(new, X, y, before=first, only=ONLY).comparison.changes == (
        audit(new, X, y, before=old, only=ONLY).comparison.changes
    )
    same = compare_audits(first, first)
    assert same.changed == () and same.distance.verdict == "same" and same.distance.upper <= 1e-9
    assert "The two networks have the same weights." in same.notes
    other = compare_audits(first, audit(new, only=ONLY))
    assert any("given different things" in note for note in other.notes)
    assert {c.code: c.status for c in other.changes}["ACC-01"] == "lost"


def test_every_report_shows_the_comparison(pair, tmp_path):
    old, new, X, y = pair
    result = audit(new, X, y, before=old, only=ONLY, before_name="<b>old")
    document = json.loads(result.to_json())["comparison"]
    assert document["before"] == "<b>old" and len(document["changes"]) == 4
    assert document["distance"]["lower"] <= document["distance"]["upper"]
    text = result.to_markdown()
    assert "## What changed since \\<b\\>old" in text and "| EQV-01 Lossless size |" in text
    assert "What changed: <b>old" in str(result) and "<b>old" not in result.to_html()
    assert "&lt;b&gt;old" in result.comparison._repr_html_()


def test_what_cannot_be_compared_is_refused(pair):
    old, new, *_ = pair
    with pytest.raises(TypeError, match=r"before takes a Model, a ReluNetwork, .*; got int"):
        audit(new, before=3)
    with pytest.raises(TypeError, match="compare_audits takes two audits; got ReluNetwork"):
        compare_audits(old, audit(new, only="ARC"))
    with pytest.raises(ValueError, match="got 3 and 2 for 2 and 2"):
        audit(ReluNetwork.from_layers([(np.eye(2), [0, 0])]), before=old, only="ARC")
    with pytest.raises(ValueError, match="budget must be a number above 0"):
        compare_audits(audit(old, only="ARC"), audit(new, only="ARC"), budget=0)


def test_ctrl_c_before_the_comparison_keeps_the_findings(pair):
    old, new, X, y = pair

    def press(title, done, total):
        if title.startswith("before: ") and done == 1:
            raise KeyboardInterrupt

    result = audit(new, X, y, before=old, only=ONLY, progress=press)
    assert all(f.answered for f in result.findings)
    statuses = [change.status for change in result.comparison.changes]
    assert statuses == ["same", "new", "new", "new"]
    assert "One of the audits was interrupted." in result.comparison.notes


def test_the_command_compares_files(pair, tmp_path, capsys):
    old, new, *_ = pair
    for folder, net in (("a", old), ("b", new)):
        (tmp_path / folder).mkdir()
        net.save(tmp_path / folder / "m.onnx")
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "audit",
                str(tmp_path / "b/m.onnx"),
                "--before",
                str(tmp_path / "a/m.onnx"),
                "--only",
                "ARC,EQV-01",
            ]
        )
    out = " ".join(capsys.readouterr().out.split())
    assert ended.value.code == 0 and "What changed since" in out and "[EQV-01]" in out
    assert "before:" in out and "after:" in out
