"""Cutting boxes: what is out of reach is proved, and nothing is cut off that counts."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.deadline import NEVER, Deadline
from pindown.model import Builder
from pindown.model.from_network import model_of_network
from pindown.model.operations.dense import Dense
from pindown.model.operations.operation import as_fractions
from pindown.model.operations.smooth import Tanh
from pindown.rounding import fraction_up
from pindown.verification import box_splitting as module
from pindown.verification.box_splitting import BoxSplitting, _cut, contracted
from pindown.verification.properties import UnsafeSet
from tests.model.properties import mixed
from tests.verification.brute_force import reaches
from tests.verification.nets import random_network
from tests.verification.small_problems import known, unsafe_set, whole_network


def ended(search, rounds=60):
    for _ in range(rounds):
        if search.done or search.stuck:
            break
        search.round(NEVER)
    return search


def below(low, high, limits, rows=None, **more):
    """Return the unsafe set ``rows @ y <= limits``, ``y <= limit`` if no rows are given."""
    limits = np.atleast_1d(np.asarray(limits, dtype=float))
    rows = np.eye(1) if rows is None else np.asarray(rows, dtype=float)
    return UnsafeSet(np.array(low, dtype=float), np.array(high, dtype=float), rows, limits, **more)


ABSOLUTE = model_of_network(ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])]))


@pytest.mark.parametrize("seed", range(3))
def test_it_says_what_brute_force_says(seed):
    rng = np.random.default_rng(seed)
    seen = set()
    for _ in range(20):
        net = whole_network(rng, int(rng.choice([1, 2])))
        unsafe = unsafe_set(rng, net, inputs=rng.random() < 0.3)
        truth = known(net, unsafe)
        seen.add(truth)
        search = ended(BoxSplitting(model_of_network(net), [unsafe]), 60 if truth == "safe" else 8)
        if truth == "safe":
            assert search.done
        elif truth == "reached" or reaches(net, unsafe):
            assert not search.done
    assert {"safe", "reached"} <= seen


def test_three_inputs_and_a_smooth_model():
    """tanh(x) + tanh(y) + tanh(z) is at most 3 tanh(1) = 2.285 on the cube."""
    graph = Builder((1, 3))
    out = graph.add(Dense([[1.0, 1.0, 1.0]]), graph.add(Tanh(), graph.input))
    model = graph.model(out, input_shape=(3,))
    for limit, safe in ((-2.3, True), (-2.28, False)):
        search = ended(BoxSplitting(model, [below([-1] * 3, [1] * 3, limit, [[-1.0]])]), 12)
        assert search.done == safe


def test_sets_are_proved_one_by_one():
    """Of |x| <= -1, |x| <= 0.2 and |x| >= 3, two on one box, only the second is reached."""
    sets = [below([-1], [1], -1.0), below([-1], [1], 0.2), below([0.5], [2], -3.0, [[-1.0]])]
    search = BoxSplitting(ABSOLUTE, sets)
    assert search.open_sets == {0, 1, 2} and search.bound == np.inf
    search.round(NEVER)
    assert search.open_sets == {1} and not search.done
    only = BoxSplitting(ABSOLUTE, sets, only=[0, 2])
    assert only.open_sets == {0, 2} and ended(only).done
    search.keep([0])
    assert search.done and search.open_sets == set()


def test_sets_of_different_lengths_and_with_forms_of_the_input():
    """|x| <= 0.5 with x >= 0.6; |x| - x <= -0.1; the box alone, which is all unsafe."""
    first = below([-1], [1], [0.5, -0.6], [[1.0], [0.0]], input_rows=np.array([[0.0], [-1.0]]))
    second = below([-1], [1], -0.1, input_rows=np.array([[-1.0]]))
    whole = below([0], [1], [], np.zeros((0, 1)))
    right = below([0], [1], -0.9, [[0.0]], input_rows=np.array([[-1.0]]))  # x >= 0.9
    search = BoxSplitting(ABSOLUTE, [first, second, whole, right])
    for _ in range(8):
        search.round(NEVER)
    assert search.open_sets == {2, 3}


def test_a_thin_box_does_not_end_the_search():
    """y <= 0 at one point only, a box without width; the other set is proved all the same."""
    tent = ReluNetwork.from_layers([(np.ones((2, 1)), [0.0, -1.0]), ([[1.0, -2.0]], [0.0])])
    touching, safe = below([0.0], [0.0], 0.0), below([0.0], [1.9], -0.0001)
    search = ended(BoxSplitting(model_of_network(tent), [touching, safe]))
    assert search.stuck and not search.done and search.open_sets == {0}
    assert 0.0 <= search.bound < 1e-300
    search.keep([1])
    assert search.done and not search.stuck


def test_boxes_of_a_few_numbers_come_to_an_end():
    """Between two float64 there is no middle, and that of two denormal ones lies outside."""
    for low, high in ((1.0, np.nextafter(1.0, 2.0)), (5e-324, 5e-324), (5e-324, 1.5e-323), (0.0, 0.0)):
        search = ended(BoxSplitting(ABSOLUTE, [below([low], [high], high)]))
        assert search.stuck and search.open_sets == {0} and search.bound >= 0.0
        points, _ = search.corners
        assert np.isfinite(points).all()


def test_huge_boxes_are_cut_without_overflow():
    search = BoxSplitting(ABSOLUTE, [below([-1.7e308], [1.7e308], -1e300)])
    assert ended(search).done


def test_the_bound_holds_for_all_boxes_that_wait():
    """Also for those that the last round did not look at: boxes are cut eight at a time here."""
    rng = np.random.default_rng(3)
    for _ in range(6):
        net = whole_network(rng, 2)
        unsafe = unsafe_set(rng, net)
        exact = net.as_fractions()
        depths = [
            min(as_fractions(unsafe.limits) - as_fractions(unsafe.rows) @ exact(as_fractions(x)))
            for x in rng.integers(-4, 5, (40, 2)) / 2
        ]

        class Few(BoxSplitting):
            batch = 8

        search = Few(model_of_network(net), [unsafe])
        for _ in range(12):
            if not search.done and not search.stuck:
                search.round(NEVER)
            deepest = max(depths)
            assert deepest < 0 or deepest <= Fraction(search.bound)


def test_the_bound_is_that_of_the_worst_box():
    """10 - x on [0, 1], cut one box at a time, the right one first: the worst waits on the left."""

    class One(BoxSplitting):
        batch = 1

    line = model_of_network(ReluNetwork.from_layers([([[1.0]], [0.0])]))
    search = One(line, [below([0], [1], 10.0)])
    for _ in range(12):
        search.round(NEVER)
    assert search.waiting > 8 and 10.0 <= search.bound < 10.001


def test_the_coordinate_that_is_cut_can_be_cut():
    """The first is wider, but there is nothing between its ends."""
    lower = np.array([[1e10, 0.0, 1.0]])
    upper = np.array([[np.nextafter(1e10, 2e10), 1e-8, 1.0]])
    low, high, _, thin = _cut(lower, upper, np.array([[1.0, 0.0, 1.0]]))
    assert not thin[0] and high[0, 1] == low[1, 1] == 5e-9


@pytest.mark.parametrize("spread", [1, 15, 150])
def test_contracting_keeps_every_point_that_counts(spread):
    """In rational numbers: where all forms are non-negative, the point is still in the box."""
    rng = np.random.default_rng(spread)
    kept = cut = 0
    for _ in range(200):
        d, q = int(rng.integers(1, 4)), int(rng.integers(1, 3))
        ends = np.sort(mixed(rng, (2, d), spread), axis=0)
        slope = mixed(rng, (q, d), spread) * (rng.random((q, d)) < 0.8)
        share = [rng.choice([0.0, 1.0, 0.5, rng.random()], d) for _ in range(6)]
        points = [np.clip(ends[0] + part * (ends[1] - ends[0]), *ends) for part in share]
        values = [as_fractions(slope) @ as_fractions(x) for x in points]
        # Forms that vanish at one of the points: it lies on the edge of what is kept.
        shift = -values[0]
        at_ends = [as_fractions(slope) * as_fractions(end) for end in ends]
        largest = np.maximum(*at_ends).sum(axis=1) + shift
        most = np.array([fraction_up(v) for v in largest])
        low, high, empty = contracted(ends[0][None], ends[1][None], slope[None], most[None])
        for x, value in zip(points, values, strict=True):
            if all(v + b >= 0 for v, b in zip(value, shift, strict=True)):
                kept += 1
                assert not empty[0] and (low[0] <= x).all() and (x <= high[0]).all()
        cut += bool((low > ends[0]).any() or (high < ends[1]).any())
    assert kept > 150 and cut > 20


def test_contracting_cuts_where_it_can():
    """2 x - 1 >= 0 on [0, 1] needs x >= 1/2; 1 - 2 x >= 0 with it leaves a point, -1 >= 0 nothing."""
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    low, high, empty = contracted(zero, one, np.array([[[2.0]]]), np.array([[1.0]]))
    assert low[0, 0] == pytest.approx(0.5) and high[0, 0] == 1.0 and not empty[0]
    both = np.array([[[2.0], [-2.0]]])
    low, high, empty = contracted(zero, one, both, np.array([[1.0, 1.0]]))
    assert low[0, 0] == pytest.approx(0.5) and high[0, 0] == pytest.approx(0.5) and not empty[0]
    assert contracted(zero, one, both, np.array([[1.0, 0.5]]))[2][0]
    assert contracted(zero, one, np.zeros((1, 1, 1)), np.array([[-1.0]]))[2][0]
    low, high, empty = contracted(zero, one, np.array([[[np.nan]]]), np.array([[np.nan]]))
    assert low[0, 0] == 0.0 and high[0, 0] == 1.0 and not empty[0]


def test_boxes_are_cut_where_the_bound_bends():
    """y = 9 x_1 + |x_2| / 4 + |x_3| / 8 is above -9 on the cube: only kinks are worth a cut."""
    first = np.array([[9.0, 0, 0], [-9.0, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
    net = ReluNetwork.from_layers([(first, np.zeros(6)), ([[1, -1, 0.25, 0.25, 0.125, 0.125]], [0])])
    model = model_of_network(net)
    unsafe = below([0.0, -1, -1], [1, 1, 1], 9.0)
    search = BoxSplitting(model, [unsafe])
    bounded = search._bounded(unsafe.lower[None], unsafe.upper[None], np.zeros((1, 1), int), NEVER)
    steep = bounded[3][0]
    assert steep[1] > 1.5 * steep[2] > 1e6 * steep[0]


def test_halves_cover_their_box():
    rng = np.random.default_rng(1)
    lower = mixed(rng, (50, 3), 20)
    upper = lower + np.abs(mixed(rng, (50, 3), 20)) * (rng.random((50, 3)) < 0.7)
    low, high, _, thin = _cut(lower, upper, rng.choice([0.0, 1.0, np.nan, np.inf, -1e308], (50, 3)))
    assert thin.sum() < 50 and len(low) == 2 * (~thin).sum()
    left, right = np.split(np.arange(len(low)), 2)
    np.testing.assert_array_equal(low[left], lower[~thin])
    np.testing.assert_array_equal(high[right], upper[~thin])
    differ = high[left] != upper[~thin]
    assert (differ.sum(axis=1) == 1).all() and (high[left][differ] == low[right][differ]).all()
    assert (low <= high).all()


def test_threads_and_time_change_no_answer():
    rng = np.random.default_rng(4)
    for _ in range(5):
        net = whole_network(rng, 2)
        unsafe = unsafe_set(rng, net)
        model = model_of_network(net)
        searches = [BoxSplitting(model, [unsafe], threads=n) for n in (1, 3)]
        late = BoxSplitting(model, [replace(unsafe)])
        for _ in range(8):
            for search in searches:
                if not search.done and not search.stuck:
                    search.round(NEVER)
            if not late.done and not late.stuck:
                late.round(Deadline.after(0.0))
        assert searches[0].done == searches[1].done and searches[0].n_parts == searches[1].n_parts
        assert not late.done or not reaches(net, unsafe)


def test_an_interrupted_round_loses_no_box(monkeypatch):
    search = BoxSplitting(ABSOLUTE, [below([-1], [1], 0.2)])
    for _ in range(3):
        search.round(NEVER)
    waiting, sets = search.waiting, search.open_sets

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(BoxSplitting, "_bounded", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.round(NEVER)
    assert search.waiting == waiting and search.open_sets == sets


def test_sets_on_one_box_share_its_parts_and_not_their_answers():
    """Together they need fewer boxes than one by one; which are reached, cells know."""
    rng = np.random.default_rng(5)
    seen, together, apart = set(), 0, 0
    for _ in range(12):
        net = whole_network(rng, 2)
        first = unsafe_set(rng, net)
        limits = [first.limits + shift for shift in (-6.0, -2.0, 0.0, 2.0)]
        sets = [replace(first, limits=limit, inner=None) for limit in limits]
        truths = [known(net, unsafe) for unsafe in sets]
        seen.update(truths)
        safe = {s for s, truth in enumerate(truths) if truth == "safe"}
        reached = {s for s, truth in enumerate(truths) if truth == "reached"}
        search = ended(BoxSplitting(model_of_network(net), sets), 40)
        assert not safe & search.open_sets and reached <= search.open_sets
        alone = [ended(BoxSplitting(model_of_network(net), [sets[s]]), 40) for s in safe]
        if len(safe) == len(sets):
            together, apart = together + search.n_parts, apart + sum(one.n_parts for one in alone)
    assert {"safe", "reached"} <= seen and together < apart


def test_sets_at_opposite_ends_of_one_box_both_stay_open():
    """What is left of a box to one set is no part of what is left of it to the other."""
    rng = np.random.default_rng(7)
    for _ in range(6):
        net = random_network(rng, [2, 8, 1])
        y = net(rng.uniform(-1, 1, (4000, 2)))[:, 0]
        ends = np.array([y.min(), -y.max()]) + 0.05 * np.ptp(y)
        sets = [
            below([-1] * 2, [1] * 2, end, [[sign]]) for end, sign in zip(ends, (1.0, -1.0), strict=True)
        ]
        assert ended(BoxSplitting(model_of_network(net), sets), 20).open_sets >= {0, 1}


def test_boxes_that_wait_keep_to_their_memory(monkeypatch):
    """With room for one box the answer is the same, and no more wait than there are cuts above one."""
    net = random_network(np.random.default_rng(6), [3, 8, 8, 1])
    y = net(np.stack(np.meshgrid(*[np.linspace(-1, 1, 21)] * 3), axis=-1).reshape(-1, 3))[:, 0]
    unsafe = below([-1] * 3, [1] * 3, -(y.max() + 0.01 * np.ptp(y)), [[-1.0]])
    parts, most = [], []
    for crowded in (False, True):
        search = BoxSplitting(model_of_network(net), [unsafe], _closely=0)
        if crowded:
            monkeypatch.setattr(module, "WAITING_BYTES", search._box_bytes)
        held = [0]
        while not search.done and search.n_parts < 200:
            search.round(NEVER)
            held.append(search.held)
        assert search.done and search._box_bytes == 8 * (3 + 3 + 1 + 2)
        parts.append(search.n_parts)
        most.append(max(held) / search._box_bytes)
    assert parts[0] == parts[1] > 40
    assert most[1] <= 6 < most[0]
