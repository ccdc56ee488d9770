"""Cells, mixed-integer programs and branching agree on the largest gap, each in its own way."""

import itertools
import time
from fractions import Fraction

import numpy as np
import pytest

from pindown.box import Box
from pindown.deadline import Deadline
from pindown.equivalence.comparison._branching import gap_by_branching
from pindown.equivalence.comparison._cells import gap_by_cells
from pindown.equivalence.comparison._integer_programs import gap_by_milp, largest_output, open_units
from pindown.network import ReluNetwork
from pindown.programs import SOLVER_TOLERANCE
from pindown.relaxation.difference_network import difference
from pindown.relaxation.mixed_integer import encode
from tests.equivalence.comparison.nets import perturbed, random_net, unit_box

SHAPES = [
    ((2, 4, 1), (2, 4, 1)),
    ((2, 4, 1), (2, 3, 3, 1)),
    ((2, 3, 3, 2), (2, 5, 2)),
    ((3, 4, 1), (3, 4, 1)),
]


def pairs(n):
    rng = np.random.default_rng(0)
    for i in range(n):
        one, other = SHAPES[i % len(SHAPES)]
        a = random_net(one, rng)
        b = perturbed(a, 0.05, rng) if one == other and i % 8 < 4 else random_net(other, rng)
        yield a, b, unit_box(one[0])


@pytest.mark.parametrize(("first", "count"), [(0, 40), pytest.param(40, 60, marks=pytest.mark.slow)])
def test_cells_agree_with_mixed_integer_programs(first, count):
    for i, (a, b, box) in enumerate(pairs(first + count)):
        if i < first:
            continue
        exact, program = gap_by_cells(a, b, box), gap_by_milp(a, b, box)
        assert exact.upper - exact.lower <= 1e-9 * max(1.0, exact.upper)
        assert program.lower <= exact.upper
        assert program.upper >= exact.lower
        assert abs(program.lower - exact.lower) <= 1e-6
        assert program.upper - program.lower <= 1e-3


def test_branching_agrees_with_cells():
    for a, b, box in pairs(12):
        exact = gap_by_cells(a, b, box)
        states = list(gap_by_branching(a, b, box, precision=1e-4, deadline=Deadline.after(20)))
        for state in states:
            assert state.lower <= exact.upper
            assert state.upper >= exact.lower
        lowers, uppers = [s.lower for s in states], [s.upper for s in states]
        assert lowers == sorted(lowers)
        assert uppers == sorted(uppers, reverse=True)
        assert states[-1].upper - states[-1].lower <= 1e-3 * states[-1].upper


def test_cells_are_fast_on_the_reference_shape():
    rng = np.random.default_rng(1)
    gap_by_cells(random_net((3, 2, 1), rng), random_net((3, 2, 1), rng), unit_box(3))  # compiles
    for _ in range(5):
        a, b = random_net((3, 6, 6, 1), rng), random_net((3, 6, 6, 1), rng)
        began = time.process_time()
        state = gap_by_cells(a, b, unit_box(3))
        assert time.process_time() - began < 1.0
        X = unit_box(3).sample(20_000, rng)
        assert np.abs(a(X) - b(X)).max() <= state.upper
        assert state.upper - state.lower < 1e-9
        assert np.abs(a(state.witness) - b(state.witness)).max() >= state.lower * (1 - 1e-12)


def test_equal_functions_written_differently_have_gap_zero():
    rng = np.random.default_rng(2)
    a = random_net((3, 4, 4, 1), rng)
    (W1, b1), (W2, b2), (W3, b3) = a.layers
    order = rng.permutation(4)
    b = ReluNetwork.from_layers([(W1[order], b1[order]), (W2[:, order], b2), (W3, b3)])
    state = gap_by_cells(a, b, unit_box(3))
    assert state.upper < 1e-12
    *_, branched = gap_by_branching(a, b, unit_box(3), tol=0.2, deadline=Deadline.after(20))
    assert branched.upper <= 0.2


def test_difference_is_right_up_to_its_stated_error():
    rng = np.random.default_rng(3)
    for shapes in [
        ((2, 3, 2), (2, 3, 2)),
        ((2, 2), (2, 3, 3, 2)),
        ((2, 3, 3, 3, 2), (2, 4, 2)),
        ((2, 2), (2, 2)),
    ]:
        a, b = (random_net(shape, rng, 3.0) for shape in shapes)
        box = unit_box(2)
        net, error = difference(a, b, box)
        for x in [box.lower, box.upper, *box.sample(5, rng)]:
            point = [Fraction(float(v)) for v in x]
            f, g, d = (n.as_fractions()(point) for n in (a, b, net))
            for p, q, r, e in zip(f, g, d, error, strict=True):
                assert abs(p - q - r) <= Fraction(float(e))
        assert error.max() < 1e-14


def test_budgets_end_with_what_is_proved():
    rng = np.random.default_rng(4)
    a, b = random_net((5, 40, 40, 2), rng), random_net((5, 40, 40, 2), rng)
    box = unit_box(5)
    X = box.sample(5000, rng)
    seen = np.abs(a(X) - b(X)).max()
    for state in (
        gap_by_cells(a, b, box, budget=0.2),
        gap_by_milp(a, b, box, budget=0.5),
        [*gap_by_branching(a, b, box, deadline=Deadline.after(0.5))][-1],
    ):
        assert state.upper >= seen
        assert state.lower <= state.upper
    assert open_units(a, b, box) > 40


def test_flat_boxes():
    rng = np.random.default_rng(5)
    a, b = random_net((2, 4, 1), rng), random_net((2, 4, 1), rng)
    flat = Box([0.5, -1], [0.5, 1])
    assert gap_by_cells(a, b, flat).upper == np.inf
    line = np.column_stack([np.full(2001, 0.5), np.linspace(-1, 1, 2001)])
    seen = np.abs(a(line) - b(line)).max()
    *_, state = gap_by_branching(a, b, flat, precision=1e-4, deadline=Deadline.after(10))
    assert state.lower <= seen * 1.01
    assert seen <= state.upper <= seen * 1.01
    assert gap_by_milp(a, b, flat).upper >= seen


def largest_on_lattice(a, b, box, n=6):
    """The largest exact gap at the points of a lattice that holds all corners."""
    first, second = a.as_fractions(), b.as_fractions()
    axes = [[Fraction(t, n) for t in range(n + 1)]] * box.dim
    low, high = ([Fraction(float(x)) for x in end] for end in (box.lower, box.upper))
    points = (
        [p + t * (q - p) for p, q, t in zip(low, high, shares, strict=True)]
        for shares in itertools.product(*axes)
    )
    return max(abs(u - v) for x in points for u, v in zip(first(x), second(x), strict=True))


@pytest.mark.parametrize("size", [1e-13, 1e-10, 1e8, 1e10, 1e13])
@pytest.mark.parametrize("scaled", [True, False])
def test_programs_hold_on_boxes_of_any_size(size, scaled):
    # The solver ignores coefficients below 1e-9, and its tolerances are absolute.
    rng = np.random.default_rng(0)
    for corner in (-1.0, 0.0, 30.0):
        a, b = random_net((2, 4, 3, 1), rng), random_net((2, 3, 4, 1), rng)
        if scaled:
            a, b = (
                ReluNetwork.from_layers(
                    [(net.layers[0].weight / size, net.layers[0].bias), *net.layers[1:]]
                )
                for net in (a, b)
            )
        box = Box([corner * size] * 2, [(corner + 1) * size, (corner + 2) * size])
        state, truth = gap_by_milp(a, b, box), largest_on_lattice(a, b, box)
        assert truth <= state.upper
        assert state.lower <= state.upper


def test_programs_whose_units_are_far_apart_in_size():
    # A lower end of -5e-324 beside an upper one of 1e300 is no sign of a scaled unit.
    a = ReluNetwork.from_layers(
        [([[1e300], [1.0]], [0, 5e-324]), ([[1.0, 1e-300], [5e-324, 1.0]], [0, 0]), ([[1.0, 1.0]], [0])]
    )
    b = ReluNetwork.from_layers([([[1.0]], [-5e-324]), ([[2.0]], [0])])
    for box in (Box([-5e-324], [1]), Box([-1], [1])):
        assert largest_on_lattice(a, b, box) <= gap_by_milp(a, b, box, budget=2.0).upper


def test_tolerances_of_the_solver_are_added():
    rng = np.random.default_rng(11)
    for scale in (1.0, 1e4):
        net = random_net((2, 4, 2), rng, scale)
        encoding = encode(net, unit_box(2))
        found = largest_output(encoding, 0, 1.0, 5.0)
        weight = np.abs(encoding.output.weight.toarray()[0]).max()
        assert found.bound - found.attained >= SOLVER_TOLERANCE * weight * 0.99


def test_late_calls_prove_what_they_can():
    rng = np.random.default_rng(0)
    a, b = random_net((2, 4, 3, 1), rng), random_net((2, 3, 1), rng)
    assert gap_by_cells(a, b, unit_box(2), budget=-1e-3).upper == np.inf
    late = difference(a, b, unit_box(2), deadline=Deadline.after(0.0))
    x = Fraction(1, 3), Fraction(-1, 7)
    value = a.as_fractions()(x)[0] - b.as_fractions()(x)[0]
    assert abs(late.net.as_fractions()(x)[0] - value) <= Fraction(late.error[0])
