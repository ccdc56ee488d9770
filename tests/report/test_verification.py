"""The page of a verdict in a real browser, and its JSON."""

import base64
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread

from pindown import Property, ReluNetwork, verify
from pindown.report import json_schema
from pindown.report.verification import Asked, verification_answer
from pindown.report.verification_page import render_verification
from pindown.verification.portfolio import as_model
from tests.equivalence.shrinking.redundancy import random_net
from tests.report.browsing import check_page_is_accessible, check_page_looks_right
from tests.test_audit_json import problems


@pytest.fixture(scope="module")
def images():
    """A classifier of 8 x 8 images, one of them, and a radius at which its class changes."""
    net = random_net(np.random.default_rng(0), [64, 12, 3])
    net = ReluNetwork(net.layers, (1, 8, 8))
    x = np.random.default_rng(1).uniform(0.2, 0.8, 64)
    label = int(np.argmax(net(x)))
    prop = Property.robust(x, label, 0.2, n_outputs=3, box=(0, 1))
    answer = verify(net, prop, budget=20, n_jobs=1)
    assert answer.verdict == "violated"
    return as_model(net, "test"), x, answer


@pytest.fixture(scope="module")
def holding():
    """|x| is at most 3 on [-3, 3], and so is |x| / 2; found after some cuts."""
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0], [0.5, 0.5]], [0, 0])])
    prop = Property.output_range([-3], [3], lower=[-0.5, -0.5], upper=[3.25, 1.75])
    answer = verify(net, prop, budget=20, n_jobs=1)
    assert answer.verdict == "holds"
    return as_model(net, "test"), answer


def pages(images, holding):
    """Answers of all kinds, with what was asked."""
    image_model, _, violated = images
    model, holds = holding
    history = ((0.0, 0, 4), (0.5, 2, 3), (1.5, 9, 1))
    undecided = replace(holds, verdict="undecided", open_sets=1, history=history, interrupted=True)
    several = Property.monotone([-1], [1], input=0, output=0, n_outputs=2)
    falls = verify(model, several, budget=20, n_jobs=1)
    long = "a_model_with_a_very_long_name_that_does_not_fit_into_a_narrow_window.onnx"
    return {
        "image": (violated, Asked((image_model,), (long,), "robust.vnnlib", 20.0)),
        "holds": (holds, Asked((model,), ("abs.onnx",), "range.vnnlib", 20.0)),
        "undecided": (undecided, Asked((model,), ("abs.onnx",))),
        "networks": (falls, Asked((model,), ("abs.onnx",), "monotone")),
        "nameless": (violated, Asked()),
    }


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("kind", ["image", "holds", "undecided", "networks", "nameless"])
def test_the_page_shows_the_answer(open_page, tmp_path, images, holding, kind, width):
    answer, asked = pages(images, holding)[kind]
    text = render_verification(answer, asked)
    (tmp_path / "v.html").write_text(text)
    scheme = "dark" if width == 400 else "light"
    page = open_page(tmp_path / "v.html", width, scheme)
    assert page.locator("#verdict").inner_text() == answer.verdict.capitalize()
    assert page.locator(".lead").first.inner_text() == verification_answer(answer, asked)
    assert page.locator(".lead").first.bounding_box()["y"] < 900  # on the first screen
    check_page_looks_right(page, width)
    if (kind == "image") == (width == 400):
        check_page_is_accessible(page)
    assert len(text) < 500_000
    assert page.locator("#witness").count() == (answer.example is not None)
    drawn = page.locator(".drawing svg").count()
    assert drawn == {"holds": 2, "undecided": 2}.get(kind, drawn)
    assert page.locator(".notice").count() == (kind == "undecided")


def test_the_pictures_are_the_middle_the_witness_and_what_was_added(images):
    """Decoded again: grey levels of the middle and the witness, and their difference made strong."""
    model, x, answer = images
    page = render_verification(answer, Asked((model,)))
    drawn = [base64.b64decode(part.split('"')[0]) for part in page.split("data:image/png;base64,")[1:]]
    middle, witness, added = (imread(io.BytesIO(data))[..., 0].ravel() for data in drawn)
    np.testing.assert_allclose(middle, x, atol=2 / 255)
    np.testing.assert_allclose(witness, answer.witness, atol=2 / 255)
    change = answer.witness - x
    np.testing.assert_allclose(added, 0.5 + change / (2 * np.abs(change).max()), atol=2 / 255)
    assert f"by at most {np.abs(change).max():.3g}." in page
    times = 1 / (2 * np.abs(change).max())
    assert f"drawn {float(f'{times:.2g}'):g} times as strong" in page


def test_large_images_are_thinned_so_that_the_page_stays_small():
    """Three channels of 300 x 300: every fourth pixel is drawn."""
    n = 3 * 300 * 300
    rows = np.zeros((1, n))
    rows[0, :2] = 1.0
    model = as_model(ReluNetwork.from_layers([(rows, [0.0])], input_shape=(3, 300, 300)), "test")
    x = np.random.default_rng(0).uniform(size=n)
    answer = verify(model, Property.box(x, x + 1, [[1.0]], [0.0]), budget=10, n_jobs=1)
    page = render_verification(answer, Asked((model,)))
    assert answer.verdict == "violated" and "every 4th is drawn" in page and len(page) < 500_000


def test_outputs_and_conditions_are_those_of_the_model(open_page, tmp_path, images):
    model, x, answer = images
    answer.to_html(tmp_path / "v.html", model)
    page = open_page(tmp_path / "v.html")
    rows = page.locator("#witness tbody tr").all_inner_texts()
    told = np.array([[float(cell) for cell in row.split("\t")[1:]] for row in rows])
    unsafe = answer.prop.unsafe[answer.example.index]
    middle = unsafe.lower / 2 + unsafe.upper / 2
    np.testing.assert_allclose(middle, x, atol=1e-12)
    np.testing.assert_allclose(told[:, 0], model(middle), rtol=1e-5)
    np.testing.assert_allclose(told[:, 1], model(answer.witness), rtol=1e-5)
    np.testing.assert_allclose(told[:, 2], told[:, 1], atol=1e-4)
    label = int(np.argmax(model(x)))
    (row,) = page.locator("#conditions tbody tr").all_inner_texts()
    words, before, after = row.split("\t")
    assert words.startswith(f"y_{label + 1} <= y_") or words.endswith(f">= y_{label + 1}")
    assert float(before) > 0
    assert float(after) == pytest.approx(answer.margin, rel=1e-3)


def test_inputs_that_moved_most_are_listed_where_there_is_no_image(open_page, tmp_path):
    """40 inputs, of which two are away from the middle: both are among the rows that are shown."""
    rows = np.zeros((1, 40))
    rows[0, [3, 30]] = [1.0, -1.0]
    net = as_model(ReluNetwork.from_layers([(rows, [0.0])]), "test")
    prop = Property.box([-1] * 40, [1] * 40, [[1.0]], [1.99])
    answer = verify(net, prop, budget=10, n_jobs=1)
    answer = replace(answer, example=replace(answer.example, x=rows[0]))
    answer.to_html(tmp_path / "v.html", net)
    page = open_page(tmp_path / "v.html")
    table = page.locator("#witness .words tbody tr").all_inner_texts()
    names = [row.split("\t")[0] for row in table]
    assert len(names) == 24 and {"x_4", "x_31"} <= set(names)
    assert "and 16 more" in page.locator("#witness .words tfoot").inner_text()


def test_a_witness_that_float32_does_not_see_is_called_so(images):
    model, _, answer = images
    example = replace(answer.example, float32_violates=False, float32_margin=1e-9)
    page = render_verification(replace(answer, example=example), Asked((model,)))
    assert "In float32, as most runtimes compute, the witness is no violation" in page
    assert "no violation: it is" not in render_verification(answer, Asked((model,)))


def test_names_from_files_are_escaped(holding):
    model, answer = holding
    page = render_verification(answer, Asked((model,), ("<b>&.onnx",), "<i>\u202eprop"))
    assert "&lt;b&gt;&amp;.onnx" in page and "<b>&" not in page and "<i>" not in page
    assert "\u202e" not in page


def test_json_of_every_kind_follows_the_schema(images, holding, tmp_path):
    schema = json_schema("verify")
    for answer, _ in pages(images, holding).values():
        content = json.loads(answer.to_json(tmp_path / "v.json"))
        assert content == json.loads((tmp_path / "v.json").read_text())
        assert list(problems(content, schema, schema)) == []
        assert (content["verdict"], content["parts"]) == (answer.verdict, answer.n_parts)
        if answer.example is not None:
            assert content["witness"]["margin"] == answer.margin


def test_json_has_the_inputs_of_each_network(images, holding):
    answer, _ = pages(images, holding)["networks"]
    content = json.loads(answer.to_json())["witness"]
    (x,), (moved,) = content["inputs"]
    assert x >= moved and content["outputs"] == [[abs(x), abs(x) / 2], [abs(moved), abs(moved) / 2]]


def test_the_schema_catches_what_is_wrong(holding):
    _, answer = holding
    schema, content = json_schema("verify"), json.loads(answer.to_json())
    wrong = [
        {**content, "verdict": "maybe"},
        {**content, "schema": 2},
        {k: v for k, v in content.items() if k != "method"},
        {**content, "witness": {"inputs": [[1.0]]}},
        {**content, "history": [{"seconds": 1.0}]},
    ]
    assert all(list(problems(given, schema, schema)) for given in wrong)
    with pytest.raises(ValueError, match="'audit' or 'verify' or 'diff'"):
        json_schema("shrink")
