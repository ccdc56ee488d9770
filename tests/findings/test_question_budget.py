"""The budget is shared by what questions need; what one leaves, the others get."""

import sys
from dataclasses import replace

import pytest

from pindown import ReluNetwork, audit
from pindown import deadline as clock
from pindown.deadline import OutOfTime, checked_budget
from pindown.findings import CATALOGUE, Finding
from pindown.findings.question_budget import Cost, Turn
from pindown.findings.questions import QUESTIONS


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


def test_before_time_is_called_short_a_question_had_all_of_it(now, monkeypatch):
    def needing(seconds, code):
        def ask(subject):
            if subject.turn.left < seconds:
                raise OutOfTime
            now[0] += seconds
            return Finding(verdict="done")

        return replace(QUESTIONS[code], ask=ask, needs=(), cost=Cost(0.1, 1.0))

    def piece(subject):
        subject.require(60.0)
        return Finding()

    asked = (
        needing(16.0, "ARC-01"),  # more than half of the budget, when two others still wait
        replace(QUESTIONS["UNIT-01"], ask=piece, needs=(), cost=Cost(0.1, 1.0)),
        needing(40.0, "ACC-01"),
    )
    monkeypatch.setattr(sys.modules["pindown._audit"], "CATALOGUE", asked)
    monkeypatch.setattr(clock.time, "process_time", lambda: now[0])
    told = []
    net = ReluNetwork.from_layers([([[1.0]], [0])])
    result = audit(net, budget=30.0, progress=lambda title, *_: told.append(title))
    assert result["ARC-01"].verdict == "done"
    assert result["UNIT-01"].verdict.startswith("not run, because it takes about 60 s at least")
    assert result["ACC-01"].verdict.endswith("longer than what was left of the budget of 30 s")
    assert now[0] == 1016.0 and told[-1] == "done"
