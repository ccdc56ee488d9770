"""Rotated digits: both networks are measured, and the rule decides by both claims."""

import pytest

from pindown_reproduction import EXPERIMENTS
from pindown_reproduction.course import rotated_digits


@pytest.fixture(scope="module")
def one_run():
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    (cell,) = rotated_digits.cells(
        {"data": "digits", "train": 600, "width": 40, "steps": 400, "seeds": 1}
    )
    return cell, rotated_digits.run(cell)


def test_rotations_make_the_network_nearly_invariant(one_run):
    _, found = one_run
    assert found["rotated"]["error"] < 0.5 * found["plain"]["error"]
    assert found["rotated"]["closure"] < found["plain"]["closure"]
    assert found["rotated"]["accuracy turned"] > found["plain"]["accuracy turned"] + 0.2
    assert found["plain"]["accuracy"] > 0.85


def of(error, closure):
    plain = {"error": 1.0, "closure": 0.7, "accuracy": 0.9, "accuracy turned": 0.3}
    return {"data": "d", "plain": plain, "rotated": {**plain, "error": error, "closure": closure}}


@pytest.mark.parametrize(
    ("error", "closure", "verdict"),
    [(0.4, 0.6, "reproduced"), (0.6, 0.6, "not reproduced"), (0.4, 0.8, "not reproduced")],
)
def test_the_rule_asks_for_both_in_every_run(error, closure, verdict):
    results = [({"seed": 0}, of(0.1, 0.1)), ({"seed": 1}, of(error, closure))]
    outcome = rotated_digits.compare(results)
    assert outcome.verdict == verdict and len(outcome.rows) == 4


def test_it_is_registered():
    assert EXPERIMENTS["rotated-digits"] is rotated_digits.EXPERIMENT
