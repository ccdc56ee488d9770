"""The first screen: at most three concerns, words explained once, every number counted again."""

import html
import re

import numpy as np
import pytest
from scipy.stats import beta

from pindown import ReluNetwork, audit, load
from pindown.report.audit_markdown import render_comment
from tests.findings.test_planted_faults import CENTERS, three_classes

CODES = ["ARC-01", "UNIT-01", "EQV-01", "ACC-01", "CAL-01", "DAT", "BND-01", "ROB-01", "ROB-03"]
SPREAD, DEAD = 0.9, 6


def network():
    """Return the log posterior of three classes by units that are always on, and others never."""
    first = np.vstack([np.eye(4), 0.01 * np.ones((DEAD, 4))])
    scores = CENTERS / SPREAD**2
    offset = -(CENTERS**2).sum(axis=1) / (2 * SPREAD**2) - 20.0 * scores.sum(axis=1)
    last = np.hstack([scores, np.ones((3, DEAD))])
    return ReluNetwork.from_layers(
        [(first, np.r_[np.full(4, 20.0), np.full(DEAD, -9.0)]), (last, offset)]
    )


@pytest.fixture(scope="module")
def given():
    return three_classes(200, 0, SPREAD), three_classes(90, 1, SPREAD)


@pytest.fixture(scope="module")
def result(given):
    data, test = given
    return audit(network(), *data, test=test, only=CODES, budget=60, name="net.onnx")


def hero(page):
    """Return the text of the first screen: up to what is folded."""
    part = page.split('<section class="hero"')[1].split('<details class="in-words">')[0]
    part = re.sub(r"<a href[^>]*>[A-Z]+-\d\d</a>", " ", part.partition(">")[2])
    part = re.sub(r'<dl class="gloss">.*?</dl>', " ", part)  # examples, not numbers of the model
    return html.unescape(re.sub(r"<[^>]*>", " ", part))


def test_every_number_is_an_independent_count(result, given):
    (X, _), (V, w) = given
    net, module = network(), network().to_torch()
    out = V @ (CENTERS / SPREAD**2).T - (CENTERS**2).sum(axis=1) / (2 * SPREAD**2)  # without the network
    p = np.exp(out) / np.exp(out).sum(axis=1, keepdims=True)
    right = out.argmax(axis=1) == w
    wrong, n = int((~right).sum()), len(w)
    bound = beta.ppf(0.95, wrong + 1, n - wrong)
    # The scores are affine: distances to another class have a closed form.
    gaps = out[np.arange(n), w][:, None] - out
    slopes = np.abs(CENTERS[w][:, None] - CENTERS[None]).sum(axis=2) / SPREAD**2
    others = np.arange(3)[None] != w[:, None]
    distance = np.where(others, gaps / np.where(others, slopes, 1.0), np.inf).min(axis=1)
    top = float(np.median(np.ptp(V, axis=0)))
    turned = float(np.mean(distance[right] <= 0.01 * top))
    radius = float(np.median(np.clip(distance, 0.0, top)))
    shown = result["ROB-01"].number.value
    assert radius - top / 2**7 <= shown <= radius
    weights = sum(parameter.numel() for parameter in module.parameters())
    dead = int((net.preactivations(X) <= 0).all(axis=0).sum())
    expected = {
        f"{100 * right.mean():.1f}%",
        f"{100 * (p.max(axis=1) - right).mean():.1f}%",
        f"{np.ceil(1000 * bound) / 1000:g}",
        f"{np.floor(1000 * shown) / 1000:g}",
        f"{100 * turned:.1f}%" if turned else "0%",
        f"{0.01 * top:.3g}",  # how far the attack may go
        str(weights),
        f"{100 * dead / net.size:.1f}%",
        str(dead),
        str(net.size),  # also what shrink removes, for the function is affine
    }
    numbers = set(re.findall(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?%?", hero(result.to_html())))
    assert numbers == expected


def test_three_concerns_are_shown_and_the_others_folded(given):
    data, test = given
    limits = {"dead-units": -1, "overconfidence": -1, "robustness": -9, "leak": -1, "overfitting": -9}
    result = audit(network(), *data, test=test, only=CODES, budget=60, limits=limits)
    assert len(result.concerns) == 5
    first = result.to_html().split('<details class="later">')[0]
    shown = [concern for concern in result.concerns if html.escape(concern.todo) in first]
    assert shown == list(result.concerns[:3])
    assert "2 more concerns of less weight" in result.to_html()
    for text in (result.to_markdown(), render_comment(result)):
        assert text.count("   → ") == 3 and "2 more concerns of less weight: " in text
        assert text.index("2 more concerns") < text.index("Fine: ")


def test_words_are_explained_once_where_they_come_first(result):
    page = result.to_html()
    terms = re.findall(r"<dfn>([^<]*)</dfn>", page)
    assert len(terms) == len(set(terms)) and {"dead", "unit", "certified", "box"} <= set(terms)
    first = page.split('<section class="hero"')[1].split("<dfn>linf</dfn>")[0]
    assert "linf" in first and "<section" not in first  # explained on the first screen, where it stands


def test_the_command_about_dead_units_does_what_it_says(result, given, tmp_path, monkeypatch, capsys):
    from pindown.cli.main import main

    network().save(tmp_path / "net.onnx")
    np.savez(tmp_path / "data.npz", X=given[0][0], y=given[0][1])
    monkeypatch.chdir(tmp_path)
    todo = next(concern.todo for concern in result.concerns if concern.name == "dead-units")
    command, words = todo.split(" removes ")
    with pytest.raises(SystemExit) as ended:
        main(command.split()[1:])
    assert ended.value.code == 0 and words.endswith("on the bounding box of the data.")
    small = load("small.onnx").relu_network()
    assert words.startswith(f"{network().size - small.size} units")


def test_findings_name_the_command_that_goes_on(result, given, tmp_path, monkeypatch, capsys):
    from pindown.cli.main import main

    (V, w) = given[1]
    network().save(tmp_path / "net.onnx")
    np.savez(tmp_path / "test.npz", X=V, y=w)
    monkeypatch.chdir(tmp_path)
    words = {code: result[code].next.split() for code in ("ROB-01", "ROB-03", "BND-01")}
    assert [word[1] for word in words.values()] == ["verify", "verify", "certify"]
    for command in words.values():
        with pytest.raises(SystemExit) as ended:
            main(command[1:])
        assert ended.value.code == (1 if command is words["ROB-01"] else 0)  # twice what is certain
        capsys.readouterr()
    for wrong in (["--row", "90"], ["--row", "-1"], []):
        with pytest.raises(SystemExit) as ended:
            main(["verify", "net.onnx", "--data", "test.npz", "--radius", "0.1", *wrong])
        assert ended.value.code == 3
