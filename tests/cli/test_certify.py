"""``certify`` on the command line: the bound is the binomial one, and decides the exit code."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from pindown.cli.main import main
from tests.findings.test_planted_faults import bayes_network, three_classes


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bayes_network(1.4).save("model.onnx")
    X, y = three_classes(400, 5, 1.4)
    np.savez("held-out.npz", X=X, y=y)
    np.savez("bare.npz", X=X)
    return int(np.sum(bayes_network(1.4)(X).argmax(axis=1) != y))


def run(*words):
    with pytest.raises(SystemExit) as ended:
        main(["certify", "model.onnx", *words])
    return ended.value.code


def test_the_bound_is_the_largest_risk_that_fits(files, capsys):
    assert run("--data", "held-out.npz", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["terms"]["errors"] == files > 20 and found["confidence"] == 0.95
    assert binom.cdf(files, 400, found["value"]) == pytest.approx(0.05, rel=1e-6)


def test_exit_codes(files, capsys):
    assert run("--data", "held-out.npz", "--fail-on", "risk>99%", "--html", "page.html") == 0
    assert "New rows are classified wrongly in at most" in Path("page.html").read_text()
    assert run("--data", "held-out.npz", "--fail-on", "risk>0.01") == 1
    assert "failed: risk>0.01: the bound is 0." in capsys.readouterr().err
    for wrong in (("--data", "bare.npz"), ("--data", "held-out.npz", "--fail-on", "risk<0.1")):
        assert run(*wrong) == 3
    assert run("--data", "held-out.npz", "--delta", "2") == 3
    assert run("--data", "missing.npz") == 3


@pytest.mark.slow
def test_layers_can_be_trained_anew(files, capsys):
    pytest.importorskip("torch")
    assert run("--data", "held-out.npz", "--retrain", "--budget", "3", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["name"] == "held-out certificate" and found["model"] == "model.onnx"
    assert 0 < found["value"] <= 1
    words = ("--data", "held-out.npz", "--retrain", "--budget", "3", "--json")
    assert run(*words, "--method", "pac-bayes") == 0
    assert json.loads(capsys.readouterr().out)["name"] == "PAC-Bayes certificate"
    assert run(*words, "--method", "guess") == 3
