"""Pooling over a part of a group changes only by what happens on the boundary of the part."""

import numpy as np
import pytest

from pindown.symmetry import cyclic, symmetric
from pindown.symmetry.families import Window
from pindown.symmetry.measure.errors import invariance


def bump(n, centre, width=2):
    x = np.zeros(n)
    x[centre - width : centre + width + 1] = 1.0 + np.arange(2 * width + 1) ** 2
    return x


def test_responses_inside_the_window_make_pooling_exact():
    n, group = 64, cyclic(64)
    window = Window.of(group, range(10, 55))
    template, x = bump(n, 0 + 2), bump(n, 32)
    first = window.pool(x, template)
    assert first > 0
    for shift in range(-10, 11):
        moved = group.act(shift % n, x)
        assert window.error_bound(x, template, shift % n) == 0.0
        assert window.pool(moved, template) == first


def test_the_bound_holds_for_every_shift_and_template():
    rng, group = np.random.default_rng(0), cyclic(20)
    window = Window.of(group, range(7))
    for _ in range(20):
        x, template = rng.standard_normal((2, 20))
        for shift in range(20):
            change = abs(window.pool(group.act(shift, x), template) - window.pool(x, template))
            assert change <= window.error_bound(x, template, shift) + 1e-12


def test_the_boundary_is_of_the_side_that_matters_in_a_group_that_does_not_commute():
    rng, group = np.random.default_rng(1), symmetric(4).permuting()
    window = Window.of(group, rng.choice(24, 9, replace=False))
    x, template = rng.standard_normal((2, 4))
    for g in range(24):
        edge = window.boundary(g)
        inside = set(window.members)
        moved = {int(group.table[group.inverses[g], i]) for i in inside}
        responses = np.abs(window.responses(x, template))
        change = sum(responses[i] for i in moved) - sum(responses[i] for i in inside)
        assert set(edge) == moved ^ inside
        assert window.pool(group.act(g, x), template) - window.pool(x, template) == pytest.approx(change)


def test_the_whole_group_has_no_boundary_and_windows_can_be_measured():
    group = cyclic(6)
    assert Window.of(group, range(6)).boundary(2) == ()
    found = invariance(
        np.sort, Window.of(group, [1, 3]), np.random.default_rng(0).standard_normal((5, 6))
    )
    assert found.error == 0.0 and found.elements == (1, 3)
    with pytest.raises(ValueError, match="from 0 to 5"):
        Window.of(group, [6])
    with pytest.raises(ValueError, match="one shape"):
        Window.of(group, [1]).pool(np.zeros(6), np.zeros(5))
