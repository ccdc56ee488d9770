"""Formulas behind new findings, near equality and by other routes."""

import numpy as np
import pytest

from pindown.findings.gates import Readings, outcomes, parse_condition
from pindown.findings.how_far.calibration import (
    best_temperature,
    expected_calibration_error,
    reliability,
)
from pindown.findings.how_far.frequencies import low_passed
from pindown.findings.how_far.rows_and_labels import _votes
from pindown.findings.samples import Targets, confidences


def test_errors_of_both_signs_add_up():
    assert expected_calibration_error([(0.9, 0.8, 50), (0.6, 0.7, 50)]) == pytest.approx(0.1)


def test_bins_hold_all_rows_and_confidence_is_that_of_the_softmax():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(500, 4))
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    sure = confidences(scores)
    assert sure == pytest.approx(p.max(axis=1))
    one = confidences(scores[:, :1])
    assert one == pytest.approx(confidences(np.c_[np.zeros(500), scores[:, 0]]))
    bins = reliability(sure, rng.random(500) < sure)
    assert sum(n for *_, n in bins) == 500 and len(bins) == 10


@pytest.mark.parametrize("true", [0.3, 1.0, 5.0])
def test_the_temperature_is_recovered_from_labels_that_follow_the_softmax(true):
    rng = np.random.default_rng(1)
    scores = rng.normal(scale=3.0, size=(20_000, 3))
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    y = (rng.random((len(p), 1)) > p.cumsum(axis=1)).sum(axis=1)
    assert best_temperature(true * scores, Targets("classes", y)) == pytest.approx(true, rel=0.05)


def test_a_row_is_not_its_own_neighbour():
    X, y = np.arange(12.0)[:, None], np.array([1] + [0] * 11)
    assert _votes(X, y, np.arange(1)).tolist() == [[10, 0]]


def test_a_low_pass_keeps_slow_waves_and_drops_fast_ones():
    t = np.arange(16) / 16
    slow, fast = np.cos(2 * np.pi * 2 * t), np.cos(2 * np.pi * 7 * t)
    image = np.tile(slow + fast, (16, 1))
    assert low_passed(image.reshape(1, -1), (16, 16), 4.0).reshape(16, 16) == pytest.approx(
        np.tile(slow, (16, 1)), abs=1e-12
    )


def test_a_concern_that_has_grown_fails_beside_its_baseline():
    now, before = Readings({}, {"leak": (0.3, "leaky")}), Readings({}, {"leak": (0.2, "leaky")})
    any_concern = [parse_condition("concern")]
    assert outcomes(now, any_concern, before)[0].words == "leaky"
    assert outcomes(before, any_concern, now)[0].words == ""
    assert outcomes(before, any_concern, before)[0].words == ""
