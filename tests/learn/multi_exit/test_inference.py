"""Early exit: it answers as the whole network would, computes less, and keeps to its budget."""

import itertools

import numpy as np
import pytest
import torch

from pindown.learn.multi_exit import (
    ExitCosts,
    ExitPolicy,
    MSDNet,
    anytime,
    budget_policy,
    confidence_policy,
    early_exit,
    exit_costs,
    latency_curve,
    measured_costs,
    profile_exits,
    timed_policy,
)
from pindown.learn.multi_exit.inference import NO_EXIT, select
from pindown.learn.multi_exit.networks import multi_exit_mlp, seeded
from tests.learn.multi_exit.test_model import calls, counted

ROWS = 3 * torch.randn(40, 6, generator=torch.Generator().manual_seed(1))


def mlp(hidden=(8, 8, 8)):
    return seeded(lambda: multi_exit_mlp(6, 3, hidden), 0).eval()


def probabilities(model, x, ensemble=False):
    with torch.no_grad():
        P = torch.stack(model(x)).softmax(dim=2)
    return P.cumsum(0) / torch.arange(1, len(P) + 1)[:, None, None] if ensemble else P


@pytest.mark.parametrize("ensemble", [False, True])
@pytest.mark.parametrize("make", [mlp, lambda: seeded(lambda: MSDNet(3, in_channels=1), 0).eval()])
def test_answers_are_those_of_the_whole_network_at_the_exit(make, ensemble):
    model = make()
    x = ROWS if make is mlp else torch.randn(12, 1, 8, 8, generator=torch.Generator().manual_seed(2))
    P = probabilities(model, x, ensemble)
    limits = [float(c.median()) for c in P.amax(2)[:-1]]
    found = early_exit(model, x, limits, ensemble=ensemble)
    confident = P.amax(2)[:-1] >= torch.tensor(limits)[:, None]
    expected = [
        next((m for m in range(len(limits)) if confident[m, i]), len(limits)) for i in range(len(x))
    ]
    assert found.exits.tolist() == [m + 1 for m in expected] and len(set(expected)) > 1
    rows = P[torch.tensor(expected), torch.arange(len(x))]
    assert torch.allclose(found.probabilities, rows, atol=1e-5)
    one_by_one = [early_exit(model, x[i : i + 1], limits, ensemble=ensemble) for i in range(len(x))]
    assert torch.cat([answer.exits for answer in one_by_one]).tolist() == found.exits.tolist()
    alone = torch.cat([answer.probabilities for answer in one_by_one])
    assert torch.allclose(alone, found.probabilities, atol=1e-5)


@pytest.mark.parametrize("n", [1, 40])
def test_stages_are_not_computed_for_what_has_left(n):
    model = counted(mlp())
    early_exit(model, ROWS[:n], [0.0, 0.0])
    assert calls(model) == ([1, 0, 0], [1, 0, 0])
    early_exit(model, ROWS[:n], [NO_EXIT, 0.0])  # nobody can leave at the first exit: no head there
    assert calls(model) == ([2, 1, 0], [1, 1, 0])
    early_exit(model, ROWS[:n], [NO_EXIT, NO_EXIT])
    assert calls(model) == ([3, 2, 1], [1, 1, 1])


def test_a_batch_gets_smaller_after_every_exit():
    model, sizes = mlp(), []
    limits = [float(c.median()) for c in probabilities(model, ROWS).amax(2)[:-1]]
    for stage in model.stages:
        stage.register_forward_hook(lambda _m, inputs, _out: sizes.append(len(inputs[0])))
    found = early_exit(model, ROWS, limits)
    left = [int((found.exits >= m).sum()) for m in (1, 2, 3)]
    assert sizes == left and 40 == sizes[0] > sizes[1] > sizes[2] > 0


def test_anytime_answers_are_running_means_and_stop_when_told():
    model = counted(mlp())
    P = probabilities(mlp(), ROWS, ensemble=True)
    for m, answer in itertools.islice(anytime(model, ROWS), 2):
        assert torch.allclose(answer, P[m - 1], atol=1e-6)
        assert torch.allclose(answer.sum(1), torch.ones(40), atol=1e-6)
    assert m == 2 and calls(model) == ([1, 1, 0], [1, 1, 0])
    first = next(anytime(model, ROWS))[1]
    assert torch.allclose(first, probabilities(mlp(), ROWS)[0], atol=1e-6)


def test_states_of_any_shape_are_selected():
    x = torch.arange(6).reshape(3, 2)
    found = select({"a": (x, [x[:, 0]])}, torch.tensor([2, 0]))
    assert found["a"][0].tolist() == [[4, 5], [0, 1]] and found["a"][1][0].tolist() == [4, 0]
    with pytest.raises(TypeError, match="tensors in lists, tuples or dictionaries; got int"):
        select(3, torch.tensor([0]))


# ---------------------------------------------------------------------- policies


def random_case(seed, n_exits=4, n=200, classes=5):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_exits, n, classes)) * np.linspace(1, 3, n_exits)[:, None, None]
    P = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    y = np.array([rng.choice(classes, p=p) for p in P[-1]])
    costs = ExitCosts(tuple(rng.uniform(1, 5, n_exits)), tuple(rng.uniform(0, 0.5, n_exits)))
    return P, y, costs


def simulated(P, thresholds, costs, ensemble):
    """Follow every sample through the exits, paying as it goes."""
    spent, exits, running = [], [], np.zeros(P.shape[2])
    for i in range(P.shape[1]):
        cost, running = 0.0, np.zeros(P.shape[2])
        for m, limit in enumerate([*thresholds, 0.0]):
            cost += costs.stages[m]
            running = running + P[m, i]
            if limit > 1 and not ensemble:
                continue
            cost += costs.heads[m]
            p = running / (m + 1) if ensemble else P[m, i]
            if p.max() >= limit:
                break
        spent.append(cost)
        exits.append(m)
    return np.mean(spent) / costs.full, exits


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ensemble", [False, True])
@pytest.mark.parametrize("budget", [0.45, 0.7, 1.0])
def test_policies_keep_to_the_budget_and_say_what_they_cost(seed, ensemble, budget):
    P, y, costs = random_case(seed)
    if costs.on_the_way[0] > budget * costs.full:
        pytest.skip("the first exit costs more")
    for labels in (None, y):
        policy = confidence_policy(P, costs, budget, labels, ensemble=ensemble)
        spent, exits = simulated(P, policy.thresholds, costs, ensemble)
        assert policy.cost == pytest.approx(spent) and policy.cost <= budget * (1 + 1e-9)
        assert policy.cost == pytest.approx(policy.cost_of(policy.shares))
        shares = np.bincount(exits, minlength=4) / len(exits)
        assert np.allclose(policy.shares, shares)


def test_labels_make_policies_no_worse_and_more_budget_makes_them_better():
    P, y, costs = random_case(7)
    accuracies = []
    for budget in (0.4, 0.6, 0.8, 1.0):
        policy = confidence_policy(P, costs, budget, y)
        blind = confidence_policy(P, costs, budget)
        _, exits = simulated(P, blind.thresholds, costs, False)
        right = (P[exits, np.arange(200)].argmax(1) == y).mean()
        assert policy.accuracy >= right
        fixed = [(P[m].argmax(1) == y).mean() for m in range(4) if costs.alone[m] <= budget * costs.full]
        assert policy.accuracy >= max(fixed)  # answering everything at one exit is among the choices
        accuracies.append(policy.accuracy)
    assert accuracies[0] < accuracies[-1]


def test_the_fixed_policy_never_exceeds_its_budget_and_is_the_best_below():
    rng = np.random.default_rng(3)
    for _ in range(50):
        accuracy, costs = rng.uniform(size=5), np.cumsum(rng.uniform(0.1, 1, 5))
        budget = rng.uniform(costs[0], costs[-1] * 1.1)
        m = budget_policy(accuracy, costs, budget)
        assert costs[m - 1] <= budget * (1 + 1e-9)
        assert accuracy[m - 1] == max(a for a, c in zip(accuracy, costs, strict=True) if c <= budget)


# ---------------------------------------------------------------------- times


class Ticking:
    """A clock that counts the stages and heads that were computed."""

    def __init__(self, model):
        self.model = model

    def __call__(self):
        return float(sum(map(sum, calls(self.model))))


def test_profiles_pay_for_the_exit_or_for_all_on_the_way():
    model = counted(mlp())
    settings = {"runs": 3, "warmup": 1, "clock": Ticking(model)}
    assert profile_exits(model, ROWS[:1], "budget", **settings).median == (2.0, 3.0, 4.0)
    times = profile_exits(model, ROWS[:1], "anytime", **settings)
    assert times.median == times.mean == (2.0, 4.0, 6.0) and times.deviation == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("batch_size", [1, 40])
def test_a_latency_curve_measures_what_was_spent(batch_size):
    model = counted(mlp())
    costs = ExitCosts((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
    P = probabilities(mlp(), ROWS).double().numpy()
    y = P[-1].argmax(1)
    policies = [confidence_policy(P, costs, budget, y) for budget in (0.5, 1.0)]
    settings = {"batch_size": batch_size, "runs": 3, "clock": Ticking(model)}
    curve = latency_curve(model, ROWS, policies, y, **settings)
    half, full = curve.points
    assert full.speedup == 1.0 and full.accuracy == full.full_accuracy == 1.0
    assert half.cost == pytest.approx(policies[0].cost) and half.cost <= 0.5
    assert half.full_seconds == 4 * len(ROWS) / batch_size
    if batch_size == 1:  # the clock counts parts, and each costs 1 here
        assert half.speedup == pytest.approx(1 / half.cost)
    assert str(curve).count("times as fast") == 2


# ---------------------------------------------------------------------- bad input


def test_bad_requests_are_refused():
    model = mlp()
    with pytest.raises(ValueError, match="3 exits need 2 thresholds; got 1"):
        early_exit(model, ROWS, [0.5])
    for ask in (lambda m: early_exit(m, ROWS, [0.5, 0.5]), lambda m: next(anytime(m, ROWS))):
        with pytest.raises(ValueError, match=r"call model\.eval\(\)"):
            ask(mlp().train())
    P, _, costs = random_case(0)
    for budget in (0.0, 1.5, float("nan"), None):
        with pytest.raises(ValueError, match="budget must be a number above 0 and at most 1"):
            confidence_policy(P, costs, budget)
    with pytest.raises(ValueError, match=r"the least budget is 0\."):
        confidence_policy(P, costs, 0.01)
    with pytest.raises(ValueError, match="probabilities must be of 4 exits"):
        confidence_policy(P[:2], costs, 0.5)
    with pytest.raises(ValueError, match=r"the cheapest exit costs 1, more than the budget 0\.5"):
        budget_policy([0.5, 0.6], [1.0, 2.0], 0.5)
    with pytest.raises(ValueError, match="one number for each exit"):
        budget_policy([0.5], [1.0, 2.0], 0.5)
    with pytest.raises(ValueError, match="mode must be one of 'budget', 'anytime'"):
        profile_exits(model, ROWS, "fast")
    policy = ExitPolicy((0.5, 0.5), 0.5, 0.5, (1.0, 0.0, 0.0), 1, 0.5, (0.5, 0.7, 1.0))
    with pytest.raises(ValueError, match="at least one input and one policy"):
        latency_curve(model, ROWS[:0], [policy])


def test_one_exit_is_an_exit():
    model, x = mlp(hidden=(8,)), ROWS[:4]
    P = probabilities(model, x)
    policy = confidence_policy(P.numpy(), exit_costs(model, x), 1.0)
    assert policy.thresholds == () and policy.cost == 1.0
    assert torch.allclose(early_exit(model, x, policy.thresholds).probabilities, P[0], atol=1e-6)


def test_measured_costs_count_what_is_computed():
    model = counted(mlp())
    costs = measured_costs(model, ROWS[:2], runs=3, clock=Ticking(model))
    assert costs.stages == costs.heads == (0.5, 0.5, 0.5)  # a tick each, for two inputs
    assert (costs.unit, costs.kind) == ("seconds", "estimate") and "seconds of exits" in str(costs)


def test_results_print_themselves():
    P, y, costs = random_case(0)
    policy = confidence_policy(P, costs, 0.8, y)
    assert "of the full cost for a budget of 80.0%" in str(policy) and "200 samples" in str(policy)
    assert "median of 2" in str(profile_exits(mlp(), ROWS[:1], runs=2, warmup=0))


@pytest.mark.parametrize("n", [1, 3])
def test_inputs_that_are_not_numbers_are_answered_so_at_the_last_exit(n):
    x = torch.full((n, 6), float("nan"))
    found = early_exit(mlp(), x, [0.5, 0.5])
    assert found.probabilities.isnan().all() and found.exits.tolist() == [3] * n
    mixed = early_exit(mlp(), torch.cat([x, ROWS[:2]]), [0.0, 0.0])
    assert mixed.exits.tolist() == [1] * (n + 2) and not mixed.probabilities[n:].isnan().any()
    with pytest.raises(ValueError, match="thresholds must be numbers"):
        early_exit(mlp(), ROWS, [float("nan"), 0.5])


def test_costs_of_a_batch_have_a_part_that_does_not_shrink():
    costs = ExitCosts(
        (4.0, 4.0), (0.0, 0.0), fixed_stages=(1.0, 2.0), fixed_heads=(0.0, 0.0), batch_size=2
    )
    P = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.9, 0.1], [0.9, 0.1]]])
    policy = confidence_policy(P, costs, 1.0)
    # Stage 2 is reached by half: 2 * 1/2 by input, and 2 by batches, three of four of which come there.
    assert policy.cost_of([0.5, 0.5]) == pytest.approx((4 + 1 + 2 * 0.75) / 8)
    assert policy.cost_of([0.0, 1.0]) == 1.0 and policy.cost_of([1.0, 0.0]) == 0.5
    with pytest.raises(ValueError, match="fixed costs must be one part of each cost"):
        ExitCosts((4.0, 4.0), (0.0, 0.0), fixed_stages=(5.0, 0.0), fixed_heads=(0.0, 0.0))


class Affine:
    """A clock: a stage or head takes a second, and a tenth for each input."""

    def __init__(self, model):
        self.now = 0.0
        for module in (*model.stages, *model.heads):
            module.register_forward_hook(self.seen)

    def seen(self, _module, given, _found):
        self.now += 1.0 + 0.1 * len(given[0])

    def __call__(self):
        return self.now


def test_measured_costs_tell_what_a_batch_pays_as_a_whole():
    model = mlp()
    costs = measured_costs(model, ROWS, runs=3, clock=Affine(model))
    assert costs.batch_size == 40 and costs.stages == pytest.approx((5 / 40,) * 3)
    assert costs.fixed_stages == pytest.approx((1 / 40,) * 3)
    assert costs.fixed_heads == pytest.approx((1 / 40,) * 3)
    with pytest.raises(ValueError, match="at least one input"):
        measured_costs(model, ROWS[:0])


@pytest.mark.parametrize("batch_size", [1, 20])
def test_time_policies_keep_to_their_share_of_the_clock(batch_size):
    model = mlp(hidden=(8,) * 6)
    policy = timed_policy(model, ROWS, 0.6, batch_size=batch_size, runs=1, clock=Affine(model))
    assert policy.cost <= 0.6 and policy.budget == 0.6 and policy.shares[0] < 1.0
    point = latency_curve(
        model, ROWS, [policy], batch_size=batch_size, runs=1, clock=Affine(model)
    ).points[0]
    assert 1 / point.speedup == pytest.approx(policy.cost)  # the same inputs, the same clock


def test_costs_of_an_exit_alone_and_with_the_heads_before_it():
    costs = ExitCosts((10.0, 20.0, 30.0), (1.0, 2.0, 4.0))
    assert costs.alone == (11.0, 32.0, 64.0) and costs.full == 64.0
    assert costs.on_the_way == (11.0, 33.0, 67.0)
