"""Steps that gates need: the stochastic method keeps its promise, GLM-Tron needs the norm squared."""

from dataclasses import replace

import pytest

from pindown_reproduction import reproduce
from pindown_reproduction.relu_thesis.gate_horizons import EXPERIMENT, compare

TINY = {"norms": [1, 100], "problems": 6, "dimensions": [3], "runs": 10}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    tiny = replace(EXPERIMENT, settings={"quick": TINY, "paper": TINY})
    return reproduce(tiny, out=tmp_path_factory.mktemp("gates"))


def test_printed_steps_are_too_few_for_large_weights(run):
    rows = {row[0]: row for row in run.outcome.rows}
    assert rows["GLM-Tron, norm 100"][-1].startswith("no")
    assert all(row[-1] == "yes" for name, row in rows.items() if name.startswith("modified"))
    assert run.outcome.verdict == "not reproduced"
    assert "corrected norm^2/eps in 2" in run.outcome.words
    assert (run.folder / "figure.svg").exists()


def test_the_rule_says_reproduced_if_nothing_is_exceeded():
    good = {"share of printed": 0.5, "share of corrected": 0.1, "exceeded": 0, "problems": 3}
    cell = {"learner": "GLM-Tron", "norm": 1, "problems": 3}
    assert compare([(cell, good)]).verdict == "reproduced"
    stream = {"learner": "modified SGD", "inputs": "gaussian", "dimension": 3, "runs": 5}
    found = {"published steps": 9, "sharp steps": 3, "published successes": 1.0, "sharp successes": 0.8}
    assert compare([(cell, good), (stream, found)]).verdict == "not reproduced"
