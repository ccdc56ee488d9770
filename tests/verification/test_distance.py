"""The distance to another class: three exact ways that agree, and ends that are never crossed."""

import time
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.box import Box
from pindown.geometry.exact.complex import exact_complex
from pindown.guarantees import minimum_distance
from pindown.probes import linear_distance
from pindown.programs import SOLVER_TOLERANCE
from pindown.relaxation.lp_balls import NORMS, lengths
from pindown.verification.classes import classifier
from pindown.verification.counterexamples import float32_outputs
from tests.geometry.hostile import HOSTILE, hostile_network
from tests.verification.nets import random_changes, random_network

ABSOLUTE = [([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [-2])]  # class 1 where |x| > 2


def check(net, x, result, box=None):
    """Check what holds for every result."""
    assert 0.0 <= result.lower <= result.upper
    if result.witness is None:
        assert result.upper == np.inf and result.other is None
        return
    values = net(result.witness)
    winner = int(values[0] > 0) if net.out_features == 1 else int(values.argmax())
    assert winner == result.other != result.label
    gap = float(lengths(result.witness - x, result.norm))
    assert gap <= result.upper <= gap * (1 + 1e-9) + 1e-300
    assert box is None or Box.contains(box, result.witness).all()


@pytest.mark.parametrize(
    ("norm", "method"),
    [*product(NORMS, ["auto", "cells"]), ("l1", "programs"), ("linf", "programs")],
)
def test_linear_networks_agree_with_the_closed_form(norm, method):
    rng = np.random.default_rng(0)
    for k in (1, 2, 4):
        W, b, x = rng.standard_normal((k, 3)), rng.standard_normal(k), rng.standard_normal(3)
        net = ReluNetwork.from_layers([(W, b)])
        found = minimum_distance(net, x, norm, method=method)
        exact = linear_distance(W, b, x, norm=norm)[0]
        check(net, x, found)
        assert found.upper == pytest.approx(exact, rel=1e-6)
        assert found.lower == pytest.approx(exact, rel=1e-6 if method != "programs" else 1e-3)


@pytest.mark.parametrize("norm", ["linf", "l1"])
def test_cells_and_programs_agree(norm):
    rng = np.random.default_rng(1)
    for widths in ([1, 5, 2], [2, 5, 3], [2, 3, 3, 1]):
        net, x = random_network(rng, widths), rng.standard_normal(widths[0])
        box = Box(x - 4, x + 4)
        cells = minimum_distance(net, x, norm, method="cells", box=box)
        programs = minimum_distance(net, x, norm, method="programs", box=box)
        for found in (cells, programs):
            check(net, x, found, box)
        if np.isfinite(cells.upper):
            assert cells.complete and cells.upper == pytest.approx(programs.upper, rel=1e-6)
            assert programs.lower <= cells.upper and programs.lower >= 0.9 * cells.upper


def nearest_on_a_grid(net, x, norm, reach, steps):
    """The nearest grid point of another class, by brute force."""
    axes = [np.linspace(c - reach, c + reach, steps) for c in x]
    points = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(x))
    other = net(points).argmax(axis=1) != net(x).argmax()
    return lengths(points[other] - x, norm).min(initial=np.inf)


@pytest.mark.parametrize("norm", NORMS)
def test_distance_agrees_with_a_fine_grid(norm):
    rng = np.random.default_rng(2)
    compared = 0
    for _ in range(2):
        net, x = random_network(rng, [2, 5, 3]), rng.standard_normal(2)
        box = Box(x - 2, x + 2)
        found = minimum_distance(net, x, norm, box=box)
        grid = nearest_on_a_grid(net, x, norm, 2.0, 401)
        check(net, x, found, box)
        assert found.complete and found.upper <= grid + 1e-9
        if np.isfinite(grid):
            compared += 1
            assert found.lower >= grid - 3 * 0.01
    assert compared >= 1


@pytest.mark.parametrize("norm", NORMS)
def test_relaxation_is_never_above_the_exact_value(norm):
    rng = np.random.default_rng(3)
    for _ in range(2):
        net, x = random_network(rng, [2, 4, 3, 2]), rng.standard_normal(2)
        box = (x - 3, x + 3)
        exact = minimum_distance(net, x, norm, method="cells", box=box)
        loose = minimum_distance(net, x, norm, method="relaxation", box=box)
        check(net, x, loose)
        assert loose.lower <= exact.upper * (1 + 1e-9) and exact.lower <= loose.upper
        inner = x + 0.999 * min(exact.lower, 3.0) * random_changes(rng, 2000, 2, norm)
        inner = inner[(np.abs(inner - x) <= 3).all(axis=1)]
        assert (net(inner).argmax(axis=1) == exact.label).all()


def test_duplicated_and_rescaled_units_change_nothing():
    """Folds that coincide are crossed together."""
    rng = np.random.default_rng(4)
    net, x = random_network(rng, [2, 4, 3]), rng.standard_normal(2)
    (W, b), (V, c) = net.layers
    twins = ReluNetwork.from_layers(
        [
            (np.vstack([W, 2 * W, -W]), np.concatenate([b, 2 * b, -b])),
            (np.hstack([V / 2, V / 4, 0 * V]), c),
        ]
    )
    box = (x - 4, x + 4)
    for norm in NORMS:
        one, two = (minimum_distance(n, x, norm, box=box, method="cells") for n in (net, twins))
        assert one.complete == two.complete
        assert one.upper == pytest.approx(two.upper, rel=1e-6)


def test_deep_network_without_biases():
    """There units of deeper layers vanish on whole cells."""
    rng = np.random.default_rng(5)
    net = ReluNetwork.from_layers(
        [(rng.standard_normal((m, n)), np.zeros(m)) for n, m in ((2, 5), (5, 4), (4, 2))]
    )
    x = np.array([1.0, 0.3])
    found = minimum_distance(net, x, "l2", box=(x - 3, x + 3))
    grid = nearest_on_a_grid(net, x, "l2", 3.0, 801)
    check(net, x, found)
    assert found.lower <= grid and found.upper <= grid + 1e-9


def test_distances_scale_and_shift_with_the_input():
    rng = np.random.default_rng(6)
    net, x = random_network(rng, [2, 5, 2]), rng.standard_normal(2)
    (W, b), last = net.layers
    shift = np.array([10.0, -4.0])
    moved = ReluNetwork.from_layers([(W / 8, b - W / 8 @ shift), last])
    here = minimum_distance(net, x, "l1", box=(x - 4, x + 4))
    there = minimum_distance(moved, 8 * x + shift, "l1", box=(8 * x + shift - 32, 8 * x + shift + 32))
    assert there.upper == pytest.approx(8 * here.upper, rel=1e-6)


def test_order_of_norms():
    rng = np.random.default_rng(7)
    net, x = random_network(rng, [3, 6, 2]), rng.standard_normal(3)
    found = {norm: minimum_distance(net, x, norm, box=(x - 5, x + 5)) for norm in NORMS}
    assert found["linf"].lower <= found["l2"].upper and found["l2"].lower <= found["l1"].upper


def test_tie_at_the_input_is_distance_zero():
    net = ReluNetwork.from_layers([(np.eye(2), [0, 0])])
    found = minimum_distance(net, [1.0, 1.0])
    assert found.lower == found.upper == 0.0 and found.complete
    np.testing.assert_array_equal(found.witness, [1.0, 1.0])
    assert (found.label, found.other) == (0, 1)


def test_one_output_is_a_class_by_sign():
    net = ReluNetwork.from_layers(ABSOLUTE)
    inside, outside = minimum_distance(net, [0.5]), minimum_distance(net, [3.0], "l1")
    assert inside.upper == pytest.approx(1.5) and (inside.label, inside.other) == (0, 1)
    assert outside.upper == pytest.approx(1.0) and (outside.label, outside.other) == (1, 0)


def test_no_other_class_is_infinitely_far():
    always = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [1])])
    for box in (None, (-5, 5)):
        found = minimum_distance(always, [0.5], box=box, budget=10.0)
        assert found.lower == found.upper == np.inf and found.witness is None and found.complete
        assert "no input" in repr(found)


def test_a_class_that_no_attack_finds_is_not_denied():
    """A tent of width 2e-6 on a flat ground: gradients vanish, samples miss it, bounds do not."""
    place, width = 0.907, 1e-6
    tent = ReluNetwork.from_layers(
        [
            (np.ones((3, 1)), [width - place, -place, -width - place]),
            (np.array([[1.0, -2.0, 1.0]]) / width, [-0.5]),
        ]
    )
    found = minimum_distance(tent, [-0.9], box=(-1, 1), method="relaxation")
    assert 0.5 < found.lower <= place + 0.9 - width / 2


def test_box_keeps_the_witness_inside():
    net = ReluNetwork.from_layers(ABSOLUTE)
    found = minimum_distance(net, [1.0], box=([-9.0], [1.5]))
    assert found.upper == pytest.approx(3.0) and found.witness[0] < -2
    flat = minimum_distance(
        ReluNetwork.from_layers([(np.eye(2), [0, 0])]), [3.0, 1.0], box=([0, 1], [9, 1])
    )
    assert flat.upper == pytest.approx(2.0, rel=1e-6) and flat.witness[1] == 1.0


def test_touching_without_crossing_is_an_honest_interval():
    """Output 1 reaches output 0 at x = 1 and never exceeds it: a tie, but no other class."""
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [-1, 1]), ([[1.0, 1.0], [0.0, 0.0]], [0, 0])])
    found = minimum_distance(net, [3.0], box=(0, 5), budget=5.0)
    assert found.label == 0 and found.lower <= 2.0 and found.upper == np.inf


def test_budget_is_kept_and_more_time_is_no_worse():
    rng = np.random.default_rng(8)
    net, x = random_network(rng, [20, 40, 40, 5]), rng.standard_normal(20)
    began = time.monotonic()
    short = minimum_distance(net, x, budget=0.0)
    assert time.monotonic() - began < 60.0
    longer = minimum_distance(net, x, budget=2.0)
    for found in (short, longer):
        check(net, x, found)
    assert longer.lower <= short.upper and short.lower <= longer.upper


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": [np.nan]}, "finite"),
        ({"x": [1.0, 2.0]}, "shape"),
        ({"x": [[1.0], [2.0]]}, "one input"),
        ({"x": [1.0], "norm": "l7"}, "norm must be"),
        ({"x": [1.0], "box": (2, 3)}, "outside the box"),
        ({"x": [1.0], "budget": -1.0}, "budget"),
        ({"x": [1.0], "method": "prayer"}, "method must be"),
        ({"x": [1.0], "norm": "l2", "method": "programs"}, "linear"),
    ],
)
def test_bad_questions_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        minimum_distance(ReluNetwork.from_layers(ABSOLUTE), **arguments)


def test_something_else_than_a_network_is_refused():
    with pytest.raises(TypeError, match="ReluNetwork"):
        minimum_distance(lambda x: x, [1.0])


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["linf", "l1"])
def test_cells_and_programs_agree_on_many_networks(norm):
    rng = np.random.default_rng(9)
    for _ in range(60):
        widths = [int(rng.integers(1, 4)), *rng.integers(2, 8, 2).tolist(), int(rng.integers(2, 4))]
        net, x = random_network(rng, widths), rng.standard_normal(widths[0])
        box = Box(x - 5, x + 5)
        cells = minimum_distance(net, x, norm, method="cells", box=box)
        programs = minimum_distance(net, x, norm, method="programs", box=box)
        if np.isfinite(cells.upper):
            assert cells.complete and cells.upper == pytest.approx(programs.upper, rel=1e-6)


def rational_distance(net, x, box):
    """The distance of x on a line to the nearest tie or other class, rational; None if there is none."""
    cells, here = exact_complex(net, box), Fraction(float(x[0]))
    values = net.as_fractions()([here])
    label, found = values.index(max(values)), []
    for (low, high), rows in zip(cells.vertices, cells.maps, strict=True):
        for j in range(len(rows)):
            slope, offset = (a - b for a, b in zip(rows[label], rows[j], strict=True))
            ends = [p[0] for p in (low, high) if slope * p[0] + offset <= 0]
            if slope and low[0] <= -offset / slope <= high[0]:
                ends.append(-offset / slope)
            if j != label and ends:
                found.append(max(min(ends) - here, here - max(ends), Fraction(0)))
    return min(found, default=None)


@pytest.mark.parametrize("family", HOSTILE)
@pytest.mark.parametrize("method", ["cells", "auto"])
def test_no_tie_is_nearer_than_proved_in_rational_numbers(family, method):
    for seed in range(4):
        rng = np.random.default_rng([seed, HOSTILE.index(family)])
        net, box = hostile_network(rng, 1, family, outputs=1 + seed % 3)
        x = box.sample(1, rng)[0] if seed else box.center
        truth = rational_distance(classifier(net), x, box)
        found = minimum_distance(net, x, NORMS[seed % 3], method=method, box=box, budget=0.4)
        assert truth is None or found.lower <= truth
        if found.witness is not None:
            assert truth <= found.upper
            assert abs(Fraction(float(found.witness[0])) - Fraction(float(x[0]))) <= found.upper


@pytest.mark.parametrize("large", [1e12, 1e15])
def test_cancelling_weights_move_no_bound_beyond_the_truth(large):
    """The class changes at -0.65, where the sum of two huge weights is 1."""
    net = ReluNetwork.from_layers([([[1.0], [1.0]], [0.7, 0.7]), ([[large, 1 - large]], [-0.05])])
    truth = rational_distance(classifier(net), np.array([1.0]), Box([-9.0], [9.0]))
    for method in ("cells", "auto", "relaxation", "programs"):
        found = minimum_distance(net, [1.0], method=method, budget=1.0)
        assert found.lower <= truth <= found.upper
        if method == "cells":
            assert found.lower == pytest.approx(float(truth), rel=1e-9)
            assert "proved for the real-number network" in found.assumptions[0]


@pytest.mark.parametrize("norm", ["linf", "l1"])
def test_programs_take_off_the_tolerance_of_the_solver(norm):
    """Class 1 begins at x = 1: what a solver says of it is good to its tolerance only."""
    net = ReluNetwork.from_layers([([[1.0]], [0.0]), ([[1.0]], [-1.0])])
    found = minimum_distance(net, [0.25], norm, method="programs", box=(0, 4), budget=5.0)
    assert 0.75 * (1 - 1e-4) < found.lower < 0.75 * (1 - SOLVER_TOLERANCE)


def test_outputs_that_only_look_equal_are_no_tie():
    """The second output is larger by 1e-17 everywhere; float64 sums see no difference at x."""
    last = ([[1.0, 1.0], [1.0, 1.0]], [0.0, 1e-17])
    net = ReluNetwork.from_layers([([[1.0], [1.0]], [1.0, 0.0]), last])
    found = minimum_distance(net, [0.5], box=(0, 1), budget=1.0)
    assert net(np.array([0.5]))[0] == net(np.array([0.5]))[1]
    assert found.label == 1 and found.upper == np.inf and found.method != "a tie at x"


def test_folds_through_the_input_and_opposite_twins():
    """At a corner of many folds all patterns around it are looked at; the classes meet at distance 1."""
    W = [[1.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]]
    net = ReluNetwork.from_layers([(W, np.zeros(5)), ([[2.0, 1.0, 1.0, 1.0, 1.0]], [-2.0])])
    found = minimum_distance(net, [0.0, 0.0], "l1", method="cells")
    nearest = min(
        2 / float(net(np.array(v, dtype=float))[0] + 2) for v in ([1, 0], [-1, 0], [0, 1], [0, -1])
    )
    assert found.complete and found.upper == pytest.approx(nearest)


@pytest.mark.parametrize("norm", NORMS)
def test_a_witness_says_what_it_is_in_float32(norm):
    rng = np.random.default_rng(6)
    for _ in range(3):
        net, x = random_network(rng, [6, 24, 24, 4]), rng.standard_normal(6)
        found = minimum_distance(net, x, norm, method="relaxation", budget=2.0)
        label = found.label
        assert found.margin < 0
        values = float32_outputs(net, found.witness[None])[0]
        assert found.float32_margin == values[label] - np.delete(values, label).max()
        other = found.float32_witness
        assert lengths(other - x, norm) <= 1.02 * found.upper
        order = [rng.permutation(width) for width in net.hidden_widths]  # sums in another order
        for shuffled in (net, _permuted(net, order)):
            values = float32_outputs(shuffled, other[None])[0]
            assert np.argmax(values) != label != np.argmax(net(other))


def _permuted(net, orders):
    layers, before = [], np.arange(net.in_features)
    for (W, b), order in zip(net.layers, [*orders, np.arange(net.out_features)], strict=True):
        layers.append((W[order][:, before], b[order]))
        before = order
    return ReluNetwork.from_layers(layers)


def test_programs_that_the_solver_refuses_prove_nothing():
    """Coefficients of 1e35 behind a unit that is never on: to SciPy the program is infeasible."""
    first = [[-0.0898836529958068, -5.36621818889372e-20], [-7.0183347633587254e-06, 9.7e-26]]
    second = [
        [-126586.94, 2.15e17],
        [-15944610.4, -6.42e27],
        [18320738883.8, -5.7e12],
        [-3.2e22, 7927.8],
    ]
    layers = [(first, [-1.17e-24, -189.3]), (second, [2.9e-26, -1.9e-27, -2.9e-30, 2.06])]
    last = [([[1.4e-29, -5e-17, -2.2e-23, 1.1e25]], [0.0]), ([[12687.5]], [-10.26])]
    net, x = ReluNetwork.from_layers([*layers, *last]), [1e-314, 1.6e-314]
    exact = minimum_distance(net, x, method="cells", budget=5)
    assert minimum_distance(net, x, method="programs", budget=5).lower <= exact.upper
