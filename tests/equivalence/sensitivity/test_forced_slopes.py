"""Slopes that are said to be forced, against all slopes that exceed the target."""

import itertools

import numpy as np
import pytest

from pindown.equivalence.sensitivity._corners_of_changes import cover
from pindown.equivalence.sensitivity._few_changed_biases import common_slopes
from tests.equivalence.sensitivity.chains import all_slopes, random_layers, reached


@pytest.mark.parametrize("widths", [(4,), (3, 3), (2, 3, 2)])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("seed", range(6))
def test_all_that_exceeds_the_target_has_the_forced_slopes(seed, share, widths):
    rng = np.random.default_rng(seed)
    layers, w = random_layers(rng, source=3, widths=widths)
    corners = [np.array(c) for c in itertools.product((0.0, 1.0), repeat=3)]
    values = {
        (tuple(corner), slopes): reached(layers, w, corner, slopes)
        for corner in corners
        for slopes in all_slopes(widths)
    }
    target = share * max(values.values())
    search = cover(layers, w, target, most_open=64)
    assert np.count_nonzero(search.bounds > target) == len(search.open)
    signs = common_slopes(layers, w, target, search.open)
    assert signs is not None
    open_corners = {tuple(at.corner) for at in search.open}
    for (corner, slopes), value in values.items():
        if value > target:
            assert corner in open_corners
            for slope, sign in zip(slopes, signs, strict=True):
                assert np.all((np.array(slope) * 2 - 1) * sign >= 0.0)


def test_slopes_are_forced_at_all_if_the_target_is_near_the_maximum():
    forced = 0
    for seed in range(10):
        layers, w = random_layers(np.random.default_rng(seed), source=3, widths=(4, 4))
        value = cover(layers, w, 0.0).value
        search = cover(layers, w, 0.98 * value, most_open=64)
        signs = common_slopes(layers, w, 0.98 * value, search.open)
        forced += 0 if signs is None else sum(int(np.count_nonzero(sign)) for sign in signs)
    assert forced > 40  # of 80


def test_a_target_that_nothing_reaches_leaves_nothing():
    layers, w = random_layers(np.random.default_rng(3), source=3, widths=(4, 3))
    value = cover(layers, w, 0.0).value
    search = cover(layers, w, 0.9 * value, most_open=64)
    assert common_slopes(layers, w, 2.0 * value, search.open) is None
