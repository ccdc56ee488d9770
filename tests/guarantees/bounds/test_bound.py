"""A bound says what it is: its number, its confidence, whether it is vacuous, what it rests on."""

import json
import math
import pickle
from fractions import Fraction

import pytest

from pindown.evidence import Assumption
from pindown.guarantees.bounds.bound import Bound, outward
from pindown.text import rounded_up


def test_value_is_clipped_and_the_formula_kept():
    bound = Bound("x", 27.0, 0.05)
    assert (bound.value, bound.formula_value, bound.vacuous) == (1.0, 27.0, True)
    assert not Bound("x", 0.99, 0.05).vacuous
    assert Bound("x", 1.0, 0.05).vacuous
    tame = Bound("x", 3.0, 0.05, trivial=4.0)
    assert (tame.value, tame.vacuous) == (3.0, False)
    assert tame.confidence == 1 - 0.05


@pytest.mark.parametrize(
    ("delta", "statuses", "estimated", "kind"),
    [
        (0.05, ("assumed",), False, "probability"),
        (0.0, ("checked",), False, "exact"),
        (0.05, ("checked", "violated"), True, "heuristic"),
        (0.05, (), True, "estimate"),
    ],
)
def test_kind(delta, statuses, estimated, kind):
    rests = tuple(Assumption("a", status) for status in statuses)
    assert Bound("x", 0.5, delta, assumptions=rests, estimated=estimated).kind == kind


def test_prints_itself_in_two_lines_rounded_up():
    text = str(Bound("x", 0.12345, 0.05, assumptions=(Assumption("a"),), source="s"))
    assert text == "x: risk at most 0.124 with probability 0.95 (probability; s)\nrests on: a (assumed)"
    assert "vacuous" in str(Bound("x", 5.0, 0.05))
    assert len(str(Bound("x", math.inf, 0.05)).splitlines()) == 2


@pytest.mark.parametrize("value", [0.1, 1e-300, 12345.678, 3.0, 1e300, 0.99951])
def test_shown_number_is_not_below(value):
    assert float(rounded_up(value)) >= value
    assert Fraction(outward(value)) > Fraction(value)


def test_plain_numbers_and_pickles():
    bound = Bound("x", 0.5, 0.05, terms={"kl": 3.0}, assumptions=(Assumption("a"),))
    assert json.loads(json.dumps(bound.to_dict()))["terms"] == {"kl": 3.0}
    assert pickle.loads(pickle.dumps(bound)) == bound
    assert hash(bound) == hash(pickle.loads(pickle.dumps(bound)))


def test_terms_cannot_be_changed_from_outside():
    terms = {"kl": 3.0}
    bound = Bound("x", 0.5, 0.05, terms=terms)
    terms["kl"] = 4.0
    assert bound.terms["kl"] == 3.0


@pytest.mark.parametrize(
    ("value", "delta"), [(math.nan, 0.05), (0.5, 1.0), (0.5, -0.1), (0.5, math.nan)]
)
def test_refuses_nonsense(value, delta):
    with pytest.raises(ValueError, match=r"NaN|delta"):
        Bound("x", value, delta)


def test_a_tiny_delta_is_not_shown_as_certainty():
    assert "with probability 1 - 1e-09" in str(Bound("x", 0.5, 1e-9))
    assert "with probability 0.99999 " in str(Bound("x", 0.5, 1e-5))
