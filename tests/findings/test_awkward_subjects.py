"""Networks and data at the edge of sense: what an audit then says is still true, and reads well."""

import re
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown._audit import audit
from pindown.deadline import Deadline
from pindown.findings import Quantity
from pindown.findings.question_budget import Turn
from pindown.findings.subject import Subject
from pindown.geometry import Box
from pindown.report.audit_page import key_numbers

PATIENT = 300.0  # seconds: no clock may decide
ONE_OF_MANY = re.compile(
    r"(?<![\d.,])1 (units|ReLUs|rows|inputs|outputs|layers|cells|pieces|parameters)\b"
)


def random_net(*widths, seed=0):
    rng = np.random.default_rng(seed)
    return ReluNetwork.from_layers(
        [(rng.standard_normal((b, a)), rng.standard_normal(b)) for a, b in pairwise(widths)]
    )


def words(result):
    """Return everything that a report would print."""
    texts = [result.verdict, result.given]
    for f in result.findings:
        texts += [f.verdict, f.reading, f.scale, f.sentence, str(f.number or "")]
        texts += [h.text for h in f.hypotheses] + ([f.table.caption] if f.table else [])
    return texts


@pytest.mark.parametrize(
    ("net", "given"),
    [
        (random_net(1, 1, 1), {}),
        (random_net(2, 1, 2), {"X": [[0.5, 1.0]], "y": [1]}),
        (random_net(2, 4, 2), {"X": [[0.5, 1.0]]}),
        (random_net(2, 4, 2), {"X": np.eye(2), "y": [0, 1], "test": ([[1.0, 1.0]], [0])}),
        (ReluNetwork.from_layers([(np.zeros((3, 2)), -np.ones(3)), (np.ones((2, 3)), [1, 0])]),
         {"X": np.random.default_rng(0).random((9, 2)), "y": [0, 1, 1] * 3}),
    ],
)  # fmt: skip
def test_one_of_a_kind_is_in_the_singular(net, given):
    result = audit(net, budget=PATIENT, ignore=["BND-02", "BND-03"], **given)
    assert not [f.verdict for f in result.findings if f.status == "error"]
    wrong = [text for text in words(result) if ONE_OF_MANY.search(text) or "`" in text]
    assert wrong == []


def test_the_strip_splits_numbers_from_what_they_count():
    result = audit(random_net(1, 1, 1), only=["ARC", "EQV-01"])
    assert result["EQV-01"].number.text == "1 ReLU"
    assert ("1", "ReLU enough") in [(key.value, key.label) for key in key_numbers(result)]
    assert Quantity(1, "exact", "cells", bound="lower").text == "1 cell"
    assert Quantity(1.5, "exact", "cells").text == "1.5 cells"


def test_ties_are_neither_right_nor_called_mistakes():
    constant = ReluNetwork.from_layers([([[0.0, 0.0]], [0.0])])
    result = audit(constant, np.eye(2), [0, 1], only=["ACC", "BIAS-01", "OUT-01"])
    assert "right on 50.0% of 2 rows" in result.description  # the sign of 0 is read as class 0
    assert "2 of 2 rows are misclassified or tied" in result["BIAS-01"].verdict
    assert result["ACC-02"].sentence == "The right class ties with another in the median."
    assert result["OUT-01"].sentence == "On the bounding box of the data its output is always 0."


def test_outputs_that_are_copies_share_what_they_win():
    (W, b), (V, _) = random_net(2, 5, 1).layers
    twins = ReluNetwork.from_layers([(W, b), (np.vstack([V, V]), [0.0, 0.0])])
    sentence = audit(twins, only=["OUT-02"])["OUT-02"].sentence
    assert (
        sentence.startswith("Output 0 is the largest on 100% of")
        and "ties count for the first" in sentence
    )


def test_boxes_that_were_given_are_told_from_each_other():
    net = random_net(2, 3, 1)
    boxes = {
        (-2.0, 2.0): "the given box [-2, 2]^2",
        ((0.0, -1.0), (1.0, 0.1 + 0.2)): "the given box [0, 1] × [-1, 0.30000000000000004]",
    }
    for box, name in boxes.items():
        result = audit(net, box=box, only=["EQV-01", "UNIT-02"])
        assert result.box_name == name and name in result["EQV-01"].verdict + result.given
    many = audit(random_net(5, 3, 1), box=Box(np.zeros(5), np.arange(1.0, 6.0)), only=["ARC"])
    assert many.box_name == "the given box"


def test_flat_directions_are_flat_on_the_box_alone():
    net = random_net(2, 4, 2)
    finding = audit(net, box=(1, 1), only=["EQV-02"])["EQV-02"]
    assert finding.number.value > 0 and "on the given box [1, 1]^2" in finding.sentence


def test_numbers_beyond_the_range_of_squares_warn_nobody():
    X = 1e300 * np.random.default_rng(0).standard_normal((20, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = audit(random_net(2, 8, 3), X, only=["EQV-02", "LIP-01", "GEO"])
    assert result["EQV-02"].status == "not applicable"
    steep = ReluNetwork.from_layers([(np.full((2, 2), 1e200), [0, 0]), (np.full((2, 2), 1e200), [0, 0])])
    told = audit(steep, only=["LIP-01"])["LIP-01"].sentence
    assert told == "No bound on its steepness fits into float64."


def test_a_fold_far_away_is_so_many_distances_off():
    net = ReluNetwork.from_layers([([[1.0]], [-100.0]), ([[1.0]], [0.0])])
    finding = audit(net, [[0.0], [1.0]], only=["GEO-02"], budget=PATIENT)["GEO-02"]
    assert "within 99.5 times the distance between two rows" in finding.verdict
    assert finding.number.text == "99.5"


def test_equal_rows_have_no_way_between_them():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 1000, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        finding = audit(random_net(2, 5, 2), X, np.repeat([0, 1], 1000), only=["GEO-04"])["GEO-04"]
    assert [row[0] for row in finding.table.rows] == ["all pairs", "different classes"]


def test_a_small_budget_still_sees_all_rows_of_a_cheap_network():
    X = np.random.default_rng(0).standard_normal((5_000, 2))
    turn = replace(Turn.lasting(PATIENT), own=Deadline.after(0.0))  # nothing left for the one who asks
    subject = Subject.of(random_net(2, 8, 3), X, None, None, None, turn, 0)
    assert subject.observe(subject.data).n == 5_000


def test_a_bound_of_everything_is_not_told():
    X, net = np.eye(2), random_net(2, 4, 2)
    wrong = 1 - net(X[:1]).argmax(axis=1)
    finding = audit(net, X, [0, 1], test=(X[:1], wrong), only=["BND-01"])["BND-01"]
    assert finding.number.value == 1.0 and finding.sentence == ""


@pytest.mark.parametrize("size", [1e-310, 1e-160, 1e160, 1e200])
def test_data_at_the_ends_of_float64_raise_no_error_and_no_warning(size):
    net = random_net(4, 8, 3)
    net = ReluNetwork.from_layers([(layer.weight, np.zeros(len(layer.bias))) for layer in net.layers])
    X = size * np.random.default_rng(0).standard_normal((60, 4))
    codes = ["UNIT", "ACC", "CAL", "DAT", "OUT-03", "SEN", "BND", "ROB-03", "GEO-02", "GEO-04", "DEP"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = audit(net, X, net(X).argmax(axis=1), only=codes, budget=PATIENT)
    assert result.failed == ()
    assert result["BND-02"].verdict.endswith("their squares leave float64")
    assert result["CAL-01"].facts["temperature"] > 0.0
