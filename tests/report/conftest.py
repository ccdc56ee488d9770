"""One browser for all tests of pages."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown._audit import audit
from tests.report.browsing import CHROMIUM, FLAGS


# Not of the session: Playwright's event loop must be gone when other tests want their own.
@pytest.fixture(scope="package")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium found to open the page in")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as p:
        chromium = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser):
    """Open a page; fail on console messages, page errors, dialogs and requests for anything else."""
    contexts, trouble = [], []

    def opened(path, width=1400, scheme="light", **options):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            reduced_motion="reduce",
            **options,
        )
        contexts.append(context)
        page, url = context.new_page(), path.as_uri()
        page.on("console", lambda message: trouble.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}"))
        page.on(
            "request", lambda r: None if r.url == url or r.url[:5] == "data:" else trouble.append(r.url)
        )
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert trouble == []


@pytest.fixture(scope="package")
def plane_audit():
    """Of a network of two inputs, with its map, a histogram and tables."""
    rng = np.random.default_rng(1)
    layers = [
        (rng.standard_normal((8, 2)), rng.standard_normal(8)),
        (rng.standard_normal((3, 8)), np.zeros(3)),
    ]
    net = ReluNetwork.from_layers(layers)
    X = rng.uniform(-1, 1, (60, 2))
    y = net(X).argmax(axis=1)
    y[:9] = (y[:9] + 1) % 3
    return audit(net, X, y, only=["ARC-01", "NORM-01", "ACC-01", "ACC-02", "GEO-05"], name="plane.onnx")


@pytest.fixture(scope="package")
def plane_page(plane_audit, tmp_path_factory):
    path = tmp_path_factory.mktemp("plane") / "audit.html"
    plane_audit.to_html(path)
    return path
