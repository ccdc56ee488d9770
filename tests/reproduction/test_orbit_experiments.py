"""Experiments on orbits: their cells give what the rules ask for, and the rules can fail."""

import copy

import pytest

from pindown_reproduction import EXPERIMENTS

SPOIL = {
    "orbit-simulations": lambda found: found.update(within=[1.0, *found["within"][1:]]),
    "illumination-signature": lambda found: found["bumps"].update(ratio=0.1),
    "mirror-symmetry": lambda found: found.update(learned=0.5),
}


@pytest.mark.parametrize("name", SPOIL)
def test_a_cell_meets_the_rule_and_a_spoiled_one_does_not(name):
    experiment = EXPERIMENTS[name]
    cell = experiment.cells(experiment.settings["quick"])[0]
    found = experiment.run(cell)
    assert experiment.compare([(cell, found)]).verdict == "reproduced"
    spoiled = copy.deepcopy(found)
    SPOIL[name](spoiled)
    assert experiment.compare([(cell, spoiled)]).verdict == "not reproduced"
    assert experiment.draw([(cell, found)]).axes


def test_rings_of_a_photograph_turn_by_shifting():
    """Samples on rings of the turned photograph are the shifted samples: the action is exact."""
    import numpy as np

    from pindown_reproduction.course.orbit_simulations import _stimuli

    group, X = _stimuli("rotated patches", 3, 0)
    assert group.order == 12 and X.shape == (3, 48)
    turned = group.act(1, X).reshape(3, 4, 12)
    assert np.array_equal(turned, np.roll(X.reshape(3, 4, 12), 1, axis=2))
