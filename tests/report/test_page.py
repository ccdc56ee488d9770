"""The page in a real browser: it says what the audit says, looks right, and asks nobody for anything."""

import itertools
import re

import numpy as np
import pytest
from matplotlib.image import imread

from pindown import ReluNetwork
from pindown._audit import audit
from tests.report.browsing import check_page_is_accessible, check_page_looks_right

LIMITS = {"dead-units": -1.0, "overconfidence": -1.0, "robustness": -2.0}  # so that there are concerns


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    widths = (6, 30, 20, 4)
    pairs = itertools.pairwise(widths)
    layers = [(rng.standard_normal((m, n)), rng.standard_normal(m)) for n, m in pairs]
    layers[0][0][3] = 0.0
    net = ReluNetwork.from_layers(layers, notes=("<img src=x onerror=alert(1)> was removed",))
    X = rng.standard_normal((200, 6))
    name = "a-rather-long-file-name-without-any-break-" + "x" * 60 + "<script>alert(1)</script>.onnx"
    return audit(net, X, net(X).argmax(axis=1), name=name, budget=10, limits=LIMITS)


@pytest.fixture(scope="module")
def path(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "audit.html"
    result.to_html(path)
    assert path.stat().st_size < 500_000
    return path


def test_the_page_says_what_the_audit_says(open_page, path, result):
    page = open_page(path)
    shown = page.eval_on_selector_all(
        "article[data-code]",
        "cards => cards.map(c => [c.id, c.dataset.code, c.querySelector('.verdict').textContent])",
    )
    said = {f.code: f.verdict for f in result.findings if f.answered}
    assert {code: verdict for _, code, verdict in shown} == said
    assert all(identity == code for identity, code, _ in shown)
    assert page.text_content("#verdict") == result.verdict
    assert page.text_content("h1") == result.name
    marks = page.eval_on_selector_all(
        "[data-code] .number .mark", "marks => marks.map(m => m.textContent.trim())"
    )
    numbers = [f.number.kind for f in result.findings if f.number]
    assert sorted(mark.split()[-1] for mark in marks) == sorted(numbers)
    assert page.locator(".legend .mark").count() == 4
    assert page.locator(".key-number .sign").count() == page.locator(".key-number").count() >= 4


def test_every_link_of_the_page_leads_somewhere(open_page, path):
    page = open_page(path)
    links = page.eval_on_selector_all("a", "links => links.map(a => a.getAttribute('href'))")
    identities = page.eval_on_selector_all("[id]", "es => es.map(e => e.id)")
    assert len(identities) == len(set(identities))
    assert len(links) > 40 and {link[1:] for link in links} <= set(identities)


def test_what_could_not_be_said_is_on_the_page(open_page, tmp_path):
    result = audit(ReluNetwork.from_layers([(np.eye(2), [0, 0])]), budget=5)
    result.to_html(tmp_path / "bare.html")
    page = open_page(tmp_path / "bare.html")
    shown = page.eval_on_selector_all(
        ".unsaid [data-code]",
        "es => es.map(e => [e.id, e.closest('.card').querySelector('.verdict').textContent])",
    )
    assert dict(shown) == {f.code: f.verdict for f in result.findings if not f.answered}
    assert len(shown) > 12


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_looks_right_and_is_accessible(open_page, path, tmp_path, width, scheme):
    page = open_page(path, width, scheme)
    check_page_looks_right(page, width)
    if (width == 400) == (scheme == "dark"):  # seconds each: both widths and both schemes in two runs
        check_page_is_accessible(page)
    page.screenshot(path=tmp_path / "page.png")
    picture = imread(tmp_path / "page.png")[..., :3]
    assert picture.shape[:2] == (900, width)
    # Paper all around, and enough of something else to be a page.
    paper = np.abs(picture - picture[-1, 0]).max(axis=2) < 0.01
    assert (picture[-1, 0].mean() < 0.5) == (scheme == "dark") and 0.4 < paper.mean() < 0.97


def test_contents_stay_in_sight_and_say_where_one_is(open_page, path):
    for width in (400, 1400):
        page = open_page(path, width)
        page.evaluate("document.getElementById('how-far').scrollIntoView()")
        page.locator('.toc [aria-current][href="#how-far"]').wait_for()
        assert page.locator('.toc a[href="#how-far"]').bounding_box()["y"] < 900
        assert page.locator(".toc").bounding_box()["y"] <= 1


def test_headings_and_tables_have_their_order_and_names(open_page, path):
    page = open_page(path)
    levels = page.eval_on_selector_all("h1, h2, h3", "hs => hs.map(h => +h.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    assert page.evaluate("document.documentElement.lang") == "en"
    drawings = page.eval_on_selector_all(
        "figure svg, figure .drawing", "all => all.map(e => e.closest('[role]')).filter(Boolean).length"
    )
    assert drawings >= 8
    captions = page.eval_on_selector_all(
        "table", "ts => ts.map(t => t.caption && t.caption.textContent)"
    )
    assert captions and all(captions)


def test_the_page_prints(open_page, path):
    page = open_page(path, scheme="dark")
    folded = page.locator(".hypotheses").first
    assert not folded.is_visible()
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.is_visible("nav")
    printed = page.pdf(format="A4")
    assert len(printed) > 10_000 and len(re.findall(rb"/Type\s*/Page[^s]", printed)) <= 4
    shown = page.locator("details.more[open] .basis")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert shown.count() and shown.last.locator(".hypotheses").is_visible()
    assert page.locator(".more[open] .basis:not([open])").count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator(".basis[open]").count() == 0
    cut = "c => getComputedStyle(c).breakInside"
    assert page.locator("article.card:has(> .more:not([open]))").first.evaluate(cut) == "avoid"


def test_a_link_unfolds_what_it_leads_to(open_page, path):
    page = open_page(path)
    card = page.locator("#LIP-01 > details")
    assert card.get_attribute("open") is None
    page.evaluate("location.hash = '#LIP-01'")
    page.locator("#LIP-01 > details[open]").wait_for()
    page.get_by_role("button", name="Unfold all findings").click()
    assert page.locator("details.more:not([open])").count() == 0
    page.get_by_role("button", name="Fold findings").click()
    assert page.locator("details.more:not([open])").count() > 10


def test_the_first_screen_says_what_to_do(open_page, path, result):
    for width in (400, 1400):
        page = open_page(path, width)
        shown = page.locator(".concerns > li")
        assert shown.count() == len(result.concerns) > 0
        for concern, item in zip(result.concerns, shown.all(), strict=True):
            text = item.inner_text()
            assert concern.todo in text and concern.why in text and concern.code in text
        assert shown.first.bounding_box()["y"] < 900


def test_without_scripts_everything_is_there(open_page, plane_page, plane_audit):
    page = open_page(plane_page, java_script_enabled=False)
    text = page.locator("main").inner_text()
    assert plane_audit.verdict in text and all(c.todo in text for c in plane_audit.concerns)
    assert page.locator(".plane svg .area").count() >= 2 and page.locator("main button").count() == 0
    assert page.locator("#ACC-02 tbody tr").count() == len(plane_audit["ACC-02"].table.rows)
    page.locator("#ACC-02 .more > summary").click()
    page.locator("#ACC-02 .basis summary").click()
    assert page.locator("#ACC-02 .hypotheses").is_visible()


def test_scripts_of_others_do_not_run(open_page, plane_page, tmp_path):
    text = plane_page.read_text()
    (tmp_path / "bad.html").write_text(
        text.replace("</main>", "<script>document.title = 'taken'</script></main>")
    )
    page = open_page(plane_page)
    assert page.evaluate("document.documentElement.classList.contains('js')")
    other = page.context.new_page()
    other.goto((tmp_path / "bad.html").as_uri())
    assert other.title() != "taken"
