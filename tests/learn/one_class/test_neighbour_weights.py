import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from pindown.learn.one_class.neighbour_weights import _SHRINKAGE, learned_weights


def price(inside, outside, place):
    """The objective, written out."""
    w, b = place[:-1], place[-1]
    rows = np.mean([np.log1p(np.exp(-(w @ f + b))) for f in inside])
    others = np.mean([np.log1p(np.exp(w @ f + b)) for f in outside])
    return rows + others + _SHRINKAGE * w @ w


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_they_are_the_solution_of_the_convex_problem(seed, k):
    rng = np.random.default_rng(seed)
    inside, outside = rng.normal(size=(20, k)), rng.normal(size=(30, k)) - rng.uniform(-1, 2, k)
    found = learned_weights(inside, outside, 200)
    best = min(
        (
            minimize(
                lambda place: price(inside, outside, place),
                start,
                method="SLSQP",
                bounds=[(0, None)] * k + [(None, None)],
                options={"ftol": 1e-12, "maxiter": 500},
            )
            for start in (np.zeros(k + 1), np.ones(k + 1))
        ),
        key=lambda result: result.fun,
    ).x[:-1]
    if best.sum() < 1e-3:  # nothing tells them apart: shares of nothing
        return
    assert found == pytest.approx(best / best.sum(), abs=2e-3)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_no_distance_is_ever_turned_round(seed, steps):
    rng = np.random.default_rng(seed)
    inside, outside = rng.normal(size=(9, 3)), rng.normal(size=(7, 3)) + rng.normal(size=3)
    found = learned_weights(inside, outside, steps)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1.0)


def test_one_step_already_tells_near_from_far():
    near, far = np.ones((5, 2)), -np.ones((5, 2))
    assert learned_weights(near, far, 1) == pytest.approx([0.5, 0.5])


def test_made_up_rows_that_are_nearer_than_rows_teach_nothing():
    assert learned_weights(-np.ones((5, 2)), np.ones((5, 2)), 50).tolist() == [0.5, 0.5]
