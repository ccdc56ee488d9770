"""Search for violations: what is planted is found, and what is found is proved."""

import warnings
from itertools import product
from time import monotonic

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.deadline import NEVER, Deadline
from pindown.model.builder import Builder
from pindown.model.from_network import model_of_network
from pindown.model.operations.dense import Dense
from pindown.model.operations.products import Multiply
from pindown.model.operations.smooth import Exp, Sigmoid
from pindown.relaxation.lp_balls import Balls, lengths
from pindown.verification import falsification
from pindown.verification._descents import can_walk, descend, follow, walk
from pindown.verification._goals import (
    HARD,
    OPEN,
    SOFT,
    Goals,
    corners,
    half_widths,
    into,
    moved,
    uniform,
)
from pindown.verification._searching import Searching
from pindown.verification.falsification import Falsifier, find_violation
from pindown.verification.properties import UnsafeSet
from tests.verification.nets import random_network


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def network(*layers):
    return model_of_network(ReluNetwork.from_layers(layers))


def cube(d, rows, limits, low=0.0, high=1.0, **more):
    return UnsafeSet(
        np.full(d, low), np.full(d, high), np.atleast_2d(rows), np.atleast_1d(limits), **more
    )


def violated(model, unsafe, x):
    y = model(x)
    assert (x >= unsafe.lower).all() and (x <= unsafe.upper).all()
    values = unsafe.rows @ y + (0 if unsafe.input_rows is None else unsafe.input_rows @ x)
    return (values <= unsafe.limits).all()


# ---------------------------------------------------------------------- what is found


def test_a_corner_behind_a_plateau_is_found():
    """relu(sum of 30 inputs - 29.5) is zero, and flat, but for one corner of the cube."""
    model = network((np.ones((1, 30)), [-29.5]), ([[-1.0]], [0.0]))
    unsafe = cube(30, [1.0], -0.4)
    found = find_violation(model, [unsafe], turns=2)
    assert found is not None and found.proved and violated(model, unsafe, found.x)
    assert found.x.min() > 0.8


def test_narrow_conjunctions_are_found():
    """|x1 - 0.3| + ... < 0.002 and |...| on another plane: a needle that samples do not meet."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        center, directions = rng.uniform(0.2, 0.8, 5), rng.standard_normal((3, 5))
        W = np.concatenate([directions, -directions])
        b = -W @ center
        V = np.concatenate([np.eye(3), np.eye(3)], axis=1)  # |d . (x - c)| for each direction
        model = network((W, b), (V, np.zeros(3)))
        unsafe = cube(5, np.eye(3), np.full(3, 1e-3))
        found = find_violation(model, [unsafe], turns=20)
        assert found is not None and found.proved and violated(model, unsafe, found.x)


def satisfiable(n_variables, n_clauses, seed):
    """A satisfiable random 3-SAT formula as a network: (1 - violated clauses, distance from corners)."""
    rng = np.random.default_rng(seed)
    hidden, W, b = rng.random(n_variables) < 0.5, [], []
    while len(W) < n_clauses:
        variables, negated = rng.choice(n_variables, 3, replace=False), rng.random(3) < 0.5
        if (hidden[variables] != negated).any():
            row = np.zeros(n_variables)
            row[variables] = np.where(negated, 1.0, -1.0)
            W.append(row)
            b.append(np.count_nonzero(~negated) - 2.0)
    eye = np.eye(n_variables)
    V = np.zeros((2, n_clauses + 2 * n_variables))
    V[0, :n_clauses], V[1, n_clauses : n_clauses + n_variables], V[1, n_clauses + n_variables :] = (
        -1,
        1,
        -1,
    )
    first = (
        np.concatenate([W, eye, 2 * eye]),
        np.concatenate([b, np.zeros(n_variables), -np.ones(n_variables)]),
    )
    return network(first, (V, [1.0, 0.0])), cube(n_variables, [[-1.0, 0.0], [0.0, 1.0]], [-1.0, 0.0])


@pytest.mark.parametrize("seed", range(3))
def test_assignments_of_formulas_are_found_and_proved_at_the_tie(seed):
    model, unsafe = satisfiable(40, 160, seed)
    found = find_violation(model, [unsafe], turns=30)
    assert found is not None and found.proof == "rationals"
    assert found.margin == 0.0 and found.float32_violates
    assert set(found.x.tolist()) <= {0.0, 1.0}


def test_walks_over_corners_find_what_descent_does_not():
    """The walk alone, from random corners, against 2^12 corners by brute force."""
    model, unsafe = satisfiable(12, 45, 5)
    every = np.array(list(product([0.0, 1.0], repeat=12)))
    good = (model(every) @ unsafe.rows.T <= unsafe.limits).all(axis=1)
    assert 0 < good.sum() < 100
    search = Searching(model, Goals.of([unsafe]), np.zeros(1, int), np.random.default_rng(0), NEVER)
    assert can_walk(search)
    walk(search, 300)
    assert search.found[0].by == "walk over corners"
    assert good[int("".join(str(int(v)) for v in search.found[0].point), 2)]


def test_nothing_is_found_where_nothing_is():
    rng = np.random.default_rng(1)
    model = network((rng.standard_normal((6, 3)), rng.standard_normal(6)), (np.ones((1, 6)), [0.0]))
    assert find_violation(model, [cube(3, [1.0], -1e-9)], turns=3) is None  # sums of ReLUs
    assert find_violation(model, []) is None


@pytest.mark.parametrize("smooth", [Sigmoid, Exp])
def test_smooth_models_and_products_are_searched(smooth):
    """sigma(x1) * x2 - x1 x2 and the like, against the best of many samples."""
    rng = np.random.default_rng(2)
    graph = Builder((1, 4))
    first = graph.add(Dense(rng.standard_normal((4, 4)), rng.standard_normal(4)), graph.input)
    bent = graph.add(smooth(), first)
    mixed = graph.add(Multiply(), bent, graph.input)
    model = graph.model(graph.add(Dense(np.ones((1, 4)), None), mixed), input_shape=(4,))
    best = model(rng.uniform(-1, 1, (20_000, 4))).min()
    unsafe = cube(4, [1.0], best, low=-1.0)
    found = find_violation(model, [unsafe], turns=8)
    assert found is not None and found.proof == "intervals" and violated(model, unsafe, found.x)


# ---------------------------------------------------------------------- several sets


def test_the_index_is_that_of_the_set():
    model = network(([[1.0], [-1.0]], [0.0, 0.0]), ([[1.0, 1.0]], [0.0]))
    sets = [
        cube(1, [1.0], -1.0, low=-1.0),
        cube(1, [-1.0], -2.5, low=2.0, high=3.0),
        cube(1, [1.0], -0.1),
    ]
    found = find_violation(model, sets, turns=2)
    assert found.index == 1 and 2.5 <= found.x[0] <= 3.0
    search = Falsifier(model, sets)
    search.drop([1])
    assert search.search(2) is None


def test_many_sets_on_many_boxes():
    """Of 300 boxes only one has a violation, at its corner."""
    model = network((np.eye(2), np.zeros(2)), ([[1.0, 1.0]], [0.0]))
    sets = [
        UnsafeSet(
            np.full(2, float(i)),
            np.full(2, i + 1.0),
            np.array([[1.0]]),
            np.array([2.0 * i - (1.0 if i != 177 else -1e-3)]),
        )
        for i in range(1, 301)
    ]
    found = find_violation(model, sets, turns=0)
    assert found.index == 176 and found.proved
    np.testing.assert_allclose(found.x, 177.0, atol=1e-3)


def test_empty_inner_sets_are_left_out_and_inner_ones_count():
    model = network((np.eye(1), np.zeros(1)))
    empty = UnsafeSet(np.ones(1), np.zeros(1), np.eye(1), np.ones(1))
    outer = UnsafeSet(np.zeros(1), np.ones(1), np.eye(1), np.ones(1), inner=empty)
    assert find_violation(model, [outer], turns=1) is None
    inner = UnsafeSet(np.full(1, 0.5), np.full(1, 0.6), np.eye(1), np.ones(1))
    found = find_violation(
        model, [outer, UnsafeSet(np.zeros(1), np.ones(1), np.eye(1), np.ones(1), inner=inner)]
    )
    assert found.index == 1 and 0.5 <= found.x[0] <= 0.6


# ---------------------------------------------------------------------- proposals


def needle(at):
    """|x - at| in ten dimensions, summed: zero at one point."""
    d = len(at)
    W = np.concatenate([np.eye(d), -np.eye(d)])
    return network((W, np.concatenate([-at, at])), (np.ones((1, 2 * d)), [0.0]))


def test_proposals_are_tried_first_and_moved_into_the_box():
    at = np.array([0.25, 1.0, 0.5])
    model, sets = needle(at), [cube(3, [1.0], -1.0), cube(3, [1.0], 0.0)]
    for proposals in (
        np.array([[9.0, 9.0, 9.0], [0.25, 7.0, 0.5]]),
        [None, np.array([[0.25, 1.0, 0.5]])],
    ):
        found = find_violation(model, sets, proposals=proposals, deadline=Deadline.after(60), turns=0)
        assert found.by == "a proposal" and found.index == 1
        np.testing.assert_array_equal(found.x, at)
        assert found.proof == "rationals"


# ---------------------------------------------------------------------- what counts


def test_strict_rows_and_ties():
    at = np.array([0.25, 0.5])
    weak = cube(2, [1.0], 0.0)
    strict = cube(2, [1.0], 0.0, strict=np.array([True]))
    assert find_violation(needle(at), [weak], proposals=at[None], turns=0).margin == 0.0
    assert find_violation(needle(at), [strict], proposals=at[None], turns=1) is None


def test_what_only_float64_sees_is_not_called_proved():
    graph = Builder((1, 1))
    model = graph.model(graph.add(Sigmoid(), graph.input), input_shape=(1,))
    x = np.array([0.3])
    tie = UnsafeSet(x, x, np.eye(1), model(x))
    found = find_violation(model, [tie], turns=1)
    assert found is not None and not found.proved and found.margin <= 0.0


def test_a_false_tie_does_not_hide_a_true_one():
    """Where float64 says 0 and the real value is above, the search goes on."""
    # 0.1 + 0.2 - 0.3 is 5.6e-17 in float64; (x + 1e17) - 1e17 is 0 there for all small x.
    model = network(([[1.0]], [1e17]), ([[1.0]], [-1e17]))
    unsafe = UnsafeSet(np.full(1, -1.0), np.full(1, 4.0), np.eye(1), np.zeros(1))
    found = find_violation(model, [unsafe], turns=4)
    assert found is not None and found.proved and found.x[0] <= 0.0
    above = UnsafeSet(np.full(1, 0.5), np.full(1, 4.0), np.eye(1), np.zeros(1))
    found = find_violation(model, [above], turns=4)
    assert found is not None and not found.proved  # float64 alone says 0


def test_a_witness_is_pushed_to_where_float32_sees_it():
    """1000 (x1 - x2) cancels: near the boundary float32 has the other sign."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        w = rng.standard_normal(6)
        center = rng.uniform(0.3, 0.7, 6)
        model = network((1e3 * w[None], [-1e3 * (w @ center)]))
        unsafe = cube(6, [1.0], 0.0)
        step = w / (w @ w)
        for depth in 10.0 ** -np.arange(6.0, 12.0):
            point = center - depth * step
            found = find_violation(model, [unsafe], proposals=point[None], turns=0)
            assert found.proved and found.float32_violates and found.float32_margin <= 0.0
            assert violated(model, unsafe, found.x)


def test_a_witness_that_cannot_be_pushed_is_kept_with_both_numbers():
    x = np.array([1 + 1e-9])
    model = network(([[-1.0]], [1.0]))
    thin = UnsafeSet(x, x, np.eye(1), np.zeros(1), strict=np.array([True]))
    found = find_violation(model, [thin], turns=1)
    assert found.proved and found.margin < 0.0 and found.float32_margin == 0.0
    assert not found.float32_violates
    np.testing.assert_array_equal(found.x, x)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e150])
def test_scales_do_not_matter(scale):
    """Inputs of one size, outputs of another."""
    rng = np.random.default_rng(4)
    W, V = rng.standard_normal((8, 4)) / scale, rng.standard_normal((1, 8)) * scale
    model = network((W, rng.standard_normal(8)), (V, [0.0]))
    X = rng.uniform(-scale, scale, (4000, 4))
    unsafe = cube(4, [1.0], model(X).min(), low=-scale, high=scale)
    found = find_violation(model, [unsafe], turns=6)
    assert found is not None and found.proved and violated(model, unsafe, found.x)


def test_widths_of_coordinates_do_not_matter():
    lower, width = np.array([0.0, -5.0, 1e6, 2.0]), np.array([1e-8, 10.0, 1e5, 0.0])
    upper = lower + width
    goal = lower + 0.9 * width
    weight = np.where(width > 0, 1.0 / np.where(width > 0, width, 1.0), 0.0)
    model = network((np.diag(weight), -weight * goal + 1e-3), (np.ones((1, 4)), [0.0]))
    unsafe = UnsafeSet(lower, upper, -np.eye(1), np.array([-0.25]))
    found = find_violation(model, [unsafe], turns=3)
    assert found is not None and violated(model, unsafe, found.x) and found.x[3] == 2.0


def test_zero_width_boxes_and_denormal_ones():
    model = network((np.eye(2), np.zeros(2)))
    point = np.array([0.5, -0.5])
    hit = UnsafeSet(point, point, np.array([[1.0, 1.0]]), np.zeros(1))
    assert find_violation(model, [hit], turns=1).proof == "rationals"
    miss = UnsafeSet(point, point, np.array([[1.0, 1.0]]), np.array([-1e-9]))
    assert find_violation(model, [miss], turns=2) is None
    tiny = UnsafeSet(np.zeros(2), np.full(2, 5e-324), np.array([[-1.0, 0.0]]), np.array([-5e-324]))
    found = find_violation(model, [tiny], turns=2)
    assert found is not None and found.proved and found.x[0] == 5e-324


def test_models_that_overflow_on_the_way_are_searched():
    """exp(800 x) overflows on most of the box; the violation lies where it does not."""
    graph = Builder((1, 1))
    large = graph.add(Exp(), graph.add(Dense(np.array([[800.0]]), None), graph.input))
    apart = graph.add(Dense(np.array([[1.0], [-1.0]]), None), large)
    model = graph.model(graph.add(Dense(np.array([[1.0, 0.5]]), None), apart), input_shape=(1,))
    unsafe = UnsafeSet(np.full(1, -1.0), np.full(1, 9.0), np.eye(1), np.array([1e-3]))
    found = find_violation(model, [unsafe], turns=6)
    assert found is not None and found.proved and found.x[0] < 0


def test_huge_boxes():
    model = network((np.array([[1e-300, -1e-300]]), [0.0]))
    top = np.finfo(float).max
    unsafe = UnsafeSet(np.full(2, -top), np.full(2, top), np.eye(1), np.array([-3e8]))
    found = find_violation(model, [unsafe], turns=2)
    assert found is not None and found.proved


# ---------------------------------------------------------------------- the clock


def hard_sets(rng):
    model = model_of_network(random_network(rng, [5, 12, 12, 3]))
    low = model(rng.uniform(0, 1, (5000, 5))).min(axis=0) - 10.0
    return model, [cube(5, np.eye(3)[[i]], low[[i]]) for i in range(3)] + [cube(5, np.eye(3), low + 8)]


def test_a_longer_search_goes_through_the_shorter_one():
    model, sets = hard_sets(np.random.default_rng(5))
    whole, parts = Falsifier(model, sets, seed=3), Falsifier(model, sets, seed=3)
    assert whole.search(5) is None
    for turns in (0, 2, 3):
        assert parts.search(turns, deadline=Deadline.after(1e6)) is None
    assert whole.turn == parts.turn == 5
    np.testing.assert_array_equal(whole._state.point, parts._state.point)
    np.testing.assert_array_equal(whole._state.loss, parts._state.loss)
    shorter = Falsifier(model, sets, seed=3)
    shorter.search(2)
    assert (shorter._state.loss >= whole._state.loss).all()
    other = Falsifier(model, sets, seed=4)
    other.search(2)
    assert not np.array_equal(other._state.point, shorter._state.point)


def test_time_that_is_over_ends_the_search():
    model, sets = hard_sets(np.random.default_rng(6))
    start = monotonic()
    assert find_violation(model, sets, deadline=Deadline.after(0.3)) is None
    assert 0.25 < monotonic() - start < 5.0
    assert find_violation(model, sets, deadline=Deadline.after(0.0)) is None


def test_what_is_found_by_the_last_step_is_still_proved():
    model = network((np.eye(1), np.zeros(1)))
    search = Falsifier(model, [cube(1, [1.0], 0.5)])
    search._state.deadline = Deadline.after(0.0)
    search._state.tried(np.zeros(1, int), np.array([[0.25]]))
    assert search.search(deadline=Deadline.after(0.0)).proved


# ---------------------------------------------------------------------- the parts


def test_weights_of_rows():
    sets = [cube(1, [[1.0], [1.0], [1.0]], [0.0, 1.0, 5.0])]
    goals = Goals.of(sets)
    zero, residuals = np.zeros(3, int), np.array([[3.0, 2.0, -2.0]] * 3)
    hard, soft, open_ = goals.weights(zero, residuals, np.array([HARD, SOFT, OPEN]))
    np.testing.assert_array_equal(hard, [1.0, 0.0, 0.0])
    np.testing.assert_allclose(open_, [0.5, 0.5, 0.0])
    np.testing.assert_allclose(soft[1] / soft[0], np.exp(-1.0 / 0.3))
    assert soft.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(goals.losses(zero[:1], residuals[:1]), [3.0])


def test_residuals_of_inputs_and_outputs():
    rng = np.random.default_rng(7)
    model = model_of_network(random_network(rng, [3, 4, 2]))
    unsafe = cube(
        3, rng.standard_normal((2, 2)), rng.standard_normal(2), input_rows=rng.standard_normal((2, 3))
    )
    X = rng.random((6, 3))
    expected = X @ unsafe.input_rows.T + model(X) @ unsafe.rows.T - unsafe.limits
    np.testing.assert_allclose(Goals.of([unsafe]).residuals(np.zeros(6, int), X, model(X)), expected)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_steps_stay_in_their_regions(norm):
    rng = np.random.default_rng(8)
    X, radius = rng.random((50, 6)), rng.uniform(0.01, 0.5, 50)
    balls = Balls.around(X, radius, norm)
    balls = Balls(X, radius, norm, np.maximum(balls.lower, 0.0), np.minimum(balls.upper, 1.0))
    way = rng.standard_normal((50, 6))
    for points in (
        uniform(balls, rng),
        corners(balls, rng),
        into(balls, 10 * way),
        moved(balls, X, np.clip(way, -1, 1), np.full(50, 0.7)),
    ):
        assert (points >= balls.lower).all() and (points <= balls.upper).all()
        assert (lengths(points - X, norm) <= radius * (1 + 1e-12)).all()
    assert (half_widths(balls) <= radius[:, None] * (1 + 1e-12)).all()
    # A full step along the gradient of a linear function ends where it is smallest.
    if norm == "linf":
        np.testing.assert_allclose(half_widths(balls), (balls.upper - balls.lower) / 2)
        ends = moved(balls, X, np.sign(way), np.full(50, 2.0))
        np.testing.assert_array_equal(ends, np.where(way > 0, balls.lower, balls.upper))


def test_slopes_on_boxes_lead_where_gradients_do_not():
    """The plateau again: gradients alone stay, slopes on shrinking boxes get to the corner."""
    model = network((np.ones((1, 30)), [-29.5]), ([[-1.0]], [0.0]))
    goals = Goals.of([cube(30, [1.0], -0.4)])
    which, middle = np.zeros(1, int), np.full((1, 30), 0.5)

    def search():
        return Searching(model, goals, np.zeros(1, int), np.random.default_rng(0), NEVER)

    by_slopes, by_gradients = search(), search()
    follow(by_slopes, which, middle, np.array([HARD]), (1.0, 0.5))
    assert by_slopes.found and not by_gradients.found
    descend(by_gradients, which, middle, np.array([HARD]), np.array([False]), np.array([0.5]), 20)
    assert not by_gradients.found


def test_descent_reaches_the_least_value_of_a_bowl():
    """Adam and signs: the maximum of four planes, least in the middle of the box."""
    W = np.concatenate([np.eye(2), -np.eye(2)])
    model = network((W, -W @ np.array([0.3, 0.6])))
    goals = Goals.of([cube(2, np.eye(4), np.full(4, 0.02))])
    for kind, adam in product((HARD, SOFT, OPEN), (False, True)):
        search = Searching(model, goals, np.zeros(1, int), np.random.default_rng(0), NEVER)
        descend(
            search,
            np.zeros(1, int),
            np.array([[0.9, 0.1]]),
            np.array([kind]),
            np.array([adam]),
            np.array([0.5]),
            40,
        )
        assert search.found, (kind, adam)


def test_turns_are_shared_between_promise_and_all():
    model, sets = hard_sets(np.random.default_rng(9))
    search = Falsifier(model, sets)
    search.search(4)
    assert (search._state.gradients > 0).all()
    best = np.argmin(search._state.loss)
    assert search._state.gradients[best] == search._state.gradients.max()


def test_large_models_are_only_followed_by_gradients(monkeypatch):
    from pindown.verification import _descents

    monkeypatch.setattr(_descents, "FOLLOW_MAX_BYTES", 0)
    monkeypatch.setattr(_descents, "relaxed_gradients", None)
    model, sets = hard_sets(np.random.default_rng(10))
    assert find_violation(model, sets, turns=3) is None


def test_recipes_are_all_of_known_kinds():
    starts = {"best", "near", "picked", "random", "corners", "centre"}
    tables = (
        falsification.OPENING,
        falsification.RECIPES_FEW,
        falsification.RECIPES_MANY,
        falsification.DEEPER,
    )
    assert {recipe.start for table in tables for recipe in table} <= starts


def test_forms_of_inputs_show_the_way():
    """f is constant: only the form of the inputs says where to go, to a corner of 40 dimensions."""
    model = network((np.zeros((1, 40)), [1.0]))
    way = np.where(np.arange(40) % 2, 1.0, -1.0)
    unsafe = cube(40, [1.0], 1.0 - 19.9, input_rows=way[None])
    found = find_violation(model, [unsafe], turns=0)
    assert found is not None and found.proved and violated(model, unsafe, found.x)


def test_what_found_it_is_told():
    model = network((np.eye(2), np.zeros(2)))
    assert find_violation(model, [cube(2, [1.0, 1.0], 1.0)]).by == "samples"
    plateau = network((np.ones((1, 30)), [-29.5]), ([[-1.0]], [0.0]))
    found = find_violation(plateau, [cube(30, [1.0], -0.4)], turns=0)
    assert found.by == "linear bounds on shrinking boxes"


def test_the_best_points_are_kept():
    model = network((np.eye(2), np.zeros(2)))
    goals = Goals.of([cube(2, [1.0, 0.0], -1.0), cube(2, [0.0, 1.0], -1.0)])
    search = Searching(model, goals, np.zeros(2, int), np.random.default_rng(0), NEVER)
    X = np.array([[0.5, 0.9], [0.2, 0.8], [0.7, 0.1], [0.3, 0.3]])
    for which in (np.zeros(4, int), np.ones(4, int)):
        search.tried(which, X)
    np.testing.assert_allclose(search.loss, [1.2, 1.1])
    np.testing.assert_array_equal(search.point, X[[1, 2]])
    search.tried(np.array([0, 0, 1]), np.array([[0.9, 0.9], [0.1, 1.0], [1.0, 0.05]]))
    np.testing.assert_allclose(search.loss, [1.1, 1.05])
    np.testing.assert_array_equal(search.promising(), [1, 0])


def test_a_group_is_finished_by_one_of_its_goals():
    model = network((np.eye(1), np.zeros(1)))
    sets = [cube(1, [1.0], 0.5), cube(1, [1.0], -9.0), cube(1, [1.0], -9.0)]
    search = Searching(model, Goals.of(sets), np.array([0, 0, 1]), np.random.default_rng(0), NEVER)
    search.tried(np.array([0]), np.array([[0.25]]))
    np.testing.assert_array_equal(search.open, [False, False, True])
    assert list(search.found) == [0] and not search.over


def test_walks_go_down():
    """On a linear function of 60 inputs every hopeful flip is a good one: 60 steps are enough."""
    way = np.where(np.arange(60) % 3, 1.0, -1.0)
    model = network((way[None], [0.0]))
    goals = Goals.of([cube(60, [1.0], -19.5)])
    search = Searching(model, goals, np.zeros(1, int), np.random.default_rng(0), NEVER)
    walk(search, 60)
    assert search.found


def test_descent_by_gradients_sees_forms_of_inputs():
    model = network((np.zeros((1, 40)), [1.0]))
    way = np.where(np.arange(40) % 2, 1.0, -1.0)
    goals = Goals.of([cube(40, [1.0], 1.0 - 19.9, input_rows=way[None])])
    search = Searching(model, goals, np.zeros(1, int), np.random.default_rng(0), NEVER)
    start = np.full((1, 40), 0.5)
    descend(search, np.zeros(1, int), start, np.array([HARD]), np.array([False]), np.array([0.5]), 12)
    assert search.found


def test_slopes_on_boxes_see_forms_of_inputs():
    """f is the first input; the others only occur in the form of the inputs."""
    model = network((np.eye(1, 40), [0.0]))
    way = np.where(np.arange(40) % 2, 1.0, -1.0)
    goals = Goals.of([cube(40, [1.0], -18.9, input_rows=way[None])])
    search = Searching(model, goals, np.zeros(1, int), np.random.default_rng(0), NEVER)
    follow(search, np.zeros(1, int), np.full((1, 40), 0.5), np.array([HARD]), (1.0,))
    assert search.found
