"""The page of a detector in a real browser, and what is drawn on it."""

import json
import re

import numpy as np
import pytest

from pindown.datasets.feature_table import FeatureTable
from pindown.report.detect_result import Detection, anomalies
from pindown.report.detect_scatter import scatter
from pindown.report.detect_text import plain_lines
from tests.report.test_page import CHROMIUM, CONTRAST, browser  # noqa: F401

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found to open the page in")
EVIL = "<script>alert(1)</script>"


def detection(n=500, d=6, *, images=False, purpose="score", seed=0, **changes):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 64)) if images else rng.normal(size=(n, d))
    names = () if images else (EVIL, *(f"column {j}" for j in range(1, d)))
    scores = rng.normal(2, 1, n)
    if n > 3:
        scores[3] = -1e6
        X[3, 0] = 1e9
    table = FeatureTable("rows.csv", X, names, np.arange(2, n + 2), notes=(f"a note {EVIL}",))
    return Detection(
        **{
            "purpose": purpose,
            "model": f"{EVIL}.safetensors",
            "settings": {"preset": "auto", "images": None},
            "table": table,
            "scores": scores,
            "offset": 0.0,
            "quality": scores / 2 + rng.normal(size=n),
            "seconds": 1.5,
            "image_shape": (8, 8) if images else (),
            **changes,
        }
    )


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1400, "light")])
@pytest.mark.parametrize("images", [False, True])
def test_the_page_opens_and_says_what_was_found(browser, tmp_path, width, scheme, images):  # noqa: F811
    answer = detection(images=images)
    path = tmp_path / "d.html"
    answer.to_html(path)
    assert path.stat().st_size < 500_000
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    requests, errors = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(dialog.message))
    page.goto(path.as_uri())
    assert page.locator("#verdict").inner_text() == f"{answer.flagged.sum()} outliers"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CONTRAST)[0] >= 4.5, page.evaluate(CONTRAST)
    assert page.locator("figure svg").count() == 3
    if images:
        assert page.locator("#least img").first.evaluate("node => node.naturalWidth") == 8
    else:
        first = page.locator("#least tbody tr").first.inner_text()
        assert first.startswith("5") and EVIL in first and "1,000,000,000" in first
        assert page.locator("#least tr.outlier").count() == min(12, answer.flagged.sum())
    assert not errors and all(url.startswith(("file:", "data:")) for url in requests)
    page.close()


def test_what_comes_from_a_file_is_escaped():
    page = detection().to_html()
    assert EVIL not in page and "&lt;script&gt;" in page


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_short_files_show_every_row_once(n):
    page = detection(n).to_html()
    lines = [int(v) for v in re.findall(r"<tr(?: class=\"outlier\")?><td>(\d+)</td>", page)]
    assert sorted(lines) == list(range(2, n + 2))


def test_constant_scores_and_qualities_are_drawn():
    answer = detection(50, scores=np.full(50, 3.0), quality=np.full(50, 3.0), offset=3.0)
    page = answer.to_html()
    assert "No outliers" in page and "not defined here" in page


def test_large_files_stay_small_pages():
    assert len(detection(100_000).to_html().encode()) < 500_000


def test_an_interrupted_fit_says_so_everywhere():
    answer = detection(purpose="fit", interrupted=True)
    assert "was interrupted" in answer.to_html() and json.loads(answer.to_json())["interrupted"]
    assert any(line.startswith("interrupted") for line in plain_lines(answer))


def test_the_least_typical_row_is_first_and_its_feature_named():
    answer = detection()
    assert answer.order[0] == 3
    name, value, distance = answer.stands_out(3)[0]
    assert name == EVIL and value == 1e9 and distance > 1e8
    others = np.delete(answer.table.X[:, 1], 3)
    middle = np.median(answer.table.X[:, 1])
    row = int(np.argmax(np.abs(answer.table.X[:, 1] - middle)))
    found = {n: v for n, _, v in answer.stands_out(row, most=6)}
    assert abs(found["column 1"] - (answer.table.X[row, 1] - middle) / others.std()) < 0.5


def test_json_has_no_numbers_that_json_cannot_hold():
    content = json.loads(detection(5, scores=np.array([1, np.inf, -np.inf, 2, 3])).to_json())
    assert [row["score"] for row in content["scores"]] == [1, None, None, 2, 3]
    assert [row["outlier"] for row in content["scores"]] == [False, False, True, False, False]


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (None, None),
        (["0", "0"], None),
        (["a", "b"], None),
        ([0, 1, 1], [0, 1, 1]),
        (["1", "0.0"], [1, 0]),
    ],
)
def test_labels_count_only_if_they_are_0_and_1(labels, found):
    got = anomalies(None if labels is None else np.array(labels))
    assert (None if got is None else got.tolist()) == found


def test_the_auc_is_the_share_of_pairs_in_order():
    answer = detection(40)
    labels = np.arange(40) % 3 == 0
    table = FeatureTable("r.csv", answer.table.X, (), answer.table.lines, labels.astype(int))
    pairs = answer.scores[~labels][:, None] > answer.scores[labels][None]
    assert detection(40, table=table).auc == pytest.approx(pairs.mean())


def test_dots_of_the_scatter_are_where_the_numbers_are():
    svg = scatter(np.array([0.0, 10.0]), np.array([0.0, 10.0]), np.array([True, False]), 5.0, ("x", "y"))
    paths = re.findall(r'd="M([\d.]+) ([\d.]+)h0"', svg)
    (right, top), (left, bottom) = [(float(x), float(y)) for x, y in paths]
    assert right > 300 and left < 100 and top < 50 and bottom > 200  # the marked one is drawn last
    assert "stroke-dasharray" in svg
