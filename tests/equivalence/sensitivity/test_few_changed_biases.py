"""A few changed biases: bounds against exact gaps, and gaps that only signs can rule out."""

import time
from fractions import Fraction
from math import inf

import numpy as np
import pytest

from pindown.box import Box
from pindown.deadline import Deadline
from pindown.equivalence.comparison.methods import narrow
from pindown.equivalence.sensitivity._few_changed_biases import bound_few_biases
from pindown.equivalence.sensitivity._multipliers import SourceChain
from pindown.equivalence.sensitivity.changes import Change, gap_of_changes
from pindown.network import ReluNetwork
from tests.equivalence.nets import random_net


def shifted(net, layer, shift):
    layers = list(net.layers)
    layers[layer] = layers[layer]._replace(bias=layers[layer].bias + shift)
    return ReluNetwork(tuple(layers))


def change_of(net, other, layer):
    before, after = net.layers[layer], other.layers[layer]
    return {layer: Change(np.zeros(before.weight.shape), after.bias - before.bias)}


def exact_gap(net, other, box):
    state = narrow(net, other, box, precision=1e-6, deadline=Deadline.after(60.0))
    assert state.upper <= state.lower * (1.0 + 1e-5)
    return state.lower


def never_both():
    """relu(x - 1) and relu(-x - 1), added and passed through another ReLU: never both are on."""
    return ReluNetwork.from_layers(
        [([[1.0], [-1.0]], [-1.0, -1.0]), ([[1.0, 1.0]], [0.5]), ([[1.0]], [0.0])]
    )


@pytest.mark.parametrize("box", [Box([-3.0], [3.0]), None])
def test_units_that_are_never_on_together(box):
    net, d = never_both(), np.array([1e-3, 1e-3])
    change = {0: Change(np.zeros((2, 1)), d)}
    assert gap_of_changes(net, change, box=box).value == pytest.approx(2e-3, rel=1e-3)
    bound = gap_of_changes(net, change, box=box, target=1.2e-3)
    assert bound.method == "multipliers and signs" and 1e-3 <= bound.value <= 1.2e-3
    # The true gap is that of one unit; no proof can go below it.
    X = np.linspace(-3, 3, 1001)[:, None]
    assert np.abs(shifted(net, 0, d)(X) - net(X)).max() == pytest.approx(1e-3)
    assert gap_of_changes(net, change, box=box, target=0.9e-3).value > 0.9e-3 or box is None


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("seed", range(12))
def test_never_below_the_exact_gap(seed, layer):
    rng = np.random.default_rng(seed)
    net = random_net(rng, [2, 5, 5, 4, 2])
    shift = np.zeros(5)
    shift[rng.permutation(5)[:3]] = 1e-2 * rng.standard_normal(3)
    box = Box.cube(2, -1, 1)
    other = shifted(net, layer, shift)
    exact = exact_gap(net, other, box)
    change = change_of(net, other, layer)
    for share in (0.5, 0.9, 0.999, 1.1, 1.5, 2.0):
        bound = gap_of_changes(net, change, box=box, target=share * exact)
        assert bound.value >= exact * (1.0 - 1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_never_below_gaps_seen_without_a_box(seed):
    rng = np.random.default_rng(seed)
    net = random_net(rng, [2, 4, 4, 2])
    shift = 1e-2 * rng.standard_normal(4)
    other = shifted(net, 0, shift)
    change = change_of(net, other, 0)
    X = np.vstack([rng.standard_normal((20_000, 2)) * scale for scale in (0.01, 0.1, 1.0, 10.0)])
    gaps = np.abs(other(X) - net(X)).max(axis=1) / (1.0 + np.linalg.norm(X, axis=1))
    for share in (0.9, 1.02, 1.2, 1.5, 2.0):
        bound = gap_of_changes(net, change, box=None, target=share * gaps.max())
        assert bound.value >= gaps.max() * (1.0 - 1e-12)


def test_signs_decide_where_free_slopes_cannot():
    # On some of these the best slopes of all are above the target, but no input has them.
    by_signs = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        net = random_net(rng, [2, 5, 5, 4, 1])
        shift = 1e-2 * rng.standard_normal(5)
        other = shifted(net, 0, shift)
        box = Box.cube(2, -1, 1)
        exact, change = exact_gap(net, other, box), change_of(net, other, 0)
        free = gap_of_changes(net, change, box=box).value
        for part in (0.5, 0.8, 0.95):
            bound = gap_of_changes(net, change, box=box, target=exact + part * (free - exact))
            by_signs += bound.method == "multipliers and signs"
    assert by_signs >= 6


def line(*weights):
    return ReluNetwork.from_layers([([[w]], [0.0]) for w in weights])


def exact_value(net, x):
    """Return what a network of one unit per layer gives, in exact fractions."""
    a = Fraction(x)
    for i, (W, b) in enumerate(net.layers):
        z = Fraction(float(W[0, 0])) * a + Fraction(float(b[0]))
        a = z if i == net.depth - 1 else max(z, Fraction(0))
    return a


@pytest.mark.parametrize("box", [Box([-1.0], [1.0]), None])
@pytest.mark.parametrize(
    ("net", "shift", "target"),
    [
        (line(1.0, 5e-324, 1e300), [0.25], 1e-26),  # what the source brings underflows
        (line(*[1e60] * 8), [1e-150], 1e265),  # the target overflows in the scale of the source
        (line(*[1e200] * 3), [1.0], 1.0),  # the norms overflow
        (line(*[1e-70] * 4), [1e-3], 1e-300),
        (line(1e150, 1e-150, 1.0), [1e-9], 1e-12),
    ],
)
def test_extreme_scales_prove_nothing_wrong(net, shift, target, box):
    other = shifted(net, 0, np.array(shift))
    bound = gap_of_changes(net, change_of(net, other, 0), box=box, target=target, budget=2.0)
    gap = abs(exact_value(net, 0.5) - exact_value(other, 0.5)) / (
        1 if box is not None else Fraction(1.5)
    )
    assert gap > 0 and (bound.value == inf or Fraction(bound.value) >= gap)


def test_two_sources_of_which_one_is_lost():
    net = ReluNetwork.from_layers(
        [([[1.0], [1.0]], [0.0, 0.0]), ([[0.0, 1e-100]], [0.0]), ([[1e100]], [0.0]), ([[1.0]], [0.0])]
    )
    change = {0: Change(np.zeros((2, 1)), np.array([1.0, 1e-250]))}
    assert gap_of_changes(net, change, box=Box([-1.0], [1.0])).value >= 1e-250


def test_signs_with_numbers_that_no_solver_takes():
    s = 1e100
    net = ReluNetwork.from_layers(
        [
            ([[1.0], [-1.0], [s]], [-1.0, -1.0, 0.0]),
            ([[1.0, 1.0, 0.0], [0.0, 0.0, s]], [0.5, 0.0]),
            ([[1.0, 1e-300], [1.0, 0.0]], [0.0, 0.0]),
            ([[1.0, 0.0]], [0.0]),
        ]
    )
    change = {0: Change(np.zeros((3, 1)), np.array([1e-3, 1e-3, 0.0]))}
    bound = gap_of_changes(net, change, box=Box([-1e150], [1e150]), target=1.2e-3, budget=3.0)
    assert bound.value >= 1e-3


def test_many_corners_times_many_outputs_keep_to_the_time():
    rng = np.random.default_rng(0)
    net = random_net(rng, [3, 30, 10, 200])
    shift = np.zeros(30)
    shift[:20] = 1e-3 * rng.standard_normal(20)
    start = time.process_time()
    bound = gap_of_changes(net, change_of(net, shifted(net, 0, shift), 0), box=None, budget=1.0)
    assert bound.value < inf and time.process_time() - start < 5.0


def test_a_second_that_is_too_short_for_all_outputs_leaves_the_others_open():
    chain = SourceChain(
        np.ones(2), np.ones((2, 0)), np.zeros(0), 0.0, (np.ones((2, 2)),), np.ones((3, 2))
    )
    found = bound_few_biases(chain, 1.0, Deadline.after(-1.0), collect=True)
    assert np.all(found.bounds == inf) and found.signs() is None
