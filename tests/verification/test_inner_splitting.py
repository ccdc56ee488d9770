"""Cutting ranges inside a model: nothing is proved that is not so, and what few cuts prove is proved."""

import numpy as np
import pytest

from pindown.deadline import NEVER
from pindown.model.from_network import model_of_network
from pindown.model.operations.operation import Interval
from pindown.progress import silent
from pindown.relaxation.model_bounds import bounds, tighten
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.verification import Property, verify
from pindown.verification import inner_splitting as module
from pindown.verification.deduction import goal_of
from pindown.verification.inner_splitting import InnerSplitting, InnerSplittings
from pindown.verification.portfolio import Run
from pindown.verification.properties import UnsafeSet
from tests.relaxation.test_random_graphs import random_graph
from tests.verification.brute_force import reaches
from tests.verification.nets import random_network
from tests.verification.small_problems import known, unsafe_set, whole_network


def search_of(model, sets, threads=1):
    """Return a search for sets on one box."""
    root = RelaxedModel.by_intervals(model, Interval(sets[0].lower[None], sets[0].upper[None]))
    tighten(root)
    goals = {s: goal_of(unsafe, model.output_shape) for s, unsafe in enumerate(sets)}
    return InnerSplitting(root, goals, threads)


def finished(search, rounds=40):
    for _ in range(rounds):
        if not search.done:
            search.round(search.goals, NEVER)
    return search


@pytest.mark.parametrize("seed", [0, 2])
def test_small_networks_are_as_brute_force_says(seed):
    """All activation patterns in rational numbers: what is reached is never proved, most else is."""
    rng, safe, proved = np.random.default_rng(seed), 0, 0
    for _ in range(7):
        net = whole_network(rng, int(rng.choice([1, 2])))
        sets = [unsafe_set(rng, net, inputs=rng.random() < 0.3)]
        for _ in range(2):
            other = unsafe_set(rng, net, inputs=rng.random() < 0.3)
            sets.append(
                UnsafeSet(
                    sets[0].lower,
                    sets[0].upper,
                    other.rows,
                    other.limits,
                    other.input_rows,
                    other.strict,
                )
            )
        search = finished(search_of(model_of_network(net), sets, threads=int(rng.choice([1, 2]))))
        for s, unsafe in enumerate(sets):
            if known(net, unsafe) == "safe":
                safe, proved = safe + 1, proved + (s in search.proved)
            elif reaches(net, unsafe):
                assert s not in search.proved
    assert safe > 3 and proved > 0.7 * safe


@pytest.mark.parametrize("seed", range(2))
def test_no_sample_is_in_a_set_that_is_proved(seed):
    """Graphs that branch at random, also smooth ones; limits near what is reached."""
    rng, proved = np.random.default_rng(seed), 0
    for _ in range(8):
        model = random_graph(rng)
        middle, half = rng.normal(size=model.in_features), 10.0 ** rng.uniform(-1.5, 0.5)
        points = middle + half * rng.uniform(-1, 1, (400, model.in_features))
        outputs = model.evaluate(points).reshape(400, -1)
        rows = rng.normal(size=(5, 1, outputs.shape[1]))
        lowest = [float((outputs @ row[0]).min()) for row in rows]
        spread = [float((outputs @ row[0]).std()) for row in rows]
        shares = (-0.3, -0.05, 0.0, 0.01, 0.2)
        limits = [low + share * more for low, more, share in zip(lowest, spread, shares, strict=True)]
        sets = [
            UnsafeSet(middle - half, middle + half, row, np.array([limit]))
            for row, limit in zip(rows, limits, strict=True)
        ]
        search = search_of(model, sets)
        if not search.kept:
            continue
        finished(search, rounds=12)
        reached = {s for s, (low, limit) in enumerate(zip(lowest, limits, strict=True)) if low <= limit}
        assert {2, 3, 4} <= reached and not search.proved & reached
        proved += len(search.proved)
    assert proved


def deep_problem(seed):
    """Return a deep narrow network, a box, and a limit just below what optimised bounds prove."""
    rng = np.random.default_rng(seed)
    net = random_network(rng, [12, *[10] * 6, 1])
    box = -0.25 * np.ones(12), 0.25 * np.ones(12)
    most = float(net(rng.uniform(*box, (4000, 12))).max())
    top = float(bounds(net, *box, method="optimised")[1][0])
    return net, box, most + 0.95 * (top - most)


def test_what_makes_later_lines_wide_is_cut_first(monkeypatch):
    """Fewer parts than where only what lines cost by themselves counts."""
    n_parts = []
    for traced in (module.INNER_TRACED, 0):
        monkeypatch.setattr(module, "INNER_TRACED", traced)
        n_parts.append(0)
        for seed in (7, 8, 9):
            net, (low, high), limit = deep_problem(seed)
            search = search_of(
                model_of_network(net), [UnsafeSet(low, high, -np.eye(1), np.array([-limit]))]
            )
            n_parts[-1] += finished(search, rounds=25).n_parts
    assert n_parts[0] < n_parts[1]


def test_sets_that_others_proved_are_left_out():
    rng = np.random.default_rng(2)
    net = random_network(rng, [3, 8, 8, 2])
    X = rng.uniform(-1, 1, (500, 3))
    least = float(net(X)[:, 0].min())
    sets = [
        UnsafeSet(-np.ones(3), np.ones(3), np.eye(2)[:1], np.array([least + shift]))
        for shift in (0.1, -1.0)
    ]
    search = search_of(model_of_network(net), sets)
    for _ in range(3):
        search.round([1], NEVER)
    assert all(not part.open[0] for part in search.waiting)


def test_what_leads_nowhere_is_given_up(monkeypatch):
    monkeypatch.setattr(module, "INNER_JUDGED_PARTS", 12)
    net = random_network(np.random.default_rng(3), [4, 12, 12, 1])
    everywhere = UnsafeSet(-np.ones(4), np.ones(4), np.ones((1, 1)), np.array([99.0]))
    search = finished(search_of(model_of_network(net), [everywhere]))
    assert search.done and search.waiting and not search.proved and 12 <= search.n_parts < 40
    inside = InnerSplittings([search])
    assert not inside.fruitful
    inside.round([0], np.inf, NEVER)
    assert inside.done and not inside.proved


def test_what_is_too_dear_waits():
    net = random_network(np.random.default_rng(3), [4, 12, 12, 1])
    sets = [UnsafeSet(-np.ones(4), np.ones(4), np.ones((1, 1)), np.array([-9.0]))]
    search = search_of(model_of_network(net), sets)
    inside = InnerSplittings([search])
    assert not inside.affordable(search.cost) and inside.affordable(9 * search.cost)
    inside.round([0], search.cost, NEVER)
    assert inside.n_parts == 0 and not inside.proved


def test_an_interrupted_round_loses_nothing(monkeypatch):
    """What was taken waits again: a set is not proved because its parts are on the way."""
    net = random_network(np.random.default_rng(3), [4, 12, 12, 1])
    everywhere = UnsafeSet(-np.ones(4), np.ones(4), np.ones((1, 1)), np.array([99.0]))
    search = search_of(model_of_network(net), [everywhere])
    search.round([0], NEVER)

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "tighten", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.round([0], NEVER)
    assert len(search.waiting) == 1 and not search.proved


def test_verify_cuts_inside():
    net, box, limit = deep_problem(8)
    prop = Property.box(*box, [[1.0]], [limit])
    run = Run(model_of_network(net), prop, NEVER, 0, 1, silent, None)
    run._split_units(1)
    run._cut_inside(20)
    assert run.open and run._inside is None  # bounds of the whole come first
    while not run._units.splittings:
        run._split_units(1)
    assert run.open
    run._cut_inside(20)
    assert not run.open and run.method == "cutting inside" and run._inside.n_parts > 2
    found = verify(net, prop, n_jobs=1)
    assert found.verdict == "holds"


def test_little_is_cut_while_nothing_comes_of_it(monkeypatch):
    """The work of a turn is a share of what it is where parts are proved."""
    monkeypatch.setattr(Run, "_try", lambda run, corners: None)  # every point is in the set
    net, box, _ = deep_problem(8)
    work = []
    for fruitful in (False, True):
        monkeypatch.setattr(InnerSplittings, "fruitful", fruitful)
        prop = Property.box(*box, [[1.0]], [-99.0])
        run = Run(model_of_network(net), prop, NEVER, 0, 1, silent, None)
        for _ in range(3):
            run._split_units(1)
        cost = run._units.inner_searches(run.open, 1)[0].cost
        monkeypatch.setattr("pindown.verification.portfolio.INNER_FIRST_WORK", int(40 * cost))
        monkeypatch.setattr("pindown.verification.portfolio.INNER_FIRST_PARTS", 1000)
        run._cut_inside(0)
        work.append(run._inside.work / cost)
    assert 9 < work[0] < 25 and 39 < work[1] < 60
