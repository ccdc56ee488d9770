"""The page of a detector in a real browser, and what is drawn on it."""

import json
import re

import numpy as np
import pytest

from pindown.datasets.feature_files import FeatureTable
from pindown.report.detection import Detection, anomalies
from pindown.report.detection_formats import _histogram, plain_lines
from pindown.report.planes import robust_ends, scatter
from tests.report.browsing import check_page_is_accessible, check_page_looks_right

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


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1400, "light")])
@pytest.mark.parametrize("images", [False, True])
def test_the_page_opens_and_says_what_was_found(open_page, tmp_path, width, scheme, images):
    answer = detection(images=images)
    path = tmp_path / "d.html"
    answer.to_html(path)
    assert path.stat().st_size < 500_000
    page = open_page(path, width, scheme)
    assert page.locator("#verdict").inner_text() == f"{answer.flagged.sum()} outliers"
    check_page_looks_right(page, width)
    if not images:
        check_page_is_accessible(page)
    assert (
        page.locator("figure .drawing > svg").count() == 2 and page.locator("figure .plane").count() == 1
    )
    if images:
        assert page.locator("#least img").first.evaluate("node => node.naturalWidth") == 8
    else:
        first = page.locator("#least tbody tr").first.inner_text()
        assert first.startswith("5") and EVIL in first and "1,000,000,000" in first
        assert page.locator("#least tr.outlier").count() == min(12, answer.flagged.sum())


def test_dots_of_the_page_say_which_rows_they_are(open_page, tmp_path):
    answer = detection(40, seed=2)
    answer.to_html(tmp_path / "d.html")
    page = open_page(tmp_path / "d.html")
    plane, tip = page.locator(".plane"), page.locator(".tip")
    plane.focus()
    order = np.argsort(answer.scores)
    for row in order[:3]:  # from left to right
        plane.press("ArrowRight")
        assert tip.inner_text().startswith(f"line {answer.table.lines[row]}\n")
    said = [float(s.split(" = ")[1].replace("−", "-")) for s in tip.inner_text().splitlines()[1:]]
    assert said == pytest.approx([answer.scores[row], answer.quality[row]], rel=1e-3)
    ring = page.locator(".ring").bounding_box()
    page.mouse.move(5, 5)
    assert not tip.is_visible() or tip.inner_text()
    page.mouse.move(ring["x"] + ring["width"] / 2 + 2, ring["y"] + ring["height"] / 2)
    assert tip.inner_text().startswith(f"line {answer.table.lines[row]}\n")
    page.get_by_role("button", name="Zoom in").click()
    assert plane.locator(".view").get_attribute("viewBox") != "0 0 400 300"


def test_what_comes_from_a_file_is_escaped():
    page = detection().to_html()
    assert page.count("<script") == 1
    assert EVIL not in page and "&lt;script&gt;" in page


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_short_files_show_every_row_once(n):
    page = detection(n).to_html()
    lines = [int(v) for v in re.findall(r"<tr(?: class=\"outlier\")?><td>(\d+)</td><td>-?\d", page)]
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
    assert right > 350 and left < 50 and top < 50 and bottom > 250  # the marked one is drawn last
    assert 'class="threshold"' in svg


def test_one_far_row_does_not_press_the_others_into_a_corner():
    values = np.append(np.linspace(0, 1, 99), -1e6)
    low, high = robust_ends(values, (0.001, 0.999))
    assert low == 0.0 and 0.9 < high <= 1.0
    assert robust_ends(np.full(5, 2.0), (0.1, 0.9)) == (2.0, 2.0)
    assert robust_ends(np.array([np.inf, np.nan]), (0.1, 0.9)) == (0.0, 0.0)
    assert "nan" not in scatter(values, values, values < 0, 0.5, ("x", "y"))


def test_one_outlier_of_many_rows_is_seen(tmp_path):
    scores = np.random.default_rng(0).uniform(1, 3, 2000)
    scores[7] = -50.0  # beyond the ends of both drawings, and the only one below the threshold
    answer = detection(2000, scores=scores)
    histogram = _histogram(scores, 0.0, "score")
    below = [
        count for count, right in zip(histogram.counts, histogram.edges[1:], strict=True) if right < 0.01
    ]
    assert below == [1] and sum(histogram.counts) == 2000
    drawn = scatter(scores, answer.quality, answer.flagged, 0.0, ("a", "b"))
    assert 'class="threshold"' in drawn and "--warn" in drawn
    none = scatter(np.abs(scores), answer.quality, np.zeros(2000, bool), 0.0, ("a", "b"))
    assert 'class="threshold"' not in none


def test_rows_stand_out_from_the_training_rows():
    one = detection(1, 2, reference=(np.array([5.0, 0.0]), np.array([0.5, 1.0])))
    (name, value, distance), _ = one.stands_out(0)
    assert name == EVIL and distance == pytest.approx((value - 5) / 0.5)
    assert not detection(1, 2).stands_out(0)  # a row does not stand out from itself


@pytest.mark.filterwarnings("error")
def test_the_largest_numbers_stand_out_too():
    X = np.zeros((9, 2))
    X[3] = 1.7e308, -1.7e308
    X[4, 0] = -1.7e308
    found = detection(9, table=FeatureTable("r.csv", X, (), np.arange(9))).stands_out(3)
    assert {name: np.sign(distance) for name, _, distance in found} == {"#1": 1, "#2": -1}
    away = (np.zeros(2), np.full(2, 5e-324))
    far = detection(9, table=FeatureTable("r.csv", X, (), np.arange(9)), reference=away).stands_out(3)
    assert [distance for _, _, distance in far] == [1e30, -1e30]
