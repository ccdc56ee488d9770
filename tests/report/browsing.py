"""What the tests of pages ask a browser."""

import shutil

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

# The smallest contrast (WCAG 2) between a visible text and what lies behind it, and the text.
# Unlike axe this reads letters in pictures, too.
CONTRAST = """
() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const known = new Map();
  const rgba = colour => {
    if (known.has(colour)) return known.get(colour);
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    known.set(colour, [...canvas.getImageData(0, 0, 1, 1).data]);
    return known.get(colour); };
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

# What sticks out of the window to the right although nothing scrolls there.
CUT_OFF = """
() => [...document.querySelectorAll("main p, main h2, main h3, main figure, main li, h1, dd")]
  .filter(e => !e.closest(".scroll, .toc") && e.checkVisibility() && !e.closest(".unseen"))
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1 || e.scrollWidth > e.clientWidth + 1)
  .filter(e => getComputedStyle(e).display !== "inline" && getComputedStyle(e).display !== "contents")
  .map(e => e.outerHTML.slice(0, 120))
"""


def check_page_looks_right(page, width):
    """Nothing scrolls sideways or is cut off, and all letters can be read."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT_OFF) == []
    ratio, text = page.evaluate(CONTRAST)
    assert ratio >= 4.5, f"contrast {ratio:.2f} of {text!r}"


def check_page_is_accessible(page):
    """No serious or critical violation of what axe-core checks."""
    import pytest

    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
    grave = [
        (rule["id"], [node["html"][:120] for node in rule["nodes"][:3]])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]
    assert grave == []
