"""The page in a real browser: it says what the audit says, looks right, and asks nobody for anything."""

import itertools
import shutil

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.audit import audit

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found to open the page in")

# The smallest contrast (WCAG 2) between a visible text and what lies behind it, and the text.
CONTRAST = """
() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255;
    return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = node => { for (let e = node; e; e = e.parentElement) {
    const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; }
    return [255, 255, 255, 255]; };
  let worst = [99, ""];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement, text = node.textContent.trim();
    if (!text || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const front = rgba(element.closest("svg") ? style.fill : style.color);
    const a = light(front), b = light(behind(element));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) worst = [ratio, text];
  }
  return worst;
}
"""


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as p:
        chromium = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


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
    return audit(net, X, net(X).argmax(axis=1), name=name)


@pytest.fixture(scope="module")
def address(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "audit.html"
    result.to_html(path)
    assert path.stat().st_size < 500_000
    return path.as_uri()


@pytest.fixture
def open_page(browser, address):
    """Open the page; fail on console messages, page errors, dialogs and requests for anything else."""
    pages, trouble = [], []

    def opened(width=1400, scheme="light", url=address):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("console", lambda message: trouble.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}"))
        page.on("request", lambda r: None if r.url in (url, "data:,") else trouble.append(r.url))
        page.goto(url)
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert trouble == []


def test_the_page_says_what_the_audit_says(open_page, result):
    page = open_page()
    shown = page.eval_on_selector_all(
        "[data-code]",
        "cards => cards.map(c => [c.id, c.dataset.code, c.querySelector('.verdict').textContent])",
    )
    said = {f.code: f.verdict for f in result.findings}
    assert {code: verdict for _, code, verdict in shown} == said
    assert all(identity == code for identity, code, _ in shown)
    assert page.text_content("#verdict") == result.verdict
    assert page.text_content("h1") == result.name
    marks = page.eval_on_selector_all(
        "[data-code] header .mark", "marks => marks.map(m => m.innerText.trim())"
    )
    numbers = [f.number.kind for f in result.findings if f.number]
    assert sorted(mark.split()[-1] for mark in marks) == sorted(numbers)


def test_what_could_not_be_said_is_on_the_page(open_page, tmp_path):
    net = ReluNetwork.from_layers([(np.eye(2), [0, 0])])
    path = tmp_path / "bare.html"
    result = audit(net)
    result.to_html(path)
    page = open_page(url=path.as_uri())
    shown = page.eval_on_selector_all(".unsaid [data-code] .verdict", "v => v.map(e => e.textContent)")
    assert shown == [f.verdict for f in result.findings if not f.answered] and len(shown) > 12


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_overflows_and_everything_can_be_read(open_page, width, scheme):
    page = open_page(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ratio, text = page.evaluate(CONTRAST)
    assert ratio >= 4.5, f"contrast {ratio:.2f} of {text!r}"
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    assert dark == (scheme == "dark")


def test_the_page_is_accessible(open_page):
    page = open_page()
    levels = page.eval_on_selector_all("h1, h2, h3", "hs => hs.map(h => +h.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    assert page.evaluate("document.documentElement.lang") == "en"
    figures = page.eval_on_selector_all("figure", "fs => fs.map(f => f.getAttribute('aria-label'))")
    assert len(figures) >= 4 and all(figures)
    captions = page.eval_on_selector_all(
        "table", "ts => ts.map(t => t.caption && t.caption.textContent)"
    )
    assert captions and all(captions)
    identities = page.eval_on_selector_all("[id]", "es => es.map(e => e.id)")
    assert len(identities) == len(set(identities))


def test_the_page_prints(open_page):
    page = open_page()
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.is_visible("nav")
    assert len(page.pdf()) > 10_000
