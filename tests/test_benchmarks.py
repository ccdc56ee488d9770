"""RESULTS.md is written by its program alone, and a run without data or peers loses nothing."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def run(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("benchmarks_run", ROOT / "benchmarks/run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "RESULTS.md")
    return module


BEFORE = """# Benchmark results

## segmented

About it (2026-11-16, on a busy machine).

| what | result |
|---|---|
| ours | 3 s |
| beside pwlf | 9 times |
| beside both | 7 times |
| gone | 1 s |
| beside another | not installed: not compared |

## kernels

Kept.
"""


def test_a_peer_that_is_not_there_keeps_its_rows(run, monkeypatch):
    run.RESULTS.write_text(BEFORE)
    rows = {
        "ours": "2 s",
        "beside both": "pwlf is not installed",
        "beside another": "not installed: not compared",
    }
    monkeypatch.setattr(run, "measured", lambda name: ("About it.", rows))
    monkeypatch.setattr(run, "absent", lambda name: ["pwlf is not installed"])
    for _ in range(2):  # a second run does not say it twice
        assert run.main(["segmented"]) == 0
        text = run.RESULTS.read_text()
        assert "| ours | 2 s |" in text and "Kept." in text
        for kept in ("| beside pwlf | 9 times", "| beside both | 7 times"):
            assert f"{kept} [kept from 2026-11-16: pwlf is not installed] |" in text
        assert "| beside another | not installed: not compared |" in text
        assert re.search(r"Measured \d{4}-\d\d-\d\d, .*, one thread, commit [0-9a-f]+", text)
    monkeypatch.setattr(run, "absent", lambda name: [])
    run.main(["segmented"])
    assert "gone" not in run.RESULTS.read_text() and "kept from" not in run.RESULTS.read_text()


def test_a_benchmark_that_fails_keeps_its_section(run, monkeypatch, capsys):
    run.RESULTS.write_text(BEFORE)

    def fails(name):
        raise run.subprocess.CalledProcessError(1, name)

    monkeypatch.setattr(run, "measured", fails)
    assert run.main(["segmented"]) == 1
    assert run.RESULTS.read_text() == BEFORE and "failed" in capsys.readouterr().err


def test_every_section_has_its_program(run):
    text = (ROOT / "benchmarks/RESULTS.md").read_text("utf-8")
    for part in text.split("\n## ")[1:]:
        name = part.split("\n", 1)[0]
        assert name in run.BENCHMARKS and (ROOT / f"benchmarks/{name}.py").exists()


@pytest.mark.parametrize("name", ["scaling_cost", "scaling"])
def test_pages_show_what_the_program_wrote(run, name):
    text = (ROOT / "benchmarks/RESULTS.md").read_text("utf-8")
    sections = {part.split("\n", 1)[0]: part for part in text.split("\n## ")[1:]}
    if name not in sections:
        pytest.skip(f"{name} was not run yet")
    page = run.PAGES[name].read_text("utf-8")
    assert f"<!-- {name}.py -->\n\n{run.table(sections[name])}\n<!-- end -->" in page


def test_a_section_is_written_into_its_page(run, monkeypatch, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Before.\n<!-- kernels.py -->\n\nold\n\n<!-- end -->\nAfter.\n")
    monkeypatch.setattr(run, "PAGES", {"kernels": page})
    monkeypatch.setattr(run, "measured", lambda name: ("About it.", {"ours": "2 s"}))
    run.main(["kernels"])
    table = "| what | measured |\n|---|---|\n| ours | 2 s |\n"
    assert page.read_text() == f"Before.\n<!-- kernels.py -->\n\n{table}\n<!-- end -->\nAfter.\n"


def test_what_is_not_here_is_told(run, monkeypatch, tmp_path):
    monkeypatch.setattr(run, "SHARED", tmp_path)
    monkeypatch.setitem(run.BENCHMARKS, "kernels", ("data/mnist", "no_such_peer"))
    monkeypatch.setattr(run, "PEERS", ("no_such_peer",))
    assert run.absent("kernels") == ["no_such_peer is not installed", "data/mnist is not there"]
