"""Branch and bound by several workers: the interval stays true, whoever does the work."""

import os
import signal
from dataclasses import replace
from functools import partial
from math import inf

import numpy as np
import pytest

from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.comparison import _parallel_branching as parallel_branching
from pindown.equivalence.comparison._branching import Cover, cuts, gap_by_branching
from pindown.equivalence.comparison._cells import gap_by_cells
from pindown.equivalence.comparison._labels import narrow_labels
from pindown.equivalence.comparison._parallel_branching import (
    Frontier,
    Part,
    branch_in_rounds,
    dealt,
    explore,
    gap_in_rounds,
)
from pindown.equivalence.comparison._witness_search import gaps_at
from pindown.equivalence.comparison.methods import narrow
from pindown.parallel import workers
from pindown.relaxation.differential import gap_bounds, proved_gap
from pindown.relaxation.linear import LinearForms
from tests.equivalence.comparison.nets import exact_gap, perturbed, random_net, unit_box

LONG = 60.0  # seconds, never used up: no test waits for a clock


@pytest.fixture
def at_once(monkeypatch):
    """Let rounds begin after a few boxes, and be short, so that small pairs need several."""
    monkeypatch.setattr(parallel_branching, "HEAD_WORK", 1)
    monkeypatch.setattr(parallel_branching, "MAX_PART_BOXES", 16)


def pairs(n, widths=(3, 6, 6, 2)):
    rng = np.random.default_rng(3)
    for i in range(n):
        a = random_net(widths, rng)
        yield a, perturbed(a, 0.3, rng) if i % 2 else random_net((widths[0], 7, widths[-1]), rng)


def soon():
    return Deadline.after(LONG)


def same_boxes(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("lower", "upper", "bound", "cut")
    )


@pytest.mark.usefixtures("at_once")
def test_all_states_contain_the_exact_gap():
    for a, b in pairs(3):
        box = unit_box(3)
        exact = gap_by_cells(a, b, box)
        with workers(2, backend="threads"):
            states = list(gap_in_rounds(a, b, box, precision=1e-2, deadline=soon()))
        for state in states:
            assert state.lower <= exact.upper
            assert state.upper >= exact.lower
        assert states[-1].upper - states[-1].lower <= 1e-2 * states[-1].upper
        assert exact_gap(a, b, states[-1].witness) >= states[-1].lower
        uppers = [state.upper for state in states]
        assert uppers == sorted(uppers, reverse=True)


@pytest.mark.usefixtures("at_once")
def test_verdicts_agree_with_one_worker_on_both_sides_of_the_gap():
    for a, b in pairs(2):
        box = unit_box(3)
        gap = gap_by_cells(a, b, box).lower
        for tol in (0.9 * gap, 1.1 * gap):
            *_, serial = gap_by_branching(a, b, box, tol=tol, deadline=soon())
            with workers(2, backend="threads"):
                *_, shared = gap_in_rounds(a, b, box, tol=tol, deadline=soon())
            assert (serial.lower > tol) == (shared.lower > tol) == (tol < gap)
            assert (serial.upper <= tol) == (shared.upper <= tol) == (tol > gap)


@pytest.mark.usefixtures("at_once")
def test_the_result_does_not_depend_on_the_number_of_workers():
    rng = np.random.default_rng(0)
    a = random_net((4, 8, 8, 1), rng)
    b, box = perturbed(a, 0.1, rng), unit_box(4)
    found = []
    for place in ({"n_jobs": 1}, {"n_jobs": 3, "backend": "threads"}, {"n_jobs": 2}):
        frontier = Frontier(Cover.empty(4))
        with workers(**place):
            *_, state = gap_in_rounds(a, b, box, precision=0.3, deadline=soon(), frontier=frontier)
        found.append((state, frontier))
    (first, at), *others = found
    assert at.rounds > 3
    for state, frontier in others:
        assert (state.lower, state.upper) == (first.lower, first.upper)
        assert np.array_equal(state.witness, first.witness)
        assert same_boxes(frontier.cover, at.cover)


def volume(cover):
    return float(np.prod(cover.upper - cover.lower, axis=1).sum())


def part_of(a, b, box, **changes):
    lower, upper = box.lower[None], box.upper[None]
    bound, forms = gap_bounds(a, b, lower, upper)
    cover = Cover(lower, upper, bound, cuts(forms, lower, upper))
    return Part(cover, 0.0, 0.0, 0.0, None, 0.0, 200, LONG)._replace(**changes)


def test_a_part_gives_back_the_same_inputs_and_leaves_its_boxes_alone():
    ((a, b),) = pairs(1)
    work = partial(explore, partial(gap_bounds, a, b), partial(gaps_at, a, b), 16)
    part = part_of(a, b, unit_box(3))
    given = replace(part.cover)
    found = work(part)
    assert same_boxes(part.cover, given)
    assert found.done == 0.0  # nothing is closed without a floor, so all the volume is open
    assert volume(found.cover) == pytest.approx(8.0, rel=1e-12)
    assert found.cover.top < part.cover.top
    assert found.bounded == 200
    X = np.random.default_rng(1).uniform(-1, 1, (2_000, 3))
    gaps = gaps_at(a, b, X)
    for low, high, bound in zip(found.cover.lower, found.cover.upper, found.cover.bound, strict=True):
        inside = ((low <= X) & (high >= X)).all(axis=1)
        assert gaps[inside].max(initial=0.0) <= bound
    floor = 0.5 * part.cover.top
    closed = work(part._replace(floor=floor))
    assert 0.0 < closed.done <= floor
    assert volume(closed.cover) < 8.0


def test_what_time_does_not_allow_keeps_its_bound():
    ((a, b),) = pairs(1)
    part = part_of(a, b, unit_box(3), seconds=0.0)
    found = explore(partial(gap_bounds, a, b), partial(gaps_at, a, b), 16, part)
    assert found.bounded == 2  # one turn, whatever the clock says
    assert found.cover.top <= part.cover.top
    assert volume(found.cover) == pytest.approx(8.0)


def test_boxes_too_thin_to_cut_count():
    point = np.array([[1.0]])
    cover = Cover(point, point, np.array([7.0]), np.array([0]))

    def never(*_, **__):
        raise AssertionError("there is nothing to bound")

    found = explore(never, never, 4, Part(cover, 0.0, 0.0, 0.0, None, 0.0, 9, LONG))
    assert (found.done, len(found.cover.bound), found.bounded) == (7.0, 0, 0)


def test_dealing_loses_nothing():
    rng = np.random.default_rng(0)
    cover = Cover(rng.random((10, 2)), rng.random((10, 2)), rng.random(10), rng.integers(0, 2, 10))
    hands = dealt(cover, 4)
    assert sorted(np.concatenate([hand.bound for hand in hands])) == sorted(cover.bound)
    assert [hand.bound[0] for hand in hands] == sorted(cover.bound)[:-5:-1]
    assert len(dealt(cover, 64)) == 10


def dies_at_first(mark, a, b, lower, upper, *, deadline=NEVER):
    """Bound boxes; the first worker process that does so dies."""
    if os.getpid() != mark[1] and not mark[0].exists():
        mark[0].touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return gap_bounds(a, b, lower, upper, deadline=deadline)


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
def test_a_worker_that_dies_is_replaced(tmp_path):
    *_, (a, b) = pairs(2)
    mark = tmp_path / "died", os.getpid()
    ways = partial(dies_at_first, mark, a, b), partial(gaps_at, a, b), partial(proved_gap, a, b)
    with workers(2, backend="processes"):
        *_, state = branch_in_rounds(*ways, unit_box(3), size=150, precision=0.05, deadline=soon())
    assert mark[0].exists()
    exact = gap_by_cells(a, b, unit_box(3))
    assert state.lower <= exact.upper
    assert exact.lower <= state.upper <= state.lower / 0.94


class Interrupting:
    """Bounds that are interrupted, as by Ctrl-C, at some call."""

    def __init__(self, a, b, calls):
        self.a, self.b, self.calls = a, b, calls

    def __call__(self, lower, upper, *, deadline=NEVER):
        self.calls -= 1
        if not self.calls:
            raise KeyboardInterrupt
        return gap_bounds(self.a, self.b, lower, upper, deadline=deadline)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("calls", [2, 5, 20])
def test_an_interrupted_round_leaves_the_domain_covered(calls):
    ((a, b),) = pairs(1)
    frontier = Frontier(Cover.empty(3))
    ways = Interrupting(a, b, calls), partial(gaps_at, a, b), partial(proved_gap, a, b)
    seen = []
    with pytest.raises(KeyboardInterrupt):
        for state in branch_in_rounds(
            *ways, unit_box(3), size=150, deadline=soon(), n_jobs=1, frontier=frontier
        ):
            seen.append(state)
    exact = gap_by_cells(a, b, unit_box(3))
    assert frontier.top >= exact.lower
    closed = 8.0 - volume(frontier.cover)
    assert closed == pytest.approx(0.0, abs=1e-9) or frontier.done > 0.0
    goal = {"precision": 0.05, "deadline": soon(), "n_jobs": 1, "frontier": frontier}
    *_, state = gap_in_rounds(a, b, unit_box(3), start=seen[-1], **goal)
    assert state.lower <= exact.upper
    assert exact.lower <= state.upper <= 1.06 * exact.upper


def spikes(X):
    """64 spikes of height 1 on the unit square, off all points that halving would hit early."""
    return 1.0 - np.minimum(1.0, 64.0 * np.abs((8.0 * X + 0.37) % 1.0 - 0.5) / 8.0).max(axis=1)


def spike_bounds(lower, upper, *, deadline=NEVER):
    """The slope is 64 in every coordinate: a bound from the middle."""
    middle, reach = (lower + upper) / 2, (upper - lower).max(axis=1) / 2
    bound = np.minimum(1.0, spikes(middle) + 64.0 * reach)
    return bound, LinearForms(np.zeros((len(lower), 1, 2)), bound[:, None])


@pytest.mark.usefixtures("at_once")
def test_a_witness_stops_the_round_and_the_rest_keeps_its_bounds(monkeypatch):
    started, finished = [], []

    def counted(function, items, **how):
        started.append(len(items))
        finished.append(0)
        for pair in each(function, items, **how):
            finished[-1] += 1
            yield pair

    each = parallel_branching.each
    monkeypatch.setattr(parallel_branching, "each", counted)
    frontier = Frontier(Cover.empty(2))
    ways = spike_bounds, spikes, lambda point: float(spikes(point[None])[0])
    goal = {"size": 1, "tol": 0.9, "deadline": soon(), "n_jobs": 1, "frontier": frontier}
    *_, state = branch_in_rounds(*ways, Box([0, 0], [1, 1]), **goal)
    assert 0.9 < state.lower <= 1.0 <= state.upper
    assert spikes(state.witness[None])[0] == state.lower
    assert started[:-1] == finished[:-1]
    assert 0 < finished[-1] < started[-1] <= parallel_branching.MAX_PARTS
    assert frontier.top >= 1.0  # other spikes are as high, and nobody looked closely


def test_a_deadline_that_has_passed_still_gives_a_true_bound():
    ((a, b),) = pairs(1)
    *_, state = gap_in_rounds(a, b, unit_box(3), deadline=Deadline.after(-1.0), n_jobs=2)
    assert gap_by_cells(a, b, unit_box(3)).lower <= state.upper < inf


def test_flat_boxes_and_single_points():
    ((a, b),) = pairs(1)
    point = Box([0.2, 0.3, -0.1], [0.2, 0.3, -0.1])
    *_, state = gap_in_rounds(a, b, point, deadline=soon(), n_jobs=2)
    true = exact_gap(a, b, point.lower)
    assert state.lower <= true <= state.upper <= float(true) + 1e-9


def test_one_worker_takes_the_path_it_always_took(monkeypatch):
    ((a, b),) = pairs(1, (6, 5, 5, 2))

    def refused(*_, **__):
        raise AssertionError("rounds are for several workers")

    monkeypatch.setattr("pindown.equivalence.comparison.methods.gap_in_rounds", refused)
    for n_jobs in (None, 1):
        assert narrow(a, b, unit_box(6), deadline=Deadline.after(0.5), n_jobs=n_jobs).upper < inf
    with pytest.raises(AssertionError, match="several"):
        narrow(a, b, unit_box(6), deadline=Deadline.after(0.5), n_jobs=2)


@pytest.mark.usefixtures("at_once")
def test_disagreement_of_labels_by_two_workers():
    rng = np.random.default_rng(1)
    a = random_net((2, 6, 3), rng)
    b = perturbed(a, 0.3, rng)
    one = narrow_labels(a, b, unit_box(2), deadline=soon(), n_jobs=1)
    with workers(2, backend="threads"):
        two = narrow_labels(a, b, unit_box(2), deadline=soon())
    assert two.lower <= one.upper
    assert one.lower <= two.upper
    assert two.upper - two.lower <= 2e-3 * two.upper


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two"])
def test_bad_numbers_of_workers(n_jobs):
    ((a, b),) = pairs(1)
    with pytest.raises(ValueError, match="n_jobs must be a number of workers") as refusal:
        narrow(a, b, unit_box(3), n_jobs=n_jobs)
    assert "\n" not in str(refusal.value)


@pytest.mark.usefixtures("at_once")
def test_without_workers_that_live_one_process_goes_on(monkeypatch):
    (a, b), *_ = pairs(1)
    real, deaths = parallel_branching.each, []

    def dying(work, parts, *, n_jobs, batch):
        if n_jobs == 1:
            yield from real(work, parts, n_jobs=1, batch=batch)
            return
        deaths.append(n_jobs)
        raise ChildProcessError("workers keep dying")

    monkeypatch.setattr(parallel_branching, "each", dying)
    *_, last = gap_in_rounds(a, b, unit_box(3), precision=0.05, n_jobs=2)
    assert deaths == [2]
    cells = gap_by_cells(a, b, unit_box(3))
    assert last.lower <= cells.upper and cells.lower <= last.upper <= 1.1 * last.lower
