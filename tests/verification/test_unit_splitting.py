"""Splitting ReLUs: complete on small networks, and never wrong."""

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.deadline import NEVER, Deadline
from pindown.model import Builder
from pindown.model.from_network import model_of_network
from pindown.model.operations.dense import Add, Dense, Scale
from pindown.model.operations.operation import Interval, as_fractions
from pindown.model.operations.relu import Relu
from pindown.parallel import workers
from pindown.relaxation.model_bounds import tighten
from pindown.relaxation.propagation import Goal
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.verification import unit_splitting as module
from pindown.verification.properties import UnsafeSet
from pindown.verification.unit_splitting import UnitSplitting, halved
from tests.verification.brute_force import reaches
from tests.verification.nets import random_network
from tests.verification.small_problems import known, unsafe_set, whole_network

# Every point is in it: nothing is ever proved.
EVERYWHERE = UnsafeSet(-np.ones(2), np.ones(2), np.zeros((1, 2)), np.zeros(1))


def splitting(model, unsafe, *, steps=0, threads=1):
    """Return a search for an unsafe set of a model."""
    root = RelaxedModel.by_intervals(model, Interval(unsafe.lower[None], unsafe.upper[None]))
    tighten(root, steps=steps)
    at_input = None if unsafe.input_rows is None else -unsafe.input_rows
    goal = Goal(-unsafe.rows.reshape(-1, *model.output_shape), at_input, unsafe.limits)
    return UnitSplitting(root, goal, threads=threads)


def finished(search, rounds=500):
    for _ in range(rounds):
        if search.done:
            return search
        search.round(NEVER)
    raise AssertionError("the search does not end")


@pytest.mark.parametrize("seed", range(3))
def test_it_ends_and_says_what_brute_force_says(seed):
    """All activation patterns in rational numbers: what is out of reach is proved, nothing else is."""
    rng = np.random.default_rng(seed)
    seen = set()
    for _ in range(15):
        net = whole_network(rng, int(rng.choice([1, 2])))
        unsafe = unsafe_set(rng, net, inputs=rng.random() < 0.3)
        truth = known(net, unsafe)
        search = finished(splitting(model_of_network(net), unsafe, steps=int(rng.choice([0, 4]))))
        seen.add(truth)
        if truth == "safe":
            assert not search.stuck
        elif truth == "reached" or reaches(net, unsafe):
            assert search.stuck
    assert {"safe", "reached"} <= seen


def test_the_bound_is_never_below_the_truth():
    """At every moment: the smallest form at any point of the box is at most the bound, or negative."""
    rng = np.random.default_rng(9)
    for _ in range(12):
        net = whole_network(rng, 2)
        unsafe = unsafe_set(rng, net, inputs=True)
        exact = net.as_fractions()
        search = splitting(model_of_network(net), unsafe)
        assert search.bound == np.inf and not search.done
        depths = []
        for x in rng.integers(-4, 5, (25, 2)) / 2:
            inner = np.array([Fraction(float(v)) for v in x])
            over = as_fractions(unsafe.rows) @ exact(inner) + as_fractions(unsafe.input_rows) @ inner
            depths.append(min(as_fractions(unsafe.limits) - over))
        deepest = max(depths)
        for _ in range(5):
            if not search.done:
                search.round(NEVER)
            assert deepest < 0 or deepest <= Fraction(search.bound)


def test_halves_of_a_part_cover_it():
    """Each has one more sign, of the same unit, and both signs are there."""
    search = splitting(
        model_of_network(random_network(np.random.default_rng(3), [2, 4, 4, 2])), EVERYWHERE
    )
    part = halved(halved(search.begin(), 0, 1), 2, -1)
    assert part.units.tolist() == [0, 2] and part.signs.tolist() == [1, -1]
    one, other = search.cut([part], [np.array([1, 3])])
    assert one.units.tolist() == other.units.tolist() and one.units[-1] in (1, 3)
    assert one.signs.tolist() == [1, -1, 1] and other.signs.tolist() == [1, -1, -1]


def one_tensor_read_by_two_relus():
    """Return relu(z) - relu(z) = 0 of z = x + y."""
    graph = Builder((1, 2))
    z = graph.add(Dense([[1.0, 1.0], [1.0, -1.0]], [0.0, 0.0]), graph.input)
    out = graph.add(Add(), graph.add(Relu(), z), graph.add(Scale(np.array(-1.0)), graph.add(Relu(), z)))
    return graph.model(out, input_shape=(2,))


def test_a_tensor_that_two_relus_read_is_split_once():
    unsafe = UnsafeSet(-np.ones(2), np.ones(2), np.array([[-1.0, 0.0]]), np.array([-0.01]))
    search = finished(splitting(one_tensor_read_by_two_relus(), unsafe))
    assert not search.stuck and search.n_units == 2


def test_networks_without_open_units_are_decided_at_once():
    """An affine map, with rows of which each alone is reached: y >= 1 and y <= 0.9."""
    net = ReluNetwork.from_layers([([[1.0, 1.0]], [0.0])])
    rows = np.array([[-1.0], [1.0]])
    for limits, safe in (([-1.0, 0.9], True), ([-1.0, 1.1], False)):
        unsafe = UnsafeSet(-np.ones(2), np.ones(2), rows, np.array(limits))
        search = finished(splitting(model_of_network(net), unsafe))
        assert search.n_units == 0 and bool(search.stuck) != safe
        if not safe:  # and the linear program shows where
            (point,) = search.corners[-1]
            assert 1.0 - 1e-6 <= point.sum() <= 1.1 + 1e-6


def test_several_threads_find_the_same():
    rng = np.random.default_rng(6)
    for _ in range(3):
        net = whole_network(rng, 2)
        unsafe = unsafe_set(rng, net)
        one, two = (finished(splitting(model_of_network(net), unsafe, threads=n)) for n in (1, 3))
        assert bool(one.stuck) == bool(two.stuck)


def test_an_interrupted_round_loses_nothing(monkeypatch):
    """Parts that were taken wait again, also when Ctrl-C comes in the middle."""
    search = splitting(
        model_of_network(random_network(np.random.default_rng(2), [2, 6, 6, 2])), EVERYWHERE
    )
    while len(search.waiting) < 3:
        search.round(NEVER)

    def held():
        return sorted((*part.units, *part.signs) for *_, part in search.waiting)

    def interrupted(*_):
        raise KeyboardInterrupt

    before = held()
    monkeypatch.setattr(UnitSplitting, "_bound", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.round(NEVER)
    assert held() == before


def test_time_that_is_over_still_gives_proved_bounds():
    rng = np.random.default_rng(8)
    for _ in range(6):
        net = whole_network(rng, 2)
        unsafe = unsafe_set(rng, net)
        search = splitting(model_of_network(net), unsafe)
        for _ in range(40):
            if not search.done:
                search.round(Deadline.after(0.0))
        if search.done and not search.stuck:
            assert not reaches(net, unsafe)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e150])
def test_huge_and_tiny_networks_are_no_trouble(scale):
    """The function scaled in its last layer, limits with it: the same answer, or none."""
    rng = np.random.default_rng(5)
    for _ in range(4):
        net = whole_network(rng, 2, depth=2)
        unsafe = unsafe_set(rng, net)
        *inner, (W, b) = net.layers
        scaled = ReluNetwork.from_layers([*inner, (W * scale, b * scale)])
        moved = replace(unsafe, limits=unsafe.limits * scale)
        search = splitting(model_of_network(scaled), moved)
        for _ in range(30):
            if not search.done:
                search.round(NEVER)
        if search.done and not search.stuck:
            assert not reaches(scaled, moved)


def test_what_float32_cannot_tell_is_proved_in_float64():
    """1000.1 (relu(z) - relu(-z) - z) = 0 with z = x + b stays below 1e-8: float32 cannot see it."""
    for b in (0.1, 0.3, -0.7, 1 / 3):
        net = ReluNetwork.from_layers([([[1.0], [-1.0]], [b, -b]), ([[1000.1, -1000.1]], [-1000.1 * b])])
        at_input = np.array([[1000.1]])
        unsafe = UnsafeSet(-np.ones(1), np.ones(1), np.array([[-1.0]]), np.array([-1e-8]), at_input)
        assert not finished(splitting(model_of_network(net), unsafe)).stuck


def test_parts_that_wait_keep_to_their_memory(monkeypatch):
    """With room for the slopes of two parts only, the answer is the same, and no more is held."""
    rng = np.random.default_rng(7)
    seen, crowded = set(), 0
    for _ in range(10):
        net = random_network(rng, [3, 6, 6, 2])
        unsafe = unsafe_set(rng, net)
        free = finished(splitting(model_of_network(net), unsafe))
        search = splitting(model_of_network(net), unsafe)
        room = 2 * search.usual.nbytes
        monkeypatch.setattr(module, "SPLIT_WAITING_BYTES", room)
        while not search.done:
            search.round(NEVER)
            own = {id(p.slopes): p.slopes for *_, p in search.waiting if p.slopes is not search.usual}
            assert sum(slopes.nbytes for slopes in own.values()) == search.held <= room
            assert all(slopes.base is None for slopes in own.values())  # and no larger array behind
            crowded += search.held == room
        monkeypatch.undo()
        assert bool(search.stuck) == bool(free.stuck)
        seen.add(bool(free.stuck))
    assert seen == {True, False} and crowded > 5


def test_a_search_is_sent_without_what_waits():
    """A worker needs the model and the goal; what it is sent is the same at every round."""
    model = model_of_network(random_network(np.random.default_rng(2), [2, 6, 6, 2]))
    search = splitting(model, EVERYWHERE)
    search.round(NEVER)
    before = pickle.dumps(search._tried)
    search.round(NEVER)
    assert search.waiting and pickle.dumps(search._tried) == before
    part = search.waiting[0][2]
    assert np.array_equal(pickle.loads(before)([part]), search._tried([part]))


@pytest.mark.slow
@pytest.mark.parametrize("where", [{"backend": "processes"}, {"cluster": "local"}])
def test_processes_and_a_cluster_find_what_threads_do(where):
    """The same parts, as they are shared out in the same way: no less is proved elsewhere."""
    rng = np.random.default_rng(6)
    seen, parts = set(), 0
    with workers(2, **where):
        for _ in range(8):
            net = random_network(rng, [3, 6, 6, 2])
            unsafe = unsafe_set(rng, net)
            there = finished(splitting(model_of_network(net), unsafe, threads=2))
            with workers(2, backend="threads"):
                here = finished(splitting(model_of_network(net), unsafe, threads=2))
            assert (here.n_parts, len(here.stuck)) == (there.n_parts, len(there.stuck))
            seen.add(bool(here.stuck))
            parts += here.n_parts
    assert seen == {True, False} and parts > 50
