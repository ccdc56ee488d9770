"""One hidden layer: the decision is complete, exact, and bounds hold when it is close."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from pindown.box import Box
from pindown.deadline import Deadline
from pindown.equivalence.comparison._cells import gap_by_cells
from pindown.equivalence.comparison._folds import Sum, near_multiples, relations, sides, sum_bound
from pindown.equivalence.comparison.one_hidden_layer import decide_shallow, shallow_normal_form
from pindown.network import ReluNetwork
from tests.equivalence.comparison.nets import exact_gap, perturbed, random_net, unit_box


def rewritten(net, rng):
    """The same function: units permuted, scaled by powers of two, split, and an opposite pair added."""
    (W, b), (V, c) = net.layers
    p = len(W)
    s = 2.0 ** rng.integers(-3, 4, p)
    W, b, V = s[:, None] * W, s * b, V / s
    half = V[:, :1] / 2
    pair = rng.integers(-4, 5, W.shape[1]).astype(float)
    W = np.vstack([W, W[:1], pair, -pair, np.zeros(W.shape[1])])
    b = np.concatenate([b, b[:1], [1.0, -1.0, 2.0]])
    V = np.hstack([half, V[:, 1:], half, np.ones((len(V), 2)), np.ones((len(V), 1))])
    # |pair . x + 1| is removed by two more units; the constant unit by the offset.
    W, b = np.vstack([W, pair, -pair]), np.concatenate([b, [1.0, -1.0]])
    V = np.hstack([V, -np.ones((len(V), 2))])
    order = rng.permutation(len(W))
    return ReluNetwork.from_layers([(W[order], b[order]), (V[:, order], c - 2.0)])


def integer_net(widths, rng):
    return ReluNetwork.from_layers(
        [
            (rng.integers(-9, 10, (m, n)).astype(float), rng.integers(-9, 10, m).astype(float))
            for n, m in pairwise(widths)
        ]
    )


@pytest.mark.parametrize("domain", [None, "box"])
def test_equal_functions_are_proved_equal(domain):
    rng = np.random.default_rng(1)
    for _ in range(30):
        net = integer_net((3, 6, 2), rng)
        box = unit_box(3) if domain else None
        other = rewritten(net, rng)
        found = decide_shallow(net, other, box, budget=0.1)
        assert found.equal is True
        assert (found.lower, found.upper) == (0.0, 0.0)
        one, two = shallow_normal_form(net, box), shallow_normal_form(other, box)
        assert np.allclose(one.folds, two.folds)
        assert np.allclose(one.kinks, two.kinks)
        assert np.array_equal(one.weight, two.weight)
        assert np.array_equal(one.offset, two.offset)


@pytest.mark.parametrize("domain", [None, "box"])
def test_one_changed_weight_is_seen(domain):
    rng = np.random.default_rng(2)
    for i in range(20):
        net = integer_net((3, 5, 2), rng)
        layers = [(W.copy(), b.copy()) for W, b in rewritten(net, rng).layers]
        size = 10.0 ** -(3 + i % 4)
        W = layers[i % 2][0]
        W[0, 0] += size
        other = ReluNetwork.from_layers(layers)
        box = Box.cube(3, -5, 5) if domain else None
        found = decide_shallow(net, other, box, budget=0.1)
        if found.equal:  # the changed unit may not matter
            continue
        assert found.lower > 0
        assert found.lower <= found.upper
        assert exact_gap(net, other, found.witness) >= Fraction(found.lower)


def test_normal_form_is_the_function():
    rng = np.random.default_rng(3)
    for box in (None, unit_box(4)):
        net = random_net((4, 9, 2), rng)
        form = shallow_normal_form(net, box)
        X = unit_box(4).sample(500, rng)
        z = np.abs(X @ form.folds[:, :-1].T + form.folds[:, -1])
        assert np.allclose(z @ form.kinks + X @ form.weight.T + form.offset, net(X), atol=1e-12)
        assert np.allclose(np.linalg.norm(form.folds[:, :-1], axis=1), 1.0)
    assert "folds" in repr(form)


def test_agrees_with_cells_on_small_pairs():
    rng = np.random.default_rng(4)
    for i in range(30):
        a = integer_net((2, 3, 1), rng)
        b = rewritten(a, rng) if i % 2 else integer_net((2, 4, 1), rng)
        exact = gap_by_cells(a, b, unit_box(2))
        found = decide_shallow(a, b, unit_box(2), budget=0.1)
        assert found.equal == (exact.upper < 1e-9)
        assert found.lower <= exact.upper
        assert found.upper >= exact.lower


def test_a_unit_that_touches_the_box_is_affine_there():
    relu = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
    line = ReluNetwork.from_layers([([[1.0]], [0])])
    assert decide_shallow(relu, line, Box([0], [1])).equal is True
    assert decide_shallow(relu, line, Box([-1e-300], [1])).equal is False
    assert decide_shallow(relu, line).equal is False
    third = ReluNetwork.from_layers([([[0.1, 0.2]], [-0.1]), ([[1.0]], [0])])
    flat = ReluNetwork.from_layers([([[0.1, 0.2]], [-0.1])])
    assert decide_shallow(third, flat, Box([1, 0], [2, 1])).equal is True


@pytest.mark.parametrize("size", [1e-15, 1e-9, 1e-4])
@pytest.mark.parametrize("domain", [None, "box"])
def test_copies_to_rounding_get_a_bound_that_holds_and_is_small(size, domain):
    rng = np.random.default_rng(5)
    for _ in range(3):
        a = random_net((4, 20, 3), rng)
        b = perturbed(a, size, rng)
        (W, c), last = b.layers
        order = rng.permutation(len(W))
        s = rng.uniform(0.1, 10.0, len(W))
        b = ReluNetwork.from_layers(
            [((s[:, None] * W)[order], (s * c)[order]), ((last.weight / s)[:, order], last.bias)]
        )
        box = unit_box(4) if domain else None
        found = decide_shallow(a, b, box, budget=0.2)
        assert found.lower <= found.upper
        X = unit_box(4).sample(20, rng)
        for x in X:
            length = Fraction(0) if box is not None else Fraction(float(np.linalg.norm(x)) * (1 + 1e-12))
            assert exact_gap(a, b, x) <= Fraction(found.upper) * (1 + length)
        assert found.upper < 1e3 * size + 1e-12


def test_opposite_units_add_up_to_absolute_values_and_lines():
    for sign in (1.0, -1.0):
        net = ReluNetwork.from_layers([([[1.0], [-3.0]], [-2, 6]), ([[3.0, sign]], [0])])
        form = shallow_normal_form(net)  # 3 relu(x - 2) +- relu(-3 (x - 2))
        if sign > 0:
            assert form.folds.tolist() == [[1, -2]] and form.kinks.tolist() == [[3]]
            assert form.weight.tolist() == [[0]] and form.offset.tolist() == [0]
        else:
            assert form.n_folds == 0
            assert form.weight.tolist() == [[3]] and form.offset.tolist() == [-6]


@pytest.mark.parametrize(
    ("units", "out", "plain", "on_box", "relative"),
    [
        ([[1, 0], [-1, 0]], [1, 1], [0, 0], 2, 1),  # |x|
        ([[1, 0], [-1, 0]], [1, -1], [0, 0], 2, 1),  # x
        ([[1, 0], [-2, 0]], [2, 1], [0, 1], 5, 2),  # 2 |x| + 1
        ([[1, 0], [-1, 0]], [1, -1], [0, -5], 7, 5),  # x - 5, lowest at -2
        ([[1, 0], [-1, 0]], [1, -1], [2, 1], 7, 3),  # 3 x + 1
        ([[1, 0], [1, 0.25]], [-1, 1], [0, 0], 0.25, 0.25),  # relu(x + 1/4) - relu(x)
        ([[1, 0], [1.25, 0]], [-1, 1], [0, 0], 0.5, 0.25),  # relu(1.25 x) - relu(x)
    ],
)
def test_bounds_of_sums_are_attained(units, out, plain, on_box, relative):
    """On [-2, 2] the largest value, and over 1 + |x| the larger of slope and offset."""
    rows = np.array(units, dtype=float)
    total = Sum(rows, np.array([out], dtype=float), np.array([plain], dtype=float), np.ones((1, 1)))
    near = near_multiples(total, relations(total, 0.5))
    assert sum_bound(total, near, Box([-2], [2])) == pytest.approx(on_box, rel=1e-9)
    assert sum_bound(total, near, None) == pytest.approx(relative, rel=1e-9)


def test_residuals_of_multiples_hold_in_rationals():
    rng = np.random.default_rng(8)
    lead = np.repeat(rng.normal(size=(10, 4)), 3, axis=0)
    rows = lead * rng.normal(size=(30, 1)) * (1 + rng.choice([0, 1e-15, 1e-9], (30, 1)))
    total = Sum(rows, np.ones((1, 30)), np.zeros((0, 4)), np.zeros((1, 0)))
    near = near_multiples(total, relations(total))
    assert len(np.unique(near.leader)) == 10
    for row, of, factor, residual in zip(rows, near.leader, near.factor, near.residual, strict=True):
        for entry, lead_entry, bound in zip(row, rows[of], residual, strict=True):
            wrong = Fraction(entry) - Fraction(factor) * Fraction(lead_entry)
            assert abs(wrong) <= Fraction(bound)


def test_sides_of_units_agree_with_rationals():
    """Offsets such that the largest or smallest value is 0, or 0 but for rounding."""
    rng = np.random.default_rng(9)
    W, box = rng.normal(size=(200, 3)), Box.around(rng.normal(size=(2, 3)))
    ends = [np.where(side * W > 0, box.upper, box.lower) for side in (1, -1)]
    offset = np.where(np.arange(200) < 100, *(-(W * end).sum(axis=1) for end in ends))
    total = Sum(np.column_stack([W, offset]), np.ones((1, 200)), np.zeros((0, 4)), np.zeros((1, 0)))
    found, seen = sides(total, list(range(200)), box), []
    for i in range(200):
        high, low = (
            sum(Fraction(w) * Fraction(v) for w, v in zip(W[i], end[i], strict=True))
            + Fraction(offset[i])
            for end in ends
        )
        seen.append(1 if low >= 0 else -1 if high <= 0 else 0)
    assert found.tolist() == seen and set(seen) == {-1, 0, 1}


def test_denormal_and_huge_rows():
    for size in (5e-324, 1e-310, 1e300):
        a = ReluNetwork.from_layers([([[size]], [0]), ([[1.0]], [0])])
        b = ReluNetwork.from_layers([([[size], [size]], [0, 0]), ([[0.5, 0.5]], [0])])
        assert decide_shallow(a, b).equal is True
        other = ReluNetwork.from_layers([([[size]], [0]), ([[2.0]], [0])])
        assert decide_shallow(a, other).equal is False


def test_flat_boxes_never_say_different():
    a = ReluNetwork.from_layers([([[1.0, 1.0]], [0]), ([[1.0]], [0])])
    b = ReluNetwork.from_layers([([[1.0, 2.0]], [0]), ([[1.0]], [0])])
    assert decide_shallow(a, b, Box([-1, 0], [1, 0])).equal is None


def test_bad_input():
    deep = random_net((2, 3, 3, 1), np.random.default_rng(0))
    with pytest.raises(ValueError, match="one hidden layer"):
        decide_shallow(deep, deep)
    with pytest.raises(ValueError, match="equal input and output sizes"):
        decide_shallow(
            random_net((2, 3, 1), np.random.default_rng(0)),
            random_net((3, 3, 1), np.random.default_rng(0)),
        )


def test_no_time_for_rational_arithmetic_leaves_an_interval():
    rng = np.random.default_rng(0)
    a = ReluNetwork.from_layers(
        [(rng.standard_normal((6, 2)), rng.standard_normal(6)), (rng.standard_normal((1, 6)), [0.0])]
    )
    b = ReluNetwork.from_layers(
        [(2.0 * a.layers[0].weight, 2.0 * a.layers[0].bias), (a.layers[1].weight / 2, [0.0])]
    )
    late = decide_shallow(a, b, budget=0.1, deadline=Deadline.after(-1.0))
    assert late.equal is None
    assert late.n_folds is None
    assert late.lower <= late.upper
    assert decide_shallow(a, b).equal
