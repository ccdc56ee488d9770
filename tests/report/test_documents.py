"""JSON, Markdown, text and figures say what the findings say, and nothing a file smuggles in."""

import json
import re

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown._audit import audit
from pindown.findings.pictures import Histogram, Mark, Scale, StackedBars
from pindown.report.audit_json import as_dict
from pindown.report.audit_text import plain_text, print_audit
from pindown.report.figures import draw
from pindown.report.terminal import progress_bar

ATTACK = "<script>alert(1)</script> | [x](javascript:1) {{7*7}} </style>"


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    net = ReluNetwork.from_layers(
        [
            (rng.standard_normal((9, 4)), rng.standard_normal(9)),
            (rng.standard_normal((3, 9)), np.zeros(3)),
        ],
        notes=(ATTACK,),
    )
    X = rng.standard_normal((80, 4))
    return audit(net, X, rng.integers(0, 3, 80), name=ATTACK)


def test_json_follows_its_schema(result):
    document = json.loads(result.to_json(), parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert document["schema"] == 2 and document["verdict"] == result.verdict
    assert document["network"]["widths"] == [4, 9, 3] and document["network"]["notes"] == [ATTACK]
    for entry, finding in zip(document["findings"], result.findings, strict=True):
        assert entry["code"] == finding.code and entry["verdict"] == finding.verdict
        assert (entry["number"] is None) == (finding.number is None)
        if finding.number is not None:
            assert entry["number"]["value"] == finding.number.value
            assert entry["number"]["kind"] == finding.number.kind
        assert [h["status"] for h in entry["hypotheses"]] == [h.status for h in finding.hypotheses]
    assert set(as_dict(result)) == set(document)


def test_numbers_that_are_not_finite_become_null():
    huge = ReluNetwork.from_layers([(np.full((2, 2), 1e200), [0, 0]), (np.full((2, 2), 1e150), [0, 0])])
    entry = json.loads(audit(huge, only=["LIP-01"]).to_json())["findings"][0]
    assert entry["number"]["value"] is None and "unbounded" in entry["verdict"]


def test_files_are_written(result, tmp_path):
    for name, write in (
        ("a.html", result.to_html),
        ("a.json", result.to_json),
        ("a.md", result.to_markdown),
    ):
        assert (tmp_path / name).write_text("") == 0
        assert write(tmp_path / name) == (tmp_path / name).read_text(encoding="utf-8")


def test_html_and_markdown_escape_what_comes_from_files(result):
    page = result.to_html()
    assert page.count("<script") == page.count("</script") == 1 and "&lt;script&gt;alert(1)" in page
    assert "{{7*7}}" in page
    assert page.count("</style>") == 1
    assert "<script" not in result.to_markdown().replace("\\<script", "")
    assert "<script" not in result._repr_html_()


def test_text_has_every_finding(result, capsys):
    text = plain_text(result)
    assert all(f.code in text and f.verdict in text for f in result.findings)
    print_audit(result)
    shown = capsys.readouterr().out
    assert all(f.code in shown for f in result.findings)


def test_markdown_has_every_finding_and_whole_tables(result):
    lines = result.to_markdown().splitlines()
    assert all(
        any(line == f"### {f.code} {f.title}" for line in lines) for f in result.findings if f.answered
    )
    assert all(any(f.code in line for line in lines) for f in result.findings)
    tables = [line for line in lines if line.startswith("|")]
    assert tables and all(line.endswith("|") for line in tables)


def test_progress_bar_reports_to_stderr_only(capsys):
    with progress_bar() as report:
        report("a question", 1, 2)
    assert capsys.readouterr().out == ""


PICTURES = [
    Histogram("h", (0.0, 1.0, 2.0), (3, 0), "x & y", "<rows>", (Mark(0.5, "median"),), 1.0),
    Histogram("one", (-0.5, 0.5), (1,), "x", "y"),
    StackedBars("b", ("layer 1", "layer 2"), ("dead", "switching"), ((0, 0), (1, 3)), "units"),
    StackedBars("n", ("layer 1",), ("norm",), ((0.0,),), "norm"),
    StackedBars("deep", tuple(f"layer {i}" for i in range(60)), ("dead",), ((1,),) * 60, "units"),
    Scale("s", (Mark(1.0, "attained"), Mark(1e9, "product")), (1.0, 1e9), "slope"),
    Scale("s", (Mark(1.0, "attained"), Mark(1.0, "product")), (1.0, 1.0), "slope"),
]


@pytest.mark.parametrize("picture", PICTURES)
def test_pictures_are_small_deterministic_and_themed(picture):
    svg = draw(picture, "abc-01")
    assert svg == draw(picture, "abc-01") and len(svg) < 40_000
    assert svg.startswith("<svg") and svg.endswith("</svg>") and "<text" in svg
    assert "var(--" in svg and not re.search(r"#0102\d\d", svg)
    assert all(found.startswith("abc-01-") for found in re.findall(r'\bid="([^"]+)"', svg))
    assert all(found.startswith("abc-01-") for found in re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    assert "<rows>" not in svg
