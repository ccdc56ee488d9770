"""The parts of pages without a browser: the opening, key numbers, tables, planes and links."""

import re
from dataclasses import replace

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown._audit import audit
from pindown.findings import Finding, Quantity, Table
from pindown.findings.pictures import Dot, MapArea, PlaneMap
from pindown.report.audit_page import key_numbers, opening
from pindown.report.figures import draw
from pindown.report.planes import Plane, tick_text, ticks

EVIL = '"><script>alert(1)</script>'


def test_the_opening_is_the_description_and_knows_its_sources(plane_audit):
    passages = opening(plane_audit)
    assert " ".join(words for words, _ in passages) == plane_audit.description
    named = [finding.code for _, finding in passages if finding]
    assert named[0] == "ARC-01" and "ACC-01" in named and len(named) == len(set(named))


def test_sentences_that_call_the_box_that_box_keep_their_source():
    rng = np.random.default_rng(0)
    net = ReluNetwork.from_layers([(rng.standard_normal((6, 2)), np.zeros(6)), (np.ones((1, 6)), [0.0])])
    result = audit(net, box=(np.full(2, -1), np.ones(2)), only=["ARC-01", "EQV-01", "GEO-01", "LIP-01"])
    text = "On the given box it bends."
    findings = [
        replace(f, sentence=text) if f.code in ("EQV-01", "GEO-01") else f for f in result.findings
    ]
    found = replace(result, findings=tuple(findings), box_name="the given box")
    passages = opening(found)
    assert " ".join(words for words, _ in passages) == found.description
    assert {words for words, finding in passages if finding} >= {text, "On that box it bends."}


def test_key_numbers_keep_value_unit_and_kind(plane_audit):
    found = {entry.finding.code: entry for entry in key_numbers(plane_audit)}
    assert found["ARC-01"].value == f"{plane_audit['ARC-01'].number.value:,.0f}"
    assert found["ARC-01"].label == "parameters" and found["ACC-01"].value == "85.0%"
    assert 4 <= len(found) <= 6


def test_long_tables_are_cut_and_say_so_and_the_page_stays_small(plane_audit):
    rows = tuple((i, f"unit {i}", i / 7, None) for i in range(20_000))
    table = Table("Many", ("layer", "name", "share on", "value"), rows)
    long = tuple(replace(f, table=table) if f.answered else f for f in plane_audit.findings)
    page = replace(plane_audit, findings=long).to_html()
    assert "and 19,800 more; all are in the JSON" in page and len(page.encode()) < 500_000
    assert '<td class="text">unit 199</td>' in page and "unit 200" not in page


def test_columns_of_numbers_in_words_are_set_as_numbers(plane_audit):
    table = Table("t", ("name", "share", "many"), (("a", "100%", "1,000"), ("b", "3.5%", "–")))
    finding = Finding("ARC-01", "t", "v", table=table, number=Quantity(1.0, "exact"))
    page = replace(plane_audit, findings=(finding,)).to_html()
    assert '<td class="text">a</td><td>100%</td><td>1,000</td>' in page


def test_documentation_is_linked_once_it_has_an_address(plane_audit, monkeypatch, tmp_path):
    monkeypatch.delenv("PINDOWN_DOCS", raising=False)
    assert "http" not in re.sub(r"http://www\.w3\.org\S*|http-equiv", "", plane_audit.to_html())
    monkeypatch.setenv("PINDOWN_DOCS", "https://example.org/pindown/")
    page = plane_audit.to_html()
    assert 'href="https://example.org/pindown/findings.html#geo-05"' in page
    assert 'href="https://example.org/pindown/kinds.html"' in page
    monkeypatch.setenv("PINDOWN_DOCS", str(tmp_path))
    assert f'href="{tmp_path.as_uri()}/findings.html#geo-05"' in plane_audit.to_html()
    monkeypatch.setenv("PINDOWN_DOCS", "javascript:alert(1)")
    assert "javascript:alert" not in plane_audit.to_html()


def test_what_a_finding_asks_is_explained_on_the_page(plane_audit):
    assert "Layers, units, parameters, multiply-adds per input and memory" in plane_audit.to_html()


def plane_map(**changes):
    areas = (
        MapArea("0", "M0 0l100 0 0 100z", 0, place=(0.2, 0.1)),
        MapArea(EVIL, "M0 0l100 100-100 0z", 1),
    )
    dots = (Dot(0.25, 0.5, EVIL, 0), Dot(0.9, 0.95, "corner", None))
    whole = PlaneMap(
        "c", (0.0, 1.0, 0.0, 1.0), (100, 100), areas, "M0 0l100 100", "", dots, "x", EVIL, "class"
    )
    return replace(whole, **changes)


def test_maps_escape_names_and_put_points_where_they_are():
    drawn = draw(plane_map(), "geo-05")
    assert "<script" not in drawn and drawn == draw(plane_map(), "geo-05")
    assert 'data-u="0.2500" data-v="0.5000"' in drawn and "corner" in drawn
    assert drawn.count('class="area"') == 2 and drawn.count("<li>") == 2
    assert 'class="at flip low"' in drawn  # the name of the point in the corner stays inside
    assert 'id="geo-05-frame"' in drawn and "url(#geo-05-frame)" in drawn


def test_maps_of_values_and_maps_of_pixels_are_drawn():
    shaded = (
        MapArea("-1 to 0", "M0 0l9 0 0 9z", None, -0.5),
        MapArea("0 to 1", "M0 0l9 9-9 0z", None, 0.5),
    )
    drawn = draw(plane_map(areas=shaded, lines="", image="AAAA", legend="output"), "p")
    assert (
        "var(--fill-1)" in drawn and "var(--fill-2)" in drawn and "data:image/png;base64,AAAA" in drawn
    )
    assert 'class="folds"' not in drawn and 'data-tip="output 0 to 1"' in drawn


@pytest.mark.parametrize(
    ("low", "high"), [(-1.2, 4.9), (0.0, 1e-7), (1e6, 1.00001e6), (-0.5, 0.5), (-3e8, 2e8)]
)
def test_ticks_are_round_few_and_inside(low, high):
    found = ticks(low, high)
    assert 3 <= len(found) <= 7 and low <= found[0] and found[-1] <= high
    steps = np.diff(found)
    assert np.allclose(steps, steps[0])
    assert f"{steps[0]:.0e}"[0] in "125"
    assert len({tick_text(v) for v in found}) == len(found)
    assert ticks(low, low) == []


def test_shares_of_a_plane():
    plane = Plane((-1.0, 3.0, 0.0, 10.0), (400.0, 300.0), 0.5, ("x", "y"))
    assert plane.shares(1.0, 2.5) == (0.5, 0.25)
    x, y, width, height = plane.frame
    assert f"translate({x + width / 2:.1f} {y + 0.75 * height:.1f})" in plane.at(1.0, 2.5, "")


def test_a_comparison_has_its_section_with_links_to_the_findings():
    rng = np.random.default_rng(3)
    W, V = rng.standard_normal((6, 2)), rng.standard_normal((1, 6))
    before, after = (ReluNetwork.from_layers([(W, np.ones(6)), (s * V, [0.0])]) for s in (1.0, 2.0))
    box = (np.full(2, -1.0), np.ones(2))
    result = audit(after, box=box, before=before, before_name=EVIL, only=["ARC-01", "LIP-01"], budget=5)
    page = result.to_html()
    assert 'id="changed"' in page and page.count("<script") == 1
    assert '<a href="#LIP-01">Lipschitz constant</a>' in page and 'href="#changed"' in page
    assert "1 finding without a change" in page
