"""All methods together: the interval always holds the truth, and time is kept."""

import time

import numpy as np
import pytest

from pindown.deadline import NEVER, Deadline
from pindown.equivalence.comparison import GapState, diff, narrow
from pindown.equivalence.comparison._cells import gap_by_cells
from pindown.equivalence.comparison._run import Pair, Run
from pindown.equivalence.comparison.methods import Method, follow, in_rounds
from pindown.evidence import Bracket
from pindown.network import ReluNetwork
from pindown.relaxation.difference_network import norm_gap
from tests.equivalence.comparison.nets import perturbed, random_net, unit_box


@pytest.mark.parametrize(
    "shapes", [((2, 5, 1), (2, 5, 1)), ((2, 4, 4, 2), (2, 6, 2)), ((3, 6, 6, 1), (3, 6, 6, 1))]
)
def test_interval_contains_the_exact_gap(shapes):
    rng = np.random.default_rng(1)
    for i in range(4):
        a = random_net(shapes[0], rng)
        b = perturbed(a, 1e-3, rng) if shapes[0] == shapes[1] and i % 2 else random_net(shapes[1], rng)
        box = unit_box(shapes[0][0])
        exact = gap_by_cells(a, b, box)
        state = narrow(a, b, box, deadline=Deadline.after(20))
        assert state.lower <= exact.upper
        assert exact.lower <= state.upper
        assert state.upper - state.lower <= 1e-6 * state.upper


def test_tolerance_decides_either_way():
    rng = np.random.default_rng(2)
    a = random_net((4, 10, 10, 2), rng)
    b = perturbed(a, 1e-6, rng)
    same = narrow(a, b, unit_box(4), tol=1e-3)
    assert same.upper <= 1e-3
    different = narrow(a, b, unit_box(4), tol=1e-8)
    assert different.lower > 1e-8
    assert unit_box(4).contains(different.witness)
    assert np.abs(a(different.witness) - b(different.witness)).max() > 1e-8


@pytest.mark.parametrize("budget", [0.1, 0.5, 2.0])
def test_budget_is_kept(budget):
    rng = np.random.default_rng(3)
    a, b = random_net((6, 30, 30, 30, 3), rng), random_net((6, 30, 30, 3), rng)
    box = unit_box(6)
    began = time.monotonic()
    state = narrow(a, b, box, deadline=Deadline.after(budget))
    assert time.monotonic() - began < 1.1 * budget + 0.3
    X = box.sample(2000, rng)
    assert np.abs(a(X) - b(X)).max() <= state.upper


def test_history_and_progress_tell_the_same_story():
    rng = np.random.default_rng(4)
    a, b = random_net((3, 5, 1), rng), random_net((3, 5, 1), rng)
    seen = []
    state = narrow(a, b, unit_box(3), progress=lambda what, done, total: seen.append(what))
    assert len(seen) >= len(state.history) and seen[-1].startswith(state.history[-1].method)
    uppers = [step.upper for step in state.history]
    assert uppers == sorted(uppers, reverse=True)
    assert repr(state).startswith("GapState(")


def test_what_is_known_already_is_kept():
    a = random_net((2, 4, 1), np.random.default_rng(5))
    start = GapState(upper=1e-9)
    assert narrow(a, a, unit_box(2), start=start, tol=1e-6) is not None
    assert narrow(a, a, unit_box(2), start=start).upper == 0.0


def test_without_a_box():
    rng = np.random.default_rng(6)
    a = random_net((3, 5, 5, 2), rng)
    for b in (perturbed(a, 1e-6, rng), random_net((3, 7, 2), rng)):
        state = narrow(a, b, None)
        X = rng.normal(size=(5000, 3)) * 10.0 ** rng.uniform(-3, 6, (5000, 1))
        seen = (np.abs(a(X) - b(X)).max(axis=1) / (1 + np.linalg.norm(X, axis=1))).max()
        assert seen <= state.upper < np.inf
        assert 0 < state.lower <= state.upper
        assert norm_gap(a, b) == state.upper


def test_affine_networks_and_one_unit():
    line = ReluNetwork.from_layers([([[2.0]], [1.0])])
    relu = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
    state = narrow(line, relu, unit_box(1))
    assert state.lower == pytest.approx(2.0)
    assert state.upper == pytest.approx(2.0)
    assert narrow(line, line, None).upper == 0.0


def test_bad_input():
    a, b = (random_net(shape, np.random.default_rng(0)) for shape in ((2, 3, 1), (3, 3, 1)))
    with pytest.raises(ValueError, match="equal input and output sizes"):
        narrow(a, b, None)
    with pytest.raises(ValueError, match="the box has 3 dimensions"):
        narrow(a, a, unit_box(3))


def test_norms_whose_products_underflow_bound_the_gap_all_the_same():
    small = [([[1e-200, 0.0], [0.0, 1e-200]], [0, 0])]
    a = ReluNetwork.from_layers(
        [*small, ([[1e-200, 1e-200], [1e-200, 3e-200]], [0, 0]), ([[1e300, 1e300]], [0])]
    )
    b = ReluNetwork.from_layers([*small, ([[1e-200, 1e-200]], [0]), ([[1e300]], [0])])
    at_one = a.as_fractions()([1, 1])[0] - b.as_fractions()([1, 1])[0]
    assert at_one > 0
    assert norm_gap(a, b) * (1 + np.sqrt(2)) >= float(at_one)
    assert narrow(a, b, None, deadline=Deadline.after(1)).upper > 0


def recording(told, name, share, **how):
    """A method that writes down its name and how long one piece of its work may take."""

    def work(run, turn):
        told.append((name, turn().left))

    return Method(name, lambda run: name != "does not apply", share, work, **how)


def a_run(deadline, **how):
    a = random_net((2, 3, 1), np.random.default_rng(0))
    return Run(a, perturbed(a, 0.1, np.random.default_rng(1)), unit_box(2), deadline, **how)


def test_methods_follow_the_table_and_get_their_share_of_what_is_left():
    told = []
    table = (
        recording(told, "first", 0.5),
        recording(told, "does not apply", 1.0),
        recording(told, "short", 0.5, seconds=2.0),
        recording(told, "last", 1.0),
    )
    follow(a_run(Deadline.after(60.0)), table)
    assert [name for name, _ in told] == ["first", "short", "last"]
    assert [left for _, left in told] == pytest.approx([30.0, 2.0, 60.0], abs=1.0)


def test_rounds_do_not_depend_on_the_deadline_and_end_when_nothing_was_cut():
    told = []

    def work(run):
        told.append(run.slot.left)
        run.cut = len(told) < 4

    for deadline in (NEVER, Deadline.after(3600.0)):
        told.clear()
        in_rounds(a_run(deadline), work)
        assert told == pytest.approx([1.0, 4.0, 16.0, 64.0], abs=0.5)


class Steps:
    """A clock that moves on by one step whenever it is read."""

    def __init__(self, seconds):
        self.now, self.seconds = 0.0, seconds

    def __call__(self):
        self.now += self.seconds
        return self.now


@pytest.mark.parametrize("seed", range(4))
def test_more_budget_never_ends_with_a_worse_answer(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    shape = ((3, 6, 6, 2), (4, 8, 8, 1), (6, 10, 10, 2), (2, 5, 5, 5, 1))[seed]
    a = random_net(shape, rng)
    b = perturbed(a, (1e-3, 0.1, 1e-7, 0.02)[seed], rng)
    earlier = None
    for budget in (0.1, 0.3, 0.8, 2.0, 5.0, 20.0):
        monkeypatch.setattr("pindown.deadline.time.monotonic", Steps(0.01))
        answer = diff(a, b, box=unit_box(shape[0]), tol=1e-4, rtol=0.0, precision=0.01, budget=budget)
        steps = [(step.lower, step.upper, step.method) for step in answer.history]
        if earlier is not None:
            assert answer.gap_lower >= earlier.gap_lower and answer.gap_upper <= earlier.gap_upper
            before = [(step.lower, step.upper, step.method) for step in earlier.history]
            assert steps[: len(before) - 1] == before[:-1]  # the last one may be cut by the clock
        earlier = answer


def test_without_time_only_what_is_done_at_once_is_done():
    told = []
    table = (recording(told, "at once", 0.1, at_once=True), recording(told, "other", 1.0))
    follow(a_run(Deadline.after(0.0)), table)
    assert told == [("at once", 0.0)]


def test_once_it_is_decided_only_what_informs_is_done():
    told = []
    table = (recording(told, "informs", 0.1, informs=True), recording(told, "other", 1.0))
    run = a_run(Deadline.after(60.0), tol=0.5)
    run.take("a witness", Bracket(1.0))
    follow(run, table)
    assert [name for name, _ in told] == ["informs"]
    run.take("a proof", Bracket(0.0, 0.1))
    follow(run, table)
    assert len(told) == 1


def test_what_is_proved_of_a_reduced_pair_is_stated_for_the_given_one():
    run = a_run(Deadline.after(60.0), tol=1.0)
    point = np.zeros(2)
    run.work_on(Pair(run.second, run.second, slack=0.25))
    assert run.tol_of_pair == 0.75
    run.take("any", Bracket(9.0, 0.5, point))  # the gap at the point is taken of the given networks
    assert 0.75 <= run.state.upper <= 0.7500001
    there = float(np.abs(run.first(point) - run.second(point)).max())
    assert 0.0 < run.state.lower <= there and run.state.witness is point
