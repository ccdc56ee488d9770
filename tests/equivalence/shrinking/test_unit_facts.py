"""Bounds and signs of units that shrink rests on, in rational numbers."""

from fractions import Fraction

import numpy as np

from pindown.box import Box
from pindown.deadline import NEVER
from pindown.equivalence.shrinking._duplicate_and_dead_units import drop_units, ratio
from pindown.equivalence.shrinking._linear_carriers import _factored
from pindown.equivalence.shrinking._linear_part import _dependencies, carry_pairs, shift_above
from pindown.equivalence.shrinking._proposals import Draft
from pindown.equivalence.shrinking._rounding_cleanup import clear_faint
from pindown.equivalence.shrinking._unit_facts import unit_bounds
from pindown.network import ReluNetwork


def rationals(values):
    return [Fraction(float(v)) for v in np.ravel(values)]


def inner(a, b):
    return sum((u * v for u, v in zip(rationals(a), rationals(b), strict=True)), Fraction(0))


def test_bounds_without_a_box_are_rounded_outwards():
    """Units without weights are constants, so everything behind them is known exactly."""
    rng = np.random.default_rng(0)
    net = ReluNetwork.from_layers(
        [
            (np.zeros((20, 2)), rng.random(20)),
            (rng.normal(size=(20, 20)), rng.normal(size=20)),
            (rng.normal(size=(20, 20)), rng.normal(size=20)),
        ]
    )
    for values, (low, high) in zip(
        net.as_fractions().trace([0, 0]), unit_bounds(net, None), strict=True
    ):
        for value, a, b in zip(values, low, high, strict=True):
            assert Fraction(a) <= value <= Fraction(b)


def test_bounds_without_a_box_are_rounded_outwards_where_sums_lose_most():
    """Beside 1, terms of 2^-54 are lost one by one, and together they are many."""
    row = np.full((1, 4000), 2.0**-54)
    row[0, 0] = 1.0
    for sign in (1.0, -1.0):
        net = ReluNetwork.from_layers([(np.zeros((4000, 1)), np.ones(4000)), (sign * row, [0])])
        low, high = unit_bounds(net, None)[1]
        assert Fraction(low[0]) <= sign * (1 + 3999 * Fraction(1, 2**54)) <= Fraction(high[0])


def test_bounds_without_a_box_hold_far_out():
    rng = np.random.default_rng(1)
    for _ in range(20):
        net = ReluNetwork.from_layers(
            [
                (rng.normal(size=(5, 2)), rng.normal(size=5)),
                (rng.choice([0.0, 0.0, 1.0, -1.0], (6, 5)), rng.normal(size=6)),
                (rng.choice([0.0, 0.0, 1.0, -1.0], (6, 6)), rng.normal(size=6)),
            ]
        )
        X = rng.normal(size=(1000, 2)) * 10.0 ** rng.uniform(-2, 3, (1000, 1))
        for z, (low, high) in zip(net.trace(X), unit_bounds(net, None), strict=True):
            assert np.all((z >= low - 1e-9) & (z <= high + 1e-9))


def test_signs_at_zero_are_exact():
    rng = np.random.default_rng(2)
    W, box = rng.normal(size=(200, 3)), Box.around(rng.normal(size=(2, 3)))
    ends = [np.where(side * W > 0, box.upper, box.lower) for side in (1, -1)]
    tops = [-(W * end).sum(axis=1) for end in ends]
    bias = np.concatenate([tops[0][:100], tops[1][100:]])
    bias[::7] = np.nextafter(bias[::7], np.inf)
    low, high = unit_bounds(ReluNetwork.from_layers([(W, bias)]), box)[0]
    for i in range(200):
        top, bottom = (inner(W[i], end[i]) + Fraction(bias[i]) for end in ends)
        assert Fraction(low[i]) <= bottom and top <= Fraction(high[i])
        assert (high[i] <= 0) == (top <= 0) and (low[i] >= 0) == (bottom >= 0)


def test_shifts_lift_what_is_carried_above_zero():
    lower = np.random.default_rng(3).normal(size=300) * 10.0 ** np.linspace(-300, 300, 300)
    for low, shift in zip(lower, shift_above(lower), strict=True):
        if low >= 0:
            assert shift == 0.0
        else:
            assert 0 < Fraction(low) + Fraction(shift) <= Fraction(abs(low)) / 32
            assert Fraction(shift) / Fraction(abs(low)) > 1


def test_factors_of_copies_are_known_to_their_error():
    rng = np.random.default_rng(5)
    for a, b in rng.integers(1, 100, (50, 2)):
        factor, error = ratio(np.array([1.0 * a, 2.0 * a]), np.array([1.0 * b, 2.0 * b]))
        assert abs(Fraction(int(b), int(a)) - Fraction(factor)) <= Fraction(error)
        assert (error == 0.0) == (Fraction(factor) * int(a) == int(b))


def test_pairs_that_cancel_are_carried_without_a_change():
    """2 relu(x - 1) - 2 relu(1 - x) + relu(x) on [-3, 3]."""
    hidden = ([[1.0], [-1.0], [1.0]], [-1, 1, 0])
    net = ReluNetwork.from_layers([hidden, ([[2.0, -2.0, 1.0]], [0.5])])
    draft = Draft(net, Box([-3], [3]), 1e-3, NEVER, 1.0)
    assert carry_pairs(draft, 0) and draft.net.widths == (1, 2, 1)
    for x in (-3, -1, 0, 1, 2, 3):
        assert draft.net.as_fractions()([x]) == net.as_fractions()([x])


def test_units_that_are_always_on_are_no_constants():
    net = ReluNetwork.from_layers([([[1.0], [1.0]], [3, 0]), ([[1.0, 2.0]], [0])])
    draft = Draft(net, Box([-1], [1]), 0.0, NEVER, 1.0)
    assert not drop_units(draft, 0)
    level = ReluNetwork.from_layers([([[0.0], [1.0]], [3, 0]), ([[1.0, 2.0]], [0])])
    draft = Draft(level, Box([-1], [1]), 0.0, NEVER, 1.0)
    assert drop_units(draft, 0) and draft.net.size == 1
    assert draft.net([[0.5], [-0.5]]).ravel().tolist() == [4.0, 3.0]


def test_only_rows_that_depend_exactly_do():
    _, others, X = _dependencies(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    assert len(others) == 1 and np.isfinite(X).all()
    _, others, _ = _dependencies(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0 + 2.0**-40]]))
    assert not len(others)


def test_maps_of_lower_rank_are_off_by_what_is_charged():
    rng = np.random.default_rng(4)
    for _ in range(10):
        C, W = rng.normal(size=(3, 6)), rng.normal(size=(6, 2)) @ rng.normal(size=(2, 4))
        box = Box.around(rng.normal(size=(2, 4)))
        U, V, shift, off = _factored(C, W, box)
        assert len(V) == 2
        reach = np.maximum(np.abs(box.lower), np.abs(box.upper))
        for c, u, bound in zip(C, U, off, strict=True):
            wrong = [abs(inner(c, W[:, j]) - inner(u, V[:, j])) for j in range(4)]
            assert sum(w * r for w, r in zip(wrong, rationals(reach), strict=True)) <= Fraction(bound)
        assert np.all(box.sample(200, rng) @ V.T + shift >= 0) and off.max() < 1e-12


def test_cleared_weights_are_charged():
    net = ReluNetwork.from_layers([([[1.0], [2.0]], [0, 1]), ([[1.0, 1e-15]], [1.0]), ([[3.0]], [0])])
    draft = Draft(net, Box([-1], [1]), 1e-3, NEVER, 1.0)
    assert clear_faint(draft, 0)
    assert draft.net.layers[1].weight.tolist() == [[1.0, 0.0]]
    true = abs(net.as_fractions()([1])[0] - draft.net.as_fractions()([1])[0])
    assert 0 < true <= Fraction(draft.gap) < 2 * true
