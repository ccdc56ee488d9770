"""Bounds over cones of units, and the search that cuts them."""

import numpy as np
import pytest

from pindown.deadline import NEVER, Deadline
from pindown.learn import ExactReluRegressor
from pindown.learn.exact._cones import search as cones
from pindown.learn.exact._problem import Problem
from pindown.learn.exact._search import Search
from tests.learn.exact.naive import least_loss


def _problem(seed, n=8, d=2, ridge=0.0, biased=False):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    return Problem.of(X, y, rng.uniform(0.5, 2, n), "squared", ridge, biased)


def _cut_often(problem, width, rounds, rng):
    """Cones after random cuts, bounded; each row was below the best loss when it was cut."""
    data = cones._Data.of(problem)
    some = data.bounded(cones.Open.everything(problem.rank + 1, width, problem.biased), np.inf, np.inf)
    for _ in range(rounds):
        some = some[some.splits[:, 0] >= 0]
        rows = rng.choice(len(some), min(6, len(some)), replace=False)
        some = data.bounded(some[rows].cut(), np.inf, np.inf)
    return some


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("width", [1, 2])
def test_no_network_of_the_cones_is_below_their_bound(width, ridge, biased):
    rng = np.random.default_rng(width)
    problem = _problem(width, ridge=ridge, biased=biased)
    constant = cones._Data.of(problem).constant
    some = _cut_often(problem, width, 4, rng)
    tight = []
    for row in range(len(some)):
        start = some.weights[row].copy()
        for trial in range(40):
            if trial:
                some.weights[row] = start * rng.uniform(0.5, 1.5, start.shape)
                if trial % 2:
                    units = width * (problem.rank + 1)
                    some.weights[row, :units] += 0.3 * rng.exponential(size=units)
            loss = problem.loss_of(some.network(row, problem))
            assert some.bounds[row] + constant <= loss * (1 + 1e-9)
            tight.append((some.bounds[row] + constant) / loss)
    assert max(tight) > 0.8  # some are nearly attained


def test_both_parts_of_a_cut_cover_the_cone():
    rng = np.random.default_rng(0)
    problem = _problem(3)
    some = _cut_often(problem, 1, 3, rng)
    some = some[some.splits[:, 0] >= 0]
    parts = some.cut()
    for row in range(len(some)):
        inside = rng.dirichlet(np.ones(3)) @ some.V[row, 0]
        coordinates = [np.linalg.solve(parts.V[part, 0].T, inside) for part in (row, row + len(some))]
        assert any((c >= -1e-9).all() for c in coordinates)


def test_the_first_cones_cover_all_units():
    rng = np.random.default_rng(0)
    first = cones.Open.everything(3, 1, False)
    for unit in rng.normal(size=(50, 3)):
        assert any((np.linalg.solve(V[0].T, unit) >= -1e-12).all() for V in first.V)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_agrees_with_one_program_for_each_choice(seed, ridge):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(6, 1 + seed % 2)), rng.normal(size=6)
    bias = bool(seed % 2)
    model = ExactReluRegressor(width=2, ridge=ridge, output_bias=bias, verbose=0, budget=600).fit(X, y)
    expected = least_loss(X, y, 2, "squared", ridge=ridge, bias=bias)
    assert model.optimal_
    assert model.best_loss_ == pytest.approx(expected, rel=1e-5, abs=1e-9)
    assert model.lower_bound_ <= expected * (1 + 1e-9)


def test_special_positions():
    """Integers, ties and points in special position."""
    rng = np.random.default_rng(5)
    for _ in range(8):
        X = rng.integers(-1, 2, size=(7, 2)).astype(float)
        y = rng.integers(-2, 3, size=7).astype(float)
        model = ExactReluRegressor(width=1, verbose=0, budget=600).fit(X, y)
        expected = least_loss(X, y, 1, "squared")
        assert model.lower_bound_ <= expected * (1 + 1e-9) + 1e-12
        assert model.best_loss_ >= expected * (1 - 1e-9) - 1e-9


def test_bounds_hold_whenever_the_search_ends():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (12, 2))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=12)
    problem = Problem.of(X, y, np.ones(12), "squared", 0.0, False)
    whole = Search(problem, 2, NEVER)
    cones.search_cones(whole, NEVER)
    assert whole.complete
    for rounds in (1, 5, 20):
        short = Search(problem, 2, NEVER)
        looks = iter(range(10**9))
        deadline = _Rounds(rounds, looks)
        cones.search_cones(short, deadline)
        assert short.lower <= whole.upper * (1 + 1e-7)
        assert whole.lower <= short.upper * (1 + 1e-7)


class _Rounds(Deadline):
    """A deadline that passes after so many looks at it."""

    def __init__(self, rounds, looks):
        super().__init__()
        object.__setattr__(self, "rounds", rounds)
        object.__setattr__(self, "looks", looks)

    @property
    def passed(self):
        return next(self.looks) >= self.rounds


def test_going_deep_ends_at_the_same_loss(monkeypatch):
    problem = _problem(7, n=10)
    wide, deep = Search(problem, 2, NEVER), Search(problem, 2, NEVER)
    cones.search_cones(wide, NEVER)
    monkeypatch.setattr(cones, "MAX_CONE_BYTES", 10_000)
    cones.search_cones(deep, NEVER)
    assert deep.upper == pytest.approx(wide.upper, rel=1e-7)
    assert deep.complete and wide.complete


def test_many_features_and_many_samples_are_proved():
    """Thirty samples with five features have 293,192 cells, two hundred in the plane 39,802."""
    rng = np.random.default_rng(0)
    for n, d, width in ((30, 5, 1), (200, 2, 1)):
        X = rng.uniform(-1, 1, (n, d))
        y = np.sin(3 * X[:, 0]) + 0.5 * np.abs(X[:, 1]) + 0.1 * rng.normal(size=n)
        model = ExactReluRegressor(width=width, verbose=0, budget=600).fit(X, y)
        assert model.optimal_
        assert model.n_tuples_ < 5_000
