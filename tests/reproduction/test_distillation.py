"""Experiments on linear distillation: small runs reproduce, and the rules can fail."""

from dataclasses import replace

import numpy as np

from pindown_reproduction import reproduce
from pindown_reproduction.underspecification_thesis import distillation_bias as bias
from pindown_reproduction.underspecification_thesis import distillation_geometry as geometry
from pindown_reproduction.underspecification_thesis import distillation_monotonicity as monotonicity


def small(experiment, out, **settings):
    tiny = {**experiment.settings["quick"], **settings}
    return reproduce(replace(experiment, settings={"quick": tiny, "paper": tiny}), out=out)


def test_geometry(tmp_path):
    run = small(geometry.EXPERIMENT, tmp_path, exponents=[0.5, 1, 2], dimension=200, repetitions=10)
    assert run.outcome.verdict == "reproduced" and (run.folder / "figure.svg").exists()
    risks = [float(row[2].split()[0]) for row in run.outcome.rows]
    assert risks[0] > 10 * risks[1] > 100 * risks[2]


def test_the_rule_of_geometry_can_fail():
    found = {"risk": 0.1, "error": 0.001, "bound": 0.5, "corollary": 0.6}
    cells = [{"exponent": 1.0}, {"exponent": 2.0}]
    rising = [(cells[0], found), (cells[1], {**found, "risk": 0.2})]
    assert geometry.compare(rising).verdict == "not reproduced"
    broken = [(cells[0], {**found, "bound": 0.05}), (cells[1], found)]
    assert geometry.compare(broken).verdict == "not reproduced"
    assert geometry.compare([(cells[0], found), (cells[1], found)]).verdict == "reproduced"


def test_bias_on_the_digits_that_ship_with_scikit_learn(tmp_path):
    run = small(bias.EXPERIMENT, tmp_path, data="digits", repetitions=4)
    assert run.outcome.verdict == "no published number"  # a stand-in decides nothing
    assert run.outcome.words.startswith("8 x 8 digits") and len(run.outcome.rows) == 10
    assert "in place of the data" in run.outcome.words
    means = [float(row[2].split()[0]) for row in run.outcome.rows]
    assert means[-1] > 3 * means[0]
    rising = [({}, {"data": "MNIST", "biases": [0, 1, 2], "risks": [0.1, 0.2, 0.3]})]
    assert bias.compare(rising).verdict == "reproduced"
    falling = [({}, {"data": "MNIST", "biases": [0, 1, 2], "risks": [0.3, 0.2, 0.1]})]
    assert bias.compare(falling).verdict == "not reproduced"


def test_monotonicity(tmp_path):
    run = small(monotonicity.EXPERIMENT, tmp_path, repetitions=100)
    rows = {row[0]: row for row in run.outcome.rows}
    assert run.outcome.verdict == "reproduced" and len(rows) == 7
    assert rows["distillation"][2].startswith("1.000")
    assert float(rows["hard targets"][3]) > 0.3
    cells = [{"learner": name} for name in ("distillation", 0.5, 1.0)]
    level = {"index error": 0.0, "ties": 0.0, "risk error": 0.0}
    results = [
        (cell, {**level, "index": index, "risk": risk})
        for cell, index, risk in zip(cells, np.array([1.0, 0.8, 0.6]), [0.3, 0.2, 0.1], strict=True)
    ]
    assert monotonicity.compare(results).verdict == "not reproduced"
