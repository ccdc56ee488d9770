"""Bounds on the difference contain it, and tying matched units makes them small."""

from fractions import Fraction

import numpy as np
import pytest

from pindown.equivalence.gap.relaxation import gap_bounds
from pindown.equivalence.gap.tied import tied
from pindown.geometry.linear_bounds import relax
from pindown.network import ReluNetwork
from tests.equivalence.gap.nets import exact_gap, perturbed, random_net, unit_box


@pytest.mark.parametrize("size", [0.0, 1e-13, 1e-7, 1e-3, 0.3, 3.0])
@pytest.mark.parametrize("widths", [(2, 4, 1), (3, 6, 5, 2), (2, 5, 5, 5, 1)])
def test_upper_bounds_hold_in_exact_arithmetic(widths, size):
    rng = np.random.default_rng(1)
    for scale in (1.0, 1e-100, 1e70):
        a = random_net(widths, rng, scale)
        b = perturbed(a, size, rng)
        lower = np.stack([-np.ones(widths[0]), rng.normal(size=widths[0])])
        upper = lower + np.array([[2.0], [1e-3]])
        bounds, _ = gap_bounds(a, b, lower, upper)
        for low, high, bound in zip(lower, upper, bounds, strict=True):
            mix = rng.random((4, widths[0]))
            for x in [low, high, *np.clip(low + mix * (high - low), low, high)]:
                assert bound == np.inf or exact_gap(a, b, x) <= Fraction(float(bound))


def test_unequal_shapes_are_bounded_too():
    rng = np.random.default_rng(2)
    a, b = random_net((3, 6, 6, 2), rng), random_net((3, 9, 2), rng)
    box = unit_box(3)
    bounds, _ = gap_bounds(a, b, box.lower[None], box.upper[None])
    X = box.sample(5000, rng)
    assert np.abs(a(X) - b(X)).max() <= bounds[0]
    with pytest.raises(ValueError, match="equal widths"):
        tied(*(relax(net, box.lower[None], box.upper[None]) for net in (a, b)))


def test_equal_networks_have_no_difference():
    a = random_net((5, 30, 30, 30, 3), np.random.default_rng(3))
    box = unit_box(5)
    bounds, _ = gap_bounds(a, a, box.lower[None], box.upper[None])
    assert bounds[0] < 1e-290


def test_tied_bounds_shrink_with_the_difference_and_independent_ones_do_not():
    rng = np.random.default_rng(4)
    a, box = random_net((4, 20, 20, 20, 3), rng), unit_box(4)
    b = perturbed(a, 1e-8, rng)
    first, second = (relax(net, box.lower[None], box.upper[None]) for net in (a, b))
    alone = np.max(first.bounds[-1].upper - second.bounds[-1].lower)
    together = gap_bounds(a, b, box.lower[None], box.upper[None])[0][0]
    X = box.sample(5000, rng)
    seen = np.abs(a(X) - b(X)).max()
    assert together < 300 * seen
    assert alone > 20_000 * together


def test_forms_lie_above_the_difference():
    rng = np.random.default_rng(5)
    a, box = random_net((3, 8, 8, 2), rng), unit_box(3)
    b = perturbed(a, 0.1, rng)
    _, forms = gap_bounds(a, b, box.lower[None], box.upper[None])
    X = box.sample(2000, rng)
    delta = a(X) - b(X)
    assert np.all(X @ forms.weight[0].T + forms.offset[0] >= np.hstack([delta, -delta]) - 1e-12)


def test_every_pattern_of_signs_of_a_pair_is_enclosed():
    # One unit each, of all stable and unstable kinds.
    for ba in (-2.0, -0.5, 0.0, 0.5, 2.0):
        for bb in (-2.0, -0.5, 0.0, 0.5, 2.0):
            for wb in (1.0, -1.0, 0.3):
                a = ReluNetwork.from_layers([([[1.0]], [ba]), ([[1.0]], [0]), ([[1.0]], [0])])
                b = ReluNetwork.from_layers([([[wb]], [bb]), ([[1.0]], [0]), ([[1.0]], [0])])
                pair = tied(*(relax(net, np.array([[-1.0]]), np.array([[1.0]])) for net in (a, b)))
                X = np.linspace(-1, 1, 101)[:, None]
                delta = (a(X) - b(X))[:, 0]
                assert pair.deltas[-1].lower[0, 0] <= delta.min()
                assert pair.deltas[-1].upper[0, 0] >= delta.max()
