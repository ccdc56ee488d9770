"""Disagreements of classifiers: found where they are, excluded where they are not."""

import warnings

import numpy as np
import pytest

from pindown.deadline import Deadline
from pindown.equivalence.comparison._labels import (
    label_bounds,
    narrow_labels,
    proved_label_gap,
    search_labels,
)
from pindown.network import ReluNetwork
from tests.equivalence.comparison.nets import perturbed, random_net, unit_box


def disagreement(a, b, X):
    """The definition, row by row."""
    f, g = a(X), b(X)
    values = []
    for p, q in zip(f, g, strict=True):
        i, j = np.argmax(p), np.argmax(q)
        values.append(0.0 if i == j else min(p[i] - p[j], q[j] - q[i]))
    return np.array(values)


@pytest.mark.parametrize("size", [1e-3, 0.3, 2.0])
@pytest.mark.parametrize("k", [2, 4])
def test_bounds_dominate_sampling(size, k):
    rng = np.random.default_rng(1)
    for _ in range(3):
        a = random_net((3, 8, 8, k), rng)
        b = perturbed(a, size, rng)
        box = unit_box(3)
        seen = disagreement(a, b, box.sample(4000, rng)).max()
        upper, _ = label_bounds(a, b, box.lower[None], box.upper[None])
        state = narrow_labels(a, b, box, deadline=Deadline.after(0.3))
        assert seen <= upper[0]
        assert seen <= state.upper
        assert state.lower <= state.upper
        assert state.lower == 0.0 or disagreement(a, b, state.witness[None])[0] >= state.lower


def test_search_finds_disagreements_that_samples_show():
    rng = np.random.default_rng(2)
    for _ in range(10):
        a, b = random_net((4, 8, 3), rng), random_net((4, 8, 3), rng)
        seen = disagreement(a, b, unit_box(4).sample(2000, rng)).max()
        found = search_labels(a, b, unit_box(4))
        assert found.gap >= 0.8 * seen
        if found.gap > 0:
            assert np.argmax(a(found.point)) == found.first
            assert np.argmax(b(found.point)) == found.second


def test_a_swap_below_the_top_is_no_disagreement():
    a = ReluNetwork.from_layers([(np.zeros((3, 1)), [9.0, 1.0, 0.0])])
    b = ReluNetwork.from_layers([(np.zeros((3, 1)), [9.0, 0.0, 1.0])])
    state = narrow_labels(a, b, unit_box(1))
    assert (state.lower, state.upper) == (0.0, 0.0)


def test_margin_decides():
    a = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0])])
    b = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 1])])
    assert narrow_labels(a, b, unit_box(1), margin=0.4).lower > 0.4
    assert narrow_labels(a, b, unit_box(1), margin=0.6).upper <= 0.6


def test_without_a_box():
    a = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0])])
    b = ReluNetwork.from_layers([([[-1.0], [1.0]], [0, 0])])
    found = search_labels(a, b, None)
    assert 1.9 < found.gap <= 2.0
    assert proved_label_gap(a, a, np.array([1.0])).gap == 0.0


def test_one_output_has_no_labels():
    a = ReluNetwork.from_layers([([[1.0]], [0])])
    with pytest.raises(ValueError, match="two outputs"):
        search_labels(a, a, unit_box(1))


def test_slopes_whose_squares_leave_float64_cause_no_warning():
    """The lengths of slopes of 1e200 overflow; the search goes on without a word, and is right."""
    a = ReluNetwork.from_layers([([[1e200], [-1e200]], [0.0, 0.0])])
    b = ReluNetwork.from_layers([([[1e200], [-1e200]], [0.0, 1e199])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = search_labels(a, b, None)
    assert 0 < found.gap < 1e199
