"""Findings print themselves, and words never say more than the numbers."""

import math

import pytest

from pindown.deadline import OutOfTime
from pindown.findings import CATALOGUE, GROUPS, KINDS, Assumption, Finding, Quantity
from pindown.findings.question_budget import NotApplicable, TooLong, Turn
from pindown.findings.questions import QUESTIONS, Question, question
from pindown.findings.subject import Subject
from pindown.findings.wording import at_least, at_most, count, percent


def test_a_finding_prints_in_a_few_lines():
    text = str(
        Finding(
            "BIAS-03",
            "Margin direction",
            "2.1 degrees from the hard-margin SVM",
            Quantity(2.1, "exact"),
            (Assumption("separable data", "checked"),),
            "Gradient descent tends to the max-margin direction.",
        )
    )
    first, *rest = text.splitlines()
    assert first.startswith("[BIAS-03] Margin direction") and first.endswith("hard-margin SVM (exact)")
    assert "checked: separable data" in rest[-1]


def test_catalogue_is_complete_and_stable():
    assert [q.code for q in CATALOGUE] == [
        "ARC-01",
        "UNIT-01",
        "UNIT-02",
        "SYM-01",
        "EQV-01",
        "EQV-02",
        "ACC-01",
        "ACC-02",
        "CAL-01",
        "ACC-03",
        "DAT-01",
        "DAT-02",
        "DAT-03",
        "LIP-01",
        "NORM-01",
        "BIAS-01",
        "BIAS-02",
        "BIAS-03",
        "BIAS-04",
        "BIAS-05",
        "BIAS-06",
        "INP-01",
        "OUT-01",
        "OUT-02",
        "OUT-03",
        "SEN-01",
        "BND-01",
        "BND-02",
        "BND-03",
        "FRQ-01",
        "FRQ-02",
        "SYM-02",
        "SYM-03",
        "ROB-01",
        "ROB-02",
        "ROB-03",
        "SEN-02",
        "GEO-01",
        "GEO-02",
        "GEO-03",
        "GEO-04",
        "GEO-05",
        "DEP-01",
    ]
    for q in CATALOGUE:
        assert q.group in GROUPS and q.title and q.about.endswith(".")


def test_a_code_cannot_be_taken_twice():
    with pytest.raises(ValueError, match="ARC-01 is taken"):
        question("ARC-01", "again", group="which", about="")(lambda subject: Finding())
    assert QUESTIONS["ARC-01"].title == "Architecture and cost"


def ask(net, reason, needs=()):
    def broken(subject):
        raise reason

    subject = Subject.of(net, None, None, None, None, Turn.lasting(60.0), 0)
    return Question("X-01", "x", "which", needs, "", broken).answer(subject)


def test_every_way_of_not_answering_is_a_finding(absolute_value):
    finding = ask(absolute_value, NotApplicable("it rains"))
    assert (finding.status, finding.verdict) == ("not applicable", "not applicable, because it rains")
    finding = ask(absolute_value, OutOfTime())
    assert (finding.status, finding.verdict) == (
        "not run",
        "not run, because it takes longer than what was left of the budget of 60 s",
    )
    finding = ask(absolute_value, TooLong(75.0, 59.0))
    assert finding.verdict == (
        "not run, because it takes about 75 s at least; of the budget of 60 s, 59 s were left for it"
    )
    finding = ask(absolute_value, ZeroDivisionError("oops"))
    assert finding.status == "error" and "ZeroDivisionError: oops" in finding.verdict
    assert "test_finding.py" in finding.reading and "/" not in finding.reading
    finding = ask(absolute_value, RuntimeError(), needs=("data",))
    assert finding.verdict == "not applicable, because no data were given"


@pytest.mark.parametrize("value", [43.01, 42.99, 0.12345, 1e-7 / 3, 123456.7, 2.0, 0.0])
def test_bounds_in_words_stay_bounds(value):
    def number(text):
        return float(text.replace(",", ""))

    assert number(at_least(value)) <= value <= number(at_most(value))
    assert number(at_most(value)) <= value * 1.01


def test_percent_never_rounds_to_certainty():
    assert percent(1.0) == "100%" and percent(0.0) == "0%"
    assert percent(0.999999) != "100%" and percent(1e-9) != "0%"
    assert count(1, "row") == "1 row" and at_most(math.inf) == "unbounded"


def test_every_kind_of_number_is_explained():
    assert set(KINDS) == {"exact", "probability", "estimate", "heuristic"}
