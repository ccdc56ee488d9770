"""The benchmark of competition problems: resumable, and a wrong verdict cannot hide."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from pindown import ReluNetwork

ROOT = Path(__file__).parents[1]
BOX = "(declare-const X_0 Real) (declare-const Y_0 Real) (assert (<= -1 X_0 1))\n"


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """The module, with three instances of |x| on [-1, 1]: two with their truth, one with a wrong one."""
    folder = tmp_path / "vnncomp"
    folder.mkdir()
    ReluNetwork.from_layers([(np.array([[1.0], [-1.0]]), [0, 0]), ([[1.0, 1.0]], [0])]).save(
        folder / "abs.onnx"
    )
    rows = ["family,model,property,truth,tools_agreeing,best_published_seconds,published_limit"]
    for family, limit, truth in (("small", 2, "unsat"), ("small", 0.5, "sat"), ("liars", 3, "sat")):
        (folder / f"above{limit}.vnnlib").write_text(f"{BOX}(assert (>= Y_0 {limit}))")
        rows.append(f"{family},abs.onnx,above{limit}.vnnlib,{truth},2,1.5,60")
    (folder / "instances.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.setenv("PINDOWN_SHARED", str(tmp_path))
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location("vnncomp", ROOT / "benchmarks/vnncomp.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def run(*words):
        files = ["--results", str(tmp_path / "r.jsonl"), "--page", str(tmp_path / "page.md")]
        monkeypatch.setattr(sys, "argv", ["vnncomp.py", *words, "--budget", "20", "--jobs", "1", *files])
        module.main()

    module.run = run
    return module


def test_every_instance_runs_once_and_a_wrong_verdict_is_told(bench, tmp_path, capsys, monkeypatch):
    bench.run("small")
    results = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert [row["verdict"] for row in results] == ["unsat", "sat"]
    assert all(row["seconds"] > 0 and row["cpu_seconds"] > 0 for row in results)
    with (tmp_path / "r.jsonl").open("a") as file:
        file.write('{"family": "sma')  # the machine went down here
        file.write("\n")
    bench.run()
    results = (tmp_path / "r.jsonl").read_text().splitlines()
    assert len(results) == 4 and json.loads(results[-1])["family"] == "liars"
    monkeypatch.setattr(bench, "decided_apart", lambda *_: pytest.fail("it was run before"))
    bench.run()
    out = capsys.readouterr().out
    assert "WRONG: abs.onnx above3.vnnlib: unsat (sat)" in out
    page = (tmp_path / "page.md").read_text()
    assert "| small |  | 2 | 2 (100%) | 1 of 1 | 1 of 1 | 0 |" in page
    assert "| liars |  | 1 | 1 (100%) | 0 of 1 | - | 1 |" in page
    assert "| all |  | 3 | 3 (100%) | 1 of 2 | 1 of 1 | 1 |" in page


def test_rows_of_the_same_budget_stay_where_their_results_are_elsewhere(bench, tmp_path, monkeypatch):
    monkeypatch.setitem(bench.ABOUT, "small", "tiny")
    bench.run("small")
    (tmp_path / "r.jsonl").unlink()
    bench.run("liars")
    page = tmp_path / "page.md"
    assert "| small | tiny | 2 | 2 (100%) | 1 of 1 | 1 of 1 | 0 |" in page.read_text()
    assert "| all |  | 3 | 3 (100%) | 1 of 2 | 1 of 1 | 1 |" in page.read_text()
    page.write_text(page.read_text().replace("--budget 20", "--budget 19"))
    bench.run("liars")
    assert "| small |" not in page.read_text()


def test_a_failure_is_a_result(bench, tmp_path, capsys):
    (tmp_path / "vnncomp/abs.onnx").write_bytes(b"no model")
    bench.run("liars")
    out = capsys.readouterr().out
    assert "error: abs.onnx above3.vnnlib: error (sat)" in out and "abs.onnx" in out
    assert "| liars |  | 1 | 0 (0%) | 0 of 1 | - | 0 | - | - |" in (tmp_path / "page.md").read_text()


def test_an_unknown_family_is_refused(bench):
    with pytest.raises(SystemExit, match="no such family: large; there are small, liars"):
        bench.run("large")


def test_a_hundred_percent_means_all(bench):
    assert [bench.counted(*pair) for pair in ((345, 346), (4, 4), (0, 3))] == [
        "345 (99%)",
        "4 (100%)",
        "0 (0%)",
    ]
