"""The budget is shared by what questions need; what one leaves, the others get."""

import pytest

from pindown import deadline as clock
from pindown.deadline import checked_budget
from pindown.findings import CATALOGUE
from pindown.findings.question_budget import Cost, Turn


@pytest.fixture
def now(monkeypatch):
    """A clock that is moved by hand."""
    moment = [1000.0]
    monkeypatch.setattr(clock.time, "monotonic", lambda: moment[0])
    return moment


def test_a_slow_question_does_not_starve_the_others(now):
    whole = Turn.lasting(60.0)
    costs = [Cost(1.0, 1.0)] * 4
    granted = []
    for i in range(4):
        own = whole.for_first(costs[i:])
        granted.append(own.left)
        now[0] += own.left  # each takes all it is given
    assert granted == pytest.approx([15.0] * 4) and whole.passed


def test_what_is_not_used_flows_on_and_what_is_overrun_is_spread(now):
    whole = Turn.lasting(60.0)
    costs = [Cost(0.0, 1.0)] * 3
    now[0] += 0.0  # the first takes no time at all
    assert whole.for_first(costs[1:]).left == pytest.approx(30.0)
    now[0] += 50.0  # the second overruns
    assert whole.for_first(costs[2:]).left == pytest.approx(10.0)


def test_indivisible_work_leaves_the_others_their_least(now):
    whole = Turn.lasting(10.0)
    own = whole.for_first([Cost(2.0, 0.0), Cost(3.0, 1.0), Cost(1.0, 1.0)])
    assert own.left == pytest.approx(2.0) and own.most == pytest.approx(6.0)


def test_a_busy_machine_makes_indivisible_work_longer(now, monkeypatch):
    worked = [5.0]
    monkeypatch.setattr(clock.time, "process_time", lambda: worked[0])
    whole = Turn.lasting(60.0)
    assert whole.slowness == 1.0
    now[0] += 9.0
    worked[0] += 3.0
    assert whole.slowness == 3.0
    worked[0] += 30.0  # several threads
    assert whole.slowness == 1.0


def test_shares_when_even_the_least_do_not_fit(now):
    whole = Turn.lasting(1.0)
    own = whole.for_first([Cost(3.0, 1.0), Cost(1.0, 9.0)])
    assert own.left == own.most == pytest.approx(0.75)
    assert whole.for_first([]) is whole


def test_every_question_declares_a_sane_cost():
    for question in CATALOGUE:
        assert 0 < question.cost.least <= 10 and 0 <= question.cost.weight <= 10
    places = [question.place for question in CATALOGUE if question.place]
    assert len(places) == len(set(places)) and QUESTION_FIRST == "ARC-01"


QUESTION_FIRST = min((q for q in CATALOGUE if q.place), key=lambda q: q.place).code


@pytest.mark.parametrize("budget", [0, -1.0, float("nan"), None, "x"])
def test_budgets_that_are_none(budget):
    with pytest.raises(ValueError, match="budget must be a number above 0; got"):
        checked_budget(budget)
