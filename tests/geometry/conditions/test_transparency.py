"""Margins of layers: enclosed by independent routes, attained where they say, and what they imply."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from pindown import ReluNetwork
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.conditions._margins import at_point, by_cells, by_intervals, by_program, on_cell
from pindown.geometry.conditions.transparency import check_transparency, dead_zones
from pindown.programs import SOLVER_TOLERANCE
from pindown.relaxation.mixed_integer import encode
from tests.geometry.fold_nets import gaussian, symmetric_copy, transparent


def grid_margin(net, box, layer, n=401):
    """Smallest layer maximum on a fine grid of the plane: never below the true margin."""
    axes = [np.linspace(low, high, n) for low, high in zip(box.lower, box.upper, strict=True)]
    points = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    return float(net[:layer](points).max(axis=1).min())


@pytest.mark.parametrize("seed", range(6))
def test_margins_agree_with_a_grid(seed):
    rng = np.random.default_rng(seed)
    net, box = gaussian(rng, (2, 4, 5, 3, 1)), Box([-1.5, -1], [1, 2])
    result = check_transparency(net, box, seed=seed)
    step = float(np.linalg.norm((box.upper - box.lower) / 400)) / 2
    for margin in result.margins:
        steepest = np.linalg.norm(
            net[: margin.layer].local_affine(box.sample(2000, rng))[0], axis=2
        ).max()
        seen = grid_margin(net, box, margin.layer)
        assert margin.lower <= seen
        assert margin.upper >= margin.lower >= seen - 2 * steepest * step - 1e-6
        assert margin.upper - margin.lower <= 1e-6 * (1 + abs(margin.upper))


@pytest.mark.parametrize("widths", [(1, 3, 3, 1), (2, 4, 4, 1), (2, 3, 3, 3, 1), (3, 4, 4, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_cells_and_mixed_integer_program_agree(widths, seed):
    g = gaussian(np.random.default_rng(seed), widths)[:-1]
    box = Box.cube(widths[0], -1, 1)
    cells, program = by_cells(g, box, Deadline.after(60.0)), by_program(g, box, Deadline.after(60.0))
    assert cells.lower <= program.upper + 1e-9 and program.lower <= cells.upper + 1e-9
    assert cells.upper - cells.lower < 1e-6 and program.upper - program.lower < 1e-2
    assert abs(cells.upper - program.upper) < 1e-6


def test_the_minimum_is_inside_a_cell_not_at_its_vertices():
    # One cell, the whole box; max(x + 1/2, 1/2 - x) is 1/2 on the line x = 0 and 3/2 at all corners.
    W = np.array([[1.0, 0], [-1, 0]])
    net = ReluNetwork.from_layers([(W, [0.5, 0.5]), ([[1.0, 1.0]], [0])])
    (margin,) = check_transparency(net, (-1, 1)).margins
    assert abs(margin.lower - 0.5) < 1e-6 and abs(margin.upper - 0.5) < 1e-9
    assert abs(margin.witness[0]) < 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_witness_is_real(seed):
    net = gaussian(np.random.default_rng(seed), (6, 5, 5, 1))
    result = check_transparency(net, (-1, 1))
    for margin in result.margins:
        x = [Fraction(v) for v in margin.witness]
        assert all(-1 <= v <= 1 for v in x)
        assert max(net.as_fractions().trace(x)[margin.layer - 1]) <= Fraction(margin.upper)
    if result.transparent is False:
        off = [z.max() < 0 for z in net.trace(result.witness)[:-1]]
        assert any(off)


@pytest.mark.parametrize("widths", [(2, 4, 3, 1), (3, 3, 3, 3, 1), (8, 6, 5, 1), (30, 20, 15, 2)])
def test_transparent_networks_are_proved_so(widths):
    box = Box.cube(widths[0], -1, 1)
    net = transparent(np.random.default_rng(0), widths, box)
    result = check_transparency(net, box, budget=30.0)
    assert result.transparent is True and result.witness is None
    assert (result.lower >= 0).all() and "transparent (" in str(result)


@pytest.mark.parametrize("seed", range(5))
def test_same_verdict_for_permuted_and_rescaled_copies(seed):
    rng = np.random.default_rng(seed)
    net = gaussian(rng, (2, 3, 4, 1))
    copy = symmetric_copy(net, rng)
    assert check_transparency(net, (-1, 1)).transparent == check_transparency(copy, (-1, 1)).transparent


def test_zero_budget_still_brackets():
    net, box = gaussian(np.random.default_rng(1), (12, 20, 20, 20, 1)), Box.cube(12, -1, 1)
    quick, slow = check_transparency(net, box, budget=0), check_transparency(net, box, budget=5)
    assert (quick.lower <= slow.upper).all() and (slow.lower <= quick.upper).all()
    assert (quick.lower <= slow.lower + 1e-12).all() and (quick.upper >= slow.upper - 1e-12).all()


def test_intervals_never_exceed_the_margin():
    rng = np.random.default_rng(0)
    for _ in range(10):
        g, box = gaussian(rng, (3, 4, 4)), Box.cube(3, -1, 1)
        assert by_intervals(g, box).lower <= g(box.sample(2000, rng)).max(axis=1).min()


@pytest.mark.parametrize("widths", [(2, 5), (2, 4, 3), (3, 5, 4, 2)])
def test_big_m_program_evaluates_the_network(widths):
    rng = np.random.default_rng(0)
    net, box = gaussian(rng, widths), Box.cube(widths[0], -2, 1)
    program = encode(net, box)
    for x in box.sample(5, rng):
        lower, upper = program.lower.copy(), program.upper.copy()
        lower[: box.dim] = upper[: box.dim] = (x - program.center) / program.radius
        rows = LinearConstraint(program.rows, program.row_lower, program.row_upper)
        found = milp(
            np.zeros(len(lower)),
            constraints=rows,
            bounds=Bounds(lower, upper),
            integrality=program.integrality,
        )
        value = program.output.weight @ found.x + program.output.bias
        assert (np.abs(value - net(x)) <= program.error).all()


def test_errors_of_programs_spread_through_the_layers():
    """Two layers of one unit each, of sizes 1 and 10; each may be off by twice the tolerance."""
    net = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [9.0]), ([[1.0]], [0])])
    second = 0.1 * 2 + 2  # in units of the size 10
    expected = (10 * second + 1) * SOLVER_TOLERANCE
    assert encode(net, Box([-1], [1])).error[0] == pytest.approx(expected, rel=1e-6)


def test_points_are_rounded_up():
    rng = np.random.default_rng(5)
    g, box = gaussian(rng, (3, 6, 4)), Box.cube(3, -1, 1)
    for x in box.sample(30, rng):
        assert max(g.as_fractions()(list(x))) <= Fraction(at_point(g, box, x).upper)


def test_overflowing_bounds_give_no_program():
    net = ReluNetwork.from_layers([([[1e200]], [0]), ([[1e200]], [0]), ([[1.0]], [0])])
    assert encode(net, Box([-1], [1])) is None
    assert by_program(net, Box([-1], [1]), Deadline.after(1.0)).lower == -np.inf


def test_small_programs_on_a_triangle():
    # max(x, y) on x + y >= 1 in the unit square is least at (1/2, 1/2).
    low, x = on_cell(np.eye(2), np.zeros(2), np.array([[-1.0, -1.0, 1.0]]), Box([0, 0], [1, 1]))
    assert 0.5 - 1e-6 < low <= 0.5 - 1e-8 and np.allclose(x, 0.5)  # less what a solver may be off
    low, x = on_cell(np.eye(2), np.zeros(2), np.array([[1.0, 1.0, 3.0]]), Box([0, 0], [1, 1]))
    assert low == -np.inf and x is None  # x + y <= -3: no such cell


@pytest.mark.parametrize("seed", range(4))
def test_dead_zones_agree_with_samples_and_are_flat(seed):
    rng = np.random.default_rng(seed)
    net, box = gaussian(rng, (2, 3, 3, 1)), Box.cube(2, -2, 2)
    cells = polyhedral_complex(net, box)
    zones = dead_zones(cells)
    points = box.sample(20_000, rng)
    off = np.any([~mask.any(axis=1) for mask in net.by_layer(net.pattern(points))], axis=0)
    assert abs(zones.share - off.mean()) < 4 * np.sqrt(0.25 / 20_000)
    assert np.abs(cells.A[zones.cells]).max(initial=0) < 1e-12
    transparent_here = check_transparency(net, box).transparent
    assert transparent_here is not None and transparent_here == (len(zones.cells) == 0)
    assert f"{len(zones.cells)} dead cells" in str(zones)


def test_gradient_never_vanishes_if_general_and_transparent():
    box = Box.cube(2, -2, 2)
    for seed in range(5):
        cells = polyhedral_complex(transparent(np.random.default_rng(seed), (2, 4, 4, 1), box), box)
        assert np.abs(cells.A).max(axis=(1, 2)).min() > 1e-9
        assert len(dead_zones(cells).cells) == 0


def test_no_hidden_layer_is_transparent():
    net = ReluNetwork.from_layers([([[1.0, 2.0]], [0])])
    result = check_transparency(net, (-1, 1))
    assert result.transparent is True and result.margins == () and "no hidden layer" in str(result)
    assert len(dead_zones(polyhedral_complex(net, (-1, 1))).cells) == 0


def test_flat_boxes():
    net = gaussian(np.random.default_rng(0), (2, 3, 3, 1))
    x = np.array([0.3, -0.2])
    result = check_transparency(net, Box(x, x))
    values = [z.max() for z in net.trace(x)[:-1]]
    assert np.allclose(result.upper, values) and (result.lower <= np.array(values) + 1e-12).all()


def test_bad_input():
    net = gaussian(np.random.default_rng(0), (2, 3, 1))
    with pytest.raises(ValueError, match="budget must be a number of at least 0; got -1"):
        check_transparency(net, (-1, 1), budget=-1)
    with pytest.raises(ValueError, match="budget must be a number of at least 0; got nan"):
        check_transparency(net, (-1, 1), budget=float("nan"))
    with pytest.raises(ValueError, match="the box has 3 dimensions"):
        check_transparency(net, Box.cube(3, 0, 1))
