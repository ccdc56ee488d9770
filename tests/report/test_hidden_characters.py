"""Names that try to hide something: no page, line or document lets them."""

import csv
import json
import sys
import unicodedata

import numpy as np
import pytest

from pindown.text import HIDDEN, escaped, printable, visible
from tests.cli.test_main import run  # noqa: F401
from tests.test_network import random_network

# Turns round what follows; marks of direction; clears a terminal; ends a line; no letter at all.
EVIL = "cod\u202eexe\u2066\u200f\u061c\x1b[2J\x85\u2028x"
COMMANDS = {
    "audit": "audit {0}.onnx --data {0}.csv --target {0} --before {0}2.onnx --budget 5 --only ARC,ACC "
    "--html p.html --json p.json --markdown p.md",
    "diff": "diff {0}.onnx {0}2.onnx --box 0,1 --budget 5 --html p.html --json p.json",
    "shrink": "shrink {0}.onnx -o {0}3.onnx --json p.json",
    "canonical": "canonical {0}.onnx -o {0}3.onnx --json p.json",
    "detect fit": "detect fit {0}.csv -o {0}.safetensors --label-column {0} --epochs 1 --members 1 "
    "--html p.html --json p.json",
    "detect score": "detect score {0}f.safetensors {0}.csv --label-column {0} -o {0}3.csv "
    "--html p.html --json p.json",
    "a file that is not there": "audit none{0}.onnx",
    "a folder that is not there": "detect score {0}f.safetensors {0}.csv --html {0}/p.html",
}


def test_every_character_that_unicode_says_is_not_seen():
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    characters = map(chr, range(sys.maxunicode + 1))
    hidden = {c for c in characters if unicodedata.category(c) in kinds} - {"\t", "\n"}
    assert all(HIDDEN.match(c) for c in hidden)
    assert not HIDDEN.search("plain words, äöü 网 → ● – \u00a0\u2009 e\u0301\n\tand lines")
    assert visible(EVIL) == "cod?exe????[2J??x" and printable("a\tb\nc") == "a b c"
    assert json.loads(escaped(json.dumps(EVIL + "\x7f\U000e0001", ensure_ascii=False)))[:-2] == EVIL


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Models, columns, labels and metadata with such names."""
    import onnx

    from pindown.learn.one_class import LocalMaximaDetector

    folder = tmp_path_factory.mktemp("hostile")
    for number, seed in ("", 0), ("2", 1):
        path = folder / f"{EVIL}{number}.onnx"
        random_network((2, 4, 2), seed=seed).save(path)
        proto = onnx.load(path)
        proto.producer_name = proto.doc_string = proto.graph.name = EVIL
        proto.metadata_props.add(key=EVIL, value=EVIL)
        for i, node in enumerate(proto.graph.node):
            node.name = node.doc_string = f"{EVIL}{i}"
        onnx.save(proto, path)
    X = np.random.default_rng(0).normal(size=(30, 2))
    with (folder / f"{EVIL}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([f"{EVIL}a", f"{EVIL}b", EVIL])
        writer.writerows([*row, f"{EVIL}{i % 2}"] for i, row in enumerate(X.tolist()))
    detector = LocalMaximaDetector(max_epochs=1, n_estimators=1, random_state=0).fit(X)
    detector.feature_names_in_ = np.array([f"{EVIL}a", f"{EVIL}b"], dtype=object)
    detector.save(folder / f"{EVIL}f.safetensors")
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_hides_in_what_a_command_writes_or_says(run, hostile, monkeypatch, command):  # noqa: F811
    monkeypatch.chdir(hostile)
    for page in hostile.glob("p.*"):
        page.unlink()
    arguments = [word.replace("{0}", EVIL) for word in COMMANDS[command].split()]
    code, out, err = run(*arguments)
    assert code == 3 if "not there" in command else code in (0, 1, 2), err
    pages = {page.name: page.read_text(encoding="utf-8") for page in hostile.glob("p.*")}
    assert len(pages) == sum(word.startswith("p.") for word in arguments)
    for name, text in {"stdout": out, "stderr": err, **pages}.items():
        assert not HIDDEN.search(text), name
        if name.endswith(("html", "md")):
            assert "cod?exe" in text
    if "p.json" in pages:
        json.loads(pages["p.json"])


def test_the_ledger_hides_nothing(run, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    (tmp_path / EVIL / "steepest-descent").mkdir(parents=True)
    (tmp_path / EVIL / "steepest-descent" / "error.txt").write_text(
        "No file cod\u202eexe", encoding="utf-8"
    )
    code, out, err = run("reproduce", "--out", EVIL, "--ledger", f"{EVIL}.md")
    page = (tmp_path / f"{EVIL}.md").read_text(encoding="utf-8")
    assert code == 0 and "cod?exe" in err and "cod?exe" in page
    assert not any(map(HIDDEN.search, (out, err, page)))


def test_cards_and_summaries_hide_nothing(hostile):
    import pindown as pn

    path = next(hostile.glob("*2.onnx"))
    audit = pn.audit(path, only="ARC", name=EVIL)
    shown = [
        audit.summary(),
        audit._repr_html_(),
        pn.diff(path, path)._repr_html_(),
        str(pn.diff(path, path)),
    ]
    assert not any(map(HIDDEN.search, shown))


def test_a_terminal_gets_colours_and_no_orders(capsys):
    from rich.text import Text

    from pindown.report.terminal import Screen

    Screen(force_terminal=True, color_system="standard").print(Text(EVIL, style="bold"))
    out = capsys.readouterr().out
    assert out.startswith("\x1b[1mcod?exe") and "\x1b[2J" not in out and "\u202e" not in out
