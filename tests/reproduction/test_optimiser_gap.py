from pindown_reproduction.relu_thesis.optimiser_gap import EXPERIMENT, cells, compare, draw, run


def test_no_optimiser_is_below_the_certificate_and_some_are_above():
    small = cells({"sizes": [(8, 1), (8, 2)], "seeds": 1, "starts": 3, "steps": 300})
    results = [(cell, run(cell)) for cell in small]
    for _, found in results:
        assert found["proved"]
        for name in ("sgd", "adam", "lbfgs"):
            assert min(found[name]) >= found["lower"]
    outcome = compare(results)
    assert "0 runs below a proved bound" in outcome.words
    assert len(outcome.rows) == 6
    assert len(draw(results).axes[0].lines) == 4
    assert EXPERIMENT.settings["quick"]["seeds"] >= 1
