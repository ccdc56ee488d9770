"""Flips and gaps are those of brute force; what is proved around rows survives exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from pindown import Box, ReluNetwork, diff
from pindown.deadline import Deadline
from pindown.equivalence.comparison import _around_rows
from pindown.equivalence.comparison._around_rows import AROUND_ROWS, RowRun, different, look_around
from pindown.equivalence.comparison._joint_bounds import Joint
from pindown.equivalence.comparison._on_data import tighten_rows
from pindown.equivalence.comparison.bracket import GapState
from pindown.model.builder import Builder
from pindown.model.from_network import model_of_network
from pindown.model.operations.dense import Dense
from pindown.model.operations.smooth import Tanh
from tests.equivalence.comparison.nets import exact_gap, perturbed, random_net


def exactly(net, x):
    return net.as_fractions()([Fraction(float(v)) for v in x])


def sure_difference(a, b, x):
    """How sure both are of different classes at x, as a rational number; 0 where they are not."""
    f, g = exactly(a, x), exactly(b, x)
    i, j = f.index(max(f)), g.index(max(g))
    return min(f[i] - f[j], g[j] - g[i]) if i != j else Fraction(0)


def pairs(n=6, size=0.3):
    for seed in range(n):
        rng = np.random.default_rng(seed)
        net = random_net((2, 6, 5, 3), rng)
        yield net, perturbed(net, size, rng), rng


def shifted(*biases):
    """Two outputs x and -x, the second network with biases."""
    return [ReluNetwork.from_layers([([[1.0], [-1.0]], b)]) for b in ([0, 0], biases)]


def test_flips_ties_and_gaps_are_counted_as_by_hand():
    a, b = shifted(-0.5, 0.5)
    X = [[-1.0], [0.0], [0.25], [0.5], [2.0]]  # a ties at 0, b at 0.5; between them classes differ
    rows = diff(a, b, data=X, budget=1).rows
    assert rows.flipped.tolist() == [False, False, True, False, False] and rows.flips.tolist() == [2]
    assert rows.tied.tolist() == [False, True, False, True, False]
    assert rows.gap.tolist() == [0.5] * 5 and rows.gaps.shape == (5, 2)
    assert rows.worst.tolist() == [0, 1, 2, 3, 4]
    assert rows.scale == 2.0 and len(rows) == 5


def test_flips_are_those_of_brute_force():
    flips = 0
    for a, b, rng in pairs(3, size=0.8):
        X = rng.uniform(-2, 2, (200, 2))
        answer = diff(a, b, data=X, budget=0.5)
        f, g = a(X), b(X)
        expected = [int(np.argmax(p)) != int(np.argmax(q)) for p, q in zip(f, g, strict=True)]
        assert answer.rows.flipped.tolist() == expected
        np.testing.assert_array_equal(answer.rows.gap, np.abs(f - g).max(axis=1))
        flips += sum(expected)
        assert sum(expected) / 200 < answer.flip_rate < 1
        assert np.quantile(answer.rows.gap, 0.95) <= answer.gap_quantile <= answer.rows.gap.max()
        assert answer.rows.kind == "probability" and answer.rows.assumptions[0].status == "assumed"
    assert flips > 20


@pytest.mark.parametrize("margin", [True, 0.05])
def test_what_is_proved_around_rows_survives_sampling_and_rationals(margin):
    decided, least = 0, 0.0 if margin is True else margin
    for a, b, rng in pairs():
        X, radius, box = rng.uniform(-1, 1, (8, 2)), 0.15, Box.cube(2, -1, 1)
        rows = diff(a, b, data=X, radius=radius, labels=margin, box=box, budget=30).rows
        steps = np.linspace(-radius, radius, 9)
        grid = np.stack(np.meshgrid(steps, steps), -1).reshape(-1, 2)
        for i, (x, known) in enumerate(zip(X, rows.same_label, strict=True)):
            points = np.clip(x + grid, box.lower, box.upper)
            assert (np.abs(a(points) - b(points)).max(axis=1) <= rows.gap_upper[i] + 1e-12).all()
            assert exact_gap(a, b, rows.farthest[i]) >= Fraction(float(rows.gap_lower[i])) > 0
            assert inside(rows.farthest[i], x, radius, box)
            if known == "proved":
                assert all(sure_difference(a, b, p) <= least for p in points[::4])
            if known == "refuted":
                assert inside(rows.witnesses[i], x, radius, box)
                assert sure_difference(a, b, rows.witnesses[i]) > least
            decided += known != "open"
    assert decided >= 46  # of 48: such small networks can be searched through


def inside(point, x, radius, box):
    far = max(abs(Fraction(float(p)) - Fraction(float(q))) for p, q in zip(point, x, strict=True))
    return far <= Fraction(radius) and box.contains(point[None]).all()


def test_at_radius_zero_the_balls_are_the_rows():
    a, b = shifted(-0.5, 0.5)
    rows = diff(a, b, data=[[-1.0], [0.25], [0.5]], labels=True, budget=1).rows
    assert rows.same_label == ("proved", "refuted", "open")  # at 0.5 there is a tie
    np.testing.assert_allclose(rows.gap_upper, 0.5, rtol=1e-12)
    np.testing.assert_allclose(rows.gap_lower, 0.5, rtol=1e-12)


def test_classes_differ_just_where_they_do():
    a, b = shifted(-0.5, 0.5)  # classes differ between 0 and 0.5, by at most 0.5 in the middle
    cases = [(-0.25, 0.249, "proved"), (-0.25, 0.251, "refuted"), (1.0, 0.499, "proved")]
    for x, radius, expected in cases:
        rows = diff(a, b, data=[[x]], radius=radius, labels=True, budget=5).rows
        assert rows.same_label == (expected,)
    for margin, expected in [(0.499, "refuted"), (0.5000001, "proved")]:
        rows = diff(a, b, data=[[0.25]], radius=0.25, labels=margin, budget=5).rows
        assert rows.same_label == (expected,)


def test_a_lead_in_one_network_and_a_small_gap_are_enough():
    a, b = (model_of_network(net) for net in shifted(-0.5, 0.5))
    run = RowRun(Joint(a, b), np.array([[3.0]]), 0.1, None, 0.0, never())
    run.lead[:] = [[1.0], [-np.inf]]
    run.gap_upper[:] = 0.5
    assert run.proved.all()
    run.gap_upper[:] = 0.5000001
    assert not run.proved.any() and run.open.tolist() == [0]
    run.lead[:] = [[0.0], [0.0]]
    assert not run.proved.any()  # ties are no lead
    run.gap_upper[:] = 0.0
    assert run.proved.all()


def never():
    return Deadline.after(None)


def test_leads_that_were_not_begun_before_the_deadline_are_unknown(monkeypatch):
    rng = np.random.default_rng(0)
    a, b = random_net((3, 6, 9), rng), random_net((3, 6, 9), rng)
    joint = Joint(model_of_network(a), model_of_network(b))
    X, labels = rng.normal(size=(4, 3)), np.arange(4)
    relaxed = joint.relaxed(X - 0.1, X + 0.1)
    whole = joint.leads(relaxed, labels)
    monkeypatch.setattr("pindown.equivalence.comparison._joint_bounds.MODEL_BLOCK_ENTRIES", 1)
    assert np.isfinite(whole).all()
    assert joint.leads(relaxed, labels) == pytest.approx(whole, rel=1e-12)
    assert (joint.leads(relaxed, labels, deadline=Deadline.after(0.0)) == -np.inf).all()


def test_a_point_where_a_class_is_barely_ahead_is_not_taken_for_sure():
    joint = Joint(*(model_of_network(net) for net in shifted(0.0, 1e-300)))
    assert not different(joint, np.array([[0.0]]), 0.0).any()
    assert different(Joint(*map(model_of_network, shifted(-1, 1))), np.array([[0.5]]), 0.0).all()


class Steps:
    """A clock that stops after some looks at it."""

    def __init__(self, looks):
        self.looks, self.left, self.spent = looks, 1.0, 0.0

    @property
    def passed(self):
        self.looks -= 1
        return self.looks < 0

    @property
    def end(self):
        return 1.0


def test_more_steps_never_know_less(monkeypatch):
    monkeypatch.setattr(_around_rows, "AROUND_ROWS", AROUND_ROWS[:-1])  # the last counts seconds
    a, b, rng = next(pairs(1))
    X = rng.uniform(-1, 1, (6, 2))
    joint = Joint(model_of_network(a), model_of_network(b))
    known, upper = np.zeros(6, bool), np.full(6, np.inf)
    lower, met = np.zeros(6), set()
    for looks in (0, 1, 2, 4, 8, 16, 64, 1000):
        run = RowRun(joint, X, 0.1, None, 0.0, Steps(looks), (a, b))
        run.together = 2
        look_around(run)
        assert (run.proved >= known).all() and set(run.shown) >= met
        assert (run.gap_upper <= upper).all() and (run.gap_lower >= lower).all()
        known, upper, lower, met = run.proved, run.gap_upper, run.gap_lower, set(run.shown)
    assert known.any() and np.isfinite(upper).all()


def test_identical_models_and_proofs_for_all_inputs_reach_the_rows():
    rng = np.random.default_rng(3)
    net = random_net((3, 8, 4), rng)
    X = rng.normal(size=(20, 3))
    answer = diff(net, net, data=X, radius=5.0, labels=True, budget=5)
    assert answer.verdict == "same" and set(answer.rows.same_label) == {"proved"}
    assert answer.rows.gap_upper.max() == 0.0
    W, b = net.layers[0]
    twice = ReluNetwork.from_layers([(2 * W, 2 * b), (net.layers[1].weight / 2, net.layers[1].bias)])
    answer = diff(net, twice, data=X, radius=50.0, budget=0.0)
    assert np.isinf(answer.rows.gap_upper).all()  # no time
    answer = diff(net, twice, data=X, radius=50.0, budget=5)
    assert answer.rows.gap_upper.max() == 0.0  # powers of two: equal for all inputs


def test_what_is_proved_for_all_inputs_is_scaled_to_the_ball():
    a, b = (model_of_network(net) for net in shifted(0.0, 0.0))
    run = RowRun(Joint(a, b), np.array([[3.0]]), 1.0, None, None, never())
    tighten_rows(run, GapState(0.0, 0.5), None)
    assert 2.5 <= run.gap_upper[0] < 2.5 + 1e-12  # 0.5 (1 + |x|) at x = 4
    tighten_rows(run, GapState(0.0, 0.5), Box([0], [9]))
    assert run.gap_upper[0] == 0.5


def smooth(scale):
    graph = Builder((1, 2))
    hidden = graph.add(Tanh(), graph.add(Dense([[1.0, 2.0], [-1.0, 1.0]], [0.1, 0.2]), graph.input))
    return graph.model(graph.add(Dense([[1.0, 0.0], [0.0, scale]], [0.0, 0.0]), hidden))


def test_models_without_a_normal_form_have_rows_a_box_and_an_honest_interval():
    a, b = smooth(1.0), smooth(1.1)
    X = np.random.default_rng(0).uniform(-1, 1, (10, 2))
    answer = diff(a, b, data=X, radius=0.05, labels=True, box=(-1, 1), budget=10)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 41)] * 2), -1).reshape(-1, 2)
    gap = np.abs(a(grid) - b(grid)).max()
    assert answer.verdict == "different" and answer.gap_lower <= gap * 1.01 < answer.gap_upper * 1.02
    assert answer.gap_lower >= 0.99 * gap
    assert "open" not in answer.rows.same_label or answer.rows.count("proved") > 0
    near = diff(a, b, data=X, budget=2)
    assert near.gap_upper == np.inf and near.gap_lower > 0 and near.verdict == "different"
    assert diff(a, smooth(1.0), budget=1).gap_upper == 0.0
    assert "normal form" in near.steps[0]


def test_allowed_gap_grows_with_the_outputs():
    a, b = (ReluNetwork.from_layers([([[1000.0]], [c])]) for c in (0.0, 0.005))
    assert diff(a, b, box=(0, 1), budget=1, rtol=0.0).verdict == "different"
    answer = diff(a, b, box=(0, 1), budget=1)
    assert answer.verdict == "same" and 900 < answer.scale <= 1000.01
    assert answer.allowed == pytest.approx(1e-5 + 1e-5 * answer.scale)
    answer = diff(a, b, data=[[0.1]], box=(0, 1), budget=1)
    assert answer.scale == pytest.approx(100.005) and answer.verdict == "different"
    assert diff(a, b, budget=1).scale == 0.0


def test_one_output_has_no_classes():
    a, b = (ReluNetwork.from_layers([([[1.0]], [c])]) for c in (0.0, 0.5))
    answer = diff(a, b, data=[[0.0], [1.0]], radius=0.1, budget=2)
    assert not answer.rows.flipped.any() and not answer.rows.classified
    np.testing.assert_allclose(answer.rows.gap_upper, 0.5)
    with pytest.raises(ValueError, match="two or more outputs"):
        diff(a, b, data=[[0.0]], labels=True)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([[np.nan]], "1 of 1 rows hold NaN"),
        ([[1.0, 2.0]], r"shape \(n, 1\)"),
        ([], "empty"),
        (np.zeros((0, 1)), "empty"),
        ([["a"]], "real numbers"),
        ([[2.0], [0.5], [3.0]], "row 0 does not, nor do 1 others"),
    ],
)
def test_bad_data_are_refused_in_a_line(data, words):
    a, b = shifted(0, 0)
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        diff(a, b, data=data, box=(-1, 1))
    assert "\n" not in str(caught.value)


def test_the_given_rows_stay_the_users():
    a, b = shifted(-0.5, 0.5)
    X = np.array([[0.25]])
    rows = diff(a, b, data=X, budget=1).rows
    X[0, 0] = 7.0
    assert rows.X[0, 0] == 0.25 and not rows.X.flags.writeable


def test_one_row_and_no_time():
    a, b = shifted(-0.5, 0.5)
    rows = diff(a, b, data=[0.25], radius=0.1, labels=True, budget=0).rows
    assert rows.same_label == ("refuted",) and rows.gap_quantile == np.inf and rows.flip_rate == 1.0
    for wrong in ({"radius": -1.0}, {"radius": np.nan}, {"rtol": -1.0}, {"labels": -1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            diff(a, b, data=[0.25], **wrong)
