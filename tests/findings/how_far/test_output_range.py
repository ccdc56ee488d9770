"""What is said from the weights and a box alone: outputs, inputs, bends."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from pindown import ReluNetwork
from pindown._audit import audit
from pindown.circuits import composed_zigzags
from pindown.findings.which_function.inputs import connected_inputs


def random_net(widths, seed=0):
    rng = np.random.default_rng(seed)
    return ReluNetwork.from_layers(
        [(rng.standard_normal((m, n)), rng.standard_normal(m)) for n, m in itertools.pairwise(widths)]
    )


def ask(net, code, **given):
    finding = audit(net, only=[code], budget=120.0, **given)[code]
    assert finding.answered, finding.verdict
    return finding


def test_outputs_stay_in_the_proved_range():
    net = random_net((3, 8, 8, 2), seed=1)
    table = ask(net, "OUT-01", box=(-2, 2)).table
    grid = np.array(list(itertools.product(np.linspace(-2, 2, 17), repeat=3)))
    values = net(grid)
    for k, lower, low, high, upper in table.rows:
        assert lower <= values[:, k].min() and values[:, k].max() <= upper
        assert lower <= low <= high <= upper


def test_the_better_of_two_bounds_counts():
    """Intervals lose that x + 5 is taken from itself; the range is as many times too wide as is said."""
    net = ReluNetwork.from_layers([([[1.0], [1.0]], [5.0, 5.0]), ([[1.0, -1.0], [1.0, 1.0]], [0, 0])])
    rows = ask(net, "OUT-01", box=(-1, 1)).table.rows
    assert rows[0][1] == pytest.approx(0.0, abs=1e-9) and rows[0][4] == pytest.approx(0.0, abs=1e-9)
    assert rows[1][1:] == pytest.approx((8.0, 8.0, 12.0, 12.0), abs=0.01)
    loose = ask(random_net((3, 8, 8, 1), seed=1), "OUT-01", box=(-2, 2))
    _, lower, low, high, upper = loose.table.rows[0]
    ratio = (upper - lower) / (high - low)
    assert ratio > 1.2 and f"is {ratio:.1f} times as wide" in loose.scale


def test_outputs_that_never_win_are_named_and_only_those():
    W, b = [[1.0], [0.0], [0.0]], [0.0, 0.5, -5.0]  # x, 1/2, -5 on [-1, 1]
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), (np.array(W) @ [[1.0, -1.0]], b)])
    finding = ask(net, "OUT-01", box=(-1, 1))
    assert finding.verdict.endswith("never the largest: 2")
    assert finding.sentence == "On the given box [-1, 1] output 2 is never the largest."
    random = ask(net, "OUT-02", box=(-1, 1))
    share, n = random.number.value, random.number.n
    assert random.number.standard_error == pytest.approx(np.sqrt(share * (1 - share) / n))
    shares = {row[0]: row[1] for row in random.table.rows}
    assert shares[2] == 0.0 and abs(shares[0] - 0.25) < 0.03  # x > 1/2 on a quarter of [-1, 1]


def test_one_output_has_a_mean_and_a_range():
    absolute = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    found = ask(absolute, "OUT-02", box=(-1, 1)).number
    assert abs(found.value - 0.5) < 5 * found.standard_error + 1e-9
    assert found.standard_error * np.sqrt(found.n) == pytest.approx(1 / np.sqrt(12), rel=0.05)
    assert ask(absolute, "OUT-01").sentence.startswith("On the reference box [-1, 1] its output stays")


@pytest.mark.parametrize("sparse", [False, True])
def test_inputs_without_a_path_cannot_change_anything(sparse):
    W = np.array([[1.0, 0, 0, 0], [0, 0, 2, 0], [0, 1, 0, 0]])
    V = np.array([[1.0, 1, 0]])  # the unit that reads input 2 is not read itself
    net = ReluNetwork.from_layers([(sp.csr_array(W) if sparse else W, [9, 9, 9]), (V, [0])])
    assert connected_inputs(net).tolist() == [True, False, True, False]
    finding = ask(net, "INP-01")
    assert finding.sentence == "2 of its 4 inputs cannot change any output."
    shares = {row[0]: row[1] for row in finding.table.rows}
    assert shares == pytest.approx({1: 1 / 3, 3: 2 / 3, 2: 0, 4: 0})
    x = np.random.default_rng(0).standard_normal((50, 4))
    moved = x.copy()
    moved[:, [1, 3]] += 100.0
    assert np.array_equal(net(x), net(moved))


def test_reaction_is_the_length_of_the_slope_times_the_spread():
    net = ReluNetwork.from_layers([([[3.0, 0.0], [-4.0, 1.0]], [0.0, 0.0])])
    finding = ask(net, "INP-01", box=([-1, -1], [1, 3]))
    rows = {row[0]: row[1:] for row in finding.table.rows}
    sides = np.array([2.0, 4.0]) / np.sqrt(12)  # deviations of uniform numbers
    moves = np.array([5.0, 1.0]) * sides
    assert rows[1] == pytest.approx((moves[0] / moves.sum(), 5.0, sides[0]))
    assert rows[2] == pytest.approx((moves[1] / moves.sum(), 1.0, sides[1]))
    assert finding.number.value == 2  # 71 % is not 90 %
    one = ReluNetwork.from_layers([([[30.0, 1.0]], [0.0])])
    assert ask(one, "INP-01", box=(-1, 1)).number.value == 1


def test_reaction_counts_how_much_the_data_vary():
    net = ReluNetwork.from_layers([(np.eye(2), [9.0, 9.0]), ([[1.0, 1.0]], [0])])
    X = np.random.default_rng(0).uniform(-1, 1, (100, 2)) * [1.0, 3.0]
    shares = {row[0]: row[1] for row in ask(net, "INP-01", X=X).table.rows}
    spread = X.std(axis=0)
    assert shares == pytest.approx({1: spread[0] / spread.sum(), 2: spread[1] / spread.sum()})


def test_bends_of_a_sawtooth_need_a_wide_layer():
    tooth = composed_zigzags([[0.5]])
    net = tooth @ tooth @ tooth @ tooth  # 16 pieces on [0, 1]
    finding = ask(net, "DEP-01", box=(0, 1))
    assert finding.number.value == 15 and finding.table.rows[0] == (1, 15)
    assert "more than a single layer of as many units can" in finding.sentence
    assert net.size < 15


def test_one_layer_bends_no_more_often_than_it_has_units():
    net = random_net((2, 7, 1))
    finding = ask(net, "DEP-01")
    assert finding.number.value <= 7 and finding.sentence == ""


def test_movement_is_the_distance_over_the_length():
    start, end = random_net((3, 4, 2)), random_net((3, 4, 2), seed=5)
    finding = ask(end, "BIAS-06", initial=start)
    flat = [np.concatenate([np.r_[W.ravel(), b] for W, b in net.layers]) for net in (start, end)]
    wanted = np.linalg.norm(flat[1] - flat[0]) / np.linalg.norm(flat[0])
    assert finding.number.value == pytest.approx(wanted)
    assert ask(start, "BIAS-06", initial=start).verdict == "no weight moved"


def test_a_box_that_is_a_point_or_numbers_that_overflow_are_refused_or_answered():
    net = random_net((2, 3, 2))
    codes = ["OUT", "INP", "DEP"]
    point = audit(net, box=(1, 1), only=codes)
    huge = ReluNetwork.from_layers([(np.full((2, 2), 1e200), [0, 0]), (np.full((2, 2), 1e150), [0, 0])])
    for result in (point, audit(huge, only=codes), audit(random_net((2, 2)), only=codes)):
        assert not [f.verdict for f in result.findings if f.status == "error"]
    assert "no input varies over" in point["INP-01"].verdict
    assert point["DEP-01"].verdict == "not applicable, because the given box [1, 1]^2 is a single point"
