"""Conclusions: no input is lost that satisfies what is assumed, and what follows is concluded."""

import numpy as np
import pytest

from pindown.model import Builder
from pindown.model.operations.dense import Dense
from pindown.model.operations.operation import Interval, as_fractions
from pindown.model.operations.relu import Relu
from pindown.relaxation.propagation import Goal, propagated
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.rounding import fraction_up
from tests.relaxation.small_models import MAKERS, tensors_at


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_no_input_is_lost_in_rationals(kind, spread):
    """Points at which all forms are non-negative, some just so: every tensor is within its bounds."""
    rng = np.random.default_rng(int(spread))
    seen = narrower = empties = 0
    for _ in range(12):
        model = MAKERS[kind](rng, spread=spread)
        d = model.in_features
        X = rng.uniform(-1, 1, (12, d))
        rows = rng.normal(size=(2, 2))
        at_input = rng.normal(size=(2, d)) if rng.random() < 0.5 else None
        tensors = [tensors_at(model, x.reshape(model.input_shape)) for x in X]
        values = [as_fractions(rows) @ np.array(t[-1]) for t in tensors]
        if at_input is not None:
            values = [
                v + as_fractions(at_input) @ as_fractions(x) for v, x in zip(values, X, strict=True)
            ]
        best = max(range(len(X)), key=lambda k: min(values[k]))
        constant = np.array(
            [fraction_up(-v) for v in values[best]]
        )  # zero at one of them, or just above
        goal = Goal(rows.reshape(2, *model.output_shape), at_input, constant)
        box = Interval(-np.ones((1, d)), np.ones((1, d)))
        found, empty = propagated(RelaxedModel.by_intervals(model, box), goal)
        narrower += bool((found.values[0].upper < 1).any() or (found.values[0].lower > -1).any())
        assert not empty[0]
        for x, t, v in zip(X, tensors, values, strict=True):
            if all(a + b >= 0 for a, b in zip(v, as_fractions(constant), strict=True)):
                seen += 1
                for bound, tensor in zip(found.values, t, strict=True):
                    low, high = (end.ravel().tolist() for end in bound)
                    assert all(a <= c <= b for a, c, b in zip(low, tensor, high, strict=True)), x
        far = goal._replace(constant=constant - 1e6 * 10**spread)
        empties += propagated(RelaxedModel.by_intervals(model, box), far)[1][0]
    assert seen >= 12 and narrower and empties == 12


def chain(n=6):
    """Return a model whose outputs are relu(x_1 - x_0), relu(x_2 - x_1), ... on [0, 1]."""
    graph = Builder((1, n))
    step = -np.eye(n - 1, n) + np.eye(n - 1, n, k=1)
    return graph.model(graph.add(Relu(), graph.add(Dense(step), graph.input)), input_shape=(n,))


def test_one_thing_follows_from_another():
    """x_0 = 0 and no step upwards: all are 0; with another one at least 1/2 that is a contradiction."""
    model = chain()
    low, high = np.zeros((3, 6)), np.ones((3, 6))
    high[:, 0], low[0, 1], low[2, -1] = 0.0, 0.5, 0.5
    goal = Goal(-np.ones((1, 1, 5)), None, np.zeros(1))
    found, empty = propagated(RelaxedModel.by_intervals(model, Interval(low, high)), goal)
    assert empty.tolist() == [True, False, True]
    np.testing.assert_allclose(found.values[0].upper[1], 0.0, atol=1e-9)


def test_boxes_are_concluded_about_one_by_one():
    """Each of several boxes gets what it gets alone."""
    rng = np.random.default_rng(3)
    model = MAKERS["residual"](rng)
    low = rng.uniform(-1, 0, (6, 2))
    high = low + rng.uniform(0, 1, (6, 2))
    goal = Goal(rng.normal(size=(2, *model.output_shape)), None, np.array([0.3, -0.2]))
    found, empty = propagated(RelaxedModel.by_intervals(model, Interval(low, high)), goal)
    for k in range(6):
        alone = Interval(low[k : k + 1], high[k : k + 1])
        one, nothing = propagated(RelaxedModel.by_intervals(model, alone), goal)
        assert nothing[0] == empty[k]
        if not nothing[0]:
            for many, single in zip(found.values, one.values, strict=True):
                np.testing.assert_allclose(many.lower[k], single.lower[0], atol=1e-9)
                np.testing.assert_allclose(many.upper[k], single.upper[0], atol=1e-9)


def test_the_forms_conclude_what_operations_alone_do_not():
    """relu(x) - relu(2 x - 1) <= 0 on [0, 1/2], where the second is zero, needs x = 0."""
    graph = Builder((1, 2))
    z = graph.add(
        Dense(np.kron([[1.0], [2.0]], np.eye(2)), np.array([0.0, 0.0, -1.0, -1.0])), graph.input
    )
    y = graph.add(Dense(np.array([[1.0, 1.0, -1.0, -1.0]])), graph.add(Relu(), z))
    model = graph.model(y, input_shape=(2,))
    box = Interval(np.zeros((1, 2)), np.array([[0.5, 1.0]]))
    found, empty = propagated(
        RelaxedModel.by_intervals(model, box), Goal(-np.ones((1, 1, 1)), None, np.zeros(1))
    )
    upper = found.values[0].upper.ravel()
    assert not empty[0] and upper[0] < 1e-9 and upper[1] == 1.0
