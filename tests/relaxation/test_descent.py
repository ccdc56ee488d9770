"""Gradient steps on linear bounds: the derivatives are right, and what comes out is still a bound."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.deadline import Deadline
from pindown.model import Builder
from pindown.model.from_network import model_of_network
from pindown.model.operations.dense import Dense
from pindown.model.operations.operation import Interval
from pindown.model.operations.relu import Relu
from pindown.relaxation import descent as module
from pindown.relaxation.descent import Descent
from pindown.relaxation.model_bounds import usual_slopes
from pindown.relaxation.relaxed_model import Choice, RelaxedModel
from tests.relaxation.small_models import MAKERS, exactly, relu_inputs, tensors_at
from tests.soundness.rational_line import ExactNetwork, along


def on_box(model, low, high):
    return RelaxedModel.by_intervals(model, Interval(low[None], high[None]))


def started(relaxed, rows, constant, at_input=None, *, slopes=None, multipliers=None):
    """Return a descent of one batch of rows ``(r, k)`` on the outputs of one box."""
    last, r = len(relaxed.values) - 1, len(rows)
    shape = relaxed.values[last].lower.shape[1:]
    given = usual_slopes(relaxed, last, 1, 1) if slopes is None else slopes
    return Descent(
        relaxed,
        last,
        np.reshape(rows, (1, 1, r, *shape)),
        None if at_input is None else np.reshape(at_input, (1, 1, r, -1)),
        np.reshape(constant, (1, 1, r)),
        Choice(given, {} if multipliers is None else multipliers),
        np.full((1, 1, r), 1.0 / r),
    )


@pytest.mark.parametrize("kind", MAKERS)
def test_derivatives_are_those_of_the_estimate(kind, monkeypatch):
    """By slopes and by multipliers, against differences of the bound itself."""
    rng = np.random.default_rng(11)
    caught = {}

    def step(self, gradient):
        caught[id(self)] = gradient.copy()
        return np.zeros(gradient.shape)

    monkeypatch.setattr(module._Adam, "step", step)
    compared = 0
    for _ in range(9):
        model = MAKERS[kind](rng)
        relaxed = on_box(model, -np.ones(model.in_features), np.ones(model.in_features))
        signs, multipliers = {}, {}
        for j in relu_inputs(model):
            drawn = rng.integers(-1, 2, relaxed.values[j].lower.shape).astype(np.int8)
            signs[j] = np.where(relaxed.values[j].lower * relaxed.values[j].upper < 0, drawn, 0)
            multipliers[j] = (signs[j] * rng.uniform(0.1, 0.5, drawn.shape))[:, None]
        cut = relaxed.assuming(signs)
        last = len(model.nodes)
        slopes = {i: rng.uniform(0.2, 0.8, s.shape) for i, s in usual_slopes(cut, last, 1, 1).items()}
        rows = rng.normal(size=(1, model.out_features))
        descent = started(cut, rows, [0.0], slopes=slopes, multipliers=multipliers)
        descent.run(1)
        form = descent.rows[:, :, 0]

        def bound(choice, cut=cut, last=last, form=form):
            return cut.estimate(last, form, choice).ends[0, 0]

        for (what, place), adam in descent._adams.items():
            table = descent.choice.slopes if what == "slope" else descent.choice.multipliers
            for at in np.ndindex(table[place].shape):
                if what == "multiplier" and signs[place][:, None][at] == 0:
                    assert caught[id(adam)][at] == 0.0
                    continue
                numeric = []
                for size in (1e-5, -1e-5):
                    table[place][at] += size
                    numeric.append(bound(descent.choice))
                    table[place][at] -= size
                # At corners of the box the bound has two slopes: only where it has one it is compared.
                middle = bound(descent.choice)
                ahead, behind = (numeric[0] - middle) / 1e-5, (middle - numeric[1]) / 1e-5
                if abs(ahead - behind) < 1e-6:
                    compared += 1
                    assert caught[id(adam)][at] == pytest.approx(ahead, abs=1e-5), (what, place, at)
    assert compared > 40


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("spread", [0.0, 8.0])
def test_what_is_proved_holds_in_rationals(kind, spread):
    """No point has a larger smallest form, whatever steps were taken; several forms with weights."""
    rng = np.random.default_rng(2)
    for trial in range(8 if kind == "convolutional" else 20):
        model = MAKERS[kind](rng, spread=spread)
        center, radius = rng.normal(size=model.in_features), 10.0 ** rng.uniform(-2, 1)
        low, high = center - radius, center + radius
        relaxed = on_box(model, low, high)
        r = int(rng.integers(1, 4))
        rows = rng.normal(size=(r, model.out_features)) * 10.0 ** rng.uniform(-5, 5, (r, 1))
        at_input = rng.normal(size=(r, model.in_features)) if trial % 2 else None
        constant = rng.normal(size=r)
        descent = started(relaxed, rows, constant, at_input)
        descent.run(int(rng.choice([0, 1, 5])))
        proved = Fraction(float(descent.proved()[0, 0]))
        for _ in range(10):
            share = rng.choice([0.0, 1.0, rng.random()], size=low.shape)
            values = tensors_at(model, np.clip(low + share * (high - low), low, high))
            forms = [
                exactly(rows[i], values[-1])
                + Fraction(float(constant[i]))
                + (exactly(at_input[i], values[0]) if at_input is not None else 0)
                for i in range(r)
            ]
            assert min(forms) <= proved


def test_no_bound_is_below_the_exact_maximum_on_a_line():
    """With one input the largest smallest form is known: between kinks everything is affine."""
    rng = np.random.default_rng(4)
    for _ in range(25):
        widths = (1, 4, 3, 2)
        net = ReluNetwork.from_layers(
            [(rng.normal(size=(m, n)), rng.normal(size=m)) for n, m in pairwise(widths)]
        )
        rows, constant = rng.normal(size=(2, 2)), rng.normal(size=2)
        descent = started(on_box(model_of_network(net), -np.ones(1), np.ones(1)), rows, constant)
        before = Fraction(float(descent.proved()[0, 0]))
        descent.run(15)
        after = Fraction(float(descent.proved()[0, 0]))
        line = along(ExactNetwork(net), [0.0], [1.0], (Fraction(-1), Fraction(1)))
        values = [
            [exactly(row, y) + Fraction(float(c)) for row, c in zip(rows, constant, strict=True)]
            for y in line.values
        ]
        largest = max(min(v) for v in values)
        for v, w in pairwise(values):  # where the two forms cross
            a, b = v[0] - v[1], w[0] - w[1]
            if a * b < 0:
                largest = max(largest, v[0] + a / (a - b) * (w[0] - v[0]))
        assert largest <= after <= before + Fraction(1, 10**9)


def test_weights_find_that_two_forms_are_never_both_large():
    """x - 1 >= 0 and -9 x - 1 >= 0 on [-3, 3]: nine parts of the first and one of the second give -1."""
    graph = Builder((1, 1))
    model = graph.model(graph.add(Dense([[1.0], [-9.0]], [0.0, 0.0]), graph.input), input_shape=(1,))
    descent = started(on_box(model, np.array([-3.0]), np.array([3.0])), np.eye(2), [-1.0, -1.0])
    assert descent.proved()[0, 0] > 0
    descent.run(30)
    assert -1.0001 <= descent.proved()[0, 0] < -0.5
    assert descent.best_weights.sum() == pytest.approx(1.0) and (descent.best_weights >= 0).all()


def test_weights_times_rows_may_underflow():
    """Half of 5 times the smallest number is 2 times it: two halves of a row are less than the row."""
    graph = Builder((1, 1))
    model = graph.model(graph.add(Dense([[1e300]]), graph.input), input_shape=(1,))
    row = 5 * 2.0**-1074
    descent = started(on_box(model, np.ones(1), np.ones(1)), [[row], [row]], [0.0, 0.0])
    assert descent.proved()[0, 0] >= Fraction(row) * Fraction(1e300)


def test_steps_lower_the_bound_and_keep_the_best():
    """f = x/2 - relu(x + 0.2) on [-1, 1]: the slope 1 gives 0.3, 0 gives 0.5, 1/2 the maximum, -0.1."""
    graph = Builder((1, 1))
    z = graph.add(Dense([[1.0], [1.0]], [2.0, 0.2]), graph.input)
    out = graph.add(Dense([[0.5, -1.0]], [-1.0]), graph.add(Relu(), z))
    descent = started(
        on_box(graph.model(out, input_shape=(1,)), -np.ones(1), np.ones(1)), [[1.0]], [0.0]
    )
    descent.run(0)
    seen = [descent.best[0, 0]]
    for _ in range(10):
        descent.run(2)
        seen.append(descent.best[0, 0])
    assert seen[0] == pytest.approx(0.3) and (np.diff(seen) <= 0).all()
    assert -0.1 <= seen[-1] < -0.05
    assert descent.proved()[0, 0] == pytest.approx(seen[-1])
    # The best choice stays, whatever comes later.
    descent._keep(np.array([[np.nan]]))
    descent._keep(np.array([[np.inf]]))
    assert descent.best[0, 0] == seen[-1] and descent.proved()[0, 0] == pytest.approx(seen[-1])


def test_a_goal_or_the_clock_ends_the_steps(monkeypatch):
    rng = np.random.default_rng(0)
    model = MAKERS["dense"](rng)
    taken = []
    monkeypatch.setattr(Descent, "_move", lambda self, *rest: taken.append(1))
    for goal, deadline, steps in (
        (np.inf, Deadline(), 0),
        (-np.inf, Deadline(), 6),
        (-np.inf, Deadline.after(0.0), 1),  # a step is taken before the clock is looked at
    ):
        taken.clear()
        descent = started(on_box(model, -np.ones(2), np.ones(2)), [[1.0, 0.0]], [0.0])
        descent.run(6, goal=goal, deadline=deadline)
        assert len(taken) == steps and np.isfinite(descent.proved()).all()


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e150, 1e250])
def test_scales_at_the_ends_of_float64(scale):
    """Squares of gradients leave float64; bounds stay bounds, at worst infinite."""
    net = ReluNetwork.from_layers(
        [
            ([[scale, 1.0], [1.0, -scale]], [0.5, -0.25]),
            ([[1.0, -1.0], [scale, 1.0]], [0.0, 0.0]),
            ([[1.0, -1.0]], [0.0]),
        ]
    )
    model = model_of_network(net)
    for rows, constant in (([[1.0]], [0.0]), ([[1.0], [-1.0]], [0.0, 1.0])):
        descent = started(on_box(model, -np.ones(2), np.ones(2)), rows, constant)
        descent.run(8)
        proved = descent.proved()[0, 0]
        assert not np.isnan(proved)
        if np.isfinite(proved):
            for x in ([1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [0.25, 0.5]):
                y = tensors_at(model, x)[-1]
                least = min(exactly(a, y) + Fraction(c) for a, c in zip(rows, constant, strict=True))
                assert least <= Fraction(float(proved))


@pytest.mark.parametrize("kind", MAKERS)
def test_float32_finds_about_the_same_and_proves_as_well(kind):
    """The search is coarse: its ends are float64's to a few digits, and what is proved is float64's."""
    rng = np.random.default_rng(3)
    for _ in range(8):
        model = MAKERS[kind](rng)
        relaxed = on_box(model, -np.ones(model.in_features), np.ones(model.in_features))
        rows = rng.normal(size=(1, model.out_features))
        fine, coarse = started(relaxed, rows, [0.25]), started(relaxed, rows, [0.25])
        coarse = replace(coarse, single=True)
        for descent in (fine, coarse):
            descent.run(0)
        assert coarse.last.forms and coarse.last.point.dtype == np.float64
        assert any(form.dtype == np.float32 for form, _ in coarse.last.forms.values())
        size = 1.0 + abs(fine.best[0, 0])
        assert coarse.best[0, 0] == pytest.approx(fine.best[0, 0], abs=1e-4 * size)
        coarse.run(6)
        assert coarse.proved()[0, 0] == pytest.approx(coarse.best[0, 0], abs=1e-4 * size)
        exact = relaxed.upper_ends(len(model.nodes), descent.rows[:, :, 0], coarse.best_choice)
        assert coarse.proved()[0, 0] == pytest.approx(exact[0, 0] + 0.25, abs=1e-12 * size)
