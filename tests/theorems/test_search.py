"""Results are found by number, by id and by plain words."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pindown.theorems import find, results
from pindown.theorems.search import _numbers

QUESTIONS = tomllib.loads((Path(__file__).parent / "questions.toml").read_text())
TEXTS = Path(__file__).parents[3] / "shared" / "seeds"
STATEMENT = re.compile(
    r"^[ #*]*(Theorem|Lemma|Corollary|Definition|Proposition|Algorithm|Claim)\s+"
    r"((?:[A-Z0-9]+\.)*[A-Z]?[0-9]+)\b",
    re.MULTILINE,
)
FIRST = ("tuning", "held_out", "fresh")
ASKED = [(question, ids) for part in FIRST for question, ids in QUESTIONS[part]]


@pytest.mark.parametrize(("question", "answers"), ASKED, ids=lambda value: str(value)[:40])
def test_the_answer_is_among_the_first_three(question, answers):
    assert {one.id for one in find(question)[:3]} & set(answers)


@pytest.mark.parametrize(
    ("part", "least"), [("later", 45), ("later_held_out", 46), ("later_still", 145)]
)
def test_most_of_the_harder_questions_are_answered_among_the_first_three(part, least):
    asked = QUESTIONS[part]
    assert len(asked) >= 50 and all(i in results() for _, ids in asked for i in ids)
    assert sum(bool({one.id for one in find(q)[:3]} & set(ids)) for q, ids in asked) >= least


def test_a_question_is_answered_without_loading_what_it_is_about():
    code = "import sys; from pindown.theorems import find; find('margin'); print(sorted(sys.modules))"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert "pindown.theorems.search" in told and "'numpy'" not in told and "'torch'" not in told


def test_there_are_enough_questions_and_they_are_about_all_sources():
    assert len(QUESTIONS["tuning"]) == len(QUESTIONS["held_out"]) == 25 and len(ASKED) >= 75
    assert {i[0] for _, ids in ASKED for i in ids} == set("KRULM")
    assert all(i in results() for _, ids in ASKED for i in ids)


def test_a_result_is_found_by_its_id_and_by_its_title():
    for one in results().values():
        assert find(one.id.lower()) == [one]
        assert one in find(one.title)[:3], one


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("Mukherjee 3.3.1", "R26"),
        ("theorem 6.3.1", "R63"),
        ("Phuong Lemma B.6", "U25"),
        ("Brutzkus Lemma C.1", "M5"),  # a step of its proof
        ("Mukherjee Corollary 5.3.2", "R43"),
        ("Phuong Theorem D.1", "U38"),  # three statements have this number
        ("Phuong Theorem 3.1", "U24"),  # which shares its number with a definition and a corollary
        ("Phuong Lemma 2.1", "U9"),  # there is a section 2.1
        ("Phuong Definition 3.2", "U22"),
        ("Phuong Lemma D.1", "U39"),
        ("Phuong Corollary D.1", "U39"),
        ("Wolf Lemma 3", "L6"),
        ("lemma A.11", "U7"),
        ("Wolf Theorem 1", "L5"),
        ("Mukherjee Algorithm 7", "R42"),
        ("Brutzkus Lemma 5.2", "M4"),
        ("Phuong Corollary 5.2", "U43"),
        ("Phuong Theorem 2.1", "U14"),  # not the recovery that is made of its proof
        ("Mukherjee Definition 8", "R11"),
        ("Mukherjee Definition 14", "R22"),
    ],
)
def test_numbers_are_found(asked, found):
    assert find(asked)[0].id == found


@pytest.mark.skipif(not TEXTS.is_dir(), reason="the sources' texts are not beside the project")
@pytest.mark.parametrize(
    ("text", "author", "least"),
    [("000*", "Wolf", 7), ("001*", "Mukherjee", 100), ("002*", "Brutzkus", 4), ("003*", "Phuong", 69)],
)
def test_every_numbered_statement_of_a_source_is_found(text, author, least):
    (path,) = TEXTS.glob(text)
    numbered = set(STATEMENT.findall(path.read_text(encoding="utf-8")))
    assert len(numbered) >= least
    assert [one for one in sorted(numbered) if not find(f"{author} {' '.join(one)}")] == []
    mine = [one for one in results().values() if one.source.startswith(author)]
    known = {each for one in mine for each in _numbers(f"{one.number}, {one.also}")}
    assert [one for one in sorted(numbered) if not known & set(_numbers(" ".join(one)))] == []


def test_an_author_leaves_only_results_of_the_source():
    assert {one.source for one in find("margin Phuong")} == {"Phuong 2021"}
    assert {one.source for one in find("PAC-Bayes bound wolf")} == {"Wolf et al. 2019"}


def test_words_that_are_misspelt_or_unknown():
    assert find("represnter theorem")[0].id == "K14"
    assert find("xyzzy") == [] and find("") == [] and find("the of a") == []


def test_no_more_than_asked_for():
    assert len(find("network", n=4)) == 4


@pytest.mark.parametrize("asked", ["Brutzkus Lemma C.9", "Mukherjee Theorem 9.9.9", "Phuong perceptron"])
def test_what_a_source_does_not_have_is_not_answered_with_something_else(asked):
    assert find(asked) == []
