"""One door to linear and integer programs: what it says when there is no answer, and how exact it is."""

from math import inf, isnan

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from pindown.deadline import NEVER, Deadline
from pindown.programs import (
    EXACT,
    EXACT_OR_ELSE,
    LP_TOLERANCE,
    SOLVER_TOLERANCE,
    Attempt,
    Rows,
    integer_program,
    linear_program,
)


def knapsack(n=200, m=60, seed=0):
    """A program whose proof takes the solver much longer than its first point."""
    A = np.random.default_rng(seed).integers(1, 100, (m, n)).astype(float)
    return -A[0] - A[1], Rows(A, -inf, A.sum(axis=1) / 2), np.ones(n)


@pytest.mark.parametrize("method", ["highs", "highs-ds", "highs-ipm"])
def test_strong_duality(method):
    rng = np.random.default_rng(1)
    A, x = rng.normal(size=(12, 5)), rng.normal(size=5)
    E = rng.normal(size=(2, 5))
    b, f = A @ x + rng.random(12), E @ x
    p, q = rng.random(12), rng.normal(size=2)
    found = linear_program(-A.T @ p + E.T @ q, A, b, equal=(E, f), attempts=Attempt(method))
    assert found.solved and found.bound == found.value
    assert (A @ found.x <= b + 1e-7).all() and np.allclose(E @ found.x, f)
    assert (found.multipliers >= -1e-7).all()
    dual = -b @ found.multipliers - f @ found.equal_multipliers
    assert dual == pytest.approx(found.value, rel=1e-6)
    slopes = A.T @ found.multipliers + E.T @ found.equal_multipliers
    assert np.allclose(slopes, A.T @ p - E.T @ q, atol=1e-6)


def test_answers_are_those_of_scipy():
    rng = np.random.default_rng(2)
    for _ in range(5):
        A, b, cost = rng.normal(size=(20, 6)), rng.random(20), rng.normal(size=6)
        ours = linear_program(cost, sp.csr_array(A), b, lower=-1.0, upper=np.arange(1.0, 7.0))
        theirs = linprog(cost, A, b, bounds=[(-1.0, i) for i in range(1, 7)])
        assert np.array_equal(ours.x, theirs.x) and ours.value == theirs.fun
        assert np.array_equal(ours.multipliers, -theirs.ineqlin.marginals)


def test_variables_are_free_unless_told():
    assert linear_program([1.0], [[-1.0]], [3.0]).x == [-3.0]
    assert integer_program([1.0], Rows([[1.0]], -2.5, inf), [1]).x == [-2.0]


def test_infeasible():
    assert linear_program([1.0], [[1.0], [-1.0]], [0.0, -1.0]).status == "infeasible"
    found = integer_program([1.0], Rows([[1.0]], 0.25, 0.75), [1])
    assert found.status == "infeasible" and found.x is None and found.bound == -inf
    assert isnan(found.value)


def test_unbounded():
    found = linear_program([-1.0], lower=0.0)
    assert found.status == "unbounded" and found.x is None and found.bound == -inf
    assert integer_program([-1.0], Rows([[1.0]], 0.0, inf), [0]).status == "unbounded"


def test_a_program_that_is_refused_is_not_infeasible():
    """SciPy gives both the same number."""
    for weight, limit, status in ((1e30, 1.0, "failed"), (1.0, -1.0, "infeasible")):
        for found in (
            linear_program([1.0], [[weight]], [limit], lower=0.0, upper=1.0),
            integer_program([1.0], Rows([[weight]], -inf, limit), [0], lower=0, upper=1),
        ):
            assert found.status == status and found.x is None
            with pytest.raises(ArithmeticError, match="a program was not solved"):
                found.optimum("a program")


def test_time_leaves_a_bound():
    cost, rows, whole = knapsack()
    for time in (0.3, 1.0, 3.0, 10.0):  # a busy machine takes a while to find a first point
        found = integer_program(cost, rows, whole, lower=0.0, upper=1.0, time=time)
        assert found.status == "time"
        if found.x is not None:
            break
    assert found.bound < found.value
    assert (rows.matrix @ found.x <= rows.upper + SOLVER_TOLERANCE).all()
    assert found.value == pytest.approx(cost @ found.x)
    with pytest.raises(ArithmeticError):
        found.optimum()


@pytest.mark.parametrize("time", [0.0, -1.0, Deadline.after(0.0)])
def test_no_time_is_no_answer(time):
    rng = np.random.default_rng(3)
    A, b = rng.normal(size=(60, 20)), np.ones(60)
    found = linear_program(rng.normal(size=20), A, b, lower=-1, upper=1, time=time)
    assert found.status == "time" and found.x is None and not len(found.multipliers)
    cost, rows, whole = knapsack()
    assert integer_program(cost, rows, whole, lower=0.0, upper=1.0, time=time).bound == -inf


@pytest.mark.parametrize("time", [None, inf, NEVER, 60, Deadline.after(60.0)])
def test_enough_time(time):
    assert linear_program([1.0], lower=2.0, time=time).x == [2.0]
    assert integer_program([1.0], Rows([[1.0]], 1.5, 5), [1], time=time).x == [2.0]


def test_tolerance():
    """A row that is violated by 1e-8 passes for fulfilled unless more is asked for."""
    rows, limits = [[1.0], [-1.0]], [0.0, -1e-8]
    assert linear_program([0.0], rows, limits, attempts=Attempt(presolve=False)).solved
    exact = linear_program([0.0], rows, limits, attempts=EXACT._replace(presolve=False))
    assert exact.status == "infeasible" and LP_TOLERANCE < 1e-8


def test_attempts_are_tried_until_one_succeeds():
    rows, limits = [[1.0], [-1.0]], [0.0, -1e-8]
    strict = EXACT._replace(presolve=False)
    assert linear_program([0.0], rows, limits, attempts=(strict, Attempt(presolve=False))).solved
    assert linear_program([0.0], rows, limits, attempts=EXACT_OR_ELSE).solved
    assert linear_program([0.0], rows, limits, attempts=(strict, strict)).status == "infeasible"


def test_no_rows_and_no_integers():
    assert linear_program([1.0, -1.0], lower=0.0, upper=[1.0, 2.0]).x.tolist() == [0.0, 2.0]
    found = integer_program([1.0], Rows([[2.0]], 1.0, inf), [0])
    assert found.x == [0.5] and found.bound == found.value == 0.5


def test_several_blocks_of_rows():
    blocks = [Rows([[1.0, 0.0]], 0.5, inf), Rows(sp.csr_array([[0.0, 1.0]]), 1.5, inf)]
    assert integer_program([1.0, 1.0], blocks, [1, 0]).x.tolist() == [1.0, 1.5]


def test_numbers_that_are_not_finite_are_an_error():
    with pytest.raises(ValueError):
        linear_program([np.nan], lower=0.0)
