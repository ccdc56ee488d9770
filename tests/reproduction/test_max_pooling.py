"""The max-pooling experiment at a tiny scale."""

from pindown_reproduction import EXPERIMENTS
from pindown_reproduction.max_pooling_paper import max_pooling as module


def test_lemmas_hold_and_errors_are_compared():
    assert EXPERIMENTS["max-pooling"] is module.EXPERIMENT
    results = [
        (cell, module.run(cell))
        for cell in module.cells({"patterns": [3], "samples": [20, 90], "seeds": 1})
    ]
    for _, r in results:
        assert r["units"]
        assert r["learnt"]
        assert r["margin"] > 1
        assert r["layerwise"] <= r["svm"]
    outcome = module.compare(results)
    assert outcome.verdict == "reproduced"
    assert len(outcome.rows) == 2
    assert module.draw(results).axes


def test_a_failed_lemma_is_not_hidden():
    cell = {"d": 3, "m": 100, "seed": 0}
    good = {"units": True, "balanced": True, "learnt": True, "margin": 2.0, "layerwise": 0.0}
    good |= {"fully connected": 0.3, "svm": 0.3}
    good |= {"steps": 1, "error": 0.0, "narrow steps": 1, "narrow error": 0.0}
    assert module.compare([(cell, good)]).verdict == "reproduced"
    for change in ({"learnt": False}, {"margin": 0.5}, {"layerwise": 0.4}, {"steps": None}):
        assert module.compare([(cell, {**good, **change})]).verdict == "not reproduced"


def test_both_rates_fail_in_networks_that_are_too_narrow():
    runs = [module.run(cell) for cell in module.cells({"patterns": [3], "samples": [60], "seeds": 4})]
    assert all(r["steps"] <= 12 and r["error"] == 0.0 for r in runs)
    assert any(r["narrow steps"] is None and r["narrow error"] > (3 / 60) ** 0.5 for r in runs)
