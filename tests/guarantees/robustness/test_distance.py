"""The distance to another class: three exact ways that agree, and ends that are never crossed."""

import time
from itertools import product

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry.box import Box
from pindown.guarantees import minimum_distance
from pindown.guarantees.robustness import linear_distance
from pindown.guarantees.robustness.norms import NORMS, lengths
from tests.guarantees.robustness.nets import random_changes, random_network

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
