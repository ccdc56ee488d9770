"""The page of a comparison in a real browser, and its JSON."""

import json

import numpy as np
import pytest

from pindown import Box, ReluNetwork
from pindown.equivalence.comparison import diff
from pindown.report.pages import image_of, png_of
from tests.equivalence.shrinking.redundancy import random_net
from tests.report.browsing import check_page_is_accessible, check_page_looks_right


def image_pair():
    rng = np.random.default_rng(0)
    a = random_net(rng, [64, 12, 3])
    W, b = a.layers[0]
    other = ReluNetwork.from_layers([(W * 1.01, b), tuple(a.layers[1])], input_shape=(1, 8, 8))
    return ReluNetwork(a.layers, (1, 8, 8)), other


@pytest.fixture(scope="module")
def answer():
    a, b = image_pair()
    return diff(a, b, box=Box.cube(64, 0, 1), budget=3, labels=0.01)


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_shows_verdict_interval_and_witness(open_page, tmp_path, answer, width, scheme):
    answer.to_html(tmp_path / "diff.html")
    page = open_page(tmp_path / "diff.html", width, scheme)
    assert page.locator("#verdict").inner_text() == "Different labels"
    check_page_looks_right(page, width)
    if (width == 400) == (scheme == "dark"):
        check_page_is_accessible(page)
    image = page.locator("#witness img.witness").first
    assert image.evaluate("node => node.naturalWidth") == 8
    assert page.locator("#layers tbody tr").count() == 2
    gap = page.locator(".key-number .key-value").first.inner_text()
    assert float(gap.split()[0]) <= answer.gap_lower and "exact" in gap
    assert page.locator("#witness th button").count() == 4


def test_names_from_files_are_escaped(tmp_path):
    a, b = image_pair()
    for name, net in (("<b>&.onnx", a), ("b.onnx", b)):
        net.save(tmp_path / name)
    page = diff(tmp_path / "<b>&.onnx", tmp_path / "b.onnx", budget=1).to_html()
    assert "&lt;b&gt;&amp;.onnx" in page and "<b>&" not in page


def test_json_says_what_the_comparison_says(tmp_path):
    a, b = image_pair()
    answer = diff(a, b, box=Box.cube(64, 0, 1), budget=2)
    content = json.loads(answer.to_json(tmp_path / "d.json"))
    assert content == json.loads((tmp_path / "d.json").read_text())
    assert content["verdict"] == answer.verdict and content["gap_lower"] == answer.gap_lower
    assert content["witness"] == answer.witness.tolist() and len(content["layers"]) == 2
    np.testing.assert_array_equal(content["outputs"][0], a(answer.witness))


def test_an_unknown_upper_end_is_null_in_json():
    a, b = image_pair()
    content = json.loads(diff(a, b, budget=0.0).to_json())
    assert content["gap_upper"] is None or content["gap_upper"] > 0


@pytest.mark.parametrize(
    ("shape", "picture"),
    [
        ((1, 8, 8), (8, 8)),
        ((3, 8, 8), (8, 8, 3)),
        ((8, 8, 3), (8, 8, 3)),
        ((784, 1), (28, 28)),
        ((5,), None),
        ((2, 3, 4, 5), None),
    ],
)
def test_inputs_of_image_shape_are_drawn(shape, picture):
    x = np.linspace(-1, 2, int(np.prod(shape)))
    image = image_of(x, shape)
    assert (None if image is None else image.shape) == picture
    if image is not None:
        assert image.min() >= 0 and image.max() <= 1 and png_of(image)
