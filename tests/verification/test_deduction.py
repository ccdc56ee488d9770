"""Cutting and concluding: right about formulas and small networks, and never wrong."""

from itertools import product

import numpy as np

from pindown.deadline import NEVER
from pindown.model import Builder
from pindown.model.from_network import model_of_network
from pindown.model.operations.dense import Dense
from pindown.model.operations.relu import Relu
from pindown.progress import silent
from pindown.verification import Property, verify
from pindown.verification.deduction import Deduction, Deductions, goal_of
from pindown.verification.portfolio import Run
from pindown.verification.properties import UnsafeSet
from tests.verification.brute_force import reaches
from tests.verification.small_problems import known, unsafe_set, whole_network


def deduced(model, unsafe, rounds=400, threads=1):
    """Return a search after so many rounds, or when it ends."""
    search = Deduction(model, unsafe.lower, unsafe.upper, goal_of(unsafe, model.output_shape), threads)
    for _ in range(rounds):
        if not search.done:
            search.round()
    return search


def formula(rng, n, m, width=3):
    """Return clauses (m, n) with entries -1, 0 and 1."""
    clauses = np.zeros((m, n))
    for clause in clauses:
        clause[rng.choice(n, width, replace=False)] = rng.choice([-1.0, 1.0], width)
    return clauses


def as_network(clauses):
    """Return a model and the unsafe set that it reaches where all clauses hold.

    A clause is violated by ``relu(1 - sum of literals)``; ``min(x, 1 - x)`` is zero for truth values.
    """
    m, n = clauses.shape
    eye = np.eye(n)
    W = np.concatenate([-clauses, eye, 2 * eye])
    b = np.concatenate([1.0 - (clauses < 0).sum(axis=1), np.zeros(n), -np.ones(n)])
    out = np.zeros((2, m + 2 * n))
    out[0, :m], out[1, m : m + n], out[1, m + n :] = 1.0, 1.0, -1.0
    graph = Builder((1, n))
    y = graph.add(Dense(out), graph.add(Relu(), graph.add(Dense(W, b), graph.input)))
    return graph.model(y, input_shape=(n,)), UnsafeSet(np.zeros(n), np.ones(n), np.eye(2), np.zeros(2))


def satisfiable(clauses):
    """Try all assignments."""
    X = np.array(list(product([0.0, 1.0], repeat=clauses.shape[1])))
    literals = np.where(clauses[:, None] > 0, X, 1.0 - X) * (clauses != 0)[:, None]
    return bool((literals.max(axis=2) > 0.5).all(axis=0).any())


def test_formulas_are_decided_as_by_all_assignments():
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(12):
        clauses = formula(rng, 6, int(rng.integers(20, 40)))
        search = deduced(*as_network(clauses))
        truth = satisfiable(clauses)
        seen.add(truth)
        assert search.done and search.proved == (not truth)
        if truth:  # a corner that was tried satisfies all
            model, _ = as_network(clauses)
            assert (model(np.concatenate(search.corners)) == 0.0).all(axis=1).any()
    assert seen == {True, False}


def test_small_networks_are_as_brute_force_says():
    """All activation patterns in rational numbers: what is reached is never proved."""
    rng = np.random.default_rng(0)
    proved = 0
    for _ in range(25):
        net = whole_network(rng, int(rng.choice([1, 2])))
        unsafe = unsafe_set(rng, net, inputs=rng.random() < 0.3)
        search = deduced(model_of_network(net), unsafe, rounds=12)
        truth = known(net, unsafe)
        if truth == "reached" or reaches(net, unsafe):
            assert not search.proved
        elif truth == "safe":
            proved += search.proved
    assert proved >= 3


def test_formulas_with_many_variables_are_proved():
    """Forty variables, no assignment: far beyond all assignments, and beyond cutting boxes."""
    rng = np.random.default_rng(5)
    clauses = formula(rng, 40, 260)
    model, unsafe = as_network(clauses)
    prop = Property((unsafe,), (40,), (2,))
    found = verify(model, prop, budget=60.0)
    assert found.verdict == "holds" and found.method == "cutting and concluding"
    assert deduced(model, unsafe).n_parts < 40


def test_threads_and_batches_do_not_change_the_parts():
    rng = np.random.default_rng(2)
    model, unsafe = as_network(formula(rng, 9, 50))
    one, two = (deduced(model, unsafe, threads=k) for k in (1, 2))
    assert one.proved and two.proved and one.n_parts == two.n_parts


def test_what_leads_nowhere_is_given_up(monkeypatch):
    monkeypatch.setattr("pindown.verification.deduction.DEDUCTION_JUDGED_PARTS", 20)
    model, _ = as_network(formula(np.random.default_rng(1), 6, 4))
    everywhere = UnsafeSet(np.zeros(6), np.ones(6), np.zeros((1, 2)), np.zeros(1))
    search = deduced(model, everywhere)
    assert search.done and search.waiting and not search.proved and search.n_parts < 100


def test_sets_are_dropped_one_by_one():
    """Of two sets one is proved; the other, reached everywhere, is never."""
    model, unsafe = as_network(formula(np.random.default_rng(2), 9, 50))
    everywhere = UnsafeSet(unsafe.lower, unsafe.upper, np.zeros((0, 2)), np.zeros(0))
    both = Deductions.of(model, {3: unsafe, 5: everywhere}, 1)
    for _ in range(30):
        both.round([s for s in (3, 5) if s not in both.proved], NEVER)
    assert both.proved == {3} and set(both.searches) == {5}
    assert both.corners is not None and set(both.corners[1]) == {5} and both.n_parts > 20
    both.round([], NEVER)
    assert both.done and not both.searches and both.corners is None


def test_little_is_cut_while_nothing_comes_of_it(monkeypatch):
    """In two turns: a few parts where no cut led anywhere, all that end the search where some did."""
    monkeypatch.setattr("pindown.verification.portfolio.DEDUCTION_IDLE_PARTS", 4)
    monkeypatch.setattr(Run, "_try", lambda run, corners: None)  # every point is in the first set
    model, unsafe = as_network(formula(np.random.default_rng(2), 9, 50))
    everywhere = UnsafeSet(unsafe.lower, unsafe.upper, np.zeros((0, 2)), np.zeros(0))
    runs = []
    for one in (everywhere, unsafe):
        run = Run(model, Property((one,), (9,), (2,)), NEVER, 0, 1, silent, None)
        for turn in range(2):
            run._deduce(turn)
        runs.append(run)
    assert 8 <= runs[0]._n_parts <= 16 and runs[0].open and not runs[1].open
